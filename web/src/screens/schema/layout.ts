/**
 * Places of boxes and lines: a layered drawing (Sugiyama). The same drawing gives the same places.
 *
 * Boxes stand on even layers, and a line has a point on each layer between its ends; the middle point carries its label.
 * The order of a layer follows the mean of the neighbours while that removes crossings; places then follow the mean of
 * the neighbours under the distances that boxes need.
 */
import { LABEL_HEIGHT, type Box, type Drawing, type Line } from "./boxes";

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface PlacedBox extends Point {
  readonly box: Box;
}

export interface PlacedLine {
  readonly line: Line;
  readonly points: readonly Point[];
  readonly label: Point | null;
}

export interface Placed {
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly PlacedBox[];
  readonly lines: readonly PlacedLine[];
}

const MARGIN = 16;
const LAYER_GAP = 26;
const BOX_GAP = 28;
const LINE_GAP = 16;
const LOOP_OUT = 26;
const LOOP_HEIGHT = 38;
const SWEEPS = 12;
const STRAIGHT = 4;
/** The shape of the pane: the direction is chosen whose drawing fits it best. */
const SHAPE = 1.25;

/** A box or a point of a line. `span` is its size along the layer, `depth` across it. */
interface Item {
  readonly span: number;
  readonly depth: number;
  readonly gap: number;
  readonly isBox: boolean;
  layer: number;
  place: number;
  readonly up: Item[];
  readonly down: Item[];
}

interface Route {
  readonly line: Line;
  readonly items: readonly Item[];
  readonly label: Item | null;
  readonly reversed: boolean;
}

export function layout(drawing: Drawing): Placed {
  const [across, down] = [arrange(drawing, true), arrange(drawing, false)];
  const size = (placed: Placed) => Math.max(placed.width / SHAPE, placed.height);
  return size(across) <= size(down) ? across : down;
}

/** Places a drawing with layers from left to right (`sideways`) or from top to bottom. */
function arrange({ boxes, lines }: Drawing, sideways: boolean): Placed {
  const loops = new Map(boxes.map((box) => [box.id, lines.filter((line) => line.from === line.to && line.from === box.id)]));
  const loopWidth = (box: Box) => Math.max(0, ...(loops.get(box.id) ?? []).map((line) => LOOP_OUT + line.width / 2 + Math.max(line.width / 2, 8)));
  const items = new Map<string, Item>();
  for (const box of boxes) {
    const [width, height] = [box.width + loopWidth(box), Math.max(box.height, (loops.get(box.id)?.length ?? 0) * LOOP_HEIGHT)];
    items.set(box.id, { span: sideways ? height : width, depth: sideways ? width : height, gap: BOX_GAP, isBox: true, layer: 0, place: 0, up: [], down: [] });
  }
  const between = lines.filter((line) => line.from !== line.to);
  const reversed = setLayers(boxes.map((box) => box.id), between, items);
  const routes = between.map((line) => route(line, reversed.has(line.id), items, sideways));
  const all = new Set([...items.values(), ...routes.flatMap((each) => each.items)]);
  const layers: Item[][] = Array.from({ length: 1 + Math.max(0, ...[...all].map((item) => item.layer)) }, () => []);
  for (const item of all) layers[item.layer]?.push(item);
  order(layers);
  place(layers);

  const starts = depths(layers);
  const low = Math.min(0, ...[...all].map((item) => item.place - item.span / 2));
  const point = (item: Item): Point => {
    const [along, deep] = [item.place - low + MARGIN, (starts[item.layer] as number) + layerDepth(layers[item.layer] as Item[]) / 2];
    return sideways ? { x: deep, y: along } : { x: along, y: deep };
  };
  const placed = new Map(boxes.map((box) => {
    const center = point(items.get(box.id) as Item);
    return [box.id, { box, x: Math.round(center.x - (box.width + loopWidth(box)) / 2), y: Math.round(center.y - box.height / 2) }] as const;
  }));
  const end = (id: string, toward: Point): Point => border(placed.get(id) as PlacedBox, toward);
  const drawn = routes.map(({ line, items: inner, label, reversed: back }): PlacedLine => {
    const middle = inner.map(point);
    if (back) middle.reverse();
    const points = [end(line.from, middle[0] as Point), ...middle, end(line.to, middle.at(-1) as Point)];
    return { line, points, label: label === null ? null : point(label) };
  });
  for (const [id, own] of loops) drawn.push(...own.map((line, index) => loop(placed.get(id) as PlacedBox, line, index - (own.length - 1) / 2)));
  const far = Math.max(0, ...[...all].map((item) => item.place + item.span / 2)) - low + 2 * MARGIN;
  const deep = (starts.at(-1) ?? 0) + layerDepth(layers.at(-1) ?? []) + MARGIN;
  const byId = new Map(drawn.map((each) => [each.line.id, each]));
  return {
    width: Math.ceil(sideways ? deep : far),
    height: Math.ceil(sideways ? far : deep),
    boxes: [...placed.values()],
    lines: lines.map((line) => byId.get(line.id) as PlacedLine),
  };
}

