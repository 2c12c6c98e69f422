/** Arrow streams as result tables. A chunk of its own: screens without a query do not load it. */
import { tableFromIPC, Type, type DataType, type Table } from "@uwdata/flechette";

import type { CellKind, Column, Hop, ResultTable } from "./result";

interface Shape {
  columns: { kind: string; type: string }[];
  hops: Hop[];
}

/** Reads an Arrow stream; nothing is decoded before a cell is asked for. */
export function readTable(bytes: ArrayBuffer): ResultTable {
  const table: Table = tableFromIPC(new Uint8Array(bytes), { useBigInt: true });
  const metadata = table.schema.metadata ?? new Map<string, string>();
  const shape = JSON.parse(metadata.get("shape") ?? '{"columns": [], "hops": []}') as Shape;
  const columns = table.schema.fields.map((field, index): Column => {
    const said = shape.columns[index];
    const isNode = said?.kind === "node";
    return { name: field.name, kind: isNode ? "node" : kindOf(field.type), type: isNode ? said.type : null };
  });
  const units = table.schema.fields.map((field) => field.type);
  return {
    columns,
    hops: shape.hops,
    rowCount: table.numRows,
    next: metadata.get("next") ?? null,
    commit: metadata.get("graph_commit_id") ?? "",
    elapsedMs: Number(metadata.get("elapsed_ms") ?? 0),
    cell: (column, row) => plain(table.getChildAt(column).at(row), units[column] as DataType),
  };
}

export function kindOf(type: DataType): CellKind {
  switch (type.typeId) {
    case Type.Int:
      return "integer";
    case Type.Float:
    case Type.Decimal:
      return "number";
    case Type.Bool:
      return "bool";
    case Type.Date:
      return type.unit === 0 ? "date" : "datetime";
    case Type.Timestamp:
      return "datetime";
    case Type.FixedSizeList:
      return "vector";
    case Type.List:
    case Type.LargeList:
      return "list";
    case Type.Struct:
      return "struct";
    case Type.Binary:
    case Type.LargeBinary:
    case Type.FixedSizeBinary:
      return "bytes";
    default:
      return "text";
  }
}

/** Returns a value in the form that JSON has: times as text in UTC, lists as arrays, structs as objects. */
function plain(value: unknown, type: DataType): unknown {
  if (value === null || value === undefined) return null;
  switch (type.typeId) {
    case Type.Date:
      return timeText(value, type.unit === 0);
    case Type.Timestamp:
      return timeText(value, false);
    case Type.FixedSizeList:
    case Type.List:
    case Type.LargeList: {
      const items = value as Iterable<unknown>;
      const child = type.children[0]?.type;
      return Array.from(items, (each) => (child === undefined ? each : plain(each, child)));
    }
    case Type.Struct: {
      const members = value as Record<string, unknown>;
      return Object.fromEntries(type.children.map((child) => [child.name, plain(members[child.name], child.type)]));
    }
    default:
      return value;
  }
}

function timeText(value: unknown, dateOnly: boolean): string {
  const date = new Date(Number(value));
  if (Number.isNaN(date.getTime())) return String(value);
  const iso = date.toISOString();
  return dateOnly ? iso.slice(0, iso.indexOf("T")) : iso.replace(/\.000Z$/, "Z");
}
