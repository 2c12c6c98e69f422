/** The number of open proposals, for the navigation. */
import { effect, signal } from "@preact/signals";

import { source, written } from "./context";
import { link } from "./location";

const COUNTED_MAX = 100;

/** The number of open proposals of the current graph; null if it is not known. */
export const openProposals = signal<number | null>(null);
/** Changes when an event of a proposal was received or caused. */
export const proposalsChanged = signal(0);

/** Follows the current graph; returns the function that stops it. */
export function countProposals(): () => void {
  let graph = "";
  return effect(() => {
    void proposalsChanged.value;
    void written.value;
    if (graph !== link.value.graph) openProposals.value = null;
    graph = link.value.graph;
    const abort = new AbortController();
    source.ask<{ proposals: unknown[] }>(graph, "proposals", { params: { limit: COUNTED_MAX }, signal: abort.signal }).then(
      ({ proposals }) => (openProposals.value = proposals.length),
      () => undefined,
    );
    return () => abort.abort();
  });
}

export const countText = (count: number): string => (count >= COUNTED_MAX ? `${COUNTED_MAX}+` : String(count));
