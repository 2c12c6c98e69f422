/** Points of a map: where they are drawn, which one is near, which ones a line encloses, and their groups. Pure. */
import type { CatalogOutput, PropertyOutput } from "../../api/types";

/** Points that are drawn; of more, evenly spaced ones are. */
export const POINTS_MAX = 100_000;
/** Groups with a colour of their own. */
export const GROUPS_MAX = 6;
const STEPS = 5;
const DAY = 10;

export interface Points {
  readonly ids: readonly string[];
  readonly x: Float64Array;
  readonly y: Float64Array;
  /** The number of points before some were left out. */
  readonly total: number;
}

/** Maps coordinates to pixels; the y axis points up. */
export interface View {
  readonly scale: number;
  readonly dx: number;
  readonly dy: number;
}

export const atX = (view: View, x: number): number => x * view.scale + view.dx;
export const atY = (view: View, y: number): number => view.dy - y * view.scale;

/** Reads at most `most` evenly spaced rows of a table of `id`, `x` and `y`. */
export function pointsOf(table: { rowCount: number; cell(column: number, row: number): unknown }, most = POINTS_MAX): Points {
  const shown = Math.min(table.rowCount, most);
  const rows = Array.from({ length: shown }, (_, index) => Math.floor((index * table.rowCount) / shown));
  const column = (index: number) => Float64Array.from(rows, (row) => Number(table.cell(index, row)));
  return { ids: rows.map((row) => String(table.cell(0, row))), x: column(1), y: column(2), total: table.rowCount };
}

/** Returns the view that shows all points inside a frame, with one scale for both axes. */
export function fitting(points: Points, width: number, height: number): View {
  let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let index = 0; index < points.ids.length; index += 1) {
    left = Math.min(left, points.x[index] as number);
    right = Math.max(right, points.x[index] as number);
    low = Math.min(low, points.y[index] as number);
    high = Math.max(high, points.y[index] as number);
  }
  if (left > right) return { scale: 1, dx: width / 2, dy: height / 2 };
  const scale = Math.min((0.9 * width) / (right - left || 1), (0.84 * height) / (high - low || 1));
  return { scale, dx: width / 2 - ((left + right) / 2) * scale, dy: height / 2 + ((low + high) / 2) * scale };
}

/** Returns the view with another scale; the pixel (x, y) stays where it is. */
export function zoomed(view: View, factor: number, x: number, y: number): View {
  return { scale: view.scale * factor, dx: x - (x - view.dx) * factor, dy: y - (y - view.dy) * factor };
}

/** Returns the point nearest to a pixel, or null if none is within `reach` pixels. */
export function nearest(points: Points, view: View, x: number, y: number, reach: number): number | null {
  let found: number | null = null;
  let best = reach * reach;
  for (let index = 0; index < points.ids.length; index += 1) {
    const [across, down] = [atX(view, points.x[index] as number) - x, atY(view, points.y[index] as number) - y];
    const distance = across * across + down * down;
    if (distance <= best) [found, best] = [index, distance];
  }
  return found;
}

/** Returns the points inside a closed line of pixels, by the even-odd rule. */
export function enclosed(points: Points, view: View, line: readonly (readonly [number, number])[]): number[] {
  const found: number[] = [];
  for (let index = 0; index < points.ids.length; index += 1) {
    const [x, y] = [atX(view, points.x[index] as number), atY(view, points.y[index] as number)];
    let inside = false;
    for (let here = 0, before = line.length - 1; here < line.length; before = here, here += 1) {
      const [[ax, ay], [bx, by]] = [line[here] as [number, number], line[before] as [number, number]];
      if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
    }
    if (inside) found.push(index);
  }
  return found;
}

export interface Groups {
  readonly names: readonly string[];
  /** The group of each point. */
  readonly of: Uint8Array;
}

const isOrdered = (property: PropertyOutput): boolean => /^([IUF]\d|Date)/.test(property.type);

/** Returns the properties of a type that can colour its points. */
export function colouring(catalog: CatalogOutput, type: string): readonly PropertyOutput[] {
  const declared = catalog.nodes.find((each) => each.name === type);
  return (declared?.properties ?? []).filter((each) => !declared?.key.includes(each.name) && (isOrdered(each) || /^(enum|Bool|String)/.test(each.type)));
}

/** Groups points by a value: numbers and times by five ranges of equal size, other values by the most frequent ones. */
export function groupsOf(values: readonly (string | null)[], property: PropertyOutput, words: { none: string; others: string }): Groups {
  const ordered = isOrdered(property);
  const known = values.filter((value): value is string => value !== null);
  const numeric = !property.type.startsWith("Date");
  const key = (value: string): number | string => (numeric ? Number(value) : value);
  if (ordered) {
    const sorted = [...known].sort((a, b) => (key(a) < key(b) ? -1 : 1));
    const starts = [...new Set(Array.from({ length: STEPS }, (_, step) => sorted[Math.floor((step * sorted.length) / STEPS)] ?? ""))];
    const word = (value: string) => (numeric ? Number(value).toLocaleString() : value.slice(0, DAY));
    const names = starts.map((start, step) => `${word(start)} – ${word(starts[step + 1] ?? sorted.at(-1) ?? "")}`);
    const of = Uint8Array.from(values, (value) => (value === null ? names.length : starts.findLastIndex((start) => key(start) <= key(value))));
    return { names: known.length < values.length ? [...names, words.none] : names, of };
  }
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value ?? words.none, (counts.get(value ?? words.none) ?? 0) + 1);
  const frequent = [...counts].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  const names = frequent.length > GROUPS_MAX + 1 ? [...frequent.slice(0, GROUPS_MAX), words.others] : frequent;
  const index = new Map(names.map((name, at) => [name, at]));
  return { names, of: Uint8Array.from(values, (value) => index.get(value ?? words.none) ?? names.length - 1) };
}
