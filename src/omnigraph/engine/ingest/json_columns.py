"""Values as they come from JSON → Arrow columns, strictly.

A column is converted whole when all its values have an expected Python type; only when something is off
are values looked at one by one, to say which. The rules of a single value are `values.read_json`'s, and
both ways agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ValueFormatError
from omnigraph.schema.arrow import arrow_type
from omnigraph.types import PropertyType
from omnigraph.values import DATE_RANGE, DATETIME_RANGE, Fetch, managed_blob, parse_date, parse_datetime, read_json

_NONE = type(None)
_EXPECTED: dict[str, frozenset[type]] = {
    "String": frozenset({str, _NONE}),
    "Bool": frozenset({bool, _NONE}),
    "I32": frozenset({int, _NONE}),
    "I64": frozenset({int, _NONE}),
    "U32": frozenset({int, _NONE}),
    "U64": frozenset({int, _NONE}),
    "F32": frozenset({float, int, _NONE}),
    "F64": frozenset({float, int, _NONE}),
    "Date": frozenset({str, _NONE}),
    "DateTime": frozenset({str, _NONE}),
}
_ARROW_ERRORS = (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError, ValueFormatError)

BadValue = Callable[[int, ValueFormatError], None]


def build_column(
    values: Sequence[Any],
    type_: PropertyType,
    bad: BadValue,
    kinds: set[type] | None = None,
    fetch: Fetch | None = None,
) -> pa.Array:
    """The values as a column of `type_`; `bad(position, why)` is told of each one that does not fit.

    A null in a required column is kept: whether it may be filled later is the caller's to know. A bad value
    becomes null. `kinds` are the types of the values, where they are known already; `fetch` follows the references
    of a Blob column.
    """
    try:
        column = _whole(values, type_, kinds)
    except _ARROW_ERRORS:
        column = None
    return column if column is not None else _one_by_one(values, type_, bad, fetch)


def _whole(values: Sequence[Any], type_: PropertyType, kinds: set[type] | None = None) -> pa.Array | None:
    types = set(map(type, values)) if kinds is None else kinds
    if types == {_NONE}:
        return pa.nulls(len(values), arrow_type(type_))
    if type_.is_list:
        return _lists(values, type_)
    if type_.scalar == "Vector":
        return _vectors(values, type_)
    expected = _EXPECTED.get(type_.scalar)
    if expected is None or not types <= expected:
        return None
    match type_.scalar:
        case "F32" | "F64":
            return _floats(values, type_, types)
        case "Date":
            return _short_dates(values)
        case "DateTime":
            return _dates(values, parse_datetime, pa.int64(), pa.date64())
        case _:
            return pa.array(values, arrow_type(type_))


def _floats(values: Sequence[Any], type_: PropertyType, types: set[type]) -> pa.Array | None:
    single = type_.scalar == "F32"
    if int in types:
        if single and any(type(v) is int and v.bit_length() > 53 for v in values):
            # Such an integer would be rounded twice on its way to 32 bits.
            return None
        values = [v if v is None else float(v) for v in values]
    column = pa.array(values, pa.float64())
    if single:
        column = column.cast(pa.float32(), safe=False)
    return column if pc.all(pc.is_finite(column)).as_py() is not False else None


def _short_dates(values: Sequence[Any]) -> pa.Array | None:
    try:
        # Arrow accepts exactly the short form of a date.
        dates = pa.array(values, pa.utf8()).cast(pa.date32())
        return dates if in_calendar(dates) else None
    except pa.ArrowInvalid:
        return _dates(values, parse_date, pa.int32(), pa.date32())


def in_calendar(dates: pa.Array) -> bool:
    """True if all dates or datetimes are in the years 1 to 9999."""
    is_day = pa.types.is_date32(dates.type)
    ends = pc.min_max(dates.cast(pa.int32() if is_day else pa.int64()))
    low, high = DATE_RANGE if is_day else DATETIME_RANGE
    return dates.null_count == len(dates) or bool(low <= ends["min"].as_py() and ends["max"].as_py() <= high)


def _dates(values: Sequence[str | None], parse: Callable[[str], int], number: pa.DataType, to: pa.DataType) -> pa.Array:
    known: dict[str | None, int | None] = {text: None if text is None else parse(text) for text in set(values)}
    return pa.array(list(map(known.__getitem__, values)), number).cast(to)


def _lists(values: Sequence[Any], type_: PropertyType) -> pa.Array | None:
    if not set(map(type, values)) <= {list, _NONE}:
        return None
    item = type_.item
    items = list(chain.from_iterable(v for v in values if v is not None))
    expected = _EXPECTED.get(item.scalar)
    if expected is None or not set(map(type, items)) <= expected - {_NONE}:
        return None
    flat = _whole(items, item)
    if flat is None:
        return None
    offsets: list[int | None] = []
    at = 0
    for value in values:
        offsets.append(None if value is None else at)
        at += 0 if value is None else len(value)
    column = pa.ListArray.from_arrays(pa.array([*offsets, at], pa.int32()), flat)
    return column.cast(arrow_type(type_))


def _vectors(values: Sequence[Any], type_: PropertyType) -> pa.Array | None:
    if not set(map(type, values)) <= {list, _NONE}:
        return None
    dim = type_.dim
    assert dim is not None
    present = [v for v in values if v is not None]
    if any(len(v) != dim for v in present):
        return None
    items = list(chain.from_iterable(present))
    flat = _whole(items, PropertyType("F32"))
    if flat is None or flat.null_count:
        return None
    if len(present) == len(values):
        return pa.FixedSizeListArray.from_arrays(flat, dim).cast(arrow_type(type_))
    return pa.array([None if v is None else [float(x) for x in v] for v in values], arrow_type(type_))


def _one_by_one(values: Sequence[Any], type_: PropertyType, bad: BadValue, fetch: Fetch | None = None) -> pa.Array:
    nullable = type_.with_nullable(True)
    stored: list[Any] = []
    for position, value in enumerate(values):
        try:
            read = read_json(value, nullable if value is None else type_)
            stored.append(managed_blob(read, fetch) if type_.scalar == "Blob" and read is not None else read)
        except ValueFormatError as error:
            bad(position, error)
            stored.append(None)
    if type_.scalar in ("Date", "DateTime") and not type_.is_list:
        number = pa.int32() if type_.scalar == "Date" else pa.int64()
        return pa.array(stored, number).cast(arrow_type(type_))
    return pa.array(stored, arrow_type(type_))
