"""Vectors of a column: who is nearest, exactly, without reading every vector in full.

Beside every vector lies a code: its direction in whole numbers of one byte, a scale, and how far the two are apart.
A query is compared with all codes, a quarter of the bytes of the vectors; what the code cannot rule out, by the
distance it is known to be off at most, is compared in full. So the answer is the exact one, ties included.

Large columns are kept on disk and mapped: of the vectors only those that are compared in full take memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine import kernels, persisted
from omnigraph.engine.carried import Carried, Layout, carry
from omnigraph.engine.data import DataCache, Numbers, TableData
from omnigraph.engine.watch import checkpoint, say
from omnigraph.errors import Damaged

Floats = np.ndarray[Any, np.dtype[np.float64]]
Matrix = np.ndarray[Any, np.dtype[np.float32]]
Codes = np.ndarray[Any, np.dtype[np.int8]]

_CODE_MAX, _QUERY_MAX = 127, 32767
_SUM_MAX = 16_000_000
"""The sum of a query's whole numbers, so that no product with a code leaves 32 bits."""
_ROWS_AT_ONCE = 8192
_ELEMENTS_AT_ONCE = 65_536
"""A product of so few numbers stays in one thread: many threads wait for one another longer than they compute."""
_FEW = 512
"""So few vectors are compared in full at once."""
_KEPT_BYTES_MIN = 8_000_000
_F32 = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Query:
    """A direction to compare with: in full, and in whole numbers."""

    vector: Floats
    length: float
    unit: Floats
    codes: np.ndarray[Any, np.dtype[np.int16]]
    step: float
    """What one of the whole numbers is worth."""
    error: float
    """How far the direction in whole numbers is off."""

    @classmethod
    def of(cls, vector: Floats) -> Query:
        """A query ready to be compared."""
        length = float(np.linalg.norm(vector))
        unit = vector / length if 0 < length < np.inf else np.zeros_like(vector)
        largest, total = float(np.abs(unit).max(initial=0)), float(np.abs(unit).sum())
        factor = min(_QUERY_MAX / largest, _SUM_MAX / total) if largest else 1.0
        codes = np.rint(unit * factor)
        error = float(np.linalg.norm(unit - codes / factor))
        return cls(vector, length, unit, codes.astype(np.int16), 1 / factor, error)

    @property
    def has_direction(self) -> bool:
        """Whether it tells vectors apart at all."""
        return bool(self.unit.any())


