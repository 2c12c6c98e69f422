"""Vectorised hashes of texts.

All hashes are the same on every machine and in every process, unlike Python's `hash`. `hash_texts` is the fastest for
columns and determines buckets. `crc32_texts` serves hash indexes: `zlib.crc32` is the fastest hash of one text. `fnv1a`
and `mix` define the vectors of the local embedding provider and do not change.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_C1, _C2, _C3 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_MASK = 2**64 - 1
_HASHED_BYTES = 512
_BATCH_ROWS = 8_192
"""Texts that are hashed at a time. The arrays of so few are taken from freed memory instead of new pages."""
_WORD_MASKS = np.array([(1 << 8 * length) - 1 for length in range(9)], np.uint64)
"""Masks for the first 0 to 8 bytes of a word."""

_FNV_OFFSET = 14_695_981_039_346_656_037
_FNV_PRIME = 1_099_511_628_211
_FNV_VECTORISED_MIN = 16
"""Fewer strings are hashed faster by a Python loop over their bytes."""


# -- texts -------------------------------------------------------------------------------------------


def hash_texts(texts: pa.Array) -> NDArray[np.uint64]:
    """Return the hash of each text of a column.

    The hash covers the length, the last eight bytes and the first 512 bytes, eight at a time. Texts that differ only
    elsewhere collide, which costs time but not correctness.
    """
    hashes = np.empty(len(texts), np.uint64)
    for start in range(0, len(texts), _BATCH_ROWS):
        hashes[start : start + _BATCH_ROWS] = _hash_batch(texts.slice(start, _BATCH_ROWS))
    return hashes


def _hash_batch(texts: pa.Array) -> NDArray[np.uint64]:
    text, starts, lengths = _text_bytes(texts)
    end = len(text)
    data = np.zeros(end + 8, np.uint8)
    data[:end] = text
    # The eight bytes that start at each byte offset.
    words: NDArray[np.uint64] = np.ndarray((end + 1,), np.uint64, data.data, 0, (1,))
    first, last = words[starts], words[starts + np.maximum(lengths - 8, 0)]
    if lengths.min() < 8:
        kept = _WORD_MASKS[np.minimum(lengths, 8)]
        first, last = first & kept, last & kept
    with np.errstate(over="ignore"):
        hashes = _mixed(_mixed(lengths.astype(np.uint64) * np.uint64(_C1), first), last)
        for offset in range(8, min(int(lengths.max()) - 8, _HASHED_BYTES), 8):
            long = np.flatnonzero(lengths > offset + 8)
            hashes[long] = _mixed(hashes[long], words[starts[long] + offset])
        hashes *= np.uint64(_C3)
        hashes ^= hashes >> np.uint64(32)
    return hashes


def hash_text(text: str) -> int:
    """Return the hash of one text, equal to that of `hash_texts`."""
    data = text.encode()
    size = len(data)
    hashed = _mixed_one(size * _C1 & _MASK, int.from_bytes(data[:8], "little"))
    hashed = _mixed_one(hashed, int.from_bytes(data[max(size - 8, 0) :], "little"))
    for offset in range(8, min(size - 8, _HASHED_BYTES), 8):
        hashed = _mixed_one(hashed, int.from_bytes(data[offset : offset + 8], "little"))
    hashed = hashed * _C3 & _MASK
    return hashed ^ hashed >> 32


def _mixed_one(hashed: int, word: int) -> int:
    hashed = (hashed ^ word) * _C2 & _MASK
    return hashed ^ hashed >> 29


def _mixed(hashes: NDArray[np.uint64], words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    hashes = (hashes ^ words) * np.uint64(_C2)
    hashes ^= hashes >> np.uint64(29)
    return hashes


def _text_bytes(texts: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32]]:
    """Return the bytes of all texts, and the start and the length of each text."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    text = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data is not None else np.zeros(0, np.uint8)
    return text, ends[:-1] - ends[0], np.diff(ends)


# -- CRC-32 ------------------------------------------------------------------------------------------


def crc32_texts(texts: pa.Array, bytes_max: int) -> NDArray[np.uint32]:
    """Return `crc32_text` of each text of a column."""
    if not len(texts):
        return np.zeros(0, np.uint32)
    text, starts, lengths = _text_bytes(texts)
    shortest, longest = int(lengths.min()), int(lengths.max())
    found = np.full(len(texts), 0xFFFFFFFF, np.uint32)

    def add(rows: slice | NDArray[np.int64], places: NDArray[np.int32]) -> None:
        some = found[rows]
        found[rows] = _CRC_TABLE[(some ^ text[places]) & 0xFF] ^ (some >> 8)

    for position in range(min(longest, bytes_max)):
        rows = slice(None) if shortest > position else np.flatnonzero(lengths > position)
        add(rows, starts[rows] + position)
    long = np.flatnonzero(lengths > bytes_max)
    ends = starts[long] + lengths[long]
    for position in range(bytes_max if len(long) else 0, 0, -1):
        add(long, ends - position)
    return found ^ np.uint32(0xFFFFFFFF)


def crc32_text(text: str, bytes_max: int) -> int:
    """Return `zlib.crc32` of a text: of a longer one than `bytes_max`, of the first and the last `bytes_max` bytes.

    Many keys, such as URLs, have a long common prefix.
    """
    data = text.encode()
    if len(data) <= bytes_max:
        return zlib.crc32(data)
    return zlib.crc32(data[-bytes_max:], zlib.crc32(data[:bytes_max]))


def _crc_table() -> NDArray[np.uint32]:
    """Return the CRC-32 of each byte."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1)
    return table.astype(np.uint32)


_CRC_TABLE = _crc_table()


# -- FNV-1a ------------------------------------------------------------------------------------------


def fnv1a(strings: Sequence[bytes]) -> NDArray[np.uint64]:
    """Return the 64-bit FNV-1a hash of each string."""
    lengths = np.fromiter(map(len, strings), np.int64, len(strings))
    order = np.argsort(-lengths, kind="stable")
    joined = np.frombuffer(b"".join(strings), np.uint8)
    starts = (np.cumsum(lengths) - lengths)[order]
    hashes = np.full(len(strings), _FNV_OFFSET, np.uint64)
    # Longest first: the strings with a byte at `position` are a prefix of the array.
    longest_first = lengths[order]
    position, active = 0, int(np.count_nonzero(longest_first > 0))
    while active >= _FNV_VECTORISED_MIN:
        hashes[:active] ^= joined[starts[:active] + position]
        hashes[:active] *= np.uint64(_FNV_PRIME)
        position += 1
        active = int(np.searchsorted(-longest_first, -position, side="left"))
    for number in range(active):
        rest = strings[order[number]][position:]
        hashes[number] = _fnv1a_rest(rest, int(hashes[number]))
    in_order = np.empty_like(hashes)
    in_order[order] = hashes
    return in_order


def _fnv1a_rest(data: bytes, value: int) -> int:
    for byte in data:
        value = ((value ^ byte) * _FNV_PRIME) & _MASK
    return value


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply the finaliser of SplitMix64: every bit of the result depends on every bit of the value."""
    mixed = values + np.uint64(_C1)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(_C2)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(_C3)
    return mixed ^ (mixed >> np.uint64(31))
