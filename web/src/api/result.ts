/** The rows of a query as screens see them: columns with a kind, cells decoded when they are shown. */

/** What a cell contains, which decides how it is shown. */
export type CellKind = "text" | "number" | "integer" | "bool" | "date" | "datetime" | "vector" | "list" | "node" | "struct" | "bytes";

export interface Column {
  readonly name: string;
  readonly kind: CellKind;
  /** The node type of a column of nodes, such as `Note` or `Note|Person`. */
  readonly type: string | null;
}

/** Two columns of nodes that an edge connects in every row. */
export interface Hop {
  readonly source: number;
  readonly target: number;
  readonly label: string;
  readonly directed: boolean;
  readonly several: boolean;
}

export interface ResultTable {
  readonly columns: readonly Column[];
  readonly hops: readonly Hop[];
  readonly rowCount: number;
  /** The cursor of the next page; null if this is the last one. */
  readonly next: string | null;
  readonly commit: string;
  readonly elapsedMs: number;
  cell(column: number, row: number): unknown;
}

/** Returns one table of the pages of a result. */
export function joinPages(pages: readonly ResultTable[]): ResultTable {
  const [first] = pages;
  const last = pages.at(-1);
  if (first === undefined || last === undefined) throw new Error("a result has at least one page");
  if (pages.length === 1) return first;
  const starts: number[] = [];
  let rowCount = 0;
  for (const page of pages) {
    starts.push(rowCount);
    rowCount += page.rowCount;
  }
  return {
    ...first,
    rowCount,
    next: last.next,
    cell(column, row) {
      let at = starts.length - 1;
      while (at > 0 && (starts[at] as number) > row) at -= 1;
      return pages[at]?.cell(column, row - (starts[at] as number));
    },
  };
}
