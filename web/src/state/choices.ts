/**
 * Choices for the conflicts of a merge. They are exactly the value of `resolve`: an object whose names are `*` (all
 * conflicts), a type, a property of a type, or the id of a conflict. The narrowest choice wins.
 *
 * `outcomeOf` decides a row as the library does, so that the page shows the result before it asks for a preview. Pure.
 */
import type { MergeConflictOutput, Row } from "../api/reviewTypes";

export type Side = "ours" | "theirs";
export type Word = Side | "columns";
/** A word, new values of properties, or null, which deletes the row. */
export type Choice = Word | Row | null;
export type Choices = Readonly<Record<string, Choice>>;

export const ALL = "*";
export const SIDES: readonly Side[] = ["ours", "theirs"];
const ROW_KINDS = new Set(["divergent_insert", "divergent_update", "delete_vs_update"]);

/** Returns the value of `resolve`; null if nothing is chosen. */
export const resolveOf = (choices: Choices): Choices | null => (Object.keys(choices).length === 0 ? null : choices);

export const isRowConflict = (conflict: MergeConflictOutput): boolean => ROW_KINDS.has(conflict.kind);
const typeOf = (conflict: MergeConflictOutput): string => conflict.table_key.slice(conflict.table_key.indexOf(":") + 1);
const isValues = (choice: Choice | undefined): choice is Row => typeof choice === "object" && choice !== null;
const same = (a: unknown, b: unknown): boolean => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);

export function choose(choices: Choices, name: string, choice: Choice): Choices {
  return { ...choices, [name]: choice };
}

export function undo(choices: Choices, name: string): Choices {
  const { [name]: _, ...rest } = choices;
  return rest;
}

/** Chooses the value of one property of a row; other chosen values of the row stay. */
export function chooseValue(choices: Choices, id: string, property: string, value: unknown): Choices {
  const known = choices[id];
  return choose(choices, id, { ...(isValues(known) ? known : {}), [property]: value });
}

/** Takes back the value of one property of a row. */
export function undoValue(choices: Choices, id: string, property: string): Choices {
  const known = choices[id];
  if (!isValues(known)) return choices;
  const { [property]: _, ...rest } = known;
  return Object.keys(rest).length === 0 ? undo(choices, id) : choose(choices, id, rest);
}

export interface Outcome {
  readonly settled: boolean;
  /** The choice that decides: that of the row, of properties, of the type, or of all; null if none does. */
  readonly by: "row" | "property" | "type" | "all" | null;
  /** The row that the choices give; null if it is deleted, undefined if it is not decided. */
  readonly row: Row | null | undefined;
  /** Properties without a decision. */
  readonly left: readonly string[];
}

const OPEN: Outcome = { settled: false, by: null, row: undefined, left: [] };

/** Decides the row of a conflict of both sides by the choices. */
export function outcomeOf(conflict: MergeConflictOutput, choices: Choices): Outcome {
  const { id, base, ours, theirs } = conflict;
  const type = typeOf(conflict);
  const sides = sidesOf(choices, type);
  const both = ours !== null && theirs !== null;
  if (Object.hasOwn(choices, id)) {
    const own = choices[id] as Choice;
    if (own === null) return { settled: true, by: "row", row: null, left: [] };
    if (isValues(own)) return combined(conflict, {}, own, null, "row");
    if (own === "columns" && both && base !== null) return combined(conflict, {}, {}, own, "row");
    return own === "columns" ? { ...OPEN, left: conflict.properties } : { settled: true, by: "row", row: conflict[own], left: [] };
  }
  const by = Object.hasOwn(choices, type) ? "type" : Object.hasOwn(choices, ALL) ? "all" : null;
  const word = (choices[type] ?? choices[ALL] ?? null) as Word | null;
  if (both && Object.keys(sides).length > 0) return combined(conflict, sides, {}, word, by ?? "property");
  if (both && base !== null && word === "columns") return combined(conflict, {}, {}, word, by);
  if (word === "ours" || word === "theirs") return { settled: true, by, row: conflict[word], left: [] };
  return { ...OPEN, left: conflict.properties };
}

