/** What the screens of differences and merges ask for. Points are commits, so that answers can be kept for ever. */
import type { Client } from "../api/client";
import type { BranchMergeOutput, ChangeOp, CommitChangesAnswerOutput, DiffGraphOutput, DiffOutput, DiffSummaryOutput, MergePreviewOutput } from "../api/reviewTypes";
import type { CommitListOutput, CommitOutput } from "../api/types";

/** Two commits; with `base`, only what `to` changed since their newest common commit. */
export interface DiffPoints {
  readonly graph: string;
  readonly from: string;
  readonly to: string;
  readonly base: boolean;
}

/** A part of the changes; an absent member restricts nothing. */
export interface DiffPart {
  readonly kind?: "node" | "edge" | undefined;
  readonly type?: string | undefined;
  readonly op?: ChangeOp | undefined;
}

/** The value of `resolve`: one word for all conflicts, or choices by type, property and conflict. */
export type Resolve = Readonly<Record<string, unknown>> | null;

export interface MergeRequest {
  readonly graph: string;
  readonly source: string;
  readonly target: string;
  readonly sourceCommit: string;
  readonly resolve: Resolve;
}

export interface MergeOrder extends MergeRequest {
  /** The head of the target that was reviewed. */
  readonly targetCommit: string;
  readonly message: string;
  readonly deleteBranch: boolean;
}

export interface ReviewSource {
  diffSummary(points: DiffPoints, signal?: AbortSignal): Promise<DiffSummaryOutput>;
  diffRows(points: DiffPoints, part: DiffPart, limit: number, after?: string, signal?: AbortSignal): Promise<DiffOutput>;
  diffGraph(points: DiffPoints, part: DiffPart, limit: number, signal?: AbortSignal): Promise<DiffGraphOutput>;
  /** The newest commits of a branch down to, not including, a commit; at most `most`. */
  commitsSince(graph: string, branch: string, commit: string, most: number, signal?: AbortSignal): Promise<CommitOutput[]>;
  /** Keys of the rows that a commit changed: `node:Type:id`. */
  changedRows(graph: string, commit: string, signal?: AbortSignal): Promise<string[]>;
  mergePreview(request: MergeRequest, signal?: AbortSignal): Promise<MergePreviewOutput>;
  merge(order: MergeOrder): Promise<BranchMergeOutput>;
}

const CHANGES_PAGE = 1000;
const CHANGES_PAGES_MAX = 20;

const pointParams = ({ from, to, base }: DiffPoints) => ({ from, to, ...(base ? { since: "base" } : {}) });
const resolveMember = (resolve: Resolve) => (resolve === null ? {} : { resolve });

/** Returns the requests of a server; `path` gives the path of a route of a graph. */
export function httpReview(client: Client, path: (graph: string, route: string) => string): ReviewSource {
  return {
    diffSummary: (points, signal) => client.json(path(points.graph, "diff/summary"), { params: pointParams(points), signal }),
    diffRows: (points, part, limit, after, signal) =>
      client.json(path(points.graph, "diff"), { params: { ...pointParams(points), ...part, limit, after }, signal }),
    diffGraph: (points, part, limit, signal) =>
      client.json(path(points.graph, "diff/graph"), { params: { ...pointParams(points), ...part, limit }, signal }),
    async commitsSince(graph, branch, commit, most, signal) {
      const { commits } = await client.json<CommitListOutput>(path(graph, "commits"), { params: { branch, limit: most }, signal });
      const end = commits.findIndex((each) => each.graph_commit_id === commit);
      return end < 0 ? commits : commits.slice(0, end);
    },
    async changedRows(graph, commit, signal) {
      const keys: string[] = [];
      let token: string | undefined;
      for (let page = 0; page < CHANGES_PAGES_MAX; page += 1) {
        const params = { limit: CHANGES_PAGE, page_token: token };
        const found = await client.json<CommitChangesAnswerOutput>(path(graph, `commits/${encodeURIComponent(commit)}/changes`), { params, signal });
        for (const change of found.changes) keys.push(`${change.kind}:${change.type.name}:${change.id}`);
        token = found.next_page_token;
        if (token === undefined) break;
      }
      return keys;
    },
    mergePreview: ({ graph, source, target, sourceCommit, resolve }, signal) => {
      const body = { source, target, source_commit: sourceCommit, ...resolveMember(resolve) };
      return client.json(path(graph, "branches/merge/preview"), { body, repeatable: true, signal });
    },
    merge: ({ graph, source, target, sourceCommit, targetCommit, resolve, message, deleteBranch }) => {
      const body = { source, target, source_commit: sourceCommit, delete_branch: deleteBranch, ...resolveMember(resolve), ...(message === "" ? {} : { message }) };
      return client.json(path(graph, "branches/merge"), { body, headers: { "If-Match": `"${targetCommit}"` } });
    },
  };
}
