/** The scene drawn by sigma (WebGL), a chunk of its own. */
import Sigma from "sigma";
import type { EdgeDisplayData, NodeDisplayData, PartialButFor } from "sigma/types";
import type { Settings } from "sigma/settings";

import { DrawnGraph } from "./drawnGraph";
import { Motion, sampled } from "./motion";
import { EDGE_PROGRAMS, edgeLimits, NODE_PROGRAMS } from "./programs";
import { edgeLook, Mark, markedLabel, nodeLook, pairLabels, type Colours, type PictureData, type Places, type Scene } from "./scene";

const LABELLED_EDGES_MAX = 2000;
const LABELLED_NODES = 30;

/** Returns a scene in an element; null if the browser has no WebGL2. */
export function makeScene(host: HTMLElement, colours: Colours): Scene | null {
  const probe = document.createElement("canvas").getContext("webgl2");
  if (probe === null) return null;
  probe.getExtension("WEBGL_lose_context")?.loseContext();
  return new SigmaScene(host, colours);
}

const isMarked = (mark: number): boolean => mark !== Mark.None && mark !== Mark.Dimmed;

type LabelData = PartialButFor<NodeDisplayData, "x" | "y" | "size" | "label" | "color">;
type EdgeLabelData = PartialButFor<EdgeDisplayData, "label" | "color" | "size">;
type EndData = PartialButFor<NodeDisplayData, "x" | "y" | "size">;

class SigmaScene implements Scene {
  onPick: ((node: number | null) => void) | null = null;
  onOpen: ((node: number) => void) | null = null;
  onLost: (() => void) | null = null;
  readonly frames = { count: 0, lastMs: 0 };
  private graph = new DrawnGraph();
  private readonly sigma: Sigma;
  private readonly motion: Motion;
  private data: PictureData | null = null;
  private started = 0;
  private marked = 0;

  constructor(
    host: HTMLElement,
    private colours: Colours,
  ) {
    this.sigma = new Sigma(this.graph.forSigma, host, {
      allowInvalidContainer: true,
      nodeProgramClasses: NODE_PROGRAMS,
      edgeProgramClasses: EDGE_PROGRAMS,
      labelFont: getComputedStyle(document.body).fontFamily,
      labelSize: 12,
      labelRenderedSizeThreshold: 5,
      labelDensity: 0.6,
      labelGridCellSize: 110,
      edgeLabelSize: 10,
      defaultEdgeType: "arrow",
      zIndex: true,
      minCameraRatio: 0.02,
      maxCameraRatio: 8,
      stagePadding: 40,
      labelColor: { attribute: "labelColor", color: colours.text },
      defaultEdgeColor: colours.line,
      defaultDrawNodeLabel: (context, data, settings) => this.drawLabel(context, data, settings),
      defaultDrawNodeHover: (context, data, settings) => this.drawHover(context, data, settings),
      defaultDrawEdgeLabel: (context, edge, source, target, settings) => this.drawEdgeLabel(context, edge, source, target, settings),
    });
    this.motion = new Motion((edges) => {
      edgeLimits.set(this.sigma, edges);
      this.sigma.scheduleRender();
    });
    this.sigma.on("clickNode", ({ node }) => this.onPick?.(Number(node)));
    this.sigma.on("clickStage", () => this.onPick?.(null));
    this.sigma.on("doubleClickNode", (event) => {
      event.preventSigmaDefault();
      this.onOpen?.(Number(event.node));
    });
    this.sigma.getCamera().on("updated", () => this.motion.move(performance.now()));
    this.sigma.on("beforeRender", () => (this.started = performance.now()));
    this.sigma.on("afterRender", () => this.measure());
    for (const canvas of Object.values(this.sigma.getCanvases())) {
      canvas.addEventListener("webglcontextlost", (event) => {
        event.preventDefault();
        this.onLost?.();
      });
    }
  }

