"""Lossless conversion between Arrow rows and Python dicts.

Arrow converts a DateTime column (`date64`) to Python dates and drops the time of day. Here it becomes a datetime in
UTC, and milliseconds in the opposite direction.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.scalar_types.columns import kind_of, stored_array, stored_values
from omnigraph.scalar_types.dates import stored_days, stored_milliseconds
from omnigraph.scalar_types.registry import JS_SAFE_MAX

ToJson = Callable[[Any], Any]
"""Converts a value or a row to its JSON form."""

_MAY_HOLD_INSTANTS = frozenset({pa.date64().id, pa.list_(pa.int8()).id, pa.struct([]).id})


def to_dicts(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of a table as dicts."""
    columns = [python_values(column) for column in table.columns]
    return [dict(zip(table.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return the values as Python objects: DateTime as datetimes in UTC, dates outside the years 1 to 9999 as text."""
    type_ = column.type
    shown = with_instants(type_) if type_.id in _MAY_HOLD_INSTANTS else type_
    try:
        return list((column if shown == type_ else column.cast(shown)).to_pylist())
    except (OverflowError, ValueError):
        if isinstance(column, pa.ChunkedArray):
            return [value for chunk in column.chunks for value in python_values(chunk)]
    known = column.is_valid().to_pylist()
    kind = kind_of(type_)
    if kind is not None:
        return [None if value is None else kind.to_python(value) for value in stored_values(column)]
    if pa.types.is_struct(type_):
        fields = [python_values(field) for field in column.flatten()]
        structs = [dict(zip(type_.names, row, strict=True)) for row in zip(*fields, strict=True)]
        return [struct if there else None for struct, there in zip(structs, known, strict=True)]
    items = iter(python_values(column.flatten()))
    lengths = pc.list_value_length(column).to_pylist()
    return [None if length is None else list(islice(items, length)) for length in lengths]


def from_dicts(rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return a table of rows; a column that a row does not have is null in it."""
    listed = list(rows)
    arrays = [_array([row.get(field.name) for row in listed], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def to_plain(value: Any) -> Any:
    """Convert a value, a row or a container of them to JSON values that a load would read again.

    Times and dates become ISO text, bytes `base64:` text, and integers beyond the safe range of JavaScript decimal
    text.
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


def with_instants(type_: pa.DataType) -> pa.DataType:
    """Return the type with DateTime as timestamps: Arrow converts `date64` to Python dates without the time."""
    if pa.types.is_date64(type_):
        return pa.timestamp("ms", "UTC")
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(with_instants(type_.value_type)))
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(with_instants(field.type)) for field in type_])
    return type_


def _array(values: list[Any], type_: pa.DataType) -> pa.Array:
    item = type_.value_type if pa.types.is_list(type_) else type_
    if not pa.types.is_date(item):
        return pa.array(values, type_)
    stored: Callable[[Any], int] = stored_days if pa.types.is_date32(item) else stored_milliseconds
    if item is type_:
        return stored_array([None if value is None else stored(value) for value in values], type_)
    return stored_array([None if value is None else [stored(one) for one in value] for value in values], type_)
