"""`resolve`: candidates by blocks, scores compared with a simple computation, clusters, and the branch for review."""

from __future__ import annotations

from math import log1p
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import InputError
from omnigraph.operations.resolution.candidates import pairs_of_blocks, vector_pairs
from omnigraph.operations.resolution.tokens import token_rows

SCHEMA = """
node Person {
    key: String @key
    name: String
    email: String?
    tags: [String]?
    place: Vector(3)?
}
edge Knows: Person -> Person
"""
PEOPLE = [
    {"key": "a1", "name": "Ana Bell", "email": "ana@bell.example", "place": [1, 0, 0]},
    {"key": "a2", "name": "BELL, Ána", "place": [0.99, 0.1, 0]},
    {"key": "b1", "name": "Bo Chen", "email": "bo@chen.example", "tags": ["x"]},
    {"key": "b2", "name": "Bo Chen", "email": "bo@chen.example"},
    {"key": "c1", "name": "Cy Twombly", "place": [0, 1, 0]},
]


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, sync=False)
    graph.load([{"type": "Person", "data": row} for row in PEOPLE], mode="merge")
    return graph


def test_scores_equal_a_simple_computation():
    random = Random(3)
    words = [f"w{number}" for number in range(12)]
    texts = [" ".join(random.choices(words, k=random.randrange(0, 6))) or None for _ in range(60)]
    rows = token_rows(pa.array(texts, pa.utf8()))
    sets = [set((text or "").split()) for text in texts]
    weight = {word: log1p(len(texts) / max(1, sum(word in one for one in sets))) for word in words}
    left, right = np.triu_indices(len(texts), 1)
    for a, b, score in zip(left, right, rows.jaccard(left, right), strict=True):
        union = sum(weight[word] for word in sets[a] | sets[b])
        expected = sum(weight[word] for word in sets[a] & sets[b]) / union if union else 0
        assert score == pytest.approx(expected)


def test_blocks_are_bounded():
    keys, rows = np.array([1, 1, 2, 2, 2, 3]), np.arange(6)
    found = {(int(pair) >> 32, int(pair) & 0xFFFFFFFF) for pair in pairs_of_blocks(keys, rows, most=2)}
    assert found == {(0, 1)}
    assert len(pairs_of_blocks(keys, rows)) == 4


def test_neighbouring_vectors_are_candidates():
    random = np.random.default_rng(5)
    base = random.standard_normal((200, 16)).astype(np.float32)
    near = base + random.standard_normal(base.shape).astype(np.float32) * 0.02
    pairs = vector_pairs(np.concatenate([base, near]), np.arange(400))
    found = {(int(pair) >> 32, int(pair) & 0xFFFFFFFF) for pair in pairs}
    assert sum((row, row + 200) in found for row in range(200)) >= 190


def test_pairs_are_scored_and_explained(graph):
    found = graph.resolve("Person", ["name", "email"])
    assert [(pair.keep, pair.drop, pair.score) for pair in found.pairs] == [("a1", "a2", 1.0), ("b1", "b2", 1.0)]
    assert found.pairs[0].scores == {"name": 1.0, "email": None}
    assert found.pairs[0].values["name"] == ("Ana Bell", "BELL, Ána")
    assert found.clusters == {"a1": ("a2",), "b1": ("b2",)}
    assert found.branch is None
    assert found.compared < len(PEOPLE) * (len(PEOPLE) - 1) / 2


def test_vectors_and_weights(graph):
    found = graph.resolve("Person", ["name", "place"], similar=0.5, weights={"place": 3})
    pair = found.pairs[-1]
    assert pair.score == pytest.approx((pair.scores["name"] + 3 * pair.scores["place"]) / 4, abs=1e-3)


def test_a_branch_for_review(graph):
    before = graph.snapshot().commit_id
    found = graph.resolve("Person", ["name"], into="resolve/person", rules={"email": "longest"})
    assert found.branch == "resolve/person"
    assert found.written.unified.nodes == 2
    assert graph.snapshot().commit_id == before
    review = graph.on("resolve/person")
    assert review.get("Person", "a2")["id"] == "a1"
    assert review.to_arrow("Person").num_rows == 3
    graph.merge("resolve/person")
    assert graph.get("Person", "b2")["id"] == "b1"


@pytest.mark.parametrize(
    "arguments",
    [
        {"by": []},
        {"by": ["nam"]},
        {"by": ["name"], "similar": 0},
        {"by": ["name"], "block": 1},
        {"by": ["name"], "weights": {"email": 1}},
        {"by": ["name"], "weights": {"name": -1}},
    ],
)
def test_wrong_arguments(graph, arguments):
    with pytest.raises(InputError):
        graph.resolve("Person", **arguments)
