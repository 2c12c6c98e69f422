"""What a query gives back: Arrow, and every form people ask for."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from omnigraph.types import PropertyType
from omnigraph.values import JS_SAFE_MAX, format_date, format_datetime, write_json

_HTML_ROWS = 50


class Result:
    """The rows of a query, as an Arrow table; iterate it for dicts."""

    def __init__(
        self,
        table: pa.Table,
        types: Sequence[PropertyType | None],
        *,
        query_name: str,
        commit_id: str,
        elapsed_ms: float,
    ) -> None:
        self._table = table
        self._types = tuple(types)
        self.query_name = query_name
        self.commit_id = commit_id
        self.elapsed_ms = elapsed_ms

    @property
    def columns(self) -> list[str]:
        """The names of the columns; a name may occur twice."""
        return list(self._table.column_names)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._table.to_batches(max_chunksize=8192):
            columns = [column.to_pylist() for column in batch.columns]
            for row in zip(*columns, strict=True):
                yield dict(zip(self.columns, row, strict=True))

    def __repr__(self) -> str:
        return f"Result({len(self)} rows of {', '.join(self.columns)})"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self._table

    def to_batches(self, rows: int = 65_536) -> Iterator[pa.RecordBatch]:
        """The rows in Arrow batches."""
        yield from self._table.to_batches(max_chunksize=rows)

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dicts of Python values."""
        return list(self)

    def to_pandas(self) -> Any:
        """The rows as a pandas frame; pandas must be installed."""
        return self._table.to_pandas()

    def to_polars(self) -> Any:
        """The rows as a polars frame; polars must be installed."""
        import polars  # type: ignore[import-not-found]  # noqa: PLC0415

        return polars.from_arrow(self._table)

    def to_rows(self) -> list[dict[str, Any]]:
        """The rows as JSON values: dates as text, integers JavaScript cannot hold as decimal strings."""
        columns = [_json_column(self._table.column(index), type_) for index, type_ in enumerate(self._types)]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*columns, strict=True)]

    def to_json(self) -> str:
        """The rows as a JSON array."""
        return json.dumps(self.to_rows(), ensure_ascii=False)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(value))}</td>" for value in row.values()) + "</tr>"
            for row in self.to_rows()[:_HTML_ROWS]
        )
        more = f"<caption>{len(self)} rows</caption>"
        return f"<table>{more}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _json_column(column: pa.ChunkedArray, type_: PropertyType | None) -> list[Any]:
    if type_ is not None:
        if type_.scalar in ("Date", "DateTime") and not type_.is_list:
            column = column.cast(pa.int32() if type_.scalar == "Date" else pa.int64())
            return [write_json(value, type_) for value in column.to_pylist()]
        if type_.scalar in ("String", "Bool", "I32", "U32") and not type_.is_list:
            return list(column.to_pylist())
    return [_json_value(value) for value in column.to_pylist()]


def _json_value(value: Any) -> Any:
    """A Python value out of Arrow as JSON shows it."""
    if isinstance(value, dict):
        return {key: _json_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [None if isinstance(item, float) and not math.isfinite(item) else _json_value(item) for item in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if -JS_SAFE_MAX <= value <= JS_SAFE_MAX else str(value)
    if isinstance(value, float):
        return write_json(value, PropertyType("F64"))
    if hasattr(value, "hour"):
        return format_datetime(round((value - type(value)(1970, 1, 1)).total_seconds() * 1000))
    return format_date((value - type(value)(1970, 1, 1)).days)
