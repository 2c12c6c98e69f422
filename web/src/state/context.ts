/** What every screen shares: the source, the settings, the place of the current link, and the caller. */
import { computed, effect, signal } from "@preact/signals";

import { problemOf, type Problem } from "../api/problem";
import type { ExplorerConfigOutput, MeOutput } from "../api/types";
import type { Place, Source } from "../source/source";
import { link } from "./location";
import { token } from "./session";

export let source: Source;
export let config: ExplorerConfigOutput;

/** The ref of the current link, resolved once per screen; null until then. */
export const place = signal<Place | null>(null);
export const placeProblem = signal<Problem | null>(null);
export const me = signal<MeOutput | null>(null);
/** Changes when something was written, so that the ref is resolved again. */
export const written = signal(0);

const wanted = computed(() => JSON.stringify([link.value.graph, link.value.ref, link.value.screen, written.value]));

export function setConfig(settings: ExplorerConfigOutput): void {
  config = settings;
}

export function startContext(given: Source): void {
  source = given;
  effect(() => {
    void wanted.value;
    const abort = new AbortController();
    void resolvePlace(abort.signal);
    return () => abort.abort();
  });
  effect(() => {
    void token.value;
    source.me().then((answer) => (me.value = answer), () => (me.value = null));
  });
}

async function resolvePlace(signal: AbortSignal): Promise<void> {
  const { graph, ref } = link.peek();
  const known = place.peek();
  if (known !== null && (known.graph !== graph || known.ref !== ref)) place.value = null;
  try {
    const resolved = await source.resolve(graph, ref, signal);
    placeProblem.value = null;
    if (known?.commit !== resolved.commit || place.peek() === null) place.value = resolved;
  } catch (error) {
    const problem = problemOf(error);
    if (problem === null || signal.aborted) return;
    place.value = null;
    placeProblem.value = problem;
  }
}

/** Resolves the ref again, so that a read sees the newest commit of its branch. */
export async function refreshPlace(signal?: AbortSignal): Promise<Place> {
  const { graph, ref } = link.peek();
  const known = place.peek();
  if (known !== null && known.branch === null) return known;
  const resolved = await source.resolve(graph, ref, signal);
  if (known?.commit !== resolved.commit) place.value = resolved;
  return resolved;
}

/** True if the caller may perform an action on the graph or the branch of the link. The server decides; the page explains. */
export function may(action: string): boolean {
  const current = link.value;
  const graph = me.value?.graphs.find((each) => each.graph_id === current.graph);
  const onBranch = graph?.branches.find((each) => each.branch === current.ref)?.actions.includes(action) ?? false;
  return onBranch || (graph?.actions.includes(action) ?? false);
}
