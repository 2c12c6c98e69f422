"""The queue of the writers of a process."""

from __future__ import annotations

import threading

import pytest

import omnigraph as og
from omnigraph.cancellation import cancelled_by
from omnigraph.errors import Cancelled
from omnigraph.versioning.write import queue as queue_module
from omnigraph.versioning.write.queue import Leader, WriteQueue
from support.store import repository_of
from support.waiting import wait_for

ADD = "query q($name: String) { insert Item { name: $name } }"


class Flag:
    cancelled = False


class Line:
    """Writers of one branch: the first one holds the queue until `release` is set."""

    def __init__(self, *, takes: int = 0) -> None:
        self.queue: WriteQueue[str] = WriteQueue()
        self.release = threading.Event()
        self.done: list[str] = []
        self.errors: list[str] = []
        self._takes = takes
        self._threads: list[threading.Thread] = []
        self._start("first", self._hold)

    def _hold(self, _: Leader[str]) -> None:
        wait_for(self.release.is_set)

    def _lead(self, leader: Leader[str]) -> None:
        self.done.append(leader.first.work)
        for _ in range(self._takes):
            taken = leader.take()
            if taken is not None:
                self.done.append(f"{leader.first.work} ran {taken.work}")
                taken.deliver(lambda: None)

    def add(self, name: str, flag: Flag | None = None) -> None:
        self._start(name, self._lead, flag)

    def _start(self, name, lead, flag=None) -> None:
        def run() -> None:
            try:
                with cancelled_by(flag or Flag()):
                    self.queue.run("main", name, lead, lambda: self.done.append(f"{name} alone"))
            except (Cancelled, LookupError) as error:
                self.errors.append(f"{name}: {error}")
            except KeyboardInterrupt:
                self.errors.append(name)

        before = self.queue.length("main")
        self._threads.append(threading.Thread(target=run, daemon=True))
        self._threads[-1].start()
        wait_for(lambda: self.queue.length("main") > before or not self._threads[-1].is_alive())

    def join(self) -> list[str]:
        self.release.set()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()
        assert self.queue.length("main") == 0
        return self.done


def test_writers_take_turns_in_the_order_of_their_arrival():
    line = Line()
    names = [f"w{number}" for number in range(8)]
    for name in names:
        line.add(name)
    assert line.done == []
    assert line.join() == names


def test_a_leader_runs_writes_that_wait_behind_it():
    line = Line(takes=2)
    for name in "abcde":
        line.add(name)
    assert line.join() == ["a", "a ran b", "a ran c", "d", "d ran e"]


def test_writes_that_are_put_back_keep_their_order():
    line = Line()

    def lead(leader: Leader[str]) -> None:
        taken = [write for write in (leader.take(), leader.take()) if write is not None]
        leader.put_back(taken)
        assert leader.first.work == "a"

    line._start("a", lead)
    for name in "bcd":
        line.add(name)
    assert line.join() == ["b", "c", "d"]


def test_branches_do_not_wait_for_each_other():
    line = Line()
    line.queue.run("side", "x", line._lead, lambda: None)
    assert line.done == ["x"]
    line.join()


def test_a_turn_ends_with_an_error():
    line = Line()

    def fail(_: Leader[str]) -> None:
        raise LookupError("failed")

    line._start("a", fail)
    line.add("b")
    assert line.join() == ["b"]
    assert line.errors == ["a: failed"]


def test_the_outcome_of_a_write_is_raised_in_its_own_thread():
    queue: WriteQueue[str] = WriteQueue()

    def lead(leader: Leader[str]) -> None:
        def finish() -> None:
            raise LookupError(threading.current_thread().name)

        leader.first.deliver(finish)

    with pytest.raises(LookupError, match=threading.current_thread().name):
        queue.run("main", "x", lead, lambda: None)


def test_a_waiting_write_can_be_cancelled():
    line, flag = Line(), Flag()
    line.add("cancelled", flag)
    line.add("behind")
    flag.cancelled = True
    wait_for(lambda: bool(line.errors))
    assert line.done == []
    assert line.join() == ["behind"]
    assert line.errors == ["cancelled: the write was cancelled; nothing was written"]


@pytest.mark.parametrize("when", ["waiting", "taken", "leading"])
def test_an_interrupted_write_does_not_stall_the_others(when):
    class Interrupted:
        @property
        def cancelled(self) -> bool:
            if interrupt.is_set():
                raise KeyboardInterrupt
            return False

    interrupt = threading.Event()
    line = Line()
    leads = threading.Event()

    def lead(leader: Leader[str]) -> None:
        taken = leader.take()
        assert taken is not None
        leads.set()
        wait_for(lambda: "interrupted" in line.errors)
        leader.put_back([taken])
        line.done.append("first ran")

    def fail(_: Leader[str]) -> None:
        raise KeyboardInterrupt

    if when == "taken":
        line._start("leader", lead)
    line._start("interrupted", fail if when == "leading" else line._lead, Interrupted())
    line.add("behind")
    if when == "waiting":
        interrupt.set()
        wait_for(lambda: "interrupted" in line.errors)
    elif when == "taken":
        line.release.set()
        wait_for(leads.is_set)
        interrupt.set()
    assert line.join() == (["first ran", "behind"] if when == "taken" else ["behind"])


def test_a_write_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr(queue_module, "_PATIENCE_S", 0.0)
    line = Line()
    line.add("late")
    wait_for(lambda: bool(line.done))
    assert line.join() == ["late alone"]


def test_a_new_write_leads_while_the_writes_of_the_last_group_return():
    line = Line()
    returning = threading.Event()

    def lead(leader: Leader[str]) -> None:
        taken = leader.take()
        assert taken is not None
        taken.deliver(lambda: wait_for(returning.is_set))

    line._start("a", lead)
    line.add("b")
    line.release.set()
    wait_for(lambda: line.queue.length("main") == 0)
    line.queue.run("main", "c", line._lead, lambda: None)
    returning.set()
    assert line.join() == ["c"]


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
