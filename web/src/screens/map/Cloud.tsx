/** The points on a canvas: hover names one, a line around points selects them, the wheel and the keys move the view. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Icon } from "../../kit/Icon";
import { Plain } from "../../kit/Plain";
import { shownTheme } from "../../state/prefs";
import { text } from "../../text/en";
import { mapText } from "../../text/map";
import { atX, atY, enclosed, fitting, nearest, zoomed, type Groups, type Points, type View } from "./points";

const ZOOM = 1.3;
const STEP = 60;
const REACH = 10;
const CLICK = 4;

interface Props {
  readonly points: Points;
  readonly groups: Groups;
  readonly selected: ReadonlySet<number>;
  /** The hits of a search: rings, and a cross in their middle. */
  readonly hits: readonly number[];
  readonly label: string;
  name(index: number): string;
  onSelect(indexes: readonly number[]): void;
}

type Line = readonly (readonly [number, number])[];

export function Cloud({ points, groups, selected, hits, label, name, onSelect }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [[width, height], setSize] = useState<readonly [number, number]>([0, 0]);
  const [given, setGiven] = useState<{ of: Points; view: View } | null>(null);
  const [line, setLine] = useState<Line>([]);
  const [moves, setMoves] = useState(false);
  const [hovered, setHovered] = useState<number | null>(null);
  const fit = useMemo(() => fitting(points, width, height), [points, width, height]);
  const view = given !== null && given.of === points ? given.view : fit;
  const show = (next: View) => setGiven({ of: points, view: next });
  const zoom = (factor: number, x = width / 2, y = height / 2) => show(zoomed(view, factor, x, y));

  useEffect(() => {
    const element = canvas.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => setSize([element.clientWidth, element.clientHeight]));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const element = canvas.current;
    if (element === null || width === 0) return undefined;
    const frame = requestAnimationFrame(() => draw(element, { points, groups, selected, hits, view, line, hovered }));
    return () => cancelAnimationFrame(frame);
  }, [points, groups, selected, hits, view, line, hovered, width, height, shownTheme.value]);
  useEffect(() => {
    const element = canvas.current;
    const turn = (event: WheelEvent) => {
      event.preventDefault();
      zoom(event.deltaY < 0 ? ZOOM : 1 / ZOOM, event.offsetX, event.offsetY);
    };
    element?.addEventListener("wheel", turn, { passive: false });
    return () => element?.removeEventListener("wheel", turn);
  });

  const onDown = (event: PointerEvent) => {
    canvas.current?.setPointerCapture(event.pointerId);
    setLine([[event.offsetX, event.offsetY]]);
  };
  const onMove = (event: PointerEvent) => {
    const last = line.at(-1);
    if (last === undefined) setHovered(nearest(points, view, event.offsetX, event.offsetY, REACH));
    else if (moves) {
      show({ ...view, dx: view.dx + event.offsetX - last[0], dy: view.dy + event.offsetY - last[1] });
      setLine([...line, [event.offsetX, event.offsetY]]);
    } else setLine([...line, [event.offsetX, event.offsetY]]);
  };
  const onUp = (event: PointerEvent) => {
    const [x, y] = line[0] ?? [0, 0];
    setLine([]);
    const near = line.every(([ax, ay]) => Math.hypot(ax - x, ay - y) < CLICK);
    if (moves && !near) return;
    const hit = near ? nearest(points, view, x, y, REACH) : null;
    const found = near ? (hit === null ? [] : [hit]) : enclosed(points, view, line);
    onSelect(event.shiftKey ? [...new Set([...selected, ...found])] : found);
  };
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (step !== undefined) show({ ...view, dx: view.dx + (step[0] ?? 0), dy: view.dy + (step[1] ?? 0) });
    else if (event.key === "+" || event.key === "=") zoom(ZOOM);
    else if (event.key === "-") zoom(1 / ZOOM);
    else if (event.key === "0") setGiven(null);
    else if (event.key === "Escape") onSelect([]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const tip = hovered === null || line.length > 0 ? null : { x: atX(view, points.x[hovered] ?? 0), y: atY(view, points.y[hovered] ?? 0) };
  return (
    <div class="canvas">
      <canvas
        ref={(element) => {
          canvas.current = element;
          // The places of points, for tests.
          if (element !== null) (element as { placeOf?(id: string): readonly number[] }).placeOf = (id) => [atX(view, points.x[points.ids.indexOf(id)] ?? NaN), atY(view, points.y[points.ids.indexOf(id)] ?? NaN)];
        }}
        class={moves ? "stage moves" : "stage"}
        role="img"
        aria-label={label}
        tabIndex={0}
        onKeyDown={onKey}
        onPointerDown={onDown}
        onPointerMove={onMove}
        onPointerUp={onUp}
        onPointerCancel={() => setLine([])}
        onPointerLeave={() => setHovered(null)}
      />
      {tip === null || hovered === null ? null : (
        <div class="map-tip" aria-hidden="true" style={{ left: `${Math.min(tip.x + 12, Math.max(0, width - 260))}px`, top: `${Math.min(tip.y + 12, height - 60)}px` }}>
          <Plain text={name(hovered)} />
        </div>
      )}
      <div class="tools" role="group" aria-label={text.picture.tools}>
        <button type="button" class="button small" aria-pressed={moves} title={mapText.moveHint} onClick={() => setMoves(!moves)}>
          {mapText.move}
        </button>
        <button type="button" class="button icon" aria-label={text.picture.zoomIn} onClick={() => zoom(ZOOM)}>
          <Icon name="plus" />
        </button>
        <button type="button" class="button icon" aria-label={text.picture.zoomOut} onClick={() => zoom(1 / ZOOM)}>
          <Icon name="minus" />
        </button>
        <button type="button" class="button small" onClick={() => setGiven(null)}>
          {text.picture.fit}
        </button>
      </div>
    </div>
  );
}

