/**
 * The link of a page: the fragment of its address and the state that it stands for.
 *
 *     #/g/<graph>/<ref>/<screen>[/<part>…][?<name>=<value>&…]
 *
 * Every part is percent-encoded. `ref` is a branch, or `@` and a commit, tag, version or time. Servers and their logs
 * never receive a fragment. The module is pure: `parseLink(formatLink(link))` gives the same link.
 */

export interface Link {
  readonly graph: string;
  readonly ref: string;
  readonly screen: string;
  readonly path: readonly string[];
  readonly params: Readonly<Record<string, string>>;
}

export interface ParsedLink {
  readonly link: Link;
  /** Parts that mean nothing here; the page names them and goes on. */
  readonly ignored: readonly string[];
}

export const MAIN = "main";
export const HOME = "home";

const encode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return null;
  }
}

/** Returns the fragment of a link, with `#`. */
export function formatLink(link: Link): string {
  const parts = [link.graph, link.ref, link.screen, ...link.path].map(encode);
  const params = Object.entries(link.params)
    .filter(([, value]) => value !== "")
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([name, value]) => `${encode(name)}=${encode(value)}`);
  return `#/g/${parts.join("/")}${params.length > 0 ? `?${params.join("&")}` : ""}`;
}

/** Reads a fragment; an empty or foreign one is the home page of the default graph. */
export function parseLink(fragment: string, defaultGraph: string, screens: readonly string[]): ParsedLink {
  const ignored: string[] = [];
  const text = fragment.startsWith("#") ? fragment.slice(1) : fragment;
  const [place = "", search = ""] = splitOnce(text, "?");
  const [root = "", start, ...rest] = place.split("/");
  if (root !== "" || (start !== undefined && start !== "g")) {
    if (text !== "") ignored.push(text);
    return { link: { graph: defaultGraph, ref: MAIN, screen: HOME, path: [], params: {} }, ignored };
  }
  const decoded: string[] = [];
  for (const part of rest) {
    const value = decode(part);
    if (value === null) ignored.push(part);
    else decoded.push(value);
  }
  while (decoded.at(-1) === "") decoded.pop();
  const [graph, ref, screen, ...path] = decoded;
  const known = screen === undefined || screens.includes(screen);
  if (!known) ignored.push(screen);
  const link: Link = {
    graph: graph || defaultGraph,
    ref: ref || MAIN,
    screen: known ? (screen ?? HOME) : HOME,
    path: known ? path : [],
    params: parseParams(search, ignored),
  };
  return { link, ignored };
}

function parseParams(search: string, ignored: string[]): Record<string, string> {
  const params: Record<string, string> = {};
  for (const part of search.split("&")) {
    if (part === "") continue;
    const [rawName = "", rawValue = ""] = splitOnce(part, "=");
    const name = decode(rawName);
    const value = decode(rawValue);
    if (name === null || value === null || name === "" || Object.hasOwn(params, name)) ignored.push(part);
    else if (value !== "") Object.defineProperty(params, name, { value, enumerable: true, configurable: true, writable: true });
  }
  return params;
}

function splitOnce(text: string, sign: string): [string, string?] {
  const at = text.indexOf(sign);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + sign.length)];
}

/** Returns the request members that read a ref. */
export function pointOf(ref: string): { branch: string } | { at: string } {
  return ref.startsWith("@") ? { at: ref.slice(1) } : { branch: ref };
}

export const isPinned = (ref: string): boolean => ref.startsWith("@");

/** Returns the ref of a tag. `name:` precedes a name that a server takes for a version or a time. */
export const tagRef = (name: string): string => (/^(\d+$|\d{4}-\d\d-\d\d)/.test(name) ? `@name:${name}` : `@${name}`);
