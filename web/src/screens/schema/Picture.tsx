/** The picture of a schema: SVG boxes of types, lines of edge types. Every box and label is a link. */
import { useMemo, useState } from "preact/hooks";

import { Icon } from "../../kit/Icon";
import { schemaText as text } from "../../text/schema";
import { cut, drawingOf, HEAD, LABEL_HEIGHT, ROW, type Sign } from "./boxes";
import type { ComparedType, Mark } from "./compare";
import { layout, type PlacedBox, type PlacedLine, type Point } from "./layout";

const SIGNS: Readonly<Record<Sign, string>> = { key: "⚷", vector: "◇", text: "¶" };
export const MARK_SIGNS: Readonly<Record<Mark, string>> = { same: "", added: "+ ", removed: "− ", renamed: "~ ", changed: "~ " };
const ZOOMS = [1, 1.4, 2, 3];

interface Props {
  types: readonly ComparedType[];
  rowsOf(table: string): number | null;
  selected: string | null;
  hrefOf(name: string): string;
}

export function SchemaPicture({ types, rowsOf, selected, hrefOf }: Props) {
  const drawing = useMemo(() => drawingOf(types, rowsOf), [types]);
  const placed = useMemo(() => layout(drawing), [drawing]);
  const [zoom, setZoom] = useState(0);
  const count = (kind: string) => types.filter((each) => each.kind === kind).length;
  const label = text.sentence(count("node"), count("edge"), count("interface"));
  const scale = ZOOMS[zoom] as number;
  return (
    <div class="schema-picture">
      <div class="tools">
        <button type="button" class="button icon" aria-label={text.zoomIn} title={text.zoomIn} disabled={zoom === ZOOMS.length - 1} onClick={() => setZoom(zoom + 1)}>
          <Icon name="plus" />
        </button>
        <button type="button" class="button icon" aria-label={text.zoomOut} title={text.zoomOut} disabled={zoom === 0} onClick={() => setZoom(zoom - 1)}>
          <Icon name="minus" />
        </button>
      </div>
      <div class="scroll" tabIndex={0} role="group" aria-label={label}>
        <svg viewBox={`0 0 ${placed.width} ${placed.height}`} style={{ inlineSize: `${100 * scale}%`, maxInlineSize: `${placed.width * 1.1 * scale}px`, maxBlockSize: scale === 1 ? "62dvh" : "none" }} data-placed="">
          {placed.lines.map((each) => (
            <LineView key={each.line.id} placed={each} />
          ))}
          {placed.boxes.map((each) => (
            <BoxView key={each.box.id} placed={each} selected={each.box.name === selected} href={hrefOf(each.box.name)} />
          ))}
          {placed.lines.map((each) => (each.label === null ? null : <LabelView key={each.line.id} placed={each} at={each.label} selected={typeOf(each) === selected} href={hrefOf(typeOf(each))} />))}
        </svg>
      </div>
      <ul class="legend" aria-hidden="true">
        {text.legend.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
    </div>
  );
}

const typeOf = ({ line }: PlacedLine): string => line.id.slice("edge ".length);

/** The link is the frame with the name; the properties are drawn over it and leave the pointer to it. */
function BoxView({ placed: { box, x, y }, selected, href }: { placed: PlacedBox; selected: boolean; href: string }) {
  return (
    <g transform={`translate(${x} ${y})`} class={`mark-${box.mark}`}>
      <a href={href} class="box" aria-current={selected ? "true" : undefined}>
        <rect class="frame" width={box.width} height={box.height} rx={8} stroke-dasharray={box.dashed || box.mark === "removed" ? "6 4" : undefined} />
        <text class="name" x={12} y={22}>
          {MARK_SIGNS[box.mark]}
          {cut(box.name)}
          {cut(box.name) === box.name ? null : <title>{box.name}</title>}
        </text>
        {box.rows === null ? null : (
          <text class="rows" x={box.width - 12} y={22} text-anchor="end">
            {` ${box.rows.toLocaleString()}`}
          </text>
        )}
      </a>
      <path class="rule" d={`M0 ${HEAD}H${box.width}`} />
      {box.lines.map((line, index) => (
        <g key={line.name} class={`over mark-${line.mark}`} transform={`translate(0 ${HEAD + 18 + index * ROW})`}>
          <text class="sign" x={10}>
            {line.sign === null ? "" : SIGNS[line.sign]}
          </text>
          <text class="property" x={26}>
            {line.mark === box.mark ? "" : MARK_SIGNS[line.mark]}
            {line.name}
          </text>
          <text class="type" x={box.width - 12} text-anchor="end">
            {line.type}
          </text>
        </g>
      ))}
      {box.more === 0 ? null : (
        <text class="type over" x={26} y={HEAD + 18 + box.lines.length * ROW}>
          {text.more(box.more)}
        </text>
      )}
    </g>
  );
}

function LineView({ placed: { line, points } }: { placed: PlacedLine }) {
  return (
    <g class={`line mark-${line.mark}`}>
      <path d={curve(points)} stroke-dasharray={line.dashed ? "5 4" : line.mark === "removed" ? "6 4" : undefined} />
      <path class="head" d={arrow(points)} />
    </g>
  );
}

function LabelView({ placed: { line }, at, selected, href }: { placed: PlacedLine; at: Point; selected: boolean; href: string }) {
  return (
    <g transform={`translate(${Math.round(at.x - line.width / 2)} ${Math.round(at.y - LABEL_HEIGHT / 2)})`}>
      <a href={href} class={`label mark-${line.mark}`} aria-current={selected ? "true" : undefined}>
        <rect width={line.width} height={LABEL_HEIGHT} rx={12} />
        <text x={line.width / 2} y={16} text-anchor="middle">
          {MARK_SIGNS[line.mark]}
          {line.label}
          {line.cardinality === "" ? null : <tspan class="cardinality"> {line.cardinality}</tspan>}
        </text>
      </a>
    </g>
  );
}

const at = (point: Point): string => `${point.x.toFixed(1)} ${point.y.toFixed(1)}`;

/** A smooth line through the middles of the given points. */
function curve(points: readonly Point[]): string {
  const [first, ...rest] = points;
  const last = rest.pop();
  if (first === undefined || last === undefined) return "";
  let path = `M${at(first)}`;
  rest.forEach((point, index) => {
    const next = rest[index + 1] ?? last;
    const end = index === rest.length - 1 ? last : { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 };
    path += `Q${at(point)} ${at(end)}`;
  });
  return rest.length === 0 ? `${path}L${at(last)}` : path;
}

/** A triangle at the end of a line. */
function arrow(points: readonly Point[]): string {
  const end = points.at(-1);
  const before = points.at(-2);
  if (end === undefined || before === undefined) return "";
  const length = Math.hypot(end.x - before.x, end.y - before.y) || 1;
  const [dx, dy] = [(end.x - before.x) / length, (end.y - before.y) / length];
  const corner = (side: number) => ({ x: end.x - 8 * dx + side * 4 * dy, y: end.y - 8 * dy - side * 4 * dx });
  return `M${at(end)}L${at(corner(1))}L${at(corner(-1))}Z`;
}
