/** The part of a text around its first marked place. */
const SNIPPET = 220;

/** Cuts a text around its first place, and splits it at the places. */
export function markedParts(value: string, places: readonly (readonly [number, number])[]): { text: string; marked: boolean }[] {
  const sorted = [...places].sort((a, b) => a[0] - b[0]);
  const first = sorted[0]?.[0] ?? 0;
  const from = first > SNIPPET / 2 ? first - SNIPPET / 4 : 0;
  const to = Math.min(value.length, from + SNIPPET);
  const parts: { text: string; marked: boolean }[] = [];
  let at = from;
  for (const [start, end] of sorted) {
    if (start < at || end > to) continue;
    if (start > at) parts.push({ text: value.slice(at, start), marked: false });
    parts.push({ text: value.slice(start, end), marked: true });
    at = end;
  }
  if (at < to) parts.push({ text: value.slice(at, to), marked: false });
  if (from > 0) parts.unshift({ text: "…", marked: false });
  if (to < value.length) parts.push({ text: "…", marked: false });
  return parts;
}
