"""Integers that sort like values."""

from __future__ import annotations

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


def id_ranks(data: ColumnSource) -> Numbers:
    """Return the rank of every row by id; in a union, equal ids of two types have different ranks."""
    # The key differs from that of the ranks of the id column.
    return data.derived("ranks of rows", lambda: _ranks_in(data))


def _ranks_in(data: ColumnSource) -> Numbers:
    ranks = ranks_of(data.column("id"))
    if data.union is None:
        return ranks
    # Equal ids are ordered by type name; the members are in that order.
    kinds = data.union.member_of(np.arange(len(ranks)))
    return np.where(ranks >= 0, ranks * len(data.union.members) + kinds, -1)


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
        ids = bound.column("id").to_pylist()
        place = {id_: at for at, id_ in enumerate(sorted(set(ids) - {None}))}
        return np.array([place.get(id_, -1) for id_ in ids], np.int64)
    if bound.count * 8 < bound.data.row_count:
        return ranks_of(bound.column("id"))
    return id_ranks(bound.data)[bound.numbers]


def ranks_of(values: pa.Array) -> Numbers:
    """Return the dense ranks of values: equal values have equal ranks, null has -1."""
    if pa.types.is_nested(values.type):
        return _list_ranks(stored_values(values))
    values = comparable(values)
    encoded = interruptible(lambda: one_zero(values).dictionary_encode(), len(values))
    order = interruptible(lambda: pc.sort_indices(encoded.dictionary).to_numpy(), len(encoded.dictionary))
    rank = np.empty(len(order) + 1, np.int64)
    rank[order] = np.arange(len(order))
    rank[-1] = -1
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    result: Numbers = gather(rank, codes)
    return result


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
