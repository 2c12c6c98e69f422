/** Runs the layout beside the page: takes a graph, posts places every 100 ms and at the end. */
import { Layout, type LayoutRun, type LayoutStep } from "./layout";

const POST_MS = 100;
const scope = self as unknown as { onmessage: ((event: MessageEvent<LayoutRun>) => void) | null; postMessage(message: unknown, transfer: Transferable[]): void };
let current: LayoutRun | null = null;

function post(step: LayoutStep): void {
  scope.postMessage(step, [step.places.buffer]);
}

scope.onmessage = (event) => {
  const given = (current = event.data);
  const layout = new Layout(given);
  const slice = (): void => {
    if (given !== current) return;
    const end = performance.now() + POST_MS;
    while (!layout.isDone && performance.now() < end) layout.tick();
    post({ run: given.run, places: layout.places(), done: layout.isDone });
    if (!layout.isDone) setTimeout(slice, 0);
  };
  slice();
};
