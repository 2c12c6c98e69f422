/**
 * The types of a schema with the differences to another one. Declarations are matched by the number that a rename
 * keeps, else by name. The module is pure.
 */
import type { CatalogOutput, PropertyOutput, TypeOutput } from "../../api/types";

export type Kind = "node" | "edge" | "interface";
export type Mark = "same" | "added" | "removed" | "renamed" | "changed";

export interface ComparedProperty {
  readonly property: PropertyOutput;
  readonly mark: Mark;
  /** The name or type before the change. */
  readonly before: string | null;
}

export interface ComparedType {
  readonly kind: Kind;
  readonly type: TypeOutput;
  readonly mark: Mark;
  /** The name before a rename. */
  readonly before: string | null;
  readonly properties: readonly ComparedProperty[];
  /** Constraints, ends and interfaces that were added or removed, as lines such as `− @unique(src, dst)`. */
  readonly notes: readonly string[];
}

const KINDS: readonly [Kind, "nodes" | "edges" | "interfaces"][] = [
  ["node", "nodes"],
  ["edge", "edges"],
  ["interface", "interfaces"],
];

/** Returns the types of a catalog; with another one, the types of both with their differences. */
export function compareCatalogs(after: CatalogOutput, before: CatalogOutput | null): ComparedType[] {
  return KINDS.flatMap(([kind, list]) =>
    before === null ? after[list].map((type) => unchanged(kind, type)) : compareTypes(kind, before[list], after[list]),
  );
}

const unchanged = (kind: Kind, type: TypeOutput, mark: Mark = "same"): ComparedType => ({
  kind,
  type,
  mark,
  before: null,
  properties: type.properties.map((property) => ({ property, mark, before: null })),
  notes: [],
});

interface Declared {
  readonly name: string;
  readonly number?: number;
}

/** Pairs declarations by number, and by name where a number is missing on one side. */
function pairs<T extends Declared>(before: readonly T[], after: readonly T[]): { both: [T, T][]; added: T[]; removed: T[] } {
  const left = new Set(before);
  const both: [T, T][] = [];
  const added: T[] = [];
  for (const each of after) {
    const same = [...left].find((old) => (old.number !== undefined && each.number !== undefined ? old.number === each.number : old.name === each.name));
    if (same === undefined) added.push(each);
    else {
      left.delete(same);
      both.push([same, each]);
    }
  }
  return { both, added, removed: [...left] };
}

function compareTypes(kind: Kind, before: readonly TypeOutput[], after: readonly TypeOutput[]): ComparedType[] {
  const found = pairs(before, after);
  return [
    ...found.both.map(([old, type]) => compareType(kind, old, type)),
    ...found.added.map((type) => unchanged(kind, type, "added")),
    ...found.removed.map((type) => unchanged(kind, type, "removed")),
  ].sort((a, b) => (a.type.name < b.type.name ? -1 : a.type.name > b.type.name ? 1 : 0));
}

function compareType(kind: Kind, old: TypeOutput, type: TypeOutput): ComparedType {
  const found = pairs(old.properties, type.properties);
  const names = new Map(found.both.map(([a, b]) => [a.name, b.name]));
  const properties: ComparedProperty[] = [
    ...found.both.map(([a, b]) => compareProperty(a, b)),
    ...found.added.map((property) => ({ property, mark: "added" as const, before: null })),
    ...found.removed.map((property) => ({ property, mark: "removed" as const, before: null })),
  ];
  const notes = compareLines(linesOf(old, names), linesOf(type, new Map()));
  const touched = notes.length > 0 || properties.some((each) => each.mark !== "same") || old.description !== type.description;
  const mark = old.name !== type.name ? "renamed" : touched ? "changed" : "same";
  return { kind, type, mark, before: old.name === type.name ? null : old.name, properties, notes };
}

function compareProperty(old: PropertyOutput, property: PropertyOutput): ComparedProperty {
  if (old.name !== property.name) return { property, mark: "renamed", before: old.name };
  if (old.type !== property.type) return { property, mark: "changed", before: old.type };
  return { property, mark: old.description === property.description ? "same" : "changed", before: null };
}

/** The declarations of a type beside its properties, with properties by their newest names. */
function linesOf(type: TypeOutput, names: ReadonlyMap<string, string>): string[] {
  const renamed = (text: string) => text.replace(/\w+/g, (word) => names.get(word) ?? word);
  return [
    ...type.constraints.map((each) => (each.columns.some((column) => names.has(column)) ? renamed(each.text) : each.text)),
    ...(type.implements ?? []).map((name) => `implements ${name}`),
    ...(type.cardinality === undefined ? [] : [`@card(${type.cardinality})`]),
  ];
}

const compareLines = (before: readonly string[], after: readonly string[]): string[] => [
  ...after.filter((line) => !before.includes(line)).map((line) => `+ ${line}`),
  ...before.filter((line) => !after.includes(line)).map((line) => `− ${line}`),
];

/** The number of types with differences, by mark. */
export function countMarks(types: readonly ComparedType[]): Readonly<Record<Mark, number>> {
  const counts: Record<Mark, number> = { same: 0, added: 0, removed: 0, renamed: 0, changed: 0 };
  for (const each of types) counts[each.mark] += 1;
  return counts;
}
