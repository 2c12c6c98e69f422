"""Approximate nearest-neighbour search: lists of rows by cluster (an inverted file) over the byte codes.

The rows of a segment are divided into clusters. A search scans the clusters that can contain one of the nearest rows,
best first, and compares the best rows in full as the exact search does. Only the choice of clusters is approximate.

A cluster is scored by an estimate of the largest similarity of its rows to the query:

    c · s + reach · √(1 − c²) · √(1 − s²)

s is the similarity of query and centroid and c the mean similarity of centroid and rows. With reach 0 this is the
similarity of an average row, with reach 1 that of a row that deviates from the centroid exactly towards the query. The
search ends at the first cluster whose score is below the similarity of the last row found that is needed. A filter
lowers that similarity, so a search with a filter scans more clusters. The reach and the number of clusters that are
always scanned are chosen when the segment is built: the cheapest that find enough of the neighbours of sample queries.
The recall is measured with other sample queries and kept with the segment.

A search that would scan a large share of the rows is exact. Rows that are in no cluster are scanned by every search.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.cache import disk_cache, entry_checks
from omnigraph.engine.cache.columns import ColumnSource
from omnigraph.engine.cache.entry_writer import EntryWriter
from omnigraph.engine.cache.segments import Segment, SegmentBuilder, SegmentView, load_segments, segments_of
from omnigraph.engine.cache.table_cache import DataCache, Mask, Numbers, TableData, unmapped_bytes
from omnigraph.engine.cache.union_table import joined_segments
from omnigraph.engine.exec.cancellation import add_note, checkpoint
from omnigraph.engine.search.clustering import assign_rows, compute_centroids
from omnigraph.engine.search.vector_scan import Floats, Matrix, VectorColumn, VectorQuery, vectors_of
from omnigraph.fast_dataclass import dataclass

CLUSTERS = "clusters"
NEIGHBOURS = 10
"""The recall is measured for this many neighbours; a search for fewer scans as many clusters."""
RECALL_MIN = 0.95
_SEED = 20_240_517
_TARGETS = (0.97, 0.985, 0.995)
"""Recall of the sample queries for which probes are chosen; the next one is tried if the measured recall is too low."""
_REACHES = tuple(step / 20 for step in range(21))
_PROBES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_GROWTH_MIN = 4
_ABOVE_MAX = 1.2
_DEVIATIONS = 6
"""Standard deviations of the error of a similarity beyond which a row is no candidate."""
_MIXED_KIND = 2
_MIXED_SIZE = 16
"""Stored vectors in a sample query that belongs to no cluster."""
_MIXED_WEIGHT = 0.1
"""Such queries are rarer: their cost counts as this share of that of other queries."""
_FACTS = ("reach", "first", "recall", "probed", "scanned")
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class ClusterLists:
    """The rows of a segment by cluster, and how to search them. Without clusters, all rows are scanned."""

    row_count: int
    """The number of rows of the segment, with and without a vector."""
    centroids: Matrix
    cosines: Matrix
    """The mean similarity of the rows of a cluster to its centroid."""
    offsets: Numbers
    rows: np.ndarray[Any, np.dtype[np.int32]]
    """The rows of the segment, cluster by cluster; rows without a vector are in none."""
    reach: float = 1.0
    first: int = 1
    """Clusters that are always scanned."""
    recall: float = 1.0
    """Share of the nearest `NEIGHBOURS` rows of sample queries that the search found."""
    probed: float = 0.0
    """Mean number of clusters that these searches scanned."""
    scanned: float = 0.0
    """Mean share of the rows that they scanned."""

    @property
    def nbytes(self) -> int:
        """The size in memory; 0 for mapped arrays."""
        return unmapped_bytes(self.centroids, self.cosines, self.offsets, self.rows)

    @property
    def count(self) -> int:
        """The number of clusters."""
        return len(self.centroids)


@dataclass(frozen=True)
class _Search:
    """The clusters of all segments of a version, in one numbering."""

    centroids: Matrix
    cosines: Matrix
    spreads: Matrix
    """reach · √(1 − cosine²)"""
    sizes: Numbers
    firsts: int


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

        None if the search must be exact: the rows are few, or too many clusters would be scanned.
        """
        found = self.probe(column, query, numbers, wanted)
        if found is None:
            add_note("exact: the clusters are not selective for this search")
            return None
        rows, probed, scanned = found
        add_note(f"{probed:,} of {len(self._search.sizes):,} clusters probed, {scanned:,} codes compared")
        add_note(f"{len(rows):,} vectors in full")
        return rows

    def probe(
        self, column: VectorColumn, query: VectorQuery, numbers: Numbers | None, wanted: int
    ) -> tuple[Numbers, int, int] | None:
        """Return (positions, clusters scanned, rows scanned), or None as `candidates` does."""
        search = self._search
        total = column.row_count if numbers is None else len(numbers)
        rows_max = int(tuning.current.vector_index_scan_share * total)
        if not wanted or not query.has_direction or not self._may_be_probed(numbers):
            return None
        best = np.full(max(wanted, NEIGHBOURS), -np.inf, np.float32)
        parts = [self._scan(column, query, self._unclustered, numbers, best)]
        scores = self._scores(query)
        order = np.argsort(-scores, kind="stable")
        scores = scores[order]
        done, step, scanned = 0, search.firsts, 0
        while done < len(order):
            checkpoint()
            least = best[0] if done else -np.inf
            end = done + int(np.count_nonzero(scores[done : done + step] >= least))
            if end == done:
                break
            chosen = order[done:end]
            scanned += int(search.sizes[chosen].sum())
            # The bound only rises: fewer rows than those of all clusters above it will be scanned.
            above = int(search.sizes[order[end:][scores[end:] >= least]].sum()) if done else 0
            if scanned > rows_max or scanned + above > _ABOVE_MAX * rows_max:
                return None
            parts.append(self._scan(column, query, self._listed(chosen), numbers, best))
            done, step = end, max(end, _GROWTH_MIN)
        positions, upper, errors = (np.concatenate(values) for values in zip(*parts, strict=True))
        return np.sort(positions[_is_candidate(upper, errors, query, wanted)]), done, scanned + len(self._unclustered)

    def _may_be_probed(self, numbers: Numbers | None) -> bool:
        """Return True if there are clusters and the rows are all or a set in ascending order."""
        return len(self._search.sizes) > 0 and (numbers is None or bool((numbers[1:] > numbers[:-1]).all()))

    def _scores(self, query: VectorQuery) -> Matrix:
        """Return the estimated largest similarity of each cluster."""
        search = self._search
        similarity = search.centroids @ query.unit.astype(np.float32)
        scores: Matrix = search.cosines * similarity + search.spreads * _sine(similarity)
        return scores

    def _scan(
        self, column: VectorColumn, query: VectorQuery, rows: Numbers, numbers: Numbers | None, best: Matrix
    ) -> tuple[Numbers, Matrix, Matrix]:
        """Return the positions of some rows in `numbers`, and the bounds of their similarities."""
        positions = rows
        if numbers is not None:
            positions = np.searchsorted(numbers, rows)
            found = numbers[np.minimum(positions, len(numbers) - 1)] == rows
            positions, rows = positions[found], rows[found]
        return positions, *column.bounds(query, rows, best)

    @cached_property
    def _search(self) -> _Search:
        bodies = [body for body in self.view.bodies if body.count]
        if not bodies:
            empty = np.zeros(0, np.float32)
            return _Search(np.zeros((0, 0), np.float32), empty, empty, _NONE, 0)
        single = bodies[0].centroids if len(bodies) == 1 else np.concatenate([body.centroids for body in bodies])
        cosines = np.concatenate([body.cosines for body in bodies])
        reaches = np.concatenate([np.full(body.count, body.reach, np.float32) for body in bodies])
        sizes = np.concatenate([np.diff(body.offsets) for body in bodies])
        return _Search(single, cosines, reaches * _sine(cosines), sizes, sum(body.first for body in bodies))

    @cached_property
    def _places(self) -> tuple[list[tuple[ClusterLists, int]], Numbers]:
        """The segments with clusters and their first stored rows, and the number of the first cluster of each."""
        parts = [(body, start) for body, start in zip(self.view.bodies, self.view.starts, strict=True) if body.count]
        return parts, np.cumsum([0, *(body.count for body, _ in parts)])

    def _listed(self, clusters: Numbers) -> Numbers:
        """Return the live rows of some clusters."""
        parts, begins = self._places
        stored: list[Numbers] = []
        for at, (body, start) in enumerate(parts):
            own = clusters if len(parts) == 1 else clusters[(clusters >= begins[at]) & (clusters < begins[at + 1])]
            for cluster in (own - begins[at]).tolist():
                rows = body.rows[body.offsets[cluster] : body.offsets[cluster + 1]]
                stored.append(rows.astype(np.int64) + start)
        return self._live(np.concatenate([*stored, _NONE]))

    def _live(self, stored: Numbers) -> Numbers:
        """Return the rows of the version that some stored rows are."""
        row_of = self.view.row_of
        if row_of is None:
            return stored
        rows = row_of[stored].astype(np.int64)
        return rows[rows >= 0]

    @cached_property
    def _unclustered(self) -> Numbers:
        """The rows of segments without clusters, ascending."""
        parts = zip(self.view.bodies, self.view.starts, strict=True)
        stored = [np.arange(start, start + body.row_count) for body, start in parts if not body.count]
        return np.sort(self._live(np.concatenate([*stored, _NONE])))


