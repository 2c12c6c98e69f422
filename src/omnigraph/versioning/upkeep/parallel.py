"""Maintenance of several tables at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

TABLES_AT_ONCE = 8
"""Number of tables that maintenance treats at once, unless a caller gives another."""


def each(work: Callable[[T], R], items: Iterable[T], at_once: int) -> list[R]:
    """Call a function for every item, `at_once` of them in parallel, and return the results in order of the items.

    A call can be stopped like the operation of the calling thread. After a failure no further call begins; the error is
    raised when the calls that run have ended.
    """
    listed = list(items)
    if at_once == 1 or len(listed) < 2:
        return [work(item) for item in listed]
    with ThreadPoolExecutor(min(at_once, len(listed)), "omnigraph-maintenance") as pool:
        calls = [pool.submit(copy_context().run, work, item) for item in listed]
        try:
            wait(calls, return_when=FIRST_EXCEPTION)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        failed = [one for one in calls if not one.cancelled() and one.exception() is not None]
        return [one.result() for one in failed or calls]
