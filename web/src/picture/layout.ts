/**
 * A force layout on typed arrays: repulsion by Barnes and Hut, springs along edges, gravity to the centre.
 *
 * It is deterministic: nodes start on a sunflower spiral in their order, there are no random numbers, and the number of
 * steps is fixed. The same graph gives the same picture. Nodes with a given place keep it nearly (`pinned`).
 */

export const TICKS = 300;
const THETA2 = 0.81;
const DEPTH_MAX = 32;
const SPRING = 0.12;
const GRAVITY = 0.03;
const SPACING = 30;
const PINNED_SHARE = 0.02;

/** What the worker receives: a graph and a number, which its answers repeat. */
export interface LayoutRun extends LayoutGraph {
  readonly run: number;
}

export interface LayoutStep {
  readonly run: number;
  readonly places: Float32Array;
  readonly done: boolean;
}

export interface LayoutGraph {
  readonly count: number;
  readonly src: Uint32Array;
  readonly dst: Uint32Array;
  /** Places of nodes that have one; the others are NaN. */
  readonly places?: Float32Array;
}

export class Layout {
  private readonly x: Float64Array;
  private readonly y: Float64Array;
  private readonly dx: Float64Array;
  private readonly dy: Float64Array;
  private readonly degree: Float64Array;
  private readonly pinned: Uint8Array;
  private readonly tree: Tree;
  private done = 0;

  constructor(private readonly graph: LayoutGraph) {
    const { count } = graph;
    this.x = new Float64Array(count);
    this.y = new Float64Array(count);
    this.dx = new Float64Array(count);
    this.dy = new Float64Array(count);
    this.degree = new Float64Array(count).fill(1);
    this.pinned = new Uint8Array(count);
    this.tree = new Tree(count);
    for (let edge = 0; edge < graph.src.length; edge += 1) {
      this.degree[graph.src[edge] as number]! += 1;
      this.degree[graph.dst[edge] as number]! += 1;
    }
    this.place();
  }

  get isDone(): boolean {
    return this.done >= TICKS;
  }

  private place(): void {
    const { count, places, src, dst } = this.graph;
    const golden = Math.PI * (3 - Math.sqrt(5));
    const parent = new Int32Array(count).fill(-1);
    for (let edge = 0; edge < src.length; edge += 1) {
      const a = src[edge] as number;
      const b = dst[edge] as number;
      if (parent[b] === -1) parent[b] = a;
      if (parent[a] === -1) parent[a] = b;
    }
    for (let node = 0; node < count; node += 1) {
      const known = places !== undefined && !Number.isNaN(places[2 * node]);
      if (known) {
        this.x[node] = places[2 * node] as number;
        this.y[node] = places[2 * node + 1] as number;
        this.pinned[node] = 1;
      }
    }
    for (let node = 0; node < count; node += 1) {
      if (this.pinned[node] === 1) continue;
      const near = parent[node] as number;
      const beside = near >= 0 && this.pinned[near] === 1;
      const radius = beside ? SPACING * (1 + (node % 7) / 7) : SPACING * Math.sqrt(node + 0.5);
      this.x[node] = (beside ? (this.x[near] as number) : 0) + radius * Math.cos(node * golden);
      this.y[node] = (beside ? (this.y[near] as number) : 0) + radius * Math.sin(node * golden);
    }
  }

  /** Takes one step. */
  tick(): void {
    const { count, src, dst } = this.graph;
    const { x, y, dx, dy, degree } = this;
    dx.fill(0);
    dy.fill(0);
    this.tree.build(x, y, degree);
    for (let node = 0; node < count; node += 1) this.tree.push(node, x, y, dx, dy);
    for (let edge = 0; edge < src.length; edge += 1) {
      const a = src[edge] as number;
      const b = dst[edge] as number;
      if (a === b) continue;
      const weight = SPRING / Math.min(degree[a] as number, degree[b] as number);
      const fx = ((x[b] as number) - (x[a] as number)) * weight;
      const fy = ((y[b] as number) - (y[a] as number)) * weight;
      dx[a]! += fx;
      dy[a]! += fy;
      dx[b]! -= fx;
      dy[b]! -= fy;
    }
    const heat = SPACING * (1 - this.done / TICKS) + 0.3;
    for (let node = 0; node < count; node += 1) {
      const share = this.pinned[node] === 1 ? PINNED_SHARE : 1;
      const mx = (dx[node] as number) - (x[node] as number) * GRAVITY;
      const my = (dy[node] as number) - (y[node] as number) * GRAVITY;
      const length = Math.sqrt(mx * mx + my * my) || 1;
      const step = (Math.min(length, heat) / length) * share;
      x[node]! += mx * step;
      y[node]! += my * step;
    }
    this.done += 1;
  }

  places(): Float32Array {
    const result = new Float32Array(2 * this.graph.count);
    for (let node = 0; node < this.graph.count; node += 1) {
      result[2 * node] = this.x[node] as number;
      result[2 * node + 1] = this.y[node] as number;
    }
    return result;
  }
}

