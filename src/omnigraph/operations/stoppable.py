"""`cancel` and `timeout` of the methods of `Graph` other than queries.

A stopped read raises `Cancelled` or `QueryTimeout` at its next checkpoint. A write can be stopped until its publish
begins; from then on it runs to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from omnigraph.engine.exec.cancellation import Cancellation, OperationWatch
from omnigraph.operations.requests import check_seconds

T = TypeVar("T")


def stoppable(
    name: str, cancel: Cancellation | None, timeout: float | None, *, writes: bool = False
) -> AbstractContextManager[None]:
    """Return a context in which `cancel` and `timeout` stop the operation; `name` is its name in messages."""
    watch = watch_of(name, cancel, timeout, writes=writes)
    if watch is None:
        return nullcontext()
    watch.check()
    return watch.applied()


def stoppable_items(
    name: str, cancel: Cancellation | None, timeout: float | None, call: Callable[[], Iterable[T]]
) -> Iterator[T]:
    """Make a call and return an iterator of its items; `cancel` and `timeout` apply to the call and the iteration."""
    watch = watch_of(name, cancel, timeout)
    if watch is None:
        return iter(call())
    with watch.applied():
        watch.check()
        items = call()
    return watch.over(items)


def watch_of(
    name: str, cancel: Cancellation | None, timeout: float | None, *, writes: bool = False
) -> OperationWatch | None:
    """Return the watch of an operation that starts now; None if nothing limits it."""
    if timeout is not None:
        check_seconds(timeout)
    elif cancel is None:
        return None
    return OperationWatch(name, timeout, cancel, writes=writes)
