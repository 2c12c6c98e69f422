"""Equality of stored values: by type and by stored representation.

Null differs from an empty string and from an empty list. Lists are compared item by item, in order. Floats are compared
by their bits, so the two zeros differ and a value always equals itself. Columns are compared as whole Arrow arrays;
`same_value` applies the same rules to single values.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array

Mask = np.ndarray[Any, np.dtype[np.bool_]]


def same_rows(a: pa.Table, b: pa.Table) -> Mask:
    """Return a mask of equal rows; a column that only one table has must be null there."""
    equal = np.ones(a.num_rows, dtype=bool)
    for name in dict.fromkeys([*a.schema.names, *b.schema.names]):
        if name in a.schema.names and name in b.schema.names:
            equal &= same_column(one_array(a[name]), one_array(b[name]))
        else:
            equal &= _bools(pc.is_null((a if name in a.schema.names else b)[name]))
    return equal


def same_column(a: pa.Array, b: pa.Array) -> Mask:
    """Return a mask of equal values; two nulls are equal."""
    if a.type != b.type:
        return np.array([same_value(x, y) for x, y in zip(a.to_pylist(), b.to_pylist(), strict=True)], dtype=bool)
    valid_a, valid_b = _bools(a.is_valid()), _bools(b.is_valid())
    equal: Mask = valid_a == valid_b
    both = np.flatnonzero(valid_a & valid_b)
    if len(both):
        x, y = (a, b) if len(both) == len(a) else (a.take(pa.array(both)), b.take(pa.array(both)))
        equal[both] = _same_values(x, y)
    return equal


def _same_values(a: pa.Array, b: pa.Array) -> Mask:
    """Compare columns without nulls like `same_column`."""
    if pa.types.is_floating(a.type):
        bits: Mask = _bits(a) == _bits(b)
        return bits
    if pa.types.is_fixed_size_list(a.type):
        size = a.type.list_size
        items = same_column(a.flatten(), b.flatten())
        return np.array(items.reshape(len(a), size).all(axis=1))
    if pa.types.is_list(a.type) or pa.types.is_large_list(a.type):
        return _same_lists(a, b)
    return _bools(pc.equal(a, b))


def _same_lists(a: pa.Array, b: pa.Array) -> Mask:
    lengths = pc.list_value_length(a).to_numpy(zero_copy_only=False)
    equal: Mask = lengths == pc.list_value_length(b).to_numpy(zero_copy_only=False)
    alike = np.flatnonzero(equal)
    if not len(alike):
        return equal
    chosen = pa.array(alike)
    items = same_column(a.take(chosen).flatten(), b.take(chosen).flatten())
    differing = np.concatenate([[0], np.cumsum(~items)])
    ends = np.cumsum(lengths[alike])
    equal[alike] = differing[ends] == differing[ends - lengths[alike]]
    return equal


def _bits(column: pa.Array) -> np.ndarray[Any, Any]:
    values = column.to_numpy(zero_copy_only=False)
    return values.view(f"u{values.dtype.itemsize}")  # type: ignore[no-any-return]


def _bools(column: pa.Array | pa.ChunkedArray) -> Mask:
    return np.array(column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy())


def same_value(a: Any, b: Any) -> bool:
    """Return True if two values of one column are equal."""
    if isinstance(a, float) and isinstance(b, float):
        return math.copysign(1, a) == math.copysign(1, b) and (a == b or (a != a and b != b))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same_value, a, b))
    return bool(a == b)


def differing(a: dict[str, Any] | None, b: dict[str, Any] | None) -> list[str]:
    """Return the columns in which two rows differ; an absent row has no values."""
    a, b = a or {}, b or {}
    return [name for name in {**a, **b} if not same_value(a.get(name), b.get(name))]


def same_row(a: dict[str, Any] | None, b: dict[str, Any] | None) -> bool:
    """Return True if two rows are equal; an absent row equals only another absent row."""
    return a is b if a is None or b is None else not differing(a, b)
