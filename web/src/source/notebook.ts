/** The source of a notebook: questions to Python by the messages of a widget, each with a number that its answer repeats. */
import { Problem } from "../api/problem";

/** The part of the model of anywidget that is used. */
export interface WidgetModel {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(content: unknown): void;
  on(event: string, listener: (content: never) => void): void;
  off(event: string, listener: (content: never) => void): void;
}

interface Answer {
  readonly number: number;
  readonly answer?: unknown;
  readonly problem?: { readonly error: string; readonly code: string; readonly hint?: string };
}

export class NotebookSource {
  private last = 0;
  private readonly waiting = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>();
  private readonly listener = (content: never) => this.receive(content as Answer);

  constructor(private readonly model: WidgetModel) {
    model.on("msg:custom", this.listener);
  }

  /** Asks Python; an error there is a `Problem` here. */
  ask<T>(what: string, params: Readonly<Record<string, unknown>>): Promise<T> {
    const number = (this.last += 1);
    this.model.send({ number, ask: what, ...params });
    return new Promise<T>((resolve, reject) => this.waiting.set(number, { resolve: resolve as (value: unknown) => void, reject }));
  }

  close(): void {
    this.model.off("msg:custom", this.listener);
    for (const { reject } of this.waiting.values()) reject(new DOMException("closed", "AbortError"));
    this.waiting.clear();
  }

  private receive({ number, answer, problem }: Answer): void {
    const waiting = this.waiting.get(number);
    if (waiting === undefined) return;
    this.waiting.delete(number);
    if (problem === undefined) waiting.resolve(answer);
    else waiting.reject(new Problem(400, { ...problem }));
  }
}
