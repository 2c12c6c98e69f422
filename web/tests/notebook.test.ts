import { describe, expect, it } from "vitest";

import type { NeighborOutput } from "../src/api/types";
import { Mark } from "../src/picture/scene";
import { pictureOfDocument, propertiesOf, SHOWN_MAX, tableOfDocument, type ShownDocument } from "../src/shown/document";
import { NotebookSource, type WidgetModel } from "../src/source/notebook";

/** A model whose messages go to `answer`, as anywidget's comm takes them to Python. */
class FakeModel implements WidgetModel {
  readonly sent: Record<string, unknown>[] = [];
  private readonly listeners = new Set<(content: never) => void>();

  get = () => undefined;
  set = () => undefined;
  save_changes = () => undefined;
  send(content: unknown) {
    this.sent.push(content as Record<string, unknown>);
  }
  on(event: string, listener: (content: never) => void) {
    expect(event).toBe("msg:custom");
    this.listeners.add(listener);
  }
  off(_: string, listener: (content: never) => void) {
    this.listeners.delete(listener);
  }
  answer(content: unknown) {
    for (const listener of this.listeners) listener(content as never);
  }
  get listening() {
    return this.listeners.size;
  }
}

describe("questions of a notebook", () => {
  it("get their own answers, in any order", async () => {
    const model = new FakeModel();
    const source = new NotebookSource(model);
    const first = source.ask("expand", { type: "A", id: "1" });
    const second = source.ask("page", { start: 5 });
    expect(model.sent).toEqual([{ number: 1, ask: "expand", type: "A", id: "1" }, { number: 2, ask: "page", start: 5 }]);
    model.answer({ number: 2, answer: { rows: [] } });
    model.answer({ number: 9, answer: "nobody asked" });
    model.answer({ number: 1, answer: { neighbors: [] } });
    expect(await first).toEqual({ neighbors: [] });
    expect(await second).toEqual({ rows: [] });
  });

  it("fail with the problem of Python, and end with the widget", async () => {
    const model = new FakeModel();
    const source = new NotebookSource(model);
    const refused = source.ask("why", {});
    model.answer({ number: 1, problem: { error: "there is no node", code: "not_found" } });
    await expect(refused).rejects.toMatchObject({ message: "there is no node", code: "not_found" });
    const open = source.ask("why", {});
    source.close();
    await expect(open).rejects.toMatchObject({ name: "AbortError" });
    expect(model.listening).toBe(0);
  });
});

const SHOWN: ShownDocument = {
  version: 1,
  title: "t",
  types: ["A", "B"],
  nodes: [{ type: "A", id: "1", label: "one", data: { x: 1 } }, { type: "B", id: "2", label: "two", op: "delete" }],
  edges: [{ from: 0, to: 1, label: "e", op: "delete" }],
  table: { columns: [{ name: "x", kind: "integer", type: null }], rows: [[1], [2]], total: 3 },
  notice: null,
  asks: [],
};
const NEIGHBOR: NeighborOutput = { edge: "f", direction: "in", edge_id: "e", edge_data: {}, type: "B", id: "3", data: { name: "three" } };

describe("a document", () => {
  it("is a picture with marks and with the nodes that were expanded", () => {
    const { data, leftOut } = pictureOfDocument(SHOWN, [{ type: "A", id: "1", neighbors: [NEIGHBOR] }]);
    expect(data.nodes.map((node) => node.label)).toEqual(["one", "two", "three"]);
    expect([...data.marks]).toEqual([Mark.None, Mark.Removed, Mark.None]);
    expect([...data.src]).toEqual([0, 2]);
    expect([...data.kinds]).toEqual([0, 1, 1]);
    expect(leftOut).toBe(0);
    const many = { ...SHOWN, nodes: Array.from({ length: SHOWN_MAX + 5 }, (_, at) => ({ type: "A", id: `${at}`, label: "" })) };
    expect(pictureOfDocument(many, []).leftOut).toBe(5);
  });

  it("is a table with further rows, and properties by node", () => {
    expect(tableOfDocument(SHOWN.table!, [[3]])).toMatchObject({ rowCount: 3, next: null });
    expect(tableOfDocument(SHOWN.table!, []).next).toBe("2");
    expect(propertiesOf(SHOWN, [], "A", "1")).toEqual({ x: 1 });
    expect(propertiesOf(SHOWN, [{ type: "A", id: "1", neighbors: [NEIGHBOR] }], "B", "3")).toEqual({ name: "three" });
    expect(propertiesOf(SHOWN, [], "B", "9")).toBeNull();
  });
});