def _is_candidate(upper: Matrix, errors: Matrix, query: VectorQuery, wanted: int) -> Mask:
    """Return a mask of the rows that can be among the `wanted` nearest, unless the error of a code is improbable.

    The error of a code is a vector whose direction does not depend on the query. Its effect on a similarity is its
    length at most, but with d dimensions seldom more than a few times the length by √d.
    """
    known = ~np.isnan(upper)
    similarity = np.where(known, upper - errors, -np.inf)
    margin = np.where(known, errors * np.float32(min(_DEVIATIONS / len(query.unit) ** 0.5, 1.0)), 0)
    last = np.partition(similarity - margin, -wanted)[-wanted] if wanted <= len(upper) else -np.inf
    mask: Mask = known & (similarity + margin >= last)
    return mask


def _sine(cosines: Matrix) -> Matrix:
    sines: Matrix = np.sqrt(np.maximum(1 - cosines * cosines, 0))
    return sines


# -- segments ----------------------------------------------------------------------------------------


def index_of(data: ColumnSource, name: str, dim: int) -> VectorIndex | None:
    """Return the clusters of a vector column; missing ones are computed. None if the table is small or not stored."""
    if data.union is not None:
        members = [member for member in data.union.members if isinstance(member, TableData)]
        if len(members) < len(data.union.members):
            return None  # the search is exact where rows or values are hidden
        if sum(member.row_count for member in members) < tuning.current.vector_index_rows_min:
            return None
        views = [_stored_index(member, name, dim).view for member in members]
        key = f"{CLUSTERS}:{data.union.column_key(name)}"
        return data.derived(key, lambda: VectorIndex(joined_segments(views, members)))
    if not isinstance(data, TableData) or data.row_count < tuning.current.vector_index_rows_min:
        return None
    return _stored_index(data, name, dim)


