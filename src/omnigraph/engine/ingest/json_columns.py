"""Strict conversion of JSON values to Arrow columns.

A column is converted as a whole if all its values have an expected Python type; otherwise values are converted one by
one, to report the wrong ones. `values.read_json` defines the rules of a single value; both ways accept the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.checkpoints import paced
from omnigraph.errors import ValueFormatError
from omnigraph.scalar_types.columns import holds_values_of, stored_array
from omnigraph.scalar_types.registry import ScalarKind
from omnigraph.schema.arrow import arrow_type
from omnigraph.types import PropertyType
from omnigraph.values import Fetch, managed_blob, read_json

_NONE = type(None)
_ARROW_ERRORS = (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError, ValueFormatError)

BadValue = Callable[[int, ValueFormatError], None]


def build_column(
    values: Sequence[Any],
    type_: PropertyType,
    bad: BadValue,
    kinds: set[type] | None = None,
    fetch: Fetch | None = None,
) -> pa.Array:
    """Convert values to a column of `type_`; call `bad(position, error)` for each value that does not fit.

    A null in a required column is kept, because the caller may fill it. A bad value becomes null. `kinds` are the
    Python types of the values, if known; `fetch` reads the references of a Blob column.
    """
    try:
        column = _convert_column(values, type_, kinds)
    except _ARROW_ERRORS:
        column = None
    return column if column is not None else _convert_values(values, type_, bad, fetch)


def _convert_column(values: Sequence[Any], type_: PropertyType, kinds: set[type] | None = None) -> pa.Array | None:
    types = set(map(type, values)) if kinds is None else kinds
    if types == {_NONE}:
        return pa.nulls(len(values), arrow_type(type_))
    if type_.is_list:
        return _lists(values, type_)
    if type_.scalar == "Vector":
        return _vectors(values, type_)
    kind = type_.kind
    if not types - {_NONE} <= kind.json_types:
        return None
    if kind.is_float:
        return _floats(values, arrow_type(type_), types)
    if kind.number is not None or kind.pattern is not None:
        return _texts(values, kind, arrow_type(type_))
    return pa.array(values, arrow_type(type_))


def _floats(values: Sequence[Any], stored: pa.DataType, types: set[type]) -> pa.Array | None:
    single = stored == pa.float32()
    if int in types:
        if single and any(type(v) is int and v.bit_length() > 53 for v in values):
            return None  # the integer would be rounded twice: to 64 bits, then to 32
        values = [v if v is None else float(v) for v in values]
    column = pa.array(values, pa.float64())
    if single:
        column = column.cast(stored, safe=False)
    return column if pc.all(pc.is_finite(column)).as_py() is not False else None


def _texts(values: Sequence[str | None], kind: ScalarKind, stored: pa.DataType) -> pa.Array | None:
    """Convert texts that denote other values, or that have a canonical form: dates, datetimes, UUIDs."""
    if stored in (pa.date32(), pa.utf8()):
        try:
            # Arrow accepts exactly the short form of a Date, and a text that is canonical stays as it is.
            column = pa.array(values, pa.utf8()).cast(stored)
        except pa.ArrowInvalid:
            column = None
        if column is not None and holds_values_of(kind, column):
            return column
    known: dict[str | None, Any] = {text: None if text is None else kind.read(text) for text in set(values)}
    return stored_array(list(map(known.__getitem__, values)), stored)


def _lists(values: Sequence[Any], type_: PropertyType) -> pa.Array | None:
    if not set(map(type, values)) <= {list, _NONE}:
        return None
    item = type_.item
    items = list(chain.from_iterable(v for v in values if v is not None))
    if not set(map(type, items)) <= item.kind.json_types:
        return None
    flat = _convert_column(items, item)
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
    flat = _convert_column(items, PropertyType("F32"))
    if flat is None or flat.null_count:
        return None
    if len(present) == len(values):
        return pa.FixedSizeListArray.from_arrays(flat, dim).cast(arrow_type(type_))
    return pa.array([None if v is None else [float(x) for x in v] for v in values], arrow_type(type_))


def _convert_values(values: Sequence[Any], type_: PropertyType, bad: BadValue, fetch: Fetch | None = None) -> pa.Array:
    nullable = type_.with_nullable(True)
    stored: list[Any] = []
    for position, value in enumerate(paced(values)):
        try:
            read = read_json(value, nullable if value is None else type_)
            stored.append(managed_blob(read, fetch) if type_.scalar == "Blob" and read is not None else read)
        except ValueFormatError as error:
            bad(position, error)
            stored.append(None)
    return stored_array(stored, arrow_type(type_))
