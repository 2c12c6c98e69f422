/**
 * A table of any number of rows and columns. Only the cells in view exist: rows are taken from a pool by their position,
 * so that scrolling moves and refills them, and columns out of view are one gap of the grid. The first column stays in
 * view. Above eight million pixels, which browsers do not exceed, the position of the scroll bar stands for a share of
 * the rows.
 */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import type { Column, ResultTable } from "../api/result";
import { text } from "../text/en";
import { copyText } from "./announce";
import { Dialog } from "./Dialog";
import { Icon } from "./Icon";
import { Plain } from "./Plain";
import { isNode, nodeLabel, Value, valueText } from "./Value";

export const ROW_PX = 32;
const HEIGHT_MAX = 8_000_000;
const SPARE_ROWS = 6;
const SPARE_PX = 200;
const SAMPLE_ROWS = 40;
const SAMPLE_CELLS = 20_000;
const CHARACTER_PX = 8.2;

interface Props {
  table: ResultTable;
  label: string;
  /** Returns the address of a node's page. */
  nodeHref?(type: string, id: string): string;
  onEnd?(): void;
  /** Selected rows, shared with a picture. */
  selected?: ReadonlySet<number>;
}

/** Returns the first row in view for a position of the scroll bar. */
export function firstRow(scrollTop: number, viewHeight: number, rows: number): number {
  const height = rows * ROW_PX;
  if (height <= HEIGHT_MAX) return Math.floor(scrollTop / ROW_PX);
  const share = scrollTop / Math.max(1, HEIGHT_MAX - viewHeight);
  return Math.max(0, Math.min(rows - 1, Math.round(share * Math.max(0, rows - viewHeight / ROW_PX))));
}

/** The columns in view and the widths of the columns before and behind them, all without the first column. */
export interface ColumnRange {
  readonly start: number;
  readonly end: number;
  readonly before: number;
  readonly after: number;
}

/** Returns the columns in view for a position of the scroll bar; `ends` has the right end of each column. */
export function columnRange(ends: readonly number[], scrollLeft: number, viewWidth: number): ColumnRange {
  const fixed = ends[0] ?? 0;
  const total = ends.at(-1) ?? 0;
  const from = Math.min(scrollLeft, Math.max(0, total - viewWidth)) + fixed - SPARE_PX;
  const to = scrollLeft + viewWidth + SPARE_PX;
  let start = 1;
  let high = ends.length;
  while (start < high) {
    const middle = (start + high) >> 1;
    if ((ends[middle] as number) <= from) start = middle + 1;
    else high = middle;
  }
  let end = start;
  while (end < ends.length && (ends[end - 1] as number) < to) end += 1;
  return { start, end, before: (ends[start - 1] ?? 0) - fixed, after: total - (ends[end - 1] ?? 0) };
}

