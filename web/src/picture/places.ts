/** The places of a picture: laid out by a runner, and kept for nodes that were there before. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import type { LayoutRunner } from "./runner";
import { nodeKey, type PictureData, type Places } from "./scene";

type Known = ReadonlyMap<string, readonly [number, number]>;

/** Returns the places and whether they are settled. */
export function useLayout(data: PictureData, makeRunner: () => LayoutRunner): [Places, boolean] {
  const known = useRef<Known>(new Map());
  const start = useMemo(() => startPlaces(data, known.current), [data]);
  const [state, setState] = useState<{ of: PictureData; places: Places; settled: boolean }>({ of: data, places: start.shown, settled: false });
  const runner = useMemo(makeRunner, []);
  useEffect(() => {
    runner.run({ count: data.nodes.length, src: data.src, dst: data.dst, places: start.given }, (places, settled) => {
      if (settled) known.current = new Map(data.nodes.map((node, index) => [nodeKey(node), [places[2 * index] as number, places[2 * index + 1] as number]]));
      setState({ of: data, places, settled });
    });
  }, [data]);
  useEffect(() => () => runner.stop(), []);
  return state.of === data ? [state.places, state.settled] : [start.shown, false];
}

/** Returns the places that the layout starts from, and those that are drawn until its first step. */
function startPlaces(data: PictureData, known: Known): { given: Places; shown: Places } {
  const given = new Float32Array(2 * data.nodes.length).fill(Number.NaN);
  const shown = new Float32Array(2 * data.nodes.length);
  data.nodes.forEach((node, index) => {
    const place = known.get(nodeKey(node));
    if (place !== undefined) given.set(place, 2 * index);
    const angle = index * 2.4;
    shown.set(place ?? [30 * Math.sqrt(index + 0.5) * Math.cos(angle), 30 * Math.sqrt(index + 0.5) * Math.sin(angle)], 2 * index);
  });
  return { given, shown };
}
