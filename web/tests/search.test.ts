import { describe, expect, it } from "vitest";

import type { CatalogOutput } from "../src/api/types";
import { moveOf, paramsOf, requestOf, settingsOf } from "../src/screens/search/settings";
import { markedParts } from "../src/screens/search/snippet";
import { nameFor, quoted, testQueries } from "../src/screens/search/testQuery";

const property = (name: string, type: string) => ({ name, type, optional: type.endsWith("?") });
const CATALOG: CatalogOutput = {
  hash: "",
  interfaces: [],
  edges: [],
  nodes: [
    { name: "Note", key: ["slug"], properties: [property("slug", "String"), property("text", "String"), property("stars", "I64?"), property("day", "Date"), property("meaning", "Vector(64)?")] },
    { name: "Person", key: ["name"], properties: [property("name", "String")] },
  ],
};
const share = (by: "words" | "meaning", name: string) => ({ by, property: name, rank: 1, score: 1, share: 0.1 });

describe("settings of a search", () => {
  it("are the same after a turn through the link", () => {
    const settings = { type: "Note", by: "words" as const, where: [{ property: "stars", operator: ">=", value: "3" }] };
    for (const side of ["a", "b"] as const) expect(settingsOf(paramsOf(settings, side), side)).toEqual(settings);
  });

  it("ignore damaged filters", () => {
    for (const where of ["{", "{}", "[[1,2,3]]", '[["a","drop table","x"]]']) expect(settingsOf({ where }, "a").where).toEqual([]);
  });

  it("become a request with typed values", () => {
    const where = [
      { property: "stars", operator: ">=", value: "3" },
      { property: "slug", operator: "in", value: "a, b" },
      { property: "text", operator: "=", value: "" },
    ];
    expect(requestOf("x", { type: "Note", by: "both", where }, CATALOG, 20).filters).toEqual({ stars: { ">=": 3 }, slug: { in: ["a", "b"] } });
    expect(requestOf("x", { type: "", by: "both", where: [] }, CATALOG, 20)).toEqual({ text: "x", types: [], by: "both", limit: 20 });
  });

  it("compare ranks", () => {
    const a = [{ type: "Note", id: "x", rank: 4 }];
    expect(moveOf(a, { type: "Note", id: "x", rank: 1 })).toBe(3);
    expect(moveOf(a, { type: "Person", id: "x", rank: 1 })).toBe(null);
  });
});

describe("the query of a search test", () => {
  const test = {
    name: "finds_it",
    text: 'the "weir"',
    settings: { type: "", by: "both" as const, where: [{ property: "day", operator: ">", value: "2026-01-01" }] },
    expected: [{ type: "Note", id: 'a"b', why: [share("words", "text"), share("meaning", "meaning")] }],
    first: 5,
    required: true,
    description: "d",
  };

  it("ranks by the properties that ranked the expected node", () => {
    const [query] = testQueries(test, CATALOG);
    expect(query?.text).toContain('order { rrf(nearest($x.meaning, "the \\"weir\\""), bm25($x.text, "the \\"weir\\"")) }');
    expect(query?.text).toContain('$x.day > date("2026-01-01")');
    expect(query?.text).toContain('id($x) in ["a\\"b"]');
    expect(query?.text).toContain("@check(empty, required)");
  });

  it("is one query for each type", () => {
    const expected = [...test.expected, { type: "Person", id: "p", why: [] }];
    const queries = testQueries({ ...test, expected, settings: { type: "", by: "words", where: [] } }, CATALOG);
    expect(queries.map((each) => each.name)).toEqual(["finds_it_note", "finds_it_person"]);
    expect(queries[1]?.text).toContain("order { bm25($x.name,");
  });

  it("quotes texts and makes names", () => {
    expect(quoted('a\\b\n"')).toBe('"a\\\\b\\n\\""');
    expect(nameFor("Night herons, at the weir!")).toBe("finds_night_herons_at_the");
    expect(nameFor("…")).toBe("finds_nodes");
  });
});

describe("a snippet", () => {
  it("starts near the first place and marks the words", () => {
    const value = `${"x ".repeat(200)}heron ${"y ".repeat(200)}`;
    const parts = markedParts(value, [[400, 405]]);
    expect(parts.find((part) => part.marked)?.text).toBe("heron");
    expect(parts[0]?.text).toBe("…");
    expect(parts.map((part) => part.text).join("").length).toBeLessThan(230);
  });
});
