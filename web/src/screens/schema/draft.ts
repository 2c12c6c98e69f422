/** The draft of a schema text. It survives a reload of its tab, and is kept for each graph and branch. */
import { effect, signal, type Signal } from "@preact/signals";

const drafts = new Map<string, Signal<string | null>>();

export function draftOf(graph: string, ref: string): Signal<string | null> {
  const key = `omnigraph.schema ${graph} ${ref}`;
  const known = drafts.get(key);
  if (known !== undefined) return known;
  const draft = signal<string | null>(sessionStorage.getItem(key));
  drafts.set(key, draft);
  effect(() => {
    if (draft.value === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, draft.value);
  });
  return draft;
}