def _stored_index(data: TableData, name: str, dim: int) -> VectorIndex:
    builder = cluster_segments(data, name, dim)
    return data.derived(f"{CLUSTERS}:{data.field_id(name)}", lambda: VectorIndex(segments_of(data, name, builder)))


def cluster_segments(data: TableData, name: str, dim: int) -> SegmentBuilder[ClusterLists]:
    """Return the builder of the segments of the clusters of a vector column."""
    constants = tuning.current
    new_rows_min = max(constants.vector_index_rows_min, int(constants.vector_index_new_share * data.row_count))

    def make(fragments: Sequence[int] | None) -> ClusterLists:
        rows = data.row_count if fragments is None else sum(map(data.rows_in, fragments))
        least = constants.vector_index_rows_min if fragments is None else new_rows_min + 1
        if rows < least or data.cache.keep_in is None:
            # Without a disk cache every process would compute the clusters again.
            return _unclustered(rows, dim)
        return cluster(vectors_of(data, name, dim), dim, _rows_of(data, fragments))

    def write(fragments: Sequence[int] | None, writer: EntryWriter) -> None:
        lists = cluster(vectors_of(data, name, dim), dim, _rows_of(data, fragments))
        for label in ("centroids", "cosines", "offsets", "rows"):
            writer.put(label, getattr(lists, label))
        writer.put("facts", np.array([getattr(lists, fact) for fact in _FACTS], np.float64))

    read = partial(_read, dim=dim)
    return SegmentBuilder(CLUSTERS, constants.vector_index_rows_min, make, write, read, new_rows_min)


