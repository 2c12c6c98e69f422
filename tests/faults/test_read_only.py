"""Operations on a graph opened read-only never change it."""

from __future__ import annotations

import signal
from datetime import timedelta

import pytest

import omnigraph as og
from omnigraph.errors import InputError
from omnigraph.versioning.upkeep import maintenance
from support.graphs import files_below
from support.store import Worker, add_pair, new_graph, repository_of

ATTEMPTS = {
    "write": lambda graph: add_pair(repository_of(graph), "more"),
    "branch": lambda graph: graph.branch_create("mine"),
    "optimize": lambda graph: graph.optimize(),
    "ensure_indices": lambda graph: graph.ensure_indices(),
    "cleanup": lambda graph: maintenance.cleanup(repository_of(graph), keep=1, confirm=True, grace=timedelta(0)),
    "recover": lambda graph: graph.recover(),
}


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_read_only_operations_change_nothing(tmp_path, attempt):
    root = tmp_path / "graph"
    new_graph(root, 3)
    # The graph has an intent to recover and versions to remove.
    with Worker(tmp_path, root, "commits", failpoints="table.promoted=1:kill", count=1) as worker:
        assert worker.end() == -signal.SIGKILL
    before = files_below(root)
    graph = og.open(root, read_only=True)
    with pytest.raises(InputError, match="read-only"):
        attempt(graph)
    assert graph.verify() == []
    assert files_below(root) == before
