"""The adjacency of an edge type at pinned versions: made from the tables once, then grown by what commits add.

For one edge table version and the node versions at its ends: the neighbours of every node, for walking; and the
edge rows of every node, for hops that name the edge. Both directions and their union are made when first asked
for. What is kept in memory or on disk is used for a later version only where that one still has all its pieces.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.csr import (
    I32,
    Csr,
    EdgeRows,
    build,
    build_edge_rows,
    contains,
    high,
    low,
)
from omnigraph.engine.adjacency.csr_overlay import CsrOverlay
from omnigraph.engine.adjacency.incremental import (
    AdjacencyChanges,
    Arrays,
    BuiltAdjacency,
    build_overlay,
    changes_max,
    changes_since,
    dangling,
    mapped_ends,
    removed_pairs,
)
from omnigraph.engine.cache import disk_cache
from omnigraph.engine.cache.row_mapping import FragmentLayout
from omnigraph.engine.cache.table_cache import DataCache, Mask, Numbers, TableData, UseCounter
from omnigraph.engine.exec.cancellation import checkpoint, say
from omnigraph.engine.exec.native import stoppable
from omnigraph.query.plan.ir import Direction

AnyCsr = Csr | CsrOverlay
Ends = tuple[I32, I32]

_Ends = TypeVar("_Ends", Numbers, I32)

_log = logging.getLogger(__name__)


class Adjacency(Protocol):
    """What the edges of a hop answer, whether they are of one type or of several.

    Edges of several types have no edge rows: a variable is bound to edges of one type only.
    """

    def neighbours(self, direction: Direction) -> AnyCsr:
        """Far ends by walking the edges out, in, or both ways."""

    def compacted(self, direction: Direction) -> Csr:
        """The same in one layer, for loops over much of it."""

    def for_scan(self, direction: Direction) -> AnyCsr:
        """The same for a question about all nodes."""

    def has_neighbours(self, direction: Direction, nodes: int) -> Mask:
        """Which nodes have a far end at all."""

    def loops(self, direction: Direction) -> Numbers:
        """The nodes with an edge to themselves, ascending."""


class EdgeAdjacency:
    """One edge table between two node tables, all at pinned versions."""

    def __init__(self, edges: TableData, sources: TableData, targets: TableData, cache: DataCache) -> None:
        self.edges = edges
        self._source_nodes = sources
        self._target_nodes = targets
        self._cache = cache
        of = f"{sources.folder}@{sources.key[1]}:{targets.folder}@{targets.key[1]}"
        self._names = {
            (kind, direction): f"{kind}:{direction}:{of}" for kind in _KINDS for direction in ("out", "in", "both")
        }

    @property
    def node_tables(self) -> tuple[TableData, TableData]:
        """The nodes at which the edges start and end."""
        return self._source_nodes, self._target_nodes

    @property
    def joins_one_table(self) -> bool:
        """Whether both ends are in the same table: only then can an edge be a loop."""
        return self._source_nodes is self._target_nodes

    # -- what it gives ---------------------------------------------------------------------------

    @classmethod
    def of(cls, edges: TableData, sources: TableData, targets: TableData, cache: DataCache) -> EdgeAdjacency:
        """The adjacency of these versions: one object for all who ask."""
        name = f"adjacency:{sources.key}:{targets.key}"
        return edges.derived(name, lambda: cls(edges, sources, targets, cache))

    def neighbours(self, direction: Direction) -> AnyCsr:
        """Far ends by walking the edges out, in, or both ways."""
        return self._walk(direction)[0]

    def compacted(self, direction: Direction) -> Csr:
        """The same in one layer, for loops over much of it."""
        walked = self.neighbours(direction)
        if isinstance(walked, Csr):
            return walked
        return self.edges.derived(self._names["compacted", direction], walked.compacted)

    def has_neighbours(self, direction: Direction, nodes: int) -> Mask:
        """Which nodes have a far end at all."""
        name = self._names["linked", direction]
        return self.edges.derived(name, lambda: self.neighbours(direction).degrees(np.arange(nodes)) > 0)

    def for_scan(self, direction: Direction) -> AnyCsr:
        """The same for a question about all nodes: in one layer, once that has been asked often enough to pay."""
        walked = self.neighbours(direction)
        if isinstance(walked, Csr):
            return walked
        uses = self.edges.derived(self._names["uses", direction], UseCounter)
        return walked if uses.increment() < tuning.current.scans_before_compaction else self.compacted(direction)

    def loops(self, direction: Direction) -> Numbers:
        """The nodes with an edge to themselves, ascending."""
        return self._walk(direction)[1]

    def edge_rows(self, direction: Direction) -> EdgeRows:
        """Edge rows by walking the edges out, in, or both ways; a loop is there once."""
        return self.edges.derived(self._names["edge_rows", direction], lambda: self._edge_rows(direction))

    def ends(self) -> Ends:
        """The numbers of every edge's source and target, in row order."""
        return self.edges.derived(self._names["ends", "out"], self._ends)

    # -- how it is made --------------------------------------------------------------------------

    def _walk(self, direction: Direction) -> tuple[AnyCsr, Numbers]:
        return self.edges.derived(self._names["neighbours", direction], lambda: self._neighbours(direction))

    def _neighbours(self, direction: Direction) -> tuple[AnyCsr, Numbers]:
        """On top of what was made before, in this process or an earlier one, if they have enough in common."""
        made = self._base(direction)
        grown = self._overlaid(made, direction) if made is not None else None
        if grown is not None:
            return grown
        src, dst = self.ends()
        near, far = _oriented(src, dst, direction)
        with self._logged(f"arranging {len(src):,} edges by node"):
            built = build(near, far, self._near(direction).row_count)
        loops = np.unique(src[src == dst]).astype(np.int64)
        self._save(direction, (built.offsets, built.targets, loops))
        return built, loops

    def _overlaid(self, made: BuiltAdjacency, direction: Direction) -> tuple[AnyCsr, Numbers] | None:
        found = self._changes(made, tuning.current.adjacency_overlay_share)
        if found is None:
            return None
        offsets, targets, loops = made.arrays
        base = Csr(offsets, targets)
        count = self._near(direction).row_count
        moved = (found.targets, found.sources) if direction == "in" else (found.sources, found.targets)
        if not len(found.src) and not len(found.removed_rows) and moved == (None, None) and base.count == count:
            return base, loops
        removed = np.zeros(0, np.uint64)
        if len(found.removed_rows):
            ends = self._base("ends")
            if ends is None or not ends.built_from_same(made):
                return None
            src, dst = ends.arrays
            gone = (
                found.removed_rows
                if direction != "both"
                else np.concatenate([found.removed_rows, found.removed_rows + len(src)])
            )
            near, far = _oriented(src, dst, direction)
            removed = removed_pairs(near, far, gone, parallel=len(near) != len(base.targets))
            loops = loops[~contains(low(removed)[high(removed) == low(removed)], loops)]
        if found.sources is not None:
            loops = np.sort(found.sources.new_of[loops])
            loops = loops[loops >= 0]
        gained_near, gained_far = _oriented(found.src, found.dst, direction)
        grown = build_overlay(base, (gained_near, moved[0], count), (gained_far, moved[1]), removed)
        return grown, np.union1d(loops, found.src[found.src == found.dst])

    def _ends(self) -> Ends:
        made = self._base("ends")
        found = self._changes(made, tuning.current.adjacency_update_share) if made is not None else None
        if made is not None and found is not None:
            mapping = mapped_ends(made, self.edges, found)
            if mapping is not None:
                share = tuning.current.adjacency_overlay_share
                if len(found.src) + len(found.removed_rows) > changes_max(len(mapping[0]), share):
                    self._save("ends", mapping)
                return mapping
        with self._logged(f"numbering the ends of {self.edges.row_count:,} edges"):
            ends = (
                _numbers(self.edges.read("src"), self._source_nodes.column("id"), self.edges),
                _numbers(self.edges.read("dst"), self._target_nodes.column("id"), self.edges),
            )
        self._save("ends", ends)
        return ends

    def _edge_rows(self, direction: Direction) -> EdgeRows:
        src, dst = self.ends()
        rows = np.arange(len(src), dtype=np.int32)
        near, far = _oriented(src, dst, direction)
        if direction == "both":
            once = np.concatenate([np.ones(len(src), bool), src != dst])
            near, far, rows = near[once], far[once], np.concatenate([rows, rows])[once]
        with self._logged(f"arranging {len(src):,} edge rows by node"):
            return build_edge_rows(near, far, rows, self._near(direction).row_count)

    def _near(self, direction: Direction) -> TableData:
        return self._target_nodes if direction == "in" else self._source_nodes

    # -- what was made before --------------------------------------------------------------------

    def _base(self, kind: str) -> BuiltAdjacency | None:
        what = self._what(kind)
        made: BuiltAdjacency | None = self._cache.base(what)
        if made is None:
            discard = self._cache.keep_in is not None
            made = disk_cache.load(self._cache.folder, what, lambda kept: _read_built(kept, kind), discard=discard)
            if made is None:
                return None
            self._cache.set_base(what, made)
        return made

    def _save(self, kind: str, arrays: Arrays) -> None:
        layouts = tuple(map(FragmentLayout.of, (self.edges, self._source_nodes, self._target_nodes)))
        edges, sources, targets = layouts
        what = self._what(kind)
        self._cache.set_base(what, BuiltAdjacency(edges, sources, targets, arrays))
        if self.edges.row_count >= tuning.current.adjacency_disk_edges_min:
            about: dict[str, Any] = {}
            kept = dict(zip(_ARRAYS[kind == "ends"], arrays, strict=True))
            for name, layout in zip(_TABLES, layouts, strict=True):
                layout.write(name, about, kept)
            disk_cache.save(self._cache.keep_in, what, about, kept)

    def _changes(self, made: BuiltAdjacency, share: float) -> AdjacencyChanges | None:
        return changes_since(made, self.edges, self._source_nodes, self._target_nodes, share)

    def _what(self, kind: str) -> disk_cache.Subject:
        return ("adjacency", self.edges.folder, self._source_nodes.folder, self._target_nodes.folder, kind)

    @contextmanager
    def _logged(self, what: str) -> Iterator[None]:
        """Say what takes long, before and after."""
        checkpoint()
        say(what)
        told = self.edges.row_count >= tuning.current.adjacency_log_edges_min
        started = time.perf_counter()
        if told:
            _log.info("%s: %s …", self.edges.folder, what)
        yield
        if told:
            _log.info("%s: %s: %.1f s", self.edges.folder, what, time.perf_counter() - started)


