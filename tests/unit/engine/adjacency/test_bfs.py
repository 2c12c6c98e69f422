"""Distinct nodes: by sorting in a new process, by marks of all nodes once these pay."""

from __future__ import annotations

from threading import Thread

import numpy as np
import pytest

from omnigraph.engine.adjacency import bfs


def in_new_thread(call) -> list:
    """Call a function in a thread of its own, which has no marks."""
    found: list = []
    thread = Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    assert found, "the call failed"
    return found[0]


@pytest.fixture
def allocated(monkeypatch):
    """The numbers of nodes for which marks were allocated."""
    counts: list[int] = []

    class CountedMarks(bfs._VisitMarks):
        def __init__(self, count: int) -> None:
            counts.append(count)
            super().__init__(count)

    monkeypatch.setattr(bfs, "_VisitMarks", CountedMarks)
    return counts


@pytest.mark.parametrize("count", [100_000, 2_000_000])
def test_few_nodes_of_a_large_table_allocate_no_marks(allocated, count):
    nodes = np.random.default_rng(1).integers(0, count, count // 100)
    found = in_new_thread(lambda: bfs.distinct_nodes(nodes, count))
    assert sorted(found.tolist()) == sorted({*nodes.tolist()})
    assert not allocated


def test_marks_are_allocated_once_they_pay(allocated):
    count = 100_000
    nodes = np.random.default_rng(1).integers(0, count, count // 100)

    def repeated() -> list[list[int]]:
        return [sorted(bfs.distinct_nodes(nodes, count).tolist()) for _ in range(20)]

    assert all(found == sorted({*nodes.tolist()}) for found in in_new_thread(repeated))
    assert len(allocated) == 1


def test_many_nodes_use_marks_at_once(allocated):
    nodes = np.random.default_rng(1).integers(0, 1_000, 5_000)
    found = in_new_thread(lambda: bfs.distinct_nodes(nodes, 1_000))
    assert sorted(found.tolist()) == sorted({*nodes.tolist()})
    assert len(allocated) == 1
