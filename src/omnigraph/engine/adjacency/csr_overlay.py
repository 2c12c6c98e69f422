"""Variants of `Csr` for incremental maintenance.

`SparseCsr` holds the neighbours of a few nodes; its size depends on its pairs, not on the number of nodes.
`CsrOverlay` combines a complete CSR with two sparse ones: pairs added and pairs removed since it was built. Both
implement `Neighbours`.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from omnigraph.engine.adjacency.csr import EMPTY, Csr, Room, build, unbounded
from omnigraph.engine.adjacency.ranged_csr import RangedCsr
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.fast_dataclass import dataclass


@dataclass(frozen=True)
class SparseCsr:
    """The neighbours of a few of `count` nodes."""

    count: int
    sources: Numbers
    """The nodes with neighbours, ascending."""
    rows: Csr
    """Their neighbours, by position in `sources`."""

    def expand(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers]:
        """Return the neighbours of each source: (position in `sources`, neighbour)."""
        at, places = self._find(sources)
        positions, targets = self.rows.expand(places, room)
        return at[positions], targets

    def far(self, sources: Numbers, room: Room = unbounded) -> Numbers:
        """Return the neighbours of all sources, with repetitions."""
        return self.rows.far(self._find(sources)[1], room)

    def degrees(self, sources: Numbers) -> Numbers:
        """Return the number of neighbours of each source."""
        at, places = self._find(sources)
        degrees = np.zeros(len(sources), np.int64)
        degrees[at] = self.rows.degrees(places)
        return degrees

    def totals(self, values: Numbers | None) -> Numbers:
        """Return for each node the sum of its neighbours' values; without values, its degree."""
        totals = np.zeros(self.count, np.int64)
        totals[self.sources] = self.rows.totals(values)
        return totals

    def connected(self, sources: Numbers, targets: Numbers) -> Mask:
        """Return for each pair whether an edge connects it."""
        at, places = self._find(sources)
        found = np.zeros(len(sources), bool)
        found[at] = self.rows.connected(places, targets[at])
        return found

    def _find(self, sources: Numbers) -> tuple[Numbers, Numbers]:
        """Return (positions of the sources with neighbours, their rows)."""
        places = np.searchsorted(self.sources, sources)
        inside = np.minimum(places, len(self.sources) - 1)
        at = np.flatnonzero(self.sources[inside] == sources) if len(self.sources) else EMPTY
        return at, places[at]


@dataclass(frozen=True)
class Renumbering:
    """The change of row numbers of the nodes at one end since an adjacency was built."""

    new_of: Numbers
    """Old number → new number; -1 if the node no longer exists."""
    old_of: Numbers
    """New number → old number; -1 if the node is new."""

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return int(self.new_of.nbytes + self.old_of.nbytes)


