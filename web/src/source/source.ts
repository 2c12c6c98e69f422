/**
 * What screens ask for. A screen knows this interface and nothing of HTTP: the same screens run on a server, in a
 * notebook and in a saved file.
 *
 * A `Place` is a ref resolved to a commit. Answers of a commit never change, so implementations keep them by commit.
 */
import type { Request } from "../api/client";
import type { ResultTable } from "../api/result";
import type {
  CatalogOutput,
  ChangeOutput,
  CompletionOutput,
  EntityOutput,
  ExplainOutput,
  FormatOutput,
  HistoryOutput,
  HoverOutput,
  LintOutput,
  NeighborListOutput,
  QueryChangeOutput,
  SearchOutput,
  CommitListOutput,
  MeOutput,
  SnapshotOutput,
  StoredQueryOutput,
} from "../api/types";
import type { AdminSource } from "./admin";
import type { FeedSource } from "./feed";
import type { HistorySource } from "./history";
import type { ReviewSource } from "./review";

export interface Place {
  readonly graph: string;
  readonly ref: string;
  /** The branch; null for a pinned commit, a tag or a time. */
  readonly branch: string | null;
  readonly commit: string;
  readonly snapshot: SnapshotOutput;
}

/** A query text, the name of one of its queries, and the values of its parameters. */
export interface QueryRequest {
  readonly text: string;
  readonly name: string | null;
  readonly params: Readonly<Record<string, unknown>>;
}

export interface NeighborRequest {
  readonly edge?: string | undefined;
  readonly direction?: string | undefined;
  readonly limit: number;
  readonly after?: string | undefined;
}

export interface SearchRequest {
  readonly text: string;
  readonly types: readonly string[];
  readonly by: "both" | "words" | "meaning";
  /** Property → value, or operator → value. */
  readonly filters?: Readonly<Record<string, unknown>> | undefined;
  /** The id of a node whose rank, or absence, is explained. */
  readonly rank_of?: string | undefined;
  readonly limit: number;
  readonly after?: string | undefined;
}

export type ExportForm = "csv" | "jsonl" | "arrow" | "parquet";
export type Language = "gq" | "pg";

export interface Source {
  /** Commits, branches and tags. */
  readonly history: HistorySource;
  readonly feed: FeedSource;
  /** The graphs that the caller may see, by id. */
  graphs(signal?: AbortSignal): Promise<string[]>;
  me(signal?: AbortSignal): Promise<MeOutput>;
  resolve(graph: string, ref: string, signal?: AbortSignal): Promise<Place>;
  branches(graph: string, signal?: AbortSignal): Promise<string[]>;
  catalog(place: Place, signal?: AbortSignal): Promise<CatalogOutput>;
  commits(place: Place, limit: number, after?: string, signal?: AbortSignal): Promise<CommitListOutput>;
  storedQueries(place: Place, signal?: AbortSignal): Promise<StoredQueryOutput[]>;
  storedQuery(place: Place, name: string, signal?: AbortSignal): Promise<StoredQueryOutput>;
  /** Runs a read at the commit of a place; `after` continues a result. */
  query(place: Place, request: QueryRequest, after: string | null, signal?: AbortSignal): Promise<ResultTable>;
  /** Runs a read and returns its rows as a file. */
  exportRows(place: Place, request: QueryRequest, form: ExportForm, signal?: AbortSignal): Promise<Blob>;
  explain(place: Place, request: QueryRequest, measured: boolean, signal?: AbortSignal): Promise<ExplainOutput>;
  mutate(place: Place, request: QueryRequest, message: string, signal?: AbortSignal): Promise<ChangeOutput>;
  /** Runs and checks a change, and writes nothing: the rows that it would touch. */
  dryRun(place: Place, request: QueryRequest, signal?: AbortSignal): Promise<ChangeOutput>;
  /** Merges one record into a branch, as a commit; a branch with `from` is created. Absent properties keep their values. */
  mergeRecord(place: Place, record: object, target: { readonly branch: string; readonly from?: string | undefined }, message: string): Promise<void>;
  storeQuery(place: Place, name: string, text: string, message: string): Promise<QueryChangeOutput>;
  /** Stores all queries of a text as one commit. */
  storeQueries(place: Place, text: string, message: string): Promise<QueryChangeOutput>;
  lint(place: Place, text: string, language: Language, signal?: AbortSignal): Promise<LintOutput>;
  complete(place: Place, text: string, offset: number, language: Language, signal?: AbortSignal): Promise<CompletionOutput>;
  hover(place: Place, text: string, offset: number, language: Language, signal?: AbortSignal): Promise<HoverOutput>;
  format(place: Place, text: string, language: Language): Promise<FormatOutput>;
  /** A node or edge with the last commit of each property and the numbers of its edges. */
  entity(place: Place, type: string, id: string, signal?: AbortSignal): Promise<EntityOutput>;
  neighbors(place: Place, type: string, id: string, request: NeighborRequest, signal?: AbortSignal): Promise<NeighborListOutput>;
  entityHistory(place: Place, type: string, id: string, limit: number, after?: string, signal?: AbortSignal): Promise<HistoryOutput>;
  search(place: Place, request: SearchRequest, signal?: AbortSignal): Promise<SearchOutput>;
  /** Differences and merges. */
  readonly review: ReviewSource;
  /** Sends a request about a graph; a module of this folder has the requests of one area, in the chunk of its screen. */
  ask<T>(graph: string, route: string, request?: Request): Promise<T>;
  readonly admin: AdminSource;
  /** Sends a request whose answer is read as it comes, such as a stream of events. */
  open(graph: string, route: string, request?: Request): Promise<Response>;
  /** The address of the server that others can use, for copied code. */
  readonly address: string;
  /** The path of a route of a graph, below the address. */
  routePath(graph: string, route: string): string;
}
