/**
 * What a notebook or a saved file shows: nodes, edges and a table, written by Python (`omnigraph.notebook.document`) or by
 * the export of the page. The module is pure.
 */
import type { CellKind, ResultTable } from "../api/result";
import type { CatalogOutput, NeighborOutput } from "../api/types";
import { nodeLabel } from "../kit/Value";
import { PictureBuilder } from "../picture/build";
import { Mark, type PictureData } from "../picture/scene";

export type ShownOp = "insert" | "update" | "delete" | "same" | null;

export interface ShownNode {
  readonly type: string;
  readonly id: string;
  readonly label: string;
  readonly op?: ShownOp;
  readonly data?: Readonly<Record<string, unknown>>;
}

/** An edge between two nodes, given by their numbers. */
export interface ShownEdge {
  readonly from: number;
  readonly to: number;
  readonly label: string;
  readonly op?: ShownOp;
}

export interface ShownTable {
  readonly columns: readonly { readonly name: string; readonly kind: CellKind; readonly type: string | null }[];
  readonly rows: readonly (readonly unknown[])[];
  /** The number of all rows. */
  readonly total: number;
}

export interface ShownDocument {
  readonly version: 1;
  readonly title: string;
  /** The node types in the order of the schema, which gives them their colours. */
  readonly types: readonly string[];
  readonly nodes: readonly ShownNode[];
  readonly edges: readonly ShownEdge[];
  readonly table: ShownTable | null;
  /** What was left out. */
  readonly notice: string | null;
  /** The questions that are answered: none in a saved file. */
  readonly asks: readonly string[];
}

/** The most nodes of a picture without a worker. */
export const SHOWN_MAX = 2000;

const MARKS: Readonly<Record<NonNullable<ShownOp>, Mark>> = { insert: Mark.Added, update: Mark.Changed, delete: Mark.Removed, same: Mark.Dimmed };
const markOf = (op: ShownOp | undefined): Mark => (op === null || op === undefined ? Mark.None : MARKS[op]);

/** A catalog that knows the colours of types and nothing else. */
const catalogOf = (types: readonly string[]): CatalogOutput => ({ hash: "", interfaces: [], nodes: types.map((name) => ({ name, key: [], properties: [], constraints: [] })), edges: [] });

export interface Expanded {
  readonly type: string;
  readonly id: string;
  readonly neighbors: readonly NeighborOutput[];
}

/** Returns the picture of a document and of the nodes that were expanded, with the number of nodes left out. */
export function pictureOfDocument(shown: ShownDocument, expanded: readonly Expanded[]): { data: PictureData; leftOut: number } {
  const builder = new PictureBuilder(catalogOf(shown.types), SHOWN_MAX);
  const numbers = shown.nodes.map((node) => builder.node(node.type, node.id, node.label, markOf(node.op)));
  for (const edge of shown.edges) builder.edge(numbers[edge.from] ?? null, numbers[edge.to] ?? null, edge.label, markOf(edge.op));
  for (const { type, id, neighbors } of expanded) {
    const centre = builder.find(type, id);
    for (const each of neighbors) {
      const other = builder.node(each.type, each.id, nodeLabel(each.data, each.id));
      if (each.direction === "out") builder.edge(centre, other, each.edge);
      else builder.edge(other, centre, each.edge);
    }
  }
  return { data: builder.build(), leftOut: builder.leftOut };
}

/** Returns the rows of a document as a result; further rows are appended to those of the document. */
export function tableOfDocument(table: ShownTable, more: readonly (readonly unknown[])[]): ResultTable {
  const rows = more.length === 0 ? table.rows : [...table.rows, ...more];
  return {
    columns: table.columns,
    hops: [],
    rowCount: rows.length,
    next: rows.length < table.total ? String(rows.length) : null,
    commit: "",
    elapsedMs: 0,
    cell: (column, row) => rows[row]?.[column],
  };
}

/** Returns the properties of a node: those of the document, or of an expanded node. */
export function propertiesOf(shown: ShownDocument, expanded: readonly Expanded[], type: string, id: string): Readonly<Record<string, unknown>> | null {
  const own = shown.nodes.find((node) => node.type === type && node.id === id)?.data;
  if (own !== undefined) return own;
  for (const each of expanded) {
    const found = each.neighbors.find((neighbor) => neighbor.type === type && neighbor.id === id);
    if (found !== undefined) return found.data;
  }
  return null;
}
