/** A reader of changes that come as one paged list, such as those of a proposal: counts and picture are made from the rows. */
import type { ChangeOp, DiffEdgeOutput, DiffGraphOutput, DiffNodeOutput, DiffSummaryOutput, OpCountOutput, RowChangeOutput } from "../api/reviewTypes";
import type { CatalogOutput } from "../api/types";
import type { DiffPart } from "../source/review";
import { GRAPH_CHANGES, type DiffReader } from "./reader";

export interface ChangePage {
  readonly changes: readonly RowChangeOutput[];
  readonly next?: string | null;
}

export interface ListSource {
  /** Names the commits. */
  readonly key: string;
  readonly fromCommit: string;
  readonly toCommit: string;
  /** Refs at which the rows can be seen; null if there is no such place. */
  readonly beforeRef: string | null;
  readonly afterRef: string | null;
  readonly schemaSteps: readonly string[];
  readonly catalog: CatalogOutput | undefined;
  page(part: Omit<DiffPart, "kind">, after: string | undefined, signal: AbortSignal): Promise<ChangePage>;
}

const PAGES_MAX = 20;

/** Returns a reader of a list; at most twenty pages are read. */
export function listReader(list: ListSource): DiffReader {
  let all: Promise<readonly RowChangeOutput[]> | null = null;
  const rows = (signal: AbortSignal) =>
    (all ??= readAll(list, signal).catch((error: unknown) => {
      all = null;
      throw error;
    }));
  return {
    key: list.key,
    beforeRef: list.beforeRef,
    afterRef: list.afterRef,
    summary: async (signal) => summaryOf(await rows(signal), list),
    rows: async (part, limit, after, signal) => {
      const found = (await rows(signal)).filter((change) => isPart(change, part));
      const start = Number(after ?? 0);
      const end = start + limit;
      return { changes: found.slice(start, end), ...(end < found.length ? { next: String(end) } : {}) };
    },
    graph: async (part, signal) => graphOf((await rows(signal)).filter((change) => isPart(change, part)), list.catalog),
  };
}

async function readAll(list: ListSource, signal: AbortSignal): Promise<readonly RowChangeOutput[]> {
  const found: RowChangeOutput[] = [];
  let after: string | undefined;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const answer = await list.page({}, after, signal);
    found.push(...answer.changes);
    if (answer.next === undefined || answer.next === null) break;
    after = answer.next;
  }
  return found;
}

const isPart = (change: RowChangeOutput, part: DiffPart): boolean =>
  (part.kind === undefined || part.kind === change.kind) && (part.type === undefined || part.type === change.type_name) && (part.op === undefined || part.op === change.op);

export function summaryOf(rows: readonly RowChangeOutput[], list: Pick<ListSource, "fromCommit" | "toCommit" | "schemaSteps">): DiffSummaryOutput {
  const tables: Record<string, OpCountOutput> = {};
  for (const change of rows) (tables[change.table_key] ??= { insert: 0, update: 0, delete: 0 })[change.op] += 1;
  return { tables, schema_steps: [...list.schemaSteps], from_commit_id: list.fromCommit, to_commit_id: list.toCommit };
}

/** Returns the graph of the first changes; ends of changed edges are nodes without properties. */
export function graphOf(rows: readonly RowChangeOutput[], catalog: CatalogOutput | undefined): DiffGraphOutput {
  const shown = rows.filter((change) => change.kind === "node").slice(0, GRAPH_CHANGES);
  const edgeRows = rows.filter((change) => change.kind === "edge").slice(0, GRAPH_CHANGES);
  const nodes = new Map<string, DiffNodeOutput>();
  const add = (type: string, id: string, op: ChangeOp | null, data: Record<string, unknown>) => {
    if (!nodes.has(`${type} ${id}`)) nodes.set(`${type} ${id}`, { type, id, op, data });
  };
  for (const change of shown) add(change.type_name, change.id, change.op, { ...(change.after ?? change.before ?? {}) });
  const edges: DiffEdgeOutput[] = [];
  for (const change of edgeRows) {
    const type = catalog?.edges.find((each) => each.name === change.type_name);
    const { src, dst } = change.endpoints ?? { src: null, dst: null };
    if (type?.from === undefined || type.to === undefined || src === null || dst === null) continue;
    add(type.from, src, null, {});
    add(type.to, dst, null, {});
    edges.push({ type: change.type_name, id: change.id, op: change.op, source: { type: type.from, id: src }, target: { type: type.to, id: dst } });
  }
  return { nodes: [...nodes.values()], edges, changes_omitted: rows.length - shown.length - edgeRows.length, neighbors_omitted: false };
}
