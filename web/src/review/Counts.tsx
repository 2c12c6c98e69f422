/** Numbers of changes by operation, with their signs. */
import type { OpCountOutput } from "../api/reviewTypes";
import { text } from "../text/review";
import { OPS, SIGNS, sumOf } from "./change";

const BLOCKS = 5;

export function Counts({ counts }: { counts: OpCountOutput }) {
  return (
    <span class="op-counts number">
      {OPS.filter((op) => counts[op] > 0).map((op) => (
        <span class={`op ${op}`} key={op} title={`${counts[op].toLocaleString()} ${text.opNames[op]}`}>
          <span aria-hidden="true">{SIGNS[op]}</span>
          <span class="visually-hidden">{text.opNames[op]} </span>
          {counts[op].toLocaleString()}
        </span>
      ))}
    </span>
  );
}

/** The shares of the operations as five blocks. */
export function CountBlocks({ counts }: { counts: OpCountOutput }) {
  const total = sumOf(counts);
  if (total === 0) return null;
  const blocks: string[] = [];
  for (const op of OPS) {
    const share = counts[op] === 0 ? 0 : Math.max(1, Math.round((counts[op] / total) * BLOCKS));
    for (let block = 0; block < share && blocks.length < BLOCKS; block += 1) blocks.push(op);
  }
  return (
    <span class="count-blocks" aria-hidden="true">
      {blocks.map((op, index) => (
        <span class={op} key={index} />
      ))}
    </span>
  );
}
