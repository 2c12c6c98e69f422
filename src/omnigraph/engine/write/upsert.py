"""Applies the records of a load with mode `merge` to the rows they refer to.

Records for one id are applied in order. A record sets the properties it contains; an absent property keeps its value,
and an explicit null clears it. A vector whose source text changes without a new vector is cleared, so that it is
embedded again. An edge without an id refers to the committed edge with the same `@unique(src, dst, …)` tuple.

A load in memory and the tasks of a bulk load use the same functions, on all records or on one bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import concatenate, one_array, with_wide_text
from omnigraph.engine.write.fill_vectors import has_text
from omnigraph.engine.write.key_tuples import tuples_of
from omnigraph.schema.catalog import EdgeType, NodeType

Positions = np.ndarray[Any, np.dtype[np.int64]]

ReadRows = Callable[[pa.Array, Sequence[str]], pa.Table]
"""Reads `id` and some columns of the committed rows with some ids; ids that do not exist are omitted."""


# -- edges without an id -----------------------------------------------------------------------------


def match_columns(type_: NodeType | EdgeType) -> tuple[str, ...] | None:
    """Return the columns that identify an edge without an id: the first `@unique` over `src` and `dst`."""
    if not isinstance(type_, EdgeType):
        return None
    return next((columns for columns in type_.unique if {"src", "dst"} <= set(columns)), None)


def needs_matching(records: pa.Table, columns: Sequence[str]) -> pa.ChunkedArray:
    """Return a mask of the edge records without an id that have a complete tuple to match by."""
    found = pc.is_null(records["id"])
    for column in columns:
        found = pc.and_(found, pc.is_valid(records[column]))
    return found


def with_ids(
    records: pa.Table, columns: Sequence[str], committed: pa.Table, new_ids: Callable[[int], pa.Array]
) -> pa.Table:
    """Add the missing ids to edge records; `committed` has the ids and tuples of the edges that may match."""
    absent = one_array(pc.is_null(records["id"]))
    if not absent.true_count:
        return records
    made = match_edges(records.filter(absent), columns, committed, new_ids)
    return _with(records, "id", pc.replace_with_mask(one_array(records["id"]), absent, made))


def match_edges(
    records: pa.Table, columns: Sequence[str], committed: pa.Table, new_ids: Callable[[int], pa.Array]
) -> pa.Array:
    """Return ids for edge records without one: those of committed edges with the same tuple, else new ones.

    Records with equal tuples get the same id. A tuple with a null matches nothing.
    """
    tuples = tuples_of(records, columns)
    known = tuples_of(committed, columns)
    places = one_array(tuples["position"])
    found = one_array(known["id"]).take(pc.index_in(one_array(tuples["key"]), value_set=one_array(known["key"])))
    codes = one_array(tuples["key"]).dictionary_encode().indices
    distinct = (pc.max(codes).as_py() or 0) + 1 if len(codes) else 0
    shared = new_ids(distinct).take(codes)
    ids = new_ids(records.num_rows)
    given = np.zeros(records.num_rows, np.bool_)
    given[places.to_numpy()] = True
    return pc.replace_with_mask(ids, pa.array(given), pc.coalesce(found, shared))


def committed_columns(type_: NodeType | EdgeType, given: Collection[str]) -> set[str]:
    """Return the columns of committed rows that `merge_records` may read if some records lack the columns `given`.

    A text with a vector is read to find out whether it changes.
    """
    embeds = type_.embeds.items() if isinstance(type_, NodeType) else ()
    return {*given, *(embed.source for target, embed in embeds if target in given)}


# -- records applied in order ------------------------------------------------------------------------


@dataclass(frozen=True)
class MergedRows:
    """One row per id, in the order of their last records.

    `last` is the last record of each row. `records` lists all records of each row; None if no id is repeated. `lacking`
    names rows without a required property: the row is new, or a record cleared the source text of its vector.
    """

    table: pa.Table
    last: Positions
    records: pa.ListArray | None
    lacking: tuple[tuple[int, str], ...]

    def complete(self) -> MergedRows:
        """Return the rows that lack nothing."""
        if not self.lacking:
            return self
        whole = np.ones(self.table.num_rows, np.bool_)
        whole[[row for row, _ in self.lacking]] = False
        records = None if self.records is None else self.records.filter(pa.array(whole))
        return MergedRows(self.table.filter(pa.array(whole)), self.last[whole], records, ())

    def records_of(self, row: int) -> list[int]:
        """The records of a row, in order."""
        return [int(self.last[row])] if self.records is None else self.records[row].as_py()


def merge_records(
    type_: NodeType | EdgeType, records: pa.Table, given: Mapping[str, pa.Array], read_rows: ReadRows
) -> MergedRows:
    """Apply records to committed rows; `given` has a mask for each property that only some records give.

    Only columns that are absent from some record are read, and only for the rows of such records.
    """
    ids = one_array(records["id"])
    codes = ids.dictionary_encode().indices.to_numpy().astype(np.int64)
    count = int(codes.max()) + 1 if len(codes) else 0
    last = np.zeros(count, np.int64)
    last[codes] = np.arange(len(codes))
    final = np.sort(last)
    latest = {name: _latest(codes, count, mask)[codes[final]] for name, mask in given.items()}
    latest = {name: places for name, places in latest.items() if (places < 0).any() or len(final) != len(codes)}
    members = _members(codes, final) if len(final) != len(codes) else None
    committed = _CommittedValues.read(type_, ids.take(pa.array(final)), latest, final, read_rows)
    table = records if members is None else records.take(pa.array(final))
    for name, places in latest.items():
        table = _with(table, name, committed.column(records, name, places))
    if isinstance(type_, NodeType):
        texts = _TextChanges(records, given, latest, final, members, committed)
        for target, embed in type_.embeds.items():
            if target in latest:
                stale = texts.stale(target, embed.source, one_array(table[embed.source]))
                table = _with(table, target, pc.if_else(pa.array(stale), None, one_array(table[target])))
    return MergedRows(table, final, members, tuple(_lacking(type_, table, latest)))


def _latest(codes: Positions, count: int, mask: pa.Array) -> Positions:
    """Return for each id the last record that has a property, or -1."""
    found = np.full(count, -1, np.int64)
    places = np.flatnonzero(np.asarray(mask))
    found[codes[places]] = places
    return found


def _members(codes: Positions, final: Positions) -> pa.ListArray:
    """Return the records of each row, in order."""
    row_of_code = np.empty(len(final), np.int64)
    row_of_code[codes[final]] = np.arange(len(final))
    rows = row_of_code[codes]
    ends = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=len(final)))))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(np.argsort(rows, kind="stable")))


@dataclass(frozen=True)
class _CommittedValues:
    """The committed values of rows with absent columns; `places` is the position of each row among them, or -1."""

    rows: pa.Table
    places: Positions

    @classmethod
    def read(
        cls,
        type_: NodeType | EdgeType,
        ids: pa.Array,
        latest: Mapping[str, Positions],
        final: Positions,
        read_rows: ReadRows,
    ) -> _CommittedValues:
        columns = [name for name, places in latest.items() if (places < 0).any()]
        wanted = np.zeros(len(ids), np.bool_)
        for name in columns:
            wanted |= latest[name] < 0
        if isinstance(type_, NodeType):
            # The committed text shows whether it changes.
            for target, embed in type_.embeds.items():
                if target in latest and embed.source not in columns:
                    columns.append(embed.source)
                    wanted |= latest[target] < latest.get(embed.source, final)
        if not wanted.any():
            return cls(pa.table({"id": pa.array([], pa.utf8())}), np.full(len(ids), -1, np.int64))
        rows = read_rows(ids.filter(pa.array(wanted)), columns)
        found = pc.index_in(ids, value_set=one_array(rows["id"]))
        return cls(rows, pc.fill_null(found, -1).to_numpy().astype(np.int64))

    def column(self, records: pa.Table, name: str, latest: Positions) -> pa.Array:
        """Return a column of the merged rows: the last given value, else the committed one, else null."""
        given = one_array(records[name])
        places = np.where(self.places >= 0, self.places + len(given), -1)
        if name not in self.rows.column_names:
            return _taken(given, latest)
        known = one_array(self.rows[name])
        both = concatenate([given, known if known.type == with_wide_text(given.type) else known.cast(given.type)])
        return _taken(both, np.where(latest >= 0, latest, places))

    def texts(self, name: str) -> pa.Array:
        """Return a committed text column of the merged rows; null for new rows."""
        if name not in self.rows.column_names:
            return pa.nulls(len(self.places), pa.utf8())
        return _taken(one_array(self.rows[name]), self.places)


def _taken(values: pa.Array, places: Positions) -> pa.Array:
    return values.take(pa.array(places, mask=places < 0))


def _with(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(place), column)


@dataclass(frozen=True)
class _TextChanges:
    """Finds rows whose embedded text changes."""

    records: pa.Table
    given: Mapping[str, pa.Array]
    latest: Mapping[str, Positions]
    final: Positions
    members: pa.ListArray | None
    committed: _CommittedValues

    def stale(self, target: str, source: str, after: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return a mask of the rows whose text changes after their vector was given.

        If no record gives the vector, the text is compared with the committed one.
        """
        vectors, texts = self.latest[target], self.latest.get(source, self.final)
        before = self.committed.texts(source)
        same = pc.or_(pc.fill_null(pc.equal(before, after), False), pc.and_(pc.is_null(before), pc.is_null(after)))
        later = texts > vectors
        stale = later & ~np.asarray(same)
        for row in np.flatnonzero(later & (vectors >= 0)).tolist():
            assert self.members is not None
            mask, text = self.given.get(source), before[row]
            for record in self.members[row].as_py():
                if record <= vectors[row] and (mask is None or mask[record].as_py()):
                    text = self.records[source][record]
            stale[row] = text.as_py() != after[row].as_py()
        return np.asarray(stale, np.bool_)


def _lacking(type_: NodeType | EdgeType, table: pa.Table, latest: Mapping[str, Positions]) -> Iterator[tuple[int, str]]:
    """Yield the rows without a required property, each with the first one.

    A vector is not required if it can be computed from its text.
    """
    found: dict[int, str] = {}
    for property_ in type_.properties.values():
        absent = property_.name in latest or (property_.embed is not None and property_.embed.source in latest)
        if property_.type.nullable or not absent:
            continue
        missing = pc.is_null(table[property_.name])
        if property_.embed is not None:
            missing = pc.and_(missing, pc.invert(has_text(table[property_.embed.source])))
        for row in pc.indices_nonzero(missing).to_pylist():
            found.setdefault(row, property_.name)
    yield from sorted(found.items())
