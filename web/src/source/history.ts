/** Commits, branches and tags: what the screens of history ask for. */
import type { Client, Params, Request } from "../api/client";
import type { RevertPreviewOutput } from "../api/reviewTypes";
import type {
  BranchListOutput,
  BranchOutput,
  CommitListOutput,
  CommitOutput,
  RevertOutput,
  TagListOutput,
  TagOutput,
} from "../api/types";

/** All branches, in place of the name of one. */
export const EVERY_BRANCH = "*";

/** Conditions on listed commits. */
export interface CommitFilter {
  /** A branch, or `EVERY_BRANCH`. */
  readonly branch: string;
  readonly actor?: string | undefined;
  readonly kind?: string | undefined;
  readonly type?: string | undefined;
  /** A part of the message. */
  readonly text?: string | undefined;
  /** Times in ISO 8601. */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

/** A resolution of all conflicts: the values of the branch, or those of the other side. */
export type ResolveAll = "ours" | "theirs" | undefined;

export interface HistorySource {
  /** The commits that meet the conditions, newest first; `after` continues a list. */
  list(graph: string, filter: CommitFilter, limit: number, after?: string, signal?: AbortSignal): Promise<CommitListOutput>;
  commit(graph: string, id: string, signal?: AbortSignal): Promise<CommitOutput>;
  previewRevert(graph: string, commit: string, branch: string, resolve: ResolveAll, signal?: AbortSignal): Promise<RevertPreviewOutput>;
  revert(graph: string, commit: string, branch: string, resolve: ResolveAll, message: string): Promise<RevertOutput>;
  /** Every branch with its newest commit, compared with another branch. */
  branchStatus(graph: string, compare: string, signal?: AbortSignal): Promise<readonly BranchOutput[]>;
  createBranch(graph: string, name: string, at: { branch: string } | { at: string }): Promise<void>;
  /** Deletes a branch; `force` also one with commits that no other branch has. */
  deleteBranch(graph: string, name: string, force: boolean): Promise<void>;
  tags(graph: string, signal?: AbortSignal): Promise<readonly TagOutput[]>;
  createTag(graph: string, name: string, at: string, message: string): Promise<void>;
  deleteTag(graph: string, name: string): Promise<void>;
}

interface Host {
  readonly client: Client;
  routePath(graph: string, route: string): string;
}

const name = encodeURIComponent;

export class HttpHistory implements HistorySource {
  constructor(private readonly host: Host) {}

  list(graph: string, filter: CommitFilter, limit: number, after?: string, signal?: AbortSignal): Promise<CommitListOutput> {
    return this.get<CommitListOutput>(graph, "commits", { ...filter, limit, after }, signal);
  }

  commit(graph: string, id: string, signal?: AbortSignal): Promise<CommitOutput> {
    return this.get<CommitOutput>(graph, `commits/${name(id)}`, {}, signal);
  }

  previewRevert(graph: string, commit: string, branch: string, resolve: ResolveAll, signal?: AbortSignal): Promise<RevertPreviewOutput> {
    const body = { branch, ...(resolve === undefined ? {} : { resolve }) };
    return this.send<RevertPreviewOutput>(graph, `commits/${name(commit)}/revert/preview`, { body, repeatable: true, signal });
  }

  revert(graph: string, commit: string, branch: string, resolve: ResolveAll, message: string): Promise<RevertOutput> {
    const body = { branch, ...(resolve === undefined ? {} : { resolve }), ...(message === "" ? {} : { message }) };
    return this.send<RevertOutput>(graph, `commits/${name(commit)}/revert`, { body });
  }

  async branchStatus(graph: string, compare: string, signal?: AbortSignal): Promise<readonly BranchOutput[]> {
    return (await this.get<BranchListOutput>(graph, "branches", { compare }, signal)).statuses ?? [];
  }

  async createBranch(graph: string, branch: string, at: { branch: string } | { at: string }): Promise<void> {
    const start = "branch" in at ? { from: at.branch } : at;
    await this.send(graph, "branches", { body: { name: branch, ...start } });
  }

  async deleteBranch(graph: string, branch: string, force: boolean): Promise<void> {
    await this.send(graph, `branches/${name(branch)}`, { method: "DELETE", params: force ? { force } : {} });
  }

  async tags(graph: string, signal?: AbortSignal): Promise<readonly TagOutput[]> {
    return (await this.get<TagListOutput>(graph, "tags", {}, signal)).tags;
  }

  async createTag(graph: string, tag: string, at: string, message: string): Promise<void> {
    await this.send(graph, "tags", { body: { name: tag, at, ...(message === "" ? {} : { message }) } });
  }

  async deleteTag(graph: string, tag: string): Promise<void> {
    await this.send(graph, `tags/${name(tag)}`, { method: "DELETE" });
  }

  private get<T>(graph: string, route: string, params: Params, signal?: AbortSignal): Promise<T> {
    return this.send<T>(graph, route, { params, signal });
  }

  private send<T>(graph: string, route: string, request: Request): Promise<T> {
    return this.host.client.json<T>(this.host.routePath(graph, route), request);
  }
}
