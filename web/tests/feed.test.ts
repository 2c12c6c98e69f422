/** The change feed: events, cards and bursts, and the copied code. */
import { describe, expect, test } from "vitest";

import { parseEvent, readEvents } from "../src/api/events";
import type { ChangeBlockOutput, ImageChangeOutput } from "../src/api/feedTypes";
import { addBlocks, cardsOf, changedProperties, countsOf, KEPT } from "../src/screens/changes/cards";
import { baselineCommand, commandConsumer, curlConsumer, pythonConsumer } from "../src/screens/changes/consumer";

const change = (id: string, op: "insert" | "update" | "delete" = "insert"): ImageChangeOutput => ({ kind: "node", type: { id: "t", name: "Note" }, id, op });
const block = (id: string, seconds: number, changes: ImageChangeOutput[] = []): ChangeBlockOutput => ({
  cause: { graph_commit_id: id, parent_commit_id: null, actor_id: null, authored_at: seconds * 1_000_000, message: null, schema_changed: false },
  changes,
});
const sizes = (blocks: readonly ChangeBlockOutput[]): number[] => cardsOf(blocks).map((card) => card.blocks.length);

describe("events", () => {
  test("an event has an id, a kind and data of several lines; a comment is none", () => {
    expect(parseEvent("id: 7\nevent: changes\ndata: a\ndata: b")).toEqual({ id: "7", kind: "changes", data: "a\nb" });
    expect(parseEvent("id: 7")).toBeNull();
    expect(parseEvent(": keep-alive")).toBeNull();
  });

  test("events are read across the borders of chunks", async () => {
    const parts = ["id: 1\nda", "ta: ä", "\n\nid: 2\n", "\n: no\n\ndata: x\n\nid: lost"].map((part) => new TextEncoder().encode(part));
    const stream = new ReadableStream({ start: (to) => (parts.forEach((part) => to.enqueue(part)), to.close()) });
    const found: unknown[] = [];
    const ids: string[] = [];
    for await (const event of readEvents(new Response(stream), (id) => ids.push(id))) found.push([event.id, event.data]);
    expect(found).toEqual([["1", "ä"], [null, "x"]]);
    expect(ids).toEqual(["1", "2"]);
  });
});

describe("cards", () => {
  test("parts of one commit are one block, and the oldest are dropped", () => {
    const joined = addBlocks([block("a", 1, [change("x")])], [block("a", 1, [change("y")]), block("b", 2)]);
    expect(joined.map((each) => each.changes.length)).toEqual([2, 0]);
    const many = Array.from({ length: KEPT + 5 }, (_, at) => block(`c${at}`, at));
    expect(addBlocks([], many).map((each) => each.cause.graph_commit_id).at(0)).toBe("c5");
  });

  test("twenty commits in a second are twenty cards, twenty-one are one, newest first", () => {
    const second = (n: number, from: number) => Array.from({ length: n }, (_, at) => block(`s${from}-${at}`, from + at / 100));
    expect(sizes(second(20, 5))).toEqual(Array.from({ length: 20 }, () => 1));
    expect(sizes(second(21, 5))).toEqual([21]);
    expect(sizes([block("before", 1), ...second(30, 5), block("after", 9)])).toEqual([1, 30, 1]);
    expect(cardsOf([block("before", 1), ...second(30, 5)])[1]?.blocks[0]?.cause.graph_commit_id).toBe("before");
  });

  test("a burst of several seconds is one card", () => {
    const blocks = Array.from({ length: 90 }, (_, at) => block(`b${at}`, at / 30));
    expect(sizes(blocks)).toEqual([90]);
  });

  test("counts and changed properties", () => {
    expect(countsOf([block("a", 1, [change("x"), change("y", "delete")]), block("b", 1, [change("x", "delete")])])).toEqual({ "node:Note": { insert: 1, update: 0, delete: 2 } });
    const update = { ...change("x", "update"), before: { properties: { a: 1, b: [1], c: null } }, after: { properties: { a: 2, b: [1], d: 1 } } };
    expect(changedProperties(update)).toEqual(["a", "c", "d"]);
  });
});

test("copied code has the filter, quoted", () => {
  const request = { graph: "g", branch: "it's", type: "Note", op: "update", start: "now" };
  expect(pythonConsumer("http://h", request)).toContain('start="now", page=page, branch="it\'s", types=["Note"], ops=["update"])');
  expect(curlConsumer("http://h", "changes/stream", request)).toContain("branch=it%27s&start=now&type=Note&op=update");
  expect(commandConsumer("http://h", request)).toContain("--branch 'it'\\''s'");
  expect(baselineCommand("a b")).toContain("--branch 'a b'");
});
