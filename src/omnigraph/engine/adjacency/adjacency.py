"""Adjacency of one edge type at pinned table versions.

It is built from the tables once and then updated from the changes of later commits. For one version of an edge table
and of the node tables at its ends it gives the neighbours of each node, for traversal, and the edge rows of each node,
for hops that bind the edge. Each direction is built on first use. A structure of an earlier version, in memory or on
disk, is reused if the later version still contains its fragments.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.csr import (
    I32,
    Csr,
    EdgeRows,
    Neighbours,
    build,
    build_edge_rows,
    contains,
    high,
    loops_of,
    low,
    write_edge_rows,
    write_targets,
)
from omnigraph.engine.adjacency.csr_overlay import CsrOverlay
from omnigraph.engine.adjacency.edge_ends import NodeIds, number_ends
from omnigraph.engine.adjacency.edge_rows_overlay import EdgeRowsOverlay, SparseEdgeRows, oriented_edges
from omnigraph.engine.adjacency.incremental import (
    AdjacencyChanges,
    Arrays,
    BuiltAdjacency,
    build_overlay,
    changed_edges,
    changes_max,
    changes_since,
    mapped_ends,
    removed_pairs,
)
from omnigraph.engine.adjacency.ranged_csr import RangedCsr, RangedEdgeRows, csr_of, edge_rows_of
from omnigraph.engine.adjacency.stored_adjacency import RANGED, TABLES, arrays_of, read_built
from omnigraph.engine.cache import disk_cache
from omnigraph.engine.cache.build_turn import build_turn
from omnigraph.engine.cache.entry_writer import EntryWriter
from omnigraph.engine.cache.ranged_arrays import complete_array
from omnigraph.engine.cache.remote_cache import covered_rows
from omnigraph.engine.cache.row_mapping import FragmentLayout, map_rows
from omnigraph.engine.cache.table_cache import DataCache, Mask, Numbers, TableData, UseCounter
from omnigraph.engine.exec.cancellation import add_note, checkpoint
from omnigraph.errors import Hint, LimitReached
from omnigraph.query.plan.ir import Direction

AnyCsr = Csr | CsrOverlay | RangedCsr
AnyEdgeRows = EdgeRows | EdgeRowsOverlay | RangedEdgeRows
Ends = tuple[I32, I32]

_Ends = TypeVar("_Ends", Numbers, I32)

REVERSED: dict[Direction, Direction] = {"out": "in", "in": "out", "both": "both"}
_log = logging.getLogger(__name__)


class Adjacency(Protocol):
    """The edges of a hop: of one edge type or of several.

    Edge rows are not part of the protocol: a variable is bound to edges of one type only.
    """

    def neighbours(self, direction: Direction) -> Neighbours:
        """Return the neighbours along outgoing edges, incoming edges, or both."""

    def compacted(self, direction: Direction) -> Csr:
        """Return the neighbours as one CSR without overlay, for loops over many nodes."""

    def for_scan(self, direction: Direction) -> Neighbours:
        """Return the neighbours for a scan over all nodes."""

    def has_neighbours(self, direction: Direction, nodes: int) -> Mask:
        """Return a mask of the nodes that have a neighbour."""

    def loops(self, direction: Direction) -> Numbers:
        """Return the nodes with an edge to themselves, ascending."""


class EdgeAdjacency:
    """The adjacency of one edge table between two node tables, all at pinned versions."""

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
        """The node tables of the sources and of the targets."""
        return self._source_nodes, self._target_nodes

    @property
    def joins_one_table(self) -> bool:
        """True if both ends are in the same table. Only then can an edge be a loop."""
        return self._source_nodes is self._target_nodes

    # -- access ----------------------------------------------------------------------------------

    @classmethod
    def of(cls, edges: TableData, sources: TableData, targets: TableData, cache: DataCache) -> EdgeAdjacency:
        """Return the adjacency of these versions. It is cached with the edge table."""
        name = f"adjacency:{sources.key}:{targets.key}"
        return edges.derived(name, lambda: cls(edges, sources, targets, cache))

    def neighbours(self, direction: Direction) -> AnyCsr:
        """Return the neighbours along outgoing edges, incoming edges, or both."""
        return self._walk(direction)[0]

    def compacted(self, direction: Direction) -> Csr:
        """Return the neighbours as one CSR without overlay, for loops over many nodes."""
        walked = self.neighbours(direction)
        if isinstance(walked, Csr):
            return walked
        return self.edges.derived(self._names["compacted", direction], walked.compacted)

    def has_neighbours(self, direction: Direction, nodes: int) -> Mask:
        """Return a mask of the nodes that have a neighbour."""
        name = self._names["linked", direction]
        return self.edges.derived(name, lambda: self.neighbours(direction).degrees(np.arange(nodes)) > 0)

    def for_scan(self, direction: Direction) -> AnyCsr:
        """Return the neighbours for a scan over all nodes; an overlay is compacted after a few scans."""
        walked = self.neighbours(direction)
        if isinstance(walked, Csr):
            return walked
        if isinstance(walked, RangedCsr):
            return self.compacted(direction)
        uses = self.edges.derived(self._names["uses", direction], UseCounter)
        return walked if uses.increment() < tuning.current.scans_before_compaction else self.compacted(direction)

    def loops(self, direction: Direction) -> Numbers:
        """Return the nodes with an edge to themselves, ascending."""
        return self._walk(direction)[1]

    def edge_rows(self, direction: Direction) -> AnyEdgeRows:
        """Return the edge rows along outgoing edges, incoming edges, or both. A loop occurs once."""
        return self.edges.derived(self._names["edge_rows", direction], lambda: self._edge_rows(direction))

    def ends(self) -> Ends:
        """Return the row numbers of each edge's source and target, in row order."""
        return self.edges.derived(self._names["ends", "out"], self._ends)

    def is_missing(self, direction: Direction, share: float) -> bool:
        """Return True if no structure on disk contains the neighbours of all edges except at most this share."""
        built = self._load(direction)
        if built is None or changed_edges(built, self.edges, share) is None:
            built = self._fetch(direction)
        return built is None or changed_edges(built, self.edges, share) is None

    # -- building --------------------------------------------------------------------------------

    def _walk(self, direction: Direction) -> tuple[AnyCsr, Numbers]:
        return self.edges.derived(self._names["neighbours", direction], lambda: self._neighbours(direction))

    def _neighbours(self, direction: Direction) -> tuple[AnyCsr, Numbers]:
        """Update the last structure, of this process or an earlier one; build a new one if too much changed."""
        found = self._updated(self._base(direction), direction) or self._updated(self._fetch(direction), direction)
        if found is not None:
            return found
        # A thread with the turn must not wait for one without it.
        src, dst = self.ends()
        with self._turn() as shared:
            found = self._updated(self._load(direction), direction) if shared else None
            if found is not None:
                return found
            with self._logged(f"building the CSR of {len(src):,} edges"):
                kept = self._write(direction, partial(self._write_neighbours, direction, (src, dst)))
                if kept is None:
                    self._check_memory(len(src) * (8 if direction == "both" else 4))
                    near, far = oriented(src, dst, direction)
                    csr = build(near, far, self._near(direction).row_count)
                    kept = self._save(direction, (csr.offsets, csr.targets, loops_of(src, dst)))
        offsets, targets, loops = kept
        return Csr(offsets, targets), loops

    def _write_neighbours(self, direction: Direction, ends: Ends, writer: EntryWriter) -> None:
        src, dst = ends
        pairs = [oriented(src, dst, one) for one in (("out", "in") if direction == "both" else (direction,))]
        with writer.streams({"targets": np.dtype(np.int32)}) as files:
            write = files["targets"].write
            offsets = write_targets(
                pairs, self._near(direction).row_count, lambda part: write(part.tobytes()), self._memory
            )
        writer.put("offsets", offsets)
        writer.put("loops", loops_of(src, dst))

    def _updated(self, built: BuiltAdjacency | None, direction: Direction) -> tuple[AnyCsr, Numbers] | None:
        return self._overlaid(built, direction) if built is not None else None

    def _overlaid(self, built: BuiltAdjacency, direction: Direction) -> tuple[AnyCsr, Numbers] | None:
        found = self._changes(built, tuning.current.adjacency_overlay_share)
        if found is None:
            return None
        offsets, targets, loops = built.arrays
        base, loops = csr_of(offsets, targets), complete_array(loops)
        count = self._near(direction).row_count
        moved = (found.targets, found.sources) if direction == "in" else (found.sources, found.targets)
        if not len(found.src) and not len(found.removed) and moved == (None, None) and base.count == count:
            return base, loops
        removed = np.zeros(0, np.uint64)
        if len(found.removed):
            ends = self._base("ends")
            if ends is None or not ends.built_from_same(built):
                return None
            src, dst = map(complete_array, ends.arrays)
            gone = found.removed
            if direction == "both":
                gone = np.concatenate([gone, gone + len(src)])
            near, far = oriented(src, dst, direction)
            removed = removed_pairs(near, far, gone, parallel=len(near) != len(targets))
            loops = loops[~contains(low(removed)[high(removed) == low(removed)], loops)]
        if found.sources is not None:
            loops = np.sort(found.sources.new_of[loops])
            loops = loops[loops >= 0]
        gained_near, gained_far = oriented(found.src, found.dst, direction)
        overlay = build_overlay(base, (gained_near, moved[0], count), (gained_far, moved[1]), removed)
        return overlay, np.union1d(loops, found.src[found.src == found.dst])

    def _ends(self) -> Ends:
        ends = self._updated_ends(self._base("ends")) or self._updated_ends(self._fetch("ends"))
        if ends is not None:
            return ends
        # A thread with the turn must not wait for one without it: it may read a column.
        sources = NodeIds(self._source_nodes, self._memory)
        targets = sources if self.joins_one_table else NodeIds(self._target_nodes, self._memory)
        with self._turn() as shared:
            ends = self._updated_ends(self._load("ends")) if shared else None
            if ends is not None:
                return ends
            with self._logged(f"resolving the ends of {self.edges.row_count:,} edges"):
                kept = self._write("ends", partial(self._write_ends, sources, targets))
                if kept is None:
                    kept = self._save("ends", self._ends_in_memory(sources, targets))
        src, dst = kept
        return src, dst

    def _write_ends(self, sources: NodeIds, targets: NodeIds, writer: EntryWriter) -> None:
        scratch = writer.scratch()
        for name, ids in (("src", sources), ("dst", targets)):
            with writer.mapped(name, (self.edges.row_count,), np.dtype(np.int32)) as numbers:
                number_ends(self.edges, (name,), ids, numbers, scratch)

    def _ends_in_memory(self, sources: NodeIds, targets: NodeIds) -> Ends:
        self._check_memory(8 * self.edges.row_count)
        src, dst = np.empty(self.edges.row_count, np.int32), np.empty(self.edges.row_count, np.int32)
        with tempfile.TemporaryDirectory(prefix="omnigraph-ends-") as scratch:
            number_ends(self.edges, ("src",), sources, src, Path(scratch))
            number_ends(self.edges, ("dst",), targets, dst, Path(scratch))
        return src, dst

    def _updated_ends(self, built: BuiltAdjacency | None) -> Ends | None:
        """Return the ends with the changes since an earlier version; None if too much changed."""
        found = self._changes(built, tuning.current.adjacency_update_share) if built is not None else None
        mapping = mapped_ends(built, self.edges, found) if built is not None and found is not None else None
        if found is not None and mapping is not None:
            share = tuning.current.adjacency_overlay_share
            if len(found.src) + len(found.removed) > changes_max(len(mapping[0]), share):
                src, dst = self._save("ends", mapping)
                return src, dst
        return mapping

    def _edge_rows(self, direction: Direction) -> AnyEdgeRows:
        """Update the last structure, of this process or an earlier one; build a new one if too much changed."""
        kind = f"edges_{direction}"
        for built in (self._base(kind), self._fetch(kind)):
            found = self._overlaid_edge_rows(built, direction) if built is not None else None
            if found is not None:
                return found
        src, dst = self.ends()
        near, far, rows = oriented_edges(src, dst, np.arange(len(src), dtype=np.int32), direction)
        count = self._near(direction).row_count

        def write(writer: EntryWriter) -> None:
            kind = np.dtype(np.int32)
            with writer.streams({"edges": kind, "targets": kind}) as files:

                def add(some: I32, ends: I32) -> None:
                    files["edges"].write(some.tobytes())
                    files["targets"].write(ends.tobytes())

                offsets = write_edge_rows(near, far, rows, count, add, self._memory)
            writer.put("offsets", offsets)

        with self._logged(f"building the incident edges of {len(src):,} edges"):
            kept = self._write(kind, write)
            if kept is None:
                self._check_memory(8 * len(near))
                complete = build_edge_rows(near, far, rows, count)
                kept = self._save(kind, (complete.offsets, complete.edges, complete.targets))
        return EdgeRows(*kept)

    def _overlaid_edge_rows(self, built: BuiltAdjacency, direction: Direction) -> AnyEdgeRows | None:
        found = self._changes(built, tuning.current.adjacency_overlay_share)
        mapping = map_rows(built.edges, self.edges) if found is not None else None
        if found is None or mapping is None:
            return None
        base = edge_rows_of(built.arrays)
        before = built.edges.row_count
        moved = (found.targets, found.sources) if direction == "in" else (found.sources, found.targets)
        unchanged = not len(found.src) and mapping.row_of is None and moved == (None, None)
        if unchanged and base.count == self._near(direction).row_count:
            return base
        if mapping.stored_of is None:
            fresh = np.arange(before, self.edges.row_count)
        else:
            fresh = np.flatnonzero(mapping.stored_of >= before)
        added = SparseEdgeRows.of(*oriented_edges(found.src, found.dst, fresh, direction))
        return EdgeRowsOverlay(base, added, mapping.row_of, *moved)

    def _near(self, direction: Direction) -> TableData:
        return self._target_nodes if direction == "in" else self._source_nodes

    # -- reuse of earlier versions ---------------------------------------------------------------

    def _base(self, kind: str) -> BuiltAdjacency | None:
        built: BuiltAdjacency | None = self._cache.base(self._subject(kind))
        built = built if built is not None else self._load(kind)
        return built if built is not None else self._fetch(kind)

    def _fetch(self, kind: str) -> BuiltAdjacency | None:
        """Read a structure from the object store if it contains more edges than the local one; None if it does not."""
        remote = self._cache.remote
        if remote is None or self.edges.row_count < tuning.current.adjacency_disk_edges_min:
            return None
        local = self._load(kind)
        rows_of = self.edges.rows_by_file
        covered = 0 if local is None else covered_rows([local.edges.fragments], rows_of)
        found = remote.fetch(
            [self._subject(kind)],
            lambda abouts: covered_rows((about["edges"]["pieces"] for about in abouts), rows_of) > covered,
            () if kind == "ends" else RANGED,
        )
        return self._load(kind) if found else None

    def _load(self, kind: str) -> BuiltAdjacency | None:
        """Read the last structure from the disk cache; None if there is none."""
        what = self._subject(kind)
        discard = self._cache.keep_in is not None
        cache = self._cache
        built = disk_cache.load(
            cache.folder, what, lambda kept: read_built(kept, kind), discard=discard, source=cache.remote
        )
        if built is not None:
            self._cache.set_base(what, built)
        return built

    def _turn(self) -> AbstractContextManager[bool]:
        """Return the turn at building a structure that is kept on disk."""
        large = self.edges.row_count >= tuning.current.adjacency_disk_edges_min
        return build_turn(self._cache.turn_folder if large else None)

    @property
    def _memory(self) -> int | None:
        """The memory of a build; None does not limit it."""
        return None if self._cache.memory is None else self._cache.memory.build_bytes

    def _check_memory(self, size: int) -> None:
        """Raise `LimitReached` for a structure that is not kept on disk and exceeds the memory of a query."""
        budget = self._cache.memory
        if budget is not None and size > budget.query_bytes:
            raise LimitReached(
                f"the adjacency of {self.edges.row_count:,} edges needs about {size:,} bytes in memory; "
                f"a query may use {budget.query_bytes:,}",
                resource="bytes",
                limit=budget.query_bytes,
                actual=size,
                hint=Hint(
                    "call optimize() on a graph that is opened for writing, which keeps it on disk, or open the graph "
                    "with more memory: og.open(uri, memory=…)",
                    cli="run 'omnigraph optimize', which keeps it on disk, or set OMNIGRAPH_MEMORY to a larger size",
                ),
            )

    def _write(self, kind: str, write: Callable[[EntryWriter], None]) -> Arrays | None:
        """Write a large structure to disk in parts and return its arrays, mapped; None if it is not kept on disk."""
        if self._cache.keep_in is None or self.edges.row_count < tuning.current.adjacency_disk_edges_min:
            return None
        try:
            with self.writing(kind) as writer:
                write(writer)
        except OSError as error:
            add_note(f"not kept: {error.strerror}")
            return None
        built = self._load(kind)
        same = built is not None and built.built_from_same(BuiltAdjacency(*self._layouts(), ()))
        return tuple(map(complete_array, built.arrays)) if built is not None and same else None

    @contextmanager
    def writing(self, kind: str) -> Iterator[EntryWriter]:
        """Write an entry of the disk cache: 'ends', a direction, or 'edges_' and a direction.

        Raises `OSError` if it cannot be written.
        """
        folder = self._cache.keep_in
        assert folder is not None
        about: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        for name, layout in zip(TABLES, self._layouts(), strict=True):
            layout.write(name, about, arrays)
        with disk_cache.writing_entry(folder, self._subject(kind), about) as writer:
            yield writer
            for name, array in arrays.items():
                writer.put(name, array)

    def use_written(self, kinds: Iterable[str]) -> None:
        """Use the entries that `writing` wrote in place of those of earlier versions in memory."""
        for kind in kinds:
            self._load(kind)

    def _layouts(self) -> tuple[FragmentLayout, FragmentLayout, FragmentLayout]:
        return (
            FragmentLayout.of(self.edges),
            FragmentLayout.of(self._source_nodes),
            FragmentLayout.of(self._target_nodes),
        )

    def _save(self, kind: str, arrays: Arrays) -> Arrays:
        """Keep a structure for later versions; a large one on disk. Return its arrays, mapped if they are on disk."""
        layouts = self._layouts()
        what = self._subject(kind)
        built = BuiltAdjacency(*layouts, arrays)
        self._cache.set_base(what, built)
        if self.edges.row_count >= tuning.current.adjacency_disk_edges_min:
            about: dict[str, Any] = {}
            kept = dict(zip(arrays_of(kind), arrays, strict=True))
            for name, layout in zip(TABLES, layouts, strict=True):
                layout.write(name, about, kept)
            disk_cache.save(self._cache.keep_in, what, about, kept)
            mapped = self._load(kind) if self._cache.keep_in is not None else None
            if mapped is not None and mapped.built_from_same(built):
                return tuple(map(complete_array, mapped.arrays))
            self._cache.set_base(what, built)
        return arrays

    def _changes(self, built: BuiltAdjacency, share: float) -> AdjacencyChanges | None:
        return changes_since(built, self.edges, self._source_nodes, self._target_nodes, share)

    def _subject(self, kind: str) -> disk_cache.Subject:
        return ("adjacency", self.edges.folder, self._source_nodes.folder, self._target_nodes.folder, kind)

    @contextmanager
    def _logged(self, what: str) -> Iterator[None]:
        """Log the start and the duration of a long operation."""
        checkpoint()
        add_note(what)
        logged = self.edges.row_count >= tuning.current.adjacency_log_edges_min
        started = time.perf_counter()
        if logged:
            _log.info("%s: %s …", self.edges.folder, what)
        yield
        if logged:
            _log.info("%s: %s: %.1f s", self.edges.folder, what, time.perf_counter() - started)


_KINDS = ("neighbours", "compacted", "uses", "edge_rows", "ends", "linked")


def oriented(src: _Ends, dst: _Ends, direction: Direction) -> tuple[_Ends, _Ends]:
    """Return the (near, far) ends of edges that are followed in a direction."""
    if direction == "both":
        return np.concatenate([src, dst]), np.concatenate([dst, src])
    return (dst, src) if direction == "in" else (src, dst)
