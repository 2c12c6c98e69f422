"""Posting lists: the rows that contain a term and the number of occurrences in each, as packed 32-bit words.

A list is a sequence of blocks of at most 128 postings. The first word of a block contains the number of postings minus
one (8 bits), the width of a gap (8 bits) and the width of a count (8 bits); the second word is the first row. Then
follow, without padding between them, the gaps between consecutive rows minus one and the counts minus one, each in as
many bits as the largest of the block needs. A block ends at a word boundary. A block does not depend on the blocks
before it, so lists of consecutive rows are merged by concatenation. `PADDING` words follow the last list: a reader
loads two words at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from omnigraph.engine import kernels, tuning
from omnigraph.engine.cache.table_cache import Numbers

BLOCK = 128
PADDING = 2
_HEAD_WORDS = 2
_WIDTH_MAX = 32

Words = np.ndarray[Any, np.dtype[np.uint32]]
RowNumbers = np.ndarray[Any, np.dtype[np.uint32]]
TermCounts = np.ndarray[Any, np.dtype[np.uint32]]
_NO_POSTINGS = np.zeros(0, np.uint32)


class BadPostings(ValueError):
    """Raised for a posting list that is not consistent."""


def encode_lists(rows: RowNumbers, counts: TermCounts, starts: Numbers) -> tuple[Words, Numbers]:
    """Return the words of posting lists without padding, and the offset of each list with the end of the last.

    `starts` divides the rows, ascending in each list, and the counts into lists.
    """
    loops = kernels.find("postings", len(rows) * tuning.current.postings_fallback_s)
    if loops is None:
        with kernels.timed_fallback():
            return _encode_numpy(rows, counts, starts)
    lists = len(starts) - 1
    # Each list ends with a block that is not full, and each block with a word that is not full.
    words = np.empty((_HEAD_WORDS + 1) * (len(rows) // BLOCK + lists) + 2 * len(rows), np.uint32)
    offsets = np.empty(lists + 1, np.int64)
    size = loops.encode(rows, counts, starts, lists, BLOCK, words, offsets)
    return words[:size].copy(), offsets


def count_postings(words: Words, start: int, stop: int) -> int:
    """Return the number of postings of a list; raises `BadPostings` if its blocks exceed it."""
    loops = kernels.find("postings")
    if loops is None:
        with kernels.timed_fallback():
            return int(_blocks(words, start, stop)[1].sum())
    found: int = loops.count(words, start, stop)
    if found < 0:
        raise BadPostings("a posting list is malformed")
    return found


def decode_list(words: Words, start: int, stop: int, row_count: int) -> tuple[RowNumbers, TermCounts]:
    """Return the rows and the counts of a list; raises `BadPostings` if a row is not below `row_count`."""
    if start == stop:
        return _NO_POSTINGS, _NO_POSTINGS
    loops = kernels.find("postings", (stop - start) * tuning.current.postings_fallback_s)
    if loops is None:
        with kernels.timed_fallback():
            rows, counts = _decode_numpy(words, start, stop)
        if int(rows.max()) >= row_count:
            raise BadPostings("a posting list has a row out of range")
        return rows.astype(np.uint32), counts.astype(np.uint32)
    size = count_postings(words, start, stop)
    posted, times = np.empty(size, np.uint32), np.empty(size, np.uint32)
    if loops.decode(words, start, stop, row_count, posted, times) < 0:
        raise BadPostings("a posting list has a row out of range")
    return posted, times


# -- numpy fallbacks ---------------------------------------------------------------------------------


def _encode_numpy(rows: RowNumbers, counts: TermCounts, starts: Numbers) -> tuple[Words, Numbers]:
    sizes = np.diff(starts)
    blocks_of = -(-sizes // BLOCK)
    firsts = np.repeat(starts[:-1] - (np.cumsum(blocks_of) - blocks_of) * BLOCK, blocks_of)
    firsts += np.arange(len(firsts)) * BLOCK
    stops = np.minimum(firsts + BLOCK, np.repeat(starts[1:], blocks_of))
    wide = rows.astype(np.int64)
    gaps = np.diff(wide, prepend=0) - 1
    gaps[firsts] = 0
    extra = counts.astype(np.int64) - 1
    lengths = stops - firsts
    gap_bits, count_bits = _widths(gaps, firsts), _widths(extra, firsts)
    bits = (lengths - 1) * gap_bits + lengths * count_bits
    word_counts = _HEAD_WORDS + (bits + 31) // 32
    ends = np.cumsum(word_counts)
    begins = ends - word_counts
    words = np.zeros((int(ends[-1]) if len(ends) else 0) + PADDING, np.uint64)
    words[begins] = ((lengths - 1) | (gap_bits << 8) | (count_bits << 16)).astype(np.uint64)
    words[begins + 1] = rows[firsts]
    place = np.arange(len(rows)) - np.repeat(firsts, lengths)
    data = np.repeat((begins + _HEAD_WORDS) * 32, lengths)
    inner = place > 0
    _pack(words, (data + (place - 1) * np.repeat(gap_bits, lengths))[inner], gaps[inner])
    data += np.repeat((lengths - 1) * gap_bits, lengths)
    _pack(words, data + place * np.repeat(count_bits, lengths), extra)
    offsets = np.concatenate([[0], ends])[np.concatenate([[0], np.cumsum(blocks_of)])]
    return words[:-PADDING].astype(np.uint32), offsets.astype(np.int64)


def _widths(values: Numbers, firsts: Numbers) -> Numbers:
    """Return the number of bits of the largest value of each block."""
    if not len(firsts):
        return np.zeros(0, np.int64)
    largest = np.maximum.reduceat(values, firsts)
    return np.frexp(largest.astype(np.float64))[1].astype(np.int64)


def _pack(words: np.ndarray[Any, np.dtype[np.uint64]], bits: Numbers, values: Numbers) -> None:
    """Store values at bit positions of 32-bit words, each of which is held in 64 bits."""
    shifted = values.astype(np.uint64) << (bits & 31).astype(np.uint64)
    at = bits >> 5
    # The bits of different values do not overlap.
    np.add.at(words, at, shifted & np.uint64(0xFFFFFFFF))
    np.add.at(words, at + 1, shifted >> np.uint64(32))


def _blocks(words: Words, start: int, stop: int) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return of each block: the first word, the number of postings and the widths of gaps and counts."""
    found: list[tuple[int, int, int, int]] = []
    at = start
    while at < stop:
        head = int(words[at])
        count, gap_bits, count_bits = (head & 255) + 1, (head >> 8) & 255, (head >> 16) & 255
        found.append((at, count, gap_bits, count_bits))
        at += _HEAD_WORDS + ((count - 1) * gap_bits + count * count_bits + 31) // 32
        if at > stop or gap_bits > _WIDTH_MAX or count_bits > _WIDTH_MAX:
            raise BadPostings("a posting list is malformed")
    columns = np.array(found, np.int64).reshape(-1, 4).T
    return columns[0], columns[1], columns[2], columns[3]


