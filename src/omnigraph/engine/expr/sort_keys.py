"""Integers that sort like values."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.engine import tuning
from omnigraph.engine.cache.columns import ColumnSource
from omnigraph.engine.cache.table_cache import Numbers, TableData
from omnigraph.engine.exec.binding_table import Binding
from omnigraph.engine.exec.cancellation import add_note, paced
from omnigraph.engine.exec.native_calls import gather, interruptible
from omnigraph.scalar_types.columns import comparable, stored_values

_SAMPLES_PER_RANGE = 256
"""Ids from which the ends of a range are chosen."""


def id_ranks(data: ColumnSource) -> Numbers:
    """Return the rank of every row by id; in a union, equal ids of two types have different ranks."""
    # The key differs from that of the ranks of the id column.
    return data.derived("ranks of rows", lambda: _ranks_in(data))


def _ranks_in(data: ColumnSource) -> Numbers:
    if isinstance(data, TableData) and data.union is None and data.streams("id"):
        return _ranks_by_ranges(data)
    ranks = ranks_of(data.column("id"))
    if data.union is None:
        return ranks
    # Equal ids are ordered by type name; the members are in that order.
    kinds = data.union.member_of(np.arange(len(ranks)))
    return np.where(ranks >= 0, ranks * len(data.union.members) + kinds, -1)


def _ranks_by_ranges(data: TableData) -> Numbers:
    """Rank ids that do not fit the cache: those of one range of ids at a time, between ids of a sample.

    The id column is read once for each range.
    """
    memory = data.cache.memory
    size = data.column_bytes("id")
    most = tuning.current.column_share_max * data.cache.bytes_max if memory is None else memory.build_bytes / 4
    count = max(2, int(-(-size // most)))
    add_note(f"ranked in {count} ranges of ids")
    samples = max(min(data.row_count // 8, _SAMPLES_PER_RANGE * count), count)
    rows = np.linspace(0, data.row_count - 1, samples).astype(np.int64)
    sample = data.take("id", np.unique(rows)).sort()
    ends = [sample[len(sample) * number // count] for number in range(1, count)]
    ranks = np.empty(data.row_count, np.int64)
    before = 0
    for low, high in zip([None, *ends], [*ends, None], strict=True):
        ids, numbers = _ids_between(data, low, high)
        order = interruptible(partial(pc.sort_indices, ids), len(ids)).to_numpy()
        ranks[numbers[order]] = np.arange(before, before + len(order))
        before += len(order)
    return ranks


def _ids_between(data: TableData, low: pa.Scalar | None, high: pa.Scalar | None) -> tuple[pa.Array, Numbers]:
    """Return the ids from `low` up to but without `high`, and their rows."""
    ids: list[pa.Array] = []
    rows: list[Numbers] = [np.zeros(0, np.int64)]
    start = 0
    for part in data.stream("id"):
        inside = pa.repeat(True, len(part)) if low is None else pc.greater_equal(part, low)
        if high is not None:
            inside = pc.and_(inside, pc.less(part, high))
        chosen = pc.indices_nonzero(inside)
        ids.append(part.take(chosen))
        rows.append(chosen.to_numpy().astype(np.int64) + start)
        start += len(part)
    return one_array(pa.chunked_array(ids, pa.utf8())), np.concatenate(rows)


def id_ranks_of(bound: Binding) -> Numbers:
    """Return ranks by id of the rows of a variable: ranks of the whole table if there are many rows, else of these
    rows.
    """
    if bound.whole:
        return id_ranks(bound.data)
    union = bound.data.union
    if union is not None:
        if bound.count * 8 < bound.data.row_count:
            ranks, numbers = ranks_of(bound.column("id")), np.minimum(bound.numbers, union.row_count - 1)
            return np.where(ranks >= 0, ranks * len(union.members) + union.member_of(numbers), -1)
        return id_ranks(bound.data)[bound.numbers]
    if bound.count <= tuning.current.python_sort_rows_max:
        return _ranks_in_python(bound.column("id").to_pylist())
    if bound.count * 8 < bound.data.row_count:
        return ranks_of(bound.column("id"))
    return id_ranks(bound.data)[bound.numbers]


def ranks_of(values: pa.Array) -> Numbers:
    """Return the dense ranks of values: equal values have equal ranks, null has -1."""
    if pa.types.is_nested(values.type):
        return _list_ranks(stored_values(values))
    if len(values) <= tuning.current.python_sort_rows_max and not pa.types.is_floating(values.type):
        return _ranks_in_python(stored_values(values))
    values = comparable(values)
    encoded = interruptible(lambda: one_zero(values).dictionary_encode(), len(values))
    order = interruptible(lambda: pc.sort_indices(encoded.dictionary).to_numpy(), len(encoded.dictionary))
    rank = np.empty(len(order) + 1, np.int64)
    rank[order] = np.arange(len(order))
    rank[-1] = -1
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    result: Numbers = gather(rank, codes)
    return result


def _ranks_in_python(values: list[Any]) -> Numbers:
    """Return the dense ranks of a few values, null has -1. Arrow takes longer to start than Python to sort them."""
    place = {value: at for at, value in enumerate(sorted(set(values) - {None}))}
    return np.array([place.get(value, -1) for value in values], np.int64)


def column_ranks(data: ColumnSource, name: str) -> Numbers:
    """Return the dense ranks of a column: equal values have equal ranks, null has -1."""
    if isinstance(data, TableData) and data.streams(name) and pa.types.is_string(data.column_type(name)):
        return _text_ranks(data, name)
    return ranks_of(data.column(name))


def _text_ranks(data: TableData, name: str) -> Numbers:
    """Rank the texts of a column that does not fit the cache by their beginnings; those with equal ones in full."""
    add_note("ranked by the beginnings of the texts")
    characters = tuning.current.rank_characters
    parts: list[pa.Array] = []
    for batch, _ in data.matches([name], None):
        parts.append(pc.utf8_slice_codeunits(batch.column(0), 0, characters))
    beginnings = one_array(pa.chunked_array(parts, pa.utf8()))
    ranks = ranks_of(beginnings)
    counts = np.bincount(ranks[ranks >= 0], minlength=1)
    long = pc.fill_null(pc.equal(pc.utf8_length(beginnings), characters), False).to_numpy(zero_copy_only=False)
    tied = np.flatnonzero(long & (counts[np.maximum(ranks, 0)] > 1))
    if not len(tied):
        return ranks
    add_note(f"{len(tied):,} texts with equal beginnings compared in full")
    within = np.zeros(len(ranks), np.int64)
    within[tied] = ranks_of(data.take(name, tied))
    known = np.flatnonzero(ranks >= 0)
    combined = ranks[known] * (int(within.max()) + 1) + within[known]
    found: Numbers = np.full(len(ranks), -1, np.int64)
    found[known] = np.unique(combined, return_inverse=True)[1]
    return found


def one_zero(values: pa.Array) -> pa.Array:
    """Replace -0.0 by 0.0: they are equal, but Arrow hashes them differently."""
    return pc.add(values, pa.scalar(0.0, values.type)) if pa.types.is_floating(values.type) else values


def _list_ranks(lists: list[list[Any] | None]) -> Numbers:
    """`ranks_of` for lists and vectors: items are compared in order, and a prefix sorts before a longer list."""
    keys = [None if items is None else tuple(items) for items in paced(lists)]
    known = {key for key in keys if key is not None}
    ordered = interruptible(lambda: sorted(known), len(known))
    rank: dict[Any, int] = {key: place for place, key in enumerate(ordered)}
    return np.array([rank.get(key, -1) for key in keys], np.int64)
