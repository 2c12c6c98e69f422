"""Statistics of the tables of a snapshot: stored ones, or computed on first use and kept.

A summary of an earlier version serves a version that changed few rows. A version that mostly adds rows merges a summary
of the added rows. Else the summary is computed from a bounded sample.

The order of a plan is visible to its caller. With a visibility, it does not depend on values that are hidden: tables of
which rows are hidden have no summaries and rounded sizes, and masked properties have no summaries.
"""

from __future__ import annotations

import math
from typing import Literal

from omnigraph.engine.cache.table_cache import DataCache, TableData
from omnigraph.engine.exec.context import NO_LIMITS, ExecutionContext
from omnigraph.engine.statistics.column_statistics import ColumnStatistics
from omnigraph.engine.statistics.degree_statistics import DegreeStatistics
from omnigraph.engine.statistics.sampling import is_readable
from omnigraph.engine.statistics.summaries import added_rows, column_of, degrees_of
from omnigraph.engine.statistics.table_statistics import (
    S,
    column_part,
    degrees_part,
    keep_statistics,
    known_statistics,
    write_statistics,
)
from omnigraph.query.visibility import Visibility
from omnigraph.schema.catalog import Catalog
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.snapshot import Snapshot

End = Literal["source", "target"]
_KEY = "statistics:"


