/** Where a layout runs: beside the page in a worker, or on its thread in short slices where there is no worker file. */
import { Layout, type LayoutGraph } from "./layout";
import type { Places } from "./scene";

/** Receives the places of a run after each step; the last one is settled. */
export type OnPlaces = (places: Places, settled: boolean) => void;

export interface LayoutRunner {
  /** Starts a layout; a run that is under way ends. */
  run(graph: LayoutGraph, onPlaces: OnPlaces): void;
  stop(): void;
}

const SLICE_MS = 8;
const POST_MS = 100;
/** The most nodes that are laid out on the thread of the page; larger pictures keep their start. */
export const SLICED_MAX = 2000;

/** Runs layouts on the thread of the page in slices of 8 ms, for notebooks and saved files. */
export function slicedLayout(): LayoutRunner {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = () => clearTimeout(timer);
  return {
    stop,
    run(graph, onPlaces) {
      stop();
      const layout = new Layout(graph);
      let posted = performance.now();
      const slice = (): void => {
        const end = performance.now() + SLICE_MS;
        while (graph.count <= SLICED_MAX && !layout.isDone && performance.now() < end) layout.tick();
        const done = layout.isDone || graph.count > SLICED_MAX;
        if (done || performance.now() - posted >= POST_MS) {
          posted = performance.now();
          onPlaces(layout.places(), done);
        }
        if (!done) timer = setTimeout(slice, 0);
      };
      timer = setTimeout(slice, 0);
    },
  };
}
