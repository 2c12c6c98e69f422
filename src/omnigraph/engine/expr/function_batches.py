"""Scalar functions over columns, in batches that fit in memory.

A function such as `replace` can return far more text than its arguments contain. Its result is therefore estimated
first: the rows are split into batches of at most 8 MiB with a checkpoint before each, and a result above the byte limit
is refused. A constant argument is repeated for one batch only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import concatenate
from omnigraph.engine import tuning
from omnigraph.engine.exec.native_calls import Numbers, slices
from omnigraph.errors import LimitReached

COLUMN_BYTES_MAX = 2**31 - 1
"""Largest size of a text column: Arrow offsets have 32 bits."""


def repeated(scalar: pa.Array, count: int, bytes_max: int) -> pa.Array:
    """Repeat a column of one row `count` times."""
    check_bytes(scalar.nbytes * count, bytes_max)
    return scalar.take(pa.array(np.zeros(count, np.int64)))


def check_bytes(wanted: int, bytes_max: int) -> None:
    """Raise `LimitReached` for a column of too many bytes."""
    limit = min(bytes_max, COLUMN_BYTES_MAX)
    if wanted > limit:
        raise LimitReached(
            f"a computed column would hold {wanted:,} bytes; the limit is {limit:,}",
            resource="bytes",
            limit=limit,
            actual=wanted,
            hint="add a filter or a limit, or return less text for each row",
        )


def call_in_batches(
    name: str, call: Callable[..., pa.Array], columns: Sequence[pa.Array], fixed: Sequence[bool], count: int, most: int
) -> pa.Array:
    """Return the result of a function in `count` rows. A `fixed` column has one row that applies to all rows."""

    def arguments(first: int, rows: int) -> list[pa.Array]:
        pairs = zip(columns, fixed, strict=True)
        return [repeated(one, rows, most) if same else one.slice(first, rows) for one, same in pairs]

    if count <= tuning.current.batch_rows and _bound(name, columns, fixed, count) <= tuning.current.batch_bytes:
        return call(*arguments(0, count))
    costs = _costs(name, columns, count)
    if name in _GROWING:
        check_bytes(int(costs.sum()), most)
    parts: list[pa.Array] = []
    total = 0
    batch_bytes = tuning.current.batch_bytes
    for some in slices(np.maximum(costs, batch_bytes // tuning.current.batch_rows), batch_bytes):
        found = call(*arguments(some.start, some.stop - some.start))
        total += found.nbytes
        check_bytes(total, most)
        parts.extend(found.chunks if isinstance(found, pa.ChunkedArray) else [found])
    return concatenate(parts)


_GROWING = ("replace", "concat")
"""Functions whose cost is the size of their result."""


def _bound(name: str, columns: Sequence[pa.Array], fixed: Sequence[bool], count: int) -> int:
    """Return an upper bound of the bytes of arguments and result, from totals per column."""
    sizes = [one.nbytes * (count if same else 1) for one, same in zip(columns, fixed, strict=True)]
    return int(sum(sizes) + (sizes[0] * columns[2].nbytes if name == "replace" else 0))


def _costs(name: str, columns: Sequence[pa.Array], count: int) -> Numbers:
    """Return the bytes of each row: of the result if it can be larger than the arguments, else of the arguments."""
    lengths = [_lengths(column) for column in columns]
    if name == "replace":
        return _replaced_bytes(columns, lengths, count)
    costs = np.zeros(count, np.int64)
    for one in lengths:
        costs += one
    return costs


def _replaced_bytes(columns: Sequence[pa.Array], lengths: Sequence[Numbers], count: int) -> Numbers:
    text, old, new = lengths
    gain = np.maximum(new - old, 0)
    if len(columns[1]) == 1 and columns[1][0].is_valid and old[0]:
        times = _numbers(pc.count_substring(columns[0], pattern=columns[1][0].as_py()))
    else:
        pairs = zip(*np.broadcast_arrays(_values(columns[0]), _values(columns[1])), strict=True)
        times = np.array([a.count(b) if a and b else 0 for a, b in pairs], np.int64)
    costs = np.zeros(count, np.int64)
    costs += text + times * gain
    return costs


def _values(column: pa.Array) -> np.ndarray[Any, Any]:
    return np.array(column.to_pylist(), object)


def _lengths(column: pa.Array) -> Numbers:
    """Return the bytes of each value; 8 for a number."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _numbers(pc.binary_length(column))
    if pa.types.is_list(column.type):
        average = column.nbytes // max(len(column), 1)
        return np.full(len(column), average, np.int64)
    return np.full(len(column), 8, np.int64)


def _numbers(column: Any) -> Numbers:
    return np.asarray(pc.fill_null(column, 0).to_numpy(zero_copy_only=False), dtype=np.int64)
