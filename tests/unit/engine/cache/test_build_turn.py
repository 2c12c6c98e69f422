"""Turns at building: one at a time, others read what was built, and nobody waits for ever."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.engine import tuning
from omnigraph.engine.cache import build_turn as build_turns
from omnigraph.engine.cache.build_turn import LOCK, build_turn
from omnigraph.engine.exec.cancellation import Cancellation, Watch, watching
from omnigraph.engine.search import vector_scan
from omnigraph.errors import Cancelled
from omnigraph.graph_handle import cache_of

WAIT_S = 20.0
SCHEMA = """
node Person { name: String @key bio: String? @index }
edge Knows: Person -> Person
"""
HOP = "query hop() { match { $p: Person $p knows $q } return { count($q) as n } }"
TEXT = 'query text() { match { $p: Person search($p.bio, "graph") } return { count($p) as n } }'


@contextmanager
def other_process(folder: Path) -> Iterator[None]:
    """Hold the turn as another process does: a lock belongs to an open file."""
    folder.mkdir(exist_ok=True)
    with (folder / LOCK).open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_a_free_turn_is_taken_at_once(tmp_path: Path) -> None:
    for _ in range(2):
        with build_turn(tmp_path / "cache") as shared:
            assert shared
    with build_turn(None) as shared:
        assert not shared


def test_a_folder_that_cannot_be_written_has_no_turns(tmp_path: Path) -> None:
    with build_turn(tmp_path / "missing" / "cache") as shared:
        assert not shared


def test_a_turn_is_awaited(tmp_path: Path) -> None:
    found: list[bool] = []

    def take() -> None:
        with build_turn(tmp_path) as shared:
            found.append(shared)

    thread = threading.Thread(target=take)
    with other_process(tmp_path):
        thread.start()
        thread.join(0.1)
        assert not found
    thread.join(WAIT_S)
    assert found == [True]


def test_a_turn_is_taken_again_by_its_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_turns, "add_note", pytest.fail)
    with tuning.replaced(build_wait_s=0.5), build_turn(tmp_path):
        for _ in range(2):
            with build_turn(tmp_path) as shared:
                assert shared
        (tmp_path / LOCK).touch()
        with (tmp_path / LOCK).open("ab") as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with (tmp_path / LOCK).open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_the_wait_is_bounded(tmp_path: Path) -> None:
    with tuning.replaced(build_wait_s=0.05), other_process(tmp_path), build_turn(tmp_path) as shared:
        assert shared


def test_the_wait_can_be_cancelled(tmp_path: Path) -> None:
    cancel = Cancellation()
    cancel.cancel()
    with (
        other_process(tmp_path),
        watching(Watch(None, cancel)),
        pytest.raises(Cancelled),
        build_turn(tmp_path),
    ):
        pass


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "g.omni", SCHEMA, sync=False)
    people = [{"type": "Person", "data": {"name": f"p{n}", "bio": f"a graph of {n}"}} for n in range(50)]
    edges = [{"edge": "Knows", "from": f"p{n}", "to": f"p{n + 1}"} for n in range(49)]
    graph.load([*people, *edges], mode="merge")
    return graph


@pytest.mark.parametrize(("query", "built"), [(HOP, "building the CSR"), (TEXT, "built from")])
def test_a_waiting_process_reads_what_the_other_one_built(graph: og.Graph, query: str, built: str) -> None:
    folder = cache_of(graph).folder
    assert folder is not None
    waiting = og.open(graph.uri)
    cache_of(waiting).takes_turns = True
    found: list[str] = []
    with tuning.replaced(adjacency_disk_edges_min=1, postings_disk_rows_min=1):
        thread = threading.Thread(target=lambda: found.append(str(waiting.profile(query))))
        with other_process(folder):
            thread.start()
            thread.join(0.1)
            assert thread.is_alive()
            assert built in str(graph.profile(query))
        thread.join(WAIT_S)
    assert built not in found[0]


def test_after_the_wait_a_process_builds_for_itself(graph: og.Graph) -> None:
    folder = cache_of(graph).folder
    assert folder is not None
    cache_of(graph).takes_turns = True
    with tuning.replaced(adjacency_disk_edges_min=1, build_wait_s=0.05), other_process(folder):
        assert "building the CSR" in str(graph.profile(HOP))


def test_a_thread_that_waits_for_a_turn_does_not_block_its_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query opens the vectors while `optimize` writes them and then clusters them."""
    near = "query q() { match { $d: Doc } return { $d.name } order { nearest($d.vec, [1, 2, 3]) } limit 3 }"
    graph = og.init(tmp_path / "g.omni", "node Doc { name: String @key  vec: Vector(3) }", sync=False)
    rows = [{"type": "Doc", "data": {"name": f"d{at}", "vec": [at, 1, at % 7]}} for at in range(600)]
    graph.load(rows, mode="append")
    graph = og.open(graph.uri, approximate=True)
    wait, blocks = build_turns._wait, vector_scan._blocks
    waiting, late, found = threading.Event(), list[str](), list[int]()
    reader = threading.Thread(target=lambda: found.append(len(graph.query(near))))

    def wait_visibly(file: Any) -> None:
        if threading.current_thread() is reader:
            waiting.set()
        wait(file)

    def blocks_after_the_reader_waits(*given: Any) -> Any:
        if not reader.ident:
            reader.start()
            assert waiting.wait(WAIT_S)
        return blocks(*given)

    cache_of(graph).takes_turns = True
    monkeypatch.setattr(build_turns, "add_note", late.append)
    monkeypatch.setattr(build_turns, "_wait", wait_visibly)
    monkeypatch.setattr(vector_scan, "_blocks", blocks_after_the_reader_waits)
    with tuning.replaced(vector_index_rows_min=100, vector_disk_bytes_min=0, segment_rows_min=100, build_wait_s=10.0):
        graph.optimize()
        reader.join(WAIT_S)
    assert found == [3]
    assert late == []
