"""The search benchmark compares its answers with a brute-force computation and detects wrong ones."""

from __future__ import annotations

import pytest
from bench.search import side_by_side
from bench.search.corpus import generate, questions
from bench.search.systems import WORKLOADS, build_graph, ours


def test_every_workload_is_exact_and_timed():
    found = side_by_side.figures(posts=1_500, asked=3, rounds=2)
    assert {f"{workload}, omnigraph ms" for workload in WORKLOADS} < found.keys()
    assert "BM25 top 10, sqlite ms" in found


def test_wrong_answer_is_detected(tmp_path):
    corpus = generate(600, 16)
    asking = questions(corpus, 2)
    system = ours(build_graph(tmp_path / "graph", corpus), corpus)
    right = system["BM25 top 10"]
    side_by_side._check({side_by_side.OURS: system}, corpus, asking, lambda _: None)
    system["BM25 top 10"] = lambda question: right(question)[::-1]
    with pytest.raises(AssertionError, match="BM25 top 10"):
        side_by_side._check({side_by_side.OURS: system}, corpus, asking, lambda _: None)
