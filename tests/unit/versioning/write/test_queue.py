"""The queue of the writers of a process."""

from __future__ import annotations

import threading
import time

import pytest

import omnigraph as og
from omnigraph.cancellation import cancelled_by
from omnigraph.errors import Cancelled
from omnigraph.versioning.write import queue as queue_module
from omnigraph.versioning.write.queue import WriteQueue
from support.store import repository_of

ADD = "query q($name: String) { insert Item { name: $name } }"


class Flag:
    cancelled = False


def wait_for(condition) -> None:
    for _ in range(3_000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("the condition did not hold in time")


def in_line(queue: WriteQueue, names: list[str], done: list[str], branch: str = "main") -> list[threading.Thread]:
    """Start writers one after the other; each is in the line before the next begins."""
    threads = []
    for name in names:

        def write(name: str = name) -> None:
            with queue.turn(branch):
                done.append(name)

        before = queue.length(branch)
        threads.append(threading.Thread(target=write))
        threads[-1].start()
        wait_for(lambda before=before: queue.length(branch) > before)
    return threads


def test_writers_take_turns_in_the_order_of_their_arrival():
    queue, done = WriteQueue(), []
    names = [f"w{number}" for number in range(8)]
    with queue.turn("main"):
        threads = in_line(queue, names, done)
        assert done == []
    for thread in threads:
        thread.join(30)
    assert done == names
    assert queue.length("main") == 0


def test_branches_do_not_wait_for_each_other():
    queue = WriteQueue()
    with queue.turn("main"), queue.turn("side"):
        assert (queue.length("main"), queue.length("side")) == (1, 1)


def test_a_turn_ends_with_an_error():
    queue = WriteQueue()
    with pytest.raises(LookupError), queue.turn("main"):
        raise LookupError
    with queue.turn("main"):
        pass


def test_a_waiting_write_can_be_cancelled():
    queue, flag, errors = WriteQueue(), Flag(), []

    def write() -> None:
        try:
            with cancelled_by(flag), queue.turn("main"):
                errors.append("not cancelled")
        except Cancelled as error:
            errors.append(error.code)

    done: list[str] = []
    with queue.turn("main"):
        thread = threading.Thread(target=write)
        thread.start()
        wait_for(lambda: queue.length("main") == 2)
        behind = in_line(queue, ["behind"], done)
        flag.cancelled = True
        thread.join(30)
        assert errors == ["cancelled"]
        assert done == []
    behind[0].join(30)
    assert done == ["behind"]


def test_a_write_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr(queue_module, "_PATIENCE_S", 0.0)
    queue, done = WriteQueue(), []
    with queue.turn("main"):
        thread = threading.Thread(target=lambda: [done.append("late") for _ in [0] if _enter(queue)])
        thread.start()
        thread.join(30)
        assert done == ["late"]


def _enter(queue: WriteQueue) -> bool:
    with queue.turn("main"):
        return True


def test_threads_that_mutate_one_branch_lose_no_race(tmp_path):
    graph = og.init(tmp_path / "g", "node Item { name: String @key }", sync=False)
    lost: list[str] = []
    repository = repository_of(graph)
    real = repository.record_lost_race
    repository.record_lost_race = lambda branch: (lost.append(branch), real(branch))
    threads = [
        threading.Thread(target=lambda number=number: [graph.mutate(ADD, {"name": f"{number}-{n}"}) for n in range(5)])
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert lost == []
    assert graph.to_arrow("Item").num_rows == 40
    assert len(graph.commits()) == 41
