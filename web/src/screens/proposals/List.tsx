/** The list of proposals with its filters. */
import { useState } from "preact/hooks";

import type { ProposalListOutput, ProposalOutput } from "../../api/proposalTypes";
import { Icon } from "../../kit/Icon";
import { Loading, useLoad } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { Time } from "../../kit/Time";
import { listProposals, type ProposalFilter } from "../../source/proposals";
import { source } from "../../state/context";
import { href, link } from "../../state/location";
import { proposalsChanged } from "../../state/proposals";
import { proposalText as text } from "../../text/proposals";
import { setParams, TONES } from "./state";

export function StateBadge({ proposal }: { proposal: ProposalOutput }) {
  return <span class={`badge ${TONES[proposal.state]}`}>{text.states[proposal.state]}</span>;
}

const STATES = ["open", "ready", "blocked", "checking", "draft", "landed", "closed", "all"] as const;

export function ProposalList({ graph }: { graph: string }) {
  const { params } = link.value;
  const filter: ProposalFilter = { state: params["state"], target: params["target"], author: params["author"], reviewer: params["reviewer"], label: params["label"] };
  const key = JSON.stringify([graph, filter]);
  const loaded = useLoad(`${key} ${proposalsChanged.value}`, (signal) => listProposals(graph, filter, undefined, signal));
  // A new event reads the list again; until then the known one stays.
  const [shown, setShown] = useState<{ key: string; list: ProposalListOutput } | null>(null);
  if (loaded.value !== undefined && (shown?.list !== loaded.value || shown.key !== key)) setShown({ key, list: loaded.value });
  const kept = loaded.value === undefined && loaded.problem === undefined && shown?.key === key ? { ...loaded, value: shown.list } : loaded;
  return (
    <div class="proposals stack">
      <div class="row wrap spread">
        <h1>{text.title}</h1>
        <a class="button primary" href={href({ path: [], params: { new: "1" } })}>
          <Icon name="plus" />
          {text.create.start}
        </a>
      </div>
      <section class="card">
        <Filters graph={graph} filter={filter} />
        <Loading of={kept}>{(list) => <Rows key={key} graph={graph} filter={filter} list={list} />}</Loading>
      </section>
    </div>
  );
}

function Filters({ graph, filter }: { graph: string; filter: ProposalFilter }) {
  const words = text.filters;
  const branches = useLoad(graph, (signal) => source.branches(graph, signal)).value ?? [];
  const state = filter.state ?? "open";
  const fields = ["author", "reviewer", "label"] as const;
  const names = { author: words.author, reviewer: words.reviewer, label: words.reviewLabel };
  const { state: _, ...others } = link.value.params;
  return (
    <form
      class="proposal-filters"
      aria-label={words.label}
      onSubmit={(event) => {
        event.preventDefault();
        const form = event.currentTarget;
        setParams(Object.fromEntries(fields.map((name) => [name, (form.elements.namedItem(name) as HTMLInputElement).value.trim()])));
      }}
    >
      <div class="row wrap" role="group" aria-label={words.state}>
        {STATES.map((each) => (
          <a key={each} class="chip" href={href({ params: each === "open" ? others : { ...others, state: each } })} aria-current={each === state ? "true" : undefined}>
            {words.states[each]}
          </a>
        ))}
      </div>
      <div class="row wrap">
        <select class="select" aria-label={words.target} value={filter.target ?? ""} onChange={(event) => setParams({ target: event.currentTarget.value })}>
          <option value="">{words.anyTarget}</option>
          {[...new Set([...branches, ...(filter.target === undefined ? [] : [filter.target])])].map((name) => (
            <option value={name} key={name}>
              {name}
            </option>
          ))}
        </select>
        {fields.map((name) => (
          <input class="input narrow" key={`${name} ${filter[name] ?? ""}`} name={name} type="text" aria-label={names[name]} placeholder={names[name]} defaultValue={filter[name] ?? ""} autoComplete="off" />
        ))}
        <button type="submit" class="button small">
          {words.apply}
        </button>
      </div>
    </form>
  );
}

function Rows({ graph, filter, list }: { graph: string; filter: ProposalFilter; list: ProposalListOutput }) {
  const [extra, setExtra] = useState<readonly ProposalListOutput[]>([]);
  const pages = [list, ...extra];
  const all = pages.flatMap((page) => page.proposals);
  const next = pages.at(-1)?.next ?? null;
  if (all.length === 0) {
    const plain = Object.values(filter).every((value) => value === undefined);
    return (
      <div class="empty">
        <strong>{plain ? text.noneOpen : text.none}</strong>
        <span>{text.noneHint}</span>
      </div>
    );
  }
  return (
    <>
      <ul class="list">
        {all.map((proposal) => (
          <li key={proposal.id}>
            <ProposalRow proposal={proposal} />
          </li>
        ))}
      </ul>
      {next === null ? null : (
        <div class="pad">
          <button type="button" class="button small" onClick={() => void listProposals(graph, filter, next).then((page) => setExtra([...extra, page]))}>
            {text.more}
          </button>
        </div>
      )}
    </>
  );
}

function ProposalRow({ proposal }: { proposal: ProposalOutput }) {
  const passed = proposal.checks.filter((check) => check.state === "pass").length;
  const conflicts = proposal.trial?.current === true ? proposal.trial.conflicts : 0;
  return (
    <a class="item proposal-row" href={href({ path: [proposal.id], params: {} })}>
      <span class="grow stack tight">
        <span class="row wrap">
          <strong>
            <Plain text={proposal.title} />
          </strong>
          <StateBadge proposal={proposal} />
          {proposal.labels.map((label) => (
            <span class="chip" key={label}>
              <Plain text={label} />
            </span>
          ))}
        </span>
        <span class="row wrap muted small">
          <Plain text={text.into(proposal.source, proposal.target)} />
          <Plain text={text.by(proposal.actor_id ?? text.unknownActor)} />
          {proposal.checks.length > 0 ? <span>{text.checks(passed, proposal.checks.length)}</span> : null}
          {conflicts > 0 ? <span class="bad-text">{text.conflicts(conflicts)}</span> : null}
          {proposal.approvals.length > 0 ? <span>{text.approvals(proposal.approvals.length)}</span> : null}
          {proposal.comments > 0 ? <span>{text.comments(proposal.comments)}</span> : null}
        </span>
      </span>
      <Time at={proposal.updated_at} />
    </a>
  );
}
