"""Calls in parallel: requests to an object store overlap, and the disk and the kernels of Lance use several cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import cache, partial
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_TABLES_AT_ONCE = 16
_REQUESTS_AT_ONCE = 32


def each_table(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Call a function for every item in parallel; return the results in order. All calls end before an error is raised.

    The calls must not call this function; they may call `each_request`.
    """
    return _each(_tables(), work, list(items))


def each_request(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Call a function that makes one request for every item in parallel; return the results in order."""
    return _each(_requests(), work, list(items))


def request(work: Callable[[], R]) -> Future[R]:
    """Begin a call that makes requests and return its future. The process waits for it before it ends."""
    return _submit(_requests(), work)


def _each(pool: ThreadPoolExecutor, work: Callable[[T], R], items: list[T]) -> list[R]:
    if len(items) < 2:
        return [work(item) for item in items]
    # The first call runs in this thread.
    others = [_submit(pool, partial(work, item)) for item in items[1:]]
    try:
        first = work(items[0])
    finally:
        wait(others)
    return [first, *(other.result() for other in others)]


def _submit(pool: ThreadPoolExecutor, work: Callable[[], R]) -> Future[R]:
    try:
        return pool.submit(copy_context().run, work)
    except RuntimeError:
        # The interpreter ends and starts no more threads; a handler of its end may still write.
        done: Future[R] = Future()
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)
        return done


@cache
def _tables() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_TABLES_AT_ONCE, "omnigraph-tables")


@cache
def _requests() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_REQUESTS_AT_ONCE, "omnigraph-requests")


def _forget_pools() -> None:
    """Threads do not survive a fork."""
    _tables.cache_clear()
    _requests.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)
