"""The text benchmark builds and asks both systems."""

from __future__ import annotations

import pytest
from bench import text

pytest.importorskip("lancedb")


def test_figures_of_a_small_corpus():
    found = text.figures(documents=6_000)
    assert found["build, omnigraph s"] > 0
    assert found["index, omnigraph MB"] > 0
    assert found["first query ms"] > 0
    assert found["warm query, worst ratio"] >= found["warm query, omnigraph / LanceDB"]
