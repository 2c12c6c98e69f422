/** The picture as SVG: the export, and the fallback where there is no WebGL2. */
import { useMemo, useRef } from "preact/hooks";

import { edgeLook, Form, markedLabel, nodeLook, pairLabels, type Colours, type PictureData, type Places } from "./scene";

const MARGIN = 60;
const LABELLED_EDGES_MAX = 300;
const LONG_ENOUGH = 46;
const ZOOM_WHEEL = 1.15;

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export function boxOf(places: Places): Box {
  let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let at = 0; at < places.length; at += 2) {
    left = Math.min(left, places[at] as number);
    right = Math.max(right, places[at] as number);
    top = Math.min(top, -(places[at + 1] as number));
    bottom = Math.max(bottom, -(places[at + 1] as number));
  }
  if (places.length === 0) [left, right, top, bottom] = [0, 0, 0, 0];
  return { x: left - MARGIN, y: top - MARGIN, width: right - left + 2 * MARGIN, height: bottom - top + 2 * MARGIN };
}

/** Returns a box zoomed around its middle. */
export function zoomed(box: Box, factor: number): Box {
  const width = box.width / factor;
  const height = box.height / factor;
  return { x: box.x + (box.width - width) / 2, y: box.y + (box.height - height) / 2, width, height };
}

/** Returns a box of the same size around a point. */
export const centred = (box: Box, x: number, y: number): Box => ({ ...box, x: x - box.width / 2, y: y - box.height / 2 });

type Attributes = Readonly<Record<string, string | number>>;

/** One element of the picture: what both forms write. */
interface Shape {
  readonly tag: "line" | "circle" | "path" | "text";
  readonly attributes: Attributes;
  readonly text?: string;
  readonly node?: number;
}

const round = (value: number): number => Math.round(value * 10) / 10;

function* edgeShapes(data: PictureData, places: Places, colours: Colours): Generator<Shape> {
  const labels = data.src.length <= LABELLED_EDGES_MAX ? pairLabels(data) : [];
  for (let edge = 0; edge < data.src.length; edge += 1) {
    const [from, to] = [data.src[edge] as number, data.dst[edge] as number];
    const [x1, y1] = [places[2 * from] as number, -(places[2 * from + 1] as number)];
    const [x2, y2] = [places[2 * to] as number, -(places[2 * to + 1] as number)];
    const length = Math.hypot(x2 - x1, y2 - y1);
    const { colour, dashed, width } = edgeLook(colours, data.edgeMarks[edge] ?? 0, data.src.length);
    const line = { "stroke": colour, "stroke-width": width, ...(dashed ? { "stroke-dasharray": "5 4" } : {}) };
    if (length === 0) {
      yield { tag: "circle", attributes: { cx: round(x1), cy: round(y1 - 12), r: 9, fill: "none", ...line } };
    } else {
      // The line ends at the border of the disc, where the arrow is.
      const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
      const far = Math.max(0, length - (data.sizes[to] ?? 6) - 2);
      const [ex, ey] = [x1 + ux * far, y1 + uy * far];
      yield { tag: "line", attributes: { x1: round(x1), y1: round(y1), x2: round(ex), y2: round(ey), ...line } };
      const wing = (side: number) => `${round(ex - 6 * ux + side * 3 * uy)} ${round(ey - 6 * uy - side * 3 * ux)}`;
      yield { tag: "path", attributes: { d: `M${wing(1)}L${round(ex)} ${round(ey)}L${wing(-1)}Z`, fill: colour } };
    }
    const label = labels[edge];
    if (typeof label === "string" && length > LONG_ENOUGH) {
      const place = { "x": round((x1 + x2) / 2), "y": round((y1 + y2) / 2 + 3), "text-anchor": "middle", "font-size": 9, "fill": colours.text, "stroke": colours.surface, "stroke-width": 3, "paint-order": "stroke" };
      yield { tag: "text", attributes: place, text: label };
    }
  }
}

