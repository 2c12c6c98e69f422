/** The `Source` of a server. */
import { ARROW, Client, type Params, type Request } from "../api/client";
import type { ResultTable } from "../api/result";
import type {
  BranchListOutput,
  CatalogOutput,
  ChangeOutput,
  CommitListOutput,
  CompletionOutput,
  EntityOutput,
  ExplainOutput,
  ExplorerConfigOutput,
  FormatOutput,
  HistoryOutput,
  HoverOutput,
  LintOutput,
  MeOutput,
  NeighborListOutput,
  QueryChangeOutput,
  SearchOutput,
  SnapshotOutput,
  StoredQueryOutput,
  StoredQueryListOutput,
} from "../api/types";
import { isPinned, pointOf } from "../state/link";
import { token } from "../state/session";
import { httpAdmin, type AdminSource } from "./admin";
import { httpFeed, type FeedSource } from "./feed";
import { HttpHistory } from "./history";
import { httpReview, type ReviewSource } from "./review";
import type { ExportForm, Language, NeighborRequest, Place, QueryRequest, SearchRequest, Source } from "./source";

const CACHED_MAX = 300;
const PAGE_ROWS = 65_536;
const FORMS: Readonly<Record<ExportForm, string>> = {
  csv: "text/csv",
  jsonl: "application/x-ndjson",
  arrow: ARROW,
  parquet: "application/vnd.apache.parquet",
};

const queryBody = (request: QueryRequest) => ({
  query: request.text,
  params: request.params,
  ...(request.name === null ? {} : { name: request.name }),
});
const entityPath = (type: string, id: string): string => `entities/${encodeURIComponent(type)}/${encodeURIComponent(id)}`;
/** A pinned place is checked against the schema of main. */
const branchOf = (place: Place) => (place.branch === null ? {} : { branch: place.branch });

export class HttpSource implements Source {
  /** Answers by actor, commit and request. A commit never changes; another token may see other rows. */
  private readonly answers = new Map<string, unknown>();
  private cachedFor: string | null = null;
  readonly history = new HttpHistory(this);
  readonly feed: FeedSource;

  readonly review: ReviewSource;
  readonly admin: AdminSource;

  constructor(
    readonly client: Client,
    private readonly config: ExplorerConfigOutput,
  ) {
    this.feed = httpFeed(client, (graph, route) => this.routePath(graph, route));
    this.review = httpReview(client, (graph, route) => this.routePath(graph, route));
    this.admin = httpAdmin(client, (graph, route) => this.routePath(graph, route));
  }

  async graphs(signal?: AbortSignal): Promise<string[]> {
    const me = await this.me(signal);
    return me.graphs.map((graph) => graph.graph_id);
  }

  me(signal?: AbortSignal): Promise<MeOutput> {
    return this.client.json<MeOutput>("me", { signal });
  }

  async resolve(graph: string, ref: string, signal?: AbortSignal): Promise<Place> {
    const snapshot = await this.client.json<SnapshotOutput>(this.routePath(graph, "snapshot"), { params: pointOf(ref), signal });
    return { graph, ref, branch: isPinned(ref) ? null : ref, commit: snapshot.graph_commit_id, snapshot };
  }

  async branches(graph: string, signal?: AbortSignal): Promise<string[]> {
    return (await this.client.json<BranchListOutput>(this.routePath(graph, "branches"), { signal })).branches;
  }

  catalog(place: Place, signal?: AbortSignal): Promise<CatalogOutput> {
    return this.get<CatalogOutput>(place, "schema", { form: "json" }, signal);
  }

  commits(place: Place, limit: number, after?: string, signal?: AbortSignal): Promise<CommitListOutput> {
    const params = { ...pointOf(place.ref), limit, after };
    return this.client.json<CommitListOutput>(this.routePath(place.graph, "commits"), { params, signal });
  }

  async storedQueries(place: Place, signal?: AbortSignal): Promise<StoredQueryOutput[]> {
    const params = pointOf(place.ref);
    return (await this.client.json<StoredQueryListOutput>(this.routePath(place.graph, "queries"), { params, signal })).queries;
  }

  storedQuery(place: Place, name: string, signal?: AbortSignal): Promise<StoredQueryOutput> {
    const path = this.routePath(place.graph, `queries/${encodeURIComponent(name)}`);
    return this.client.json<StoredQueryOutput>(path, { params: pointOf(place.ref), signal });
  }

  get address(): string {
    return this.client.url("").href.replace(/\/$/, "");
  }

