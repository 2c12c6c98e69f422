/**
 * Less detail while the camera moves: after slow frames a sample of the edges is drawn, then none; soon after the camera
 * rests the whole picture comes back. Pictures with few edges always show all of them.
 */
export const SLOW_MS = 24;
export const REST_MS = 120;
export const SAMPLE = 4000;
const ALWAYS_SHOWN = 300;
const SLOW_FRAMES = 2;

export class Motion {
  private slow = 0;
  private moved = -Infinity;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private shown = Infinity;

  /** `redraw` is called with the number of edges to draw when it changes. */
  constructor(private readonly redraw: (edges: number) => void) {}

  /** The number of edges that are drawn now. */
  get edges(): number {
    return this.shown;
  }

  /** The camera moved. */
  move(now: number): void {
    this.moved = now;
    if (this.timer === undefined && this.shown !== Infinity) this.waitForRest();
  }

  /** A frame of a picture with `edges` edges took `ms`. */
  frame(now: number, ms: number, edges: number): void {
    if (edges <= ALWAYS_SHOWN || now - this.moved > REST_MS) return;
    this.slow = ms > SLOW_MS ? this.slow + 1 : 0;
    if (this.slow < SLOW_FRAMES || this.shown === 0) return;
    this.slow = 0;
    this.set(this.shown > SAMPLE && edges > SAMPLE ? SAMPLE : 0);
    this.waitForRest();
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private waitForRest(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = undefined;
      if (performance.now() - this.moved < REST_MS) this.waitForRest();
      else this.set(Infinity);
    }, REST_MS);
  }

  private set(edges: number): void {
    if (edges === this.shown) return;
    this.shown = edges;
    this.redraw(edges);
  }
}

/** Returns the numbers of edges in an order whose first `SAMPLE` are spread over all of them. */
export function sampled(count: number): number[] {
  const step = Math.ceil(count / SAMPLE);
  const order: number[] = [];
  for (let first = 0; first < step; first += 1) {
    for (let edge = first; edge < count; edge += step) order.push(edge);
  }
  return order;
}
