/** A picture of nodes and edges with the same nodes as a list. Selection is one for both. */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Icon } from "../kit/Icon";
import { shownTheme } from "../state/prefs";
import { text } from "../text/en";
import { follow } from "./follow";
import { List } from "./List";
import { useLayout } from "./places";
import type { LayoutRunner } from "./runner";
import { Mark, nodeKey, themeColours, type Colours, type PictureData, type Places, type Scene } from "./scene";
import { boxOf, centred, SvgPicture, toSvg, zoomed, type Box } from "./svg";
import { workerLayout } from "./worker";

const SVG_MAX = 300;
const ZOOM = 1.3;
/** A context that is lost once is made again; lost twice, the picture is drawn without WebGL. */
const SCENES_MAX = 2;

export interface PictureExport {
  svg(): string;
}

export interface PictureProps {
  data: PictureData;
  label: string;
  nodeHref?(type: string, id: string): string;
  onOpen(type: string, id: string): void;
  onExpand?(type: string, id: string): void;
  /** What was left out, and how to see it. */
  note?: ComponentChildren;
  exporter?: { current: PictureExport | null };
  /** True if the list of the same nodes is beside the picture on its screen. */
  compact?: boolean;
  /** The selected nodes, if the screen keeps the selection; the first one is the current node. */
  picked?: readonly number[];
  onPicked?(node: number | null): void;
  /** Where the layout runs; a worker unless given. */
  layout?: () => LayoutRunner;
}

