"""Query results and their conversion to Arrow, Python, pandas, polars and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from omnigraph.arrays import rows_within
from omnigraph.display import html_of, save, show
from omnigraph.engine import tuning
from omnigraph.engine.fastpath.python_rows import PythonRows, dicts
from omnigraph.engine.result.result_graph import ResultGraph
from omnigraph.errors import InputError
from omnigraph.fast_dataclass import dataclass
from omnigraph.optional_packages import get_package
from omnigraph.scalar_types.columns import kind_of, stored_values
from omnigraph.text_table import TableStyle, table_lines, terminal_width
from omnigraph.types import PropertyType
from omnigraph.versioning.compare.rows import python_values, with_instants

Model = TypeVar("Model")

_HTML_ROWS = 50
_TEXT_ROWS = 20
_UNCHANGED = frozenset({pa.utf8(), pa.bool_(), pa.int32(), pa.uint32()})
"""Arrow types whose Python values are JSON values; they are converted without a loop over the values."""

_WITHOUT_ARROW = _UNCHANGED | {pa.int64(), pa.uint64(), pa.float64()}
"""Arrow types whose Python values and stored values are the same."""


@dataclass(frozen=True, slots=True)
class ResultView:
    """The content of a result for display."""

    names: Sequence[str]
    columns: Sequence[Sequence[Any]]
    """The first rows, column by column."""
    row_count: int
    """The number of all rows."""
    numeric: Collection[int]
    """Indices of the columns of numbers."""
    graph: ResultGraph


class DeferredRows(Protocol):
    """Rows that are computed batch by batch, by the executor or by a remote graph."""

    @property
    def schema(self) -> pa.Schema:
        """The columns; names may repeat."""

    def __len__(self) -> int: ...

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches of at most `rows` rows."""


class Result:
    """The rows of a query; iteration yields dicts.

    The properties of a large result are fetched on demand. `batches`, iteration and the Arrow stream hold one batch in
    memory; `to_arrow` and the conversions based on it hold all rows.
    """

    def __init__(
        self,
        rows: pa.Table | DeferredRows | PythonRows,
        *,
        query_name: str,
        commit_id: str,
        elapsed_ms: float,
        shape: Callable[[], ResultGraph] = ResultGraph,
        next: str | None = None,
    ) -> None:
        self._rows = rows
        self._shape = shape
        self.query_name = query_name
        self.commit_id = commit_id
        self.elapsed_ms = elapsed_ms
        self.next = next
        """The cursor of the next page; None if there is none or no page was requested."""

    @classmethod
    def empty(cls) -> Result:
        """Return a result without rows and columns."""
        return cls(pa.table({}), query_name="", commit_id="", elapsed_ms=0.0)

    @property
    def schema(self) -> pa.Schema:
        """The columns and their Arrow types."""
        return self._arrow.schema

    @property
    def shape(self) -> ResultGraph:
        """The kind and type of each column, and the hops between the columns of nodes."""
        return self._shape()

    @property
    def columns(self) -> list[str]:
        """The names of the columns; names may repeat."""
        return list(self._rows.names) if isinstance(self._rows, PythonRows) else list(self._rows.schema.names)

    @property
    def _arrow(self) -> pa.Table | DeferredRows:
        if isinstance(self._rows, PythonRows):
            self._rows = self._rows.to_table()
        return self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if isinstance(self._rows, PythonRows):
            yield from self._rows.to_pylist()
            return
        names = self.columns
        for batch in self.batches(tuning.current.result_batch_rows):
            yield from dicts(names, [python_values(column) for column in batch.columns])

    @property
    def numeric_columns(self) -> list[int]:
        """The indexes of the numeric columns."""
        types = self.schema.types
        return [n for n, type_ in enumerate(types) if pa.types.is_integer(type_) or pa.types.is_floating(type_)]

    def __str__(self) -> str:
        """Return a table of the first rows that fits the width of the terminal."""
        style = TableStyle(total_width=terminal_width())
        lines = [*table_lines(self.columns, self._first_rows(_TEXT_ROWS), style, right=self.numeric_columns)]
        if len(self) > _TEXT_ROWS:
            lines.append("…")
        lines.append(f"{len(self):,} {'row' if len(self) == 1 else 'rows'}")
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__

    def _first_rows(self, count: int) -> list[list[Any]]:
        """Return the first rows as columns of JSON values; other rows are not fetched."""
        first = next(iter(self.batches(count)), None)
        return [_json_column(column) for column in first.columns] if first is not None else [[] for _ in self.columns]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def batches(self, rows: int = 65_536) -> Iterator[pa.RecordBatch]:
        """Return the rows in Arrow batches of at most `rows` rows; each is computed on demand."""
        if rows < 1:
            raise InputError(f"a batch must have at least one row (got {rows})")
        arrow = self._arrow
        return iter(arrow.to_batches(max_chunksize=rows)) if isinstance(arrow, pa.Table) else arrow.batches(rows)

    def to_batches(self, rows: int = 65_536) -> Iterator[pa.RecordBatch]:
        """Alias of `batches` with the name that Arrow uses."""
        return self.batches(rows)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        arrow = self._arrow
        if not isinstance(arrow, pa.Table):
            arrow = self._rows = pa.Table.from_batches(arrow.batches(65_536), arrow.schema)
        return arrow

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dicts of Python values."""
        if isinstance(self._rows, PythonRows):
            return self._rows.to_pylist()
        if not isinstance(self._rows, pa.Table):
            return list(self)
        # A single chunk is converted faster than the chunked column of the table.
        columns = [column.chunk(0) if column.num_chunks == 1 else column for column in self._rows.itercolumns()]
        return dicts(self.columns, [python_values(column) for column in columns])

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame; pandas must be installed."""
        get_package("pandas")
        columns = [column.cast(with_instants(column.type)) for column in self.to_arrow().columns]
        table = pa.Table.from_arrays(columns, names=self.columns)
        try:
            frame = table.to_pandas()
        except (OverflowError, ValueError):
            # Dates outside the years 1 to 9999 do not fit Python dates.
            shown = [pa.nulls(len(column)) if _holds_dates(column.type) else column for column in columns]
            frame = pa.Table.from_arrays(shown, names=self.columns).to_pandas()
            for position, column in enumerate(columns):
                if _holds_dates(column.type):
                    frame.isetitem(position, python_values(column))
            return frame
        for position, column in enumerate(table.columns):
            if pa.types.is_nested(column.type):
                # Otherwise integers next to nulls would become floats.
                frame.isetitem(position, column.to_pandas(integer_object_nulls=True))
        return frame

    def to_polars(self) -> Any:
        """Return the rows as a polars DataFrame; polars must be installed."""
        return get_package("polars").from_arrow(self.to_arrow())

    def into(self, model: type[Model]) -> list[Model]:
        """Return the rows as objects of a class: a pydantic model, a dataclass or a msgspec struct.

        A single column of nodes or edges gives these; otherwise the column `p.name` or `name` gives the field `name`. A
        column without a field, a field without a column, and a wrong type raise `InputError`, which names them.
        """
        from omnigraph.models.objects import objects_of  # noqa: PLC0415 (only for objects)

        types = {field.name: column_type(field.type) for field in self.schema}
        return objects_of(model, self.columns, types, self)

    def json_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as JSON values: dates as text, integers beyond the range of JavaScript as strings."""
        names = self.columns
        for columns in self.json_columns():
            for row in zip(*columns, strict=True):
                yield dict(zip(names, row, strict=True))

    def json_columns(self) -> Iterator[list[list[Any]]]:
        """Yield the JSON values of one batch after another, column by column."""
        rows = rows_within(self.schema, tuning.current.result_batch_rows, tuning.current.result_batch_bytes)
        for batch in self.batches(rows):
            yield batch_values(batch)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return `json_rows` as a list."""
        return list(self.json_rows())

    def to_columns(self) -> list[list[Any]]:
        """Return the JSON values column by column, including columns with equal names."""
        rows = self._rows
        if isinstance(rows, PythonRows) and _WITHOUT_ARROW.issuperset(rows.types):
            return [_json_values(values, type_) for values, type_ in zip(rows.columns, rows.types, strict=True)]
        return [_json_column(column) for column in self.to_arrow().columns]

    def to_json(self) -> str:
        """Return the rows as a JSON array."""
        return json.dumps(self.to_rows(), ensure_ascii=False)

    def show(self) -> Any:
        """Return a widget with the picture and the table for a notebook (extra `notebook`)."""
        return show(self)

    def save(self, path: str | Path) -> Path:
        """Write the picture and the table as one HTML file, which loads nothing, and return its path.

        The file has at most 10,000 nodes and 20 MB; it names what was left out.
        """
        return save(self, path)

    def _repr_html_(self) -> str:
        first = self._first_rows(_HTML_ROWS)
        return html_of(ResultView(self.columns, first, len(self), self.numeric_columns, self._shape()))


