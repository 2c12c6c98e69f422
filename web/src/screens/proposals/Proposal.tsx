/** One proposal: head, decision, and the tabs Overview, Changes, Conflicts and Comments. */
import { useEffect, useState } from "preact/hooks";

import type { ProposalOutput } from "../../api/proposalTypes";
import { Icon } from "../../kit/Icon";
import { Loading, useLoad } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { Panel, Tabs } from "../../kit/Tabs";
import { Time } from "../../kit/Time";
import { getProposal, listComments } from "../../source/proposals";
import { href, link } from "../../state/location";
import { proposalsChanged } from "../../state/proposals";
import { proposalText as text } from "../../text/proposals";
import { Changes } from "./Changes";
import { Comments } from "./Comments";
import { Conflicts } from "./Conflicts";
import { Decision } from "./Decision";
import { EditMenu } from "./Edit";
import { StateBadge } from "./List";
import { Moved } from "./Moved";
import { Overview } from "./Overview";
import { setParams, useLooked } from "./state";

const TABS = ["overview", "changes", "conflicts", "comments"] as const;
type Tab = (typeof TABS)[number];

export function ProposalPage({ graph, id }: { graph: string; id: string }) {
  const [round, setRound] = useState(0);
  const loaded = useLoad(`${graph} ${id} ${proposalsChanged.value} ${round}`, (signal) => getProposal(graph, id, signal));
  // While a newer state is read, the known one stays.
  const [known, setKnown] = useState<ProposalOutput | null>(null);
  useEffect(() => {
    if (loaded.value !== undefined) setKnown(loaded.value);
  }, [loaded.value]);
  const shown = loaded.value ?? known ?? undefined;
  const of = { loading: loaded.loading, reload: loaded.reload, ...(shown === undefined ? {} : { value: shown }), ...(loaded.problem === undefined || shown !== undefined ? {} : { problem: loaded.problem }) };
  return (
    <div class="proposal">
      {shown === undefined ? <h1 class="visually-hidden">{text.title}</h1> : null}
      <Loading of={of}>{(proposal) => <View graph={graph} proposal={proposal} reload={() => setRound((n) => n + 1)} />}</Loading>
    </div>
  );
}

function View({ graph, proposal, reload }: { graph: string; proposal: ProposalOutput; reload(): void }) {
  const [looked, setLooked] = useLooked(proposal);
  const asked = link.value.params["tab"] as Tab | undefined;
  const tab = asked !== undefined && TABS.includes(asked) ? asked : "overview";
  const comments = useLoad(`${graph} ${proposal.id} ${proposal.events}`, (signal) => listComments(graph, proposal.id, signal));
  const shared = { graph, proposal, reload };
  const conflicts = proposal.trial?.conflicts ?? 0;
  const title = (name: Tab): string => {
    if (name === "conflicts" && conflicts > 0) return `${text.tabs.conflicts} ${conflicts}`;
    return name === "comments" && proposal.comments > 0 ? `${text.tabs.comments} ${proposal.comments}` : text.tabs[name];
  };
  return (
    <>
      <Head {...shared} />
      <Decision {...shared} looked={looked} />
      <Moved {...shared} looked={looked} onLooked={setLooked} />
      <section class="card proposal-tabs">
        <Tabs label={text.tabs.label} tabs={TABS.map((name) => ({ name, title: title(name) }))} selected={tab} onSelect={(name) => setParams({ tab: name === "overview" ? "" : name, row: "" })} />
        <Panel name={tab}>
          {tab === "overview" ? <Overview {...shared} /> : null}
          {tab === "changes" ? <Changes {...shared} looked={looked} comments={comments} /> : null}
          {tab === "conflicts" ? <Conflicts key={`${proposal.target_head} ${proposal.source_head}`} {...shared} /> : null}
          {tab === "comments" ? <Comments {...shared} comments={comments} /> : null}
        </Panel>
      </section>
    </>
  );
}

function Head({ graph, proposal, reload }: { graph: string; proposal: ProposalOutput; reload(): void }) {
  return (
    <header class="stack tight">
      <a class="small" href={href({ path: [], params: {} })}>
        {text.back}
      </a>
      <div class="row wrap">
        <h1>
          <Plain text={proposal.title} />
        </h1>
        <StateBadge proposal={proposal} />
        <span class="push">
          <EditMenu graph={graph} proposal={proposal} reload={reload} />
        </span>
      </div>
      <div class="row wrap muted">
        <span class="chip">
          <Icon name="branch" />
          <Plain text={proposal.source} />
        </span>
        <span aria-hidden="true">→</span>
        <span class="chip">
          <Icon name="branch" />
          <Plain text={proposal.target} />
        </span>
        <span>
          {text.opened} <Plain text={text.by(proposal.actor_id ?? text.unknownActor)} />
        </span>
        <Time at={proposal.created_at} />
        <code class="small">{proposal.id.slice(-8)}</code>
      </div>
    </header>
  );
}
