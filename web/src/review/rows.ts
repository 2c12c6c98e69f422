/** Pages of changed rows: nodes before edges, read on until enough of them match a filter. */
import { useEffect, useMemo, useState } from "preact/hooks";

import { problemOf, type Problem } from "../api/problem";
import type { RowChangeOutput } from "../api/reviewTypes";
import type { DiffPart } from "../source/review";
import { rowKey } from "./change";
import type { DiffReader } from "./reader";

export const PAGE_ROWS = 50;
/** Pages that one wish for more rows reads at most. */
const PAGES_MAX = 40;
const BULK_ROWS = 500;
const BULK_PAGES = 4;

export interface RowList {
  /** The rows that match, in order. */
  readonly rows: readonly RowChangeOutput[];
  /** The number of rows that were read. */
  readonly read: number;
  readonly done: boolean;
  readonly loading: boolean;
  readonly problem: Problem | null;
  more(): void;
}

/** Reads the pages of a part, one after the other. Nodes come first: edges make sense after them. */
class PartReader {
  readonly rows: RowChangeOutput[] = [];
  done = false;
  private readonly parts: readonly DiffPart[];
  private part = 0;
  private after: string | undefined;

  constructor(
    private readonly reader: DiffReader,
    part: DiffPart,
  ) {
    this.parts = part.kind === undefined ? [{ ...part, kind: "node" }, { ...part, kind: "edge" }] : [part];
  }

  async next(limit: number, signal: AbortSignal): Promise<void> {
    const part = this.parts[this.part];
    if (part === undefined) return;
    const page = await this.reader.rows(part, limit, this.after, signal);
    if (signal.aborted) return;
    this.rows.push(...page.changes);
    this.after = page.next;
    if (page.next === undefined || page.next === null) {
      this.after = undefined;
      this.part += 1;
    }
    this.done = this.part >= this.parts.length;
  }
}

/** Reads rows until a page of them matches `keep`, or until the row with the key `until` is among them. */
export function useRows(reader: DiffReader, part: DiffPart, keep: (change: RowChangeOutput) => boolean, keepKey: string, until: string | null): RowList {
  const key = JSON.stringify([reader.key, part]);
  const pages = useMemo(() => new PartReader(reader, part), [key]);
  const [wanted, setWanted] = useState({ key, count: PAGE_ROWS, wish: 0 });
  const count = wanted.key === key ? wanted.count : PAGE_ROWS;
  const [state, setState] = useState({ version: 0, loading: true, problem: null as Problem | null });
  useEffect(() => {
    const abort = new AbortController();
    const enough = () => pages.rows.filter(keep).length >= count && (until === null || pages.rows.some((each) => rowKey(each) === until));
    const read = async () => {
      for (let page = 0; page < PAGES_MAX && !pages.done && !enough() && !abort.signal.aborted; page += 1) {
        // The first page is small, so that it comes at once; a filter that drops most rows reads on in larger ones.
        await pages.next(page === 0 ? PAGE_ROWS : BULK_ROWS, abort.signal);
        setState((before) => ({ ...before, version: before.version + 1 }));
      }
    };
    setState((before) => ({ ...before, loading: true, problem: null }));
    read().then(
      () => !abort.signal.aborted && setState((before) => ({ ...before, loading: false })),
      (error: unknown) => {
        const problem = problemOf(error);
        if (problem !== null && !abort.signal.aborted) setState((before) => ({ ...before, loading: false, problem }));
      },
    );
    return () => abort.abort();
  }, [pages, keepKey, count, until, wanted.wish]);
  const rows = useMemo(() => pages.rows.filter(keep), [pages, state.version, keepKey]);
  return { rows, read: pages.rows.length, done: pages.done, loading: state.loading, problem: state.problem, more: () => setWanted({ key, count: rows.length + PAGE_ROWS, wish: wanted.wish + 1 }) };
}

/** Reads the first rows of a part at once; `more` is true if there are others. */
export async function readRows(reader: DiffReader, part: DiffPart, signal: AbortSignal): Promise<{ rows: readonly RowChangeOutput[]; more: boolean }> {
  const pages = new PartReader(reader, part);
  for (let page = 0; page < BULK_PAGES && !pages.done; page += 1) await pages.next(BULK_ROWS, signal);
  return { rows: pages.rows, more: !pages.done };
}
