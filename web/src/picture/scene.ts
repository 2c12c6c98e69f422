/** What a picture shows, and the interface of what draws it. `sigma.ts` implements it; nothing else imports sigma. */

export const enum Mark {
  None = 0,
  Selected = 1,
  Added = 2,
  Removed = 3,
  Changed = 4,
  Dimmed = 5,
  /** An edge that has lost an end. */
  Dangling = 6,
}

/** How a node is drawn: the mark without its colour. */
export const enum Form {
  Disc = 0,
  Ring = 1,
  Ghost = 2,
  Plus = 3,
}

export interface PictureData {
  /** Node type and id of each node. */
  readonly nodes: readonly { readonly type: string; readonly id: string; readonly label: string }[];
  /** The colour of each node: the number of its type. */
  readonly kinds: Uint8Array;
  readonly sizes: Float32Array;
  readonly marks: Uint8Array;
  /** Ends of each edge, as numbers of nodes. */
  readonly src: Uint32Array;
  readonly dst: Uint32Array;
  readonly edgeLabels: readonly string[];
  readonly edgeMarks: Uint8Array;
}

/** Returns the key of a node: one for its type and id. */
export const nodeKey = (node: { readonly type: string; readonly id: string }): string => `${node.type} ${node.id}`;

/** x and y of each node, one after the other. */
export type Places = Float32Array;

export interface Colours {
  readonly kinds: readonly string[];
  readonly text: string;
  readonly surface: string;
  readonly line: string;
  readonly accent: string;
  readonly good: string;
  readonly bad: string;
  readonly warn: string;
  readonly dimmed: string;
}

export interface Scene {
  show(data: PictureData, places: Places): void;
  /** Moves all nodes: a step of the layout. */
  move(places: Places): void;
  mark(marks: Uint8Array): void;
  colour(colours: Colours): void;
  zoom(factor: number): void;
  fit(): void;
  /** Moves the camera by pixels. */
  pan(right: number, down: number): void;
  to(node: number): void;
  onPick: ((node: number | null) => void) | null;
  onOpen: ((node: number) => void) | null;
  /** The number of frames that were drawn, and the time that the last one took on this thread. */
  readonly frames: { count: number; lastMs: number };
  /** Called when the browser took the WebGL context away. */
  onLost: (() => void) | null;
  destroy(): void;
}

const THIN_ABOVE = 2000;
export const SIGNS: Readonly<Record<number, string>> = { [Mark.Added]: "+ ", [Mark.Removed]: "− ", [Mark.Changed]: "~ " };

/** Returns the words of a node with the sign of its mark, so that colour is never alone. */
export const markedLabel = (label: string, mark: number): string => (SIGNS[mark] ?? "") + (label.length > 40 ? `${label.slice(0, 39)}…` : label);

export interface NodeLook {
  readonly form: Form;
  readonly fill: string;
  /** Colour of the ring, the dashes or the sign. */
  readonly second: string;
  /** Factor of the size: a ring needs room. */
  readonly scale: number;
}

/** Returns how a node looks: its type gives the colour, its mark the form. */
export function nodeLook(colours: Colours, kind: number, mark: number): NodeLook {
  const own = colours.kinds[kind % colours.kinds.length] ?? colours.text;
  if (mark === Mark.Added) return { form: Form.Plus, fill: colours.good, second: colours.surface, scale: 1.25 };
  if (mark === Mark.Removed) return { form: Form.Ghost, fill: colours.surface, second: colours.bad, scale: 1.25 };
  if (mark === Mark.Changed) return { form: Form.Ring, fill: own, second: colours.warn, scale: 1.5 };
  return { form: Form.Disc, fill: mark === Mark.Dimmed ? colours.dimmed : own, second: own, scale: 1 };
}

export interface EdgeLook {
  readonly colour: string;
  readonly dashed: boolean;
  readonly width: number;
}

const MARKED_WIDTH = 2;

/** Returns how an edge looks; unmarked edges of large pictures are thin. */
export function edgeLook(colours: Colours, mark: number, edges: number): EdgeLook {
  if (mark === Mark.Added) return { colour: colours.good, dashed: false, width: MARKED_WIDTH };
  if (mark === Mark.Removed) return { colour: colours.bad, dashed: true, width: MARKED_WIDTH };
  if (mark === Mark.Changed) return { colour: colours.warn, dashed: false, width: MARKED_WIDTH };
  if (mark === Mark.Dangling) return { colour: colours.bad, dashed: false, width: MARKED_WIDTH };
  return { colour: colours.line, dashed: false, width: edges > THIN_ABOVE ? 0.6 : 1.3 };
}

/** Returns the label of each edge: edges between the same two nodes share one, at the first of them. */
export function pairLabels(data: PictureData): (string | null)[] {
  const pairs = new Map<string, { at: number; names: string[] }>();
  data.edgeLabels.forEach((name, edge) => {
    const [a, b] = [data.src[edge] as number, data.dst[edge] as number];
    const key = a < b ? `${a} ${b}` : `${b} ${a}`;
    const pair = pairs.get(key);
    if (pair === undefined) pairs.set(key, { at: edge, names: [name] });
    else if (!pair.names.includes(name)) pair.names.push(name);
  });
  const labels = new Array<string | null>(data.edgeLabels.length).fill(null);
  for (const { at, names } of pairs.values()) labels[at] = names.join(" · ");
  return labels;
}

/** Reads the colours of the theme in effect. */
export function themeColours(element: Element): Colours {
  const style = getComputedStyle(element);
  const read = (name: string) => style.getPropertyValue(name).trim();
  return {
    kinds: Array.from({ length: 8 }, (_, index) => read(`--kind-${index}`)),
    text: read("--text"),
    surface: read("--surface"),
    line: read("--line-strong"),
    accent: read("--accent"),
    good: read("--good"),
    bad: read("--bad"),
    warn: read("--warn"),
    dimmed: read("--line-strong"),
  };
}
