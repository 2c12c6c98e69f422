import { createHash } from "node:crypto";

import { describe, expect, it, vi } from "vitest";

import { Layout, TICKS } from "../src/picture/layout";
import { readExpanded, withPage } from "../src/picture/expansion";
import { follow } from "../src/picture/follow";
import { Motion, REST_MS, SAMPLE, sampled, SLOW_MS } from "../src/picture/motion";
import { slicedLayout, SLICED_MAX } from "../src/picture/runner";
import { boxOf, centred, toSvg, zoomed } from "../src/picture/svg";
import { edgeLook, Form, Mark, nodeLook, pairLabels, type Colours, type PictureData } from "../src/picture/scene";

function ring(count: number): { count: number; src: Uint32Array; dst: Uint32Array } {
  const src = Uint32Array.from({ length: count }, (_, node) => node);
  return { count, src, dst: src.map((node) => (node + 1) % count) };
}

function run(graph: ConstructorParameters<typeof Layout>[0]): Float32Array {
  const layout = new Layout(graph);
  while (!layout.isDone) layout.tick();
  return layout.places();
}

const digest = (places: Float32Array) => createHash("sha256").update(new Uint8Array(places.buffer)).digest("hex");

describe("the layout", () => {
  it("gives the same bits each time, and finite places", () => {
    const first = run(ring(200));
    expect(digest(run(ring(200)))).toBe(digest(first));
    expect(first.every(Number.isFinite)).toBe(true);
    expect(TICKS).toBe(300);
  });

  it("puts neighbours nearer than other nodes", () => {
    const places = run(ring(60));
    const distance = (a: number, b: number) => Math.hypot(places[2 * a]! - places[2 * b]!, places[2 * a + 1]! - places[2 * b + 1]!);
    let near = 0;
    let far = 0;
    for (let node = 0; node < 60; node += 1) {
      near += distance(node, (node + 1) % 60);
      far += distance(node, (node + 30) % 60);
    }
    expect(near * 2).toBeLessThan(far);
  });

  it("keeps nodes that have a place, and puts new ones beside their parents", () => {
    const before = run(ring(30));
    const places = new Float32Array(62).fill(Number.NaN);
    places.set(before);
    const grown = { count: 31, src: Uint32Array.of(...ring(30).src, 3), dst: Uint32Array.of(...ring(30).dst, 30), places };
    const after = run(grown);
    for (let node = 0; node < 30; node += 1) expect(Math.hypot(after[2 * node]! - before[2 * node]!, after[2 * node + 1]! - before[2 * node + 1]!)).toBeLessThan(200);
    expect(Math.hypot(after[60]! - after[6]!, after[61]! - after[7]!)).toBeLessThan(400);
  });

  it("takes graphs without nodes, without edges, and with loops", () => {
    expect(run({ count: 0, src: new Uint32Array(), dst: new Uint32Array() })).toHaveLength(0);
    expect(run({ count: 3, src: Uint32Array.of(0), dst: Uint32Array.of(0) }).every(Number.isFinite)).toBe(true);
  });
});

const COLOURS: Colours = { kinds: ["#000"], text: "#111", surface: "#fff", line: "#888", accent: "#00f", good: "#0f0", bad: "#f00", warn: "#fa0", dimmed: "#999" };

/** A picture of nodes 0 … count-1 and the given edges. */
function picture(count: number, edges: readonly (readonly [number, number, string])[], marks: readonly number[] = [], edgeMarks: readonly number[] = []): PictureData {
  return {
    nodes: Array.from({ length: count }, (_, node) => ({ type: "A", id: `${node}`, label: `node ${node}` })),
    kinds: new Uint8Array(count),
    sizes: new Float32Array(count).fill(5),
    marks: Uint8Array.from({ length: count }, (_, node) => marks[node] ?? 0),
    src: Uint32Array.from(edges, ([from]) => from),
    dst: Uint32Array.from(edges, ([, to]) => to),
    edgeLabels: edges.map(([, , label]) => label),
    edgeMarks: Uint8Array.from(edges, (_, edge) => edgeMarks[edge] ?? 0),
  };
}

describe("marks", () => {
  it("differ in form, not only in colour", () => {
    const forms = [Mark.None, Mark.Added, Mark.Removed, Mark.Changed].map((mark) => nodeLook(COLOURS, 0, mark).form);
    expect(forms).toEqual([Form.Disc, Form.Plus, Form.Ghost, Form.Ring]);
    expect(nodeLook(COLOURS, 0, Mark.Dimmed).fill).toBe("#999");
    expect(edgeLook(COLOURS, Mark.Removed, 1)).toMatchObject({ colour: "#f00", dashed: true });
    expect(edgeLook(COLOURS, Mark.Dangling, 1)).toMatchObject({ colour: "#f00", dashed: false });
  });

  it("are in the SVG: a dashed ghost, a ring, a plus, signs before the names", () => {
    const svg = toSvg(picture(4, [[0, 1, "x"], [1, 2, "y"]], [0, Mark.Added, Mark.Removed, Mark.Changed], [0, Mark.Removed]), Float32Array.of(0, 0, 90, 0, 0, 90, 90, 90), COLOURS);
    expect(svg.match(/stroke-dasharray="5 4"/g)).toHaveLength(1);
    expect(svg.match(/stroke-dasharray="4 3"/g)).toHaveLength(1);
    for (const part of [">+ node 1<", ">− node 2<", ">~ node 3<", ">x<"]) expect(svg).toContain(part);
  });
});

