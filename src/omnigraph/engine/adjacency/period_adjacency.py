"""Adjacency of edges at nodes with periods.

An end of such an edge is a key, which several rows can have. The edge joins the rows of both ends that share an instant
with it and with each other, and of these the visible ones. At one instant these are at most one row of each end.

A few nodes are expanded by the edges of their entities. Traversals that follow a large part of the edges use a CSR of
the visible rows, which is kept in memory under the digests of the tables.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.adjacency import Ends, oriented
from omnigraph.engine.adjacency.csr import (
    I32,
    Csr,
    EdgeRows,
    IncidentRows,
    Neighbours,
    Room,
    build,
    build_edge_rows,
    distinct,
    high,
    low,
    pack,
    unbounded,
)
from omnigraph.engine.adjacency.edge_rows_overlay import oriented_edges
from omnigraph.engine.adjacency.incremental import dangling
from omnigraph.engine.cache.entities import Entities
from omnigraph.engine.cache.table_cache import Mask, Numbers, TableData
from omnigraph.engine.cache.timeline import Periods
from omnigraph.engine.cache.visibility import StoredTable, VisibleTable, base_of
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.fast_dataclass import dataclass
from omnigraph.query.plan.ir import Direction
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.schema.constraints import Valid

_SHARE = 4
"""A traversal that follows more than one in so many edges uses the CSR of the visible rows."""


@dataclass(frozen=True)
class _Joined:
    """The rows that edges join; an edge can occur several times."""

    src: I32
    dst: I32
    rows: I32

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return int(self.src.nbytes + self.dst.nbytes + self.rows.nbytes)


class PeriodAdjacency:
    """The edges of one type, of which an end or both are nodes with periods."""

    def __init__(
        self,
        edge: EdgeType,
        nodes: tuple[NodeType, NodeType],
        edges: StoredTable,
        tables: tuple[StoredTable, StoredTable],
        *,
        instant: bool,
    ) -> None:
        self.edges = edges
        self._tables = tables
        self._ends = tuple(_End(table, node) for table, node in zip(tables, nodes, strict=True))
        self._periods = _periods(edges, edge.valid)
        self._instant = instant
        """True if all visible rows hold at one instant."""
        of = ":".join(f"{table.key[0]}@{table.key[1]}" for table in tables)
        self._of = f"{of}:{'at' if instant else 'all'}"

    @property
    def node_tables(self) -> tuple[StoredTable, StoredTable]:
        """The node tables of the sources and of the targets."""
        return self._tables

    @property
    def joins_one_table(self) -> bool:
        """True if both ends are in the same table. Only then can an edge be a loop."""
        return base_of(self._tables[0]) is base_of(self._tables[1])

    def neighbours(self, direction: Direction) -> Neighbours:
        """Return the neighbours along outgoing edges, incoming edges, or both."""
        return _PeriodNeighbours(self, direction)

    def compacted(self, direction: Direction) -> Csr:
        """Return the neighbours as one CSR."""

        def make() -> Csr:
            found = self.joined()
            return build(*oriented(found.src, found.dst, direction), self._near(direction).row_count)

        return self.edges.derived(f"period csr:{direction}:{self._of}", make)

    def for_scan(self, direction: Direction) -> Csr:
        """Return the neighbours for a scan over all nodes."""
        return self.compacted(direction)

    def has_neighbours(self, direction: Direction, nodes: int) -> Mask:
        """Return a mask of the nodes that have a neighbour."""
        return self.compacted(direction).degrees(np.arange(nodes)) > 0

    def loops(self, direction: Direction) -> Numbers:  # noqa: ARG002 (a loop has no direction)
        """Return the nodes with an edge to themselves, ascending."""
        if not self.joins_one_table:
            return np.zeros(0, np.int64)
        found = self.joined()
        return np.unique(found.src[found.src == found.dst]).astype(np.int64)

    def edge_rows(self, direction: Direction) -> IncidentRows:
        """Return the edge rows along outgoing edges, incoming edges, or both. A loop occurs once."""
        return _PeriodRows(self, direction)

    def complete_rows(self, direction: Direction) -> EdgeRows:
        """Return the edge rows of all nodes, by the numbers that `near_numbers` gives."""

        def make() -> EdgeRows:
            found = self.joined()
            near, far, rows = oriented_edges(found.src, found.dst, found.rows, direction)
            numbers = self.near_numbers(direction, near).astype(np.int32)
            return build_edge_rows(numbers, far, rows, self._near_size(direction))

        return self.edges.derived(f"period edge rows:{direction}:{self._of}", make)

    def complete(self, direction: Direction) -> Csr:
        """Return the neighbours of all nodes, by the numbers that `near_numbers` gives."""
        if not self._numbers_entities(direction):
            return self.compacted(direction)

        def make() -> Csr:
            found = self.joined()
            near, far = oriented(found.src, found.dst, direction)
            return build(self.near_numbers(direction, near), far, self._near_size(direction))

        return self.edges.derived(f"period entity csr:{direction}:{self._of}", make)

    def near_numbers(self, direction: Direction, rows: Numbers | I32) -> Numbers:
        """Return the numbers of nodes in complete structures: at one instant an entity has one row, so that its number
        is that of the entity. There are fewer entities than rows.
        """
        if not self._numbers_entities(direction):
            return rows.astype(np.int64)
        return self._ends[1 if direction == "in" else 0].entities_of(rows.astype(np.int64))

    def _numbers_entities(self, direction: Direction) -> bool:
        return self._instant and (direction != "both" or self.joins_one_table)

    def _near_size(self, direction: Direction) -> int:
        end = self._ends[1 if direction == "in" else 0]
        return end.count if self._numbers_entities(direction) else end.table.row_count

    def ends(self) -> Ends:
        """Raise an error: an edge has several rows at an end."""
        raise AssertionError("an edge at nodes with periods has no single ends")

    # -- all edges -------------------------------------------------------------------------------

    def joined(self) -> _Joined:
        """Return the visible rows that visible edges join."""
        return self.edges.derived(f"period ends:{self._of}", self._join)

    def _join(self) -> _Joined:
        rows = _own_rows(self.edges)
        numbers = [
            _codes(base_of(self.edges), column, end)[rows] for column, end in zip(_ENDS, self._ends, strict=True)
        ]
        positions, src = self._ends[0].visible_rows(numbers[0])
        rows = rows[positions]
        again, dst = self._ends[1].visible_rows(numbers[1][positions])
        rows, src = rows[again], src[again]
        keep = self.coexist(rows, src, dst)
        if keep is not None:
            rows, src, dst = rows[keep], src[keep], dst[keep]
        return _Joined(src.astype(np.int32), dst.astype(np.int32), rows.astype(np.int32))

    def coexist(self, rows: Numbers, src: Numbers, dst: Numbers) -> Mask | None:
        """Return which of some edges share an instant with the rows of both ends; None if all do."""
        if self._instant:
            return None
        sides = [(self._periods, rows), (self._ends[0].periods, src), (self._ends[1].periods, dst)]
        known = [(periods, numbers) for periods, numbers in sides if periods is not None]
        keep: Mask | None = None
        for at, (one, numbers) in enumerate(known):
            for other, others in known[at + 1 :]:
                meets = one.overlap(numbers, other, others)
                keep = meets if keep is None else keep & meets
        return keep

    # -- a few nodes -----------------------------------------------------------------------------

    @property
    def many(self) -> int:
        """The number of edges from which on a traversal uses the CSR of the visible rows."""
        return max(self.edges.row_count // _SHARE, tuning.current.visible_steps_min)

    def at_entities(self, direction: Direction) -> EdgeRows:
        """Return all edge rows by the entities of their ends, hidden ones included."""
        base = base_of(self.edges)
        of = ":".join(f"{table.key[0]}@{table.key[1]}" for table in map(base_of, self._tables))

        def make() -> EdgeRows:
            src, dst = (_codes(base, column, end) for column, end in zip(_ENDS, self._ends, strict=True))
            near, far = (dst, src) if direction == "in" else (src, dst)
            count = self._ends[1 if direction == "in" else 0].count
            return build_edge_rows(near, far, np.arange(len(src), dtype=np.int32), count)

        return base.derived(f"entity edge rows:{direction}:{of}", make)

    def expand_few(self, direction: Direction, sources: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return the edges of a few nodes: (position in `sources`, edge row, neighbour)."""
        if direction == "both":
            out, into = self.expand_few("out", sources), self.expand_few("in", sources)
            keep = into[2] != sources[into[0]]  # a loop occurs once
            found = [np.concatenate([a, b[keep]]) for a, b in zip(out, into, strict=True)]
            order = np.argsort(found[0], kind="stable")
            return found[0][order], found[1][order], found[2][order]
        near, far = (1, 0) if direction == "in" else (0, 1)
        positions, rows, codes = self.at_entities(direction).expand(self._ends[near].entities_of(sources))
        if isinstance(self.edges, VisibleTable) and self.edges.own is not None and len(rows):
            seen = self.edges.own.holds(rows)
            positions, rows, codes = positions[seen], rows[seen], codes[seen]
        again, targets = self._ends[far].some_rows(codes)
        positions, rows = positions[again], rows[again]
        ends = sources[positions], targets
        keep = self.coexist(rows, *(reversed(ends) if direction == "in" else ends))
        if keep is None:
            return positions, rows, targets
        return positions[keep], rows[keep], targets[keep]

    def follows_many(self, direction: Direction, sources: Numbers) -> bool:
        """Return True if a traversal from some nodes follows a large part of the edges."""
        if len(sources) > self.many:
            return True
        ways: tuple[Direction, ...] = ("out", "in") if direction == "both" else (direction,)
        steps = 0
        for way in ways:
            near = self._ends[1 if way == "in" else 0]
            steps += int(self.at_entities(way).degrees(near.entities_of(sources)).sum())
        return steps > self.many

    def _near(self, direction: Direction) -> StoredTable:
        return self._tables[1 if direction == "in" else 0]

    def near_count(self, direction: Direction) -> int:
        """Return the number of nodes from which edges are followed."""
        return self._near(direction).row_count


