"""Formats of the rows of a read: json, jsonl, csv, kv and table as text, arrow and parquet as files.

The specification defines the text formats byte for byte. A cell of csv, kv and table is the JSON form of the value, but
a string is not quoted. In csv, null is an empty cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from omnigraph.cli.io.output import json_text, plural
from omnigraph.config_keys import FORMATS
from omnigraph.fast_dataclass import dataclass
from omnigraph.text_table import TableStyle, cell, compact, table_lines

if TYPE_CHECKING:
    from omnigraph.engine.result.result import Result

BINARY_FORMATS = ("arrow", "parquet")
ALL_FORMATS = (*FORMATS, *BINARY_FORMATS)


@dataclass(frozen=True)
class ReadTarget:
    """The target of a read: a branch or a snapshot."""

    branch: str | None = None
    snapshot: str | None = None

    def __str__(self) -> str:
        return f"branch {self.branch}" if self.snapshot is None else f"snapshot {self.snapshot}"


def text_lines(result: Result, target: ReadTarget, format_: str, style: TableStyle) -> Iterator[str]:
    """Yield the lines of a result in a text format."""
    if format_ == "csv":
        from omnigraph.engine.result.csv_rows import csv_rows

        yield from csv_rows(result)
        return
    columns = result.to_columns()
    if format_ in ("json", "jsonl"):
        yield from json_lines(result, target, format_, columns)
    else:
        yield f"{plural(len(result), 'row')} from {target} via {result.query_name}"
        if format_ == "kv":
            yield from kv_lines(result.columns, columns)
        else:
            yield from table_lines(result.columns, columns, style, right=result.numeric_columns)


def json_lines(result: Result, target: ReadTarget, format_: str, columns: list[list[Any]]) -> Iterator[str]:
    """Yield one JSON document, or a line of metadata and one line per row."""
    from omnigraph.wire.queries import TargetDocument, query_document, query_metadata, row_objects

    read = TargetDocument(target.branch, target.snapshot)
    if format_ == "json":
        yield json_text(query_document(result, read, columns))
        return
    yield compact(query_metadata(result, read).to_json())
    for row in row_objects(result.columns, columns):
        yield compact(row)


def kv_lines(names: list[str], columns: list[list[Any]]) -> Iterator[str]:
    """Yield one block per row, one line per column."""
    number = 0
    for number, row in enumerate(zip(*columns, strict=True), 1):
        if number > 1:
            yield ""
        yield f"row {number}"
        for name, value in zip(names, row, strict=True):
            yield f"{name}: {cell(value)}"
    if not number:
        yield "(no rows)"


def write_binary(result: Result, format_: str, file: IO[bytes]) -> None:
    """Write the result as an Arrow or Parquet file."""
    import pyarrow as pa

    table = result.to_arrow()
    if format_ == "parquet":
        from omnigraph.engine.result.parquet_rows import parquet_chunks

        file.writelines(parquet_chunks(table.schema, iter(table.combine_chunks().to_batches())))
        return
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
