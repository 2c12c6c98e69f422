"""Arrow, pandas and polars input as Arrow tables, validated before values are read.

Input is not trusted: offsets are checked, and text must be UTF-8. Values that an Arrow column cannot represent are kept
as Python values next to the table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array, validate_fully
from omnigraph.errors import InputError
from omnigraph.scalar_types.describe import InvalidText

_INDEX = "__index_level_"
"""The prefix of the names that pandas gives to index columns in Parquet and Arrow files."""
_BINARY = {pa.utf8(): pa.binary(), pa.large_utf8(): pa.large_binary(), pa.string_view(): pa.binary_view()}


@dataclass(frozen=True)
class ArrowInput:
    """A table, and the Python values of columns that Arrow cannot represent."""

    table: pa.Table
    values: Mapping[str, list[Any]] = field(default_factory=dict)


def input_table(name: str, data: Any, source: str | None, integers: frozenset[str]) -> ArrowInput:
    """Convert Arrow data or a DataFrame. For pandas, integral floats in the columns `integers` become integers."""
    if type(data).__module__.partition(".")[0] == "pandas":
        return _from_pandas(data, source, integers)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    elif not isinstance(data, pa.Table) and hasattr(data, "__arrow_c_stream__"):
        data = pa.table(data)
    if not isinstance(data, pa.Table):
        raise InputError(
            f"'{name}': cannot load a {type(data).__name__}", hint="give an Arrow table, or a pandas or polars frame"
        )
    if is_of_pandas(data.schema):
        data = _integral_floats(data, integers)
    return _validated(data, source)


def column_names(schema: pa.Schema, source: str | None) -> list[str]:
    """Return the names of the columns without the index that pandas adds."""
    try:
        names = list(schema.names)
    except UnicodeDecodeError:
        raise InputError(f"{_prefix(source)}a column name is not valid UTF-8", code="unreadable_file") from None
    return [name for name in names if not (name.startswith(_INDEX) and is_of_pandas(schema))]


def is_of_pandas(schema: pa.Schema) -> bool:
    """Return True if pandas wrote the table."""
    return bool(schema.metadata) and b"pandas" in schema.metadata


def _from_pandas(frame: Any, source: str | None, integers: frozenset[str]) -> ArrowInput:
    """Convert column by column: an object column of mixed types is not an Arrow column."""
    if not hasattr(frame, "columns"):
        raise InputError(f"cannot load a {type(frame).__name__} of pandas", hint="give a DataFrame")
    arrays: list[pa.Array] = []
    values: dict[str, list[Any]] = {}
    for position, name in enumerate(frame.columns):
        if not isinstance(name, str):
            raise InputError(f"{_prefix(source)}a column name must be text, not {type(name).__name__}")
        series = frame.iloc[:, position]
        try:
            array = pa.array(series, from_pandas=True)
            arrays.append(one_array(array))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            arrays.append(pa.nulls(len(frame)))
            values[name] = [None if _is_missing(value) else value for value in series.tolist()]
    table = pa.Table.from_arrays(arrays, names=list(frame.columns))
    checked = _validated(_integral_floats(table, integers), source)
    return ArrowInput(checked.table, {**checked.values, **values})


def _is_missing(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _integral_floats(table: pa.Table, integers: frozenset[str]) -> pa.Table:
    """Convert floats to integers where pandas uses floats because a value is missing."""
    for position, column in enumerate(table.schema):
        if column.name not in integers or not pa.types.is_floating(column.type):
            continue
        values = table.column(position)
        known = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values) if len(values) else values
        try:
            whole = known.cast(pa.int64())
        except pa.ArrowInvalid:
            continue
        table = table.set_column(position, column.name, whole)
    return table


def _validated(table: pa.Table, source: str | None) -> ArrowInput:
    """Validate the buffers of a table; columns with invalid UTF-8 become Python values."""
    values: dict[str, list[Any]] = {}
    names = column_names(table.schema, source)
    if len(names) != len(table.schema):
        table = table.select(names)
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            validate_fully(column)
        except pa.ArrowInvalid:
            values[name] = _decoded_values(column, name, source)
    if values:
        named = zip(table.column_names, table.columns, strict=True)
        kept = [pa.nulls(table.num_rows) if name in values else column for name, column in named]
        table = pa.Table.from_arrays(kept, names=table.column_names)
    return ArrowInput(table, values)


def _decoded_values(column: pa.ChunkedArray, name: str, source: str | None) -> list[Any]:
    """Return the values of a column, text decoded one by one; raise `InputError` if it is damaged otherwise."""
    try:
        chunks = [_as_bytes(chunk) for chunk in column.chunks]
        for chunk in chunks:
            chunk.validate(full=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(f"{_prefix(source)}column '{name}' is damaged", code="unreadable_file") from None
    return [_text(value) for chunk in chunks for value in chunk.to_pylist()]


def _as_bytes(array: pa.Array) -> pa.Array:
    """Return the array with text as bytes, without validation."""
    type_ = array.type
    if pa.types.is_dictionary(type_):
        return _as_bytes(array.dictionary).take(array.indices)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        pa.Array.validate(array)
        items = _as_bytes(array.flatten())
        counts = pc.fill_null(pc.list_value_length(array), 0).to_pylist()
        offsets = [0]
        for count in counts:
            offsets.append(offsets[-1] + count)
        return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), items, mask=array.is_null())
    return array.view(_BINARY[type_]) if type_ in _BINARY else array


def _text(value: Any) -> Any:
    if isinstance(value, list):
        return [_text(item) for item in value]
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return InvalidText()


def _prefix(source: str | None) -> str:
    return f"{source}: " if source else ""
