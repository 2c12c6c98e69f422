"""Rows as Python dicts and back, nothing lost.

Arrow shows a DateTime column (`date64`) to Python as a date and drops the time of day; here it is an instant in
UTC on the way out, and milliseconds on the way in.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

from omnigraph.values import JS_SAFE_MAX

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_dicts(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table."""
    for index, field in enumerate(table.schema):
        shown = _shown(field.type)
        if shown != field.type:
            table = table.set_column(index, field.with_type(shown), table.column(index).cast(shown))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def from_dicts(rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """A table of rows; a column a row does not have is null in it."""
    listed = list(rows)
    arrays = [_array([row.get(field.name) for row in listed], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def to_plain(value: Any) -> Any:
    """A value, a row or whatever holds some, as JSON can hold it and a load would read it again.

    Times and dates are ISO texts, bytes `base64:`, integers that JavaScript cannot hold decimal texts.
    """
    match value:
        case dict():
            return {name: to_plain(item) for name, item in value.items()}
        case list():
            return [to_plain(item) for item in value]
        case datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case bytes():
            return "base64:" + b64encode(value).decode()
        case int() if abs(value) > JS_SAFE_MAX:
            return str(value)
    return value


def _shown(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_date64(type_):
        return pa.timestamp("ms", tz="UTC")
    if pa.types.is_list(type_) and pa.types.is_date64(type_.value_type):
        return pa.list_(pa.timestamp("ms", tz="UTC"))
    return type_


def _array(values: list[Any], type_: pa.DataType) -> pa.Array:
    if pa.types.is_date64(type_):
        return pa.array([_milliseconds(value) for value in values], pa.int64()).cast(type_)
    if pa.types.is_list(type_) and pa.types.is_date64(type_.value_type):
        listed = [None if value is None else [_milliseconds(item) for item in value] for value in values]
        return pa.array(listed, pa.list_(pa.int64())).cast(type_)
    return pa.array(values, type_)


def _milliseconds(value: datetime | None) -> int | None:
    return None if value is None else (value - _EPOCH) // timedelta(milliseconds=1)