_ENDS = ("src", "dst")


class _End:
    """The nodes at one end: rows with periods by their keys, or plain rows by their ids."""

    def __init__(self, table: StoredTable, node: NodeType) -> None:
        self.table = table
        self.column = node.end_column
        self.periods = _periods(table, node.valid)
        self._entities = Entities.of(base_of(table), node.end_column) if node.has_periods else None

    @property
    def count(self) -> int:
        """The number of entities; a plain row is one."""
        return self.table.row_count if self._entities is None else self._entities.count

    @property
    def keys(self) -> pa.Array:
        """The texts that edges have as this end, by entity."""
        return base_of(self.table).column("id") if self._entities is None else self._entities.keys

    def entities_of(self, rows: Numbers) -> Numbers:
        """Return the entities of some rows."""
        return rows if self._entities is None else self._entities.of_row[rows].astype(np.int64)

    def some_rows(self, codes: Numbers) -> tuple[Numbers, Numbers]:
        """Return the visible rows of a few entities: (position in `codes`, row)."""
        if self._entities is None:
            positions, rows = np.arange(len(codes)), codes
        else:
            positions, rows = self._entities.expand(codes)
        if not isinstance(self.table, VisibleTable) or not len(rows):
            return positions, rows
        seen = self.table.sees(rows)
        return positions[seen], rows[seen]

    def visible_rows(self, codes: I32) -> tuple[Numbers, Numbers]:
        """Return the visible rows of many entities: (position in `codes`, row)."""
        if self._entities is None:
            mask = self.table.visible
            positions = np.arange(len(codes)) if mask is None else np.flatnonzero(mask[codes])
            return positions, codes[positions].astype(np.int64)
        shown = _own_rows(self.table)
        of_shown = self._entities.of_row[shown]
        counts = np.bincount(of_shown, minlength=self.count)
        if not len(counts) or counts.max(initial=0) <= 1:
            row_of = np.full(self.count, -1, np.int64)
            row_of[of_shown] = shown
            rows = row_of[codes]
            positions = np.flatnonzero(rows >= 0)
            return positions, rows[positions]
        order = np.argsort(of_shown, kind="stable")
        offsets = np.zeros(self.count + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        entities = Entities(
            self._entities.keys, self._entities.of_row, offsets, shown[order].astype(np.int32), self._entities.index
        )
        return entities.expand(codes.astype(np.int64))


def _own_rows(table: StoredTable) -> Numbers:
    """Return the rows that the conditions on the table itself show."""
    if not isinstance(table, VisibleTable) or table.own is None:
        return np.arange(table.row_count)
    return table.own.numbers()


def _periods(table: StoredTable, valid: Valid | None) -> Periods | None:
    return None if valid is None else Periods.of(base_of(table), valid.start, valid.end)


def _codes(edges: TableData, column: str, end: _End) -> I32:
    """Return the entity at one end of each edge."""
    node = base_of(end.table)

    def make() -> I32:
        texts, keys = edges.column(column), end.keys
        found = interruptible(lambda: pc.index_in(texts, value_set=keys), len(texts) + len(keys))
        if found.null_count:
            raise dangling(found.null_count, edges)
        codes: I32 = found.to_numpy(zero_copy_only=False).astype(np.int32)
        return codes

    return edges.derived(f"entity ends:{column}:{end.column}:{node.folder}@{node.key[1]}", make)


def edge_codes(
    edges: TableData, tables: tuple[StoredTable, StoredTable], nodes: tuple[NodeType, NodeType]
) -> tuple[I32, I32]:
    """Return the entities at both ends of each edge; an entity of a plain table is a row."""
    ends = [_End(table, node) for table, node in zip(tables, nodes, strict=True)]
    return _codes(edges, "src", ends[0]), _codes(edges, "dst", ends[1])


class _PeriodRows:
    """The visible incident edges of nodes."""

    __slots__ = ("adjacency", "direction")

    def __init__(self, adjacency: PeriodAdjacency, direction: Direction) -> None:
        self.adjacency = adjacency
        self.direction = direction

    def expand(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers, Numbers]:
        """Return the edges of each source: (position in `sources`, edge row, neighbour)."""
        if self.adjacency.follows_many(self.direction, sources):
            numbers = self.adjacency.near_numbers(self.direction, sources)
            return self.adjacency.complete_rows(self.direction).expand(numbers, room)
        found = self.adjacency.expand_few(self.direction, sources)
        room(len(found[0]))
        return found

    def degrees(self, sources: Numbers) -> Numbers:
        """Return the number of edges of each source."""
        if self.adjacency.follows_many(self.direction, sources):
            numbers = self.adjacency.near_numbers(self.direction, sources)
            return self.adjacency.complete_rows(self.direction).degrees(numbers)
        return np.bincount(self.expand(sources)[0], minlength=len(sources)).astype(np.int64)


class _PeriodNeighbours:
    """The neighbours of nodes that visible edges lead to."""

    __slots__ = ("adjacency", "direction")

    def __init__(self, adjacency: PeriodAdjacency, direction: Direction) -> None:
        self.adjacency = adjacency
        self.direction = direction

    @property
    def count(self) -> int:
        """The number of nodes."""
        return self.adjacency.near_count(self.direction)

    def expand(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers]:
        """Return the neighbours of each source: (position in `sources`, neighbour)."""
        if self.adjacency.follows_many(self.direction, sources):
            numbers = self.adjacency.near_numbers(self.direction, sources)
            return self.adjacency.complete(self.direction).expand(numbers, room)
        positions, _, targets = self.adjacency.expand_few(self.direction, sources)
        pairs = distinct(pack(positions, targets))
        room(len(pairs))
        return high(pairs), low(pairs)

    def far(self, sources: Numbers, room: Room = unbounded) -> Numbers:
        """Return the neighbours of all sources, with repetitions."""
        return self.expand(sources, room)[1]

    def degrees(self, sources: Numbers) -> Numbers:
        """Return the number of neighbours of each source."""
        if self.adjacency.follows_many(self.direction, sources):
            numbers = self.adjacency.near_numbers(self.direction, sources)
            return self.adjacency.complete(self.direction).degrees(numbers)
        return np.bincount(self.expand(sources)[0], minlength=len(sources)).astype(np.int64)

    def totals(self, values: Numbers | None) -> Numbers:
        """Return for each node the sum of its neighbours' values; without values, its degree."""
        return self.adjacency.compacted(self.direction).totals(values)

    def connected(self, sources: Numbers, targets: Numbers) -> Mask:
        """Return for each pair whether an edge connects it."""
        if self.adjacency.follows_many(self.direction, sources):
            numbers = self.adjacency.near_numbers(self.direction, sources)
            return self.adjacency.complete(self.direction).connected(numbers, targets)
        positions, _, far = self.adjacency.expand_few(self.direction, sources)
        found = np.zeros(len(sources), bool)
        found[positions[far == targets[positions]]] = True
        return found
