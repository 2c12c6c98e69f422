"""Exact nearest-neighbour scan over a vector column, using byte codes.

A query is compared with all codes (`vector_codes`). Vectors that the error bound cannot exclude are compared in full,
so the result is exact, including ties.

The codes of large columns are kept on disk and mapped, with a copy of the vectors unless it would be very large. The
vectors that are compared in full are then read from the table by their row numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine import tuning
from omnigraph.engine.cache import disk_cache, entry_checks
from omnigraph.engine.cache.columns import ColumnSource
from omnigraph.engine.cache.entry_writer import EntryWriter
from omnigraph.engine.cache.ranged_arrays import RangedArray, complete_array, fetch_rows
from omnigraph.engine.cache.segments import SegmentBuilder, SegmentView, segments_of
from omnigraph.engine.cache.table_cache import Mask, Numbers, TableData, unmapped_bytes
from omnigraph.engine.cache.union_table import joined_segments
from omnigraph.engine.cache.visibility import VisibleTable
from omnigraph.engine.exec.cancellation import add_note, checkpoint
from omnigraph.engine.search.vector_codes import CODE_MAX, Floats, Matrix, Near, VectorCodes, VectorQuery
from omnigraph.errors import Damaged


@dataclass(frozen=True)
class VectorBlock(VectorCodes):
    """Vectors with their lengths and codes. For a row without a vector, length and error are NaN."""

    norms: Floats | RangedArray
    matrix: Matrix | RangedArray | None
    """The vectors in full; None if they are read from the table."""

    @property
    def nbytes(self) -> int:
        """The size in memory; 0 for mapped arrays."""
        vectors = 0 if self.matrix is None else unmapped_bytes(self.matrix)
        return vectors + super().nbytes + unmapped_bytes(self.norms)

    def without(self, gone: Mask) -> VectorBlock:
        """Return the block with the vectors of some rows removed."""
        return replace(self, errors=np.where(gone, np.float32(np.nan), self.errors))

    def candidates(self, query: VectorQuery, rows: Numbers | None, wanted: int) -> Numbers:
        """Return the positions of the rows (None: all) that can be among the `wanted` nearest, with ties."""
        found = super().candidates(query, rows, wanted)
        add_note(f"{len(self.codes) if rows is None else len(rows):,} codes compared, {len(found):,} vectors in full")
        return found


_NO_ROWS = np.zeros(0, np.int64)
_FIELDS = ("codes", "scales", "errors", "norms", "matrix")


@dataclass(frozen=True)
class VectorColumn:
    """A vector column at one version."""

    view: SegmentView[VectorBlock]
    read: Callable[[Numbers], pa.Array] | None = None
    """Reads the vectors of some rows; None if all blocks contain their vectors."""

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        errors = 0 if self.view.row_of is None else self.view.row_of.nbytes
        return self.view.nbytes + errors + sum(block.nbytes for block in self.view.bodies)

    @property
    def row_count(self) -> int:
        """The number of rows."""
        stored_of = self.view.stored_of
        return sum(len(block.norms) for block in self.view.bodies) if stored_of is None else len(stored_of)

    def distances(self, query: VectorQuery, numbers: Numbers) -> tuple[Floats, Mask]:
        """Return the cosine distances of some rows, equal for equal vectors, and a mask of the rows with a vector."""
        dots, norms = np.empty(len(numbers)), np.empty(len(numbers))
        for start in range(0, len(numbers), tuning.current.vector_batch_rows):
            some = slice(start, start + tuning.current.vector_batch_rows)
            checkpoint()
            for block, positions, rows in self._by_block(numbers[some]):
                norms[some][positions], vectors = self._full(block, numbers[some][positions], rows)
                dots[some][positions] = _dot_products(vectors, query)
        return _cosine_distances(dots, norms, query)

    def _full(self, block: VectorBlock, numbers: Numbers, rows: Numbers) -> tuple[Floats, Matrix]:
        """Return the lengths and the vectors of some rows, by their numbers in the column and in the block."""
        if block.matrix is not None:
            norms, matrix = fetch_rows((block.norms, block.matrix), rows)
            return norms[rows], matrix[rows]
        assert self.read is not None, "a block without vectors belongs to a table"
        return block.norms[rows], _matrix(self.read(numbers), block.codes.shape[1])[0]

    def candidates(self, query: VectorQuery, numbers: Numbers | None, wanted: int) -> Numbers:
        """Return the positions in `numbers` (None: all rows) that can be among the `wanted` nearest, with ties."""
        if not wanted:
            return _NO_ROWS
        count = self.row_count if numbers is None else len(numbers)
        if count <= max(wanted, tuning.current.vector_exact_rows_max) or not query.has_direction:
            return self._with_vectors(np.arange(count) if numbers is None else numbers)
        if numbers is None:
            return self._all_candidates(query, wanted)
        found = [
            found + positions.start if isinstance(positions, slice) else positions[found]
            for block, positions, rows in self._by_block(numbers)
            for found in (block.candidates(query, rows, wanted),)
        ]
        return np.sort(np.concatenate(found)) if len(found) > 1 else found[0]

    def near(self, query: VectorQuery, numbers: Numbers, best: Matrix, share: float) -> Near:
        """Return the positions of those of some rows that can be among the nearest, as `VectorCodes.near` does."""
        found = [(_NO_ROWS, np.zeros(0, np.float32), np.zeros(0, np.float32))]
        for block, positions, rows in self._by_block(numbers):
            some, similarities, margins = block.near(query, rows, best, share)
            some = some + positions.start if isinstance(positions, slice) else positions[some]
            found.append((some, similarities, margins))
        rows, similarities, margins = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return rows, similarities, margins

    def units(self, numbers: Numbers) -> tuple[Matrix, Mask]:
        """Return the directions of some rows, as exact as their codes, and a mask of the rows with a vector."""
        matrix = np.zeros((len(numbers), self.view.bodies[0].codes.shape[1]), np.float32)
        known = np.zeros(len(numbers), bool)
        for block, positions, rows in self._by_block(numbers):
            matrix[positions], known[positions] = block.units(rows)
        return matrix, known

    def take_codes(self, numbers: Numbers) -> VectorCodes:
        """Return the codes of some rows."""
        width = self.view.bodies[0].codes.shape[1]
        codes = np.zeros((len(numbers), width), np.int8)
        scales, errors = np.zeros(len(numbers), np.float32), np.zeros(len(numbers), np.float32)
        for block, positions, rows in self._by_block(numbers):
            some = block.take(rows)
            codes[positions], scales[positions], errors[positions] = some.codes, some.scales, some.errors
        return VectorCodes(codes, scales, errors)

    def _all_candidates(self, query: VectorQuery, wanted: int) -> Numbers:
        parts = zip(self._live_blocks, self.view.starts, strict=True)
        known = np.concatenate([block.candidates(query, None, wanted) + start for block, start in parts])
        row_of = self.view.row_of
        return known if row_of is None else np.sort(row_of[known]).astype(np.int64)

    @cached_property
    def _live_blocks(self) -> list[VectorBlock]:
        """The blocks without the vectors of deleted rows."""
        row_of = self.view.row_of
        if row_of is None:
            return list(self.view.bodies)
        parts = zip(self.view.bodies, self.view.starts, strict=True)
        return [block.without(row_of[start : start + len(block.norms)] < 0) for block, start in parts]

    def _with_vectors(self, numbers: Numbers) -> Numbers:
        """Return the positions of the rows that have a vector."""
        norms = np.empty(len(numbers))
        for block, positions, rows in self._by_block(numbers):
            norms[positions] = block.norms[rows]
        return np.flatnonzero(~np.isnan(norms))

    def _by_block(self, numbers: Numbers) -> Iterator[tuple[VectorBlock, Numbers | slice, Numbers]]:
        """Yield the rows by block: (block, positions in `numbers`, rows of the block)."""
        known = numbers if self.view.stored_of is None else self.view.stored_of[numbers].astype(np.int64)
        if len(self.view.bodies) == 1:
            yield self.view.bodies[0], slice(0, len(known)), known
            return
        if (known[1:] > known[:-1]).all():
            ends = np.searchsorted(known, [*self.view.starts[1:], np.iinfo(np.int64).max]).tolist()
            begin = 0
            for block, start, end in zip(self.view.bodies, self.view.starts, ends, strict=True):
                if end > begin:
                    yield block, slice(begin, end), known[begin:end] - start
                begin = end
            return
        part = np.searchsorted(np.array(self.view.starts), known, side="right") - 1
        for at, (block, start) in enumerate(zip(self.view.bodies, self.view.starts, strict=True)):
            positions = np.flatnonzero(part == at)
            if len(positions):
                yield block, positions, known[positions] - start


def distances_of(vectors: pa.Array, dim: int, query: VectorQuery) -> tuple[Floats, Mask]:
    """Return the cosine distances of vectors, as `VectorColumn.distances` does, and a mask of those present."""
    dots, norms = np.empty(len(vectors)), np.empty(len(vectors))
    for start in range(0, len(vectors), tuning.current.vector_batch_rows):
        some = slice(start, start + tuning.current.vector_batch_rows)
        matrix, known = _matrix(vectors[some], dim)
        norms[some] = np.where(known, _lengths(matrix.astype(np.float64)), np.nan)
        dots[some] = _dot_products(matrix, query)
    return _cosine_distances(dots, norms, query)


def _dot_products(vectors: Matrix, query: VectorQuery) -> Floats:
    # Row by row: a matrix product rounds a row differently depending on its position.
    products: Floats = (vectors.astype(np.float64) * query.vector).sum(axis=1)
    return products


def _lengths(vectors: Floats) -> Floats:
    lengths: Floats = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return lengths


def _cosine_distances(dots: Floats, norms: Floats, query: VectorQuery) -> tuple[Floats, Mask]:
    """Return the distances of dot products, and a mask of the rows with a vector."""
    scale = norms * query.length
    with np.errstate(invalid="ignore", divide="ignore"):
        distances = np.where(scale > 0, 1.0 - dots / scale, 1.0)
    return distances, ~np.isnan(norms)


def vectors_of(data: ColumnSource, name: str, dim: int) -> VectorColumn:
    """Return the vectors of a column at a version; it reuses the blocks of earlier versions."""
    if data.union is not None:
        members = data.union.members
        views = [vectors_of(member, name, dim).view for member in members]
        if not views:
            return VectorColumn(SegmentView((_memory_block((), dim),), (0,)))
        return data.derived(
            f"vectors:{data.union.column_key(name)}",
            lambda: VectorColumn(joined_segments(views, members), partial(data.take, name)),
        )
    if isinstance(data, TableData):
        return _stored_vectors(data, name, dim)
    if isinstance(data, VisibleTable):
        return _visible_vectors(data, name, dim)
    return data.derived(
        f"vectors:{name}", lambda: VectorColumn(SegmentView((_memory_block([data.column(name)], dim),), (0,)))
    )


def vector_segments(data: TableData, name: str, dim: int) -> SegmentBuilder[VectorBlock]:
    """Return the builder of the segments of a vector column."""

    def write(fragments: Sequence[int] | None, writer: EntryWriter) -> None:
        rows = data.row_count if fragments is None else sum(map(data.rows_in, fragments))
        small: dict[str, list[Any]] = {"norms": [], "scales": [], "errors": []}
        copied = data.row_count * dim * 4 <= tuning.current.vector_copy_bytes_max
        with ExitStack() as files:
            codes = files.enter_context(writer.rows("codes", (rows, dim), np.dtype(np.int8)))
            matrix = files.enter_context(writer.rows("matrix", (rows, dim), np.dtype(np.float32))) if copied else None
            for block in _blocks(data.stream(name, fragments), dim):
                codes.write(complete_array(block.codes).tobytes())
                if matrix is not None and block.matrix is not None:
                    matrix.write(complete_array(block.matrix).tobytes())
                for label, parts in small.items():
                    parts.append(getattr(block, label))
        for label, parts in small.items():
            writer.put(label, np.concatenate(parts))

    return SegmentBuilder(
        "vectors",
        max(tuning.current.vector_disk_bytes_min // (dim * 4), 1),
        lambda fragments: _memory_block(data.stream(name, fragments), dim),
        write,
        lambda entry, rows: _read_block(entry, rows, dim),
        ranged=_FIELDS,
    )


def _stored_vectors(data: TableData, name: str, dim: int) -> VectorColumn:
    builder = vector_segments(data, name, dim)
    return data.derived(
        f"vectors:{data.field_id(name)}",
        lambda: VectorColumn(segments_of(data, name, builder), partial(data.take, name)),
    )


def _visible_vectors(data: VisibleTable, name: str, dim: int) -> VectorColumn:
    """Return the vectors of a table without those that are masked. Hidden rows are in no binding."""
    every = vectors_of(data.base, name, dim)
    if not data.is_guarded(name):
        return every
    return data.derived(f"vectors:{data.field_id(name)}", lambda: _without_masked(every, data, name))


def _without_masked(every: VectorColumn, data: VisibleTable, name: str) -> VectorColumn:
    seen = data.value_mask(name)
    if seen is None:
        return every
    view = every.view
    gone = np.ones(sum(len(block.norms) for block in view.bodies), bool)
    gone[np.flatnonzero(seen) if view.stored_of is None else view.stored_of[seen]] = False
    blocks = tuple(
        replace(
            block.without(gone[start : start + len(block.norms)]),
            norms=np.where(gone[start : start + len(block.norms)], np.nan, block.norms),
        )
        for block, start in zip(view.bodies, view.starts, strict=True)
    )
    return VectorColumn(replace(view, bodies=blocks), every.read)


def _read_block(entry: disk_cache.CacheEntry, rows: int, dim: int) -> VectorBlock:
    """Read an entry of the disk cache; raise `entry_checks.BadEntry` if an array has a wrong shape or type."""
    codes, scales, errors, norms = (entry.get(field) for field in _FIELDS[:-1])
    has_matrix = _FIELDS[-1] in entry.about["arrays"]
    block = VectorBlock(codes, scales, errors, norms, entry.get(_FIELDS[-1]) if has_matrix else None)
    for field, kind in zip(_FIELDS, ("i1", "f4", "f4", "f8", "f4"), strict=True):
        array = getattr(block, field)
        if array is None:
            continue
        shape = (rows, dim) if field in ("matrix", "codes") else (rows,)
        entry_checks.check(array.dtype == np.dtype(kind) and array.shape == shape, f"'{field}' has a wrong shape")
    return block


def _memory_block(chunks: Iterable[pa.Array], dim: int) -> VectorBlock:
    blocks = list(_blocks(chunks, dim)) or [_measured(np.zeros((0, dim), np.float32), np.zeros(0, bool))]
    return VectorBlock(*(np.concatenate([getattr(block, field) for block in blocks]) for field in _FIELDS))


def _blocks(chunks: Iterable[pa.Array], dim: int) -> Iterator[VectorBlock]:
    for chunk in chunks:
        for start in range(0, len(chunk), tuning.current.vector_batch_rows):
            checkpoint()
            some = chunk.slice(start, tuning.current.vector_batch_rows)
            yield _measured(*_matrix(some, dim))


def _matrix(vectors: pa.Array, dim: int) -> tuple[Matrix, Mask]:
    """Return vectors as a matrix, with zeros for nulls, and a mask of the rows with a vector."""
    known = np.asarray(vectors.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
    matrix = np.zeros((len(vectors), dim), np.float32)
    flat = vectors.flatten().to_numpy(zero_copy_only=False)
    if len(flat) != np.count_nonzero(known) * dim:
        raise Damaged(f"a vector column of {dim} dimensions contains a vector of another length")
    matrix[known] = flat.reshape(-1, dim)
    return matrix, known


def _measured(matrix: Matrix, known: np.ndarray[Any, np.dtype[np.bool_]]) -> VectorBlock:
    """Compute the lengths and codes of vectors."""
    wide = matrix.astype(np.float64)
    norms = _lengths(wide)
    wide /= np.where(norms > 0, norms, 1.0)[:, None]
    scales = (np.abs(wide).max(axis=1, initial=0) / CODE_MAX).astype(np.float32)
    codes = np.rint(wide / np.where(scales > 0, scales, 1)[:, None].astype(np.float64))
    wide -= codes * scales[:, None].astype(np.float64)
    errors = np.nextafter(np.sqrt(np.einsum("ij,ij->i", wide, wide)).astype(np.float32), np.float32(np.inf))
    norms[~known], errors[~known] = np.nan, np.nan
    return VectorBlock(codes.astype(np.int8), scales, errors, norms, matrix)
