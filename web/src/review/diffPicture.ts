/** The picture of a diff: changed nodes and edges with their marks, unchanged neighbours dimmed. */
import type { ChangeOp, DiffGraphOutput } from "../api/reviewTypes";
import type { CatalogOutput } from "../api/types";
import { nodeLabel } from "../kit/Value";
import { PictureBuilder } from "../picture/build";
import { Mark, type PictureData } from "../picture/scene";
import { nodeKey } from "./change";

const MARKS: Readonly<Record<ChangeOp, Mark>> = { insert: Mark.Added, update: Mark.Changed, delete: Mark.Removed };
const NODES_MAX = 2000;

export interface DiffPicture {
  readonly data: PictureData;
  /** The numbers of the nodes by key. */
  readonly index: ReadonlyMap<string, number>;
  /** The ends of changed edges, by the key of the edge. */
  readonly ends: ReadonlyMap<string, readonly [string, string]>;
}

/** An edge to a node that is in neither commit keeps its end as a ghost without properties. */
export function diffPicture(graph: DiffGraphOutput, catalog: CatalogOutput | undefined): DiffPicture {
  const builder = new PictureBuilder(catalog, NODES_MAX);
  const index = new Map<string, number>();
  const ends = new Map<string, readonly [string, string]>();
  const add = (type: string, id: string, label: string, mark: Mark) => {
    const key = nodeKey(type, id);
    const at = index.get(key) ?? builder.node(type, id, label, mark);
    if (at !== null && at >= 0) index.set(key, at);
    return at;
  };
  for (const node of graph.nodes) add(node.type, node.id, nodeLabel(node.data, node.id), node.op === null ? Mark.Dimmed : MARKS[node.op]);
  const kept = new Set(graph.nodes.filter((node) => node.op !== "delete").map((node) => nodeKey(node.type, node.id)));
  for (const edge of graph.edges) {
    const from = add(edge.source.type, edge.source.id, edge.source.id, Mark.Removed);
    const to = add(edge.target.type, edge.target.id, edge.target.id, Mark.Removed);
    const lost = edge.op !== "delete" && [edge.source, edge.target].some((end) => !kept.has(nodeKey(end.type, end.id)));
    builder.edge(from, to, edge.type, lost ? Mark.Dangling : edge.op === null ? Mark.Dimmed : MARKS[edge.op]);
    if (edge.op !== null) ends.set(`edge:${edge.type}:${edge.id}`, [nodeKey(edge.source.type, edge.source.id), nodeKey(edge.target.type, edge.target.id)]);
  }
  return { data: builder.build(), index, ends };
}

/** Returns the words that name each node of the graph, by key. */
export function labelsOf(graph: DiffGraphOutput): ReadonlyMap<string, string> {
  return new Map(graph.nodes.map((node) => [nodeKey(node.type, node.id), nodeLabel(node.data, node.id)]));
}
