/** The right pane: the changes as a picture. */
import { useMemo } from "preact/hooks";

import type { DiffGraphOutput, DiffSummaryOutput } from "../api/reviewTypes";
import type { CatalogOutput } from "../api/types";
import { Loading, type Loaded } from "../kit/load";
import { Picture } from "../picture/Picture";
import { go, href } from "../state/location";
import { text as common } from "../text/en";
import { text } from "../text/review";
import { nodeKey, OPS, SIGNS, sumOf, totalOf } from "./change";
import { diffPicture } from "./diffPicture";
import type { DiffReader } from "./reader";

interface Props {
  graph: Loaded<DiffGraphOutput>;
  catalog: CatalogOutput | undefined;
  summary: DiffSummaryOutput;
  reader: DiffReader;
  selected: string | null;
  onSelect(key: string | null): void;
  narrow: boolean;
}

export function DiffPane({ graph, narrow, ...rest }: Props) {
  return (
    <section class="card picture-pane" {...(narrow ? { role: "tabpanel", id: "panel-picture", "aria-labelledby": "tab-picture" } : { "aria-label": text.diff.picturePane })}>
      <Legend />
      <Loading of={graph}>{(value) => <GraphPicture graph={value} {...rest} />}</Loading>
    </section>
  );
}

function Legend() {
  return (
    <p class="diff-legend small" aria-hidden="true">
      {OPS.map((op) => (
        <span class={`legend-item ${op}`} key={op}>
          <span class="dot" />
          {SIGNS[op]} {text.diff.legend[op]}
        </span>
      ))}
      <span class="legend-item same">
        <span class="dot" />
        {text.diff.legend.same}
      </span>
    </p>
  );
}

function GraphPicture({ graph, catalog, summary, reader, selected, onSelect }: Omit<Props, "graph" | "narrow"> & { graph: DiffGraphOutput }) {
  const picture = useMemo(() => diffPicture(graph, catalog), [graph, catalog]);
  const { data, index, ends } = picture;
  if (data.nodes.length === 0) return <p class="empty">{text.diff.none}</p>;
  const keys = selected === null ? [] : (ends.get(selected) ?? [selected]);
  const picked = keys.flatMap((key) => index.get(key) ?? []);
  const refOf = (type: string, id: string) => (graph.nodes.find((each) => each.type === type && each.id === id)?.op === "delete" ? reader.beforeRef : reader.afterRef);
  const link = (type: string, id: string) => ({ screen: "entity", path: [type, id], params: {}, ...(refOf(type, id) === null ? {} : { ref: refOf(type, id) as string }) });
  const total = sumOf(totalOf(summary.tables));
  const note =
    graph.changes_omitted > 0 ? text.diff.pictureCut(total - graph.changes_omitted, total) : graph.neighbors_omitted ? text.diff.neighborsCut : undefined;
  return (
    <Picture
      data={data}
      label={common.picture.sentence(data.nodes.length, data.src.length, text.diff.picture(graph.nodes.filter((each) => each.op !== null).length, graph.edges.filter((each) => each.op !== null).length))}
      nodeHref={(type, id) => href(link(type, id))}
      onOpen={(type, id) => go(link(type, id))}
      picked={picked}
      onPicked={(node) => {
        const found = node === null ? undefined : data.nodes[node];
        onSelect(found === undefined ? null : nodeKey(found.type, found.id));
      }}
      {...(note === undefined ? {} : { note: <span class="small">{note}</span> })}
      compact
    />
  );
}
