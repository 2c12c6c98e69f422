import { describe, expect, it } from "vitest";

import type { CatalogOutput, PropertyOutput, TypeOutput } from "../src/api/types";
import { drawingOf } from "../src/screens/schema/boxes";
import { compareCatalogs, countMarks } from "../src/screens/schema/compare";
import { layout } from "../src/screens/schema/layout";

const property = (number: number | undefined, name: string, type = "String"): PropertyOutput => ({ name, type, optional: false, ...(number === undefined ? {} : { number }) });
const type = (number: number | undefined, name: string, properties: PropertyOutput[], more: Partial<TypeOutput> = {}): TypeOutput => ({
  name,
  key: [],
  properties,
  constraints: [],
  ...(number === undefined ? {} : { number }),
  ...more,
});
const catalog = (nodes: TypeOutput[], edges: TypeOutput[] = [], interfaces: TypeOutput[] = []): CatalogOutput => ({ hash: "", nodes, edges, interfaces });

describe("comparison of schemas", () => {
  it("finds renamed types and properties by their numbers", () => {
    const before = catalog([type(1, "Team", [property(2, "name"), property(3, "goal")], { constraints: [{ kind: "index", columns: ["goal"], text: "@index(goal)" }] })]);
    const after = catalog([type(1, "Crew", [property(2, "name"), property(3, "aim")], { constraints: [{ kind: "index", columns: ["aim"], text: "@index(aim)" }] })]);
    const [crew] = compareCatalogs(after, before);
    expect(crew).toMatchObject({ mark: "renamed", before: "Team", notes: [] });
    expect(crew?.properties.map((each) => [each.property.name, each.mark, each.before])).toEqual([
      ["name", "same", null],
      ["aim", "renamed", "goal"],
    ]);
  });

  it("takes a name that was dropped and added again for another type", () => {
    const found = compareCatalogs(catalog([type(9, "Team", [])]), catalog([type(1, "Team", [])]));
    expect(found.map((each) => each.mark).sort()).toEqual(["added", "removed"]);
  });

  it("compares by name without numbers, and tells changed types, constraints and cardinalities", () => {
    const before = catalog([type(undefined, "A", [property(undefined, "x", "I64"), property(undefined, "gone")])], [type(undefined, "E", [], { from: "A", to: "A", cardinality: "0.." })]);
    const after = catalog([type(undefined, "A", [property(undefined, "x", "I64?")])], [type(undefined, "E", [], { from: "A", to: "A", cardinality: "0..1" })]);
    const [a, e] = compareCatalogs(after, before);
    expect(a?.properties.map((each) => each.mark)).toEqual(["changed", "removed"]);
    expect(e).toMatchObject({ mark: "changed", notes: ["+ @card(0..1)", "− @card(0..)"] });
    expect(countMarks(compareCatalogs(after, after))).toMatchObject({ same: 2, changed: 0 });
  });
});

describe("schema picture", () => {
  const titled = type(1, "Titled", [property(2, "title")]);
  const note = type(3, "Note", [property(4, "slug"), property(5, "meaning", "Vector(64)?")], { key: ["slug"], implements: ["Titled"] });
  const cites = type(6, "Cites", [], { from: "Note", to: "Note", cardinality: "0..3" });
  const drawing = drawingOf(compareCatalogs(catalog([note], [cites], [titled]), null), () => 7);

  it("has boxes with signs and rows, and lines with cardinalities", () => {
    expect(drawing.boxes.map((box) => [box.name, box.dashed, box.rows])).toEqual([
      ["Note", false, 7],
      ["Titled", true, null],
    ]);
    expect(drawing.boxes[0]?.lines.map((line) => line.sign)).toEqual(["key", "vector"]);
    expect(drawing.lines.map((line) => [line.label, line.cardinality, line.dashed])).toEqual([
      ["", "", true],
      ["Cites", "0..3", false],
    ]);
  });

  it("is placed the same way each time, inside its frame", () => {
    const placed = layout(drawing);
    expect(layout(drawing)).toEqual(placed);
    for (const { x, y, box } of placed.boxes) {
      expect(x >= 0 && y >= 0 && x + box.width <= placed.width && y + box.height <= placed.height).toBe(true);
    }
    const own = placed.lines.find((each) => each.line.label === "Cites");
    expect(own?.points).toHaveLength(4);
  });

  it("keeps boxes and labels apart in drawings with cycles, loops and parallel edges", () => {
    const names = Array.from({ length: 12 }, (_, index) => `Type${index}`);
    const ends = Array.from({ length: 30 }, (_, index) => [index % 12, (index * index + 3 * index) % 12] as const);
    const edges = ends.map(([from, to], index) => type(100 + index, `Edge${index}`, [], { from: `Type${from}`, to: `Type${to}` }));
    const crowded = drawingOf(compareCatalogs(catalog(names.map((name, index) => type(index, name, [property(50 + index, "slug")])), edges), null), () => null);
    const placed = layout(crowded);
    const boxes = placed.boxes.map(({ x, y, box }) => [x, y, x + box.width, y + box.height] as const);
    const labels = placed.lines.flatMap(({ line, label }) => (label === null ? [] : [[label.x - line.width / 2, label.y - 12, label.x + line.width / 2, label.y + 12] as const]));
    expect(labels).toHaveLength(30);
    const all = [...boxes, ...labels];
    all.forEach((a, index) => {
      expect(a[0] >= 0 && a[1] >= 0 && a[2] <= placed.width && a[3] <= placed.height).toBe(true);
      for (const b of all.slice(index + 1)) expect(a[0] < b[2] - 1 && b[0] < a[2] - 1 && a[1] < b[3] - 1 && b[1] < a[3] - 1, `${a} over ${b}`).toBe(false);
    });
    for (const { line, points } of placed.lines) {
      const onBorder = (id: string, at: { x: number; y: number }) => {
        const [left, top, right, bottom] = boxes[placed.boxes.findIndex(({ box }) => box.id === id)] as (typeof boxes)[number];
        return at.x >= left - 1 && at.x <= right + 1 && at.y >= top - 1 && at.y <= bottom + 1;
      };
      expect(onBorder(line.from, points[0] as { x: number; y: number })).toBe(true);
      expect(onBorder(line.to, points.at(-1) as { x: number; y: number })).toBe(true);
    }
  });

  it("draws an edge of a renamed type at its new name", () => {
    const before = catalog([type(1, "Team", [])], [type(2, "Leads", [], { from: "Team", to: "Team" })]);
    const lines = drawingOf(compareCatalogs(catalog([type(1, "Crew", [])]), before), () => null).lines;
    expect(lines.map((line) => [line.from, line.to, line.mark])).toEqual([["node Crew", "node Crew", "removed"]]);
  });
});
