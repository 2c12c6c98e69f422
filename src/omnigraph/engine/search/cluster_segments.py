"""The clusters of the vector columns of a version: computed, kept on disk and found again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.cache.columns import ColumnSource
from omnigraph.engine.cache.entry_writer import EntryWriter
from omnigraph.engine.cache.segments import Segment, SegmentBuilder, keep_segments, load_segments, segments_of
from omnigraph.engine.cache.table_cache import DataCache, Mask, Numbers, TableData
from omnigraph.engine.cache.union_table import joined_segments
from omnigraph.engine.exec.native_calls import batches
from omnigraph.engine.search.cluster_calibration import Calibration
from omnigraph.engine.search.cluster_lists import RANGED, ClusterLists, read_lists, without_clusters, write_lists
from omnigraph.engine.search.clustering import assign_rows, compute_centroids
from omnigraph.engine.search.vector_codes import ByteCodes, Matrix, VectorCodes
from omnigraph.engine.search.vector_index import VectorIndex
from omnigraph.engine.search.vector_scan import VectorColumn, vectors_of

CLUSTERS = "clusters"
KeepCodes = Callable[[tuple[int, int], Iterator[ByteCodes]], ByteCodes]
"""Keeps codes of a shape, block by block, and returns them."""
_SEED = 20_240_517


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
        # Clusters that are not kept on disk would be computed again by every process.
        return without_clusters(data.row_count if fragments is None else sum(map(data.rows_in, fragments)), dim)

    def write(fragments: Sequence[int] | None, writer: EntryWriter) -> None:
        def keep(shape: tuple[int, int], blocks: Iterator[ByteCodes]) -> ByteCodes:
            with writer.rows("codes", shape, np.dtype(np.int8)) as file:
                for block in blocks:
                    file.write(block.tobytes())
            return writer.read("codes")

        write_lists(cluster(vectors_of(data, name, dim), dim, _rows_of(data, fragments), keep), writer)

    read = partial(read_lists, dim=dim)
    return SegmentBuilder(CLUSTERS, constants.vector_index_rows_min, make, write, read, new_rows_min, RANGED)


def keep_clusters(data: TableData, name: str, dim: int) -> int:
    """Build the clusters of a vector column that the disk cache lacks, as `keep_segments` does."""
    if data.row_count >= tuning.current.vector_index_rows_min:
        # Opened before the turn at building is taken: another thread that opens them may be waiting for the turn.
        vectors_of(data, name, dim)
    return keep_segments(data, name, cluster_segments(data, name, dim))


def _rows_of(data: TableData, fragments: Sequence[int] | None) -> Numbers | None:
    """Return the rows of some fragments; None if all."""
    if fragments is None:
        return None
    counts = [data.rows_in(at) for at in range(len(data.fragments))]
    starts = np.cumsum([0, *counts])
    return np.concatenate([np.arange(starts[at], starts[at] + counts[at]) for at in fragments])


def in_memory(_: tuple[int, int], blocks: Iterator[ByteCodes]) -> ByteCodes:
    """Return the codes of lists that are not kept on disk."""
    return np.concatenate(list(blocks))


def cluster(column: VectorColumn, dim: int, rows: Numbers | None, keep: KeepCodes = in_memory) -> ClusterLists:
    """Compute the clusters of some rows of a column (None: all) and choose how to search them."""
    random = np.random.default_rng(_SEED)
    count = column.row_count if rows is None else len(rows)

    def units(positions: Numbers) -> tuple[Matrix, Mask]:
        return column.units(positions if rows is None else rows[positions])

    found = compute_centroids(units, count, dim, random)
    labels, similarities = assign_rows(units, count, found)
    order = np.argsort(labels, kind="stable")
    order = order[np.count_nonzero(labels < 0) :]
    centroids = found.centroids
    if len(order) and labels[order[-1]] == len(centroids):
        centroids = np.concatenate([centroids, np.zeros((1, dim), np.float32)])
    clusters = len(centroids)
    sizes = np.bincount(labels[order], minlength=clusters)
    sums = np.bincount(labels[order], similarities[order], minlength=clusters)
    lists = ClusterLists(
        count,
        centroids,
        np.clip(sums / np.maximum(sizes, 1), 0, 1).astype(np.float32),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        order.astype(np.int32),
        _codes_of(column, order if rows is None else rows[order], dim, keep),
    )
    return Calibration(column, rows, lists, labels, random).chosen()


def _codes_of(column: VectorColumn, numbers: Numbers, dim: int, keep: KeepCodes) -> VectorCodes:
    """Return the codes of some rows, which may be larger than memory."""
    scales, errors = np.empty(len(numbers), np.float32), np.empty(len(numbers), np.float32)

    def blocks() -> Iterator[ByteCodes]:
        yield np.zeros((0, dim), np.int8)
        for some in batches(len(numbers), tuning.current.vector_batch_rows):
            codes, scales[some], errors[some] = column.take_codes(numbers[some]).arrays(None)
            yield codes

    codes = keep((len(numbers), dim), blocks())
    return VectorCodes(codes, scales, errors)


def known_segments(cache: DataCache, folder: str, field_id: int, dim: int) -> list[Segment[ClusterLists]]:
    """Return the segments of a column in memory, else on disk; none is computed."""
    subject = (CLUSTERS, folder, str(field_id))
    held = cache.base(subject)
    if held is not None:
        return list(held)

    def missing(*_: Any) -> Any:
        raise AssertionError("segments are only read")

    builder: SegmentBuilder[ClusterLists] = SegmentBuilder(CLUSTERS, 0, missing, missing, partial(read_lists, dim=dim))
    return load_segments(cache, subject, builder)
