"""Limits and notes of a running query.

Long operations call `checkpoint` at intervals, at any depth, and `add_note` to describe for `profile` how they ran.
Both refer to the query of the calling thread and do nothing without one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from omnigraph.checkpoints import Stoppable, checkpoint, current, paced
from omnigraph.errors import Cancelled, QueryTimeout

__all__ = ["Cancellation", "OperationWatch", "Watch", "add_note", "checkpoint", "paced", "watching"]

T = TypeVar("T")


class Cancellation:
    """Stops operations from another thread: pass it as `cancel` to `query`, `load` …, then call `cancel`."""

    __slots__ = ("cancelled", "held_bytes")

    def __init__(self) -> None:
        self.cancelled = False
        self.held_bytes = 0
        """The largest estimated size of the rows that one operator of a query produced."""

    def cancel(self) -> None:
        """Stop the operations with this cancellation at their next checkpoint; later ones do not start.

        A write whose publish has begun runs on.
        """
        self.cancelled = True


class Watch:
    """The time limit, the cancellation and the notes of one query."""

    __slots__ = ("_cancellation", "_deadline", "_timeout_s", "notes", "profiling", "rows", "silent")

    def __init__(self, timeout_s: float | None = None, cancellation: Cancellation | None = None) -> None:
        self._timeout_s = timeout_s
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._cancellation = cancellation
        self.profiling = False
        """True if notes are collected."""
        self.silent = False
        """True if no notes are collected: they would tell about rows that are not visible."""
        self.notes: list[str] = []
        self.rows = 0
        """Rows after the last operator; other threads read it."""

    @property
    def limited(self) -> bool:
        """True if the query has a time limit or a cancellation."""
        return self._deadline is not None or self._cancellation is not None

    def check(self) -> None:
        """Raise an error if the query was cancelled or exceeded its time limit."""
        if self._cancellation is not None and self._cancellation.cancelled:
            raise Cancelled("the query was cancelled")
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise self._timed_out("the query took", hint="raise the timeout, or narrow the match")

    def _timed_out(self, what: str, outcome: str = "", *, hint: str) -> QueryTimeout:
        assert self._timeout_s is not None
        assert self._deadline is not None
        elapsed = round(time.monotonic() - self._deadline + self._timeout_s, 3)
        message = f"{what} longer than {self._timeout_s} s{outcome}"
        return QueryTimeout(message, resource="time", limit=self._timeout_s, actual=elapsed, hint=hint)


class OperationWatch(Watch):
    """The time limit and the cancellation of an operation other than a query.

    An operation inside another one, such as a call of `AsyncGraph`, ends with it.
    """

    __slots__ = ("_name", "_outcome", "_outer")

    def __init__(
        self, name: str, timeout_s: float | None, cancellation: Cancellation | None, *, writes: bool = False
    ) -> None:
        super().__init__(timeout_s, cancellation)
        self._name = name
        self._outcome = "; nothing was written" if writes else ""
        self._outer: Stoppable | None = None

    def check(self) -> None:
        """Raise an error if the operation was cancelled or exceeded its time limit."""
        if self._outer is not None:
            self._outer.check()
        if self._cancellation is not None and self._cancellation.cancelled:
            raise Cancelled(f"the {self._name} was cancelled{self._outcome}")
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise self._timed_out(f"the {self._name} took", self._outcome, hint="raise the timeout")

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Apply the watch to a block, in addition to the operation that surrounds the block."""
        self._outer = current.get()
        with watching(self):
            yield

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """Yield items; the watch applies while an item is fetched, and is checked before each."""
        iterator = iter(items)
        while True:
            with self.applied():
                self.check()
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item


class watching:  # noqa: N801 (used like a function; a generator would take as long as a small query)
    """Context manager: the query of this thread."""

    __slots__ = ("_token", "_watch")

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __enter__(self) -> None:
        self._token = current.set(self._watch)

    def __exit__(self, *_: object) -> None:
        current.reset(self._token)


def add_note(what: str) -> None:
    """Record how an operation ran, for `profile`."""
    watch = current.get()
    if isinstance(watch, Watch) and watch.profiling and not watch.silent:
        watch.notes.append(what)
