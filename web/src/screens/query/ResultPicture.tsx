/** The picture of a result: its nodes up to a limit, expanded ones, or groups of them as bubbles. */
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";

import type { ResultTable } from "../../api/result";
import type { CatalogOutput } from "../../api/types";
import { Loading, useLoad } from "../../kit/load";
import { NODES_MAX, NODES_MORE, NODES_SHOWN, pictureOf } from "../../picture/build";
import { addExpansion, expansionNote, useExpansion } from "../../picture/expansion";
import { Picture, type PictureExport } from "../../picture/Picture";
import type { Place, QueryRequest } from "../../source/source";
import { source } from "../../state/context";
import { go, href, link, replace } from "../../state/location";
import { text } from "../../text/en";
import { bubblesOf, groupingsOf, groupRequest, nodeColumns } from "./groups";

const LIMITS = [NODES_SHOWN, NODES_MORE, NODES_MAX];
const EXPANDED_ROOM = 500;

interface Props {
  table: ResultTable;
  request: QueryRequest;
  here: Place;
  exporter: { current: PictureExport | null };
}

export const nodeHref = (type: string, id: string): string => href({ screen: "entity", path: [type, id], params: {} });
const openNode = (type: string, id: string): void => go({ screen: "entity", path: [type, id], params: {} });
const setParam = (name: string, value: string): void => replace({ params: { ...link.value.params, [name]: value } });

export function ResultPicture(props: Props) {
  const { table, request, here } = props;
  const catalog = useLoad(`${here.graph} ${here.commit}`, (signal) => source.catalog(here, signal)).value;
  const columns = useMemo(() => nodeColumns(table, request.text), [table, request.text]);
  const groupings = useMemo(() => groupingsOf(columns, catalog), [columns, catalog]);
  if (columns.length === 0) {
    return (
      <div class="empty">
        <strong>{text.query.noPicture}</strong>
        <span>{text.query.noPictureHint}</span>
      </div>
    );
  }
  const grouping = link.value.params["group"];
  const menu = (
    <select class="select small" aria-label={text.picture.group} value={grouping ?? ""} onChange={(event) => setParam("group", event.currentTarget.value)}>
      <option value="">{text.picture.noGroup}</option>
      {groupings.map((name) => (
        <option key={name} value={name}>
          {name === "type" ? text.picture.byType : text.picture.by(name)}
        </option>
      ))}
    </select>
  );
  return grouping !== undefined && groupings.includes(grouping) ? <Groups {...props} catalog={catalog} columns={columns} grouping={grouping} menu={menu} /> : <Nodes {...props} catalog={catalog} menu={menu} />;
}

interface Shown {
  catalog: CatalogOutput | undefined;
  menu: ComponentChildren;
}

function Nodes({ table, here, exporter, catalog, menu }: Props & Shown) {
  const asked = Number(link.value.params["nodes"] ?? NODES_SHOWN);
  const limit = LIMITS.includes(asked) ? asked : NODES_SHOWN;
  const expansion = useExpansion(here);
  const { data, leftOut } = useMemo(() => {
    const builder = pictureOf(table, catalog, limit);
    if (builder === null) throw new Error("a result without nodes has no picture");
    const left = builder.leftOut;
    builder.grow(EXPANDED_ROOM);
    addExpansion(builder, expansion);
    return { data: builder.build(), leftOut: left };
  }, [table, catalog, limit, expansion.neighborhoods]);
  const total = data.nodes.length + leftOut;
  const next = LIMITS.find((each) => each > limit);
  const expanded = expansionNote(expansion);
  const note = (
    <>
      {leftOut > 0 ? <span>{text.picture.shown(data.nodes.length, total, table.next !== null)}</span> : null}
      {leftOut > 0 && next !== undefined ? (
        <button type="button" class="button small" onClick={() => setParam("nodes", String(next))}>
          {text.picture.more(Math.min(next, total))}
        </button>
      ) : null}
      {expanded === null ? null : <span role="status">{expanded}</span>}
      {menu}
    </>
  );
  const label = text.picture.sentence(data.nodes.length, data.src.length, text.query.views.toLowerCase());
  return <Picture data={data} label={label} nodeHref={nodeHref} onOpen={openNode} onExpand={expansion.expand} note={note} exporter={exporter} />;
}

function Groups({ table, request, here, exporter, catalog, columns, grouping, menu }: Props & Shown & { columns: ReturnType<typeof nodeColumns>; grouping: string }) {
  const asked = groupRequest(request, columns, grouping);
  const counted = useLoad(asked === null ? null : JSON.stringify([here.commit, asked]), (signal) => source.query(here, asked as QueryRequest, null, signal));
  const bubbles = useMemo(() => (counted.value === undefined ? null : bubblesOf(counted.value, table, columns, grouping, catalog)), [counted.value, table, grouping, catalog]);
  if (bubbles === null) {
    return (
      <div class="pad stack tight">
        <Loading of={counted}>{() => null}</Loading>
        <div class="row">{menu}</div>
      </div>
    );
  }
  const note = (
    <>
      <span>{text.picture.groups(bubbles.groups, grouping)}</span>
      {menu}
    </>
  );
  const label = text.picture.sentence(bubbles.data.nodes.length, bubbles.data.src.length, text.query.views.toLowerCase());
  return <Picture data={bubbles.data} label={label} onOpen={() => undefined} note={note} exporter={exporter} />;
}
