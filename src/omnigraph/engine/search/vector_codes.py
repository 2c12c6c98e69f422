"""Byte codes of vectors, and the selection of the rows that can be among the nearest to a query.

A vector has a code: its direction as integers of one byte, a scale, and the error of the code. A query is compared with
the codes, which are a quarter of the size of the vectors. The error bounds the similarity, so most rows are excluded.
The arrays can be read by range from an object store; the codes of the compared rows are requested first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from omnigraph.engine import kernels, tuning
from omnigraph.engine.cache.ranged_arrays import RangedArray, fetch_rows
from omnigraph.engine.cache.table_cache import Mask, Numbers, unmapped_bytes
from omnigraph.engine.exec.cancellation import checkpoint
from omnigraph.engine.exec.native_calls import in_parts, interruptible

Floats = np.ndarray[Any, np.dtype[np.float64]]
Matrix = np.ndarray[Any, np.dtype[np.float32]]
ByteCodes = np.ndarray[Any, np.dtype[np.int8]]
Arrays = tuple[ByteCodes, Matrix, Matrix]
"""Codes, scales and errors."""
Near = tuple[Numbers, Matrix, Matrix]
"""Some rows, the similarities of their codes to a query, and by how much the similarities of the vectors can differ."""

CODE_MAX = 127
_QUERY_MAX = 32767
_SUM_MAX = 16_000_000
"""Upper bound of the sum of a query's integers, so that no product with a code exceeds 32 bits."""
_CODES_A_NUMBER = 8
_F32 = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class VectorQuery:
    """A query vector, in full and as integers."""

    vector: Floats
    length: float
    unit: Floats
    codes: np.ndarray[Any, np.dtype[np.int16]]
    step: float
    """The value of one unit of the integer codes."""
    error: float
    """The error of the integer codes: the distance to the exact direction."""

    @classmethod
    def of(cls, vector: Floats) -> VectorQuery:
        """Prepare a query vector."""
        length = float(np.linalg.norm(vector))
        unit = vector / length if 0 < length < np.inf else np.zeros_like(vector)
        largest, total = float(np.abs(unit).max(initial=0)), float(np.abs(unit).sum())
        factor = min(_QUERY_MAX / largest, _SUM_MAX / total) if largest else 1.0
        codes = np.rint(unit * factor)
        error = float(np.linalg.norm(unit - codes / factor))
        return cls(vector, length, unit, codes.astype(np.int16), 1 / factor, error)

    @property
    def slack(self) -> float:
        """The bound of the error of a similarity that is due to the query."""
        return self.error * 1.01 + 8 * _F32

    @property
    def integers(self) -> tuple[np.ndarray[Any, np.dtype[np.int16]], float, float]:
        """The query for the compiled loop."""
        return self.codes, self.step, self.slack

    @property
    def has_direction(self) -> bool:
        """True if the vector has a finite, non-zero length; otherwise the codes cannot rank vectors."""
        return bool(self.unit.any())


