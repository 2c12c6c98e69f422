/** Beside the conflicts: what the merge changes, the settled rows of the preview, and the message. */
import type { MergePreviewOutput, SettledRowOutput } from "../../api/reviewTypes";
import { Plain } from "../../kit/Plain";
import { nodeLabel, Value } from "../../kit/Value";
import { Counts } from "../../review/Counts";
import { text } from "../../text/review";
import type { Review } from "./review";

const SETTLED_SHOWN = 20;

interface Props {
  review: Review;
  /** The plan with the current choices; null until they are previewed. */
  plan: MergePreviewOutput | null;
  reason: string | null;
  message: string;
  onMessage(value: string): void;
  deleteBranch: boolean;
  onDeleteBranch(value: boolean): void;
}

export function Plan({ review, plan, reason, message, onMessage, deleteBranch, onDeleteBranch }: Props) {
  const shown = plan ?? review.plan;
  return (
    <div class="stack">
      {review.conflicts.length === 0 && plan?.conflicts.length === 0 ? null : <Settled plan={plan} review={review} />}
      <section class="card">
        <header>
          <h2>{text.merge.tables}</h2>
        </header>
        <ul class="list plan-tables">
          {Object.entries(shown.tables).map(([key, table]) => (
            <li key={key} class="item">
              <span class="grow cut">{key.slice(key.indexOf(":") + 1)}</span>
              <Counts counts={{ insert: table.inserted, update: table.updated, delete: table.deleted }} />
            </li>
          ))}
          {[...shown.dropped_tables, ...shown.schema_steps].map((step, index) => (
            <li key={`step ${index}`} class="item">
              <Plain text={step} />
            </li>
          ))}
        </ul>
      </section>
      <section class="card">
        <div class="body stack tight">
          <label class="field">
            <span class="label">{text.merge.message}</span>
            <input class="input" value={message} maxLength={2000} onInput={(event) => onMessage(event.currentTarget.value)} />
          </label>
          <label class="tick">
            <input type="checkbox" checked={deleteBranch} onChange={(event) => onDeleteBranch(event.currentTarget.checked)} />
            <Plain text={text.merge.deleteBranch(review.pair.source)} />
          </label>
          {reason === null ? null : (
            <p class="muted small">
              <Plain text={reason} />
            </p>
          )}
          <p class="muted small">
            {text.merge.reviewed}{" "}
            <code>
              <Plain text={review.pair.source} />@{review.theirs.commit.slice(-6)}
            </code>{" "}
            → <code>
              <Plain text={review.pair.target} />@{review.ours.commit.slice(-6)}
            </code>
          </p>
        </div>
      </section>
    </div>
  );
}

function Settled({ plan, review }: { plan: MergePreviewOutput | null; review: Review }) {
  const rows = plan?.settled ?? [];
  return (
    <section class="card settled" aria-live="polite">
      <header>
        <h2>{text.merge.settledRows}</h2>
        {plan === null || (rows.length === 0 && plan === review.plan) ? null : <span class={plan.conflicts.length === 0 ? "badge good" : "badge warn"}>{text.merge.left(plan.conflicts.length)}</span>}
      </header>
      {rows.length === 0 ? (
        <p class="muted body">{text.merge.settledNone}</p>
      ) : (
        <ul class="list">
          {rows.slice(0, SETTLED_SHOWN).map((row) => (
            <li key={row.id} class="settled-row">
              <SettledRow row={row} review={review} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function SettledRow({ row, review }: { row: SettledRowOutput; review: Review }) {
  const conflict = review.conflicts.find((each) => each.id === row.id);
  const names = conflict === undefined || conflict.properties.length === 0 ? Object.keys(row.row ?? {}).filter((name) => name !== "id").slice(0, 4) : conflict.properties;
  return (
    <>
      <strong>
        <Plain text={nodeLabel(row.row ?? {}, row.row_id)} />
      </strong>{" "}
      <span class="muted">{row.table_key.slice(row.table_key.indexOf(":") + 1)}</span>
      {row.row === null ? (
        <span class="badge bad">{text.conflict.deleted}</span>
      ) : (
        <dl class="changed-properties">
          {names.map((name) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                <Value value={row.row?.[name]} />
              </dd>
            </div>
          ))}
        </dl>
      )}
    </>
  );
}
