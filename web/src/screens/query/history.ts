/** The queries that were run in this browser, newest first. Nothing of it leaves the browser. */
import { signal } from "@preact/signals";

import { store, stored } from "../../state/prefs";

export interface HistoryEntry {
  readonly graph: string;
  readonly at: number;
  readonly text: string;
  readonly name: string | null;
  readonly values: Readonly<Record<string, string>>;
  readonly rows: number | null;
}

const KEY = "queries";
const ENTRIES_MAX = 200;
const TEXT_MAX = 20_000;

const saved = stored<unknown>(KEY, []);
export const history = signal<readonly HistoryEntry[]>(Array.isArray(saved) ? (saved as HistoryEntry[]) : []);

export function remember(entry: HistoryEntry): void {
  if (entry.text.length > TEXT_MAX) return;
  const same = (other: HistoryEntry) => other.graph === entry.graph && other.text === entry.text && JSON.stringify(other.values) === JSON.stringify(entry.values);
  history.value = [entry, ...history.value.filter((other) => !same(other))].slice(0, ENTRIES_MAX);
  store(KEY, history.value);
}

export function forgetAll(graph: string): void {
  history.value = history.value.filter((entry) => entry.graph !== graph);
  store(KEY, history.value);
}
