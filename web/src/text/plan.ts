/** The words of plans. */
const rows = (n: number): string => `${n.toLocaleString()} ${n === 1 ? "row" : "rows"}`;

export const plan = {
  plan: "Plan",
  warnings: "Warnings of the plan",
  built: (note: string) => `No stored structure: ${note}. Maintenance ▸ Optimize stores it.`,
  misjudged: (op: string, expected: number, actual: number) => `The estimate of ${op} is wrong: ~${Math.round(expected).toLocaleString()} expected, ${rows(actual)}.`,
  step: (n: number) => `Step ${n}`,
  total: (n: number, ms: number) => `${rows(n)} in ${ms.toFixed(2)} ms`,
  columns: { step: "Step", expected: "Expected rows", rows: "Rows", ms: "ms", notes: "Notes" },
  pushed: "inside:",
  pushedHelp: "The condition is applied inside this operation, before rows are made",
} as const;