/** Sets the layers of boxes and returns the lines that point against them: those that close a cycle. */
function setLayers(ids: readonly string[], lines: readonly Line[], items: ReadonlyMap<string, Item>): Set<string> {
  const reversed = new Set<string>();
  const state = new Map<string, "open" | "done">();
  const finished: string[] = [];
  const leaving = new Map(ids.map((id) => [id, lines.filter((line) => line.from === id)]));
  const visit = (id: string): void => {
    state.set(id, "open");
    for (const line of leaving.get(id) ?? []) {
      if (state.get(line.to) === "open") reversed.add(line.id);
      else if (!state.has(line.to)) visit(line.to);
    }
    state.set(id, "done");
    finished.push(id);
  };
  for (const id of ids) if (!state.has(id)) visit(id);
  const directed = lines.map((line) => (reversed.has(line.id) ? [line.to, line.from] : [line.from, line.to]) as [string, string]);
  // Finished boxes have all their followers before them: the reverse is a topological order.
  const layerOf = (id: string) => items.get(id) as Item;
  for (const id of finished.slice().reverse()) for (const [from, to] of directed) if (from === id) layerOf(to).layer = Math.max(layerOf(to).layer, layerOf(id).layer + 2);
  for (const id of finished) {
    const after = directed.filter(([from]) => from === id).map(([, to]) => layerOf(to).layer - 2);
    if (after.length > 0 && !directed.some(([, to]) => to === id)) layerOf(id).layer = Math.min(...after);
  }
  return reversed;
}

/** Makes the points of a line and connects them with its ends. */
function route(line: Line, reversed: boolean, boxes: ReadonlyMap<string, Item>, sideways: boolean): Route {
  const [from, to] = (reversed ? [line.to, line.from] : [line.from, line.to]).map((id) => boxes.get(id) as Item) as [Item, Item];
  const middle = (from.layer + to.layer) >> 1;
  const items: Item[] = [];
  let before = from;
  for (let layer = from.layer + 1; layer <= to.layer; layer += 1) {
    const labelled = layer === middle && line.label !== "";
    const [width, height] = labelled ? [line.width, LABEL_HEIGHT] : [0, 0];
    const item: Item = layer === to.layer ? to : { span: sideways ? height : width, depth: sideways ? width : height, gap: LINE_GAP, isBox: false, layer, place: 0, up: [], down: [] };
    before.down.push(item);
    item.up.push(before);
    if (item !== to) items.push(item);
    before = item;
  }
  return { line, items, label: line.label === "" ? null : (items.find((item) => item.layer === middle) ?? null), reversed };
}

const mean = (values: readonly number[], otherwise: number): number => (values.length === 0 ? otherwise : values.reduce((sum, value) => sum + value, 0) / values.length);

/** Orders each layer by the mean place of its neighbours, down and up in turn, and keeps the order with the fewest crossings. */
function order(layers: Item[][]): void {
  const number = () => layers.forEach((layer) => layer.forEach((item, index) => (item.place = index)));
  number();
  let best = layers.map((layer) => [...layer]);
  let fewest = crossings(layers);
  for (let sweep = 0; sweep < SWEEPS && fewest > 0; sweep += 1) {
    const downward = sweep % 2 === 0;
    for (const layer of downward ? layers : [...layers].reverse()) {
      const wanted = new Map(layer.map((item) => [item, mean((downward ? item.up : item.down).map((each) => each.place), item.place)]));
      layer.sort((a, b) => (wanted.get(a) as number) - (wanted.get(b) as number) || a.place - b.place);
      layer.forEach((item, index) => (item.place = index));
    }
    const found = crossings(layers);
    if (found < fewest) [fewest, best] = [found, layers.map((layer) => [...layer])];
  }
  best.forEach((layer, index) => layers[index]?.splice(0, layer.length, ...layer));
  number();
}

