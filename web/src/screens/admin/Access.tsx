/** The decision of the policy on a request: actor, action and branch; the rule with its line, and the rules that nearly match. */
import { useState } from "preact/hooks";

import type { ConsideredRuleOutput, PolicyExplainOutput } from "../../api/adminTypes";
import type { Problem } from "../../api/problem";
import { Loading, useLoad } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { ProblemBox } from "../../kit/ProblemBox";
import type { Decision } from "../../source/admin";
import { may, me, source } from "../../state/context";
import { lastDenial } from "../../state/denial";
import { isPinned, MAIN } from "../../state/link";
import { go, link } from "../../state/location";
import { ACTIONS, admin } from "../../text/admin";

const words = admin.access;

export function Access() {
  const { graph, ref, params } = link.value;
  const own = me.value?.actor_id ?? "";
  const denied = lastDenial.value;
  const [actor, setActor] = useState(params["actor"] ?? own);
  const [action, setAction] = useState(params["action"] ?? denied?.action ?? "change");
  const [branch, setBranch] = useState(params["on"] ?? denied?.branch ?? (isPinned(ref) ? MAIN : ref));
  const branches = useLoad(graph, (signal) => source.branches(graph, signal)).value ?? [MAIN];
  const asked = params["action"] === undefined ? null : params["action"];
  return (
    <div class="stack">
      <section class="card" aria-labelledby="explain">
        <header>
          <h2 id="explain">{words.title}</h2>
        </header>
        <form
          class="access-form body"
          onSubmit={(event) => {
            event.preventDefault();
            go({ params: { tab: "access", actor: actor === own ? "" : actor, action, on: ACTIONS[action] === null ? "" : branch } });
          }}
        >
          <label class="field">
            <span class="label">{words.actor}</span>
            <input class="input" value={actor} placeholder={own} title={words.actorHelp} onInput={(event) => setActor(event.currentTarget.value)} />
          </label>
          <label class="field">
            <span class="label">{words.action}</span>
            <select class="select" value={action} onChange={(event) => setAction(event.currentTarget.value)}>
              {Object.keys(ACTIONS).map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
          <label class="field">
            <span class="label">{words.branch}</span>
            <input class="input" list="access-branches" value={branch} disabled={ACTIONS[action] === null} onInput={(event) => setBranch(event.currentTarget.value)} />
            <datalist id="access-branches">
              {branches.map((name) => (
                <option key={name} value={name} />
              ))}
            </datalist>
          </label>
          <button type="submit" class="button primary">
            {words.explain}
          </button>
        </form>
      </section>
      {asked === null ? null : <Explained action={asked} actor={params["actor"] ?? own} branch={params["on"]} own={own} />}
    </div>
  );
}

/** The request of a decision; an administrator asks for all rules by naming the actor. */
function decisionOf(action: string, actor: string, branch: string | undefined, own: string): Decision {
  const scope = ACTIONS[action];
  const on = branch === undefined || scope === null ? {} : scope === "target" ? { target_branch: branch } : { branch };
  return { action, ...on, ...(actor !== own || may("admin") ? { actor } : {}) };
}

function Explained({ action, actor, branch, own }: { action: string; actor: string; branch: string | undefined; own: string }) {
  const decision = decisionOf(action, actor, branch, own);
  const { graph } = link.value;
  const loaded = useLoad(JSON.stringify([graph, decision]), (signal) => source.admin.decide(graph, decision, signal));
  if (loaded.problem !== undefined) return <NoDecision problem={loaded.problem} onRetry={loaded.reload} />;
  return (
    <section class="card" aria-live="polite">
      <div class="body">
        <Loading of={loaded}>{(value) => <DecisionView of={value} />}</Loading>
      </div>
    </section>
  );
}

function NoDecision({ problem, onRetry }: { problem: Problem; onRetry(): void }) {
  if (problem.code !== "no_policy") return <ProblemBox problem={problem} onRetry={onRetry} />;
  return <p class="card empty">{words.noPolicy}</p>;
}

function DecisionView({ of }: { of: PolicyExplainOutput }) {
  return (
    <div class="decision">
      <p class="row wrap">
        <span class={of.decision === "allow" ? "badge good" : "badge bad"}>{of.decision === "allow" ? words.allow : words.deny}</span>
        <strong>
          <Plain text={of.message} />
        </strong>
      </p>
      {of.reasons.length === 0 ? null : (
        <ul aria-label={words.reasons}>
          {of.reasons.map((reason) => (
            <li key={reason}>
              <Plain text={reason} />
            </li>
          ))}
        </ul>
      )}
      {of.considered.length === 0 ? <p class="muted small">{words.onlyOwn}</p> : <Rules rules={of.considered} />}
    </div>
  );
}

const NEAR: readonly ConsideredRuleOutput["why"][] = ["scope", "condition"];

function Rules({ rules }: { rules: readonly ConsideredRuleOutput[] }) {
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label={words.rules}>
      <table class="plain-table">
        <caption class="visually-hidden">{words.rules}</caption>
        <thead>
          <tr>
            <th scope="col">{words.rule}</th>
            <th scope="col" class="number">
              {words.line}
            </th>
            <th scope="col">{words.why}</th>
          </tr>
        </thead>
        <tbody>
          {rules.map((each) => (
            <tr key={each.rule} class={NEAR.includes(each.why) ? "rule-near" : undefined}>
              <th scope="row">
                <Plain text={each.rule} /> {each.why === "ok" || each.why === "denies" ? <span class="badge good">{words.matched}</span> : null}
                {NEAR.includes(each.why) ? <span class="badge warn">{words.near}</span> : null}
              </th>
              <td class="number">{each.line ?? "–"}</td>
              <td>{words.whys[each.why]}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