function* nodeShapes(data: PictureData, places: Places, colours: Colours): Generator<Shape> {
  for (let node = 0; node < data.nodes.length; node += 1) {
    const [cx, cy] = [round(places[2 * node] as number), round(-(places[2 * node + 1] as number))];
    const mark = data.marks[node] ?? 0;
    const { form, fill, second, scale } = nodeLook(colours, data.kinds[node] ?? 0, mark);
    const r = round((data.sizes[node] ?? 6) * scale);
    if (form === Form.Ghost) {
      yield { tag: "circle", node, attributes: { cx, cy, r, "fill": second, "fill-opacity": 0.14, "stroke": second, "stroke-width": 2, "stroke-dasharray": "4 3" } };
    } else if (form === Form.Ring) {
      yield { tag: "circle", node, attributes: { cx, cy, r: round(r * 0.62), fill } };
      yield { tag: "circle", node, attributes: { cx, cy, r: round(r * 0.9), "fill": "none", "stroke": second, "stroke-width": round(Math.max(2, r * 0.22)) } };
    } else {
      yield { tag: "circle", node, attributes: { cx, cy, r, fill } };
      const bar = round(r * 0.55);
      if (form === Form.Plus) yield { tag: "path", node, attributes: { d: `M${round(cx - bar)} ${cy}H${round(cx + bar)}M${cx} ${round(cy - bar)}V${round(cy + bar)}`, "stroke": second, "stroke-width": round(r * 0.26) } };
    }
    yield { tag: "text", node, attributes: { x: round(cx + r + 3), y: round(cy + 4), fill: colours.text }, text: markedLabel(data.nodes[node]?.label ?? "", mark) };
  }
}

const shapesOf = (data: PictureData, places: Places, colours: Colours): Shape[] => [...edgeShapes(data, places, colours), ...nodeShapes(data, places, colours)];

const escape = (value: string): string => value.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "");

/** Returns an SVG document; labels stay text. */
export function toSvg(data: PictureData, places: Places, colours: Colours): string {
  const box = boxOf(places);
  const [x, y, width, height] = [box.x, box.y, box.width, box.height].map(round);
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${x} ${y} ${width} ${height}" font-family="system-ui, sans-serif" font-size="11">`,
    `<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="${colours.surface}"/>`,
  ];
  for (const { tag, attributes, text } of shapesOf(data, places, colours)) {
    const written = Object.entries(attributes).map(([name, value]) => ` ${name}="${escape(String(value))}"`).join("");
    parts.push(`<${tag}${written}>${escape(text ?? "")}</${tag}>`);
  }
  return `${parts.join("\n")}\n</svg>\n`;
}

interface Props {
  data: PictureData;
  places: Places;
  colours: Colours;
  selected: number | null;
  label: string;
  /** The part that is shown. */
  view: Box;
  onView(view: Box): void;
  onPick(node: number | null): void;
  onOpen(node: number): void;
}

/** The picture as elements of the page: dragged by the pointer, zoomed by the wheel. */
export function SvgPicture({ data, places, colours, selected, label, view, onView, onPick, onOpen }: Props) {
  const root = useRef<SVGSVGElement>(null);
  const held = useRef<{ x: number; y: number; view: Box } | null>(null);
  const shapes = useMemo(
    () =>
      shapesOf(data, places, colours).map(({ tag: Tag, attributes, text, node }, index) => (
        <Tag key={index} {...attributes} {...(node === undefined ? {} : { onClick: () => onPick(node), onDblClick: () => onOpen(node) })}>
          {text}
        </Tag>
      )),
    [data, places, colours],
  );
  const scale = () => view.width / Math.max(1, root.current?.clientWidth ?? 1);
  return (
    <svg
      ref={root}
      class="svg-picture"
      role="img"
      aria-label={label}
      viewBox={`${view.x} ${view.y} ${view.width} ${view.height}`}
      font-size="11"
      onPointerDown={(event) => (held.current = { x: event.clientX, y: event.clientY, view })}
      onPointerUp={() => (held.current = null)}
      onPointerLeave={() => (held.current = null)}
      onPointerMove={(event) => {
        const from = held.current;
        if (from === null || event.buttons === 0) return;
        onView({ ...view, x: from.view.x - (event.clientX - from.x) * scale(), y: from.view.y - (event.clientY - from.y) * scale() });
      }}
      onWheel={(event) => {
        event.preventDefault();
        onView(zoomed(view, event.deltaY < 0 ? ZOOM_WHEEL : 1 / ZOOM_WHEEL));
      }}
    >
      {shapes}
      {selected === null ? null : (
        <circle cx={places[2 * selected] ?? 0} cy={-(places[2 * selected + 1] ?? 0)} r={(data.sizes[selected] ?? 6) * 1.5 + 4} fill="none" stroke={colours.accent} stroke-width="2.5" pointer-events="none" />
      )}
    </svg>
  );
}
