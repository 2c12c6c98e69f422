/** An answer that is an error, or the failure to get one. */

export interface Span {
  start: number;
  end: number;
}

export interface Diagnostic {
  code: string;
  message: string;
  line?: number;
  column?: number;
  span?: Span;
  hint?: string | null;
  excerpt?: string;
}

export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string | null;
  readonly requestId: string | null;
  readonly diagnostics: readonly Diagnostic[];
  readonly document: Readonly<Record<string, unknown>>;

  constructor(status: number, document: Readonly<Record<string, unknown>>) {
    super(text(document["error"]) ?? `HTTP ${status}`);
    this.name = "Problem";
    this.status = status;
    this.code = text(document["reason"]) ?? text(document["code"]) ?? "unknown";
    this.hint = text(document["hint"]);
    this.requestId = text(document["request_id"]);
    this.diagnostics = Array.isArray(document["diagnostics"]) ? (document["diagnostics"] as Diagnostic[]) : [];
    this.document = document;
  }
}

const text = (value: unknown): string | null => (typeof value === "string" ? value : null);

/** Makes a problem of anything that was thrown; null for a cancelled request, which is no problem. */
export function problemOf(error: unknown): Problem | null {
  if (error instanceof Problem) return error;
  if (error instanceof DOMException && error.name === "AbortError") return null;
  const message = error instanceof Error ? error.message : String(error);
  return new Problem(0, { error: message, code: "page_error" });
}

/** True if a policy denied the request. */
export const isDenied = (problem: Problem): boolean => problem.status === 403;

/** True if the request was refused because its branch moved. */
export const isLostRace = (problem: Problem): boolean => problem.code === "head_moved" || problem.code === "precondition_failed";

/** Returns the text of a bug report: what failed, without any data of the graph. */
export function reportOf(problem: Problem, version: string, screen: string): string {
  return [
    `OmniGraph ${version}`,
    `screen: ${screen}`,
    `code: ${problem.code}`,
    `status: ${problem.status}`,
    `request: ${problem.requestId ?? "none"}`,
    `page: ${navigator.userAgent}`,
  ].join("\n");
}
