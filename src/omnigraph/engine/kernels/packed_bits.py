"""Blocks of posting lists, for the loops of other modules; `engine.search.posting_lists` describes the format."""

from __future__ import annotations

from typing import Any

import numpy as np

HEAD_WORDS = 2
"""The words of a block before its gaps and counts."""


def block_at(words: Any, at: int) -> tuple[Any, Any, Any, Any]:
    """Return the number of postings of a block, the widths of its gaps and counts, and the place of the next block."""
    head: Any = np.int64(words[at])
    count = (head & 255) + 1
    gap_bits, count_bits = (head >> 8) & 255, (head >> 16) & 255
    size = (count - 1) * gap_bits + count * count_bits
    return count, gap_bits, count_bits, at + HEAD_WORDS + ((size + 31) >> 5)


def mask_of(bits: int) -> Any:
    """Return a number whose lowest `bits` bits are set."""
    return (np.uint64(1) << np.uint64(bits)) - np.uint64(1)


def bits_at(words: Any, begin: int, bit: Any, mask: Any) -> Any:
    """Return the number at a bit position after a word; two words are loaded."""
    here = begin + (bit >> 5)
    pair = np.uint64(words[here]) | (np.uint64(words[here + 1]) << np.uint64(32))
    return np.int64((pair >> np.uint64(bit & 31)) & mask)
