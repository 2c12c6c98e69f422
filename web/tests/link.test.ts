import { describe, expect, it } from "vitest";

import { formatLink, parseLink, pointOf, tagRef, type Link } from "../src/state/link";
import { packText, unpackText } from "../src/state/packed";

const SCREENS = ["home", "query", "entity"];
const TEXTS = ["", "a", "a/b", "%2F", "é 😀", "?x=1&y=2#z", "+ %", "__proto__", "@01M7", "‮", "\n\t", "'()*!~"];

/** A fixed sequence of numbers, so that a failing case can be repeated. */
function* numbers(seed: number): Generator<number> {
  let state = seed;
  for (;;) {
    state = (state * 1103515245 + 12345) % 2147483648;
    yield state;
  }
}

describe("links", () => {
  it("round-trip for any text in any part", () => {
    const random = numbers(7);
    const next = (n: number) => (random.next().value as number) % n;
    const some = () => TEXTS[next(TEXTS.length)] as string;
    for (let i = 0; i < 2000; i += 1) {
      const path = Array.from({ length: next(3) }, () => some() || "x");
      const params = Object.fromEntries(Array.from({ length: next(4) }, () => [some() || "n", some()]).filter(([, value]) => value !== ""));
      const link: Link = { graph: some() || "g", ref: some() || "main", screen: SCREENS[next(3)] as string, path, params };
      expect(parseLink(formatLink(link), "default", SCREENS)).toEqual({ link, ignored: [] });
    }
  });

  it("ignore what they do not know, and say so", () => {
    const { link, ignored } = parseLink("#/g/x/main/nonesuch/y?a=1&a=2&%E0%A4%A=1", "default", SCREENS);
    expect(link).toEqual({ graph: "x", ref: "main", screen: "home", path: [], params: { a: "1" } });
    expect(ignored).toEqual(["nonesuch", "a=2", "%E0%A4%A=1"]);
    expect(parseLink("#elsewhere", "default", SCREENS).link.graph).toBe("default");
    expect(parseLink("", "default", SCREENS).ignored).toEqual([]);
  });

  it("read a branch or a point", () => {
    expect(pointOf("review/spring")).toEqual({ branch: "review/spring" });
    expect(pointOf("@2026-01-01")).toEqual({ at: "2026-01-01" });
  });

  it("mark the tags that a server takes for a version or a time", () => {
    expect(["v1", "2026", "2026-01-31", "2026-spring"].map(tagRef)).toEqual(["@v1", "@name:2026", "@name:2026-01-31", "@2026-spring"]);
  });
});

describe("texts in links", () => {
  it("are deflated when long and refused when too long", async () => {
    const short = "match { $a: Person } return { $a }";
    expect(await packText(short)).toEqual({ q: short });
    const long = short.repeat(100);
    const packed = await packText(long);
    expect(packed).toHaveProperty("z");
    expect(await unpackText(packed as Record<string, string>)).toBe(long);
    const random = numbers(3);
    const noise = Array.from({ length: 40_000 }, () => String.fromCharCode(32 + ((random.next().value as number) >> 8) % 90)).join("");
    expect(await packText(noise)).toBeNull();
  });

  it("are ignored when damaged", async () => {
    expect(await unpackText({ z: "not deflated" })).toBeNull();
    expect(await unpackText({})).toBeNull();
  });
});
