"""The folder of an open graph is replaced by an older copy: the handle reads and writes the restored graph."""

from __future__ import annotations

import shutil

import pytest

import omnigraph as og
from support.restoring import OtherProcess, in_process, new_graph, observe, round_of

ROUNDS = 500
PER_PROCESS = 25


@pytest.mark.parametrize("seed", [0, 4, 5])
def test_restored_backup_is_read_and_written(tmp_path, seed):
    round_of(tmp_path / "graph", seed, in_process)


def test_restored_backup_and_another_process(tmp_path):
    with OtherProcess() as other:
        round_of(tmp_path / "graph", 100, other)


@pytest.mark.parametrize("lost", [lambda graph: graph.branch_create("b"), lambda graph: graph.tag_create("t")])
def test_restored_backup_after_a_publish_without_a_commit(tmp_path, lost):
    path, copy = tmp_path / "graph", tmp_path / "copy"
    graph = new_graph(path)
    shutil.copytree(path, copy)
    lost(graph)
    observe(graph)
    shutil.rmtree(path)
    copy.rename(path)
    other = og.open(path)
    for count in range(2):
        other.load([{"type": "Item", "data": {"name": "i1", "count": count, "note": "red"}}], mode="merge")
    assert graph.commits() == other.commits()
    assert observe(graph) == observe(og.open(path))


@pytest.mark.long
def test_restored_backup_long(tmp_path):
    for first in range(0, ROUNDS, PER_PROCESS):
        with OtherProcess() as other:
            for seed in range(first, first + PER_PROCESS):
                round_of(tmp_path / f"graph-{seed}", seed, other)
