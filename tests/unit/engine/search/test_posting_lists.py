"""Posting lists keep their rows and counts; the compiled form and the numpy form have the same words."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from omnigraph.engine import kernels
from omnigraph.engine.search.posting_lists import (
    BLOCK,
    PADDING,
    BadPostings,
    count_postings,
    decode_list,
    encode_lists,
)

ROWS = 1 << 32


def random_lists(seed: int) -> list[list[tuple[int, int]]]:
    """Lists of (row, count): empty, short, of whole blocks, dense, sparse, with the largest values."""
    random = Random(seed)
    lists: list[list[tuple[int, int]]] = [[], [(0, 1)], [(ROWS - 1, ROWS - 1)], [(0, 1), (ROWS - 1, 1)]]
    for size in (1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, random.randrange(1, 1_000)):
        span = max(size, random.choice((size, 4 * size, 1 << 20, ROWS - 1)))
        largest = random.choice((1, 2, 300, ROWS - 1))
        lists.append([(row, random.randint(1, largest)) for row in sorted(random.sample(range(span), size))])
    random.shuffle(lists)
    return lists


def encoded(lists: list[list[tuple[int, int]]]) -> tuple[Any, Any]:
    postings = [posting for one in lists for posting in one]
    rows, counts = (np.array([posting[at] for posting in postings], np.uint32) for at in (0, 1))
    starts = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
    return encode_lists(rows, counts, starts)


@pytest.mark.parametrize("seed", range(12))
def test_lists_are_decoded_as_they_were_encoded(kernel_loader, seed):
    lists = random_lists(seed)
    words, offsets = encoded(lists)
    assert kernels.load()
    fast_words, fast_offsets = encoded(lists)
    assert words.tolist() == fast_words.tolist()
    assert offsets.tolist() == fast_offsets.tolist()
    padded = np.concatenate([words, np.zeros(PADDING, np.uint32)])
    for compiled in (True, False):
        with kernels.isolated():
            assert not compiled or kernels.load()
            for at, expected in enumerate(lists):
                place = int(offsets[at]), int(offsets[at + 1])
                assert count_postings(padded, *place) == len(expected)
                rows, counts = decode_list(padded, *place, ROWS)
                assert list(zip(rows.tolist(), counts.tolist(), strict=True)) == expected


def test_a_frequent_term_takes_few_bits():
    rows = np.arange(0, 100_000, 3, dtype=np.uint32)
    words, _ = encode_lists(rows, np.ones(len(rows), np.uint32), np.array([0, len(rows)]))
    assert words.nbytes * 8 < 3 * len(rows)


@pytest.mark.parametrize("compiled", [False, True])
def test_malformed_lists_are_refused(kernel_loader, compiled):
    assert not compiled or kernels.load()
    words, offsets = encoded([[(row, 2) for row in range(0, 900, 3)]])
    padded = np.concatenate([words, np.zeros(PADDING, np.uint32)])
    end = int(offsets[1])
    with pytest.raises(BadPostings):
        decode_list(padded, 0, end, 897)
    with pytest.raises(BadPostings):
        count_postings(padded, 0, end - 1)
    random = Random(1)
    for _ in range(300):
        damaged = padded.copy()
        damaged[random.randrange(end)] ^= np.uint32(1 << random.randrange(32))
        try:
            rows, counts = decode_list(damaged, 0, end, 900)
        except BadPostings:
            continue
        assert len(rows) == len(counts)
        assert int(rows.max()) < 900
