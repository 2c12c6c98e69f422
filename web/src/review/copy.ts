/** The same comparison or merge in other interfaces. */
import { copyText } from "../kit/announce";
import type { MenuItem } from "../kit/Menu";
import type { MergeRequest } from "../source/review";
import type { Place, Source } from "../source/source";
import { text } from "../text/review";

const shellQuote = (value: string): string => (/^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`);
const python = (value: unknown): string => (value === null ? "None" : typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value));

/** Returns a JSON value as a Python literal. */
export function pythonLiteral(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(", ")}]`;
  if (typeof value === "object" && value !== null) return `{${Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${pythonLiteral(each)}`).join(", ")}}`;
  return python(value);
}

const pointText = (ref: string): string => (ref.startsWith("@") ? ref.slice(1) : ref);
const curl = (source: Source, graph: string, route: string): string => `${source.address}/${source.routePath(graph, route)}`;

export function copiesOfDiff(source: Source, before: Place, after: Place, base: boolean, pinned: () => string): MenuItem[] {
  const [from, to] = [pointText(before.ref), pointText(after.ref)];
  const range = `${from}${base ? "..." : ".."}${to}`;
  const query = new URLSearchParams({ from, to, ...(base ? { since: "base" } : {}) }).toString();
  return [
    { label: text.diff.copyLink, run: () => void copyText(location.href) },
    { label: text.diff.copyPinned, run: () => void copyText(pinned()) },
    { label: text.merge.copyPython, run: () => void copyText(`graph.diff(${python(range)})`) },
    { label: text.merge.copyCommand, run: () => void copyText(`omnigraph diff ${shellQuote(range)}`) },
    { label: text.merge.copyCurl, run: () => void copyText(`curl -H "Authorization: Bearer $OMNIGRAPH_TOKEN" ${shellQuote(`${curl(source, before.graph, "diff")}?${query}`)}`) },
  ];
}

/** Returns the merge with its choices in Python. */
export function mergeInPython({ source, target, resolve }: MergeRequest): string {
  return `graph.merge(${python(source)}, ${python(target)}${resolve === null ? "" : `, resolve=${pythonLiteral(resolve)}`})`;
}

/** Returns the merge with its choices as a command. */
export function mergeCommand({ source, target, resolve }: MergeRequest): string {
  const options = Object.entries(resolve ?? {}).map(([what, how]) => {
    const words = typeof how === "string" ? how : JSON.stringify(how);
    return ` --resolve ${shellQuote(what === "*" ? words : `${what}=${words}`)}`;
  });
  return `omnigraph branch merge ${shellQuote(source)} --into ${shellQuote(target)}${options.join("")}`;
}

export function copiesOfMerge(source: Source, request: MergeRequest, targetCommit: string): MenuItem[] {
  const body = JSON.stringify({ source: request.source, target: request.target, source_commit: request.sourceCommit, ...(request.resolve === null ? {} : { resolve: request.resolve }) });
  const sent = `curl -X POST -H "Authorization: Bearer $OMNIGRAPH_TOKEN" -H 'Content-Type: application/json' -H 'If-Match: "${targetCommit}"' -d ${shellQuote(body)} ${shellQuote(curl(source, request.graph, "branches/merge"))}`;
  return [
    { label: text.merge.copyPython, run: () => void copyText(mergeInPython(request)) },
    { label: text.merge.copyCommand, run: () => void copyText(mergeCommand(request)) },
    { label: text.merge.copyCurl, run: () => void copyText(sent) },
    { label: text.merge.copyResolve, run: () => void copyText(JSON.stringify(request.resolve ?? {}, null, 2)) },
  ];
}
