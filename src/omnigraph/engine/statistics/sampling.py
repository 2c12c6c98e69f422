"""Bounded samples of the columns of a table version.

The rows of a sample are a function of the number of rows, so every process takes the same sample of a version. They are
pseudo-random, not at equal distances: rows of one node often follow one another, and a fixed distance would miss how
often a value repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.arrays import one_array
from omnigraph.checkpoints import checkpoint
from omnigraph.engine import tuning
from omnigraph.engine.cache.table_cache import Numbers, TableData
from omnigraph.engine.statistics.value_hashes import mixed, unique_sorted

_SCAN_FACTOR = 16
"""Up to this many times the rows of the sample, a scan is faster than a lookup of rows."""
_PILOT_ROWS = 256
"""Rows that are read first to learn the size of a value."""


def is_text(type_: pa.DataType) -> bool:
    """Return True for a text column."""
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def is_plain(type_: pa.DataType) -> bool:
    """Return True for a column of numbers, dates or booleans."""
    return bool(pa.types.is_primitive(type_) or pa.types.is_boolean(type_))


@lru_cache(maxsize=16)
def sample_positions(rows: int, most: int) -> Numbers:
    """Return the rows of a sample, ascending: all, or about `most` pseudo-random ones."""
    if rows <= most:
        found = np.arange(rows)
    else:
        found = unique_sorted(mixed(np.arange(most, dtype=np.uint64)) % np.uint64(rows))[0].astype(np.int64)
    found.flags.writeable = False
    return found


def rows_max(type_: pa.DataType) -> int:
    """Return the largest number of rows in a sample of a column."""
    limits = tuning.current
    if is_plain(type_):
        return limits.statistics_rows_max
    return limits.statistics_text_rows_max if is_text(type_) else limits.statistics_other_rows_max


def sampled(table: TableData, name: str, *, keep: bool = False) -> pa.Array:
    """Return a column, or a sample of it if the table is large.

    With `keep`, a column that is read as a whole is kept in memory for the query that needs it.
    """
    rows, type_ = table.row_count, table.column_type(name)
    known = table.known_column(name)
    if known is None and is_readable(table, name, rows):
        known = table.column(name) if keep else one_array(table.read(name))
    if known is None and keep and table.cache.folder is None:
        # Without a disk cache the sample would be read in every process, beside the column itself.
        known = table.column_for(name, rows)
    if known is not None:
        return sample_of(known)
    return _bounded(lambda positions: table.read_rows([name], positions)[name], rows, type_)


def sampled_ids(table: TableData, name: str) -> pa.Array:
    """Return a column of ids, or a sample of it if the table is large."""
    if table.row_count <= _SCAN_FACTOR * tuning.current.statistics_rows_max:
        return ids_sample(one_array(table.read(name)))
    return table.read_rows([name], sample_positions(table.row_count, tuning.current.statistics_rows_max))[name]


def sampled_columns(table: TableData, names: Sequence[str], ids: Sequence[str]) -> dict[str, pa.Array]:
    """Return the samples of several columns, `ids` among them. Those that need the same rows are read together."""
    rows, most = table.row_count, tuning.current.statistics_rows_max
    if rows <= _SCAN_FACTOR * most:
        return {name: sampled(table, name) for name in names} | {name: sampled_ids(table, name) for name in ids}
    found = {name: sampled(table, name) for name in names if table.known_column(name) is not None}
    groups: dict[int, list[str]] = {most: [*ids]}
    unknown = [name for name in names if name not in found]
    groups[most] += [name for name in unknown if is_plain(table.column_type(name))]
    others = [name for name in unknown if name not in groups[most]]
    found |= table.read_rows(others, sample_positions(rows, _PILOT_ROWS)) if others else {}
    for name in others:
        fitting = _fitting(found[name])
        if fitting is not None:
            groups.setdefault(fitting, []).append(name)
    for count, group in groups.items():
        checkpoint()
        found |= table.read_rows(group, sample_positions(rows, count)) if group else {}
    return found


def sample_of(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the sample of a complete column."""
    return _bounded(lambda positions: _taken(column, positions), len(column), column.type)


def ids_sample(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the sample of a complete column of ids."""
    return _taken(column, sample_positions(len(column), tuning.current.statistics_rows_max))


def is_readable(table: TableData, name: str, rows: int) -> bool:
    """Return True if some rows of a column are read faster by a scan than by row number, and fit in memory."""
    type_ = table.column_type(name)
    if rows > _SCAN_FACTOR * rows_max(type_):
        return False
    size = table.stored_bytes * rows / max(table.row_count, 1)
    return is_plain(type_) or (size <= tuning.current.statistics_scan_bytes_max and not table.has_long_values)


def _bounded(read: Callable[[Numbers], pa.Array], rows: int, type_: pa.DataType) -> pa.Array:
    """Read the sample of a column. Texts, lists and vectors are bounded by their total size."""
    most = rows_max(type_)
    if is_plain(type_) or rows <= _PILOT_ROWS:
        return read(sample_positions(rows, most))
    pilot = read(sample_positions(rows, _PILOT_ROWS))
    fitting = _fitting(pilot)
    return read(sample_positions(rows, fitting)) if fitting is not None else pilot


def _fitting(pilot: pa.Array) -> int | None:
    """Return the number of rows of a sample of bounded size, given a part of it; None if the part is large enough."""
    fitting = int(tuning.current.statistics_bytes_max * len(pilot) / max(pilot.nbytes, 1))
    return min(rows_max(pilot.type), fitting) if fitting > _PILOT_ROWS else None


def _taken(column: pa.Array | pa.ChunkedArray, positions: Numbers) -> pa.Array:
    if len(positions) < len(column):
        column = column.take(pa.array(positions))
    return one_array(column) if isinstance(column, pa.ChunkedArray) else column


def estimated_total(once: float, twice: float, found: float, sample: int, total: int) -> float:
    """Estimate the distinct values of `total` values from a sample without repetition (Chao's estimator).

    In the sample, `found` distinct values occur, `once` of them once and `twice` of them twice.
    """
    if sample >= total or sample < 2 or not once:
        return found
    share = sample / total
    unseen = once * once / (2 * twice * sample / (sample - 1) + once * share / (1 - share))
    return min(found + unseen, float(total))


def frequencies(column: pa.Array) -> np.ndarray[Any, Any]:
    """Return how often each value of a column occurs."""
    counts: np.ndarray[Any, Any] = column.drop_null().value_counts().field("counts").to_numpy(zero_copy_only=False)
    return counts