/** A quadtree in flat arrays, built again at each step. */
class Tree {
  private readonly children: Int32Array;
  private readonly mass: Float64Array;
  private readonly cx: Float64Array;
  private readonly cy: Float64Array;
  private readonly width: Float64Array;
  private readonly leaf: Int32Array;
  private readonly next: Int32Array;
  private readonly stack = new Int32Array(512);
  private used = 0;

  constructor(private readonly count: number) {
    const cells = Math.max(64, 8 * count);
    this.children = new Int32Array(4 * cells);
    this.mass = new Float64Array(cells);
    this.cx = new Float64Array(cells);
    this.cy = new Float64Array(cells);
    this.width = new Float64Array(cells);
    this.leaf = new Int32Array(cells);
    this.next = new Int32Array(count);
  }

  private cell(width: number): number {
    const at = this.used;
    this.used += 1;
    this.children.fill(-1, 4 * at, 4 * at + 4);
    this.mass[at] = 0;
    this.cx[at] = 0;
    this.cy[at] = 0;
    this.width[at] = width;
    this.leaf[at] = -1;
    return at;
  }

  build(x: Float64Array, y: Float64Array, weight: Float64Array): void {
    let low = Infinity;
    let high = -Infinity;
    for (let node = 0; node < this.count; node += 1) {
      low = Math.min(low, x[node] as number, y[node] as number);
      high = Math.max(high, x[node] as number, y[node] as number);
    }
    const width = Math.max(high - low, 1) * 1.0001;
    this.used = 0;
    this.cell(width);
    this.next.fill(-1);
    for (let node = 0; node < this.count; node += 1) this.insert(node, x, y, weight, low, width);
  }

  private insert(node: number, x: Float64Array, y: Float64Array, weight: Float64Array, low: number, width: number): void {
    const nx = x[node] as number;
    const ny = y[node] as number;
    const mass = weight[node] as number;
    let at = 0;
    let left = low;
    let top = low;
    let size = width;
    for (let depth = 0; ; depth += 1) {
      const before = this.mass[at] as number;
      const total = before + mass;
      this.cx[at] = ((this.cx[at] as number) * before + nx * mass) / total;
      this.cy[at] = ((this.cy[at] as number) * before + ny * mass) / total;
      this.mass[at] = total;
      if (before === 0 || depth >= DEPTH_MAX || this.used + 4 >= this.mass.length) {
        this.next[node] = this.leaf[at] as number;
        this.leaf[at] = node;
        return;
      }
      const held = this.leaf[at] as number;
      const half = size / 2;
      if (held !== -1 && this.next[held] === -1) {
        // The only node of a leaf moves one level down.
        this.leaf[at] = -1;
        const child = this.childOf(at, x[held] as number, y[held] as number, left + half, top + half, half);
        this.mass[child] = weight[held] as number;
        this.cx[child] = x[held] as number;
        this.cy[child] = y[held] as number;
        this.leaf[child] = held;
      }
      at = this.childOf(at, nx, ny, left + half, top + half, half);
      if (nx >= left + half) left += half;
      if (ny >= top + half) top += half;
      size = half;
    }
  }

  private childOf(at: number, nx: number, ny: number, middleX: number, middleY: number, size: number): number {
    const slot = 4 * at + (nx >= middleX ? 1 : 0) + (ny >= middleY ? 2 : 0);
    if (this.children[slot] === -1) this.children[slot] = this.cell(size);
    return this.children[slot] as number;
  }

  /** Adds the repulsion of all other nodes. */
  push(node: number, x: Float64Array, y: Float64Array, dx: Float64Array, dy: Float64Array): void {
    const nx = x[node] as number;
    const ny = y[node] as number;
    const strength = SPACING * SPACING * 0.35;
    let fx = 0;
    let fy = 0;
    let depth = 0;
    this.stack[depth++] = 0;
    while (depth > 0) {
      const at = this.stack[--depth] as number;
      const mass = this.mass[at] as number;
      if (mass === 0) continue;
      const ox = nx - (this.cx[at] as number);
      const oy = ny - (this.cy[at] as number);
      const distance2 = ox * ox + oy * oy;
      const size = this.width[at] as number;
      const far = size * size < THETA2 * distance2;
      if (far || this.leaf[at] !== -1) {
        if (!far && this.leaf[at] === node && this.next[node] === -1) continue;
        if (distance2 < 1e-9) {
          fx += ((node % 5) - 2) * 0.1;
          fy += ((node % 3) - 1) * 0.1;
        } else {
          const force = (strength * mass) / distance2;
          fx += ox * force;
          fy += oy * force;
        }
        if (far) continue;
      }
      for (let slot = 4 * at; slot < 4 * at + 4; slot += 1) {
        const child = this.children[slot] as number;
        if (child !== -1) this.stack[depth++] = child;
      }
    }
    dx[node]! += fx;
    dy[node]! += fy;
  }
}