/** Returns the chosen sides of the properties of a type. */
function sidesOf(choices: Choices, type: string): Record<string, Side> {
  const sides: Record<string, Side> = {};
  for (const [name, choice] of Object.entries(choices)) {
    if (name.startsWith(`${type}.`) && !name.includes(":") && (choice === "ours" || choice === "theirs")) sides[name.slice(type.length + 1)] = choice;
  }
  return sides;
}

function combined(conflict: MergeConflictOutput, sides: Readonly<Record<string, Side>>, values: Row, word: Word | null, by: Outcome["by"]): Outcome {
  const { base, ours, theirs } = conflict;
  if (ours === null || theirs === null) return { settled: true, by, row: { ...(ours ?? theirs ?? {}), ...values }, left: [] };
  const row: Record<string, unknown> = {};
  const left: string[] = [];
  for (const name of new Set([...Object.keys(base ?? {}), ...Object.keys(ours), ...Object.keys(theirs)])) {
    const [b, x, y] = [base?.[name], ours[name], theirs[name]];
    const side = sides[name] ?? word;
    if (Object.hasOwn(values, name)) row[name] = values[name];
    else if (same(x, y) || same(y, b)) row[name] = x;
    else if (same(x, b)) row[name] = y;
    else if (side === "ours" || side === "theirs") row[name] = side === "ours" ? x : y;
    else left.push(name);
  }
  const decided = Object.keys(sides).some((name) => conflict.properties.includes(name)) || Object.keys(values).length > 0 || word !== null;
  return { settled: left.length === 0, by: decided ? by : null, row: left.length === 0 ? row : undefined, left };
}

/** Returns the properties that are no conflict: only one side changed them, or none did. */
export function agreedProperties(conflict: MergeConflictOutput): string[] {
  const names = new Set([...Object.keys(conflict.base ?? {}), ...Object.keys(conflict.ours ?? {}), ...Object.keys(conflict.theirs ?? {})]);
  return [...names].filter((name) => name !== "id" && !contested(conflict).includes(name));
}

/** Returns the properties that both sides changed to different values; all changed ones if a side deleted the row. */
export function contested(conflict: MergeConflictOutput): string[] {
  const { base, ours, theirs, properties } = conflict;
  if (ours === null || theirs === null || base === null) return [...properties];
  return properties.filter((name) => !same(ours[name], base[name]) && !same(theirs[name], base[name]));
}

/** True if the sides changed different properties, so that combining settles the row. */
export const canCombine = (conflict: MergeConflictOutput): boolean =>
  conflict.base !== null && conflict.ours !== null && conflict.theirs !== null && contested(conflict).length === 0;

/** Returns a text that is equal for equal conflicts. */
export const fingerprint = ({ kind, message, base, ours, theirs }: MergeConflictOutput): string => JSON.stringify([kind, message, base, ours, theirs]);

export interface KeptChoices {
  readonly choices: Choices;
  /** Choices about violations, which are reported only after the conflicts of rows are settled. */
  readonly unverified: readonly string[];
  readonly dropped: number;
}

/**
 * Keeps the choices whose conflict is still the same; `before` are the conflicts that they were made for.
 *
 * General choices stay, since they name no conflict.
 */
export function keepChoices(choices: Choices, before: readonly MergeConflictOutput[], now: readonly MergeConflictOutput[]): KeptChoices {
  const prints = (conflicts: readonly MergeConflictOutput[]) => new Map(conflicts.filter(isRowConflict).map((conflict) => [conflict.id, fingerprint(conflict)]));
  const [old, current] = [prints(before), prints(now)];
  const kept: Record<string, Choice> = {};
  const unverified: string[] = [];
  let dropped = 0;
  for (const [name, choice] of Object.entries(choices)) {
    const general = !name.includes(":");
    if (!general && !old.has(name) && !current.has(name)) unverified.push(name);
    if (general || !(old.has(name) || current.has(name)) || (current.has(name) && current.get(name) === old.get(name))) kept[name] = choice;
    else dropped += 1;
  }
  return { choices: kept, unverified, dropped };
}
