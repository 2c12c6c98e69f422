/** Choices of a merge review, kept for this tab by pair of branches: they survive a reload and a moved head. */
import type { MergeConflictOutput } from "../api/reviewTypes";
import type { Choices } from "../state/choices";

export interface StoredChoices {
  readonly choices: Choices;
  /** The conflicts that the choices were made for. */
  readonly conflicts: readonly MergeConflictOutput[];
}

const EMPTY: StoredChoices = { choices: {}, conflicts: [] };
const keyOf = (graph: string, source: string, target: string): string => `omnigraph.choices.${JSON.stringify([graph, source, target])}`;

export function storedChoices(graph: string, source: string, target: string): StoredChoices {
  try {
    const text = sessionStorage.getItem(keyOf(graph, source, target));
    const found = text === null ? EMPTY : (JSON.parse(text) as StoredChoices);
    return typeof found.choices === "object" && Array.isArray(found.conflicts) ? found : EMPTY;
  } catch {
    return EMPTY;
  }
}

export function storeChoices(graph: string, source: string, target: string, value: StoredChoices): void {
  try {
    if (Object.keys(value.choices).length === 0) sessionStorage.removeItem(keyOf(graph, source, target));
    else sessionStorage.setItem(keyOf(graph, source, target), JSON.stringify(value));
  } catch {
    // A full or forbidden storage loses the choices at a reload, nothing else.
  }
}
