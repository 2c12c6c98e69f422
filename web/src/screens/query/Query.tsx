/** The query workspace: editor, parameters, stored queries and history above, the result below. */
import { useEffect, useMemo, useRef } from "preact/hooks";

import { serverServices } from "../../editor/server";
import type { EditorHandle } from "../../editor/services";
import { TextEditor } from "../../editor/TextEditor";
import { Skeleton } from "../../kit/load";
import { may, place, source } from "../../state/context";
import { link, replace } from "../../state/location";
import { packText, unpackText } from "../../state/packed";
import { text } from "../../text/en";
import { Actions } from "./Actions";
import { ChangeBar } from "./ChangeBar";
import { Form } from "./Form";
import { Result } from "./Result";
import { Side } from "./Side";
import { Workspace, type View } from "./workspace";

const LINK_MS = 600;
const VIEWS: readonly View[] = ["table", "picture", "json", "plan"];

export default function Query() {
  const space = useMemo(() => new Workspace(), []);
  const editor = useRef<EditorHandle | null>(null);
  const here = place.value;
  useLinkedState(space, editor);
  useEffect(() => () => space.stop(), []);
  const services = useMemo(
    () =>
      serverServices("gq", (typed, report) => {
        if (typed === space.text.value) space.linted.value = report.results;
      }),
    [space],
  );
  if (here === null) return <Skeleton />;
  const run = () => void runQuery(space);
  const asked = link.value.params["view"] as View | undefined;
  const view = asked !== undefined && VIEWS.includes(asked) ? asked : "table";
  return (
    <div class="query fill">
      <h1 class="visually-hidden">{text.query.title}</h1>
      <div class="workspace card">
        <Actions space={space} run={run} />
        <div class="panes">
          <TextEditor label={text.query.editor} value={space.text} services={services} onRun={run} handle={editor} takesFocus={() => firstField() === null} />
          <Form space={space} run={run} />
          <Side space={space} />
        </div>
        {space.isChange.value ? <ChangeBar space={space} /> : null}
      </div>
      <Result space={space} view={view} onView={(next) => replace({ params: { ...link.value.params, view: next === "table" ? "" : next } })} editor={editor} />
    </div>
  );
}

/** Runs the query: a read at once, a change on a branch that the caller may change. */
export async function runQuery(space: Workspace): Promise<void> {
  const here = place.value;
  if (here === null || !space.canRun) return;
  if (!space.isChange.value) await space.read();
  else if (here.branch !== null && may("change")) await space.change(here);
}

/** Keeps text, name and parameters in the link: the link fills the workspace, and edits change the link. */
function useLinkedState(space: Workspace, editor: { current: EditorHandle | null }): void {
  const params = link.value.params;
  const given = JSON.stringify([params["name"], params["q"], params["z"], params["type"]]);
  useEffect(() => {
    if (given === space.linkKey || place.value === null) return undefined;
    const first = space.linkKey === "";
    space.linkKey = given;
    space.linkRead = false;
    const abort = new AbortController();
    void fill(space, first, abort.signal).then(() => {
      if (abort.signal.aborted) return;
      space.linkRead = true;
      setTimeout(() => (firstField() ?? editor.current)?.focus(), 0);
      if (params["run"] !== undefined && space.canRun && !space.isChange.value) void space.read();
    }, (error: unknown) => space.fail(error));
    return () => abort.abort();
  }, [given, place.value === null]);
  useEffect(() => {
    // The link is written only after it was read.
    if (!space.linkRead) return undefined;
    const timer = setTimeout(() => void writeLink(space), LINK_MS);
    return () => clearTimeout(timer);
  }, [space.text.value, space.values.value, space.chosen.value]);
}

const firstField = (): HTMLElement | null => document.querySelector<HTMLElement>(".parameters .input, .parameters select");

/** Fills the workspace from the link. A first link without a query leaves what was typed meanwhile. */
async function fill(space: Workspace, first: boolean, signal: AbortSignal): Promise<void> {
  const { params } = link.value;
  const here = place.value;
  const values = Object.fromEntries(Object.entries(params).flatMap(([name, value]) => (name.startsWith("p.") ? [[name.slice(2), value]] : [])));
  const draft = await unpackText(params);
  space.storedName.value = params["name"] ?? null;
  space.values.value = values;
  space.chosen.value = params["of"] ?? null;
  if (draft !== null) space.text.value = draft;
  else if (params["name"] !== undefined && here !== null) {
    const stored = await source.storedQuery(here, params["name"], signal);
    space.text.value = stored.source ?? "";
  } else if (params["type"] !== undefined && here !== null) {
    const catalog = await source.catalog(here, signal);
    const type = catalog.nodes.find((each) => each.name === params["type"]);
    const shown = type?.properties.filter((each) => !/^(Vector|Blob)/.test(each.type)).map((each) => each.name) ?? [];
    space.text.value = text.query.template(params["type"], shown);
  } else if (!first) space.text.value = "";
}

/** Writes the workspace into the link; returns false if the text does not fit. */
export async function writeLink(space: Workspace): Promise<boolean> {
  const draft = await packText(space.text.value);
  const current = link.value;
  if (draft === null || current.screen !== "query") return false;
  const values = Object.fromEntries(Object.entries(space.values.value).map(([name, value]) => [`p.${name}`, value]));
  const kept = { view: current.params["view"] ?? "", name: space.storedName.value ?? "", of: space.chosen.value ?? "", run: current.params["run"] ?? "", group: current.params["group"] ?? "", nodes: current.params["nodes"] ?? "", expand: current.params["expand"] ?? "" };
  const params = { ...kept, ...values, ...draft };
  const shown = Object.fromEntries(Object.entries(params).filter(([, value]) => value !== ""));
  space.linkKey = JSON.stringify([shown["name"], shown["q"], shown["z"], shown["type"]]);
  if (JSON.stringify(Object.entries(shown).sort()) !== JSON.stringify(Object.entries(current.params).sort())) replace({ params: shown });
  return true;
}
