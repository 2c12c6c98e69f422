/**
 * The query of a search test: it ranks the nodes of a type as the search did, keeps the first k, and returns a row only if
 * an expected node is missing among them. With `@check(empty)` a proposal fails on such a row, which lists what was found.
 */
import type { CatalogOutput, SearchHitOutput } from "../../api/types";
import { filterValue, typeOf, type Settings } from "./settings";

const RANKINGS_MAX = 8;

export interface SearchTest {
  readonly name: string;
  readonly text: string;
  readonly settings: Settings;
  /** The hits that must be found. */
  readonly expected: readonly Pick<SearchHitOutput, "type" | "id" | "why">[];
  readonly first: number;
  readonly required: boolean;
  readonly description: string;
}

/** Writes a text as a string of the query language. */
export function quoted(value: string): string {
  const escapes: Record<string, string> = { "\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t" };
  return `"${value.replace(/[\\"\n\r\t]/g, (sign) => escapes[sign] ?? sign)}"`;
}

const literal = (value: unknown, type: string): string => {
  if (Array.isArray(value)) return `[${value.map((each) => literal(each, type)).join(", ")}]`;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = quoted(String(value));
  return type === "Date" ? `date(${text})` : type === "DateTime" ? `datetime(${text})` : type === "UUID" ? `uuid(${text})` : text;
};

/** Returns the queries of a test with their expected numbers: one query for each type of the expected nodes. */
export function testQueries(test: SearchTest, catalog: CatalogOutput): { type: string; name: string; text: string; expected: number }[] {
  const types = [...new Set(test.expected.map((each) => each.type))];
  return types.map((type) => {
    const name = types.length === 1 ? test.name : `${test.name}_${type.toLowerCase()}`;
    const ids = test.expected.filter((each) => each.type === type).map((each) => each.id);
    return { type, name, expected: ids.length, text: queryOf(test, catalog, type, name, ids) };
  });
}

function queryOf(test: SearchTest, catalog: CatalogOutput, type: string, name: string, ids: readonly string[]): string {
  const rankings = rankingsOf(test, catalog, type);
  const order = rankings.length === 1 ? rankings[0] : `rrf(${rankings.join(", ")})`;
  const where = test.settings.where
    .filter((each) => each.value !== "")
    .map((each) => {
      const kind = typeOf(catalog, type, each.property);
      return `\n        $x.${each.property} ${each.operator} ${literal(filterValue(each, kind), kind)}`;
    });
  return `query ${name}()
    @description(${quoted(test.description)})
    @expose(false)
    @check(empty${test.required ? ", required" : ""})
{
    match {
        $x: ${type}${where.join("")}
    }
    with { $x }
    order { ${order} }
    limit ${test.first}
    match { id($x) in [${ids.map(quoted).join(", ")}] }
    with { count($x) as $found, collect(id($x)) as $ids }
    having { $found < ${ids.length} }
    return { $found as found, $ids as ids }
    order { found }
}
`;
}

/** Returns the rankings of a type: by the properties that ranked the expected nodes, else by all its texts and vectors. */
export function rankingsOf(test: Pick<SearchTest, "text" | "settings" | "expected">, catalog: CatalogOutput, type: string): string[] {
  const node = catalog.nodes.find((each) => each.name === type);
  const plain = (kind: string) => kind.replace("?", "");
  const used = new Set(test.expected.filter((each) => each.type === type).flatMap((each) => each.why.map((share) => share.property)));
  const chosen = (is: (kind: string) => boolean) => {
    const all = (node?.properties ?? []).filter((each) => is(plain(each.type))).map((each) => each.name);
    const ranked = all.filter((each) => used.has(each));
    return ranked.length > 0 ? ranked : all;
  };
  const by = test.settings.by;
  const words = by === "meaning" ? [] : chosen((kind) => kind === "String").map((each) => `bm25($x.${each}, ${quoted(test.text)})`);
  const meaning = by === "words" ? [] : chosen((kind) => kind.startsWith("Vector(")).map((each) => `nearest($x.${each}, ${quoted(test.text)})`);
  return [...meaning, ...words].slice(0, RANKINGS_MAX);
}

/** Returns a name for a test of a text: letters, digits and underscores. */
export function nameFor(text: string): string {
  const words = text.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  return `finds_${words.slice(0, 4).join("_") || "nodes"}`.slice(0, 48);
}
