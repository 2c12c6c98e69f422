import { describe, expect, it } from "vitest";

import type { ResultTable } from "../src/api/result";
import type { CatalogOutput } from "../src/api/types";
import { bubblesOf, groupingsOf, groupRequest, nodeColumns } from "../src/screens/query/groups";

function table(columns: readonly (readonly [string, string])[], rows: readonly (readonly unknown[])[] = []): ResultTable {
  return {
    columns: columns.map(([name, type]) => ({ name, kind: type === "" ? ("integer" as const) : ("node" as const), type: type === "" ? null : type })),
    hops: [{ source: 0, target: 1, label: "Wrote", directed: true, several: false }],
    rowCount: rows.length,
    next: null,
    commit: "c",
    elapsedMs: 0,
    cell: (column, row) => rows[row]?.[column],
  };
}

const CATALOG = {
  hash: "",
  interfaces: [],
  nodes: [{ name: "Person", key: ["handle"], properties: [{ name: "handle", type: "String", optional: false }, { name: "name", type: "String", optional: false }, { name: "role", type: "enum(a, b)", optional: false }, { name: "v", type: "Vector(4)", optional: false }] }],
  edges: [],
} as CatalogOutput;
const RESULT = table([["who", "Person"], ["n", "Note"]]);
const INLINE = "match { $a: Person $a wrote $n } return { $a as who, $n } order { $n.title } limit 9";
const COLUMNS = nodeColumns(RESULT, INLINE);

describe("groups", () => {
  it("know the variables of columns, also of renamed ones", () => {
    expect(COLUMNS.map((column) => column.variable)).toEqual(["a", "n"]);
  });

  it("are offered by type, then by properties with few values; keys and vectors are not", () => {
    expect(groupingsOf(COLUMNS, CATALOG)).toEqual(["type", "a.role", "a.name"]);
  });

  it("are counted by one query, which keeps the match and the head", () => {
    const request = { text: `query q($p: String) { ${INLINE} }`, name: null, params: { p: "return" } };
    expect(groupRequest(request, COLUMNS, "type")?.text).toBe("query q($p: String) { match { $a: Person $a wrote $n } return { count(distinct $a) as n0, count(distinct $n) as n1 } }");
    expect(groupRequest({ ...request, text: INLINE }, COLUMNS, "n.title")?.text).toBe("match { $a: Person $a wrote $n } return { $n.title as value, count(distinct $a) as n0, count(distinct $n) as n1 } order { n1 desc } limit 60 ");
    expect(groupRequest({ ...request, text: "match { $a: A }" }, COLUMNS, "type")).toBeNull();
  });

  it("become bubbles with counts, joined by the hops of the result", () => {
    const byType = bubblesOf(table([["n0", ""], ["n1", ""]], [[10n, 1000n]]), RESULT, COLUMNS, "type", CATALOG);
    expect(byType.data.nodes.map((node) => node.label)).toEqual(["a: Person · 10", `n: Note · ${(1000).toLocaleString()}`]);
    expect(byType.data.sizes[1]).toBeGreaterThan(byType.data.sizes[0] as number);
    const byRole = bubblesOf(table([["value", ""], ["n0", ""], ["n1", ""]], [["a", 7n, 70n], [null, 3n, 9n]]), RESULT, COLUMNS, "a.role", CATALOG);
    expect(byRole.data.nodes.map((node) => node.label)).toEqual(["a · 7", "n: Note", "null · 3"]);
    expect(byRole.data.edgeLabels).toEqual(["Wrote 70", "Wrote 9"]);
    expect(byRole.groups).toBe(2);
  });
});
