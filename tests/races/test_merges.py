"""Processes edit branches and merge them into main concurrently: every edit arrives, and main stays linear."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest

from support.racing import race
from support.store import new_graph


def merge_many(folder: Path, branches: int, edits: int, *, processes: int = 4, timeout_s: float = 120) -> float:
    """Run the processes and check all invariants; return the seconds it took."""
    graph = new_graph(folder / "graph", branches)
    jobs = [(f"branch-{number}", f"seed-{number}") for number in range(branches)]
    requests = [{"do": "merges", "branches": jobs[number::processes], "edits": edits} for number in range(processes)]
    start = time.monotonic()
    workers = race(folder, graph.uri, *requests, timeout_s=timeout_s)
    took = time.monotonic() - start
    said = [line for worker in workers for line in worker.said() if "key" in line]
    assert sorted(line["key"] for line in said) == sorted(branch for branch, _ in jobs)
    assert {line["outcome"] for line in said} <= {"merged", "fast_forward"}
    assert all(line["deleted"] for line in said)
    assert graph.branches() == ["main"]

    # All edits arrived, and nothing else.
    added = {f"{branch}-{number}" for branch, _ in jobs for number in range(edits - 2)}
    seeds = {seed for _, seed in jobs}
    items = {row["id"]: row["count"] for row in graph.to_arrow("Item").to_pylist()}
    assert items == {**dict.fromkeys(added, 0), **dict.fromkeys(seeds, 1)}
    assert set(graph.to_arrow("Link")["id"].to_pylist()) == added

    # Main is linear: the seeds, then the merges, each on top of the previous one.
    commits = {commit.id: commit for commit in graph.commits()}
    line = [graph.snapshot().commit]
    for _ in range(len(commits)):
        if line[-1].parent_id is None:
            break
        line.append(commits[line[-1].parent_id])
    assert [commit.kind for commit in line] == ["merge"] * branches + ["write"] * branches + ["init"]
    assert {commit.branch for commit in line} == {"main"}
    assert {commit.id for commit in line[:branches]} == {line["commit"] for line in said}
    assert all(newer.manifest_version > older.manifest_version for newer, older in pairwise(line))
    assert len(commits) == 1 + 2 * branches + branches * edits, "and every edit is in its history"
    assert graph.verify() == []
    return took


def test_branches_merged_by_processes(tmp_path):
    merge_many(tmp_path, 8, 3)


@pytest.mark.long
def test_branches_merged_by_processes_long(tmp_path, record_property):
    took = merge_many(tmp_path, 200, 20, timeout_s=1500)
    figures = f"200 branches of 20 edits merged by 4 processes: {took:.1f} s"
    record_property("figures", figures)
    print(figures)  # noqa: T201 (shown with -s)