  /** The time of a frame ends with the next one, so that it contains the work of the GPU. */
  private measure(): void {
    const { started } = this;
    this.frames.count += 1;
    this.frames.lastMs = performance.now() - started;
    requestAnimationFrame(() => {
      const now = performance.now();
      this.motion.frame(now, now - started, this.data?.src.length ?? 0);
    });
  }

  show(data: PictureData, places: Places): void {
    this.data = data;
    this.marked = data.marks.reduce((count, mark) => count + (isMarked(mark) ? 1 : 0), 0);
    // A new graph is indexed once; changes of the shown one would be indexed one by one.
    const graph = new DrawnGraph();
    data.nodes.forEach((_, index) => graph.addNode(index, { x: places[2 * index], y: places[2 * index + 1], ...this.nodeLook(data, index) }));
    const labelled = data.src.length <= LABELLED_EDGES_MAX;
    const labels = labelled ? pairLabels(data) : [];
    for (const edge of sampled(data.src.length)) {
      graph.addEdge(edge, data.src[edge] ?? 0, data.dst[edge] ?? 0, { label: data.edgeMarks[edge] === Mark.Dimmed ? null : (labels[edge] ?? null), ...this.edgeLook(data, edge) });
    }
    this.graph = graph;
    this.sigma.setSetting("renderEdgeLabels", labelled);
    this.sigma.setGraph(graph.forSigma);
  }

  private nodeLook(data: PictureData, index: number): Record<string, unknown> {
    const mark = data.marks[index] ?? 0;
    const look = nodeLook(this.colours, data.kinds[index] ?? 0, mark);
    return {
      size: (data.sizes[index] ?? 1) * look.scale,
      label: markedLabel(data.nodes[index]?.label ?? "", mark),
      color: look.fill,
      second: look.second,
      form: look.form,
      labelColor: mark === Mark.Dimmed ? this.colours.dimmed : this.colours.text,
      zIndex: mark === Mark.Dimmed ? 0 : 1,
      forceLabel: this.labelled(data, mark),
    };
  }

  /** A picture with few marks names every marked node, a small one without marks every node. The rest is named where there is room. */
  private labelled(data: PictureData, mark: number): boolean {
    if (this.marked > 0) return isMarked(mark) && this.marked <= LABELLED_NODES;
    return data.nodes.length <= LABELLED_NODES;
  }

  private edgeLook(data: PictureData, edge: number): Record<string, unknown> {
    const mark = data.edgeMarks[edge] ?? 0;
    const look = edgeLook(this.colours, mark, data.src.length);
    return { size: look.width, color: look.colour, type: look.dashed ? "dashed" : "arrow", zIndex: isMarked(mark) ? 1 : 0 };
  }

  move(places: Places): void {
    this.graph.updateEachNode(
      (node, attributes) => {
        const at = 2 * Number(node);
        attributes["x"] = places[at];
        attributes["y"] = places[at + 1];
        return attributes;
      },
      ["x", "y"],
    );
  }

  mark(marks: Uint8Array): void {
    const { data } = this;
    if (data === null) return;
    this.graph.updateEachNode((node, attributes) => {
      const index = Number(node);
      const selected = marks[index] === Mark.Selected;
      return { ...attributes, ...this.nodeLook(data, index), highlighted: selected, ...(selected ? { forceLabel: true } : {}) };
    });
  }

  colour(colours: Colours): void {
    this.colours = colours;
    this.sigma.setSetting("labelColor", { attribute: "labelColor", color: colours.text });
    const { data } = this;
    if (data === null) return;
    this.graph.updateEachNode((node, attributes) => ({ ...attributes, ...this.nodeLook(data, Number(node)) }));
    this.graph.updateEachEdge((edge, attributes) => ({ ...attributes, ...this.edgeLook(data, Number(edge)) }), ["color", "type", "zIndex"]);
  }

