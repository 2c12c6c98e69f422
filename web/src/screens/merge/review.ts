/** What a merge review reads: the heads of both branches, the plan of the merge, and the choices kept from before. */
import { problemOf } from "../../api/problem";
import type { MergeConflictOutput, MergePreviewOutput } from "../../api/reviewTypes";
import type { CatalogOutput } from "../../api/types";
import { storedChoices } from "../../review/choiceStore";
import type { MergeRequest, Resolve } from "../../source/review";
import type { Place } from "../../source/source";
import { source } from "../../state/context";
import { isRowConflict, keepChoices, resolveOf, type Choices } from "../../state/choices";

export interface Pair {
  readonly graph: string;
  readonly source: string;
  readonly target: string;
}

export interface Preview {
  readonly choices: Choices;
  readonly plan: MergePreviewOutput;
}

export interface Review {
  readonly pair: Pair;
  readonly theirs: Place;
  readonly ours: Place;
  readonly catalog: CatalogOutput;
  /** The plan without choices. */
  readonly plan: MergePreviewOutput;
  /** The conflicts of the plan, then the violations that are known from earlier previews. */
  readonly conflicts: readonly MergeConflictOutput[];
  readonly choices: Choices;
  readonly dropped: number;
  /** The preview of the kept choices; null if there are none. */
  readonly preview: Preview | null;
}

export const requestOf = (review: Pick<Review, "pair" | "theirs">, resolve: Resolve): MergeRequest => ({ ...review.pair, sourceCommit: review.theirs.commit, resolve });

/** Reads both heads and plans their merge, with the choices of this tab that still apply. */
export async function readReview(pair: Pair, signal: AbortSignal): Promise<Review> {
  const [theirs, ours] = await Promise.all([source.resolve(pair.graph, pair.source, signal), source.resolve(pair.graph, pair.target, signal)]);
  const [plan, catalog] = await Promise.all([source.review.mergePreview({ ...pair, sourceCommit: theirs.commit, resolve: null }, signal), source.catalog(theirs, signal)]);
  const stored = storedChoices(pair.graph, pair.source, pair.target);
  const kept = keepChoices(stored.choices, stored.conflicts, plan.conflicts);
  const known = { pair, theirs, ours, catalog, plan };
  if (resolveOf(kept.choices) === null) return { ...known, conflicts: plan.conflicts, choices: {}, dropped: kept.dropped, preview: null };
  const accepted = await previewKept(requestOf(known, kept.choices), kept.choices, kept.unverified, signal);
  const violations = accepted.dropped ? [] : stored.conflicts.filter((conflict) => !isRowConflict(conflict));
  return {
    ...known,
    conflicts: joinConflicts([...plan.conflicts, ...violations], accepted.preview?.plan.conflicts ?? []),
    choices: accepted.choices,
    dropped: kept.dropped + (accepted.dropped ? kept.unverified.length : 0),
    preview: accepted.preview,
  };
}

/** Previews kept choices; those about violations that no longer exist are dropped. */
async function previewKept(request: MergeRequest, choices: Choices, unverified: readonly string[], signal: AbortSignal): Promise<{ choices: Choices; dropped: boolean; preview: Preview | null }> {
  try {
    return { choices, dropped: false, preview: { choices, plan: await source.review.mergePreview(request, signal) } };
  } catch (error) {
    if (unverified.length === 0 || problemOf(error)?.code !== "unknown_conflict") throw error;
  }
  const rest = Object.fromEntries(Object.entries(choices).filter(([name]) => !unverified.includes(name)));
  const preview = resolveOf(rest) === null ? null : { choices: rest, plan: await source.review.mergePreview({ ...request, resolve: rest }, signal) };
  return { choices: rest, dropped: true, preview };
}

const nameOf = (conflict: MergeConflictOutput): string => JSON.stringify([conflict.id, conflict.kind, conflict.message]);

/** Returns known conflicts and new ones, each once. */
export function joinConflicts(known: readonly MergeConflictOutput[], found: readonly MergeConflictOutput[]): MergeConflictOutput[] {
  const names = new Set(known.map((conflict) => (isRowConflict(conflict) ? conflict.id : nameOf(conflict))));
  return [...known, ...found.filter((conflict) => !names.has(isRowConflict(conflict) ? conflict.id : nameOf(conflict)))];
}