interface Drawing extends Pick<Props, "points" | "groups" | "selected" | "hits"> {
  readonly view: View;
  readonly line: Line;
  readonly hovered: number | null;
}

function draw(canvas: HTMLCanvasElement, { points, groups, selected, hits, view, line, hovered }: Drawing): void {
  const pen = canvas.getContext("2d");
  if (pen === null) return;
  const dense = window.devicePixelRatio;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  [canvas.width, canvas.height] = [width * dense, height * dense];
  pen.scale(dense, dense);
  const style = getComputedStyle(canvas);
  const colour = (name: string) => style.getPropertyValue(name);
  const kinds = Array.from({ length: 8 }, (_, kind) => colour(`--kind-${kind}`));
  const size = points.ids.length > 5_000 ? 2.5 : points.ids.length > 500 ? 4 : 6;
  const place = (index: number): [number, number] => [atX(view, points.x[index] as number), atY(view, points.y[index] as number)];
  const dot = (index: number, across: number) => {
    const [x, y] = place(index);
    if (x < -across || y < -across || x > width + across || y > height + across) return;
    if (across < 4) return pen.fillRect(x - across / 2, y - across / 2, across, across);
    pen.beginPath();
    pen.arc(x, y, across / 2, 0, 7);
    pen.fill();
  };
  // A change of colour costs more than a point: points are drawn colour by colour.
  const paint = (across: number, isDrawn: (index: number) => boolean) => {
    for (const [kind, name] of kinds.entries()) {
      pen.fillStyle = name;
      for (let index = 0; index < points.ids.length; index += 1) if (groups.of[index] === kind && isDrawn(index)) dot(index, across);
    }
  };
  pen.globalAlpha = selected.size > 0 ? 0.18 : 0.75;
  paint(size, () => true);
  pen.globalAlpha = 1;
  if (selected.size > 0) paint(size + 2, (index) => selected.has(index));
  pen.lineWidth = 1.5;
  pen.strokeStyle = colour("--text");
  for (const index of hovered === null ? hits : [...hits, hovered]) {
    pen.beginPath();
    pen.arc(...place(index), size / 2 + 4, 0, 7);
    pen.stroke();
  }
  if (hits.length > 0) {
    const [x, y] = middle(hits.map(place));
    for (const [stroke, wide] of [[colour("--surface"), 7], [colour("--bad"), 3]] as const) {
      [pen.strokeStyle, pen.lineWidth] = [stroke, wide];
      pen.beginPath();
      for (const side of [-1, 1]) pen.moveTo(x - 11, y - 11 * side), pen.lineTo(x + 11, y + 11 * side);
      pen.stroke();
    }
  }
  if (line.length > 1) {
    [pen.strokeStyle, pen.lineWidth] = [colour("--accent"), 1.5];
    pen.beginPath();
    for (const [x, y] of line) pen.lineTo(x, y);
    pen.closePath();
    pen.stroke();
  }
}

const middle = (places: readonly (readonly [number, number])[]): [number, number] => [
  places.reduce((sum, [x]) => sum + x, 0) / places.length,
  places.reduce((sum, [, y]) => sum + y, 0) / places.length,
];
