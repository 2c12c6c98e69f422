/** The text of a proposal, its checks with failing rows, its reviews and labels. */
import type { CheckOutput, ProposalOutput, ReviewOutput } from "../../api/proposalTypes";
import { Loading, useLoad } from "../../kit/load";
import { Markdown } from "../../kit/Markdown";
import { Plain } from "../../kit/Plain";
import { ProblemBox } from "../../kit/ProblemBox";
import { Time } from "../../kit/Time";
import { isNode, nodeLabel, Value } from "../../kit/Value";
import { checkRows, runChecks } from "../../source/proposals";
import { config } from "../../state/context";
import { href, link } from "../../state/location";
import { proposalText as text } from "../../text/proposals";
import { isOpen, setParams, useAttempt } from "./state";

interface Props {
  graph: string;
  proposal: ProposalOutput;
  reload(): void;
}

export function Overview(props: Props) {
  const { proposal } = props;
  return (
    <div class="overview">
      <div class="stack">
        <section>{proposal.body === null || proposal.body.trim() === "" ? <p class="muted">{text.noBody}</p> : <Markdown text={proposal.body} />}</section>
        <Checks {...props} />
      </div>
      <div class="stack">
        <Reviews proposal={proposal} />
        {proposal.labels.length === 0 ? null : (
          <section class="stack tight">
            <h2>{text.labels}</h2>
            <div class="row wrap">
              {proposal.labels.map((label) => (
                <a class="chip" key={label} href={href({ path: [], params: { label, state: "all" } })}>
                  <Plain text={label} />
                </a>
              ))}
            </div>
          </section>
        )}
        {proposal.trial === null || proposal.trial.schema_steps.length === 0 ? null : (
          <section class="stack tight">
            <h2>{text.schemaSteps}</h2>
            <ul>
              {proposal.trial.schema_steps.map((step) => (
                <li key={step}>
                  <Plain text={step} />
                </li>
              ))}
            </ul>
          </section>
        )}
      </div>
    </div>
  );
}

const CHECK_TONES: Readonly<Record<string, string>> = { pass: "good", fail: "bad", error: "bad", pending: "warn" };
const CHECK_SIGNS: Readonly<Record<string, string>> = { pass: "✓", fail: "✕", error: "!", pending: "…" };

