/** The decision: what is missing, reviews, and Land. It needs only the proposal, so it is there before the changes are. */
import { useState } from "preact/hooks";

import type { BlockerOutput, ProposalOutput } from "../../api/proposalTypes";
import { announce } from "../../kit/announce";
import { Dialog } from "../../kit/Dialog";
import { Plain } from "../../kit/Plain";
import { ProblemBox } from "../../kit/ProblemBox";
import { land, review, runChecks, type Verdict } from "../../source/proposals";
import { config, me } from "../../state/context";
import { href, link } from "../../state/location";
import { text as common } from "../../text/en";
import { proposalText as text } from "../../text/proposals";
import { isOpen, lacking, tellWritten, useAttempt } from "./state";

interface Props {
  graph: string;
  proposal: ProposalOutput;
  /** The head of the source that was looked at. */
  looked: string | null;
  reload(): void;
}

export function Decision({ graph, proposal, looked, reload }: Props) {
  const words = text.decision;
  const [verdict, setVerdict] = useState<"approve" | "request_changes" | null>(null);
  const attempt = useAttempt(reload);
  if (!isOpen(proposal)) return <Ended proposal={proposal} />;
  const own = me.value?.actor_id !== null && me.value?.actor_id === proposal.actor_id;
  const mine = proposal.reviews.find((each) => each.actor_id === me.value?.actor_id && each.verdict !== "retract");
  const reviewReason = own ? words.ownApproval : lacking(proposal.target, "proposal_approve").length > 0 ? words.mayNotApprove(proposal.target) : null;
  const landReason = landReasonOf(proposal);
  const doLand = () =>
    attempt.run(async () => {
      await land(graph, proposal.id, "");
      announce(`${text.landed} ${proposal.target}`);
      tellWritten();
    });
  return (
    <section class="card decision" aria-label={words.label} data-state={proposal.state}>
      <div class="grow stack tight" aria-live="polite">
        {proposal.blocked_by.length === 0 ? (
          <p class="good-text">✓ {words.ready}</p>
        ) : (
          <div class="row wrap">
            <strong>{words.missing}</strong>
            <ul class="missing">
              {proposal.blocked_by.map((blocker, index) => (
                <li key={index}>
                  <Missing blocker={blocker} />
                </li>
              ))}
            </ul>
          </div>
        )}
        <p class="muted small">
          <Plain text={rightReasonOf(proposal) ?? words.mayLand(proposal.target)} />
        </p>
        {attempt.problem === null ? null : <ProblemBox problem={attempt.problem} />}
      </div>
      <div class="row wrap actions">
        {proposal.blocked_by.some((each) => each.code === "no_trial" || each.code === "check_pending") && !config.read_only ? (
          <button type="button" class="button" disabled={attempt.running} onClick={() => void attempt.run(() => runChecks(graph, proposal.id, false))}>
            {words.check}
          </button>
        ) : null}
        {mine === undefined ? null : (
          <button type="button" class="button plain" disabled={attempt.running} onClick={() => void attempt.run(() => review(graph, proposal.id, "retract", null, ""))}>
            {words.retract}
          </button>
        )}
        {(["request_changes", "approve"] as const).map((each) => (
          <button type="button" class="button" key={each} aria-disabled={reviewReason !== null} title={reviewReason ?? undefined} onClick={() => (reviewReason === null ? setVerdict(each) : undefined)}>
            {words.reviewTitle[each]}
          </button>
        ))}
        <button type="button" class="button primary" aria-disabled={landReason !== null || attempt.running} title={landReason ?? undefined} onClick={() => (landReason === null && !attempt.running ? void doLand() : undefined)}>
          {attempt.running ? words.landing : words.land}
        </button>
      </div>
      {verdict === null ? null : <ReviewDialog graph={graph} proposal={proposal} verdict={verdict} looked={looked} reload={reload} onClose={() => setVerdict(null)} />}
    </section>
  );
}

/** Returns why the caller may not land the proposal; null if it may. */
function rightReasonOf(proposal: ProposalOutput): string | null {
  if (config.read_only) return text.decision.readOnly;
  const missing = lacking(proposal.target, "proposal_land", "branch_merge");
  return missing.length > 0 ? text.decision.mayNotLand(missing.join(" and "), proposal.target) : null;
}

/** Returns why the proposal cannot be landed now; null if it can. */
function landReasonOf(proposal: ProposalOutput): string | null {
  const right = rightReasonOf(proposal);
  if (right !== null) return right;
  return proposal.blocked_by.length > 0 ? proposal.blocked_by.map((each) => each.message).join("; ") : null;
}

/** Something that is missing; a conflict leads to its tab. */
function Missing({ blocker }: { blocker: BlockerOutput }) {
  const content = <Plain text={blocker.message} />;
  const tab = blocker.code === "conflicts" ? "conflicts" : blocker.code === "check_failed" || blocker.code === "check_pending" ? "overview" : null;
  if (tab === null) return content;
  return <a href={href({ params: { ...link.value.params, tab } })}>{content}</a>;
}

function Ended({ proposal }: { proposal: ProposalOutput }) {
  return (
    <section class="card decision" aria-label={text.decision.label} data-state={proposal.state}>
      {proposal.landed === null ? (
        <p>
          <Plain text={text.closed(proposal.closed_by, proposal.closed_why)} />
        </p>
      ) : (
        <p class="good-text">
          ✓ {text.landed} <a href={href({ ref: `@${proposal.landed}`, screen: "home", path: [], params: {} })}>{proposal.landed}</a>
        </p>
      )}
    </section>
  );
}

function ReviewDialog({ graph, proposal, verdict, looked, reload, onClose }: Props & { verdict: Exclude<Verdict, "retract">; onClose(): void }) {
  const words = text.decision;
  const [written, setWritten] = useState("");
  const attempt = useAttempt(reload);
  const send = async () => {
    if (await attempt.run(() => review(graph, proposal.id, verdict, looked, written.trim()))) onClose();
  };
  return (
    <Dialog title={words.reviewTitle[verdict]} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        {looked === null ? null : <p class="muted">{words.looked(looked)}</p>}
        <label class="field">
          <span class="label">{words.reviewText}</span>
          <textarea class="input" rows={4} value={written} onInput={(event) => setWritten(event.currentTarget.value)} />
        </label>
        {attempt.problem === null ? null : attempt.problem.status === 412 ? <p class="problem">{text.moved.explain}</p> : <ProblemBox problem={attempt.problem} />}
        <div class="actions">
          <button type="button" class="button" onClick={onClose}>
            {common.cancel}
          </button>
          <button type="submit" class="button primary" disabled={attempt.running}>
            {words.send}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
