/** The current link. Screens read `link` and change it with `go` (a new entry of the history) or `replace`. */
import { signal } from "@preact/signals";

import { formatLink, HOME, isPinned, MAIN, parseLink, type Link } from "./link";

export const link = signal<Link>({ graph: "", ref: MAIN, screen: HOME, path: [], params: {} });
export const ignoredParts = signal<readonly string[]>([]);

let graphs = "";
/** Graph → the branch that was shown last. */
const branches = new Map<string, string>();
let screens: readonly string[] = [];

/** Starts to follow the address. */
export function followAddress(defaultGraph: string, names: readonly string[]): void {
  graphs = defaultGraph;
  screens = names;
  read();
  window.addEventListener("hashchange", read);
}

function read(): void {
  const parsed = parseLink(location.hash, graphs, screens);
  ignoredParts.value = parsed.ignored;
  link.value = parsed.link;
  if (!isPinned(parsed.link.ref)) branches.set(parsed.link.graph, parsed.link.ref);
}

/** The branch of the link; of a pinned one, the branch that this page showed before it. */
export const lastBranch = (): string => branches.get(link.value.graph) ?? MAIN;

export type Change = Partial<Link>;

/** Returns the current link with some members changed; another screen starts without path and parameters. */
export function linkTo(change: Change): Link {
  const current = link.value;
  const leaves = change.screen !== undefined && change.screen !== current.screen;
  return { ...current, ...(leaves ? { path: [], params: {} } : {}), ...change };
}

/** Returns the address of a changed link, for `href`. */
export const href = (change: Change): string => formatLink(linkTo(change));

export function go(change: Change): void {
  location.hash = href(change);
}

export function replace(change: Change): void {
  history.replaceState(null, "", href(change));
  read();
}
