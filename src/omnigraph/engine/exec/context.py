"""The context of one execution: tables of the snapshot, limits and profile."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import field
from typing import NamedTuple

from omnigraph.engine.adjacency.adjacency import Adjacency, EdgeAdjacency
from omnigraph.engine.adjacency.multi_edge import MultiEdgeAdjacency, TypedAdjacency
from omnigraph.engine.adjacency.period_adjacency import PeriodAdjacency, edge_codes
from omnigraph.engine.adjacency.visible_adjacency import VisibleAdjacency
from omnigraph.engine.cache.columns import ColumnSource
from omnigraph.engine.cache.entities import EntityTable
from omnigraph.engine.cache.table_cache import DataCache, TableData, numbered_rows
from omnigraph.engine.cache.union_table import UnionTable
from omnigraph.engine.cache.visibility import Guard, StoredTable, VisibleTable, base_of
from omnigraph.engine.exec.cancellation import Cancellation, Watch
from omnigraph.errors import Hint, LimitReached
from omnigraph.fast_dataclass import dataclass
from omnigraph.query.plan import ir
from omnigraph.query.visibility import Visibility
from omnigraph.schema.catalog import Catalog, NodeType, UnionType
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.snapshot import Snapshot


@dataclass(frozen=True)
class Limits:
    """Limits of a query."""

    rows_max: int = 50_000_000
    """Largest number of rows at any point of the match."""
    timeout_s: float | None = None
    cancellation: Cancellation | None = None
    bytes_max: int = 4 * 1024**3
    """Largest size of the rows and paths that one operator produces, estimated before it produces them."""

    def watch(self) -> Watch:
        """Return the watch of a query that starts now."""
        return Watch(self.timeout_s, self.cancellation)


class MatchTooLarge(LimitReached):
    """Raised before an operator produces more rows or bytes than the memory budget or the default limits permit.

    Another engine can run the query. A limit that the caller set applies to every engine.
    """


_NUMBER_BYTES = 8
_VIEWS_MAX = 256
"""Visibilities whose tables of a snapshot are kept open."""
_NARROW = "add a filter or a hop bound that narrows the match"

NO_LIMITS = Limits()
"""The default limits."""


@dataclass(frozen=True)
class OperatorProfile:
    """One executed operator."""

    what: ir.Op | str
    rows: int
    """Rows after the operator."""
    ms: float
    how: tuple[str, ...]


class PlanChange(NamedTuple):
    """Operators that ran in place of one and of those after it."""

    replaced: ir.Op
    by: ir.Pipeline
    rows: float
    """The rows that they were applied to, if a block ran for given nodes; else 1."""


@dataclass
class Profile:
    """The executed operators of a query."""

    watch: Watch
    steps: list[OperatorProfile] = field(default_factory=list)
    changes: list[PlanChange] = field(default_factory=list)
    """In the order in which they were made."""

    tried: dict[int, float] = field(default_factory=dict)
    """The identity of the first operator of a match → the share of its rows that the rest of the match ran for."""

    def note(self, what: ir.Op | str, rows: int, started: float) -> None:
        """Record the rows of an operator; also its time and notes if the query is profiled."""
        self.watch.rows = rows
        if not self.watch.profiling:
            return
        notes = tuple(dict.fromkeys(self.watch.notes))
        self.watch.notes.clear()
        self.steps.append(OperatorProfile(what, rows, (time.perf_counter() - started) * 1000, notes))

    def add_up(self, first: int) -> None:
        """Add up the steps from a position on that are of one operator: it ran for parts of its rows."""
        steps: dict[int | str, OperatorProfile] = {}
        for step in self.steps[first:]:
            of = step.what if isinstance(step.what, str) else id(step.what)
            known = steps.get(of)
            if known is not None:
                how = tuple(dict.fromkeys((*known.how, *step.how)))
                step = OperatorProfile(step.what, known.rows + step.rows, known.ms + step.ms, how)
            steps[of] = step
        self.steps[first:] = steps.values()

    def change(self, replaced: ir.Op, by: ir.Pipeline, rows: float = 1.0) -> None:
        """Record that operators ran in place of one and of those after it, if the query is profiled."""
        if self.watch.profiling:
            self.changes.append(PlanChange(replaced, by, rows))


def bytes_limit(limits: Limits, cache: DataCache) -> int:
    """Return the largest size of the rows of an operator: that of the limits or of the memory budget."""
    return limits.bytes_max if cache.memory is None else min(limits.bytes_max, cache.memory.query_bytes)


class SnapshotTables:
    """Tables and adjacencies of a snapshot that were opened through one cache."""

    def __init__(self) -> None:
        self.tables: dict[str, ColumnSource] = {}
        self.adjacencies: dict[str, TypedAdjacency] = {}
        self.multi_edge: dict[tuple[str, ...], MultiEdgeAdjacency] = {}
        self.views: OrderedDict[str, SnapshotTables] = OrderedDict()
        """The same as actors see them, by the digest of their visibility."""

    def seen_by(self, visibility: Visibility) -> SnapshotTables:
        """Return the tables and adjacencies as an actor sees them."""
        digest = visibility.digest
        found = self.views.get(digest)
        if found is None:
            found = self.views.setdefault(digest, SnapshotTables())
            while len(self.views) > _VIEWS_MAX:
                self.views.popitem(last=False)
        return found


class ExecutionContext:
    """The snapshot, limits and profile of one execution."""

    def __init__(
        self,
        catalog: Catalog,
        snapshot: Snapshot,
        cache: DataCache,
        limits: Limits,
        watch: Watch | None = None,
        visibility: Visibility | None = None,
    ) -> None:
        self.catalog = catalog
        self.snapshot = snapshot
        self.limits = limits
        self.cache = cache
        self._opened = cache.snapshots.get(snapshot) or cache.snapshots.setdefault(snapshot, SnapshotTables())
        self.watch = watch if watch is not None else limits.watch()
        self._bytes_max: int | None = None
        self._profile: Profile | None = None
        self.guard: Guard | None = None
        """Decides what is visible; None if everything is."""
        if visibility is not None:
            from omnigraph.engine.expr.judge import judge  # noqa: PLC0415 (only for a visibility)

            self.guard = Guard(visibility, judge)
            # Notes would tell about rows that a policy hides.
            self.watch.silent = visibility.of_policy is not None
            self._opened = self._opened.seen_by(visibility)

    # Compiled chains use neither of these. A `cached_property` takes a lock in Python 3.11.

    @property
    def bytes_max(self) -> int:
        """The largest size of the rows of an operator: that of the limits or of the memory budget."""
        if self._bytes_max is None:
            self._bytes_max = bytes_limit(self.limits, self.cache)
        return self._bytes_max

    @property
    def profile(self) -> Profile:
        """The operators that the query executed."""
        if self._profile is None:
            self._profile = Profile(self.watch)
        return self._profile

    def table(self, key: str) -> ColumnSource:
        """Return a table of the snapshot, or the union of several tables."""
        found = self._opened.tables.get(key)
        if found is None:
            found = self._opened.tables[key] = self._open(key)
        return found

    def key_of(self, data: ColumnSource) -> str:
        """Return the key of a table that this context opened."""
        return next(key for key, opened in self._opened.tables.items() if opened is data)

    def stored_table(self, key: str) -> TableData:
        """Return a table of the snapshot that is not guarded."""
        found = self.table(key)
        assert isinstance(found, TableData), key
        return found

    def type_table(self, key: str) -> StoredTable:
        """Return the table of one type, or what is visible of it."""
        found = self.table(key)
        assert isinstance(found, (TableData, VisibleTable)), key
        return found

    def _open(self, key: str) -> ColumnSource:
        kind, name = TableKey.parse(key).parts
        if kind == "edge" or name in self.catalog.nodes:
            numbered_rows(self.snapshot.tables[key].pin.row_count, f"{kind} type '{name}'")
            data = self.cache.table(self.snapshot.table(key))
            return data if self.guard is None else self._guarded(self.guard, kind, name, data)
        union = self.catalog.node(name)
        assert isinstance(union, UnionType)
        return UnionTable(union, [self.type_table(TableKey.node(member)) for member in union.members], self.cache)

    def _guarded(self, guard: Guard, kind: str, name: str, data: TableData) -> StoredTable:
        """Return what is visible of a table."""
        if kind == "node":
            return guard.node_table(TableKey.node(name), data)
        sources, targets = self._ends(name)
        if self.catalog.joins_periods(self.catalog.edges[name]):
            return self._guarded_by_entity(guard, name, data)
        every = EdgeAdjacency.of(data, base_of(sources), base_of(targets), self.cache)
        return guard.edge_table(TableKey.edge(name), data, every.ends, sources, targets)

    def _guarded_by_entity(self, guard: Guard, name: str, data: TableData) -> StoredTable:
        """Return what is visible of edges at nodes with periods: an end is visible if a row of its entity is."""
        nodes, tables = self._end_types(name), self._ends(name)
        ends = [
            EntityTable(table, node.end_column) if node.has_periods else table
            for node, table in zip(nodes, tables, strict=True)
        ]
        return guard.edge_table(TableKey.edge(name), data, lambda: edge_codes(data, tables, nodes), ends[0], ends[1])

    def _end_types(self, edge_type: str) -> tuple[NodeType, NodeType]:
        edge = self.catalog.edges[edge_type]
        return self.catalog.nodes[edge.from_type], self.catalog.nodes[edge.to_type]

    @property
    def at_one_instant(self) -> bool:
        """True if a valid clause shows the rows of one instant."""
        if self.guard is None or not self.guard.visibility.periods:
            return False
        return all(test.until is None for test in self.guard.visibility.periods.values())

    def _ends(self, edge_type: str) -> tuple[StoredTable, StoredTable]:
        edge = self.catalog.edges[edge_type]
        return self.type_table(TableKey.node(edge.from_type)), self.type_table(TableKey.node(edge.to_type))

    def adjacency(self, edge_type: str) -> TypedAdjacency:
        """Return the adjacency of one edge type."""
        found = self._opened.adjacencies.get(edge_type)
        if found is None:
            edges, (sources, targets) = self.type_table(TableKey.edge(edge_type)), self._ends(edge_type)
            if self.catalog.joins_periods(self.catalog.edges[edge_type]):
                found = self._opened.adjacencies[edge_type] = PeriodAdjacency(
                    self.catalog.edges[edge_type],
                    self._end_types(edge_type),
                    edges,
                    (sources, targets),
                    instant=self.at_one_instant,
                )
                return found
            found = EdgeAdjacency.of(base_of(edges), base_of(sources), base_of(targets), self.cache)
            if isinstance(edges, VisibleTable) and edges.hides_rows:
                found = VisibleAdjacency(found, edges, sources, targets)
            self._opened.adjacencies[edge_type] = found
        return found

    def hops(self, edge_type: str, also: tuple[str, ...] = ()) -> Adjacency:
        """Return the adjacency of an edge type, or of several types between the same node types."""
        if not also:
            return self.adjacency(edge_type)
        types = (edge_type, *also)
        found = self._opened.multi_edge.get(types)
        if found is None:
            found = self._opened.multi_edge[types] = MultiEdgeAdjacency([self.adjacency(one) for one in types])
        return found

    @property
    def is_limited_by_caller(self) -> bool:
        """True if the caller set a limit below the default one. It applies to every engine."""
        return self.limits.rows_max < NO_LIMITS.rows_max or self.limits.bytes_max < NO_LIMITS.bytes_max

    def check_size(self, rows: int, columns: int = 2) -> None:
        """Raise `LimitReached` if a result of this many rows and columns of 64-bit numbers would exceed a limit."""
        self.check()
        size = rows * columns * _NUMBER_BYTES
        cancellation = self.limits.cancellation
        if cancellation is not None and size > cancellation.held_bytes:
            cancellation.held_bytes = size
        if size > self.bytes_max:
            setting = "Limits(bytes_max=…)" if self.bytes_max == self.limits.bytes_max else "og.open(uri, memory=…)"
            raise self._too_large(
                f"the match would hold {size:,} bytes; the limit is {self.bytes_max:,}",
                resource="bytes",
                limit=self.bytes_max,
                actual=size,
                hint=Hint(f"{_NARROW}, or raise {setting}", cli=_NARROW),
            )
        if rows > self.limits.rows_max:
            raise self._too_large(
                f"the match would hold {rows:,} rows; the limit is {self.limits.rows_max:,}",
                resource="rows",
                limit=self.limits.rows_max,
                actual=rows,
                hint=Hint(f"{_NARROW}, or raise Limits(rows_max=…)", cli=_NARROW),
            )

    @property
    def _too_large(self) -> type[LimitReached]:
        return LimitReached if self.is_limited_by_caller else MatchTooLarge

    def check(self) -> None:
        """Raise an error if the query was cancelled or exceeded its time limit."""
        self.watch.check()
