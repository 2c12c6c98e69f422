/** Builds the data of a picture from nodes and edges in any order; equal nodes and edges become one. */
import type { CatalogOutput } from "../api/types";
import type { ResultTable } from "../api/result";
import { kindOf } from "../kit/kinds";
import { isNode, nodeLabel } from "../kit/Value";
import { nodeKey, type PictureData } from "./scene";

export const NODES_SHOWN = 300;
export const NODES_MORE = 2000;
export const NODES_MAX = 10_000;
const NODE_SIZE = 4.5;

export class PictureBuilder {
  private readonly nodes: { type: string; id: string; label: string }[] = [];
  private readonly index = new Map<string, number>();
  private readonly edges = new Map<string, { from: number; to: number; label: string; mark: number }>();
  private readonly marks: number[] = [];
  private readonly sizes = new Map<number, number>();
  /** Nodes that did not fit. */
  leftOut = 0;

  constructor(
    private readonly catalog: CatalogOutput | undefined,
    private limit = NODES_SHOWN,
  ) {}

  /** Adds a node and returns its number; null if the picture is full. */
  node(type: string, id: string, label: string, mark = 0): number | null {
    const key = nodeKey({ type, id });
    const known = this.index.get(key);
    if (known !== undefined) return known;
    if (this.nodes.length >= this.limit) {
      this.leftOut += 1;
      this.index.set(key, -1);
      return null;
    }
    const at = this.nodes.push({ type, id, label }) - 1;
    this.marks.push(mark);
    this.index.set(key, at);
    return at;
  }

  /** Returns the number of a node of the picture; null if it is not in it. */
  find(type: string, id: string): number | null {
    const at = this.index.get(nodeKey({ type, id })) ?? -1;
    return at < 0 ? null : at;
  }

  /** Gives a node a size of its own, in place of the one by its edges. */
  size(node: number | null, size: number): void {
    if (node !== null) this.sizes.set(node, size);
  }

  /** Makes room for more nodes, up to the most that a picture shows. */
  grow(nodes: number): void {
    this.limit = Math.min(NODES_MAX, this.nodes.length + nodes);
  }

  edge(from: number | null, to: number | null, label: string, mark = 0): void {
    if (from === null || to === null || from < 0 || to < 0) return;
    this.edges.set(`${from} ${to} ${label}`, { from, to, label, mark });
  }

  build(): PictureData {
    const edges = [...this.edges.values()];
    const degree = new Uint32Array(this.nodes.length);
    for (const edge of edges) {
      degree[edge.from]! += 1;
      degree[edge.to]! += 1;
    }
    return {
      nodes: this.nodes,
      kinds: Uint8Array.from(this.nodes, (node) => kindOf(this.catalog, node.type)),
      sizes: Float32Array.from(degree, (count, node) => this.sizes.get(node) ?? NODE_SIZE + Math.min(7, Math.sqrt(count))),
      marks: Uint8Array.from(this.marks),
      src: Uint32Array.from(edges, (edge) => edge.from),
      dst: Uint32Array.from(edges, (edge) => edge.to),
      edgeLabels: edges.map((edge) => edge.label),
      edgeMarks: Uint8Array.from(edges, (edge) => edge.mark),
    };
  }
}

/** Returns a builder with the nodes of a result and the hops between its columns; null if no column is a node. */
export function pictureOf(table: ResultTable, catalog: CatalogOutput | undefined, limit: number): PictureBuilder | null {
  const columns = table.columns.flatMap((column, index) => (column.kind === "node" ? [{ index, type: column.type ?? "" }] : []));
  if (columns.length === 0) return null;
  const builder = new PictureBuilder(catalog, limit);
  for (let row = 0; row < table.rowCount; row += 1) {
    const at = new Map<number, number | null>();
    for (const { index, type } of columns) {
      const value = table.cell(index, row);
      if (!isNode(value)) continue;
      const own = type.includes("|") && typeof value["type"] === "string" ? value["type"] : type;
      at.set(index, builder.node(own, value.id, nodeLabel(value, value.id)));
    }
    for (const hop of table.hops) builder.edge(at.get(hop.source) ?? null, at.get(hop.target) ?? null, hop.label);
  }
  return builder;
}
