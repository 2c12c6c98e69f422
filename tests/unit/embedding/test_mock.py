"""The mock provider, bit for bit."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.embedding.client import EmbeddingClient
from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.embedding.mock import mock_vectors
from omnigraph.hashing import fnv1a

ANCHORS = {
    "graph": "be15ab6d bf3247c1 bf325d9a 3db984c6",
    "alpha": "bec064dd bea775b4 3de47214 3ef020bc beeedc65 3e173d14 bf021e68 be168ca3",
    "beta": "3ee3962f bec0221a be8e4a28 3e30f7bc bed3e413 3ea36229 3f005bfd be315326",
    "": "beec8d0d bf50ca28 beb25e34",
    "naïve café": "bde150db 3f5d8b76 3e81e288 bed5f205",
}
MASK = 2**64 - 1


def bits(vector):
    return " ".join(struct.pack(">f", component).hex() for component in vector)


def f32(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def slow_hash(data):
    value = 14695981039346656037
    for byte in data:
        value = ((value ^ byte) * 1099511628211) & MASK
    return value


def slow_mock(text, dim):
    """The algorithm as it is written down, a number at a time."""
    state, raw = slow_hash(text.encode()), []
    for _ in range(dim):
        state ^= (state << 13) & MASK
        state ^= state >> 7
        state ^= (state << 17) & MASK
        raw.append(f32(f32(f32(float(state) / 18446744073709551616.0) * 2) - 1))
    total = 0.0
    for component in raw:
        total += component * component
    norm = f32(math.sqrt(total))
    return [f32(component / norm) for component in raw] if norm > 2**-23 else raw


@pytest.mark.parametrize("text", ANCHORS)
def test_documented_vectors(text):
    expected = ANCHORS[text]
    assert bits(mock_vectors([text], len(expected.split()))[0]) == expected


def test_documented_hash():
    assert fnv1a([b"graph"])[0] == 0x32EC982977FE5287


@pytest.mark.parametrize("count", [1, 3, 40])
def test_batches_equal_single_texts(count):
    texts = [text for text in ANCHORS for _ in range(count)]
    vectors = mock_vectors(texts, 8)
    for text, vector in zip(texts, vectors, strict=True):
        assert bits(vector) == bits(slow_mock(text, 8))


@given(st.lists(st.text(), max_size=40), st.integers(1, 20))
def test_vectorised_and_reference_results_agree(texts, dim):
    assert [bits(vector) for vector in mock_vectors(texts, dim)] == [bits(slow_mock(text, dim)) for text in texts]


@given(st.lists(st.binary(max_size=60), max_size=60))
def test_hashes_agree_with_the_reference(strings):
    assert fnv1a(strings).tolist() == [slow_hash(string) for string in strings]


def test_model_and_role_have_no_effect_and_texts_are_not_trimmed():
    one, other = (EmbeddingClient(EmbeddingConfig("mock", model)) for model in ("", "m"))
    assert (one.embed(["x"], 5) == other.embed(["x"], 5, "query")).all()
    distinct = one.embed(["x", " x", "X", "x\n", "e\u0301", "é"], 16)
    assert len(np.unique(distinct, axis=0)) == 6


def test_many_vectors():
    texts = [f"A text of some forty letters, number {number}" for number in range(10_000)]
    vectors = mock_vectors(texts, 64)
    assert vectors.shape == (10_000, 64)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