function Checks({ graph, proposal, reload }: Props) {
  const attempt = useAttempt(reload);
  return (
    <section class="stack tight">
      <div class="row spread">
        <h2>{text.checksTitle}</h2>
        {isOpen(proposal) && !config.read_only && !proposal.draft ? (
          <button type="button" class="button small" disabled={attempt.running} onClick={() => void attempt.run(() => runChecks(graph, proposal.id, true))}>
            {text.runAgain}
          </button>
        ) : null}
      </div>
      {attempt.problem === null ? null : <ProblemBox problem={attempt.problem} />}
      {proposal.checks.length === 0 ? (
        <p class="muted">{text.noChecks}</p>
      ) : (
        <ul class="list checks">
          {proposal.checks.map((check) => (
            <li key={check.name}>
              <CheckRow graph={graph} proposal={proposal} check={check} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function CheckRow({ graph, proposal, check }: { graph: string; proposal: ProposalOutput; check: CheckOutput }) {
  const stored = check.name !== text.trial;
  const open = link.value.params["check"] === check.name;
  const hasRows = stored && check.state === "fail";
  return (
    <>
      <div class="item">
        <span class={`badge ${CHECK_TONES[check.state] ?? ""}`}>
          {CHECK_SIGNS[check.state]} {text.checkStates[check.state] ?? check.state}
        </span>
        <span class="grow stack tight">
          <strong>
            {stored ? (
              <a href={href({ screen: "query", path: [], params: { name: check.name } })}>
                <Plain text={check.name} />
              </a>
            ) : (
              check.name
            )}
          </strong>
          {check.details === null ? null : (
            <span class="muted small">
              <Plain text={check.details} />
            </span>
          )}
        </span>
        <span class="muted small">{check.required ? text.required : text.optional}</span>
        {check.ms === null ? null : <span class="muted number small">{text.ms(check.ms)}</span>}
        {check.actor_id === null || check.created_at === null ? null : <Time at={check.created_at} />}
        {hasRows ? (
          <button type="button" class="button small" aria-expanded={open} aria-label={text.showRows(check.name)} onClick={() => setParams({ check: open ? "" : check.name })}>
            {text.rows}
          </button>
        ) : null}
      </div>
      {hasRows && open ? <FailingRows graph={graph} proposal={proposal} name={check.name} /> : null}
    </>
  );
}

/** The rows of a failed check; nodes lead to their pages on the trial. */
function FailingRows({ graph, proposal, name }: { graph: string; proposal: ProposalOutput; name: string }) {
  const trial = proposal.landed ?? proposal.trial?.commit ?? null;
  const loaded = useLoad(`${proposal.id} ${name} ${trial}`, (signal) => checkRows(graph, proposal.id, name, signal));
  return (
    <Loading of={loaded}>
      {({ rows, total, node_types: types }) => {
        const columns = Object.keys(rows[0] ?? {});
        return (
          <div class="scroll" tabIndex={0} role="group" aria-label={text.rowsOf(name)}>
            <table class="plain-table row-table">
              <caption class="muted small">{text.rowsTotal(rows.length, total)}</caption>
              <thead>
                <tr>
                  {columns.map((column) => (
                    <th scope="col" key={column}>
                      {column}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {rows.map((row, index) => (
                  <tr key={index}>
                    {columns.map((column) => (
                      <td key={column}>
                        <Cell value={row[column]} type={types[column]} trial={trial} />
                      </td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        );
      }}
    </Loading>
  );
}

function Cell({ value, type, trial }: { value: unknown; type: string | undefined; trial: string | null }) {
  if (!isNode(value)) return <Value value={value} />;
  const label = nodeLabel(value, value.id);
  if (type === undefined || trial === null) return <Plain text={label} />;
  return (
    <a href={href({ ref: `@${trial}`, screen: "entity", path: [type, value.id], params: {} })}>
      <Plain text={`${type} ${label}`} />
    </a>
  );
}

function Reviews({ proposal }: { proposal: ProposalOutput }) {
  const given = new Set(proposal.reviews.map((each) => each.actor_id));
  const waiting = proposal.reviewers.filter((name) => !given.has(name));
  return (
    <section class="stack tight">
      <h2>{text.reviewsTitle}</h2>
      {proposal.reviews.length + waiting.length === 0 ? <p class="muted">{text.noReviews}</p> : null}
      <ul class="list">
        {proposal.reviews.map((review) => (
          <li key={review.actor_id}>
            <ReviewRow review={review} head={proposal.source_head} />
          </li>
        ))}
        {waiting.map((name) => (
          <li key={name} class="item">
            <strong>
              <Plain text={name} />
            </strong>
            <span class="muted">{text.waiting}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function ReviewRow({ review, head }: { review: ReviewOutput; head: string | null }) {
  const tone = review.verdict === "approve" ? "good" : review.verdict === "request_changes" ? "bad" : "";
  return (
    <div class="item review-row">
      <span class="grow stack tight">
        <span class="row wrap">
          <strong>
            <Plain text={review.actor_id} />
          </strong>
          <span class={`badge ${tone}`}>{text.verdicts[review.verdict] ?? review.verdict}</span>
          {review.verdict === "approve" && !review.counts ? <span class="badge">{text.countsNot}</span> : null}
          {head !== null && review.commit !== head ? <span class="badge warn">{text.ofOlder}</span> : null}
        </span>
        {review.text === null ? null : <Markdown text={review.text} />}
      </span>
      <Time at={review.created_at} />
    </div>
  );
}
