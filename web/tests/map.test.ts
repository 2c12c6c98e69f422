import { describe, expect, it } from "vitest";

import type { PropertyOutput } from "../src/api/types";
import { atX, atY, enclosed, fitting, groupsOf, nearest, pointsOf, zoomed } from "../src/screens/map/points";

const table = (rows: readonly (readonly [string, number, number])[]) => ({ rowCount: rows.length, cell: (column: number, row: number) => rows[row]?.[column] });
const square = pointsOf(table([["a", 0, 0], ["b", 10, 0], ["c", 10, 10], ["d", 0, 10]]));
const property = (type: string): PropertyOutput => ({ name: "p", type, optional: true });
const words = { none: "no value", others: "others" };

describe("points of a map", () => {
  it("are evenly spaced rows of a larger table", () => {
    const many = pointsOf(table(Array.from({ length: 10 }, (_, row) => [`n${row}`, row, 0] as const)), 5);
    expect(many.ids).toEqual(["n0", "n2", "n4", "n6", "n8"]);
    expect(many.total).toBe(10);
  });

  it("fit into the frame, with y upwards", () => {
    const view = fitting(square, 200, 100);
    expect(atY(view, 10)).toBeLessThan(atY(view, 0));
    for (const value of [0, 10]) {
      expect(atX(view, value)).toBeGreaterThan(0);
      expect(atX(view, value)).toBeLessThan(200);
      expect(atY(view, value)).toBeGreaterThan(0);
      expect(atY(view, value)).toBeLessThan(100);
    }
    const one = fitting(pointsOf(table([["a", 7, 7]])), 200, 100);
    expect([atX(one, 7), atY(one, 7)]).toEqual([100, 50]);
  });

  it("stay under the pointer when zoomed", () => {
    const view = fitting(square, 200, 100);
    const [x, y] = [atX(view, 10), atY(view, 10)];
    const near = zoomed(view, 3, x, y);
    expect(atX(near, 10)).toBeCloseTo(x);
    expect(atY(near, 10)).toBeCloseTo(y);
    expect(atX(near, 0)).toBeCloseTo(x - 3 * (x - atX(view, 0)));
  });

  it("are found near a pixel and inside a line", () => {
    const view = { scale: 1, dx: 0, dy: 20 };
    expect(nearest(square, view, 9, 11, 5)).toBe(2);
    expect(nearest(square, view, 5, 15, 3)).toBeNull();
    // A bent line around a, b and c that leaves out d.
    expect(enclosed(square, view, [[-5, 25], [15, 25], [15, 5], [8, 5], [-5, 18]])).toEqual([0, 1, 2]);
    expect(enclosed(square, view, [[-5, 25]])).toEqual([]);
  });
});

describe("groups of points", () => {
  it("are the most frequent values", () => {
    const values = ["x", null, "y", "x", "__proto__"];
    const { names, of } = groupsOf(values, property("String?"), words);
    expect(names[0]).toBe("x");
    expect(new Set(names)).toEqual(new Set(["x", "no value", "y", "__proto__"]));
    expect(values.map((_, index) => names[of[index] ?? -1])).toEqual(["x", "no value", "y", "x", "__proto__"]);
    const many = groupsOf(Array.from({ length: 20 }, (_, index) => `v${index}`), property("String"), words);
    expect(many.names).toHaveLength(7);
    expect(many.of[19]).toBe(6);
  });

  it("are ranges of numbers, in the order of numbers", () => {
    const values = ["9", "10", "2", "100", "50", null];
    const { names, of } = groupsOf(values, property("I32?"), words);
    expect(names).toEqual(["2 – 9", "9 – 10", "10 – 50", "50 – 100", "100 – 100", "no value"]);
    expect([...of]).toEqual([1, 2, 0, 4, 3, 5]);
    expect(groupsOf([], property("F64"), words).of).toHaveLength(0);
  });
});
