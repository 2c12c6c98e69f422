"""Processes that are stopped, unreaped or far behind."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.storage.failpoints import arm
from omnigraph.storage.manifest import manifest_table
from omnigraph.storage.manifest.commit_log import CommitLog
from omnigraph.versioning.upkeep import maintenance
from omnigraph.versioning.write.recovery import recover
from omnigraph.versioning.write.repository import Repository
from support.store import Worker, add_pair, check_sound, new_graph, seeds


@pytest.fixture
def root(tmp_path: Path) -> Path:
    new_graph(tmp_path / "graph", 2)
    return tmp_path / "graph"


def has_stopped(worker: Worker) -> bool:
    return Path(f"/proc/{worker.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_a_writer_stopped_before_its_publish_does_not_block_others(root, tmp_path):
    with Worker(tmp_path, root, "stall", name="stalled") as stalled:
        assert stalled.wait_for(has_stopped)
        with Worker(tmp_path, root, "commits", name="other", count=5) as other:
            other.finish(timeout_s=40)
        assert not stalled.said()
        stalled.process.send_signal(signal.SIGCONT)
        stalled.finish(timeout_s=40)
    check_sound(og.open(root), {*seeds(2), *other.wrote(), *stalled.wrote()})
    assert stalled.wrote() == ["stalled"], "it tried again and landed"


@pytest.mark.parametrize("step", ["identity", "append"])
def test_a_writer_whose_base_was_trimmed_retries(root, monkeypatch, step):
    """It stops before it checks the entry of its base, or before it creates its own."""
    monkeypatch.setattr(manifest_table, "_CHECKPOINT_RECORDS", 4)
    monkeypatch.setattr(manifest_table, "_CHECKPOINT_EVERY", 1)
    monkeypatch.setattr(manifest_table, "_KEEP_ENTRIES", 2)
    slow, quick = Repository.open(root), Repository.open(root)
    for number in range(8):
        add_pair(quick, f"before-{number}")
    do = getattr(CommitLog, step)
    stopped: list[bool] = []

    def sleep(log: CommitLog, *arguments: object) -> object:
        if log is slow.manifest._log and armed and not stopped:
            stopped.append(True)
            for number in range(12):
                add_pair(quick, f"quick-{number}")
        return do(log, *arguments)

    armed: list[bool] = []
    monkeypatch.setattr(CommitLog, step, sleep)
    with arm("publish.before_commit", lambda: armed.append(True)):
        add_pair(slow, "slow")
    assert stopped
    keys = {f"before-{number}" for number in range(8)} | {f"quick-{number}" for number in range(12)}
    assert len(check_sound(og.open(root), {*seeds(2), *keys, "slow"})) == 24


def test_the_intent_of_a_stopped_writer_is_kept(root, tmp_path):
    with Worker(tmp_path, root, "stall", name="stalled") as stalled:
        assert stalled.wait_for(has_stopped)
        repository = Repository.open(root)
        assert [entry.outcome for entry in recover(repository)] == ["in_progress"]
        stalled.process.send_signal(signal.SIGCONT)
        stalled.finish()
    assert recover(repository) == []
    check_sound(og.open(root), {*seeds(2), "stalled"})


def test_a_zombie_writer_counts_as_dead(root, tmp_path):
    with Worker(tmp_path, root, "commits", failpoints="table.promoted=1:kill", count=1) as worker:
        # Wait for its death without reaping it, so that it stays a zombie.
        os.waitid(os.P_PID, worker.process.pid, os.WEXITED | os.WNOWAIT)
        assert [entry.outcome for entry in recover(Repository.open(root))] == ["rolled_back"]


def test_a_cleanup_keeps_recent_heads(tmp_path):
    root = tmp_path / "graph"
    new_graph(root, 2, age=timedelta(hours=1))
    slow, quick = Repository.open(root), Repository.open(root)
    reader = og.open(root).snapshot()

    overtaken: list[bool] = []

    def overtake() -> None:
        if not overtaken:
            overtaken.append(True)
            add_pair(quick, "quick")
            maintenance.cleanup(quick, keep=1, confirm=True, grace=timedelta(minutes=5))

    with arm("table.staged", overtake):
        add_pair(slow, "slow")
    check_sound(og.open(root), {*seeds(2), "quick", "slow"})
    assert sorted(reader.table("node:Item").read(["id"])["id"].to_pylist()) == sorted(seeds(2))
