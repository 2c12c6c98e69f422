"""Choice of the clusters that an approximate search scans, and the measurement of its recall.

The reach of the scores and the number of clusters that are always scanned are chosen when a segment is built: the
cheapest that find enough of the neighbours of sample queries. The recall is measured with other sample queries and kept
with the segment.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.cache.segments import SegmentView
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.engine.exec.cancellation import checkpoint
from omnigraph.engine.search.cluster_lists import NEIGHBOURS, ClusterLists
from omnigraph.engine.search.clustering import Labels
from omnigraph.engine.search.vector_codes import Floats, VectorQuery
from omnigraph.engine.search.vector_index import VectorIndex, sine
from omnigraph.engine.search.vector_scan import VectorColumn
from omnigraph.fast_dataclass import dataclass

RECALL_MIN = 0.95
_TARGETS = (0.97, 0.985, 0.995)
"""Recall of the sample queries for which probes are chosen; the next one is tried if the measured recall is too low."""
_REACHES = tuple(step / 20 for step in range(21))
_PROBES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_MIXED_KIND = 2
_MIXED_SIZE = 16
"""Stored vectors in a sample query that belongs to no cluster."""
_MIXED_WEIGHT = 0.1
"""Such queries are rarer: their cost counts as this share of that of other queries."""


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


class Calibration:
    """Chooses the probes of a segment with sample queries of three kinds; each kind must reach the recall.

    The kinds are stored vectors, whose own row does not count; vectors halfway between two stored ones; and sums of
    stored vectors with random signs, which belong to no cluster.
    """

    def __init__(
        self,
        column: VectorColumn,
        rows: Numbers | None,
        lists: ClusterLists,
        labels: Labels,
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
                    measured = self._measured(replace(self._lists, reach=reach, first=first), others)
                    if measured.recall >= RECALL_MIN:
                        return measured
        # Every cluster is scanned: the search is exact.
        count = self._lists.count
        return replace(self._lists, reach=1.0, first=count, recall=1.0, probed=float(count), scanned=1.0)

    def _samples(self, count: int) -> list[_Sample]:
        lists = self._lists
        # Zero vectors are in the last cluster.
        listed = lists.rows if lists.centroids[-1].any() else lists.rows[: lists.offsets[-2]]
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
        spread = sine(lists.cosines) * sine(similarity)
        least = np.array([1 - each.farthest for each in samples], np.float32)[:, None]
        sizes = np.diff(lists.offsets)
        weights = np.array([1.0 if each.kind < _MIXED_KIND else _MIXED_WEIGHT for each in samples])
        labels = self._labels[np.stack([each.rows for each in samples])]
        options: list[tuple[float, float, float, int]] = []
        for reach in _REACHES:
            checkpoint()
            scores = lists.cosines * similarity + np.float32(reach) * spread
            limits = -np.sort(-scores, axis=1)
            for first in (each for each in _PROBES if each <= lists.count):
                scanned = scores >= np.minimum(least, limits[:, first - 1 : first])
                rows = scanned @ sizes
                exact = rows > tuning.current.vector_index_scan_share * lists.row_count
                shares = np.where(exact, 1.0, np.take_along_axis(scanned, labels, axis=1).mean(axis=1))
                cost = np.average(np.where(exact, lists.row_count, rows), weights=weights)
                options.append((float(cost), _lowest(samples, shares), reach, first))
        return options

    def _measured(self, lists: ClusterLists, samples: list[_Sample]) -> ClusterLists:
        """Return the lists with the recall, the clusters and the share of the rows of searches for sample queries.

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
            costs.append((clusters, codes))
        # Of vectors that are almost all zero, only mixed queries may have a direction.
        near = [cost for each, cost in zip(samples, costs, strict=True) if each.kind < _MIXED_KIND] or costs
        probed, scanned = np.mean(near, axis=0)
        recall = _lowest(samples, recalls)
        return replace(lists, recall=recall, probed=float(probed), scanned=float(scanned) / lists.row_count)


def _lowest(samples: list[_Sample], recalls: Any) -> float:
    """Return the lowest mean recall of the kinds of samples."""
    kinds = np.array([each.kind for each in samples])
    return min(float(np.mean(np.asarray(recalls)[kinds == kind])) for kind in set(kinds.tolist()))