export function Picture({ data, label, nodeHref, onOpen, onExpand, note, exporter, compact = false, picked, onPicked, layout = workerLayout }: PictureProps) {
  const root = useRef<HTMLDivElement>(null);
  // The own selection is a key, so that it stays when nodes are added.
  const [own, setOwn] = useState<string | null>(null);
  const kept = useMemo(() => (own === null ? -1 : data.nodes.findIndex((node) => nodeKey(node) === own)), [data, own]);
  const shown = picked ?? (kept < 0 ? [] : [kept]);
  const selected = shown[0] ?? null;
  const [places, settled] = useLayout(data, layout);
  const colours = useMemo(() => themeColours(root.current ?? document.documentElement), [shownTheme.value, root.current]);
  const select = (node: number | null) => {
    const found = node === null ? undefined : data.nodes[node];
    if (onPicked === undefined) setOwn(found === undefined ? null : nodeKey(found));
    else onPicked(node);
  };
  const open = (node: number) => {
    const found = data.nodes[node];
    if (found !== undefined) onOpen(found.type, found.id);
  };
  const view = useView(data, places, colours, shown, { select, open });
  if (exporter !== undefined) exporter.current = { svg: () => toSvg(data, places, colours) };
  const pick = (node: number) => {
    select(node);
    view.to(node);
  };
  // A step of the layout does not change the list.
  const list = useMemo(
    () => <List data={data} selected={selected} onPick={pick} {...(nodeHref === undefined ? {} : { nodeHref })} {...(onExpand === undefined ? {} : { onExpand })} />,
    [data, selected],
  );
  const onKey = (event: KeyboardEvent) => {
    const next = event.key.startsWith("Arrow") ? follow(data, places, selected, event.key) : null;
    const chosen = selected === null ? undefined : data.nodes[selected];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (next !== null) pick(next);
    else if (event.key === "Enter" && chosen !== undefined) onOpen(chosen.type, chosen.id);
    else if (event.key === "e" && chosen !== undefined && onExpand !== undefined) onExpand(chosen.type, chosen.id);
    else if (event.key === "+" || event.key === "=") view.zoom(ZOOM);
    else if (event.key === "-") view.zoom(1 / ZOOM);
    else if (event.key === "0") view.fit();
    else if (event.key === "Escape" && selected !== null) select(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const svg = view.drawn === "svg";
  return (
    <div class={compact ? "picture compact" : "picture"} ref={root}>
      <div class="canvas" data-settled={settled ? "" : undefined} data-drawn={view.drawn}>
        <div class="stage" ref={view.host} role="img" aria-label={label} tabIndex={svg ? -1 : 0} onKeyDown={onKey} hidden={svg} />
        {svg ? (
          <div class="stage" tabIndex={0} role="group" aria-label={label} onKeyDown={onKey}>
            {data.nodes.length <= SVG_MAX ? (
              <SvgPicture data={data} places={places} colours={colours} selected={selected} label={label} view={view.box} onView={view.setBox} onPick={select} onOpen={open} />
            ) : (
              <p class="empty">{text.picture.noWebgl(SVG_MAX)}</p>
            )}
          </div>
        ) : null}
        <div class="tools" role="group" aria-label={text.picture.tools}>
          <button type="button" class="button icon" aria-label={text.picture.zoomIn} onClick={() => view.zoom(ZOOM)}>
            <Icon name="plus" />
          </button>
          <button type="button" class="button icon" aria-label={text.picture.zoomOut} onClick={() => view.zoom(1 / ZOOM)}>
            <Icon name="minus" />
          </button>
          <button type="button" class="button small" onClick={() => view.fit()}>
            {text.picture.fit}
          </button>
        </div>
        {note === undefined ? null : <div class="picture-note">{note}</div>}
      </div>
      {list}
    </div>
  );
}

interface View {
  host: { current: HTMLDivElement | null };
  /** What draws: nothing yet, WebGL, or SVG. */
  drawn: "waiting" | "webgl" | "svg";
  box: Box;
  setBox(box: Box): void;
  zoom(factor: number): void;
  fit(): void;
  to(node: number): void;
}

/** Draws the picture by WebGL or SVG, and moves its camera. */
function useView(data: PictureData, places: Places, colours: Colours, selected: readonly number[], on: { select(node: number | null): void; open(node: number): void }): View {
  const host = useRef<HTMLDivElement>(null);
  const scene = useRef<Scene | null>(null);
  const [drawn, setDrawn] = useState<View["drawn"]>("waiting");
  const [scenes, setScenes] = useState(1);
  const [given, setBox] = useState<{ of: PictureData; box: Box } | null>(null);
  const latest = useRef(on);
  latest.current = on;

  useEffect(() => {
    if (scenes > SCENES_MAX) {
      setDrawn("svg");
      return undefined;
    }
    let gone = false;
    void import("./sigma").then(({ makeScene }) => {
      if (gone || host.current === null) return;
      const made = makeScene(host.current, colours);
      scene.current = made;
      setDrawn(made === null ? "svg" : "webgl");
      if (made === null) return;
      made.onPick = (node) => latest.current.select(node);
      made.onOpen = (node) => latest.current.open(node);
      made.onLost = () => {
        setDrawn("waiting");
        setScenes((count) => count + 1);
      };
      (host.current as { scene?: Scene }).scene = made;
    });
    return () => {
      gone = true;
      scene.current?.destroy();
      scene.current = null;
    };
  }, [scenes]);
  useEffect(() => scene.current?.show(data, places), [data, drawn]);
  useEffect(() => scene.current?.move(places), [places]);
  useEffect(() => scene.current?.colour(colours), [colours]);
  useEffect(() => {
    const marks = new Uint8Array(data.nodes.length);
    for (const node of selected) marks[node] = Mark.Selected;
    scene.current?.mark(marks);
  }, [selected.join(), data, drawn]);

  const box = given !== null && given.of === data ? given.box : boxOf(places);
  const show = (next: Box) => setBox({ of: data, box: next });
  return {
    host,
    drawn,
    box,
    setBox: show,
    zoom: (factor) => (scene.current === null ? show(zoomed(box, factor)) : scene.current.zoom(factor)),
    fit: () => (scene.current === null ? setBox(null) : scene.current.fit()),
    to: (node) => (scene.current === null ? show(centred(box, places[2 * node] as number, -(places[2 * node + 1] as number))) : scene.current.to(node)),
  };
}
