/** Parameters of a query: its head as written. */

export interface Parameter {
  readonly name: string;
  /** The type as written, such as `I64?`. */
  readonly type: string;
}

export interface QueryHead {
  readonly name: string;
  readonly params: readonly Parameter[];
}

const HEAD = /\bquery\s+(\w+)\s*\(([^)]*)\)/g;
const PARAMETER = /\$(\w+)\s*:\s*(\[[^\]]*\]\??|[A-Za-z]\w*(?:\(\s*\d+\s*\))?\??)/g;

/** Returns the text with comments and strings blanked, positions kept. */
export function bare(text: string): string {
  return text.replace(/\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:[^"\\]|\\.)*"/g, (found) => found.replace(/[^\n]/g, " "));
}

/** Returns the heads of the queries of a text; a text without `query` has none. */
export function headsOf(text: string): QueryHead[] {
  // A type may contain a parenthesis: `Vector(64)` is blanked for the search of the end, then read from the text.
  const code = bare(text);
  const closed = code.replace(/\(\s*\d+\s*\)/g, (found) => "_".repeat(found.length));
  return [...closed.matchAll(HEAD)].map((match) => {
    const from = match.index + match[0].indexOf("(") + 1;
    const inside = code.slice(from, match.index + match[0].length - 1);
    const params = [...inside.matchAll(PARAMETER)].map(([, name = "", type = ""]) => ({ name, type: type.replace(/\s/g, "") }));
    return { name: match[1] ?? "", params };
  });
}

/** True if a text changes the graph, as far as its words tell; the server decides. */
export const looksLikeChange = (text: string): boolean => /(^|[\s{])(insert|upsert|update|delete|unify)\s+[A-Z]/.test(bare(text));

/**
 * Returns the text of one query with a limit of its rows; null if it has an order or a limit, or is written in a way that only the
 * server can read.
 */
export function withLimit(text: string, rows: number): string | null {
  const code = bare(text);
  const named = headsOf(text).length;
  const at = [...code.matchAll(/\breturn\b/g)].at(-1)?.index;
  const ends = named === 0 ? /^return\s*\{[^{}]*\}\s*$/ : /^return\s*\{[^{}]*\}\s*\}\s*$/;
  if (at === undefined || named > 1 || !ends.test(code.slice(at))) return null;
  const end = named === 0 ? text.length : code.lastIndexOf("}");
  return `${text.slice(0, end)}\nlimit ${rows}\n${text.slice(end)}`;
}
