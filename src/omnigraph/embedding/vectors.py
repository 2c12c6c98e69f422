"""Validation and normalisation of vectors: requested dimension, finite, length 1.

The arithmetic is fixed to the bit, so that the same response gives the same stored vector on every machine: the norm is
summed in 64 bits in the order of the components and rounded to 32 bits, and the division is in 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

NORM_MIN = np.float32(2.0**-23)
"""A vector of at most this length has no direction."""

_BLOCK = 1 << 20


class BadVector(Exception):
    """A vector that cannot be stored; `row` is its index among the checked vectors."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row
        self.message = message


def checked(answers: Sequence[Sequence[float]], dim: int) -> Vectors:
    """Return the responses as an array of unit vectors, each checked for dimension, finiteness and length, in this
    order.
    """
    raw = np.empty((len(answers), dim), np.float32)
    for row, values in enumerate(answers):
        if len(values) != dim:
            raise BadVector(row, f"expected a vector of {dim} numbers, received {len(values)}")
        # A number that exceeds 32 bits becomes infinite here and is reported below.
        with np.errstate(over="ignore"):
            raw[row] = values
        finite = np.isfinite(raw[row])
        if not finite.all():
            raise BadVector(row, f"component {int(np.argmin(finite))} of the vector is not a finite number")
    return normalised(raw)


def normalised(raw: Vectors) -> Vectors:
    """Return finite vectors divided by their norms; `BadVector` for a vector without a direction."""
    lengths = norms(raw)
    for row in np.flatnonzero(~((lengths > NORM_MIN) & np.isfinite(lengths))):
        if lengths[row] <= NORM_MIN:
            raise BadVector(int(row), "the vector is zero, so it has no direction")
        raise BadVector(int(row), "the vector is too long to be normalised in 32-bit")
    return raw / lengths[:, np.newaxis]


def norms(raw: Vectors) -> Vectors:
    """Return the length of each vector."""
    count, dim = raw.shape
    lengths = np.empty(count, np.float32)
    step = max(1, _BLOCK // max(1, dim))
    for start in range(0, count, step):
        squares = raw[start : start + step].astype(np.float64)
        np.square(squares, out=squares)
        # `sum` adds pairwise; a cumulative sum adds in order.
        np.add.accumulate(squares, axis=1, out=squares)
        with np.errstate(over="ignore"):
            lengths[start : start + step] = np.sqrt(squares[:, -1])
    return lengths
