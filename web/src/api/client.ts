/**
 * Requests to the server of this page: the token as a header, problems as exceptions, reads repeated after an outage.
 *
 * After a write, every request about the same graph names its commit, so that another process of the server, which may be
 * behind, answers only when it has seen it.
 */
import { askForToken, offline, token } from "../state/session";
import { Problem } from "./problem";

export const ARROW = "application/vnd.apache.arrow.stream";
const PAUSES_MS = [500, 1000, 2000, 4000];

export type Params = Readonly<Record<string, string | number | boolean | readonly string[] | null | undefined>>;

export interface Request {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  params?: Params;
  body?: unknown;
  accept?: string;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal | undefined;
  /** True if a second sending does no harm. GET always is. */
  repeatable?: boolean;
}

/** The part of a path that names a graph; empty on a server with one graph. */
const graphOf = (path: string): string => /^graphs\/[^/]+\//.exec(path)?.[0] ?? "";

export class Client {
  /** Graph → the commit of the last write of this page. */
  private readonly writes = new Map<string, string>();

  constructor(private readonly base: URL) {}

  async json<T>(path: string, request: Request = {}): Promise<T> {
    const response = await this.send(path, request);
    return (await response.json()) as T;
  }

  /** Sends a request and returns the answer; an error is a `Problem`, a missing token is asked for and the request repeated. */
  async send(path: string, request: Request = {}): Promise<Response> {
    const response = await this.answer(path, request);
    if (response.ok) return response;
    throw await problemFrom(response);
  }

  /** Sends a request and returns any answer but 401. */
  async answer(path: string, request: Request = {}): Promise<Response> {
    for (;;) {
      const response = await this.fetch(path, request);
      if (response.status !== 401) return response;
      await askForToken();
    }
  }

  url(path: string, params?: Params): URL {
    const url = new URL(path, this.base);
    for (const [name, value] of Object.entries(params ?? {})) {
      if (value === null || value === undefined || value === "") continue;
      if (typeof value === "object") for (const each of value) url.searchParams.append(name, each);
      else url.searchParams.set(name, String(value));
    }
    return url;
  }

  private async fetch(path: string, request: Request): Promise<Response> {
    const { method = request.body === undefined ? "GET" : "POST", repeatable = method === "GET" } = request;
    const headers = new Headers({ Accept: request.accept ?? "application/json", ...request.headers });
    if (request.body !== undefined) headers.set("Content-Type", "application/json");
    if (token.value !== null) headers.set("Authorization", `Bearer ${token.value}`);
    const graph = graphOf(path);
    const least = this.writes.get(graph);
    if (least !== undefined) headers.set("Omnigraph-Min-Commit", least);
    const init: RequestInit = { method, headers, credentials: "omit", cache: "no-cache" };
    if (request.body !== undefined) init.body = JSON.stringify(request.body);
    if (request.signal !== undefined) init.signal = request.signal;
    for (let tries = 0; ; tries += 1) {
      try {
        const response = await fetch(this.url(path, request.params), init);
        offline.value = false;
        const commit = response.headers.get("Omnigraph-Commit");
        // A commit that was removed with its branch is never seen again.
        if (response.status === 503 || (method === "DELETE" && response.ok)) this.writes.delete(graph);
        else if (!repeatable && response.ok && commit !== null) this.writes.set(graph, commit);
        return response;
      } catch (error) {
        if (request.signal?.aborted === true) throw new DOMException("aborted", "AbortError");
        offline.value = true;
        if (!repeatable) throw new Problem(0, { error: "The server does not answer.", code: "no_answer" });
        await pause(PAUSES_MS[Math.min(tries, PAUSES_MS.length - 1)] ?? 0, request.signal);
      }
    }
  }
}

async function problemFrom(response: Response): Promise<Problem> {
  try {
    return new Problem(response.status, (await response.json()) as Record<string, unknown>);
  } catch {
    const id = response.headers.get("X-Request-Id");
    return new Problem(response.status, { error: `The server answered ${response.status}.`, code: "bad_answer", request_id: id });
  }
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("aborted", "AbortError"));
    });
  });
}