@dataclass(frozen=True)
class VectorCodes:
    """The codes of some vectors. For a row without a vector, the error is NaN."""

    codes: ByteCodes | RangedArray
    scales: Matrix | RangedArray
    errors: Matrix | RangedArray

    @property
    def nbytes(self) -> int:
        """The size in memory; 0 for mapped arrays."""
        return unmapped_bytes(self.codes, self.scales, self.errors)

    def arrays(self, rows: Numbers | None) -> Arrays:
        """Return codes, scales and errors as arrays that have the values of some rows (None: all)."""
        codes, scales, errors = fetch_rows((self.codes, self.scales, self.errors), rows)
        return codes, scales, errors

    def units(self, rows: Numbers) -> tuple[Matrix, Mask]:
        """Return the directions of some rows, as exact as their codes, and a mask of the rows with a vector."""
        codes, scales, errors = self.arrays(rows)
        directions: Matrix = codes[rows] * scales[rows][:, None]
        return directions, ~np.isnan(errors[rows])

    def take(self, rows: Numbers) -> VectorCodes:
        """Return the codes of some rows."""
        codes, scales, errors = self.arrays(rows)
        return VectorCodes(codes[rows], scales[rows], errors[rows])

    def candidates(self, query: VectorQuery, rows: Numbers | None, wanted: int) -> Numbers:
        """Return the positions of the rows (None: all) that can be among the `wanted` nearest, with ties."""
        count, width = len(self.codes) if rows is None else len(rows), self.codes.shape[1]
        elements = count * width
        arrays = self.arrays(rows)
        loops = kernels.find("vectors", elements * tuning.current.vector_fallback_s)
        if loops is None:
            with kernels.timed_fallback():
                return _candidates_numpy(arrays, query, rows, wanted)

        def found(start: int, stop: int) -> Numbers:
            some = slice(start, stop)
            best = np.full(wanted, -np.inf, np.float32)
            if rows is None:
                numbers = loops.near(tuple(array[some] for array in arrays), query.integers, None, best, 1.0)[0]
            else:
                numbers = loops.near(arrays, query.integers, rows[some], best, 1.0)[0]
            shifted: Numbers = numbers + start
            return shifted

        # The nearest of all are among the nearest of each part.
        rows_min = tuning.current.vector_part_elements // max(width, 1)
        parts = interruptible(lambda: in_parts(found, count, rows_min), elements // _CODES_A_NUMBER)
        return np.concatenate(parts)

    def near(self, query: VectorQuery, rows: Numbers, best: Matrix, share: float) -> Near:
        """Return the positions of those of some rows that can be among the nearest, and their similarities.

        `best` is a heap of the best lower bounds, the least first; it is updated. `share` is the part of the largest
        possible error of a similarity that counts.
        """
        elements = len(rows) * self.codes.shape[1]
        arrays = self.arrays(rows)
        loops = kernels.find("vectors", elements * tuning.current.vector_fallback_s)
        if loops is None:
            with kernels.timed_fallback():
                return _near_numpy(arrays, query, rows, best, share)
        found: Near = interruptible(
            lambda: loops.near(arrays, query.integers, rows, best, share), elements // _CODES_A_NUMBER
        )
        return found


def _near_numpy(arrays: Arrays, query: VectorQuery, rows: Numbers, best: Matrix, share: float) -> Near:
    """The numpy fallback, with equal bits: sums of integers below 2^53 are exact in 64-bit floats."""
    coded, scales, errors = arrays
    totals = np.empty(len(rows), np.float32)
    codes = query.codes.astype(np.float64)
    step = max(tuning.current.vector_batch_elements // len(codes), 1)
    for start in range(0, len(rows), step):
        checkpoint()
        totals[start : start + step] = coded[rows[start : start + step]].astype(np.float64) @ codes
    similarities = totals * (scales[rows].astype(np.float64) * query.step).astype(np.float32)
    margins = (errors[rows] + np.float32(query.slack)) * np.float32(share)
    lower = similarities - margins
    both = np.sort(np.concatenate([best, lower[~np.isnan(lower)]]))
    best[:] = both[len(both) - len(best) :]
    found = np.flatnonzero(similarities + margins >= best[0])
    return found, similarities[found], margins[found]


def _candidates_numpy(arrays: Arrays, query: VectorQuery, rows: Numbers | None, wanted: int) -> Numbers:
    """The numpy fallback, with the query in 32-bit floats instead of integers."""
    codes, scales, every_error = arrays
    count = len(codes) if rows is None else len(rows)
    unit = query.unit.astype(np.float32)
    likeness = np.empty(count, np.float32)
    step = max(tuning.current.vector_batch_elements // len(unit), 1)
    for start in range(0, count, step):
        some = slice(start, start + step)
        checkpoint()
        likeness[some] = codes[some if rows is None else rows[some]].astype(np.float32) @ unit
    likeness *= scales if rows is None else scales[rows]
    errors = (every_error if rows is None else every_error[rows]) + np.float32((len(unit) + 8) * _F32)
    far = errors - likeness
    last = np.partition(far, wanted - 1)[wanted - 1] if wanted <= count else np.float32(np.inf)
    near = -(likeness + errors)
    return np.flatnonzero(near <= last) if not np.isnan(last) else np.flatnonzero(~np.isnan(near))