  zoom(factor: number): void {
    const camera = this.sigma.getCamera();
    camera.setState({ ratio: Math.min(8, Math.max(0.02, camera.ratio / factor)) });
  }

  fit(): void {
    this.sigma.getCamera().setState({ x: 0.5, y: 0.5, ratio: 1, angle: 0 });
  }

  pan(right: number, down: number): void {
    const camera = this.sigma.getCamera();
    const state = camera.getState();
    const from = this.sigma.viewportToFramedGraph({ x: 0, y: 0 });
    const to = this.sigma.viewportToFramedGraph({ x: right, y: down });
    camera.setState({ x: state.x + to.x - from.x, y: state.y + to.y - from.y });
  }

  to(node: number): void {
    const shown = this.sigma.getNodeDisplayData(node);
    if (shown !== undefined) this.sigma.getCamera().setState({ x: shown.x, y: shown.y });
  }

  destroy(): void {
    this.onLost = null;
    this.motion.stop();
    this.sigma.kill();
  }

  /** Returns where a label starts: right of its node, or left of it if the picture ends there. */
  private labelAt(data: LabelData, width: number, gap: number): number {
    const right = data.x + data.size + gap;
    const left = data.x - data.size - gap - width;
    return right + width > this.sigma.getDimensions().width && left > 0 ? left : right;
  }

  private drawLabel(context: CanvasRenderingContext2D, data: LabelData & { labelColor?: string }, settings: Settings): void {
    if (typeof data.label !== "string" || data.label === "") return;
    context.font = `${settings.labelSize}px ${settings.labelFont}`;
    const x = this.labelAt(data, context.measureText(data.label).width, 3);
    const y = data.y + settings.labelSize / 3;
    context.lineJoin = "round";
    context.lineWidth = 3;
    context.strokeStyle = this.colours.surface;
    context.strokeText(data.label, x, y);
    context.fillStyle = data.labelColor ?? this.colours.text;
    context.fillText(data.label, x, y);
  }

  private drawHover(context: CanvasRenderingContext2D, data: LabelData, settings: Settings): void {
    const { colours } = this;
    context.beginPath();
    context.arc(data.x, data.y, data.size + 4, 0, Math.PI * 2);
    context.strokeStyle = colours.accent;
    context.lineWidth = 2.5;
    context.stroke();
    if (typeof data.label !== "string") return;
    context.font = `600 ${settings.labelSize}px ${settings.labelFont}`;
    const width = context.measureText(data.label).width + 12;
    const x = this.labelAt(data, width, 6);
    context.fillStyle = colours.surface;
    context.fillRect(x, data.y - 11, width, 22);
    context.lineWidth = 1;
    context.strokeRect(x, data.y - 11, width, 22);
    context.fillStyle = colours.text;
    context.fillText(data.label, x + 6, data.y + settings.labelSize / 3);
  }

  /** Draws the name of an edge at its middle, if the edge is long enough for it. */
  private drawEdgeLabel(context: CanvasRenderingContext2D, edge: EdgeLabelData, source: EndData, target: EndData, settings: Settings): void {
    if (typeof edge.label !== "string" || edge.label === "") return;
    context.font = `${settings.edgeLabelSize}px ${settings.labelFont}`;
    const width = context.measureText(edge.label).width;
    const length = Math.hypot(target.x - source.x, target.y - source.y) - source.size - target.size;
    if (length < width + 14) return;
    let angle = Math.atan2(target.y - source.y, target.x - source.x);
    if (Math.abs(angle) > Math.PI / 2) angle += Math.PI;
    context.save();
    context.translate((source.x + target.x) / 2, (source.y + target.y) / 2);
    context.rotate(angle);
    context.lineJoin = "round";
    context.lineWidth = 3;
    context.strokeStyle = this.colours.surface;
    context.strokeText(edge.label, -width / 2, 3);
    context.fillStyle = this.colours.text;
    context.fillText(edge.label, -width / 2, 3);
    context.restore();
  }
}
