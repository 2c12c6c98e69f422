/**
 * Samples of the state of the server. The page keeps those of the last hour: the server keeps none. Sampling starts with
 * the first visit of the screen and ends with the tab, so that a return to the screen shows the time between.
 */
import { signal } from "@preact/signals";

import type { ServerStatusOutput } from "../../api/adminTypes";
import { problemOf, type Problem } from "../../api/problem";
import { source } from "../../state/context";

const EVERY_MS = 5000;
const KEPT = 720;

export interface Sample {
  readonly at: number;
  readonly requests: number;
  readonly waiting: number;
  readonly connections: number;
  readonly memory: number;
  readonly rejected: number;
  /** Hits and misses of all caches. */
  readonly hits: number;
  readonly misses: number;
  /** Answered requests and those with status 5xx, from the metrics; null if there are none. */
  readonly answered: number | null;
  readonly failed: number | null;
}

export const status = signal<ServerStatusOutput | null>(null);
export const statusProblem = signal<Problem | null>(null);
export const samples = signal<readonly Sample[]>([]);

let timer: ReturnType<typeof setInterval> | null = null;
let metered = true;

export function startSampling(): void {
  if (timer !== null) return;
  timer = setInterval(() => void sample(), EVERY_MS);
  void sample();
}

async function sample(): Promise<void> {
  if (document.hidden && samples.peek().length > 0) return;
  try {
    const now = await source.admin.status();
    const text = metered ? await source.admin.metrics() : null;
    metered = text !== null;
    status.value = now;
    statusProblem.value = null;
    samples.value = [...samples.value.slice(1 - KEPT), sampleOf(now, text)];
  } catch (error) {
    statusProblem.value = problemOf(error);
    if (timer !== null) clearInterval(timer);
    timer = null;
  }
}

/** Returns the figures of one moment. */
export function sampleOf(now: ServerStatusOutput, metrics: string | null): Sample {
  const caches = now.graphs.flatMap((graph) => graph.caches ?? []);
  const sum = (numbers: readonly number[]) => numbers.reduce((all, each) => all + each, 0);
  return {
    at: Date.now(),
    requests: sum(now.lanes.map((lane) => lane.running)),
    waiting: sum(now.lanes.map((lane) => lane.queued)),
    connections: now.connections,
    memory: now.memory.used_bytes,
    rejected: sum(Object.values(now.rejected)),
    hits: sum(caches.map((cache) => cache.hits)),
    misses: sum(caches.map((cache) => cache.misses)),
    answered: metrics === null ? null : total(metrics, "omnigraph_http_requests_total", () => true),
    failed: metrics === null ? null : total(metrics, "omnigraph_http_requests_total", (labels) => /status="5/.test(labels)),
  };
}

/** Returns the sum of a counter over all labels that a condition accepts. */
export function total(metrics: string, name: string, accepts: (labels: string) => boolean): number {
  let sum = 0;
  for (const line of metrics.split("\n")) {
    if (!line.startsWith(name)) continue;
    const end = line.lastIndexOf(" ");
    const value = Number(line.slice(end + 1));
    if (Number.isFinite(value) && accepts(line.slice(name.length, end))) sum += value;
  }
  return sum;
}

/** Returns what a counter grew by per second between samples; a restart of the server counts as 0. */
export function ratesOf(all: readonly Sample[], read: (sample: Sample) => number | null): number[] {
  return all.slice(1).flatMap((sample, at) => {
    const before = all[at];
    const [now, then] = [read(sample), before === undefined ? null : read(before)];
    if (now === null || then === null || before === undefined) return [];
    return [Math.max(0, now - then) / Math.max(0.001, (sample.at - before.at) / 1000)];
  });
}
