/** Runs layouts in a worker. The page has one Trusted Types policy, which accepts exactly the address of the worker. */
import type { LayoutStep } from "./layout";
import type { LayoutRunner } from "./runner";

const FILE = "layout.worker.js";

interface Policy {
  createScriptURL(url: string): string;
}
interface Factory {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): Policy;
}

let policy: Policy | undefined;

function workerAddress(): string {
  const factory = (globalThis as { trustedTypes?: Factory }).trustedTypes;
  policy ??= factory?.createPolicy("og", {
    createScriptURL(url) {
      if (url !== FILE) throw new TypeError("not a script of this page");
      return url;
    },
  });
  return policy?.createScriptURL(FILE) ?? FILE;
}

export function workerLayout(): LayoutRunner {
  let worker: Worker | null = null;
  let runs = 0;
  return {
    run(graph, onPlaces) {
      const run = (runs += 1);
      worker ??= new Worker(workerAddress());
      worker.onmessage = (event: MessageEvent<LayoutStep>) => {
        // A step of an earlier run may still arrive.
        if (event.data.run === run) onPlaces(event.data.places, event.data.done);
      };
      worker.postMessage({ ...graph, run });
    },
    stop: () => worker?.terminate(),
  };
}
