"""Checks of the arrays of an entry of the disk cache.

Compiled loops use the arrays without bounds checks. The values of an array that is read by range are checked block by
block, when they are read.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from omnigraph.engine.cache.ranged_arrays import AnyArray, RangedArray

BLOCK_BYTES = 1 << 20
"""Bytes whose words are added for a checksum."""
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Sums = np.ndarray[Any, np.dtype[np.uint64]]


class BadEntry(ValueError):
    """Raised for an entry whose content is inconsistent."""


def checksum(array: AnyArray) -> int:
    """Return the checksum of an array's bytes."""
    raw = array.reshape(-1).view(np.uint8)
    return combined_checksum(len(raw), block_sums(raw), rest_of(raw))


def block_sums(raw: Bytes) -> Sums:
    """Return the sum of the whole words of each block of some bytes, which begin with a block."""
    words = raw[: len(raw) // 8 * 8].view(np.uint64)
    starts = np.arange(0, len(words), BLOCK_BYTES // 8)
    return np.add.reduceat(words, starts) if len(words) else np.zeros(0, np.uint64)


def rest_of(raw: Bytes) -> bytes:
    """Return the bytes behind the last whole word."""
    return raw[len(raw) // 8 * 8 :].tobytes()


def combined_checksum(size: int, sums: Sums, rest: bytes) -> int:
    """Return the checksum of an array of so many bytes from the sums of all its blocks and its rest."""
    return zlib.crc32(rest, zlib.crc32(sums.tobytes(), size & 0xFFFFFFFF))


def check(condition: bool, reason: str) -> None:
    """Raise `BadEntry` unless a condition holds."""
    if not condition:
        raise BadEntry(reason)


def check_within(
    array: AnyArray | RangedArray, count: int, name: str, *, low: int = 0, bits: int | None = None
) -> None:
    """Check that every number of an array is at least `low` and below `count`; by range, when it is read.

    With `bits`, only these bits of the numbers count.
    """
    check(array.dtype.kind in "iu" and array.ndim == 1, f"'{name}' is not an array of numbers")
    if isinstance(array, RangedArray):
        array.add_check(lambda values, _: check_within(values, count, name, low=low, bits=bits))
        return
    numbers = array if bits is None else array & array.dtype.type(bits)
    inside = not len(numbers) or (int(numbers.min()) >= low and int(numbers.max()) < count)
    check(inside, f"'{name}' has a number out of range")


def check_ascending(array: AnyArray | RangedArray, name: str) -> None:
    """Check that the numbers of an array ascend; by range, when they are read."""
    if isinstance(array, RangedArray):
        array.add_check(lambda values, _: check_ascending(values, name))
        return
    check(bool((array[1:] > array[:-1]).all()), f"'{name}' is not ascending")


def check_offsets(offsets: AnyArray | RangedArray, count: int, end: int, name: str) -> None:
    """Check that `offsets` divides `end` values into `count` runs; by range, when they are read."""
    check(offsets.dtype.kind in "iu" and offsets.shape == (count + 1,), f"'{name}' does not have {count + 1} offsets")
    if isinstance(offsets, RangedArray):

        def check_block(values: AnyArray, first: int) -> None:
            check(bool((values[1:] >= values[:-1]).all()), f"'{name}' is not ascending")
            check(int(values[0]) >= 0 and int(values[-1]) <= end, f"'{name}' does not cover its values")
            check(first > 0 or int(values[0]) == 0, f"'{name}' does not cover its values")
            check(first + len(values) <= count or int(values[-1]) == end, f"'{name}' does not cover its values")

        offsets.add_check(check_block)
        return
    check(int(offsets[0]) == 0 and int(offsets[-1]) == end, f"'{name}' does not cover its values")
    check(bool((offsets[1:] >= offsets[:-1]).all()), f"'{name}' is not ascending")
