"""Shuffles: equal texts are in the same bucket, different texts spread evenly."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.hashing import hash_texts
from omnigraph.pipeline.shuffle import IdFilter, buckets_of

TEXTS = ["", "a", "ab", "a\0", "abcdefgh", "abcdefghi", "é", "€" * 9, "x" * 40, "x" * 41]
AGREED = [0, 810, 772, 542]


def test_hash_depends_on_the_text_alone():
    alone = [hash_texts(pa.array([text]))[0] for text in TEXTS]
    together = hash_texts(pa.array(["zz", *TEXTS, "q" * 100]).slice(1, len(TEXTS)))
    assert together.tolist() == alone
    assert len(set(alone)) == len(TEXTS)
    assert len(hash_texts(pa.array([], pa.utf8()))) == 0


@pytest.mark.parametrize("form", ["{}", "person-{:08}", "https://example.org/things/{:012}/description", "{:032}"])
def test_hashes_of_numbered_texts_spread_evenly(form):
    texts = pa.array([form.format(number) for number in range(20_000)])
    counts = np.bincount((hash_texts(texts) % np.uint64(16)).astype(int), minlength=16)
    assert counts.min() > 1_000
    assert counts.max() < 1_500


def test_hashes_are_stable_across_releases():
    """Workers of one job may run different releases, so these hashes must not change."""
    assert [int(number) for number in hash_texts(pa.array(["", "ana", "person-00000007", "x" * 30])) % 1000] == AGREED


def test_tuple_with_a_null_is_not_shuffled():
    rows = pa.table({"a": ["x", None, "x"], "b": [1, 2, 1]})
    taken, numbers = buckets_of(rows, ["a", "b"], 7)
    assert taken.to_pylist() == [{"a": "x", "b": 1}] * 2
    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("count", [0, 1, 3, 5_000])
def test_id_filter_passes_known_ids_and_few_others(count):
    known = [f"person-{number:08}" for number in range(count)]
    others = [f"person-{number:08}" for number in range(count, count + 20_000)]
    rows = pa.record_batch({"id": pa.array([*known[::2], *others, *known[1::2]], pa.utf8())})
    is_known = IdFilter(pa.array(known, pa.utf8())).is_known(rows["id"])
    kept = rows.filter(pa.array(is_known))["id"].to_pylist()
    assert kept[: -(-count // 2)] == known[::2]
    assert kept[len(kept) - count // 2 :] == known[1::2]
    assert len(kept) - count <= 20_000 / 64
