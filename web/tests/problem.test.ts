import { describe, expect, it } from "vitest";

import { isDenied, isLostRace, Problem } from "../src/api/problem";
import { planLines, planWarnings } from "../src/kit/planFacts";
import { sparkPoints } from "../src/kit/Sparkline";
import { denialOf } from "../src/state/denial";

describe("problems", () => {
  it("know denials and lost races", () => {
    expect(isDenied(new Problem(403, { error: "x", code: "forbidden", reason: "denied" }))).toBe(true);
    expect(isLostRace(new Problem(412, { error: "x", code: "precondition_failed" }))).toBe(true);
    expect(isLostRace(new Problem(409, { error: "x", code: "conflict", reason: "merge_conflicts" }))).toBe(false);
  });

  it("read the action and branch of a denial", () => {
    expect(denialOf("no rule allows action 'change' on branch 'main' for actor 'bo'")).toEqual({ action: "change", branch: "main" });
    expect(denialOf("no rule allows action 'branch_merge' on branch 'a' with target branch 'it''s b' for actor 'bo'")).toEqual({ action: "branch_merge", branch: "it''s b" });
    expect(denialOf("action 'admin' is denied: no actor was given")).toEqual({ action: "admin", branch: null });
    expect(denialOf("the rules for rows do not fit")).toBe(null);
  });

});

describe("plans", () => {
  const node = (op: string, text: string, more = {}) => ({ op, text, notes: [] as string[], children: [], ...more });
  it("separate conditions and warn", () => {
    const tree = node("query", "q()", { children: [node("scan", '$n: Note where $n.text contains "x"', { expected: 3, rows: 4000, notes: ["postings of 'text' built from 3,000 rows"] })] });
    const [, scan] = planLines(tree);
    expect(scan).toMatchObject({ text: "$n: Note", condition: '$n.text contains "x"', depth: 1 });
    expect(planWarnings([scan as never]).map((each) => each.kind)).toEqual(["built", "estimate"]);
    expect(planWarnings(planLines(node("scan", "$n: Note", { expected: 90, rows: 5 })))).toEqual([]);
  });
});

describe("sparklines", () => {
  it("span the whole width and start at 0", () => {
    expect(sparkPoints([0, 10])).toBe("0.0,29.0 120.0,2.0");
    expect(sparkPoints([5])).toBe("0.0,2.0 120.0,2.0");
  });
});
