/** Facts of a plan: its lines, and what a reader should look at first. */
import type { PlanNodeOutput } from "../api/types";

const ERROR_MIN = 10;
const ROWS_MIN = 100;

export interface PlanLine {
  readonly node: PlanNodeOutput;
  readonly depth: number;
  /** The part of the text before the condition. */
  readonly text: string;
  /** The condition that is applied inside the operation. */
  readonly condition: string | null;
}

export interface PlanWarning {
  readonly line: number;
  readonly kind: "built" | "estimate";
  readonly what: string;
  readonly expected?: number;
  readonly rows?: number;
}

export function planLines(node: PlanNodeOutput, depth = 0): PlanLine[] {
  const at = /^(scan|expand|walk)$/.test(node.op) ? node.text.indexOf(" where ") : -1;
  const line: PlanLine = { node, depth, text: at < 0 ? node.text : node.text.slice(0, at), condition: at < 0 ? null : node.text.slice(at + 7) };
  return [line, ...node.children.flatMap((child) => planLines(child, depth + 1))];
}

/** Structures that had to be built for this run, and estimates that are wrong by a factor of ten. */
export function planWarnings(lines: readonly PlanLine[]): PlanWarning[] {
  return lines.flatMap(({ node }, line) => {
    const found: PlanWarning[] = [];
    for (const note of node.notes) {
      if (/\b(built|computed|scanned) from [\d,]+ rows|\bno index\b/.test(note)) found.push({ line, kind: "built", what: note });
    }
    const { expected, rows } = node;
    if (expected !== undefined && rows !== undefined && Math.max(expected, rows) >= ROWS_MIN) {
      const error = Math.max(expected, 1) / Math.max(rows, 1);
      if (error >= ERROR_MIN || error <= 1 / ERROR_MIN) found.push({ line, kind: "estimate", what: node.op, expected, rows });
    }
    return found;
  });
}
