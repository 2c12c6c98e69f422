"""Scalar functions of lists and of any value. Positions count from 0; negative positions count from the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.query.plan import ir
from omnigraph.query.scalars.arrays import np, pa, pc, stored_type, valid
from omnigraph.query.scalars.signature import (
    ANY,
    INTEGER,
    LIST,
    TEXT_OR_LIST,
    Columns,
    Scalar,
    is_null,
    item_type,
    same_type,
    type_of_all,
)
from omnigraph.query.scalars.texts import join
from omnigraph.types import PropertyType


def _length(columns: Columns) -> Any:
    (array,) = columns.arrays
    found = pc.list_value_length(array) if _is_list(array) else pc.utf8_length(array)
    return found.cast(pa.int64())


def _is_list(array: Any) -> bool:
    return bool(pa.types.is_list(array.type))


def _item(columns: Columns) -> Any:
    return _at(columns.arrays[0], columns.arrays[1])


def _head(columns: Columns) -> Any:
    return _at(columns.arrays[0], pa.array(np.zeros(columns.count, np.int64)))


def _last(columns: Columns) -> Any:
    return _at(columns.arrays[0], pa.array(np.full(columns.count, -1, np.int64)))


def _bounds(lists: Any) -> tuple[Any, Any, Any]:
    """Return (start of each list in the items, length of each list, items)."""
    whole = pa.concat_arrays([lists])
    known = valid(whole)
    offsets = whole.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    return offsets[:-1], np.where(known, offsets[1:] - offsets[:-1], 0), whole.values


def _positions(array: Any) -> Any:
    """Return positions as 64-bit integers, clipped; a clipped position selects nothing."""
    clipped = pc.min_element_wise(array, pa.scalar(2**62, array.type)) if array.type == pa.uint64() else array
    return pc.fill_null(clipped.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)


def _at(lists: Any, positions: Any) -> Any:
    starts, sizes, items = _bounds(lists)
    wanted = _positions(positions)
    wanted = np.where(wanted < 0, wanted + sizes, wanted)
    there = valid(lists) & valid(positions) & (wanted >= 0) & (wanted < sizes)
    return items.take(pa.array(np.where(there, starts + wanted, 0), mask=~there))


def _slice(columns: Columns) -> Any:
    lists = columns.arrays[0]
    known = valid(lists)
    starts, sizes, items = _bounds(lists)
    first = _positions(columns.arrays[1])
    known &= valid(columns.arrays[1])
    first = np.where(first < 0, np.maximum(first + sizes, 0), np.minimum(first, sizes))
    counts = sizes - first
    if len(columns.arrays) == 3:
        length = _positions(columns.arrays[2])
        known &= valid(columns.arrays[2]) & (length >= 0)
        counts = np.minimum(counts, length)
    return _gathered(items, starts + first, np.where(known, counts, 0), known, columns.call.type)


def _gathered(items: Any, starts: Any, counts: Any, known: Any, type_: PropertyType) -> Any:
    """Return lists of runs of items."""
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    positions = np.arange(int(ends[-1])) - np.repeat(ends[:-1] - starts, counts)
    offsets = pa.array(ends.astype(np.int32), mask=np.append(~known, False))
    wanted = stored_type(type_)
    return pa.ListArray.from_arrays(offsets, items.take(pa.array(positions)).cast(wanted.value_type)).cast(wanted)


def _concat(columns: Columns) -> Any:
    if not columns.call.type.is_list:
        return join(columns)
    type_ = columns.call.type
    arrays = [array.cast(stored_type(type_), safe=False) for array in columns.arrays]
    rows, count = columns.count, len(arrays)
    # The items of all arguments are concatenated; each result takes one run from each argument.
    starts, sizes, items = _bounds(pa.concat_arrays(arrays))
    order = np.arange(rows * count).reshape(count, rows).T.ravel()
    known = np.all([valid(array) for array in arrays], axis=0)
    counts = np.where(np.repeat(known, count), sizes[order], 0)
    runs = _gathered(items, starts[order], counts, np.ones(rows * count, bool), type_)
    ends = runs.offsets.to_numpy(zero_copy_only=False)[::count]
    offsets = pa.array(ends, pa.int32(), mask=np.append(~known, False))
    return pa.ListArray.from_arrays(offsets, runs.values).cast(stored_type(type_))


def _concat_type(values: Sequence[ir.Value]) -> PropertyType | None:
    typed = type_of_all(values)
    if typed is None or any(is_null(value) for value in values):
        return None
    return ir.STRING if typed == ir.STRING else typed


def _coalesce(columns: Columns) -> Any:
    wanted = stored_type(columns.call.type)
    arrays = [
        pa.nulls(len(array), wanted) if is_null(part) else array.cast(wanted, safe=False)
        for array, part in zip(columns.arrays, columns.call.arguments, strict=True)
    ]
    if not pa.types.is_nested(wanted):
        return pc.coalesce(*arrays)
    # Arrow cannot coalesce lists: each row is taken from the first column that has a value.
    count = len(arrays[0])
    source = np.full(count, -1, np.int64)
    for number, array in enumerate(arrays):
        source[(source < 0) & valid(array)] = number
    positions = source * count + np.arange(count)
    return pa.concat_arrays(arrays).take(pa.array(positions, mask=source < 0))


def _coalesce_type(values: Sequence[ir.Value]) -> PropertyType | None:
    typed = type_of_all(values)
    return typed and typed.with_nullable(all(value.type.nullable for value in values))


LIST_FUNCTIONS = (
    Scalar(
        "length", "length($x.text), length($x.list) or length($path)", (TEXT_OR_LIST,), ir.I64, _length,
        "the number of code points, items or edges",
    ),
    Scalar("head", "head($x.list)", (LIST,), item_type, _head, "the first item", no_result="an empty list"),
    Scalar("last", "last($x.list)", (LIST,), item_type, _last, "the last item", no_result="an empty list"),
    Scalar(
        "item", "item($x.list, position)", (LIST, INTEGER), item_type, _item,
        "the item at a position", no_result="a position outside the list",
    ),
    Scalar(
        "slice", "slice($x.list, start) or slice($x.list, start, length)", (LIST, INTEGER, INTEGER), same_type, _slice,
        "the items from a position on", least=2, no_result="a length below 0",
    ),
    Scalar(
        "concat", "concat(a, b, …)", (TEXT_OR_LIST, TEXT_OR_LIST), _concat_type, _concat,
        "the concatenation of Strings or lists", repeats=True,
    ),
    Scalar(
        "coalesce", "coalesce($x.value, other)", (ANY, ANY), _coalesce_type, _coalesce,
        "the first value that is not null", repeats=True, null_result=False,
    ),
)  # fmt: skip
