/** Versions of an entity: positions, old values, and the change that puts one back. */
import { expect, test } from "vitest";

import type { RowVersionOutput, TypeOutput } from "../src/api/types";
import { putBackRequest, valueBefore, versionAt, versionOf } from "../src/screens/entity/versions";

const version = (commit: string, before: Record<string, unknown> | null, after: Record<string, unknown> | null): RowVersionOutput => ({
  graph_commit_id: commit,
  actor_id: null,
  created_at: 0,
  message: null,
  op: before === null ? "insert" : after === null ? "delete" : "update",
  properties: ["status", "budget"],
  before,
  after,
});
const CHANGES = [version("c3", { status: "b" }, { status: "c" }), version("c2", { status: "a" }, { status: "b" }), version("c1", null, { status: "a" })];
const PROJECT: TypeOutput = {
  name: "Project",
  key: ["code"],
  properties: [
    { name: "code", type: "String", optional: false },
    { name: "status", type: "enum(active, done)", optional: false },
    { name: "budget", type: "I64?", optional: true },
    { name: "plan", type: "Blob?", optional: true },
  ],
};
const DATA = { code: 'har"bour', status: "c", budget: 5 };

test("versions count from the oldest; no commit is the newest", () => {
  expect(versionAt(CHANGES, undefined)).toBe(2);
  expect(versionAt(CHANGES, "c1")).toBe(0);
  expect(versionAt(CHANGES, "unknown")).toBe(2);
  expect(versionOf(CHANGES, 0)?.graph_commit_id).toBe("c1");
});

test("the value before a commit is that of its change; a creation has none", () => {
  expect(valueBefore(CHANGES, "c2", "status")).toEqual({ value: "a" });
  expect(valueBefore(CHANGES, "c2", "budget")).toEqual({ value: null });
  expect(valueBefore(CHANGES, "c1", "status")).toBeUndefined();
  expect(valueBefore(CHANGES, "c9", "status")).toBeUndefined();
  expect(valueBefore(CHANGES, "c2", "other")).toBeUndefined();
});

test("a value is put back by the key, values are parameters", () => {
  expect(putBackRequest(PROJECT, DATA, "status", "done")).toEqual({
    text: "query put_back($k0: String, $value: String) {\n    update Project set { status: $value } where code = $k0\n}",
    name: null,
    params: { k0: 'har"bour', value: "done" },
  });
  expect(putBackRequest(PROJECT, DATA, "budget", null)?.text).toContain("set { budget: null }");
  expect(putBackRequest(PROJECT, DATA, "budget", 7)?.text).toContain("$value: I64)");
});

test("no change without a key, of a key, of a Blob, of an edge, or of an inexact integer", () => {
  expect(putBackRequest({ ...PROJECT, key: [] }, DATA, "status", "done")).toBeNull();
  expect(putBackRequest(PROJECT, DATA, "code", "x")).toBeNull();
  expect(putBackRequest(PROJECT, DATA, "plan", "x")).toBeNull();
  expect(putBackRequest({ ...PROJECT, from: "A", to: "B" }, DATA, "status", "done")).toBeNull();
  expect(putBackRequest(PROJECT, DATA, "budget", 2 ** 60)).toBeNull();
  expect(putBackRequest(undefined, DATA, "status", "done")).toBeNull();
});
