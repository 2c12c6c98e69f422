/**
 * The changes between two commits: counts per type, rows in pages, and a picture. One selection for all three.
 *
 * The state is in `params` (see `DiffParams`), which a screen keeps in its link.
 */
import { useEffect, useMemo, useState } from "preact/hooks";

import type { ChangeOp, DiffGraphOutput, DiffSummaryOutput, RowChangeOutput } from "../api/reviewTypes";
import type { CatalogOutput } from "../api/types";
import { useLoad, type Loaded } from "../kit/load";
import { Tabs } from "../kit/Tabs";
import type { DiffPart } from "../source/review";
import { text } from "../text/review";
import { endsOf, matches, nodeKey, OPS, readKey, rowKey, sumOf, totalOf } from "./change";
import { DiffPane } from "./DiffPane";
import { labelsOf } from "./diffPicture";
import { Filters } from "./Filters";
import type { DiffReader } from "./reader";
import { RowsPane } from "./RowsPane";
import { readRows, useRows } from "./rows";
import { TypesPane } from "./TypesPane";
import { useViewed } from "./viewed";

/** Parameters of links: `type` is a table key, `row` the selected row, `edges=hide` leaves out edges of deleted nodes. */
export type DiffParams = Readonly<Partial<Record<"type" | "op" | "property" | "actor" | "find" | "row" | "edges" | "pane", string>>>;

interface Props {
  reader: DiffReader;
  catalog: CatalogOutput | undefined;
  params: DiffParams;
  /** Sets some parameters; an empty text removes one. */
  onParams(change: DiffParams): void;
  /** What stands below a row, such as comments of a proposal. */
  below?(change: RowChangeOutput): preact.ComponentChildren;
}

export function DiffView(props: Props) {
  const summary = useLoad(props.reader.key, (signal) => props.reader.summary(signal));
  // Rows do not wait for the counts.
  return <Panes {...props} loaded={summary} summary={summary.value ?? NO_CHANGES} />;
}

const NO_CHANGES: DiffSummaryOutput = { tables: {}, schema_steps: [], from_commit_id: "", to_commit_id: "" };

const partOf = (params: DiffParams): DiffPart => {
  const table = params.type === undefined ? null : readKey(`${params.type}:`);
  return {
    ...(table === null ? {} : { kind: table.kind, type: table.type }),
    ...(OPS.includes(params.op as ChangeOp) ? { op: params.op as ChangeOp } : {}),
  };
};

