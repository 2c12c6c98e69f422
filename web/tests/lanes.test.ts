/** Lane layout on drawn histories: each row of a drawing is a commit, its lane is the column of its sign. */
import { describe, expect, test } from "vitest";

import { laneCount, lanesBelow, layLanes, type LaneCommit, type LaneRow } from "../src/screens/history/lanes";

const commit = (id: string, parents = "", branch = "main"): LaneCommit => ({ id, parents: parents === "" ? [] : parents.split(" "), branch });

/** Draws rows: `*` the commit, `|` a lane that passes, `/` and `\` lines between the commit and another lane. */
function draw(rows: readonly LaneRow[]): string[] {
  return rows.map((row) => {
    const cells = Array.from({ length: laneCount(rows) }, () => " ");
    for (const line of row.lines) {
      if (line.part === "past") cells[line.lane] = "|";
      else if (line.lane !== row.lane) cells[line.lane] = line.part === "in" ? "/" : "\\";
    }
    cells[row.lane] = "*";
    return `${cells.join("").trimEnd()} ${row.id}`;
  });
}

describe("lanes", () => {
  test("a line of commits is one lane", () => {
    expect(draw(layLanes([commit("c", "b"), commit("b", "a"), commit("a")]))).toEqual(["* c", "* b", "* a"]);
  });

  test("a branch has a lane until the commit where it began", () => {
    const history = [commit("m2", "m1"), commit("r2", "r1", "review"), commit("r1", "m1", "review"), commit("m1", "m0"), commit("m0")];
    expect(draw(layLanes(history, "m2"))).toEqual(["* m2", "|* r2", "|* r1", "*/ m1", "* m0"]);
  });

  test("main takes the first lane even if a branch is newer, and has no line above its head", () => {
    const history = [commit("r1", "m1", "review"), commit("m2", "m1"), commit("m1")];
    const rows = layLanes(history, "m2");
    expect(draw(rows)).toEqual([" * r1", "*| m2", "*/ m1"]);
    expect(rows[0]?.lines).toEqual([{ part: "out", lane: 1, branch: "review" }]);
  });

  test("a merge has two parents, and the merged lane ends at the fork", () => {
    const history = [commit("m3", "m2 r1"), commit("r1", "m1", "review"), commit("m2", "m1"), commit("m1")];
    expect(draw(layLanes(history, "m3"))).toEqual(["*\\ m3", "|* r1", "*| m2", "*/ m1"]);
    expect(layLanes(history, "m3")[0]?.lines.map((line) => line.branch)).toEqual(["main", "review"]);
  });

  test("a merge of a commit that a lane waits for joins that lane", () => {
    const history = [commit("r2", "r1", "review"), commit("m2", "m1 r1"), commit("r1", "m1", "review"), commit("m1")];
    expect(draw(layLanes(history, "m2"))).toEqual([" * r2", "*\\ m2", "|* r1", "*/ m1"]);
  });

  test("a free lane is used again", () => {
    const history = [commit("b1", "m2", "b"), commit("m2", "m1"), commit("a1", "m1", "a"), commit("m1")];
    expect(draw(layLanes(history, "m2"))).toEqual([" * b1", "*/ m2", "|* a1", "*/ m1"]);
  });

  test("two roots, and two branches that end in one commit", () => {
    const history = [commit("x1"), commit("a1", "m1", "a"), commit("b1", "m1", "b"), commit("m1")];
    expect(draw(layLanes(history))).toEqual(["* x1", "* a1", "|* b1", "*/ m1"]);
  });

  test("parents that are not listed leave their lanes open", () => {
    const rows = layLanes([commit("m9", "m8 r7"), commit("m8", "m7")]);
    expect(lanesBelow(rows.at(-1) as LaneRow).map((line) => line.lane)).toEqual([1, 0]);
  });

  test("commits in another order than their parents still have rows", () => {
    expect(draw(layLanes([commit("a"), commit("b", "a")]))).toEqual(["* a", "* b"]);
  });

  test("ten thousand commits on forty branches need no more lanes than branches", () => {
    const history: LaneCommit[] = [];
    for (let at = 10_000; at > 0; at -= 1) {
      const branch = at % 40;
      history.push(commit(`c${at}`, at > 40 ? `c${at - 40}` : "root", `b${branch}`));
    }
    history.push(commit("root"));
    expect(laneCount(layLanes(history))).toBe(40);
  });
});
