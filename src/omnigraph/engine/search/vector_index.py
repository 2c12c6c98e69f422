"""Approximate nearest-neighbour search: lists of rows by cluster (an inverted file) with their byte codes.

The rows of a segment are divided into clusters. A search scans the clusters that can contain one of the nearest rows,
best first, and compares the best rows in full as the exact search does. Only the choice of clusters is approximate.

A cluster is scored by an estimate of the largest similarity of its rows to the query:

    c · s + reach · √(1 − c²) · √(1 − s²)

s is the similarity of query and centroid and c the mean similarity of centroid and rows. With reach 0 this is the
similarity of an average row, with reach 1 that of a row that deviates from the centroid exactly towards the query. The
search ends at the first cluster whose score is below the similarity of the last row found that is needed. A filter
lowers that similarity, so a search with a filter scans more clusters. The reach and the number of clusters that are
always scanned are chosen when the segment is built (`cluster_calibration`).

A segment of which a large share would be scanned is scanned as a whole, and a search that would scan a large share of
all rows is exact. Rows that are in no cluster are scanned by every search.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.cache.segments import SegmentView
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.exec.cancellation import add_note, checkpoint
from omnigraph.engine.exec.native_calls import batches
from omnigraph.engine.search.cluster_lists import NEIGHBOURS, ClusterLists
from omnigraph.engine.search.vector_codes import Matrix, Near, VectorQuery
from omnigraph.engine.search.vector_scan import VectorColumn
from omnigraph.fast_dataclass import dataclass

_GROWTH_MIN = 4
_ABOVE_MAX = 1.2
_DEVIATIONS = 4
"""Standard deviations of the error of a similarity beyond which a row is no candidate."""
_NO_ROWS = np.zeros(0, np.int64)


@dataclass(frozen=True)
class _Clusters:
    """The clusters of all segments of a version, in one numbering."""

    centroids: Matrix
    cosines: Matrix
    spreads: Matrix
    """reach · √(1 − cosine²)"""
    sizes: Numbers
    lists: tuple[ClusterLists, ...]
    """The segments with clusters."""
    starts: tuple[int, ...]
    """The first stored row of each segment."""
    begins: tuple[int, ...]
    """The number of the first cluster of each segment."""


class VectorIndex:
    """The clusters of a vector column at one version."""

    def __init__(self, view: SegmentView[ClusterLists]) -> None:
        self.view = view

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return self.view.nbytes + sum(body.nbytes for body in self.view.bodies)

    def candidates(
        self, column: VectorColumn, query: VectorQuery, numbers: Numbers | None, wanted: int
    ) -> Numbers | None:
        """Return positions in `numbers` (None: all rows) that can be among the `wanted` nearest, with ties.

        None if the search must be exact: all rows are wanted, or too many clusters would be scanned.
        """
        found = self.probe(column, query, numbers, wanted)
        if found is None:
            missing = not len(self._clusters.sizes)
            add_note("exact: " + ("no clusters" if missing else "the clusters are not selective for this search"))
            return None
        rows, probed, scanned = found
        add_note(f"{probed:,} of {len(self._clusters.sizes):,} clusters probed, {scanned:,} codes compared")
        add_note(f"{len(rows):,} vectors in full")
        return rows

    def probe(
        self, column: VectorColumn, query: VectorQuery, numbers: Numbers | None, wanted: int
    ) -> tuple[Numbers, int, int] | None:
        """Return (positions, clusters scanned, rows scanned), or None as `candidates` does."""
        clusters = self._clusters
        total = column.row_count if numbers is None else len(numbers)
        rows_max = int(tuning.current.vector_index_scan_share * total)
        if not 0 < wanted <= total or not query.has_direction or not self._may_be_probed(numbers):
            return None
        scan = _Scan(query, wanted)
        self._scan_unclustered(column, numbers, scan)
        scores = self._scores(query)
        chosen = self._firsts(scores)
        left = np.ones(len(scores), bool)
        done = scanned = 0
        while len(chosen):
            checkpoint()
            left[chosen] = False
            chosen = np.concatenate([chosen, self._take_whole(left)])
            done += len(chosen)
            scanned += int(clusters.sizes[chosen].sum())
            if scanned > rows_max:
                return None
            self._scan(chosen, numbers, scan)
            above = np.flatnonzero(left & (scores >= scan.best[0]))
            # The bound only rises: fewer rows than those of all clusters above it will be scanned.
            if scanned + int(clusters.sizes[above].sum()) > _ABOVE_MAX * rows_max:
                return None
            chosen = _descending(above, scores)[: max(done, _GROWTH_MIN)]
        return scan.candidates(wanted), done, scanned + len(self._unclustered)

    def _may_be_probed(self, numbers: Numbers | None) -> bool:
        """Return True if there are clusters and the rows are all or a set in ascending order."""
        return len(self._clusters.sizes) > 0 and (numbers is None or bool((numbers[1:] > numbers[:-1]).all()))

    def _scores(self, query: VectorQuery) -> Matrix:
        """Return the estimated largest similarity of each cluster."""
        clusters = self._clusters
        unit = query.unit.astype(np.float32)
        step = max(tuning.current.vector_batch_elements // len(unit), 1)
        parts = [clusters.centroids[some] @ unit for some in batches(len(clusters.centroids), step)]
        similarity = np.concatenate(parts)
        scores: Matrix = clusters.cosines * similarity + clusters.spreads * sine(similarity)
        return scores

    def _firsts(self, scores: Matrix) -> Numbers:
        """Return the clusters that are always scanned: some of each segment, best first."""
        clusters = self._clusters
        least = [
            np.partition(scores[begin : begin + lists.count], -lists.first)[-lists.first]
            for lists, begin in zip(clusters.lists, clusters.begins, strict=True)
        ]
        chosen = np.flatnonzero(scores >= np.repeat(least, [lists.count for lists in clusters.lists]))
        return _descending(chosen, scores)

    def _take_whole(self, left: Mask) -> Numbers:
        """Return the clusters that are left of segments with a large share of their rows in the others; take them.

        The reach of a segment was chosen for searches that are exact in this case.
        """
        clusters, whole = self._clusters, [_NO_ROWS]
        for lists, begin in zip(clusters.lists, clusters.begins, strict=True):
            own = slice(begin, begin + lists.count)
            taken = int(clusters.sizes[own][~left[own]].sum())
            if taken > tuning.current.vector_index_scan_share * lists.row_count:
                whole.append(begin + np.flatnonzero(left[own]))
                left[own] = False
        return np.concatenate(whole)

    def _scan(self, chosen: Numbers, numbers: Numbers | None, scan: _Scan) -> None:
        """Scan some clusters."""
        clusters = self._clusters
        for lists, start, begin in zip(clusters.lists, clusters.starts, clusters.begins, strict=True):
            own = chosen[(chosen >= begin) & (chosen < begin + lists.count)] - begin
            places = lists.places(own)
            if numbers is None and self.view.row_of is None:
                found, similarities, margins = lists.codes.near(scan.query, places, scan.best, scan.share)
                positions = lists.rows[places[found]].astype(np.int64) + start
            else:
                every = self._positions(lists.rows[places].astype(np.int64) + start, numbers)
                some = np.flatnonzero(every >= 0)
                found, similarities, margins = lists.codes.near(scan.query, places[some], scan.best, scan.share)
                positions = every[some[found]]
            scan.near.append((positions, similarities, margins))

    def _scan_unclustered(self, column: VectorColumn, numbers: Numbers | None, scan: _Scan) -> None:
        """Scan the rows that are in no cluster."""
        rows = self._unclustered
        positions = _positions_in(numbers, rows)
        known = positions >= 0
        found, similarities, margins = column.near(scan.query, rows[known], scan.best, scan.share)
        scan.near.append((positions[known][found], similarities, margins))

    def _positions(self, stored: Numbers, numbers: Numbers | None) -> Numbers:
        """Return the positions in `numbers` (None: all rows) of stored rows, -1 for those that are not there."""
        row_of = self.view.row_of
        return _positions_in(numbers, stored if row_of is None else row_of[stored].astype(np.int64))

    @cached_property
    def _clusters(self) -> _Clusters:
        parts = [(body, start) for body, start in zip(self.view.bodies, self.view.starts, strict=True) if body.count]
        lists, starts = tuple(body for body, _ in parts), tuple(start for _, start in parts)
        begins = tuple(np.cumsum([0, *(body.count for body in lists)]).tolist()[:-1])
        if not lists:
            empty = np.zeros(0, np.float32)
            return _Clusters(np.zeros((0, 0), np.float32), empty, empty, _NO_ROWS, lists, starts, begins)
        single = lists[0].centroids if len(lists) == 1 else np.concatenate([body.centroids for body in lists])
        cosines = np.concatenate([body.cosines for body in lists])
        reaches = np.concatenate([np.full(body.count, body.reach, np.float32) for body in lists])
        sizes = np.concatenate([np.diff(body.offsets) for body in lists])
        return _Clusters(single, cosines, reaches * sine(cosines), sizes, lists, starts, begins)

    @cached_property
    def _unclustered(self) -> Numbers:
        """The rows of segments without clusters, ascending."""
        parts = zip(self.view.bodies, self.view.starts, strict=True)
        stored = [np.arange(start, start + body.row_count) for body, start in parts if not body.count]
        rows = self._positions(np.concatenate([*stored, _NO_ROWS]), None)
        return np.sort(rows[rows >= 0])


class _Scan:
    """A search and the rows that it found so far."""

    def __init__(self, query: VectorQuery, wanted: int) -> None:
        self.query = query
        self.best = np.full(max(wanted, NEIGHBOURS), -np.inf, np.float32)
        """A heap of the best lower bounds of similarities, the least first."""
        self.share = min(_DEVIATIONS / len(query.unit) ** 0.5, 1.0)
        """The part of the largest possible error of a similarity that counts.

        The error of a code is a vector whose direction does not depend on the query. Its effect on a similarity is its
        length at most, but with d dimensions seldom more than a few times the length by √d.
        """
        self.near: list[Near] = []

    def candidates(self, wanted: int) -> Numbers:
        """Return the rows that can be among the `wanted` nearest, unless the error of a code is improbable."""
        rows, similarities, margins = (np.concatenate(parts) for parts in zip(*self.near, strict=True))
        return np.sort(rows[similarities + margins >= np.sort(self.best)[-wanted]])


def _positions_in(numbers: Numbers | None, rows: Numbers) -> Numbers:
    """Return the positions of some rows in `numbers`, which ascend; -1 for those that are not there."""
    if numbers is None or not len(numbers):
        return rows if numbers is None else np.full(len(rows), -1)
    positions = np.searchsorted(numbers, rows)
    found = numbers[np.minimum(positions, len(numbers) - 1)] == rows
    return np.where(found, positions, -1)


def _descending(chosen: Numbers, scores: Matrix) -> Numbers:
    """Return some clusters by score, best first."""
    return chosen[np.argsort(-scores[chosen], kind="stable")]


def sine(cosines: Matrix) -> Matrix:
    """Return the sines of angles by their cosines."""
    sines: Matrix = np.sqrt(np.maximum(1 - cosines * cosines, 0))
    return sines
