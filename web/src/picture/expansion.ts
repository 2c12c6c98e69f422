/**
 * Expanded nodes of a picture: their neighbours come in pages from the source and are kept by the link (`expand`), so
 * that a reload or a colleague sees the same picture.
 */
import { useRef } from "preact/hooks";

import { useLoad } from "../kit/load";
import { nodeLabel } from "../kit/Value";
import type { NeighborOutput } from "../api/types";
import type { Place } from "../source/source";
import { source } from "../state/context";
import { link, replace } from "../state/location";
import { text } from "../text/en";
import type { PictureBuilder } from "./build";

const PAGE = 25;
const EXPANDED_MAX = 20;
const NONE: readonly Neighborhood[] = [];

/** Type, id and the number of pages of a node that was expanded. */
type Expanded = readonly [type: string, id: string, pages: number];

export interface Neighborhood {
  readonly type: string;
  readonly id: string;
  readonly neighbors: readonly NeighborOutput[];
  /** The exact number of neighbours, with those of later pages. */
  readonly total: number;
}

export interface Expansion {
  readonly neighborhoods: readonly Neighborhood[];
  /** Adds the next page of neighbours of a node. */
  expand(type: string, id: string): void;
}

/** Reads the parameter of the link; anything else than a list of nodes is no expansion. */
export function readExpanded(value: string | undefined): Expanded[] {
  try {
    const read = JSON.parse(value ?? "[]") as unknown;
    if (!Array.isArray(read)) return [];
    return read.filter((each): each is Expanded => Array.isArray(each) && typeof each[0] === "string" && typeof each[1] === "string" && Number.isInteger(each[2]) && each[2] > 0).slice(0, EXPANDED_MAX);
  } catch {
    return [];
  }
}

/** Returns the list with one more page of a node. */
export function withPage(list: readonly Expanded[], type: string, id: string): Expanded[] {
  const known = list.some((each) => each[0] === type && each[1] === id);
  if (!known) return [...list, [type, id, 1] as const].slice(-EXPANDED_MAX);
  return list.map((each) => (each[0] === type && each[1] === id ? ([type, id, each[2] + 1] as const) : each));
}

async function neighborhood(here: Place, [type, id, pages]: Expanded, signal: AbortSignal): Promise<Neighborhood> {
  const neighbors: NeighborOutput[] = [];
  let after: string | undefined;
  let total = 0;
  for (let page = 0; page < pages; page += 1) {
    const read = await source.neighbors(here, type, id, { limit: PAGE, after }, signal);
    neighbors.push(...read.neighbors);
    total = read.total;
    after = read.next;
    if (after === undefined) break;
  }
  return { type, id, neighbors, total };
}

export function useExpansion(here: Place | null): Expansion {
  const expanded = readExpanded(link.value.params["expand"]);
  const key = here === null || expanded.length === 0 ? null : JSON.stringify([here.graph, here.commit, expanded]);
  const loaded = useLoad(key, (signal) => Promise.all(expanded.map((each) => neighborhood(here as Place, each, signal))));
  // While the next page comes, the picture stays as it is.
  const shown = useRef<readonly Neighborhood[]>(NONE);
  if (key === null) shown.current = NONE;
  else if (loaded.value !== undefined) shown.current = loaded.value;
  return {
    neighborhoods: shown.current,
    expand(type, id) {
      const next = withPage(readExpanded(link.value.params["expand"]), type, id);
      replace({ params: { ...link.value.params, expand: JSON.stringify(next) } });
    },
  };
}

/** Says how many neighbours of the expanded nodes are shown, and how many there are; null if none is expanded. */
export function expansionNote({ neighborhoods }: Expansion): string | null {
  if (neighborhoods.length === 0) return null;
  const sum = (of: (each: Neighborhood) => number) => neighborhoods.reduce((all, each) => all + of(each), 0);
  return text.picture.expanded(neighborhoods.length, sum((each) => each.neighbors.length), sum((each) => each.total));
}

/** Adds neighbours of a node to a picture. */
export function addNeighbors(builder: PictureBuilder, centre: number | null, neighbors: readonly NeighborOutput[]): void {
  for (const each of neighbors) {
    const other = builder.node(each.type, each.id, nodeLabel(each.data, each.id));
    if (each.direction === "out") builder.edge(centre, other, each.edge);
    else builder.edge(other, centre, each.edge);
  }
}

/** Adds expanded nodes; those that the picture does not show are left out. */
export function addExpansion(builder: PictureBuilder, { neighborhoods }: Expansion): void {
  for (const each of neighborhoods) {
    const centre = builder.find(each.type, each.id);
    if (centre !== null) addNeighbors(builder, centre, each.neighbors);
  }
}