function Panes({ reader, catalog, params, onParams, below, loaded, summary }: Props & { loaded: Loaded<DiffSummaryOutput>; summary: DiffSummaryOutput }) {
  const narrow = useNarrow();
  const viewed = useViewed(reader.key);
  const part = partOf(params);
  // The first rows come before the picture, which costs the server more.
  const partKey = JSON.stringify([reader.key, part]);
  const [ready, setReady] = useState("");
  const graph = useLoad(ready === partKey ? partKey : null, (signal) => reader.graph(part, signal));
  const gone = useGoneEdges(reader, catalog, ready === "" ? NO_CHANGES : summary);
  const actor = params.actor ?? "";
  const touched = useLoad(actor === "" ? null : JSON.stringify([reader.key, actor]), (signal) => reader.touched?.(actor, signal) ?? Promise.resolve(new Set<string>()));
  const filter = {
    property: params.property ?? "",
    find: params.find ?? "",
    touched: actor === "" ? null : (touched.value ?? new Set<string>()),
    withoutEdgesOf: params.edges === "hide" ? new Set(gone?.byNode.keys() ?? []) : null,
    catalog,
  };
  const keepKey = JSON.stringify([filter.property, filter.find, actor, touched.value?.size, params.edges, gone === null]);
  const selected = params.row ?? null;
  const rows = useRows(reader, part, (change) => matches(change, filter), keepKey, isChanged(graph, selected) ? selected : null);
  useEffect(() => {
    if (rows.read > 0 || rows.done || rows.problem !== null) setReady(partKey);
  }, [partKey, rows.read > 0, rows.done, rows.problem]);
  const context = useMemo(
    () => ({ catalog, labels: graph.value === undefined ? new Map<string, string>() : labelsOf(graph.value), beforeRef: reader.beforeRef, afterRef: reader.afterRef }),
    [catalog, graph.value, reader.key],
  );
  const select = (key: string | null) => onParams({ row: key ?? "" });
  const pane = narrow ? (params.pane ?? "rows") : null;
  return (
    <div class="diff" data-narrow={narrow ? "" : undefined}>
      {narrow ? (
        <Tabs
          label={text.diff.panes}
          tabs={[
            { name: "rows", title: text.diff.rowsPane },
            { name: "picture", title: text.diff.picturePane },
            { name: "types", title: text.diff.typesPane },
          ]}
          selected={pane ?? "rows"}
          onSelect={(name) => onParams({ pane: name === "rows" ? "" : name })}
        />
      ) : null}
      {pane === null || pane === "types" ? (
        <TypesPane summary={loaded} catalog={catalog} params={params} onParams={onParams} selected={selected} viewed={viewed.rows.size} goneEdges={gone?.count ?? 0} narrow={narrow} />
      ) : null}
      {pane === null || pane === "rows" ? (
        <RowsPane
          list={rows}
          total={sumOf(totalOf(summary.tables))}
          context={context}
          selected={selected}
          onSelect={select}
          viewed={viewed}
          gone={gone?.byNode ?? new Map()}
          goneMore={gone?.more ?? false}
          narrow={narrow}
          {...(below === undefined ? {} : { below })}
          filters={<Filters reader={reader} catalog={catalog} params={params} onParams={onParams} summary={summary} />}
        />
      ) : null}
      {pane === null || pane === "picture" ? <DiffPane graph={graph} catalog={catalog} summary={summary} reader={reader} selected={selected} onSelect={select} narrow={narrow} /> : null}
    </div>
  );
}

/** True if the graph has a row as changed, so that reading on will find it. */
function isChanged(graph: Loaded<DiffGraphOutput>, key: string | null): boolean {
  const name = key === null ? null : readKey(key);
  if (name === null || graph.value === undefined) return false;
  const found = [...graph.value.nodes.map((each) => [each, "node"] as const), ...graph.value.edges.map((each) => [each, "edge"] as const)];
  return found.some(([each, kind]) => kind === name.kind && each.type === name.type && each.id === name.id && each.op !== null);
}

interface GoneEdges {
  readonly byNode: ReadonlyMap<string, readonly RowChangeOutput[]>;
  readonly count: number;
  readonly more: boolean;
}

/** The deleted edges of each deleted node; null until they are read. */
function useGoneEdges(reader: DiffReader, catalog: CatalogOutput | undefined, summary: DiffSummaryOutput): GoneEdges | null {
  const has = (kind: string) => Object.entries(summary.tables).some(([key, counts]) => key.startsWith(kind) && counts.delete > 0);
  const wanted = catalog !== undefined && has("node:") && has("edge:");
  const loaded = useLoad(wanted ? reader.key : null, async (signal) => {
    const [nodes, edges] = await Promise.all([readRows(reader, { kind: "node", op: "delete" }, signal), readRows(reader, { kind: "edge", op: "delete" }, signal)]);
    const byNode = new Map<string, RowChangeOutput[]>(nodes.rows.map((node) => [nodeKey(node.type_name, node.id), []]));
    const seen = new Set<string>();
    for (const edge of edges.rows) {
      for (const end of new Set(endsOf(edge, catalog))) {
        if (byNode.get(end)?.push(edge) !== undefined) seen.add(rowKey(edge));
      }
    }
    return { byNode, count: seen.size, more: nodes.more || edges.more };
  });
  return loaded.value ?? null;
}

const NARROW = "(max-width: 899px)";

function useNarrow(): boolean {
  const [narrow, setNarrow] = useState(() => window.matchMedia(NARROW).matches);
  useEffect(() => {
    const media = window.matchMedia(NARROW);
    const follow = () => setNarrow(media.matches);
    media.addEventListener("change", follow);
    return () => media.removeEventListener("change", follow);
  }, []);
  return narrow;
}
