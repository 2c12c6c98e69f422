/** A result as one HTML file: the template, script and hash of the build, the style and the data of the result. */
import type { ResultTable } from "../../api/result";
import type { CatalogOutput } from "../../api/types";
import { NODES_MAX, pictureOf } from "../../picture/build";
import { isNode } from "../../kit/Value";
import type { ShownDocument, ShownNode } from "../../shown/document";
import { text } from "../../text/en";

const BYTES_MAX = 20_000_000;
const SLICE = 2000;
const STYLE = "html{color-scheme:light dark}body{margin:0;padding:16px;font-family:system-ui,sans-serif}";
/** The hash of the style, which never changes; a unit test computes it. */
export const STYLE_HASH = "sha256-96vaynIkwjAjcdDHg98eNueXPNlqWGfE++Zl8EjedRk=";

const plain = (_: string, value: unknown): unknown => (typeof value === "bigint" ? (Number.isSafeInteger(Number(value)) ? Number(value) : value.toString()) : value);

/** Returns the document of a result, with at most as many nodes and bytes as a file may have. */
export function documentOf(table: ResultTable, catalog: CatalogOutput | undefined, title: string): ShownDocument {
  const picture = pictureOf(table, catalog, NODES_MAX);
  const built = picture?.build();
  const values = nodeValues(table);
  const nodes: ShownNode[] = (built?.nodes ?? []).map((node) => ({ ...node, data: values.get(`${node.type} ${node.id}`) ?? {} }));
  const edges = Array.from(built?.src ?? [], (from, edge) => ({ from, to: built?.dst[edge] ?? 0, label: built?.edgeLabels[edge] ?? "" }));
  const rows = rowsWithin(table, BYTES_MAX * 0.8);
  const notices = [
    ...((picture?.leftOut ?? 0) > 0 ? [text.query.savedNodes(NODES_MAX)] : []),
    ...(rows.length < table.rowCount ? [text.query.savedRows(rows.length, table.rowCount)] : []),
  ];
  return {
    version: 1,
    title,
    types: catalog?.nodes.map((each) => each.name) ?? [],
    nodes,
    edges,
    table: { columns: table.columns, rows, total: table.rowCount },
    notice: notices.join(" ") || null,
    asks: [],
  };
}

function nodeValues(table: ResultTable): Map<string, Readonly<Record<string, unknown>>> {
  const values = new Map<string, Readonly<Record<string, unknown>>>();
  table.columns.forEach((column, index) => {
    if (column.kind !== "node") return;
    for (let row = 0; row < table.rowCount; row += 1) {
      const value = table.cell(index, row);
      if (!isNode(value)) continue;
      const { id, type, ...rest } = value;
      const own = (column.type ?? "").includes("|") && typeof type === "string" ? type : (column.type ?? "");
      values.set(`${own} ${id}`, rest);
    }
  });
  return values;
}

/** Returns the first rows whose JSON has at most as many bytes. */
function rowsWithin(table: ResultTable, bytes: number): unknown[][] {
  const rows: unknown[][] = [];
  let size = 0;
  for (let from = 0; from < table.rowCount; from += SLICE) {
    const slice = Array.from({ length: Math.min(SLICE, table.rowCount - from) }, (_, at) => table.columns.map((_, column) => table.cell(column, from + at)));
    size += JSON.stringify(slice, plain).length;
    if (rows.length > 0 && size > bytes) break;
    rows.push(...slice);
  }
  return rows;
}

const base64 = (hex: string): string => btoa(String.fromCharCode(...(hex.match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16))));
const escape = (value: string): string => value.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** Fills the template of a saved file; `digest` is the SHA-256 of the script in hexadecimal, as the build states it. */
export function savedPage(template: string, script: string, digest: string, shown: ShownDocument): string {
  const [head = "", rest = ""] = template.split("{data}");
  const [middle = "", tail = ""] = rest.split("{script}");
  const values: Record<string, string> = { "title": escape(shown.title), "script-hash": `sha256-${base64(digest)}`, "style-hash": STYLE_HASH, "style": STYLE };
  const filled = head.replace(/\{([a-z-]+)\}/g, (whole, name: string) => values[name] ?? whole);
  return [filled, JSON.stringify(shown, plain).replaceAll("<", "\\u003c"), middle, script, tail].join("");
}

/** Returns the file of a result; script and template come from the files of this page. */
export async function savedFile(table: ResultTable, catalog: CatalogOutput | undefined, title: string): Promise<Blob> {
  const read = async (name: string) => (await fetch(name)).text();
  const [template, script, build] = await Promise.all([read("saved.html"), read("widget.js"), read("BUILD.json")]);
  const digest = (JSON.parse(build) as { files: Record<string, string> }).files["widget.js"] ?? "";
  return new Blob([savedPage(template, script, digest, documentOf(table, catalog, title))], { type: "text/html" });
}