function crossings(layers: readonly Item[][]): number {
  let count = 0;
  for (const layer of layers) {
    const ends = layer.flatMap((item) => item.down.map((each) => [item.place, each.place] as const));
    ends.forEach(([a, b], index) => {
      for (const [c, d] of ends.slice(index + 1)) if ((a - c) * (b - d) < 0) count += 1;
    });
  }
  return count;
}

/** Places the items of each layer at the mean of their neighbours, as near as the order and the gaps permit. */
function place(layers: readonly Item[][]): void {
  for (const layer of layers) settle(layer, layer.map(() => 0));
  for (let sweep = 0; sweep < 2 * SWEEPS; sweep += 1) {
    for (const layer of sweep % 2 === 0 ? layers : [...layers].reverse()) {
      settle(layer, layer.map((item) => {
        // A neighbour that is a point of a line weighs more, so that long lines are straight.
        const around = [...item.up, ...item.down].flatMap((each) => Array<number>(each.isBox ? 1 : STRAIGHT).fill(each.place));
        return mean(around, item.place);
      }));
    }
  }
}

/** Sets places with the least squares of distances from the wanted ones, in order and with gaps (pool adjacent violators). */
function settle(layer: readonly Item[], wanted: readonly number[]): void {
  const offsets: number[] = [];
  layer.forEach((item, index) => {
    const before = layer[index - 1];
    offsets.push(before === undefined ? 0 : (offsets[index - 1] as number) + (before.span + item.span) / 2 + Math.max(before.gap, item.gap));
  });
  const blocks: { sum: number; count: number }[] = [];
  wanted.forEach((value, index) => {
    let block = { sum: value - (offsets[index] as number), count: 1 };
    for (let last = blocks.at(-1); last !== undefined && last.sum / last.count > block.sum / block.count; last = blocks.at(-1)) {
      block = { sum: block.sum + last.sum, count: block.count + last.count };
      blocks.pop();
    }
    blocks.push(block);
  });
  let index = 0;
  for (const { sum, count } of blocks) for (let each = 0; each < count; each += 1, index += 1) (layer[index] as Item).place = sum / count + (offsets[index] as number);
}

const layerDepth = (layer: readonly Item[]): number => Math.max(0, ...layer.map((item) => item.depth));

/** Returns where each layer begins. */
function depths(layers: readonly Item[][]): number[] {
  let next = MARGIN;
  return layers.map((layer) => {
    const start = next;
    next += layerDepth(layer) + LAYER_GAP;
    return start;
  });
}

/** The point at which the line from the middle of a box to another point leaves the box. */
function border({ box, x, y }: PlacedBox, toward: Point): Point {
  const [cx, cy] = [x + box.width / 2, y + box.height / 2];
  const [dx, dy] = [toward.x - cx, toward.y - cy];
  const share = Math.min(dx === 0 ? 1 : box.width / 2 / Math.abs(dx), dy === 0 ? 1 : box.height / 2 / Math.abs(dy), 1);
  return { x: cx + dx * share, y: cy + dy * share };
}

/** The line from a box to itself, at its right side. */
function loop({ box, x, y }: PlacedBox, line: Line, position: number): PlacedLine {
  const [side, middle] = [x + box.width, y + box.height / 2 + position * LOOP_HEIGHT];
  const far = side + LOOP_OUT + line.width / 2;
  const point = (px: number, out: number): Point => ({ x: px, y: middle + out });
  const leave = (out: number): Point => ({ x: side, y: Math.min(Math.max(middle + out, y + 6), y + box.height - 6) });
  return { line, points: [leave(-10), point(far, -18), point(far, 18), leave(10)], label: line.label === "" ? null : point(far, 0) };
}