@dataclass(frozen=True)
class CsrOverlay:
    """A CSR with the pairs added and removed since it was built. The cost of a commit is proportional to its changes.

    `base` and `removed` use the row numbers of the version they were built from, `added` those of the current version.
    """

    base: Csr | RangedCsr
    added: SparseCsr
    removed: SparseCsr | None = None
    near_renumbered: Renumbering | None = None
    far_renumbered: Renumbering | None = None

    @property
    def count(self) -> int:
        """The number of nodes."""
        return self.added.count

    @cached_property
    def _changed(self) -> Mask:
        """Mask of the nodes whose neighbours changed. Most lookups concern other nodes and read the base only."""
        touched = np.zeros(self.count, bool)
        touched[self.added.sources] = True
        if self.near_renumbered is None:
            touched[self.base.count :] = True
        else:
            touched |= self.near_renumbered.old_of < 0
        if self.removed is not None:
            removed_rows = (
                self.removed.sources
                if self.near_renumbered is None
                else self.near_renumbered.new_of[self.removed.sources]
            )
            touched[removed_rows[removed_rows >= 0]] = True
        return touched

    def expand(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers]:
        """Return the neighbours of each source: (position in `sources`, neighbour)."""
        touched = self._changed[sources]
        if not touched.any():
            positions, targets = self.base.expand(self._near_old(sources), room)
            return positions, self._far_new(targets)
        plain, others = np.flatnonzero(~touched), np.flatnonzero(touched)
        more, added = self._expand_changed(sources[others])
        positions, targets = self.base.expand(self._near_old(sources[plain]), lambda rows: room(rows + len(added)))
        return np.concatenate([plain[positions], others[more]]), np.concatenate([self._far_new(targets), added])

    def _expand_changed(self, sources: Numbers) -> tuple[Numbers, Numbers]:
        positions, targets = self._old(sources)
        more, others = self.added.expand(sources)
        return np.concatenate([positions, more]), np.concatenate([targets, others])

    def split_unchanged(self, sources: Numbers) -> tuple[Numbers, Numbers]:
        """Return (the unchanged sources by their old row numbers, the changed sources)."""
        touched = self._changed[sources]
        if not touched.any():
            return self._near_old(sources), EMPTY
        return self._near_old(sources[~touched]), sources[touched]

    def far(self, sources: Numbers, room: Room = unbounded) -> Numbers:
        """Return the neighbours of all sources, with repetitions."""
        if self._changed[sources].any():
            return self.expand(sources, room)[1]
        return self._far_new(self.base.far(self._near_old(sources), room))

    def degrees(self, sources: Numbers) -> Numbers:
        """Return the number of neighbours of each source."""
        touched = self._changed[sources]
        if not touched.any():
            return self.base.degrees(self._near_old(sources))
        plain, others = np.flatnonzero(~touched), sources[touched]
        degrees = np.empty(len(sources), np.int64)
        degrees[plain] = self.base.degrees(self._near_old(sources[plain]))
        degrees[touched] = self._degrees_changed(others)
        return degrees

    def _degrees_changed(self, sources: Numbers) -> Numbers:
        degrees = self.added.degrees(sources)
        old, known = self._known(sources)
        before = self.base.degrees(known)
        if self.removed is not None:
            before = before - self.removed.degrees(known)
        degrees[slice(None) if old is None else old] += before
        return degrees

    def _near_old(self, sources: Numbers) -> Numbers:
        """Return the old row numbers of unchanged nodes."""
        return sources if self.near_renumbered is None else self.near_renumbered.old_of[sources]

    def _far_new(self, targets: Numbers) -> Numbers:
        return targets if self.far_renumbered is None else self.far_renumbered.new_of[targets]

    def totals(self, values: Numbers | None) -> Numbers:
        """Return for each node the sum of its neighbours' values; without values, its degree."""
        then = values
        if values is not None and self.far_renumbered is not None:
            there = self.far_renumbered.new_of >= 0
            then = np.zeros(len(there), values.dtype)
            then[there] = values[self.far_renumbered.new_of[there]]
        before = self.base.totals(then)
        if self.removed is not None:
            before = before - self.removed.totals(then)
        totals = self.added.totals(values)
        if self.near_renumbered is None:
            totals[: self.base.count] += before
        else:
            known = np.flatnonzero(self.near_renumbered.old_of >= 0)
            totals[known] += before[self.near_renumbered.old_of[known]]
        return totals

    def connected(self, sources: Numbers, targets: Numbers) -> Mask:
        """Return for each pair whether an edge connects it."""
        touched = self._changed[sources]
        if touched.all():
            return self._connected_changed(sources, targets)
        plain = np.flatnonzero(~touched)
        ends = targets[plain] if self.far_renumbered is None else self.far_renumbered.old_of[targets[plain]]
        found = np.empty(len(sources), bool)
        found[plain] = self.base.connected(self._near_old(sources[plain]), ends)
        if len(plain) < len(sources):
            found[touched] = self._connected_changed(sources[touched], targets[touched])
        return found

    def _connected_changed(self, sources: Numbers, targets: Numbers) -> Mask:
        found = self.added.connected(sources, targets)
        old, known = self._known(sources)
        ends = targets if old is None else targets[old]
        if self.far_renumbered is not None:
            ends = self.far_renumbered.old_of[ends]
        before = self.base.connected(known, ends)
        if self.removed is not None:
            before &= ~self.removed.connected(known, ends)
        found[slice(None) if old is None else old] |= before
        return found

    def compacted(self) -> Csr:
        """Merge the overlay into a complete CSR."""
        if self.removed is not None or self.near_renumbered is not None or self.far_renumbered is not None:
            return build(*self.expand(np.arange(self.count)), self.count)
        base = self.base if isinstance(self.base, Csr) else self.base.compacted()
        few = self.added.rows
        near = np.repeat(self.added.sources, np.diff(few.offsets))
        offsets = np.full(self.count + 1, len(base.targets), np.int64)
        offsets[: base.count + 1] = base.offsets
        places = Csr(offsets, base.targets).positions_of(near, few.targets)
        targets = np.insert(base.targets, places, few.targets)
        offsets[1:] += np.cumsum(np.bincount(near, minlength=self.count))
        return Csr(offsets, targets)

    def _old(self, sources: Numbers) -> tuple[Numbers, Numbers]:
        """Return the neighbours that remain from the base: (position in `sources`, neighbour)."""
        old, known = self._known(sources)
        positions, targets = self.base.expand(known)
        if self.removed is not None:
            kept = ~self.removed.connected(known[positions], targets)
            positions, targets = positions[kept], targets[kept]
        return positions if old is None else old[positions], self._far_new(targets)

    def _known(self, sources: Numbers) -> tuple[Numbers | None, Numbers]:
        """Return (positions of the sources that are in the base, their old row numbers); None if all are."""
        if self.near_renumbered is not None:
            then = self.near_renumbered.old_of[sources]
            old = np.flatnonzero(then >= 0)
            return old, then[old]
        if not len(sources) or int(sources.max()) < self.base.count:
            return None, sources
        old = np.flatnonzero(sources < self.base.count)
        return old, sources[old]


def build_sparse(near: Numbers, far: Numbers, count: int) -> SparseCsr:
    """Build the sparse CSR of a few pairs."""
    sources, places = np.unique(near, return_inverse=True)
    return SparseCsr(count, sources, build(places, far, len(sources)))
