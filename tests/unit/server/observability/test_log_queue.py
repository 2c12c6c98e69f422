"""The queue of the log: order, flush, bounds and failures."""

from __future__ import annotations

import threading
from functools import partial

from omnigraph.server.observability.log_queue import LogQueue


def test_items_are_done_in_order_in_another_thread() -> None:
    queue = LogQueue(pause_s=0.0)
    done: list[int] = []
    threads: set[int] = set()
    for number in range(500):
        queue.put(partial(done.append, number))
    queue.put(lambda: threads.add(threading.get_ident()))
    assert queue.flush()
    assert done == list(range(500))
    assert threading.get_ident() not in threads


def test_flush_ends_the_pause_and_runs_the_end_of_the_batch() -> None:
    queue = LogQueue(pause_s=3600.0)
    steps: list[str] = []
    queue.on_batch = partial(steps.append, "batch")
    queue.put(partial(steps.append, "item"))
    assert queue.flush()
    assert steps == ["item", "batch"]


def test_a_full_queue_drops_what_is_not_required() -> None:
    queue = LogQueue(limit=2, pause_s=0.0)
    done: list[str] = []
    entered, blocked = threading.Event(), threading.Event()

    def block() -> None:
        entered.set()
        blocked.wait(30)

    queue.put(block)
    assert entered.wait(30)
    for name in ("a", "b", "c", "d"):
        queue.put(partial(done.append, name))
    queue.put(partial(done.append, "required"), required=True)
    assert not queue.flush(0.01)
    blocked.set()
    assert queue.flush()
    assert done == ["a", "b", "required"]
    assert queue.dropped == 2


def test_a_failure_is_reported_and_the_rest_is_done() -> None:
    queue = LogQueue(pause_s=0.0)
    done: list[str] = []
    errors: list[Exception] = []
    queue.on_error = errors.append
    queue.put(lambda: done.append(str(1 // 0)))
    queue.put(partial(done.append, "next"))
    assert queue.flush()
    assert done == ["next"]
    assert [type(error) for error in errors] == [ZeroDivisionError]


def test_without_items_there_is_nothing_to_flush() -> None:
    assert LogQueue().flush(0.0)


def test_flush_within_the_thread_does_not_wait() -> None:
    queue = LogQueue(pause_s=0.0)
    found: list[bool] = []
    queue.put(lambda: found.append(queue.flush()))
    assert queue.flush()
    assert found == [True]
