/** Requests of proposals. */
import { readEvents } from "../api/events";
import type { Resolve } from "./review";
import type {
  CheckRowsOutput,
  CommentListOutput,
  CommentOutput,
  CommentPlaceOutput,
  ProposalEventListOutput,
  ProposalListOutput,
  ProposalOutput,
} from "../api/proposalTypes";
import type { RowChangeOutput } from "../api/reviewTypes";
import { source } from "../state/context";

export interface ProposalFilter {
  readonly state?: string | undefined;
  readonly target?: string | undefined;
  readonly author?: string | undefined;
  readonly reviewer?: string | undefined;
  readonly label?: string | undefined;
}

export interface NewProposal {
  readonly source: string;
  readonly target: string;
  readonly title: string;
  readonly body?: string;
  readonly reviewers: readonly string[];
  readonly labels: readonly string[];
  readonly draft: boolean;
}

/** Changes of a proposal; an absent member changes nothing. */
export type ProposalEdit = Partial<Pick<NewProposal, "title" | "body" | "reviewers" | "labels" | "draft">>;
export type Verdict = "approve" | "request_changes" | "retract";

export interface ChangePage {
  readonly from_commit_id: string;
  readonly to_commit_id: string;
  readonly schema_steps: string[];
  readonly changes: RowChangeOutput[];
  readonly next: string | null;
}

const PAGE = 50;
const CHANGES = 500;
const one = (id: string, route = ""): string => `proposals/${encodeURIComponent(id)}${route}`;

export const listProposals = (graph: string, filter: ProposalFilter, after?: string, signal?: AbortSignal): Promise<ProposalListOutput> =>
  source.ask(graph, "proposals", { params: { ...filter, limit: PAGE, after }, signal });

export const propose = (graph: string, proposal: NewProposal): Promise<ProposalOutput> => source.ask(graph, "proposals", { body: proposal });

export const getProposal = (graph: string, id: string, signal?: AbortSignal): Promise<ProposalOutput> => source.ask(graph, one(id), { signal });

export const editProposal = (graph: string, id: string, edit: ProposalEdit): Promise<ProposalOutput> => source.ask(graph, one(id), { method: "PATCH", body: edit });

export const proposalChanges = (graph: string, id: string, after?: string, signal?: AbortSignal): Promise<ChangePage> =>
  source.ask(graph, one(id, "/diff"), { params: { limit: CHANGES, after }, signal });

export const proposalEvents = (graph: string, id: string, signal?: AbortSignal): Promise<ProposalEventListOutput> => source.ask(graph, one(id, "/events"), { signal });

export const listComments = (graph: string, id: string, signal?: AbortSignal): Promise<CommentListOutput> => source.ask(graph, one(id, "/comments"), { signal });

export const addComment = (graph: string, id: string, comment: { text: string; on?: CommentPlaceOutput; reply_to?: string }): Promise<CommentOutput> =>
  source.ask(graph, one(id, "/comments"), { body: comment });

export const editComment = (graph: string, id: string, comment: string, edit: { text?: string; resolved?: boolean }): Promise<CommentOutput> =>
  source.ask(graph, one(id, `/comments/${encodeURIComponent(comment)}`), { method: "PATCH", body: edit });

/** Sends a verdict on the commit that was looked at. */
export const review = (graph: string, id: string, verdict: Verdict, commit: string | null, text: string): Promise<ProposalOutput> =>
  source.ask(graph, one(id, "/review"), { body: { verdict, ...(commit === null ? {} : { commit }), ...(text === "" ? {} : { text }) } });

export const resolveConflicts = (graph: string, id: string, resolve: Resolve): Promise<ProposalOutput> => source.ask(graph, one(id, "/resolve"), { body: { resolve } });

export const runChecks = (graph: string, id: string, again: boolean): Promise<ProposalOutput> => source.ask(graph, one(id, "/check"), { body: { again } });

export const checkRows = (graph: string, id: string, check: string, signal?: AbortSignal): Promise<CheckRowsOutput> =>
  source.ask(graph, one(id, `/checks/${encodeURIComponent(check)}`), { signal });

export const land = (graph: string, id: string, message: string): Promise<unknown> => source.ask(graph, one(id, "/land"), { body: message === "" ? {} : { message } });

export const closeProposal = (graph: string, id: string, why: string): Promise<ProposalOutput> => source.ask(graph, one(id, "/close"), { body: why === "" ? {} : { why } });

export const reopenProposal = (graph: string, id: string): Promise<ProposalOutput> => source.ask(graph, one(id, "/reopen"), { body: {} });

const PAUSE_MS = 2000;

/** Calls `onEvent` with the id of a proposal for each event of a graph, until the signal; a broken stream is continued. */
export async function followProposals(graph: string, onEvent: (proposal: string) => void, signal: AbortSignal): Promise<void> {
  let last: string | null = null;
  while (!signal.aborted) {
    try {
      const headers = last === null ? {} : { "Last-Event-ID": last };
      const response = await source.open(graph, "proposals/stream", { accept: "text/event-stream", headers, signal });
      for await (const event of readEvents(response)) {
        last = event.id ?? last;
        onEvent((JSON.parse(event.data) as { proposal: string }).proposal);
      }
    } catch {
      // A refused or broken stream leaves the page as it is; reads report their own problems.
    }
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
