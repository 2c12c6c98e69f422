import { describe, expect, it } from "vitest";

import type { RowChangeOutput } from "../src/api/reviewTypes";
import { changedProperties, cosineDistance, endsOf, matches, readKey, rowKey } from "../src/review/change";
import { mergeCommand, mergeInPython } from "../src/review/copy";
import { graphOf, listReader } from "../src/review/listReader";
import { compareWords, shortened, type Piece } from "../src/review/words";

const side = (pieces: readonly Piece[], without: Piece["op"]) => pieces.filter((each) => each.op !== without).map((each) => each.text).join("");

describe("words", () => {
  const pairs: readonly (readonly [string, string])[] = [
    ["", ""],
    ["", "new"],
    ["old", ""],
    ["the same text", "the same text"],
    ["At dusk three herons stood", "At dawn three night herons stood"],
    ["one two three", "three two one"],
    ["a  b\n\nc", "a b\nc d"],
    ["naïve café 東京", "naïve tea 京都 😀"],
    ["x ".repeat(900), "y ".repeat(900)],
    ["w ".repeat(30_000), `${"w ".repeat(29_000)}end`],
  ];
  it.each(pairs)("both texts can be read from the pieces (%#)", (before, after) => {
    const pieces = compareWords(before, after);
    expect(side(pieces, "added")).toBe(before);
    expect(side(pieces, "removed")).toBe(after);
  });

  it("marks changed words only", () => {
    expect(compareWords("At dusk three herons stood", "At dawn three night herons stood")).toEqual([
      { op: "same", text: "At " },
      { op: "removed", text: "dusk" },
      { op: "added", text: "dawn" },
      { op: "same", text: " three" },
      { op: "added", text: " night" },
      { op: "same", text: " herons stood" },
    ]);
  });

  it("shortens what both texts share", () => {
    const shared = "word ".repeat(100);
    const pieces = shortened(compareWords(`${shared}old ${shared}`, `${shared}new ${shared}`));
    expect(pieces.filter((each) => each.op !== "same").map((each) => each.text)).toEqual(["old", "new"]);
    expect(pieces.map((each) => each.text).join("").length).toBeLessThan(200);
  });
});

const update: RowChangeOutput = {
  table_key: "node:Project",
  kind: "node",
  type_name: "Project",
  id: "harbour:watch",
  op: "update",
  before: { id: "harbour:watch", status: "active", tags: ["a"], budget: 1 },
  after: { id: "harbour:watch", status: "done", tags: ["a"], budget: 1 },
};
const edge: RowChangeOutput = {
  table_key: "edge:Wrote",
  kind: "edge",
  type_name: "Wrote",
  id: "e1",
  op: "delete",
  before: { id: "e1", src: "ana", dst: "n1" },
  after: null,
  endpoints: { src: "ana", dst: "n1" },
};
const catalog = { hash: "", interfaces: [], nodes: [], edges: [{ name: "Wrote", key: [], properties: [], from: "Person", to: "Note" }] };
const all = { property: "", find: "", touched: null, withoutEdgesOf: null, catalog };

describe("changed rows", () => {
  it("names the changed properties only", () => {
    expect(changedProperties(update)).toEqual([{ name: "status", before: "active", after: "done" }]);
    expect(changedProperties(edge)).toEqual([]);
    expect(changedProperties({ ...edge, op: "update", after: { id: "e1", src: "bo", dst: "n1" } }).map((each) => each.name)).toEqual(["src"]);
  });

  it("has keys that can be read, whatever the id contains", () => {
    expect(readKey(rowKey(update))).toEqual({ kind: "node", type: "Project", id: "harbour:watch" });
    expect(readKey("Project")).toBeNull();
  });

  it("filters by property, text, actor and deleted nodes", () => {
    expect(matches(update, { ...all, property: "status" })).toBe(true);
    expect(matches(update, { ...all, property: "budget" })).toBe(false);
    expect(matches(update, { ...all, find: "DONE" })).toBe(true);
    expect(matches(update, { ...all, find: "paused" })).toBe(false);
    expect(matches(update, { ...all, touched: new Set(["node:Project:other"]) })).toBe(false);
    expect(endsOf(edge, catalog)).toEqual(["node:Person:ana", "node:Note:n1"]);
    expect(matches(edge, { ...all, withoutEdgesOf: new Set(["node:Person:ana"]) })).toBe(false);
    expect(matches(edge, { ...all, withoutEdgesOf: new Set(["node:Person:n1"]) })).toBe(true);
  });

  it("measures vectors by cosine distance", () => {
    expect(cosineDistance([1, 0, 0, 0], [0, 1, 0, 0])).toBe(1);
    expect(cosineDistance([1, 2, 3, 4], [2, 4, 6, 8])).toBeCloseTo(0);
    expect(cosineDistance([1], [1, 2])).toBeNull();
  });
});

describe("copies of a merge", () => {
  const request = { graph: "g", source: "review/spring", target: "main", sourceCommit: "c", resolve: { "*": "columns", "node:Project:a b": { status: "it's", open: true, note: null }, "node:Note:x": null } };
  it("are the call of the library and the command", () => {
    expect(mergeInPython(request)).toBe('graph.merge("review/spring", "main", resolve={"*": "columns", "node:Project:a b": {"status": "it\'s", "open": True, "note": None}, "node:Note:x": None})');
    expect(mergeCommand(request)).toBe("omnigraph branch merge review/spring --into main --resolve columns --resolve 'node:Project:a b={\"status\":\"it'\\''s\",\"open\":true,\"note\":null}' --resolve node:Note:x=null");
  });
});

describe("a list of changes", () => {
  const reader = listReader({
    key: "k",
    fromCommit: "a",
    toCommit: "b",
    beforeRef: null,
    afterRef: null,
    schemaSteps: [],
    catalog,
    page: (_, after) => Promise.resolve(after === undefined ? { changes: [update], next: "x" } : { changes: [edge], next: null }),
  });
  const signal = new AbortController().signal;
  it("is read as a whole, counted and paged", async () => {
    expect((await reader.summary(signal)).tables).toEqual({ "node:Project": { insert: 0, update: 1, delete: 0 }, "edge:Wrote": { insert: 0, update: 0, delete: 1 } });
    expect(await reader.rows({}, 1, undefined, signal)).toEqual({ changes: [update], next: "1" });
    expect(await reader.rows({}, 1, "1", signal)).toEqual({ changes: [edge] });
    expect(await reader.rows({ kind: "edge" }, 9, undefined, signal)).toEqual({ changes: [edge] });
  });
  it("has a graph with the ends of its edges", () => {
    const graph = graphOf([update, edge], catalog);
    expect(graph.nodes.map((node) => [node.type, node.id, node.op])).toEqual([["Project", "harbour:watch", "update"], ["Person", "ana", null], ["Note", "n1", null]]);
    expect(graph.edges).toHaveLength(1);
  });
});
