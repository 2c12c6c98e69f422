"""A process is killed between its publish and its answer; the repetition returns the result and changes nothing."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from support.keyed_writes import WRITES, new_graph, open_graph, outcome, state_of
from support.store import Worker


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(new_graph(tmp_path_factory.mktemp("seeded") / "g").uri)


CASES = [
    ("before_commit", "merge and delete"),
    *(
        ("after_commit", name)
        for name in ("load", "merge and delete", "apply_schema", "branch_create", "branch_delete")
    ),
]


@pytest.mark.parametrize(("step", "name"), CASES)
def test_the_repetition_of_a_killed_request(seeded, tmp_path, name, step):
    root = Path(shutil.copytree(seeded, tmp_path / "g"))
    with Worker(tmp_path, root, "keyed", failpoints=f"publish.{step}=kill", writes=[name]) as worker:
        assert worker.end() == -signal.SIGKILL, worker.trouble()
    graph = open_graph(root)
    settled = WRITES[name](graph, name)
    after = state_of(graph)
    assert outcome(WRITES[name](open_graph(root), name)) == outcome(settled)
    assert state_of(graph) == after
    fresh = Path(shutil.copytree(seeded, tmp_path / "unharmed"))
    expected = open_graph(fresh)
    WRITES[name](expected, name)
    assert len(graph.commits()) == len(expected.commits()), "the request took place once"
    assert graph.branches() == expected.branches()
    assert graph.verify() == []
