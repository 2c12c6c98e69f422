"""The first rows of a table as Arrow columns: DataFrames, Arrow data, and CSV, Parquet and Arrow files.

Cells of CSV stay texts; `cell_types` judges them. Other sources have types of their own. A float column of pandas that
has missing values and only whole numbers is an integer column, because pandas has no missing integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from omnigraph.engine.ingest.arrow_input import input_table, is_of_pandas
from omnigraph.engine.ingest.csv_table import csv_rows, open_csv
from omnigraph.engine.ingest.records import Faults
from omnigraph.engine.ingest.tabular import file_batches, is_csv
from omnigraph.errors import InputError
from omnigraph.operations.inference.arrow_types import is_text
from omnigraph.operations.load.record_sources import input_files, is_paths, known_kind
from omnigraph.storage.files.input_files import DataFile
from omnigraph.table_format import TableFormat

ROWS_MAX = 1_000_000
"""Rows of a table that are read."""
_CHUNK_ROWS = 65_536


@dataclass(frozen=True)
class TableSample:
    """The first rows of a table."""

    label: str
    """The table in messages and comments."""
    table: pa.Table
    is_text: bool
    """True if the columns are cells of CSV."""
    is_complete: bool
    """False if the table has more rows."""

    @property
    def rows(self) -> int:
        """The number of rows that were read."""
        return int(self.table.num_rows)


def read_sample(name: str, data: Any, environ: Mapping[str, str], format: TableFormat, rows_max: int) -> TableSample:
    """Read the first rows of a table; `data` is a DataFrame, Arrow data, or the path or pattern of its files."""
    if not is_paths(data):
        return _frame_sample(name, data, rows_max)
    files = input_files(data, environ, format) or ()
    for file in files:
        if known_kind(file) != "table":
            raise InputError(
                f"'{file.name}' is a JSONL file; a schema is inferred from tables",
                hint="give a DataFrame, or .csv, .tsv, .parquet or .arrow files",
            )
    label = files[0].base if len(files) == 1 else f"{len(files)} files of '{name}'"
    texts = {is_csv(file) for file in files}
    if len(texts) > 1:
        raise InputError(
            f"the files of '{name}' have several formats", hint="infer the schema from files of one format"
        )
    if texts == {True}:
        return _csv_sample(label, files, rows_max)
    return _file_sample(label, files, rows_max)


def _frame_sample(name: str, data: Any, rows_max: int) -> TableSample:
    if type(data).__module__.startswith("pyspark."):
        raise InputError(f"'{name}': a schema is not inferred from a Spark DataFrame", hint="pass frame.toArrow()")
    is_pandas = type(data).__module__.partition(".")[0] == "pandas"
    first = data.iloc[:rows_max] if is_pandas and hasattr(data, "iloc") else data
    found = input_table(name, first, None, frozenset())
    for column, values in found.values.items():
        kinds = sorted({type(value).__name__ for value in values if value is not None})
        raise InputError(
            f"column '{column}' of '{name}' has values of several types: {', '.join(kinds)}",
            hint="give the column one type",
        )
    table = found.table
    _checked_names(table.column_names, name)
    table = _with_plain_texts(table)
    if is_pandas or is_of_pandas(table.schema):
        table = _with_integers(table)
    total = len(data) if is_pandas else table.num_rows
    return TableSample(name, table.slice(0, rows_max), is_text=False, is_complete=total <= rows_max)


def _file_sample(label: str, files: Sequence[DataFile], rows_max: int) -> TableSample:
    taken: list[pa.RecordBatch] = []
    rows = 0
    for batch in (batch for file in files for batch in file_batches(file)):
        taken.append(batch)
        rows += batch.num_rows
        if rows > rows_max:
            break
    table = input_table(label, _concatenated(label, taken), label, frozenset()).table
    _checked_names(table.column_names, label)
    table = _with_plain_texts(table)
    table = _with_integers(table) if taken and is_of_pandas(taken[0].schema) else table
    return TableSample(label, table.slice(0, rows_max), is_text=False, is_complete=rows <= rows_max)


def _concatenated(label: str, batches: Sequence[pa.RecordBatch]) -> pa.Table:
    try:
        return pa.Table.from_batches(batches) if batches else pa.table({})
    except pa.ArrowInvalid:
        raise InputError(f"the files of '{label}' have different columns", hint="give files of one table") from None


def _csv_sample(label: str, files: Sequence[DataFile], rows_max: int) -> TableSample:
    header: list[str] | None = None
    tables: list[pa.Table] = []
    rows, complete = 0, True
    for file in files:
        with open_csv(file, Faults()) as (reader, found):
            names = [name for name in found if name is not None]
            if header is not None and names != header:
                raise InputError(
                    f"'{file.name}' has other columns than '{files[0].name}'", hint="give files of one table"
                )
            header = _checked_names(names, file.name)
            kept = [at for at, name in enumerate(found) if name is not None]
            # Rows with too many or too few cells are rejects of the load.
            cells = (row for _, row in csv_rows(reader, len(found), None, Faults(collect=True)))
            for chunk in _chunks(islice(cells, max(rows_max - rows, 0))):
                columns = [pa.array([row[at] for row in chunk], pa.large_utf8()) for at in kept]
                tables.append(pa.Table.from_arrays(columns, names=header))
                rows += len(chunk)
            complete = complete and next(cells, None) is None
    assert header is not None, "an input has a file"
    empty = pa.table({name: pa.array([], pa.large_utf8()) for name in header})
    return TableSample(label, pa.concat_tables(tables) if tables else empty, is_text=True, is_complete=complete)


def _checked_names(names: list[str], source: str) -> list[str]:
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"'{source}' has two columns '{name}'", hint="give each column its own name")
    return names


def _chunks(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while chunk := list(islice(rows, _CHUNK_ROWS)):
        yield chunk


def _with_plain_texts(table: pa.Table) -> pa.Table:
    """Convert dictionaries and views of texts, which pandas and polars use, to texts."""
    for at, field in enumerate(table.schema):
        if is_text(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(pa.large_utf8()))
        elif pa.types.is_dictionary(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(field.type.value_type))
    return table


def _with_integers(table: pa.Table) -> pa.Table:
    """Convert float columns of pandas with missing values and only whole numbers to integers."""
    for at, field in enumerate(table.schema):
        column = table.column(at)
        if pa.types.is_floating(field.type) and column.null_count and column.null_count < len(column):
            try:
                table = table.set_column(at, field.name, column.cast(pa.int64()))
            except pa.ArrowInvalid:
                continue
    return table
