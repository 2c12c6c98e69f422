"""The type of an Arrow column: that of the column itself, with the rules for texts and lists."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.operations.inference.column_type import ColumnType, text_type
from omnigraph.operations.inference.list_types import vector_type
from omnigraph.scalar_types.registry import ScalarName
from omnigraph.types import PropertyType

_SCALARS: tuple[tuple[Callable[[pa.DataType], bool], ScalarName], ...] = (
    (pa.types.is_boolean, "Bool"),
    (pa.types.is_int64, "I64"),
    (pa.types.is_signed_integer, "I32"),
    (pa.types.is_uint64, "U64"),
    (pa.types.is_unsigned_integer, "U32"),
    (pa.types.is_float64, "F64"),
    (pa.types.is_floating, "F32"),
    (pa.types.is_decimal, "F64"),
    (pa.types.is_date, "Date"),
    (pa.types.is_timestamp, "DateTime"),
)
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_BINARIES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)


def is_text(type_: pa.DataType) -> bool:
    """Return True for texts of any Arrow type, also as a dictionary."""
    if pa.types.is_dictionary(type_):
        return is_text(type_.value_type)
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def arrow_column_type(column: pa.ChunkedArray) -> ColumnType:
    """Return the type of an Arrow column."""
    type_ = column.type
    if pa.types.is_null(type_) or column.null_count == len(column):
        return ColumnType(_declared_type(type_), "empty in every row")
    if is_text(type_):
        return text_type(text_counts(column))
    if any(test(type_) for test in _LISTS):
        return _list_type(column)
    if any(test(type_) for test in _BINARIES):
        return ColumnType(PropertyType("Blob"), "bytes")
    scalar = _scalar(type_)
    if scalar is None:
        return ColumnType(None, f"no property type holds {type_}")
    return _scalar_type(column, scalar)


def _declared_type(type_: pa.DataType) -> PropertyType:
    """Return the type of a column without values, by its Arrow type alone; a String if that names no property type."""
    if any(test(type_) for test in _LISTS):
        return PropertyType(_scalar(type_.value_type) or "String", is_list=True)
    if any(test(type_) for test in _BINARIES):
        return PropertyType("Blob")
    return PropertyType(_scalar(type_) or "String")


def text_counts(column: pa.ChunkedArray) -> dict[str, int]:
    """Return the distinct texts of a column with their numbers of rows, in the order of their first rows."""
    counts = pc.value_counts(column.cast(pa.large_utf8()).drop_null())
    return dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))


def _scalar(type_: pa.DataType) -> ScalarName | None:
    return next((name for test, name in _SCALARS if test(type_)), None)


def _scalar_type(column: pa.ChunkedArray, scalar: ScalarName) -> ColumnType:
    kind = PropertyType(scalar)
    if scalar == "Bool":
        return ColumnType(kind, f"true in {pc.sum(column).as_py():,} of {len(column) - column.null_count:,} rows")
    bounds = pc.min_max(column)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    reason = f"{_shown(low)}..{_shown(high)}"
    if pa.types.is_floating(column.type):
        wrong = len(column) - column.null_count - (pc.sum(pc.is_finite(column)).as_py() or 0)
        if wrong:
            reason = f"{wrong:,} values are not finite, which load rejects"
    return ColumnType(kind, reason)


def _shown(value: Any) -> str:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(timespec="seconds")
    return str(value)


def _list_type(column: pa.ChunkedArray) -> ColumnType:
    items = pc.list_flatten(column)
    lengths = pc.min_max(pc.list_value_length(column))
    low, high = lengths["min"].as_py(), lengths["max"].as_py()
    if items.null_count:
        return ColumnType(None, "a list may not hold null")
    if low == high and low and pa.types.is_floating(items.type):
        return vector_type(low)
    scalar: ScalarName | None = "String" if is_text(items.type) or pa.types.is_null(items.type) else _scalar(items.type)
    if scalar is None:
        return ColumnType(None, f"no property type holds {column.type}")
    reason = f"lists of {low}..{high} items" if low < high else f"lists of {low} items"
    return ColumnType(PropertyType(scalar, is_list=True), reason)
