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
from support.serving import WAIT_S, make_graph, wait_for

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "operate.md"
STEPS = re.findall(r"(?m)^\$ ((?:mkdir|cp) .*backup\.omni.*)$", GUIDE.read_text(encoding="utf-8"))
NAMES = "query names() { match { $p: Person } return { $p.name } }"
FEW, MANY = 2, 40
"""Commits between two steps of a copy; the manifest keeps the data of 32 versions."""

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


def test_the_guide_copies_in_four_steps():
    assert [step.split()[0] for step in STEPS] == ["mkdir", "cp", "cp", "cp"]
    assert "_versions" in STEPS[1]


@pytest.mark.parametrize("commits", [{2: FEW, 3: FEW}, {2: FEW, 3: MANY}], ids=["a fast copy", "a slow copy of tables"])
def test_a_copy_during_writes_is_complete(tmp_path, commits: dict[int, int]):
    """Further commits are made before the data of the manifest and before the tables are copied."""
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
    copy = og.open(tmp_path / "backup.omni", read_only=True)
    assert copy.verify(deep=True) == []
    assert before | {"first"} <= names(copy) <= after | {"first"}
    writable = og.open(tmp_path / "backup.omni", sync=False)
    writable.load([{"type": "Person", "data": {"name": "last"}}], mode="append")
    writable.cleanup(keep=1)
    assert writable.verify(deep=True) == []
    assert "last" in names(writable)


def test_a_copy_in_another_order_is_recognised(tmp_path):
    """A commit between the copy of the tables and that of the manifest is missing from the tables."""
    path = make_graph(tmp_path / "log.omni", "first")
    mkdir, versions, manifest, tables = STEPS
    for step in (mkdir, tables):
        subprocess.run(["bash", "-c", step], cwd=tmp_path, timeout=WAIT_S, check=True)
    og.open(path).load([{"type": "Person", "data": {"name": "second"}}], mode="append")
    for step in (versions, manifest):
        subprocess.run(["bash", "-c", step], cwd=tmp_path, timeout=WAIT_S, check=True)
    with pytest.raises(Damaged):
        names(og.open(tmp_path / "backup.omni", read_only=True))
    assert run(["verify", str(tmp_path / "backup.omni")]) == 1
    assert og.open(path).verify() == []


def test_an_open_handle_continues_with_a_restored_copy(tmp_path):
    path = make_graph(tmp_path / "log.omni", "first")
    graph = og.open(path, sync=False)
    for step in STEPS:
        subprocess.run(["bash", "-c", step], cwd=tmp_path, timeout=WAIT_S, check=True)
    graph.load([{"type": "Person", "data": {"name": "mistake"}}], mode="append")
    assert names(graph) == {"first", "mistake"}
    path.rename(tmp_path / "damaged.omni")
    (tmp_path / "backup.omni").rename(path)
    assert names(graph) == {"first"}
    graph.load([{"type": "Person", "data": {"name": "second"}}], mode="append")
    assert names(og.open(path)) == {"first", "second"}
    assert graph.verify() == []