export function DataTable({ table, label, nodeHref, onEnd, selected }: Props) {
  const view = useRef<HTMLDivElement>(null);
  const [{ top, left }, setScroll] = useState({ top: 0, left: 0 });
  const [{ width, height }, setSize] = useState({ width: 1280, height: 480 });
  const [open, setOpen] = useState<number | null>(null);
  const wanted = useMemo(() => columnWidths(table), [table]);
  // The first column, which stays in view, leaves half of a narrow window to the others.
  const widths = useMemo(() => wanted.map((px, index) => (index === 0 ? Math.min(px, width / 2) : px)), [wanted, width]);
  const ends = useMemo(() => rightEnds(widths), [widths]);

  useLayoutEffect(() => {
    const element = view.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const total = Math.min(table.rowCount * ROW_PX, HEIGHT_MAX);
  const first = firstRow(top, height, table.rowCount);
  const count = Math.min(Math.ceil(height / ROW_PX) + SPARE_ROWS, table.rowCount);
  const start = Math.max(0, Math.min(first, table.rowCount - count));
  const offset = total === table.rowCount * ROW_PX ? start * ROW_PX : Math.min(top, total - count * ROW_PX);
  useEffect(() => {
    if (start + count >= table.rowCount) onEnd?.();
  }, [start + count >= table.rowCount, table.rowCount]);

  const range = columnRange(ends, left, width);
  const template = [widths[0] ?? 0, range.before, ...widths.slice(range.start, range.end), range.after].map((px) => `${px}px`).join(" ");
  const columns = [...(widths.length === 0 ? [] : [0]), ...Array.from({ length: range.end - range.start }, (_, index) => range.start + index)];
  const rows = Array.from({ length: count }, (_, index) => start + index);
  return (
    <>
      <div
        class="data-table"
        ref={view}
        role="table"
        aria-label={label}
        aria-rowcount={table.rowCount + 1}
        aria-colcount={table.columns.length}
        tabIndex={0}
        onScroll={({ currentTarget: { scrollTop, scrollLeft } }) => setScroll({ top: scrollTop, left: Math.abs(scrollLeft) })}
      >
        <div class="head" role="rowgroup">
          <div class="cells" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
            {columns.map((index) => (
              <div class="cell" role="columnheader" key={index} aria-colindex={index + 1} style={gridPlace(index, range)} title={table.columns[index]?.type ?? table.columns[index]?.kind}>
                {table.columns[index]?.name}
              </div>
            ))}
          </div>
        </div>
        <div class="body" role="rowgroup" style={{ blockSize: `${total}px` }}>
          <div class="window" style={{ transform: `translateY(${offset}px)` }}>
            {rows.map((row) => (
              <div
                class="cells"
                role="row"
                key={row % count}
                aria-rowindex={row + 2}
                data-selected={selected?.has(row) === true ? "" : undefined}
                style={{ gridTemplateColumns: template }}
                onDblClick={() => setOpen(row)}
              >
                {columns.map((index) => (
                  <Cell key={index} index={index} place={gridPlace(index, range)} value={table.cell(index, row)} column={table.columns[index] as Column} nodeHref={nodeHref} open={index === 0 ? () => setOpen(row) : undefined} />
                ))}
              </div>
            ))}
          </div>
        </div>
      </div>
      {open === null ? null : <RowDialog table={table} row={open} onClose={() => setOpen(null)} />}
    </>
  );
}

/** Returns the line of the grid at which a cell begins: the first column, the gap, then the columns in view. */
const gridPlace = (index: number, range: ColumnRange) => ({ gridColumnStart: index === 0 ? 1 : index - range.start + 3 });

interface CellProps {
  index: number;
  place: { gridColumnStart: number };
  value: unknown;
  column: Column;
  nodeHref: Props["nodeHref"];
  /** Opens the whole row; the first cell has it. */
  open: (() => void) | undefined;
}

function Cell({ index, place, value, column: { kind, type }, nodeHref, open }: CellProps) {
  const numeric = kind === "number" || kind === "integer";
  return (
    <div class={numeric ? "cell number end" : "cell"} role="cell" aria-colindex={index + 1} style={place}>
      {open === undefined ? null : (
        <button type="button" class="more" aria-label={text.value.openRow} title={text.value.openRow} onClick={open}>
          <Icon name="more" />
        </button>
      )}
      <span class="cut">
        {type !== null && isNode(value) ? (
          nodeHref === undefined ? (
            <Plain text={nodeLabel(value, value.id)} />
          ) : (
            <a href={nodeHref(typeOf(value, type), value.id)}>{nodeLabel(value, value.id)}</a>
          )
        ) : (
          <Value value={value} />
        )}
      </span>
    </div>
  );
}

/** Returns the type of a node of a column; a column of several types carries it in the value. */
function typeOf(value: Readonly<Record<string, unknown>>, type: string): string {
  const own = value["type"];
  return type.includes("|") && typeof own === "string" ? own : (type.split("|")[0] ?? type);
}

/** A row in full: every value, however long. */
function RowDialog({ table, row, onClose }: { table: ResultTable; row: number; onClose(): void }) {
  const values = table.columns.map((column, index) => [column.name, table.cell(index, row)] as const);
  return (
    <Dialog title={text.value.row(row + 1)} onClose={onClose} wide>
      <dl class="dl whole" tabIndex={0}>
        {values.map(([name, value]) => (
          <>
            <dt key={`${name} name`}>{name}</dt>
            <dd key={name}>
              <Value value={value} full />
            </dd>
          </>
        ))}
      </dl>
      <div class="actions">
        <button type="button" class="button" onClick={() => void copyText(valueText(Object.fromEntries(values)))}>
          {text.value.copyRow}
        </button>
        <button type="button" class="button primary" onClick={onClose}>
          {text.close}
        </button>
      </div>
    </Dialog>
  );
}

/** Returns the width of each column from the texts of the first rows. */
function columnWidths(table: ResultTable): number[] {
  const rows = Math.min(SAMPLE_ROWS, table.rowCount, Math.ceil(SAMPLE_CELLS / Math.max(1, table.columns.length)));
  return table.columns.map((column, index) => {
    let longest = column.name.length + 2;
    for (let row = 0; row < rows; row += 1) {
      const value = table.cell(index, row);
      const shown = column.kind === "vector" ? 14 : isNode(value) ? nodeLabel(value, value.id).length : valueText(value).length;
      longest = Math.max(longest, Math.min(shown, 44));
    }
    return Math.round(longest * CHARACTER_PX + (index === 0 ? 56 : 28));
  });
}

/** Returns where each column ends. */
function rightEnds(widths: readonly number[]): number[] {
  let end = 0;
  return widths.map((width) => (end += width));
}