@dataclass(frozen=True)
class Block:
    """Vectors, their lengths, and their codes; a row without a vector has length and error NaN."""

    matrix: Matrix
    norms: Floats
    codes: Codes
    scales: Matrix
    errors: Matrix

    @property
    def nbytes(self) -> int:
        """What it takes in memory; what is mapped takes none of its own."""
        if isinstance(self.matrix.base, np.memmap):
            return 0
        return sum(array.nbytes for array in (self.matrix, self.norms, self.codes, self.scales, self.errors))

    def promising(self, query: Query, rows: Numbers | None, wanted: int) -> Numbers:
        """The places of the rows (all, without `rows`) that can be among the `wanted` nearest, ties included."""
        found = self._found(query, rows, wanted)
        say(f"{len(self.codes) if rows is None else len(rows):,} codes compared, {len(found):,} vectors in full")
        return found

    def _found(self, query: Query, rows: Numbers | None, wanted: int) -> Numbers:
        loops = kernels.find("vectors")
        if loops is not None:
            some = _NO_ROWS if rows is None else rows
            slack = query.error * 1.01 + 8 * _F32
            found: Numbers = loops.promising(
                self.codes, self.scales, self.errors, query.codes, query.step, slack, some, rows is None, wanted
            )
            return found
        with kernels.twin():
            return self._promising(query, rows, wanted)

    def _promising(self, query: Query, rows: Numbers | None, wanted: int) -> Numbers:
        """In numpy, with the query in 32 bits instead of whole numbers."""
        count = len(self.codes) if rows is None else len(rows)
        unit = query.unit.astype(np.float32)
        likeness = np.empty(count, np.float32)
        step = max(_ELEMENTS_AT_ONCE // len(unit), 1)
        for start in range(0, count, step):
            some = slice(start, start + step)
            checkpoint()
            likeness[some] = self.codes[some if rows is None else rows[some]].astype(np.float32) @ unit
        likeness *= self.scales if rows is None else self.scales[rows]
        errors = (self.errors if rows is None else self.errors[rows]) + np.float32((len(unit) + 8) * _F32)
        far = errors - likeness
        last = np.partition(far, wanted - 1)[wanted - 1] if wanted <= count else np.float32(np.inf)
        near = -(likeness + errors)
        return np.flatnonzero(near <= last) if not np.isnan(last) else np.flatnonzero(~np.isnan(near))


_NO_ROWS = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Vectors:
    """A vector column at one version: what an earlier one had, and what was added since."""

    base: Block
    added: Block | None = None
    carried: Carried = Carried(())  # noqa: RUF009 (immutable)

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        added = self.added.nbytes if self.added is not None else 0
        maps = (self.carried.known_of, self.carried.row_of)
        return self.base.nbytes + added + sum(places.nbytes for places in maps if places is not None)

    def distances(self, query: Query, numbers: Numbers) -> tuple[Floats, np.ndarray[Any, np.dtype[np.bool_]]]:
        """The cosine distance of some rows, equal for equal vectors; and which rows have a vector at all."""
        dots, norms = np.empty(len(numbers)), np.empty(len(numbers))
        for start in range(0, len(numbers), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            checkpoint()
            rows, norms[some] = self._rows(numbers[some])
            # Row by row, not as a product of matrices: that one rounds a row differently from place to place.
            dots[some] = (rows.astype(np.float64) * query.vector).sum(axis=1)
        scale = norms * query.length
        with np.errstate(invalid="ignore", divide="ignore"):
            distances = np.where(scale > 0, 1.0 - dots / scale, 1.0)
        return distances, ~np.isnan(norms)

    def promising(self, query: Query, numbers: Numbers | None, wanted: int) -> Numbers:
        """The places in `numbers` (all rows without) of those that can be among the `wanted` nearest, ties included."""
        if numbers is None and self.carried.known_of is None:
            return self._all_promising(query, wanted)
        rows = numbers if numbers is not None else np.arange(self._count, dtype=np.int64)
        if not wanted:
            return _NO_ROWS
        if len(rows) <= max(wanted, _FEW) or not query.has_direction:
            return np.flatnonzero(~np.isnan(self._norms(rows)))
        known = rows if self.carried.known_of is None else self.carried.known_of[rows].astype(np.int64)
        if self.added is None:
            return self.base.promising(query, known, wanted)
        size = len(self.base.norms)
        old, new = np.flatnonzero(known < size), np.flatnonzero(known >= size)
        found = [old[self.base.promising(query, known[old], wanted)]] if len(old) else []
        if len(new):
            found.append(new[self.added.promising(query, known[new] - size, wanted)])
        return np.sort(np.concatenate(found)) if found else _NO_ROWS

    def _all_promising(self, query: Query, wanted: int) -> Numbers:
        if not wanted:
            return _NO_ROWS
        if self._count <= max(wanted, _FEW) or not query.has_direction:
            return np.flatnonzero(~np.isnan(self._norms(np.arange(self._count))))
        found = self.base.promising(query, None, wanted) if len(self.base.norms) else _NO_ROWS
        if self.added is None or not len(self.added.norms):
            return found
        return np.concatenate([found, self.added.promising(query, None, wanted) + len(self.base.norms)])

    @property
    def _count(self) -> int:
        if self.carried.known_of is not None:
            return len(self.carried.known_of)
        return len(self.base.norms) + (len(self.added.norms) if self.added else 0)

    def _norms(self, numbers: Numbers) -> Floats:
        known = numbers if self.carried.known_of is None else self.carried.known_of[numbers]
        if self.added is None:
            return self.base.norms[known]
        return np.concatenate([self.base.norms, self.added.norms])[known]

    def _rows(self, numbers: Numbers) -> tuple[Matrix, Floats]:
        known = numbers if self.carried.known_of is None else self.carried.known_of[numbers]
        if self.added is None:
            return self.base.matrix[known], self.base.norms[known]
        size = len(self.base.norms)
        old = known < size
        matrix = np.empty((len(known), self.base.matrix.shape[1]), np.float32)
        norms = np.empty(len(known))
        for block, chosen, places in ((self.base, old, known), (self.added, ~old, known - size)):
            matrix[chosen], norms[chosen] = block.matrix[places[chosen]], block.norms[places[chosen]]
        return matrix, norms


@dataclass(frozen=True)
class _Base:
    """A block that was built in full, and of what."""

    layout: Layout
    version: int
    block: Block


def vectors_of(data: TableData, name: str, dim: int) -> Vectors:
    """The vectors of a column, made once per version on top of what was made before."""
    field, cache = data.field_id(name), data.cache

    def build() -> Vectors:
        what = ("vectors", data.folder, str(field))
        base: _Base | None = cache.bases.get(what) or _load(cache, what)
        if base is not None:
            carried = carry(base.layout, data)
            if carried is not None:
                cache.bases[what] = base
                added = _memory_block(data.stream(name, carried.new), dim) if carried.new else None
                grown = f"grown by {len(added.norms):,} rows" if added is not None else "as they were kept"
                say(f"vectors of '{name}' {grown}")
                return Vectors(base.block, added, carried)
        made = _Base(Layout.of(data), data.key[1], _build(data, cache, what, name, dim))
        say(f"vectors of '{name}' built from {data.row_count:,} rows")
        if base is None or base.version < made.version:
            cache.bases[what] = made
        return Vectors(made.block)

    return data.derived(f"vectors:{field}", build)


def _build(data: TableData, cache: DataCache, what: persisted.What, name: str, dim: int) -> Block:
    """All vectors of a version; a large column goes to the disk as it is read, and is mapped from there."""
    rows = data.row_count
    if cache.folder is None or rows * dim * 4 < _KEPT_BYTES_MIN:
        return _memory_block(data.stream(name), dim)
    about = {"version": data.key[1], "pieces": data.fragments, "left": sorted(Layout.of(data).left)}
    try:
        with persisted.making(cache.folder, what, about) as maker:
            norms, scales, errors = [], [], []
            with ExitStack() as files:
                matrix = files.enter_context(maker.rows("matrix", (rows, dim), np.dtype(np.float32)))
                codes = files.enter_context(maker.rows("codes", (rows, dim), np.dtype(np.int8)))
                for block in _blocks(data.stream(name), dim):
                    matrix.write(block.matrix.tobytes())
                    codes.write(block.codes.tobytes())
                    norms.append(block.norms)
                    scales.append(block.scales)
                    errors.append(block.errors)
            for label, parts in (("norms", norms), ("scales", scales), ("errors", errors)):
                maker.put(label, np.concatenate(parts))
            for at, left in Layout.of(data).left.items():
                maker.put(f"left{at}", left)
    except OSError:
        return _memory_block(data.stream(name), dim)  # a read-only or full disk
    kept = _load(cache, what)
    return kept.block if kept is not None else _memory_block(data.stream(name), dim)


def _load(cache: DataCache, what: persisted.What) -> _Base | None:
    kept = persisted.load(cache.folder, what)
    if kept is None:
        return None
    left = {at: kept.arrays[f"left{at}"] for at in kept.about["left"]}
    layout = Layout(persisted.pieces_of(kept.about["pieces"]), left)
    block = Block(*(kept.arrays[name] for name in ("matrix", "norms", "codes", "scales", "errors")))
    return _Base(layout, kept.about["version"], block)


def _memory_block(chunks: Iterable[pa.Array], dim: int) -> Block:
    blocks = list(_blocks(chunks, dim)) or [_measured(np.zeros((0, dim), np.float32), np.zeros(0, bool))]
    fields = ("matrix", "norms", "codes", "scales", "errors")
    return Block(*(np.concatenate([getattr(block, field) for block in blocks]) for field in fields))


def _blocks(chunks: Iterable[pa.Array], dim: int) -> Iterator[Block]:
    for chunk in chunks:
        for start in range(0, len(chunk), _ROWS_AT_ONCE):
            some = chunk.slice(start, _ROWS_AT_ONCE)
            known = np.asarray(some.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
            matrix = np.zeros((len(some), dim), np.float32)
            flat = some.flatten().to_numpy(zero_copy_only=False)
            if len(flat) != np.count_nonzero(known) * dim:
                raise Damaged(f"a vector column of {dim} dimensions holds vectors of another length")
            matrix[known] = flat.reshape(-1, dim)
            yield _measured(matrix, known)


def _measured(matrix: Matrix, known: np.ndarray[Any, np.dtype[np.bool_]]) -> Block:
    """Vectors with their lengths and codes."""
    wide = matrix.astype(np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    wide /= np.where(norms > 0, norms, 1.0)[:, None]
    scales = (np.abs(wide).max(axis=1, initial=0) / _CODE_MAX).astype(np.float32)
    codes = np.rint(wide / np.where(scales > 0, scales, 1)[:, None].astype(np.float64))
    wide -= codes * scales[:, None].astype(np.float64)
    errors = np.nextafter(np.sqrt(np.einsum("ij,ij->i", wide, wide)).astype(np.float32), np.float32(np.inf))
    norms[~known], errors[~known] = np.nan, np.nan
    return Block(matrix, norms, codes.astype(np.int8), scales, errors)