describe("labels of edges", () => {
  it("name each pair of nodes once, with all its types", () => {
    expect(pairLabels(picture(3, [[0, 1, "wrote"], [1, 0, "cites"], [0, 1, "wrote"], [1, 2, "wrote"]]))).toEqual(["wrote · cites", null, null, "wrote"]);
  });
});

describe("keys", () => {
  it("follow the edge that points in the direction of the arrow", () => {
    const data = picture(4, [[0, 1, ""], [2, 0, ""]]);
    const places = Float32Array.of(0, 0, 10, 1, -10, 1, 10, 0);
    expect(follow(data, places, null, "ArrowRight")).toBe(0);
    expect(follow(data, places, 0, "ArrowRight")).toBe(1);
    expect(follow(data, places, 0, "ArrowLeft")).toBe(2);
    expect(follow(data, places, 3, "ArrowRight")).toBeNull();
  });
});

describe("motion", () => {
  it("draws a sample after slow frames, then no edges, and all of them at rest", () => {
    vi.useFakeTimers();
    const drawn: number[] = [];
    const motion = new Motion((edges) => drawn.push(edges));
    const slow = () => {
      motion.move(performance.now());
      motion.frame(performance.now(), SLOW_MS + 1, 30_000);
    };
    for (let frame = 0; frame < 4; frame += 1) slow();
    expect(drawn).toEqual([SAMPLE, 0]);
    vi.advanceTimersByTime(3 * REST_MS);
    expect(drawn).toEqual([SAMPLE, 0, Infinity]);
    motion.move(performance.now());
    for (let frame = 0; frame < 9; frame += 1) motion.frame(performance.now(), SLOW_MS + 1, 200);
    expect(motion.edges).toBe(Infinity);
    motion.stop();
    vi.useRealTimers();
  });

  it("samples edges from all of them, each once", () => {
    const order = sampled(10_000);
    expect(new Set(order).size).toBe(10_000);
    expect(Math.max(...order.slice(0, SAMPLE))).toBeGreaterThan(9_000);
    expect(sampled(3)).toEqual([0, 1, 2]);
  });
});

describe("a layout without a worker", () => {
  it("gives the places of the worker in slices, and leaves large pictures as they start", async () => {
    const laid = (graph: ReturnType<typeof ring>) => new Promise<Float32Array>((resolve) => slicedLayout().run(graph, (places, settled) => settled && resolve(places)));
    expect(digest(await laid(ring(50)))).toBe(digest(run(ring(50))));
    expect(await laid(ring(SLICED_MAX + 1))).toEqual(new Layout(ring(SLICED_MAX + 1)).places());
  });
});

describe("the view without WebGL", () => {
  it("zooms around its middle and moves to a point", () => {
    const box = { x: 0, y: 0, width: 100, height: 50 };
    expect(zoomed(box, 2)).toEqual({ x: 25, y: 12.5, width: 50, height: 25 });
    expect(centred(box, 0, 0)).toEqual({ x: -50, y: -25, width: 100, height: 50 });
  });
});

describe("the export", () => {
  it("escapes texts and keeps them text", () => {
    const data: PictureData = {
      nodes: [{ type: "A", id: "x", label: "</text><script>1</script>\u0001" }],
      kinds: new Uint8Array(1),
      sizes: new Float32Array(1),
      marks: Uint8Array.of(2),
      src: Uint32Array.of(0),
      dst: Uint32Array.of(0),
      edgeLabels: ["&"],
      edgeMarks: new Uint8Array(1),
    };
    const svg = toSvg(data, new Float32Array(2), COLOURS);
    expect(svg).not.toContain("<script>");
    expect(svg).toContain("+ &#60;/text&#62;");
    expect(boxOf(new Float32Array())).toEqual({ x: -60, y: -60, width: 120, height: 120 });
  });
});

describe("expanded nodes", () => {
  it("are read from the link, with a page more each time, and never more than twenty", () => {
    expect(readExpanded(undefined)).toEqual([]);
    expect(readExpanded('{"a":1}')).toEqual([]);
    expect(readExpanded('[["A","1",2],["A"],["B","2",0]]')).toEqual([["A", "1", 2]]);
    expect(withPage([["A", "1", 1]], "A", "1")).toEqual([["A", "1", 2]]);
    let list: ReturnType<typeof readExpanded> = [];
    for (let node = 0; node < 30; node += 1) list = withPage(list, "A", `${node}`);
    expect(list).toHaveLength(20);
    expect(list.at(-1)).toEqual(["A", "29", 1]);
  });
});
