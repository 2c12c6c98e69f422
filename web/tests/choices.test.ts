import { describe, expect, it } from "vitest";

import type { MergeConflictOutput } from "../src/api/reviewTypes";
import { readField } from "../src/review/typedValue";
import { canCombine, choose, chooseValue, contested, keepChoices, outcomeOf, resolveOf, undo, undoValue, type Choices } from "../src/state/choices";

const conflict = (members: Partial<MergeConflictOutput>): MergeConflictOutput => ({
  id: "node:Project:harbour",
  table_key: "node:Project",
  row_id: "harbour",
  kind: "divergent_update",
  message: "",
  properties: ["status"],
  base: { id: "harbour", status: "active", budget: 1, title: "Harbour" },
  ours: { id: "harbour", status: "paused", budget: 1, title: "The harbour" },
  theirs: { id: "harbour", status: "done", budget: 2, title: "Harbour" },
  ...members,
});
const both = conflict({ properties: ["status", "budget", "title"] });

describe("choices", () => {
  it("are the value of resolve", () => {
    let choices: Choices = {};
    expect(resolveOf(choices)).toBeNull();
    choices = choose(choices, "*", "columns");
    choices = choose(choices, "Person", "theirs");
    choices = choose(choices, "Project.status", "ours");
    choices = chooseValue(choices, "node:Person:bo", "age", 31);
    choices = chooseValue(choices, "node:Person:bo", "name", "Bo");
    choices = choose(choices, "node:Person:cleo", null);
    choices = choose(choices, "query:adults", "theirs");
    expect(resolveOf(choices)).toEqual({
      "*": "columns",
      Person: "theirs",
      "Project.status": "ours",
      "node:Person:bo": { age: 31, name: "Bo" },
      "node:Person:cleo": null,
      "query:adults": "theirs",
    });
    expect(undoValue(undoValue(choices, "node:Person:bo", "age"), "node:Person:bo", "name")).not.toHaveProperty("node:Person:bo");
    expect(undo(choices, "*")).not.toHaveProperty("*");
  });

  it("replace a word for the row by values", () => {
    expect(chooseValue({ "node:Project:harbour": "ours" }, "node:Project:harbour", "status", "done")).toEqual({ "node:Project:harbour": { status: "done" } });
  });
});

describe("the outcome of a row", () => {
  const row = { id: "harbour", status: "done", budget: 2, title: "The harbour" };
  it.each([
    ["nothing", {}, { settled: false, by: null, row: undefined, left: ["status", "budget", "title"] }],
    ["a value: other properties combine", { "node:Project:harbour": { status: "done" } }, { settled: true, by: "row", row, left: [] }],
    ["a value of another property leaves the contested one", { "node:Project:harbour": { title: "X" } }, { settled: false, by: "row", row: undefined, left: ["status"] }],
    ["a side takes the whole row", { "node:Project:harbour": "ours" }, { settled: true, by: "row", row: both.ours, left: [] }],
    ["null deletes the row", { "node:Project:harbour": null }, { settled: true, by: "row", row: null, left: [] }],
    ["a property of the type", { "Project.status": "theirs" }, { settled: true, by: "property", row, left: [] }],
    ["another property of the type", { "Project.title": "theirs" }, { settled: false, by: "property", row: undefined, left: ["status"] }],
    ["the type", { Project: "theirs" }, { settled: true, by: "type", row: both.theirs, left: [] }],
    ["all, narrowed by the type", { "*": "ours", Project: "theirs" }, { settled: true, by: "type", row: both.theirs, left: [] }],
    ["all", { "*": "ours" }, { settled: true, by: "all", row: both.ours, left: [] }],
    ["columns leave what both changed", { "*": "columns" }, { settled: false, by: "all", row: undefined, left: ["status"] }],
    ["the row before the type", { "node:Project:harbour": "ours", Project: "theirs" }, { settled: true, by: "row", row: both.ours, left: [] }],
  ])("%s", (_, choices, expected) => {
    expect(outcomeOf(both, choices as Choices)).toEqual(expected);
  });

  it("of a deleted row is kept with values, or deleted", () => {
    const deleted = conflict({ kind: "delete_vs_update", ours: null });
    expect(outcomeOf(deleted, { [deleted.id]: { status: "idea" } }).row).toEqual({ ...deleted.theirs, status: "idea" });
    expect(outcomeOf(deleted, { [deleted.id]: "ours" })).toEqual({ settled: true, by: "row", row: null, left: [] });
    expect(outcomeOf(deleted, { [deleted.id]: "columns" }).settled).toBe(false);
  });

  it("of two inserts has no base", () => {
    const inserted = conflict({ kind: "divergent_insert", base: null, properties: ["status", "budget", "title"] });
    expect(contested(inserted)).toEqual(["status", "budget", "title"]);
    expect(outcomeOf(inserted, { [inserted.id]: { status: "done" } }).left).toEqual(["budget", "title"]);
  });

  it("can combine if the sides changed different properties", () => {
    expect(canCombine(both)).toBe(false);
    expect(canCombine(conflict({ ours: { ...both.base, title: "X" }, theirs: { ...both.base, budget: 9 }, properties: ["title", "budget"] }))).toBe(true);
  });
});

describe("a moved head", () => {
  it("keeps the choices of conflicts that are the same", () => {
    const other = conflict({ id: "node:Project:weir", row_id: "weir" });
    const choices: Choices = { Project: "ours", [both.id]: "ours", [other.id]: "theirs", "edge:Wrote:e1": null };
    const changed = { ...other, theirs: { ...other.theirs, status: "idea" } };
    const kept = keepChoices(choices, [both, other], [both, changed]);
    expect(kept).toEqual({ choices: { Project: "ours", [both.id]: "ours", "edge:Wrote:e1": null }, unverified: ["edge:Wrote:e1"], dropped: 1 });
    expect(keepChoices(choices, [both, other], []).choices).toEqual({ Project: "ours", "edge:Wrote:e1": null });
  });
});

describe("typed values", () => {
  it.each([
    ["42", "I64", 42],
    ["9223372036854775807", "I64", "9223372036854775807"],
    ["1.5", "F64", 1.5],
    ["true", "Bool", true],
    ["", "F64?", null],
    ["", "String", ""],
    ["2026-03-04", "Date", "2026-03-04"],
    ['["a"]', "[String]", ["a"]],
  ])("%s is a %s", (text, type, value) => expect(readField(text, type)).toEqual({ value, valid: true }));
  it.each([
    ["x", "I64"],
    ["1.5", "I64"],
    ["", "F64"],
    ["maybe", "Bool"],
    ["a", "[String]"],
  ])("%s is no %s", (text, type) => expect(readField(text, type).valid).toBe(false));
});