def _rows_of(data: TableData, fragments: Sequence[int] | None) -> Numbers | None:
    """Return the rows of some fragments; None if all."""
    if fragments is None:
        return None
    counts = [data.rows_in(at) for at in range(len(data.fragments))]
    starts = np.cumsum([0, *counts])
    return np.concatenate([np.arange(starts[at], starts[at] + counts[at]) for at in fragments])


def _unclustered(rows: int, dim: int) -> ClusterLists:
    empty = np.zeros(0, np.float32)
    return ClusterLists(rows, np.zeros((0, dim), np.float32), empty, np.zeros(1, np.int64), np.zeros(0, np.int32))


def _read(entry: disk_cache.CacheEntry, rows: int, *, dim: int) -> ClusterLists:
    """Read an entry of the disk cache; raise `entry_checks.BadEntry` if it is inconsistent."""
    arrays, check = entry.arrays, entry_checks.check
    centroids, facts = arrays["centroids"], arrays["facts"]
    check(centroids.dtype == np.float32 and centroids.shape[1:] == (dim,), "'centroids' has a wrong shape")
    count = len(centroids)
    check(count > 0, "'centroids' is empty")
    cosines, listed = arrays["cosines"], arrays["rows"]
    check(cosines.dtype == np.float32 and cosines.shape == (count,), "'cosines' has a wrong shape")
    check(facts.dtype == np.float64 and facts.shape == (len(_FACTS),), "'facts' has a wrong shape")
    check(bool(np.isfinite(facts).all() and 1 <= facts[1] <= count), "'facts' has a value out of range")
    check(listed.dtype == np.int32 and listed.ndim == 1 and len(listed) <= rows, "'rows' has a wrong shape")
    entry_checks.check_offsets(arrays["offsets"], count, len(listed), "offsets")
    if not entry.trusted:
        entry_checks.check_within(listed, rows, "rows")
        check(len(np.unique(listed)) == len(listed), "'rows' contains a row twice")
    reach, first, recall, probed, scanned = facts.tolist()
    return ClusterLists(rows, centroids, cosines, arrays["offsets"], listed, reach, int(first), recall, probed, scanned)


# -- building ----------------------------------------------------------------------------------------


