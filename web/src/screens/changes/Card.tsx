/** A card of the feed: one commit with its first changes, or a burst of commits with its counts. */
import type { ChangeBlockOutput, ImageChangeOutput } from "../../api/feedTypes";
import { TypeCounts } from "../../commits/TypeCounts";
import { Plain } from "../../kit/Plain";
import { Time } from "../../kit/Time";
import { nodeLabel } from "../../kit/Value";
import { SIGNS } from "../../review/change";
import { href } from "../../state/location";
import { feedText as text } from "../../text/changes";
import { changedProperties, countsOf, type Card } from "./cards";

const SHOWN = 6;

export function FeedCard({ card }: { card: Card }) {
  const newest = card.blocks.at(-1) as ChangeBlockOutput;
  const first = card.blocks[0] as ChangeBlockOutput;
  const counts = countsOf(card.blocks);
  const isBurst = card.blocks.length > 1;
  const { cause } = newest;
  const parent = first.cause.parent_commit_id;
  return (
    <article class="card feed-card">
      <header>
        <strong class="cut grow">
          {isBurst ? text.burst(card.blocks.length, new Set(card.blocks.map((block) => block.cause.actor_id)).size) : cause.message === null ? <code>{cause.graph_commit_id.slice(-6)}</code> : <Plain text={cause.message} />}
        </strong>
        {card.blocks.some((block) => block.cause.schema_changed) ? <span class="badge warn">{text.schema}</span> : null}
        {isBurst ? null : (
          <span class="muted cut">
            <Plain text={cause.actor_id ?? text.unknownActor} />
          </span>
        )}
        <Time at={cause.authored_at} />
        <a href={href({ screen: "history", path: [], params: { commit: cause.graph_commit_id } })}>
          <code>{cause.graph_commit_id.slice(-6)}</code>
        </a>
      </header>
      <div class="body stack tight">
        {Object.keys(counts).length === 0 ? <span class="muted">{text.noRows}</span> : null}
        {isBurst || newest.changes.length > SHOWN ? <TypeCounts of={counts} label={text.title} /> : null}
        {isBurst ? null : <FirstChanges changes={newest.changes} />}
        {parent === null ? null : (
          <a class="small" href={href({ screen: "diff", path: [], params: { from: `@${parent}`, to: `@${cause.graph_commit_id}` } })}>
            {text.show}
          </a>
        )}
      </div>
    </article>
  );
}

function FirstChanges({ changes }: { changes: readonly ImageChangeOutput[] }) {
  if (changes.length === 0) return null;
  return (
    <ul class="feed-changes">
      {changes.slice(0, SHOWN).map((change) => (
        <li key={`${change.kind} ${change.type.name} ${change.id}`}>
          <span class={`sign ${change.op}`} aria-hidden="true">
            {SIGNS[change.op]}
          </span>
          <span class="visually-hidden">{text.ops[change.op]}</span>
          <span class="muted cut">{change.type.name}</span>
          <a class="cut" href={href({ screen: "entity", path: [change.type.name, change.id], params: {} })}>
            <Plain text={nodeLabel((change.after ?? change.before)?.properties ?? {}, change.id)} />
          </a>
          <span class="muted cut">{changedProperties(change).join(", ")}</span>
        </li>
      ))}
      {changes.length > SHOWN ? <li class="muted">{text.more(changes.length - SHOWN)}</li> : null}
    </ul>
  );
}
