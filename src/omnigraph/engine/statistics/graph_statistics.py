"""Statistics of the tables of a snapshot, computed on first use and kept with the table version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

from omnigraph.engine import tuning
from omnigraph.engine.cache.table_cache import DataCache, TableData
from omnigraph.engine.exec.context import NO_LIMITS, ExecutionContext
from omnigraph.engine.statistics.column_statistics import ColumnStatistics
from omnigraph.engine.statistics.degree_statistics import DegreeStatistics
from omnigraph.schema.catalog import Catalog
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.snapshot import Snapshot

End = Literal["source", "target"]
_Summary = TypeVar("_Summary", ColumnStatistics, DegreeStatistics)


class GraphStatistics:
    """The statistics of one snapshot."""

    def __init__(self, catalog: Catalog, snapshot: Snapshot, cache: DataCache) -> None:
        self.catalog = catalog
        self._snapshot = snapshot
        self._cache = cache
        self._context: ExecutionContext | None = None

    def table_rows(self, table_key: str) -> int:
        """Return the number of rows of one table."""
        table = self._snapshot.tables.get(table_key)
        return table.pin.row_count if table is not None else 0

    def nodes(self, type_name: str) -> int:
        """Return the number of nodes of a type, or of a union of types."""
        return sum(self.table_rows(TableKey.node(member)) for member in self.catalog.members(type_name))

    def edges(self, edge_types: Sequence[str]) -> int:
        """Return the number of edges of some types."""
        return sum(self.table_rows(self.catalog.edges[name].table_key) for name in edge_types)

    def edge_column(self, edge_type: str, name: str) -> ColumnStatistics | None:
        """Return the statistics of a property of an edge type; None if it is not a stored column."""
        return self._column(self.catalog.edges[edge_type].table_key, name)

    def node_column(self, type_name: str, name: str) -> ColumnStatistics | None:
        """Return the statistics of a property of a node type or a union; None if it is not a stored column."""
        found: ColumnStatistics | None = None
        for member in self.catalog.members(type_name):
            own = self._column(TableKey.node(member), name)
            if own is not None:
                found = own if found is None else found.merged(own)
        return found

    def degrees(self, edge_type: str, end: End) -> DegreeStatistics:
        """Return the degrees of the nodes at one end of an edge type."""
        edge = self.catalog.edges[edge_type]
        table = self._data(edge.table_key)
        type_name = edge.from_type if end == "source" else edge.to_type
        nodes = self.table_rows(TableKey.node(type_name))
        if table is None or not table.row_count or not nodes:
            return DegreeStatistics.assumed(self.table_rows(edge.table_key), nodes)
        name = f"statistics:degrees:{end}"
        known = self._similar(table, name, DegreeStatistics)
        if known is not None:
            return known

        def count() -> DegreeStatistics:
            ends = self._opened().adjacency(edge_type).ends()
            return DegreeStatistics.counted(ends[0 if end == "source" else 1], nodes)

        return table.derived(name, count)

    # -- tables ----------------------------------------------------------------------------------

    def _opened(self) -> ExecutionContext:
        if self._context is None:
            self._context = ExecutionContext(self.catalog, self._snapshot, self._cache, NO_LIMITS)
        return self._context

    def _data(self, table_key: str) -> TableData | None:
        return self._opened().stored_table(table_key) if table_key in self._snapshot.tables else None

    def _column(self, table_key: str, name: str) -> ColumnStatistics | None:
        table = self._data(table_key)
        if table is None or name.startswith("#"):
            return None
        key = f"statistics:{table.column_key(name)}"
        known = self._similar(table, key, ColumnStatistics)
        return known if known is not None else table.derived(key, lambda: self._summarised(table, name, key))

    def _summarised(self, table: TableData, name: str, key: str) -> ColumnStatistics:
        earlier = self._cache.earlier(table, key)
        if earlier is not None:
            known, fragments = earlier
            added = table.added_since(fragments, [name])
            if added is not None:
                summary: ColumnStatistics = known
                for chunk in added[name].chunks:
                    summary = summary.merged(ColumnStatistics.of(chunk))
                return summary
        return ColumnStatistics.of(table.column(name))

    def _similar(self, table: TableData, name: str, kind: type[_Summary]) -> _Summary | None:
        """Return the statistics of this version, else those of a version of nearly the same size."""
        found = self._cache.newest(table, name)
        if not isinstance(found, kind):
            return None
        before = found.rows
        near = abs(table.row_count - before) <= tuning.current.statistics_change_share * before
        return found if near else None