  async query(place: Place, request: QueryRequest, after: string | null, signal?: AbortSignal): Promise<ResultTable> {
    // Rows without an order have no pages: they come as a whole.
    const page = /\border\s*\{/.test(request.text) ? { page: PAGE_ROWS, ...(after === null ? {} : { after }) } : {};
    const body = { ...queryBody(request), at: place.commit, ...page };
    const sent = this.client.send(this.routePath(place.graph, "query"), { body, accept: ARROW, repeatable: true, signal });
    // The reader is loaded while the query runs.
    const [response, { readTable }] = await Promise.all([sent, import("../api/arrow")]);
    return readTable(await response.arrayBuffer());
  }

  async exportRows(place: Place, request: QueryRequest, form: ExportForm, signal?: AbortSignal): Promise<Blob> {
    const body = { ...queryBody(request), at: place.commit };
    const response = await this.client.send(this.routePath(place.graph, "query"), { body, accept: FORMS[form], repeatable: true, signal });
    return response.blob();
  }

  explain(place: Place, request: QueryRequest, measured: boolean, signal?: AbortSignal): Promise<ExplainOutput> {
    const body = { ...queryBody(request), at: place.commit };
    return this.client.json<ExplainOutput>(this.routePath(place.graph, measured ? "profile" : "explain"), { body, repeatable: true, signal });
  }

  mutate(place: Place, request: QueryRequest, message: string, signal?: AbortSignal): Promise<ChangeOutput> {
    const body = { ...queryBody(request), branch: place.branch, ...(message === "" ? {} : { message }) };
    // A change is made to the commit that the page shows, or not at all.
    return this.client.json<ChangeOutput>(this.routePath(place.graph, "mutate"), { body, signal, headers: { "If-Match": `"${place.commit}"` } });
  }

  dryRun(place: Place, request: QueryRequest, signal?: AbortSignal): Promise<ChangeOutput> {
    const body = { ...queryBody(request), branch: place.branch, dry_run: true };
    return this.client.json<ChangeOutput>(this.routePath(place.graph, "mutate"), { body, signal, repeatable: true });
  }

  async mergeRecord(place: Place, record: object, target: { readonly branch: string; readonly from?: string | undefined }, message: string): Promise<void> {
    const body = { data: JSON.stringify(record), mode: "merge", ...target, ...(message === "" ? {} : { message }) };
    await this.client.send(this.routePath(place.graph, "load"), { body });
  }

  storeQuery(place: Place, name: string, text: string, message: string): Promise<QueryChangeOutput> {
    const body = { source: text, branch: place.branch, ...(message === "" ? {} : { message }) };
    return this.client.json<QueryChangeOutput>(this.routePath(place.graph, `queries/${encodeURIComponent(name)}`), { method: "PUT", body });
  }

  storeQueries(place: Place, text: string, message: string): Promise<QueryChangeOutput> {
    return this.client.json<QueryChangeOutput>(this.routePath(place.graph, "queries"), { body: { source: text, branch: place.branch, message } });
  }

  lint(place: Place, text: string, language: Language, signal?: AbortSignal): Promise<LintOutput> {
    const body = { query: text, language, offsets: "utf16", ...branchOf(place) };
    return this.client.json<LintOutput>(this.routePath(place.graph, "lint"), { body, repeatable: true, signal });
  }

  complete(place: Place, text: string, offset: number, language: Language, signal?: AbortSignal): Promise<CompletionOutput> {
    const body = { text, offset, language, offsets: "utf16", ...branchOf(place) };
    return this.client.json<CompletionOutput>(this.routePath(place.graph, "complete"), { body, repeatable: true, signal });
  }

  hover(place: Place, text: string, offset: number, language: Language, signal?: AbortSignal): Promise<HoverOutput> {
    const body = { text, offset, language, offsets: "utf16", ...branchOf(place) };
    return this.client.json<HoverOutput>(this.routePath(place.graph, "hover"), { body, repeatable: true, signal });
  }

  format(place: Place, text: string, language: Language): Promise<FormatOutput> {
    return this.client.json<FormatOutput>(this.routePath(place.graph, "format"), { body: { text, language }, repeatable: true });
  }

  entity(place: Place, type: string, id: string, signal?: AbortSignal): Promise<EntityOutput> {
    return this.get<EntityOutput>(place, entityPath(type, id), { include: "blame,degrees" }, signal);
  }

  neighbors(place: Place, type: string, id: string, request: NeighborRequest, signal?: AbortSignal): Promise<NeighborListOutput> {
    return this.get<NeighborListOutput>(place, `${entityPath(type, id)}/neighbors`, { ...request }, signal);
  }

  entityHistory(place: Place, type: string, id: string, limit: number, after?: string, signal?: AbortSignal): Promise<HistoryOutput> {
    return this.get<HistoryOutput>(place, `${entityPath(type, id)}/history`, { limit, after }, signal);
  }

  search(place: Place, request: SearchRequest, signal?: AbortSignal): Promise<SearchOutput> {
    const { types, ...rest } = request;
    const body = { ...rest, ...(types.length === 0 ? {} : { types }), at: place.commit, why: true, offsets: "utf16" };
    return this.cached<SearchOutput>(place, "search", { body, repeatable: true, signal });
  }

  ask<T>(graph: string, route: string, request?: Request): Promise<T> {
    return this.client.json<T>(this.routePath(graph, route), request);
  }

  open(graph: string, route: string, request?: Request): Promise<Response> {
    return this.client.send(this.routePath(graph, route), request);
  }

  /** Returns the path of a route of a graph. */
  routePath(graph: string, route: string): string {
    return this.config.single_graph ? route : `graphs/${encodeURIComponent(graph)}/${route}`;
  }

  /** Reads at the commit of a place, once. */
  private get<T>(place: Place, route: string, params: Params, signal?: AbortSignal): Promise<T> {
    return this.cached<T>(place, route, { params: { ...params, at: place.commit }, signal });
  }

  private async cached<T>(place: Place, route: string, request: Request): Promise<T> {
    if (this.cachedFor !== token.value) this.answers.clear();
    this.cachedFor = token.value;
    const key = JSON.stringify([place.graph, place.commit, route, request.params, request.body]);
    const known = this.answers.get(key);
    if (known !== undefined) return known as T;
    const answer = await this.client.json<T>(this.routePath(place.graph, route), request);
    if (this.answers.size >= CACHED_MAX) this.answers.delete(this.answers.keys().next().value as string);
    this.answers.set(key, answer);
    return answer;
  }
}
