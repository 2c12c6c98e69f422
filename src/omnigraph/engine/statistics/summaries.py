"""Summaries of table versions: of a column, of the ends of edges, of all at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.arrays import one_array
from omnigraph.engine import tuning
from omnigraph.engine.cache.table_cache import DataCache, TableData
from omnigraph.engine.statistics.column_statistics import ColumnStatistics
from omnigraph.engine.statistics.degree_statistics import DegreeStatistics
from omnigraph.engine.statistics.sampling import ids_sample, sample_of, sampled, sampled_columns, sampled_ids
from omnigraph.engine.statistics.table_statistics import (
    Summary,
    column_part,
    degrees_part,
    keep_statistics,
    known_statistics,
    write_statistics,
)

Nodes = tuple[int, int]
_ENDS = {"source": "src", "target": "dst"}
_UNSUMMARISED = frozenset({"id", "src", "dst"})
"""Columns that conditions look up by an index. Of the ends of edges, the degrees are kept."""


@dataclass(frozen=True)
class LoadedSample:
    """A sample of the rows of a load, taken before they are written."""

    rows: int
    columns: Mapping[str, pa.Array]

    @classmethod
    def of(cls, rows: pa.Table) -> LoadedSample:
        """Take the sample of some rows."""
        columns = {
            field.name: ids_sample(rows[field.name]) if field.name in _ENDS.values() else sample_of(rows[field.name])
            for field in rows.schema
            if field.name != "id" and not pa.types.is_large_binary(field.type)
        }
        return cls(rows.num_rows, columns)


Samples = dict[str, LoadedSample]
"""Samples of the rows of a load, by table."""


def tables_to_summarise(loaded: Mapping[str, int]) -> list[str]:
    """Return the tables whose statistics a load stores, given its rows by table: the largest, in proportion to all."""
    limits = tuning.current
    most = sum(loaded.values()) // limits.statistics_load_rows_min
    largest = sorted(
        (key for key in loaded if loaded[key] >= limits.statistics_stored_rows_min), key=loaded.__getitem__
    )
    return largest[len(largest) - min(most, len(largest)) :]


def column_of(table: TableData, name: str, *, keep: bool = False) -> ColumnStatistics:
    """Summarise a column; `keep` as in `sampled`."""
    return ColumnStatistics.of(sampled(table, name, keep=keep), table.row_count)


def degrees_of(table: TableData, end: str, nodes: int) -> DegreeStatistics:
    """Count the degrees at one end of the edges of a table."""
    return DegreeStatistics.of(sampled_ids(table, _ENDS[end]), table.row_count, nodes)


def added_rows(table: TableData, name: str, known: Collection[str]) -> ColumnStatistics:
    """Summarise a column in the fragments that are not known."""
    new = [at for at, (files, _, _) in enumerate(table.fragments) if files not in known]
    added = one_array(table.read_fragments([name], new)[name])
    return ColumnStatistics.of(sample_of(added), len(added))


def store_all(cache: DataCache, table: TableData, nodes: Nodes | None) -> None:
    """Summarise a whole table version and store the result, unless the stored statistics serve it.

    `nodes` are the numbers of nodes at both ends of an edge type.
    """
    parts = {column_part(table, name): name for name in table.stored_columns if name not in _UNSUMMARISED}
    ends = dict(zip(_ENDS, nodes, strict=True)) if nodes is not None else {}
    known = known_statistics(cache, table)
    wanted = {*parts, *map(degrees_part, ends)}
    if known is not None and known.change(table).is_small and known.summaries.keys() >= wanted:
        return
    samples = sampled_columns(table, list(parts.values()), [_ENDS[end] for end in ends])
    found: dict[str, Summary] = {
        part: ColumnStatistics.of(samples[name], table.row_count) for part, name in parts.items()
    }
    for end, count in ends.items():
        found[degrees_part(end)] = DegreeStatistics.of(samples[_ENDS[end]], table.row_count, count)
    _store(cache, table, found)


def store_loaded(cache: DataCache, table: TableData, loaded: LoadedSample, nodes: Nodes | None) -> None:
    """Store the statistics of a table version from the rows of the load that made it. Nothing is read.

    If the load added rows to others, its summaries are merged with the stored ones. Without stored ones, and if rows
    were replaced, a later query or `optimize` computes the statistics.
    """
    found: dict[str, Summary] = {}
    known = known_statistics(cache, table)
    change = known.change(table) if known is not None else None
    if change is not None and change.is_small:
        return
    alone = table.row_count == loaded.rows
    if not alone and (change is None or change.removed or change.added != loaded.rows):
        return
    for name, column in loaded.columns.items():
        if name in _UNSUMMARISED or name not in table.stored_columns:
            continue
        part = column_part(table, name)
        earlier = known.find(part, ColumnStatistics) if known is not None and not alone else None
        if alone or earlier is not None:
            own = ColumnStatistics.of(column, loaded.rows)
            found[part] = own if earlier is None else earlier.merged(own)
    if nodes is not None and alone:
        for (end, column), count in zip(_ENDS.items(), nodes, strict=True):
            found[degrees_part(end)] = DegreeStatistics.of(loaded.columns[column], loaded.rows, count)
    _store(cache, table, found)


def _store(cache: DataCache, table: TableData, found: Mapping[str, Summary]) -> None:
    if found and keep_statistics(cache, table, found):
        write_statistics(cache, table)
