/** The boxes and lines of a schema picture, with their sizes. The module is pure; `layout` places them. */
import type { PropertyOutput, TypeOutput } from "../../api/types";
import type { ComparedProperty, ComparedType, Mark } from "./compare";

export interface BoxLine {
  readonly sign: Sign | null;
  readonly name: string;
  readonly type: string;
  readonly mark: Mark;
}

export interface Box {
  readonly id: string;
  readonly name: string;
  readonly dashed: boolean;
  readonly mark: Mark;
  readonly rows: number | null;
  readonly lines: readonly BoxLine[];
  /** The number of properties that are not shown. */
  readonly more: number;
  readonly width: number;
  readonly height: number;
}

export interface Line {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  readonly label: string;
  readonly cardinality: string;
  readonly dashed: boolean;
  readonly mark: Mark;
  readonly width: number;
}

export type Sign = "key" | "vector" | "text";

const LETTER = 6.9;
const SHOWN = 7;
export const HEAD = 34;
export const ROW = 20;
export const LABEL_HEIGHT = 24;
const CUT = 26;

export const cut = (text: string, length = CUT): string => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

/** The sign of a property: part of the key, a vector, or a text with an index. */
export function signOf(type: TypeOutput, property: PropertyOutput): Sign | null {
  if (type.key.includes(property.name)) return "key";
  if (property.type.startsWith("Vector")) return "vector";
  const indexed = type.constraints.some((each) => each.kind === "index" && each.columns.length === 1 && each.columns[0] === property.name);
  return indexed && property.type.startsWith("String") ? "text" : null;
}

/** Key properties first, then changed ones, so that a cut box shows what matters. */
export function keysFirst(compared: ComparedType): ComparedProperty[] {
  const rank = (each: ComparedProperty) => (compared.type.key.includes(each.property.name) ? 0 : each.mark !== "same" && compared.mark !== each.mark ? 1 : 2);
  return [...compared.properties].sort((a, b) => rank(a) - rank(b));
}

function boxOf(compared: ComparedType, rows: number | null): Box {
  const { type } = compared;
  const all = keysFirst(compared);
  const shown = all.slice(0, all.length === SHOWN + 1 ? SHOWN + 1 : SHOWN);
  const lines = shown.map(({ property, mark }): BoxLine => ({ sign: signOf(type, property), name: cut(property.name, 22), type: cut(shortType(property.type), 18), mark }));
  const head = cut(type.name).length + (rows === null ? 0 : rows.toLocaleString().length + 2);
  const widest = Math.max(head + 4, ...lines.map((line) => line.name.length + line.type.length + 5));
  const more = all.length - shown.length;
  return {
    id: `${compared.kind} ${type.name}`,
    name: type.name,
    dashed: compared.kind === "interface",
    mark: compared.mark,
    rows,
    lines,
    more,
    width: Math.round(Math.max(120, widest * LETTER + 20)),
    height: HEAD + (lines.length + (more > 0 ? 1 : 0)) * ROW + 8,
  };
}

/** An enum is long; the box says only that it is one. */
const shortType = (type: string): string => type.replace(/^enum\(.*\)/s, "enum");

export interface Drawing {
  readonly boxes: readonly Box[];
  readonly lines: readonly Line[];
}

/** Returns the boxes of node types and interfaces, and the lines of edge types and implementations. */
export function drawingOf(types: readonly ComparedType[], rowsOf: (table: string) => number | null): Drawing {
  const boxes = types.filter((each) => each.kind !== "edge").map((each) => boxOf(each, each.kind === "node" ? rowsOf(`node:${each.type.name}`) : null));
  const known = new Map(boxes.map((box) => [box.id, box]));
  // An end that was renamed is drawn at the box of its new name.
  const renamed = new Map(types.filter((each) => each.kind === "node" && each.before !== null).map((each) => [each.before as string, each.type.name]));
  const end = (name: string): string => (known.has(`node ${name}`) ? `node ${name}` : `node ${renamed.get(name) ?? name}`);
  const lines: Line[] = [];
  for (const { kind, type, mark } of types) {
    if (kind === "edge") {
      const cardinality = type.cardinality === undefined || type.cardinality === "0.." ? "" : type.cardinality;
      const label = cut(type.name);
      lines.push({ id: `edge ${type.name}`, from: end(type.from ?? ""), to: end(type.to ?? ""), label, cardinality, dashed: false, mark, width: Math.round((label.length + cardinality.length + 2) * LETTER + 12) });
    }
    for (const name of type.implements ?? []) {
      lines.push({ id: `implements ${type.name} ${name}`, from: `node ${type.name}`, to: `interface ${name}`, label: "", cardinality: "", dashed: true, mark, width: 0 });
    }
  }
  return { boxes, lines: lines.filter((line) => known.has(line.from) && known.has(line.to)) };
}
