/**
 * Where a diff view reads: the changes between two commits, or those of a proposal. A reader answers for fixed commits.
 */
import type { DiffGraphOutput, DiffOutput, DiffSummaryOutput } from "../api/reviewTypes";
import type { DiffPart, DiffPoints } from "../source/review";
import { source } from "../state/context";

export interface DiffReader {
  /** Names the commits; another key is another diff. */
  readonly key: string;
  /** Refs at which rows of before and after can be seen; null if there is no such place. */
  readonly beforeRef: string | null;
  readonly afterRef: string | null;
  summary(signal: AbortSignal): Promise<DiffSummaryOutput>;
  rows(part: DiffPart, limit: number, after: string | undefined, signal: AbortSignal): Promise<DiffOutput>;
  graph(part: DiffPart, signal: AbortSignal): Promise<DiffGraphOutput>;
  /** The actors of the commits in question; absent if they are not known. */
  actors?(signal: AbortSignal): Promise<readonly string[]>;
  /** Keys of the rows that an actor touched. */
  touched?(actor: string, signal: AbortSignal): Promise<ReadonlySet<string>>;
}

export const GRAPH_CHANGES = 300;
const COMMITS_MAX = 300;

/**
 * Returns a reader of the changes between two commits.
 *
 * `toBranch` is the branch of the second commit, if it has one: its commits since `baseCommit` tell who changed what.
 */
export function commitReader(points: DiffPoints, toBranch: string | null): DiffReader {
  const { review } = source;
  let known: Promise<DiffSummaryOutput> | null = null;
  // Several parts of a page read the summary: one request answers them.
  const summary = () =>
    (known ??= review.diffSummary(points).catch((error: unknown) => {
      known = null;
      throw error;
    }));
  const commits = async (signal: AbortSignal) =>
    toBranch === null ? [] : review.commitsSince(points.graph, toBranch, (await summary()).from_commit_id, COMMITS_MAX, signal);
  return {
    key: JSON.stringify([points.graph, points.from, points.to, points.base]),
    beforeRef: `@${points.from}`,
    afterRef: `@${points.to}`,
    summary,
    rows: (part, limit, after, signal) => review.diffRows(points, part, limit, after, signal),
    graph: (part, signal) => review.diffGraph(points, part, GRAPH_CHANGES, signal),
    ...(toBranch === null
      ? {}
      : {
          actors: async (signal) => [...new Set((await commits(signal)).map((commit) => commit.actor_id ?? ""))].filter((actor) => actor !== "").sort(),
          touched: async (actor, signal) => {
            const own = (await commits(signal)).filter((commit) => commit.actor_id === actor);
            const keys = await Promise.all(own.map((commit) => review.changedRows(points.graph, commit.graph_commit_id, signal)));
            return new Set(keys.flat());
          },
        }),
  };
}
