import { createHash } from "node:crypto";

import { describe, expect, it } from "vitest";

import type { ResultTable } from "../src/api/result";
import { documentOf, savedPage, STYLE_HASH } from "../src/screens/query/saved";

const HOSTILE = "</script><script>window.pwned=1</script>";
const ROWS = [[{ id: "1", name: HOSTILE }, 2n ** 60n], [{ id: "2", name: "b" }, 1n]];
const TABLE: ResultTable = {
  columns: [{ name: "a", kind: "node", type: "A" }, { name: "n", kind: "integer", type: null }],
  hops: [],
  rowCount: 2,
  next: null,
  commit: "c",
  elapsedMs: 0,
  cell: (column, row) => ROWS[row]?.[column],
};
const TEMPLATE = `<meta content="script-src '{script-hash}'; style-src '{style-hash}'"><title>{title}</title><style>{style}</style><script type="application/json">{data}</script><script type="module">{script}</script>`;

describe("a saved file", () => {
  it("has the nodes with their values, and integers that keep all digits", () => {
    const shown = documentOf(TABLE, undefined, "t");
    expect(shown.nodes).toEqual([{ type: "A", id: "1", label: HOSTILE, data: { name: HOSTILE } }, { type: "A", id: "2", label: "b", data: { name: "b" } }]);
    expect(shown.table?.total).toBe(2);
    expect(shown.notice).toBeNull();
  });

  it("states the hashes of its script and style, and no data leaves its element", () => {
    const script = "export default 1";
    const page = savedPage(TEMPLATE, script, createHash("sha256").update(script).digest("hex"), documentOf(TABLE, undefined, "<t>"));
    expect(page).toContain(`script-src 'sha256-${createHash("sha256").update(script).digest("base64")}'`);
    const style = /<style>(.*)<\/style>/.exec(page)?.[1] ?? "";
    expect(STYLE_HASH).toBe(`sha256-${createHash("sha256").update(style).digest("base64")}`);
    expect(page.match(/<script/g)).toHaveLength(2);
    const data = JSON.parse(/json">(.*?)<\/script>/.exec(page)?.[1] ?? "") as { table: { rows: unknown[][] } };
    expect(data.table.rows[0]?.[1]).toBe((2n ** 60n).toString());
    expect(page).toContain("&#60;t&#62;");
  });
});