def cluster(column: VectorColumn, dim: int, rows: Numbers | None) -> ClusterLists:
    """Compute the clusters of some rows of a column (None: all) and choose how to search them."""
    random = np.random.default_rng(_SEED)
    count = column.row_count if rows is None else len(rows)

    def units(positions: Numbers) -> tuple[Matrix, Mask]:
        return column.units(positions if rows is None else rows[positions])

    centroids = compute_centroids(units, count, dim, random)
    labels, similarities = assign_rows(units, count, centroids)
    order = np.argsort(labels, kind="stable")
    order = order[np.count_nonzero(labels < 0) :]
    sizes = np.bincount(labels[order], minlength=len(centroids))
    sums = np.bincount(labels[order], similarities[order], minlength=len(centroids))
    lists = ClusterLists(
        count,
        centroids,
        np.clip(sums / np.maximum(sizes, 1), 0, 1).astype(np.float32),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        order.astype(np.int32),
    )
    return _Calibration(column, rows, lists, labels, random).chosen()


@dataclass(frozen=True)
class _Sample:
    """A query and its nearest rows."""

    kind: int
    query: VectorQuery
    without: int
    """The row whose vector the query is; -1 if there is none."""
    rows: Numbers
    """The nearest rows, as positions in the segment."""
    farthest: float
    """The largest distance of these rows."""