def _decode_numpy(words: Words, start: int, stop: int) -> tuple[Numbers, Numbers]:
    begins, sizes, gap_bits, count_bits = _blocks(words, start, stop)
    firsts: Numbers = np.cumsum(sizes) - sizes
    place: Numbers = np.arange(int(sizes.sum())) - np.repeat(firsts, sizes)
    data = np.repeat((begins + _HEAD_WORDS) * 32, sizes)
    widths: Numbers = np.repeat(gap_bits, sizes)
    steps = _unpack(words, data + (place - (place > 0)) * widths, widths) + 1
    steps[firsts] = words[begins + 1]
    # A running sum that starts again in each block.
    total = np.cumsum(steps)
    rows = total - np.repeat(total[firsts] - steps[firsts], sizes)
    widths = np.repeat(count_bits, sizes)
    counts = _unpack(words, data + np.repeat((sizes - 1) * gap_bits, sizes) + place * widths, widths) + 1
    return rows, counts


def _unpack(words: Words, bits: Numbers, widths: Numbers) -> Numbers:
    at = bits >> 5
    pair = words[at].astype(np.uint64) | (words[at + 1].astype(np.uint64) << np.uint64(32))
    mask = (np.uint64(1) << widths.astype(np.uint64)) - np.uint64(1)
    values: Numbers = ((pair >> (bits & 31).astype(np.uint64)) & mask).astype(np.int64)
    return values
