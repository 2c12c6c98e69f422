import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

import { readTable } from "../src/api/arrow";
import type { CellKind } from "../src/api/result";

const stored = JSON.parse(readFileSync(new URL("./cells.json", import.meta.url), "utf8")) as { stream: string };
const table = readTable(Uint8Array.from(atob(stored.stream), (each) => each.charCodeAt(0)).buffer as ArrayBuffer);
const column = (name: string): number => table.columns.findIndex((each) => each.name === name);

/** Property → the kind of its cells and the value of the first row, as Python wrote it. */
const SCALARS: Record<string, [CellKind, unknown]> = {
  text: ["text", "Grüße 😀"],
  yes: ["bool", true],
  small: ["integer", -2147483648],
  large: ["integer", 9223372036854775807n],
  count: ["integer", 4294967295],
  huge: ["integer", 18446744073709551615n],
  single: ["number", 0.5],
  double: ["number", -1.5e300],
  day: ["date", "1969-12-31"],
  moment: ["datetime", "2026-02-28T23:59:59.125Z"],
  uuid: ["text", "123e4567-e89b-12d3-a456-426614174000"],
};

describe("cells of an Arrow stream", () => {
  it.each(Object.entries(SCALARS))("show %s and its list exactly, and null as null", (name, [kind, value]) => {
    expect(table.columns[column(name)]?.kind).toBe(kind);
    expect(table.cell(column(name), 0)).toEqual(value);
    expect(table.cell(column(name), 1)).toBeNull();
    expect(table.columns[column(`${name}_list`)]?.kind).toBe("list");
    expect(table.cell(column(`${name}_list`), 0)).toEqual([value]);
    expect(table.cell(column(`${name}_list`), 1)).toBeNull();
  });

  it("show enums, vectors and nodes", () => {
    expect(table.cell(column("state"), 0)).toBe("closed");
    expect(table.columns[column("meaning")]?.kind).toBe("vector");
    expect(table.cell(column("meaning"), 0)).toEqual([0.5, -1, 0, 2]);
    expect(table.cell(column("meaning"), 1)).toBeNull();
    expect(table.columns[column("e")]).toMatchObject({ kind: "node", type: "Everything" });
    expect(table.cell(column("e"), 0)).toMatchObject({ slug: "a", day: "1969-12-31", moment: "2026-02-28T23:59:59.125Z" });
  });
});
