"""Incremental maintenance of an adjacency.

A commit adds rows in new fragments and marks replaced or removed rows as deleted. An adjacency built from an earlier
version is therefore valid for a later one, except for the edges added and removed and for the row numbers of nodes: an
updated node is a new row with the same id, and the rows behind a deleted row move up.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.csr import (
    EMPTY,
    I32,
    U64,
    Csr,
    contains,
    distinct,
    high,
    low,
    pack,
)
from omnigraph.engine.adjacency.csr_overlay import CsrOverlay, Renumbering, build_sparse
from omnigraph.engine.adjacency.ranged_csr import RangedCsr
from omnigraph.engine.cache.id_index import find_all
from omnigraph.engine.cache.ranged_arrays import AnyArray, RangedArray, complete_array
from omnigraph.engine.cache.row_mapping import FragmentLayout, map_rows, removed_by_fragment, removed_rows
from omnigraph.engine.cache.table_cache import Numbers, TableData, unmapped_bytes
from omnigraph.errors import Damaged
from omnigraph.fast_dataclass import dataclass

Arrays = tuple[AnyArray, ...]


@dataclass(frozen=True)
class BuiltAdjacency:
    """A fully built structure and the fragment layouts it was built from."""

    edges: FragmentLayout
    sources: FragmentLayout
    targets: FragmentLayout
    arrays: tuple[AnyArray | RangedArray, ...]

    @property
    def nbytes(self) -> int:
        """The size in memory. Arrays shared with a cached adjacency count twice."""
        layouts = self.edges.nbytes + self.sources.nbytes + self.targets.nbytes
        return layouts + unmapped_bytes(*self.arrays)

    def built_from_same(self, other: BuiltAdjacency) -> bool:
        """Return True if both were built from the same versions."""
        mine, others = (self.edges, self.sources, self.targets), (other.edges, other.sources, other.targets)
        return all(a.fragments == b.fragments for a, b in zip(mine, others, strict=True))


@dataclass(frozen=True)
class AdjacencyChanges:
    """The difference between the version an adjacency was built from and the current one."""

    src: Numbers
    dst: Numbers
    """The ends of the added edges, by current row number."""
    removed: Numbers
    """The removed edges, by old row number."""
    sources: Renumbering | None
    targets: Renumbering | None


def changes_max(rows: int, share: float) -> float:
    """Return the number of changed edges that an update accepts: a constant plus a share of the edges."""
    return share * rows + tuning.current.adjacency_changed_edges_min


def changed_edges(built: BuiltAdjacency, edges: TableData, share: float) -> tuple[list[int], Numbers] | None:
    """Return the new fragments of the edges and the removed edges, by old row number; None if they are too many."""
    known = {files for files, _, _ in built.edges.fragments}
    new = [at for at, (files, _, _) in enumerate(edges.fragments) if files not in known]
    gone = removed_rows(built.edges, edges)
    if gone is None or sum(map(edges.rows_in, new)) + len(gone) > changes_max(built.edges.row_count, share):
        return None
    return new, gone


def changes_since(
    built: BuiltAdjacency, edges: TableData, sources: TableData, targets: TableData, share: float
) -> AdjacencyChanges | None:
    """Return the changes since a structure was built; None if there are too many, or if the versions are unrelated."""
    changed = changed_edges(built, edges, share)
    if changed is None:
        return None
    new, gone = changed
    try:
        moved = renumbered(built.sources, sources)
        same = targets.folder == sources.folder
        moved_targets = moved if same else renumbered(built.targets, targets)
    except _Unrelated:
        return None
    added = edges.read_fragments(["src", "dst"], new)
    return AdjacencyChanges(
        _find(added["src"], sources, edges), _find(added["dst"], targets, edges), gone, moved, moved_targets
    )


class _Unrelated(Exception):
    """Raised if two versions have too little in common."""


def renumbered(earlier: FragmentLayout, nodes: TableData) -> Renumbering | None:
    """Return the old and new row numbers of the nodes; None if they are equal."""
    if nodes.extends(earlier.fragments):
        return None
    # The structures of all edge types at a node table are mostly of the same version of it.
    return nodes.derived(f"renumbered:{earlier.digest}", lambda: _renumbered(earlier, nodes))


def _renumbered(earlier: FragmentLayout, nodes: TableData) -> Renumbering:
    mapping = map_rows(earlier, nodes)
    if mapping is None:
        raise _Unrelated
    count = sum(earlier.rows(at) for at in range(len(earlier.fragments)))
    if mapping.row_of is None or mapping.stored_of is None:
        raise AssertionError("a version that does not extend the earlier one must have a row mapping")
    now = mapping.row_of[:count].astype(np.int64)
    gone = np.flatnonzero(now < 0)
    fresh = np.flatnonzero(mapping.stored_of >= count)
    if len(gone) and len(fresh):
        # Updated nodes: new rows with the ids of deleted rows.
        ids, numbers = _lost_ids(earlier, nodes)
        among = pc.index_in(nodes.take("id", fresh), value_set=ids)
        changed = among.is_valid().to_numpy(zero_copy_only=False)
        now[numbers[among.drop_null().to_numpy()]] = fresh[changed]
    then = np.full(nodes.row_count, -1, np.int64)
    here = np.flatnonzero(now >= 0)
    then[now[here]] = here
    return Renumbering(now, then)


def _lost_ids(earlier: FragmentLayout, nodes: TableData) -> tuple[pa.Array, Numbers]:
    """Return the ids and old row numbers of the rows that moved or were deleted."""
    places = removed_by_fragment(earlier, nodes)
    if places is None:
        raise _Unrelated
    numbers = np.concatenate([numbers for _, _, numbers in places])
    known = nodes.cache.column_of(nodes, earlier.fragments, "id")
    if known is not None:
        return known.take(pa.array(numbers)), numbers
    parts: list[pa.Array] = []
    for at, offsets, _ in places:
        if at is None:
            raise _Unrelated  # the fragment no longer exists, and its ids are not in memory
        parts.append(nodes.read_deleted(at, "id", offsets))
    return pa.concat_arrays(parts), numbers


def build_overlay(
    base: Csr | RangedCsr,
    near: tuple[Numbers, Renumbering | None, int],
    far: tuple[Numbers, Renumbering | None],
    removed: U64,
) -> CsrOverlay:
    """Build the overlay of the changes since `base`.

    `near` has the near ends of the added edges, the renumbering of the near nodes and their count; `far` has the far
    ends and their renumbering.
    """
    gained_near, near_renumbered, count = near
    gained_far, far_renumbered = far
    few = build_sparse(high(removed), low(removed), base.count) if len(removed) else None
    left = CsrOverlay(base, build_sparse(EMPTY, EMPTY, count), few, near_renumbered, far_renumbered)
    if near_renumbered is not None:
        gone = np.flatnonzero(near_renumbered.new_of < 0)
        dangling = int(base.degrees(gone).sum()) - (int(few.degrees(gone).sum()) if few is not None else 0)
        if dangling:
            raise Damaged(f"{dangling} edges end at nodes that do not exist", code="dangling_edge")
    fresh = ~left.connected(gained_near, gained_far)
    added = build_sparse(gained_near[fresh], gained_far[fresh], count)
    return CsrOverlay(base, added, few, near_renumbered, far_renumbered)


def removed_pairs(near: Numbers | I32, far: Numbers | I32, gone: Numbers, parallel: bool) -> U64:
    """Return the pairs that no edge connects once the edges `gone` are removed, ascending."""
    pairs = distinct(pack(near[gone], far[gone]))
    if not parallel or not len(pairs):
        return pairs
    touched = np.zeros(int(near.max()) + 1, bool)
    touched[near[gone]] = True
    rows = np.flatnonzero(touched[near])
    rows = rows[~contains(gone, rows)]
    return pairs[~contains(distinct(pack(near[rows], far[rows])), pairs)]


def mapped_ends(built: BuiltAdjacency, edges: TableData, found: AdjacencyChanges) -> tuple[I32, I32] | None:
    """Return the ends of all edges of the later version, in row order; None if the versions are unrelated."""
    related = map_rows(built.edges, edges)
    if related is None:
        return None
    ends: list[I32] = []
    src, dst = map(complete_array, built.arrays)
    pairs = ((src, found.src, found.sources), (dst, found.dst, found.targets))
    for before, gained, moved in pairs:
        if moved is None and not len(gained) and related.stored_of is None:
            ends.append(before)
            continue
        known = before if moved is None else moved.new_of[before]
        every = np.concatenate([known, gained])
        ends.append((every if related.stored_of is None else every[related.stored_of]).astype(np.int32))
    return ends[0], ends[1]


def _find(ends: pa.ChunkedArray, nodes: TableData, edges: TableData) -> Numbers:
    if not len(ends):
        return EMPTY
    places = find_all(nodes, ends.to_pylist())
    if places is None:
        missing = pc.sum(pc.invert(pc.is_in(ends, value_set=nodes.column("id")))).as_py()
        raise dangling(missing, edges)
    return places


def dangling(count: int, edges: TableData) -> Damaged:
    """Return the error for edges whose nodes do not exist."""
    return Damaged(f"{count} edges of '{edges.folder}' end at nodes that do not exist", code="dangling_edge")
