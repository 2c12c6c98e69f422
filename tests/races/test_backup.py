"""Backups during writes, by the commands of docs/guides/operate.md: complete, sound and writable."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cli.main import run
from omnigraph.errors import Damaged
from support.serving import WAIT_S, make_graph
from support.waiting import wait_for

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "operate.md"
STEPS = re.findall(r"(?m)^\$ ((?:mkdir|cp) .*backup\.omni.*)$", GUIDE.read_text(encoding="utf-8"))
NAMES = "query names() { match { $p: Person } return { $p.name } }"
MKDIR, LOG, VERSIONS, MANIFEST, TABLES = range(5)
FEW, MANY = 2, 70
"""Commits between two steps of a copy; a checkpoint is written after 64 versions."""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="cp")


@contextmanager
def writers(path: Path, number: int = 2) -> Iterator[list[str]]:
    """Commit persons, compactions and branches until the block ends; yields the names that were acknowledged."""
    written: list[str] = []
    stopped = threading.Event()

    def write(writer: int) -> None:
        graph = og.open(path, sync=False)
        for count in range(1_000_000):
            if stopped.is_set():
                return
            name = f"writer {writer}, person {count}"
            graph.load([{"type": "Person", "data": {"name": name}}], mode="append")
            written.append(name)
            if count % 20 == 10:
                graph.optimize()
            if count % 10 == 5:
                graph.branch_create(f"branch-{writer}-{count}")

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(number)]
    for thread in threads:
        thread.start()
    try:
        yield written
    finally:
        stopped.set()
        for thread in threads:
            thread.join(WAIT_S)


def names(graph: og.Graph) -> set[str]:
    return {row["p.name"] for row in graph.query(NAMES)}


def test_the_guide_copies_in_this_order():
    assert [step.split()[0] for step in STEPS] == ["mkdir", "cp", "cp", "cp", "cp"]
    assert "__log" in STEPS[LOG]
    assert "_versions" in STEPS[VERSIONS]
    assert "data" in STEPS[MANIFEST]


@pytest.mark.parametrize(
    "commits",
    [{VERSIONS: FEW, MANIFEST: FEW, TABLES: FEW}, {VERSIONS: MANY, MANIFEST: FEW}, {MANIFEST: MANY}, {TABLES: MANY}],
    ids=["a fast copy", "a slow copy of the log", "a slow copy of the manifest", "a slow copy of tables"],
)
def test_a_copy_during_writes_is_complete(tmp_path, commits: dict[int, int]):
    """Further commits are made before each step."""
    make_graph(tmp_path / "log.omni", "first")
    with writers(tmp_path / "log.omni") as written:
        wait_for(lambda: len(written) > 10, "the first commits")
        before = {*written}
        for place, step in enumerate(STEPS):
            reached = len(written) + commits.get(place, 0)
            wait_for(lambda reached=reached: len(written) >= reached, "commits during the copy")
            # cp reports temporary files that disappear while it runs, with exit code 1.
            subprocess.run(["bash", "-c", step], cwd=tmp_path, capture_output=True, timeout=WAIT_S, check=False)
    after = {*written}
    backup = og.open(tmp_path / "backup.omni", read_only=True)
    assert backup.verify(deep=True) == []
    assert before | {"first"} <= names(backup) <= after | {"first"}
    writable = og.open(tmp_path / "backup.omni", sync=False)
    writable.load([{"type": "Person", "data": {"name": "last"}}], mode="append")
    writable.cleanup(keep=1)
    assert writable.verify(deep=True) == []
    assert "last" in names(writable)


def copy(tmp_path: Path, *steps: int) -> None:
    for step in steps:
        subprocess.run(["bash", "-c", STEPS[step]], cwd=tmp_path, timeout=WAIT_S, check=True)


def commit(path: Path, *added: str) -> None:
    graph = og.open(path, sync=False)
    for name in added:
        graph.load([{"type": "Person", "data": {"name": name}}], mode="append")


def test_a_copy_of_the_tables_before_the_log_is_recognised(tmp_path):
    """A commit between the copy of the tables and that of the log is missing from the tables."""
    path = make_graph(tmp_path / "log.omni", "first")
    copy(tmp_path, MKDIR, TABLES)
    commit(path, "second")
    copy(tmp_path, LOG, VERSIONS, MANIFEST)
    with pytest.raises(Damaged):
        names(og.open(tmp_path / "backup.omni", read_only=True))
    assert run(["verify", str(tmp_path / "backup.omni")]) == 1
    assert og.open(path).verify() == []


def test_a_copy_of_the_manifest_before_the_log_is_recognised(tmp_path):
    """The log continues a checkpoint that was written after the copy of the manifest."""
    path = make_graph(tmp_path / "log.omni", "first")
    copy(tmp_path, MKDIR, VERSIONS, MANIFEST)
    commit(path, *(f"person {number}" for number in range(MANY)))
    copy(tmp_path, LOG, TABLES)
    with pytest.raises(Damaged, match="does not continue") as caught:
        og.open(tmp_path / "backup.omni", read_only=True)
    assert "__log first" in str(caught.value.hint)


def test_an_open_handle_continues_with_a_restored_copy(tmp_path):
    path = make_graph(tmp_path / "log.omni", "first")
    graph = og.open(path, sync=False)
    copy(tmp_path, MKDIR, LOG, VERSIONS, MANIFEST, TABLES)
    graph.load([{"type": "Person", "data": {"name": "mistake"}}], mode="append")
    assert names(graph) == {"first", "mistake"}
    path.rename(tmp_path / "damaged.omni")
    (tmp_path / "backup.omni").rename(path)
    assert names(graph) == {"first"}
    graph.load([{"type": "Person", "data": {"name": "second"}}], mode="append")
    assert names(og.open(path)) == {"first", "second"}
    assert graph.verify() == []
