"""Clusters of directions by spherical k-means, in bounded memory.

The centroids are computed from a sample of bounded size, with a fixed seed. Then every row is assigned to the centroid
with the largest cosine similarity, batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


def cluster_count(rows: int) -> int:
    """Return the number of clusters of so many rows: about as many as rows in each."""
    return max(isqrt(rows), 1)


def compute_centroids(units: Units, rows: int, dim: int, random: np.random.Generator) -> Matrix:
    """Return the centroids of the clusters of `rows` rows, as directions, from a sample."""
    constants = tuning.current
    count = cluster_count(rows)
    size = min(constants.vector_sample_rows * count, max(constants.vector_sample_bytes // (dim * 4), count), rows)
    chosen = np.sort(random.choice(rows, size, replace=False)) if size < rows else np.arange(rows)
    sample = np.empty((size, dim), np.float32)
    kept = 0
    for some in _batches(chosen, constants.vector_batch_rows):
        matrix, known = units(some)
        known &= matrix.any(axis=1)
        matrix = matrix[known]
        sample[kept : kept + len(matrix)] = matrix
        kept += len(matrix)
    sample = sample[:kept]
    if not kept:
        return np.zeros((1, dim), np.float32)
    centroids = sample[np.sort(random.choice(kept, min(count, kept), replace=False))]
    for _ in range(constants.vector_cluster_rounds):
        labels, similarities = _nearest(sample, centroids)
        centroids = _means(sample, labels, similarities, len(centroids))
    return centroids


def assign_rows(units: Units, rows: int, centroids: Matrix) -> tuple[Labels, Matrix]:
    """Return the cluster of every row, `NO_CLUSTER` for a row without a vector, and its similarity to the centroid."""
    labels, similarities = np.empty(rows, np.int32), np.empty(rows, np.float32)
    for some in _batches(np.arange(rows), tuning.current.vector_batch_rows):
        matrix, known = units(some)
        found, similarities[some] = _nearest(matrix, centroids)
        labels[some] = np.where(known, found, NO_CLUSTER)
    return labels, similarities


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
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels, minlength=count)
    filled, empty = np.flatnonzero(sizes), np.flatnonzero(sizes == 0)
    means = np.zeros((count, sample.shape[1]), np.float32)
    means[filled] = np.add.reduceat(sample[order], (np.cumsum(sizes) - sizes)[filled], axis=0)
    means[empty] = sample[np.argsort(similarities, kind="stable")[: len(empty)]]
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    means /= np.where(lengths > 0, lengths, np.float32(1))
    return means


def _batches(numbers: Numbers, size: int) -> Iterator[Numbers]:
    for start in range(0, len(numbers), size):
        checkpoint()
        yield numbers[start : start + size]