class GraphStatistics:
    """The statistics of one snapshot, or of what is visible of it."""

    def __init__(
        self, catalog: Catalog, snapshot: Snapshot, cache: DataCache, visibility: Visibility | None = None
    ) -> None:
        self.catalog = catalog
        self._visibility = visibility
        self._snapshot = snapshot
        self._cache = cache
        self._context: ExecutionContext | None = None
        self._computed: dict[tuple[str, str], TableData] = {}
        """The table versions of which a summary was computed since the last `store`."""
        self._nodes: dict[str, int] = {}
        self._edges: dict[tuple[str, ...], int] = {}
        self._degrees: dict[tuple[str, End], DegreeStatistics] = {}
        self._skews: dict[tuple[tuple[str, ...], tuple[End, ...]], float] = {}
        self._linked: dict[tuple[tuple[str, ...], tuple[End, ...]], float] = {}
        self._columns: dict[tuple[str, str], ColumnStatistics | None] = {}
        self._large: dict[str, list[TableData]] = {}

    def table_rows(self, table_key: str) -> int:
        """Return the number of rows of one table, rounded up to a power of ten if rows are hidden."""
        table = self._snapshot.tables.get(table_key)
        rows = table.pin.row_count if table is not None else 0
        return rows if not self._hides_rows(table_key) else 10 ** math.ceil(math.log10(max(rows, 1)))

    def nodes(self, type_name: str) -> int:
        """Return the number of nodes of a type, or of a union of types."""
        found = self._nodes.get(type_name)
        if found is None:
            found = sum(self.table_rows(TableKey.node(member)) for member in self.catalog.members(type_name))
            self._nodes[type_name] = found
        return found

    def edges(self, edge_types: tuple[str, ...]) -> int:
        """Return the number of edges of some types."""
        found = self._edges.get(edge_types)
        if found is None:
            found = sum(self.table_rows(self.catalog.edges[name].table_key) for name in edge_types)
            self._edges[edge_types] = found
        return found

    def edge_column(self, edge_type: str, name: str) -> ColumnStatistics | None:
        """Return the statistics of a property of an edge type; None if it is not a stored column."""
        return self._column(self.catalog.edges[edge_type].table_key, name)

    def node_column(self, type_name: str, name: str, *, keep: bool = True) -> ColumnStatistics | None:
        """Return the statistics of a property of a node type or a union; None if it is not a stored column.

        With `keep`, a column that must be read is kept in memory for the query.
        """
        found: ColumnStatistics | None = None
        for member in self.catalog.members(type_name):
            own = self._column(TableKey.node(member), name, keep=keep)
            if own is not None:
                found = own if found is None else found.merged(own)
        return found

    def coverage(self, type_name: str, name: str) -> ColumnStatistics | None:
        """Return the statistics of a searched property; None if it would have to be read again in every process.

        A search uses an index, so unlike a condition it does not read the column.
        """
        return self.node_column(type_name, name, keep=False) if self._cache.folder is not None else None

    def large_tables(self, type_name: str) -> list[TableData]:
        """Return the tables of a node type with columns that do not fit the cache."""
        found = self._large.get(type_name)
        if found is None:
            tables = [self._data(TableKey.node(member)) for member in self.catalog.members(type_name)]
            found = self._large[type_name] = [table for table in tables if table is not None and table.may_stream]
        return found

    def streamed_bytes(self, type_name: str, name: str) -> int:
        """Return the bytes of a property that a condition on all nodes reads from disk: 0 if it fits the cache."""
        stored = [table for table in self.large_tables(type_name) if table.has_column(name)]
        return sum(table.column_bytes(name) for table in stored if table.streams(name))

    def has_sorted_index(self, type_name: str, name: str) -> bool:
        """Return True if every large table of a type has a sorted index of a property."""
        return all(table.has_sorted_index(name) for table in self.large_tables(type_name))

    def degrees(self, edge_type: str, end: End) -> DegreeStatistics:
        """Return the degrees of the nodes at one end of an edge type."""
        found = self._degrees.get((edge_type, end))
        if found is None:
            found = self._degrees[edge_type, end] = self._degrees_at(edge_type, end)
        return found

    def skew(self, edge_types: tuple[str, ...], ends: tuple[End, ...]) -> float:
        """Return the largest factor by which the mean degree grows if nodes are chosen by their edges."""
        found = self._skews.get((edge_types, ends))
        if found is None:
            found = max(self.degrees(name, end).skew for name in edge_types for end in ends)
            self._skews[edge_types, ends] = found
        return found

    def linked_nodes(self, edge_types: tuple[str, ...], ends: tuple[End, ...]) -> float:
        """Return the nodes at some ends of edges of some types; those of several types or ends are added up."""
        found = self._linked.get((edge_types, ends))
        if found is None:
            degrees = [self.degrees(name, end) for name in edge_types for end in ends]
            found = self._linked[edge_types, ends] = sum(one.linked * one.nodes for one in degrees)
        return found

    def _degrees_at(self, edge_type: str, end: End) -> DegreeStatistics:
        edge = self.catalog.edges[edge_type]
        table = self._data(edge.table_key)
        edges = self.table_rows(edge.table_key)
        nodes = self.table_rows(TableKey.node(edge.from_type if end == "source" else edge.to_type))
        if table is None or not edges or not nodes or self._hides_rows(edge.table_key):
            return DegreeStatistics.assumed(edges, nodes)
        part = degrees_part(end)

        def find() -> DegreeStatistics:
            document = known_statistics(self._cache, table)
            known = document.find(part, DegreeStatistics) if document is not None else None
            if document is not None and known is not None and document.change(table).is_small:
                return known
            return self._found(table, part, degrees_of(table, end, nodes))

        return table.derived(f"{_KEY}{part}", find).scaled(edges, nodes)

    def store(self) -> None:
        """Write the summaries that were computed to the disk cache, for later processes."""
        computed, self._computed = self._computed, {}
        for table in computed.values():
            write_statistics(self._cache, table)

    # -- tables ----------------------------------------------------------------------------------

    def _data(self, table_key: str) -> TableData | None:
        if table_key not in self._snapshot.tables:
            return None
        if self._context is None:
            self._context = ExecutionContext(self.catalog, self._snapshot, self._cache, NO_LIMITS)
        return self._context.stored_table(table_key)

    def _column(self, table_key: str, name: str, *, keep: bool = True) -> ColumnStatistics | None:
        if (table_key, name) not in self._columns:
            self._columns[table_key, name] = self._column_at(table_key, name, keep=keep)
        return self._columns[table_key, name]

    def _column_at(self, table_key: str, name: str, *, keep: bool) -> ColumnStatistics | None:
        table = self._data(table_key)
        if table is None or name.startswith("#") or self._is_guarded(table_key, name):
            return None
        part = column_part(table, name)
        return table.derived(f"{_KEY}{part}", lambda: self._summarised(table, name, part, keep=keep))

    def _hides_rows(self, table_key: str) -> bool:
        """Return True if rows of a table can be hidden, by rules of its own or of the ends of its edges."""
        visibility = self._visibility
        if visibility is None or not visibility.rows:
            return False
        key = TableKey.parse(table_key)
        if table_key in visibility.rows or key.kind == "node":
            return table_key in visibility.rows
        edge = self.catalog.edges[key.type_name]
        return any(TableKey.node(end) in visibility.rows for end in (edge.from_type, edge.to_type))

    def _is_guarded(self, table_key: str, name: str) -> bool:
        """Return True if values of a column can be hidden."""
        visibility = self._visibility
        return visibility is not None and ((table_key, name) in visibility.properties or self._hides_rows(table_key))

    def _summarised(self, table: TableData, name: str, part: str, *, keep: bool) -> ColumnStatistics:
        """Return the stored summary of a column if the version hardly changed; else merge or compute one."""
        document = known_statistics(self._cache, table)
        known = document.find(part, ColumnStatistics) if document is not None else None
        if document is not None and known is not None:
            change = document.change(table)
            if change.is_small:
                return known
            if change.is_growth and is_readable(table, name, change.added):
                return self._found(table, part, known.merged(added_rows(table, name, document.fragments)))
        return self._found(table, part, column_of(table, name, keep=keep))

    def _found(self, table: TableData, part: str, summary: S) -> S:
        if keep_statistics(self._cache, table, {part: summary}):
            self._computed[table.key] = table
        return summary
