/** Commits of the feed as cards: parts of one commit are joined, and bursts are folded. Pure. */
import type { ChangeBlockOutput, ImageChangeOutput } from "../../api/feedTypes";
import type { OpCountOutput } from "../../api/reviewTypes";

/** More commits than this in one second are one card. */
export const BURST = 20;
export const KEPT = 500;
const SECOND_US = 1_000_000;

/** Commits that share a card, oldest first. */
export interface Card {
  readonly blocks: readonly ChangeBlockOutput[];
}

/** Adds blocks of the feed, oldest first. Parts of one commit become one block; the oldest commits are dropped. */
export function addBlocks(known: readonly ChangeBlockOutput[], added: readonly ChangeBlockOutput[]): readonly ChangeBlockOutput[] {
  const blocks = [...known];
  for (const block of added) {
    const last = blocks.at(-1);
    if (last?.cause.graph_commit_id === block.cause.graph_commit_id) blocks[blocks.length - 1] = { cause: last.cause, changes: [...last.changes, ...block.changes] };
    else blocks.push(block);
  }
  return blocks.slice(-KEPT);
}

/** Returns the cards of commits, newest first. Seconds with too many commits, and neighbours of such seconds, are one card. */
export function cardsOf(blocks: readonly ChangeBlockOutput[]): readonly Card[] {
  const cards: Card[] = [];
  let burst: ChangeBlockOutput[] | null = null;
  for (let at = 0; at < blocks.length; ) {
    const second = secondFrom(blocks, at);
    if (second.length > BURST) {
      burst = [...(burst ?? []), ...second];
      cards.splice(burst.length === second.length ? cards.length : cards.length - 1, 1, { blocks: burst });
      at += second.length;
    } else {
      burst = null;
      cards.push({ blocks: [blocks[at] as ChangeBlockOutput] });
      at += 1;
    }
  }
  return cards.reverse();
}

function secondFrom(blocks: readonly ChangeBlockOutput[], at: number): readonly ChangeBlockOutput[] {
  const end = (blocks[at]?.cause.authored_at ?? 0) + SECOND_US;
  let to = at;
  while (to < blocks.length && (blocks[to]?.cause.authored_at ?? end) < end) to += 1;
  return blocks.slice(at, Math.max(to, at + 1));
}

/** Returns the numbers of changes by table. */
export function countsOf(blocks: readonly ChangeBlockOutput[]): Record<string, OpCountOutput> {
  const counts: Record<string, OpCountOutput> = {};
  for (const change of blocks.flatMap((block) => block.changes)) {
    const count = (counts[`${change.kind}:${change.type.name}`] ??= { insert: 0, update: 0, delete: 0 });
    count[change.op] += 1;
  }
  return counts;
}

/** Returns the names of the properties that an update changed. */
export function changedProperties(change: ImageChangeOutput): readonly string[] {
  if (change.op !== "update") return [];
  const before = change.before?.properties ?? {};
  const after = change.after?.properties ?? {};
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
}
