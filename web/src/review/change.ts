/** Facts about changed rows. Pure. */
import type { ChangeOp, OpCountOutput, Row, RowChangeOutput } from "../api/reviewTypes";
import type { CatalogOutput } from "../api/types";

export const OPS: readonly ChangeOp[] = ["insert", "update", "delete"];
/** Colour never carries an operation alone. */
export const SIGNS: Readonly<Record<ChangeOp, string>> = { insert: "+", update: "~", delete: "−" };
const HIDDEN = new Set(["id", "src", "dst"]);

/** Returns the key of a row in links, selections and choices: `node:Type:id`. */
export const rowKey = (change: Pick<RowChangeOutput, "table_key" | "id">): string => `${change.table_key}:${change.id}`;
export const nodeKey = (type: string, id: string): string => `node:${type}:${id}`;

export interface RowName {
  readonly kind: "node" | "edge";
  readonly type: string;
  readonly id: string;
}

/** Reads a key; null if it is none. */
export function readKey(key: string): RowName | null {
  const match = /^(node|edge):([^:]+):([^]*)$/.exec(key);
  return match === null ? null : { kind: match[1] as "node" | "edge", type: match[2] as string, id: match[3] as string };
}

export interface ChangedProperty {
  readonly name: string;
  readonly before: unknown;
  readonly after: unknown;
}

const text = (value: unknown): string => JSON.stringify(value ?? null);

/** Returns the properties that a change concerns: the differing ones of an update, those with a value otherwise. */
export function changedProperties(change: RowChangeOutput): ChangedProperty[] {
  const { before, after } = change;
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  // The ends of an edge are in its title, unless they change.
  const moved = before !== null && after !== null && (before["src"] !== after["src"] || before["dst"] !== after["dst"]);
  return names
    .filter((name) => !HIDDEN.has(name) || (moved && name !== "id"))
    .map((name) => ({ name, before: before?.[name] ?? null, after: after?.[name] ?? null }))
    .filter((each) => text(each.before) !== text(each.after));
}

export const isVector = (value: unknown): value is readonly number[] =>
  Array.isArray(value) && value.length > 3 && value.every((each) => typeof each === "number");

/** Returns the cosine distance of two vectors; null if they cannot be compared. */
export function cosineDistance(a: readonly number[], b: readonly number[]): number | null {
  if (a.length !== b.length) return null;
  let [dot, left, right] = [0, 0, 0];
  for (let index = 0; index < a.length; index += 1) {
    const [x, y] = [a[index] as number, b[index] as number];
    dot += x * y;
    left += x * x;
    right += y * y;
  }
  return left === 0 || right === 0 ? null : 1 - dot / Math.sqrt(left * right);
}

export interface RowFilter {
  readonly property: string;
  readonly find: string;
  /** Keys of rows to keep; null for all. */
  readonly touched: ReadonlySet<string> | null;
  /** Keys of deleted nodes whose deleted edges are left out; null keeps them. */
  readonly withoutEdgesOf: ReadonlySet<string> | null;
  readonly catalog: CatalogOutput | undefined;
}

/** True if a filter keeps a change. Text is found in names and in changed values, in any case. */
export function matches(change: RowChangeOutput, filter: RowFilter): boolean {
  if (filter.touched !== null && !filter.touched.has(rowKey(change))) return false;
  if (filter.withoutEdgesOf !== null && endsOf(change, filter.catalog).some((end) => change.op === "delete" && filter.withoutEdgesOf?.has(end))) return false;
  if (filter.property === "" && filter.find === "") return true;
  const changed = changedProperties(change);
  if (filter.property !== "" && !changed.some((each) => each.name === filter.property)) return false;
  if (filter.find === "") return true;
  const wanted = filter.find.toLowerCase();
  const row: Row = change.after ?? change.before ?? {};
  const texts = [change.type_name, change.id, row["name"], row["title"], row["src"], row["dst"], ...changed.flatMap((each) => [each.name, each.before, each.after])];
  return texts.some((each) => !isVector(each) && each !== null && each !== undefined && (typeof each === "string" ? each : text(each)).toLowerCase().includes(wanted));
}

/** Returns the keys of the nodes that an edge connects; none for a node. */
export function endsOf(change: RowChangeOutput, catalog: CatalogOutput | undefined): readonly string[] {
  const type = change.kind === "edge" ? catalog?.edges.find((each) => each.name === change.type_name) : undefined;
  const { src, dst } = change.endpoints ?? { src: null, dst: null };
  if (type === undefined || src === null || dst === null) return [];
  return [nodeKey(type.from ?? "", src), nodeKey(type.to ?? "", dst)];
}

/** Returns the sum of the counts of some tables. */
export function totalOf(tables: Readonly<Record<string, OpCountOutput>>): OpCountOutput {
  const total = { insert: 0, update: 0, delete: 0 };
  for (const counts of Object.values(tables)) for (const op of OPS) total[op] += counts[op];
  return total;
}

export const sumOf = (counts: OpCountOutput): number => counts.insert + counts.update + counts.delete;