_KINDS = ("neighbours", "compacted", "uses", "edge_rows", "ends", "linked")
_TABLES = ("edges", "sources", "targets")
_ARRAYS = (("offsets", "targets", "loops"), ("src", "dst"))
"""What is kept of neighbours, and of ends."""


def _read_built(kept: disk_cache.CacheEntry, kind: str) -> BuiltAdjacency:
    """An entry of the disk cache; `disk_cache.BadEntry` if a number in it is out of range.

    Compiled kernels use these arrays without bounds checks.
    """
    edges, sources, targets = (FragmentLayout.read(kept, name) for name in _TABLES)
    arrays = tuple(kept.arrays[name] for name in _ARRAYS[kind == "ends"])
    made = BuiltAdjacency(edges, sources, targets, arrays)
    if kind == "ends":
        src, dst = arrays
        disk_cache.check(len(src) == len(dst) == edges.row_count, "'ends' has another number of edges")
        disk_cache.check_within(src, sources.row_count, "src")
        disk_cache.check_within(dst, targets.row_count, "dst")
        return made
    near, far = (targets, sources) if kind == "in" else (sources, targets)
    offsets, neighbours, loops = arrays
    disk_cache.check_offsets(offsets, near.row_count, len(neighbours), "offsets")
    disk_cache.check_within(neighbours, far.row_count, "targets")
    disk_cache.check_within(loops, near.row_count, "loops")
    return made


def _oriented(src: _Ends, dst: _Ends, direction: Direction) -> tuple[_Ends, _Ends]:
    """(near, far) ends of walking the edges in a direction."""
    if direction == "both":
        return np.concatenate([src, dst]), np.concatenate([dst, src])
    return (dst, src) if direction == "in" else (src, dst)


def _numbers(ends: pa.ChunkedArray, ids: pa.Array, edges: TableData) -> I32:
    places = stoppable(lambda: pc.index_in(ends, value_set=ids), len(ends) + len(ids))
    if places.null_count:
        raise dangling(places.null_count, edges)
    return np.asarray(places.to_numpy(), dtype=np.int32)