class _Calibration:
    """Chooses the probes of a segment with sample queries of three kinds; each kind must reach the recall.

    The kinds are stored vectors, whose own row does not count; vectors halfway between two stored ones; and sums of
    stored vectors with random signs, which belong to no cluster.
    """

    def __init__(
        self,
        column: VectorColumn,
        rows: Numbers | None,
        lists: ClusterLists,
        labels: np.ndarray[Any, np.dtype[np.int32]],
        random: np.random.Generator,
    ) -> None:
        self._column = column
        self._rows = rows
        self._lists = lists
        self._labels = labels
        self._random = random

    def chosen(self) -> ClusterLists:
        """Return the lists with the cheapest probes that reach the recall."""
        count = tuning.current.vector_recall_queries
        samples, others = self._samples(count), self._samples(count)
        if samples and others:
            options = self._options(samples)
            for target in _TARGETS:
                found = [(rows, reach, first) for rows, recall, reach, first in options if recall >= target]
                if found:
                    _, reach, first = min(found)
                    measured = self._measured(self._with(reach, first), others)
                    if measured[0] >= RECALL_MIN:
                        return self._with(reach, first, *measured)
        # Every cluster is scanned: the search is exact.
        return self._with(1.0, self._lists.count, 1.0, float(self._lists.count), 1.0)

    def _with(
        self, reach: float, first: int, recall: float = 1.0, probed: float = 0.0, scanned: float = 0.0
    ) -> ClusterLists:
        lists = self._lists
        arrays = (lists.row_count, lists.centroids, lists.cosines, lists.offsets, lists.rows)
        return ClusterLists(*arrays, reach, first, recall, probed, scanned)

    def _samples(self, count: int) -> list[_Sample]:
        listed = self._lists.rows
        if len(listed) <= _MIXED_SIZE:
            return []
        samples: list[_Sample] = []
        for number in range(count):
            checkpoint()
            kind = number % 3
            size = (1, 2, _MIXED_SIZE)[kind]
            rows = listed[np.sort(self._random.choice(len(listed), size, replace=False))].astype(np.int64)
            signs = self._random.choice((-1.0, 1.0), size) if kind == _MIXED_KIND else np.ones(size)
            units = self._column.units(self._numbers(rows))[0]
            query = VectorQuery.of(signs @ units.astype(np.float64))
            if query.has_direction:
                samples.append(self._exact(kind, query, int(rows[0]) if kind == 0 else -1))
        return samples

    def _numbers(self, positions: Numbers) -> Numbers:
        return positions if self._rows is None else self._rows[positions]

    def _exact(self, kind: int, query: VectorQuery, without: int) -> _Sample:
        """Return a sample with the nearest rows by the exact search."""
        found = self._column.candidates(query, self._rows, NEIGHBOURS + 1)
        rows, distances = self._best(query, found, without)
        return _Sample(kind, query, without, rows, float(distances.max()))

    def _best(self, query: VectorQuery, found: Numbers, without: int) -> tuple[Numbers, Floats]:
        """Return the nearest of some rows, and their distances."""
        found = found[found != without]
        distances, _ = self._column.distances(query, self._numbers(found))
        order = np.argsort(distances, kind="stable")[:NEIGHBOURS]
        return found[order], distances[order]

    def _options(self, samples: list[_Sample]) -> list[tuple[float, float, float, int]]:
        """Return (rows scanned, recall, reach, first) for each reach and number of first clusters.

        The recall is the lowest of the kinds of samples.
        """
        lists = self._lists
        similarity = np.stack([lists.centroids @ each.query.unit.astype(np.float32) for each in samples])
        spread = _sine(lists.cosines) * _sine(similarity)
        least = np.array([1 - each.farthest for each in samples], np.float32)[:, None]
        sizes = np.diff(lists.offsets)
        weights = np.array([1.0 if each.kind < _MIXED_KIND else _MIXED_WEIGHT for each in samples])
        labels = self._labels[np.stack([each.rows for each in samples])]
        options: list[tuple[float, float, float, int]] = []
        for reach in _REACHES:
            checkpoint()
            scores = lists.cosines * similarity + np.float32(reach) * spread
            ranks = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1, kind="stable")
            for first in (each for each in _PROBES if each <= lists.count):
                scanned = (scores >= least) | (ranks < first)
                rows = scanned @ sizes
                exact = rows > tuning.current.vector_index_scan_share * lists.row_count
                shares = np.where(exact, 1.0, np.take_along_axis(scanned, labels, axis=1).mean(axis=1))
                cost = np.average(np.where(exact, lists.row_count, rows), weights=weights)
                options.append((float(cost), _lowest(samples, shares), reach, first))
        return options

    def _measured(self, lists: ClusterLists, samples: list[_Sample]) -> tuple[float, float, float]:
        """Return (recall, clusters scanned, share of the rows scanned) of searches for sample queries.

        The clusters and rows are those of queries near stored vectors.
        """
        row_of = None if self._rows is None else self._rows.astype(np.int32)
        index = VectorIndex(SegmentView((lists,), (0,), None, row_of))
        recalls: list[float] = []
        costs: list[tuple[int, int]] = []
        for each in samples:
            checkpoint()
            found = index.probe(self._column, each.query, self._rows, NEIGHBOURS + 1)
            rows, clusters, codes = (each.rows, lists.count, lists.row_count) if found is None else found
            _, distances = self._best(each.query, rows, each.without)
            recalls.append(np.count_nonzero(distances <= each.farthest) / len(each.rows))
            costs += [(clusters, codes)] if each.kind < _MIXED_KIND else []
        probed, scanned = np.mean(costs, axis=0)
        return _lowest(samples, recalls), float(probed), float(scanned) / lists.row_count


def _lowest(samples: list[_Sample], recalls: Any) -> float:
    """Return the lowest mean recall of the kinds of samples."""
    kinds = np.array([each.kind for each in samples])
    return min(float(np.mean(np.asarray(recalls)[kinds == kind])) for kind in set(kinds.tolist()))


# -- explain -----------------------------------------------------------------------------------------


def known_segments(cache: DataCache, folder: str, field_id: int, dim: int) -> list[Segment[ClusterLists]]:
    """Return the segments of a column in memory, else on disk; none is computed."""
    subject = (CLUSTERS, folder, str(field_id))
    held = cache.base(subject)
    if held is not None:
        return list(held)

    def missing(*_: Any) -> Any:
        raise AssertionError("segments are only read")

    builder: SegmentBuilder[ClusterLists] = SegmentBuilder(CLUSTERS, 0, missing, missing, partial(_read, dim=dim))
    return load_segments(cache, subject, builder)
