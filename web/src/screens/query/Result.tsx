/** The result of the workspace: table, picture, JSON and plan. */
import { useMemo, useRef } from "preact/hooks";

import { problemOf } from "../../api/problem";
import type { ResultTable } from "../../api/result";
import type { EditorHandle } from "../../editor/services";
import { announce } from "../../kit/announce";
import { saveFile } from "../../kit/files";
import { Icon } from "../../kit/Icon";
import { Menu, type MenuItem } from "../../kit/Menu";
import { ProblemBox } from "../../kit/ProblemBox";
import { DataTable } from "../../kit/Table";
import { Panel, Tabs } from "../../kit/Tabs";
import type { PictureExport } from "../../picture/Picture";
import { pngOf } from "../../picture/png";
import { source } from "../../state/context";
import type { ExportForm } from "../../source/source";
import { text } from "../../text/en";
import { copyLink } from "./Actions";
import { Plan } from "./Plan";
import { nodeHref, ResultPicture } from "./ResultPicture";
import type { View, Workspace } from "./workspace";

const JSON_ROWS = 200;
const JSON_VALUES = 50_000;

interface Props {
  space: Workspace;
  view: View;
  onView(view: View): void;
  editor: { current: EditorHandle | null };
}

export function Result({ space, view, onView, editor }: Props) {
  const exporter = useRef<PictureExport | null>(null);
  const tabs = (["table", "picture", "json", "plan"] as const).map((name) => ({ name, title: text.query[name] }));
  return (
    <section class="result card" aria-label={text.query.views}>
      <Tabs label={text.query.views} tabs={tabs} selected={view} onSelect={(name) => onView(name as View)}>
        <Summary space={space} view={view} exporter={exporter} />
      </Tabs>
      <Panel name={view} class="fill">
        {view === "plan" ? <Plan space={space} /> : <Rows space={space} view={view} exporter={exporter} editor={editor} />}
      </Panel>
    </section>
  );
}

function Summary({ space, view, exporter }: { space: Workspace; view: View; exporter: { current: PictureExport | null } }) {
  const table = space.table.value;
  const outcome = space.outcome.value;
  const shown = table !== null && outcome?.kind === "rows";
  return (
    <div class="row wrap summary">
      {shown ? (
        <span class="muted number" aria-live="polite">
          {text.query.rows(table.rowCount, table.next !== null)} · {text.query.ms(table.elapsedMs)} · {text.query.at(outcome.place.ref, table.commit)}
        </span>
      ) : null}
      {shown ? <Menu end class="button small" label={text.query.export} button={text.query.export} items={exportItems(space, view, exporter)} /> : null}
      <button type="button" class="button small" disabled={space.text.value.trim() === ""} onClick={() => void copyLink(space)}>
        <Icon name="link" />
        {text.query.copyLink}
      </button>
    </div>
  );
}

function exportItems(space: Workspace, view: View, exporter: { current: PictureExport | null }): MenuItem[] {
  const items = (["csv", "jsonl", "parquet", "arrow"] as const).map((form): MenuItem => ({ label: text.query.exports[form], run: () => void exportRows(space, form) }));
  items.push({ label: text.query.exports.html, run: () => void exportPage(space) });
  if (view === "picture") {
    const name = fileName(space);
    items.push(
      { label: text.query.exports.svg, run: () => exporter.current !== null && saveFile(new Blob([exporter.current.svg()], { type: "image/svg+xml" }), `${name}.svg`) },
      { label: text.query.exports.png, run: () => exporter.current !== null && void pngOf(exporter.current.svg()).then((png) => saveFile(png, `${name}.png`)) },
    );
  }
  return items;
}

const fileName = (space: Workspace): string => space.storedName.value ?? space.head.value?.name ?? "result";

/** Saves the rows that are loaded, with their picture, as one HTML file. */
async function exportPage(space: Workspace): Promise<void> {
  const outcome = space.outcome.value;
  const table = space.table.value;
  if (outcome?.kind !== "rows" || table === null) return;
  const name = `${fileName(space)}.html`;
  try {
    const [{ savedFile }, catalog] = await Promise.all([import("./saved"), source.catalog(outcome.place)]);
    saveFile(await savedFile(table, catalog, fileName(space)), name);
    announce(text.query.exported(name));
  } catch (error) {
    const problem = problemOf(error);
    if (problem !== null) announce(problem.message);
  }
}

async function exportRows(space: Workspace, form: ExportForm): Promise<void> {
  const outcome = space.outcome.value;
  if (outcome?.kind !== "rows") return;
  const name = `${fileName(space)}.${form === "arrow" ? "arrows" : form}`;
  try {
    saveFile(await source.exportRows(outcome.place, outcome.request, form), name);
    announce(text.query.exported(name));
  } catch (error) {
    const problem = problemOf(error);
    if (problem !== null) announce(problem.message);
  }
}

function Rows({ space, view, exporter, editor }: { space: Workspace; view: View; exporter: { current: PictureExport | null }; editor: { current: EditorHandle | null } }) {
  const outcome = space.outcome.value;
  const table = space.table.value;
  if (space.running.value === "read" && outcome === null) return <div class="skeleton" role="status" aria-label={text.loading}><span /><span /><span /></div>;
  if (outcome === null) {
    return (
      <div class="empty">
        <strong>{text.query.start}</strong>
        <span>{text.query.startHint}</span>
      </div>
    );
  }
  if (outcome.kind === "problem") {
    const span = outcome.problem.diagnostics[0]?.span;
    return (
      <div class="pad" onClick={() => span !== undefined && editor.current?.select(span.start, span.end)}>
        <ProblemBox problem={outcome.problem} />
      </div>
    );
  }
  if (outcome.kind === "change") {
    const { change } = outcome;
    return (
      <div class="empty" role="status">
        <strong>{change.commit === null ? text.query.unchanged : text.query.changed(change.affected_nodes, change.affected_edges)}</strong>
        {change.commit === null ? null : <code>{change.commit.graph_commit_id}</code>}
      </div>
    );
  }
  if (table === null || table.rowCount === 0) {
    return (
      <div class="empty">
        <strong>{text.query.noRows}</strong>
        <span>{text.query.noRowsHint}</span>
      </div>
    );
  }
  if (view === "json") return <Json table={table} />;
  if (view === "picture") return <ResultPicture table={table} request={outcome.request} here={outcome.place} exporter={exporter} />;
  return <DataTable table={table} label={text.query.table} nodeHref={nodeHref} onEnd={() => void space.more()} />;
}

function Json({ table }: { table: ResultTable }) {
  const rows = Math.min(JSON_ROWS, table.rowCount, Math.ceil(JSON_VALUES / Math.max(1, table.columns.length)));
  const shown = useMemo(() => {
    const objects = Array.from({ length: rows }, (_, row) => Object.fromEntries(table.columns.map((column, index) => [column.name, table.cell(index, row)])));
    return JSON.stringify(objects, (_, value: unknown) => (typeof value === "bigint" ? (Number.isSafeInteger(Number(value)) ? Number(value) : value.toString()) : value), 2);
  }, [table]);
  return (
    <div class="json">
      {rows < table.rowCount ? <p class="muted small pad">{text.query.jsonCut(rows, table.rowCount)}</p> : null}
      <pre class="mono pad" tabIndex={0}>
        {shown}
      </pre>
    </div>
  );
}
