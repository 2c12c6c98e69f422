"""64-bit hashes of numbers and texts, computed for whole columns. They are the same in every process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

Hashes = np.ndarray[Any, np.dtype[np.uint64]]
_WORD = 8
_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(_WORD + 1)], np.uint64)
"""The first bytes of a word, by their number."""


def mixed(bits: Hashes) -> Hashes:
    """Return a hash of each number (splitmix64)."""
    with np.errstate(over="ignore"):
        bits = bits + np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)), np.uint64)


def unique_sorted(numbers: Hashes) -> tuple[Hashes, np.ndarray[Any, np.dtype[np.int64]]]:
    """Return the distinct numbers, ascending, and how often each occurs. It is faster than `np.unique`."""
    ordered = np.sort(numbers)
    starts = np.flatnonzero(np.concatenate([[len(ordered) > 0], ordered[1:] != ordered[:-1]]))
    return ordered[starts], np.diff(starts, append=len(ordered))


def hash_numbers(numbers: np.ndarray[Any, Any]) -> Hashes:
    """Return a hash of each number."""
    if numbers.dtype.kind == "f":
        # 0.0 and -0.0 are equal.
        return mixed((numbers.astype(np.float64) + 0.0).view(np.uint64))
    return mixed(numbers.astype(np.int64).view(np.uint64) if numbers.dtype != np.uint64 else numbers)


def hash_texts(texts: pa.Array) -> Hashes:
    """Return a hash of each text of a column without nulls: of its length, start, middle and end.

    Texts of at most 24 bytes are hashed completely. Longer texts that differ elsewhere have the same hash.
    """
    texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    starts, ends = ends[:-1], ends[1:]
    sizes = ends - starts
    found = mixed(sizes.view(np.uint64))
    if data is None or not data.size or not len(sizes):
        return found
    first, last = int(starts[0]), int(ends[-1])
    letters = np.zeros(last - first + _WORD, np.uint8)
    letters[: last - first] = np.frombuffer(data, np.uint8, last - first, first)
    words = np.lib.stride_tricks.sliding_window_view(letters, _WORD)
    kept = _MASKS[np.minimum(sizes, _WORD)]
    middles = starts + np.maximum(sizes // 2 - _WORD // 2, 0)
    for begins in (starts, middles, np.maximum(ends - _WORD, starts)):
        found = mixed(found ^ (words[begins - first].view("<u8").reshape(-1) & kept))
    return found