def column_type(type_: pa.DataType) -> Any:
    """Return the type of a column: a `PropertyType`, or for objects a dict of field to type; None if there is none."""
    if pa.types.is_struct(type_):
        return {field.name: column_type(field.type) for field in type_}
    if pa.types.is_fixed_size_list(type_):
        return PropertyType("Vector", dim=type_.list_size)
    kind = kind_of(type_.value_type if pa.types.is_list(type_) else type_)
    return None if kind is None else PropertyType(kind.name, is_list=pa.types.is_list(type_))


def batch_values(batch: pa.RecordBatch) -> list[list[Any]]:
    """Return the JSON values of a batch, column by column."""
    return [_json_column(column) for column in batch.columns]


def _json_values(values: list[Any], type_: pa.DataType) -> list[Any]:
    """Convert the Python values of a small column to JSON values, without an Arrow array."""
    kind = kind_of(type_)
    if kind is None or type_ in _UNCHANGED:
        return values
    return [None if value is None else kind.write(value) for value in values]


def _json_column(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Convert a column to JSON values by its Arrow type; values inside lists and objects are converted alike."""
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in _json_column(chunk)]
    type_ = column.type
    if pa.types.is_struct(type_):
        fields = [_json_column(field) for field in column.flatten()]
        rows = [dict(zip(type_.names, row, strict=True)) for row in zip(*fields, strict=True)]
        return [row if known else None for row, known in zip(rows, column.is_valid().to_pylist(), strict=True)]
    if pa.types.is_fixed_size_list(type_):
        return [vector and [_finite(element) for element in vector] for vector in column.to_pylist()]
    if pa.types.is_list(type_):
        items = _json_column(column.values)
        lists = [items[start:end] for start, end in pairwise(column.offsets.to_pylist())]
        return [list_ if known else None for list_, known in zip(lists, column.is_valid().to_pylist(), strict=True)]
    kind = kind_of(type_)
    if kind is None or type_ in _UNCHANGED:
        return list(column.to_pylist())
    return [None if value is None else kind.write(value) for value in stored_values(column)]


def _finite(element: float) -> float | None:
    return element if math.isfinite(element) else None


def _holds_dates(type_: pa.DataType) -> bool:
    return pa.types.is_date(type_) or any(_holds_dates(type_.field(n).type) for n in range(type_.num_fields))
