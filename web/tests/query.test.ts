import { describe, expect, it, vi } from "vitest";

vi.stubGlobal("window", { matchMedia: () => ({ matches: false, addEventListener: () => undefined }) });
vi.stubGlobal("document", { documentElement: { dataset: {} } });
vi.stubGlobal("localStorage", { getItem: () => null, setItem: () => undefined });

const { headsOf, looksLikeChange, withLimit } = await import("../src/screens/query/params");
const { choicesOf, fieldKind, fieldText, valueOf } = await import("../src/kit/fields");
const { asCommand, asCurl, asPython } = await import("../src/screens/query/copy");
const { columnRange, firstRow, ROW_PX } = await import("../src/kit/Table");
const { linkOf, valueText } = await import("../src/kit/Value");
const { visibleParts } = await import("../src/kit/Plain");

describe("parameters", () => {
  it("are read from the heads of queries, not from comments and strings", () => {
    const text = `// query no($x: String)\nquery one($a: String, $b: [I64]?, $v: Vector(64)) @description("query two($y: Bool)") { match { $n: Note } return { $n } }\nquery three() { }`;
    expect(headsOf(text)).toEqual([
      { name: "one", params: [{ name: "a", type: "String" }, { name: "b", type: "[I64]?" }, { name: "v", type: "Vector(64)" }] },
      { name: "three", params: [] },
    ]);
    expect(headsOf("match { $a: Person } return { $a }")).toEqual([]);
  });

  it("keep their text when a picture limits its rows", () => {
    expect(withLimit("match { $a: Person } return { $a }", 9)).toBe("match { $a: Person } return { $a }\nlimit 9\n");
    expect(withLimit("query q() { match { $a: Person } return { $a } } // }", 9)).toBe("query q() { match { $a: Person } return { $a } \nlimit 9\n} // }");
    for (const text of ["match { $a: P } return { $a } limit 3", "match { $a: P } return { $a } order { $a.name }", "query a() { return { 1 } } query b() { return { 2 } }", "return {"]) {
      expect(withLimit(text, 9)).toBeNull();
    }
  });

  it("become JSON values of their types", () => {
    expect(valueOf("I64", "42")).toEqual({ value: 42 });
    expect(valueOf("I64", "9223372036854775807")).toEqual({ value: "9223372036854775807" });
    expect(valueOf("I64", "4.5")).toEqual({ fault: "integer" });
    expect(valueOf("F64?", "")).toEqual({ value: null });
    expect(valueOf("F64", "")).toEqual({ fault: "required" });
    expect(valueOf("String", "")).toEqual({ value: "" });
    expect(valueOf("Bool", "true")).toEqual({ value: true });
    expect(valueOf("[I32]", "1\n2")).toEqual({ value: [1, 2] });
    expect(valueOf("[String]", '["a", "b"]')).toEqual({ value: ["a", "b"] });
    expect(valueOf("[I32]", "1\nx")).toEqual({ fault: "list" });
    expect(valueOf("Vector(2)", "[0.5, 1]")).toEqual({ value: [0.5, 1] });
    expect(valueOf("Vector(2)", "herons")).toEqual({ value: "herons" });
    expect(fieldKind("DateTime?")).toBe("datetime");
  });

  it("tell changes from reads", () => {
    expect(looksLikeChange('query a() { insert Person { name: "x" } }')).toBe(true);
    expect(looksLikeChange('match { $a: Person } return { $a } // delete Person')).toBe(false);
  });
});

describe("copies", () => {
  const request = { text: `match { $a: P { n: "it's" } } return { $a }`, name: null, params: { x: null, t: "true" } };
  const target = { address: "http://h", graph: "g", path: "query", ref: { branch: "main" }, change: false };

  it("quote texts for their language", () => {
    expect(asCurl(request, target)).toContain(`it'\\''s`);
    expect(asCommand(request, target)).toContain("--branch 'main'");
    expect(asPython(request, target)).toContain('params={"x":None,"t":"true"}');
  });
});

describe("tables", () => {
  it("have only the columns in view, and gaps as wide as the others", () => {
    const widths = Array.from({ length: 10_000 }, (_, index) => 60 + (index % 7) * 40);
    let end = 0;
    const ends = widths.map((width) => (end += width));
    for (const left of [0, 1, 250, 12_345, 700_000, end - 1000, end]) {
      const { start, end: stop, before, after } = columnRange(ends, left, 1000);
      const shown = widths.slice(start, stop).reduce((sum, width) => sum + width, 0);
      expect((widths[0] as number) + before + shown + after).toBe(end);
      expect(stop - start).toBeLessThan(30);
      const at = Math.min(left, end - 1000);
      widths.forEach((width, index) => {
        const right = ends[index] as number;
        if (index > 0 && right > at + (widths[0] as number) && right - width < at + 1000) expect(start <= index && index < stop).toBe(true);
      });
    }
    expect(columnRange([], 0, 1000)).toEqual({ start: 1, end: 1, before: 0, after: 0 });
    expect(columnRange([120], 0, 1000)).toEqual({ start: 1, end: 1, before: 0, after: 0 });
  });

  it("map the position of the scroll bar to rows, proportionally above the height of browsers", () => {
    expect(firstRow(ROW_PX * 10, 320, 1000)).toBe(10);
    expect(firstRow(0, 320, 1_000_000)).toBe(0);
    expect(firstRow(8_000_000 - 320, 320, 1_000_000)).toBe(999_990);
    expect(firstRow(4_000_000 - 160, 320, 1_000_000)).toBe(499_995);
  });
});

describe("values", () => {
  it("become links only with a web or mail address", () => {
    expect(linkOf("https://example.org/x")).toBe("https://example.org/x");
    for (const bad of ["javascript:alert(1)", "data:text/html,x", "//evil", "https://a b", "file:///etc/passwd", " https://x"]) expect(linkOf(bad)).toBeNull();
  });

  it("show hidden characters as marks", () => {
    expect(visibleParts("a\u202eb\u0000")).toEqual(["a", { code: "U+202E" }, "b", { code: "U+0000" }]);
    expect(visibleParts("two\nlines\tand 😀")).toEqual(["two\nlines\tand 😀"]);
  });

  it("keep the digits of large integers", () => {
    expect(valueText(9223372036854775807n)).toBe("9223372036854775807");
    expect(valueText({ a: 1n, b: [null] })).toBe('{"a":"1","b":[null]}');
  });
});
