"""Clusters of directions by spherical k-means, in bounded memory.

The centroids are computed from a sample of bounded size, with a fixed seed. Then every row is assigned to the centroid
with the largest cosine similarity, batch by batch.

A row is not compared with all centroids. The sample is divided into a few groups, and a row is compared with the
centroids to which sample rows of its group belong. If the similarity to the best of them is low for a row of that
cluster, the row is compared with all centroids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.exec.cancellation import checkpoint

Matrix = np.ndarray[Any, np.dtype[np.float32]]
Labels = np.ndarray[Any, np.dtype[np.int32]]
Units = Callable[[Numbers], tuple[Matrix, Mask]]
"""Returns the directions of some rows, and a mask of the rows that have one."""

NO_CLUSTER = -1
_PER_ROOT = 4
"""Clusters of a table per square root of its rows. A search scans a smaller share of the rows if they are many, but it
compares the query with all centroids."""
_ROWS_MIN = 64
"""Rows in a cluster at least, on average: the centroid of a few rows is near these rows only by chance."""
_LOW = 2
"""Standard deviations of the similarities of the rows of a cluster below their mean."""


@dataclass(frozen=True)
class Centroids:
    """The centroids of clusters, as directions, and for groups of directions the centroids that are near them."""

    centroids: Matrix
    groups: Matrix
    members: tuple[Numbers, ...]
    """The centroids of each group."""
    least: Matrix
    """For each centroid, the similarity below which a row is compared with all centroids."""

    def nearest(self, matrix: Matrix) -> tuple[Labels, Matrix]:
        """Return the centroid of each row, and the similarity to it."""
        return self.nearest_in(matrix, _nearest(matrix, self.groups)[0])

    def nearest_in(self, matrix: Matrix, group_of: Labels) -> tuple[Labels, Matrix]:
        """Return the centroid of each row of known groups, and the similarity to it."""
        labels, similarities = np.zeros(len(matrix), np.int32), np.full(len(matrix), -1, np.float32)
        order = np.argsort(group_of, kind="stable")
        ends = np.cumsum(np.bincount(group_of, minlength=len(self.groups)))
        for rows, members in zip(np.split(order, ends[:-1]), self.members, strict=True):
            if len(rows) and len(members):
                found, similarities[rows] = _nearest(matrix[rows], self.centroids[members])
                labels[rows] = members[found]
        low = np.flatnonzero(similarities < self.least[labels])
        labels[low], similarities[low] = _nearest(matrix[low], self.centroids)
        return labels, similarities


def cluster_count(rows: int) -> int:
    """Return the number of clusters of so many rows."""
    return max(min(_PER_ROOT * isqrt(rows), rows // _ROWS_MIN), 1)


def compute_centroids(units: Units, rows: int, dim: int, random: np.random.Generator) -> Centroids:
    """Return the centroids of the clusters of `rows` rows, from a sample."""
    constants = tuning.current
    count = cluster_count(rows)
    size = min(constants.vector_sample_rows * count, max(constants.vector_sample_bytes // (dim * 4), count), rows)
    sample = _sample(units, rows, size, dim, random)
    if not len(sample):
        zero = np.zeros((1, dim), np.float32)
        return Centroids(zero, zero, (np.zeros(1, np.int64),), np.full(1, -1, np.float32))
    centroids = _some(sample, count, random)
    groups = _some(sample, isqrt(len(centroids)), random)
    for _ in range(constants.vector_cluster_rounds):
        group_of, similarities = _nearest(sample, groups)
        groups = _means(sample, group_of, similarities, len(groups))
    group_of = _nearest(sample, groups)[0]
    labels, similarities = _nearest(sample, centroids)
    for _ in range(constants.vector_cluster_rounds):
        centroids = _means(sample, labels, similarities, len(centroids))
        near = _grouped(centroids, groups, group_of, labels, similarities)
        labels, similarities = near.nearest_in(sample, group_of)
    return _grouped(centroids, groups, group_of, labels, similarities)


def assign_rows(units: Units, rows: int, centroids: Centroids) -> tuple[Labels, Matrix]:
    """Return the cluster of every row, `NO_CLUSTER` for a row without a vector, and its similarity to the centroid.

    A zero vector belongs to a cluster behind all others. It would lower the mean similarity of the rows of another
    cluster, so that searches would not scan the cluster.
    """
    count, dim = centroids.centroids.shape
    labels, similarities = np.empty(rows, np.int32), np.empty(rows, np.float32)
    step = max(tuning.current.vector_assign_elements // dim, 1)
    for some in _batches(np.arange(rows), step):
        matrix, known = units(some)
        found, near = centroids.nearest(matrix)
        directed = matrix.any(axis=1)
        labels[some] = np.where(known, np.where(directed, found, count), NO_CLUSTER)
        # With a similarity of 1 to a zero centroid, the score of the cluster is 0, the similarity of a zero vector.
        similarities[some] = np.where(directed, near, np.float32(1))
    return labels, similarities


def _sample(units: Units, rows: int, size: int, dim: int, random: np.random.Generator) -> Matrix:
    """Return the directions of some rows that have one."""
    chosen = np.sort(random.choice(rows, size, replace=False)) if size < rows else np.arange(rows)
    sample = np.empty((size, dim), np.float32)
    kept = 0
    for some in _batches(chosen, tuning.current.vector_batch_rows):
        matrix, known = units(some)
        known &= matrix.any(axis=1)
        matrix = matrix[known]
        sample[kept : kept + len(matrix)] = matrix
        kept += len(matrix)
    return sample[:kept]


def _some(sample: Matrix, count: int, random: np.random.Generator) -> Matrix:
    return sample[np.sort(random.choice(len(sample), min(count, len(sample)), replace=False))]


def _grouped(centroids: Matrix, groups: Matrix, group_of: Labels, labels: Labels, similarities: Matrix) -> Centroids:
    """Return centroids by the groups and clusters of the sample rows."""
    pairs = np.unique(group_of.astype(np.int64) * len(centroids) + labels)
    ends = np.searchsorted(pairs, np.arange(1, len(groups)) * len(centroids))
    members = tuple(np.split(pairs % len(centroids), ends))
    # The mean of a small cluster is drawn to that of all rows.
    sizes = np.bincount(labels, minlength=len(centroids))
    sums = np.bincount(labels, similarities, minlength=len(centroids))
    means = (sums + similarities.mean()) / (sizes + 1)
    least = means - _LOW * float((similarities - means[labels]).std())
    return Centroids(centroids, groups, members, least.astype(np.float32))


def _nearest(matrix: Matrix, centroids: Matrix) -> tuple[Labels, Matrix]:
    """Return the nearest centroid of each row, and the similarity to it."""
    labels, similarities = np.empty(len(matrix), np.int32), np.empty(len(matrix), np.float32)
    step = max(tuning.current.vector_product_elements // len(centroids), 1)
    for start in range(0, len(matrix), step):
        checkpoint()
        products = matrix[start : start + step] @ centroids.T
        found = products.argmax(axis=1)
        labels[start : start + step] = found
        similarities[start : start + step] = np.take_along_axis(products, found[:, None], axis=1)[:, 0]
    return labels, similarities


def _means(sample: Matrix, labels: Labels, similarities: Matrix, count: int) -> Matrix:
    """Return the direction of the mean of each cluster; an empty cluster moves to a vector far from its centroid."""
    sizes = np.bincount(labels, minlength=count)
    empty = np.flatnonzero(sizes == 0)
    means = np.zeros((count, sample.shape[1]), np.float32)
    for rows in _batches(np.argsort(labels, kind="stable"), tuning.current.vector_batch_rows):
        starts = np.flatnonzero(np.diff(labels[rows], prepend=-1))
        means[labels[rows[starts]]] += np.add.reduceat(sample[rows], starts, axis=0)
    means[empty] = sample[np.argsort(similarities, kind="stable")[: len(empty)]]
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    means /= np.where(lengths > 0, lengths, np.float32(1))
    return means


def _batches(numbers: Numbers, size: int) -> Iterator[Numbers]:
    for start in range(0, len(numbers), size):
        checkpoint()
        yield numbers[start : start + size]
