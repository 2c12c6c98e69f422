"""Limits and notes of a running query.

Long operations call `checkpoint` at intervals, at any depth, and `add_note` to describe for `profile` how they ran.
Both refer to the query of the calling thread and do nothing without one.
"""

from __future__ import annotations

import time

from omnigraph.checkpoints import checkpoint, current, paced
from omnigraph.errors import Cancelled, QueryTimeout

__all__ = ["Cancellation", "Watch", "add_note", "checkpoint", "paced", "watching"]


class Cancellation:
    """Stops queries from another thread: pass it to `query`, then call `cancel`."""

    __slots__ = ("cancelled",)

    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        """Stop the queries with this cancellation at their next checkpoint; later ones do not start."""
        self.cancelled = True


class Watch:
    """The time limit, the cancellation and the notes of one query."""

    __slots__ = ("_cancellation", "_deadline", "_timeout_s", "notes", "profiling")

    def __init__(self, timeout_s: float | None = None, cancellation: Cancellation | None = None) -> None:
        self._timeout_s = timeout_s
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._cancellation = cancellation
        self.profiling = False
        """True if notes are collected."""
        self.notes: list[str] = []

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

    def _timed_out(self, what: str, *, hint: str) -> QueryTimeout:
        assert self._timeout_s is not None
        assert self._deadline is not None
        elapsed = round(time.monotonic() - self._deadline + self._timeout_s, 3)
        message = f"{what} longer than {self._timeout_s} s"
        return QueryTimeout(message, resource="time", limit=self._timeout_s, actual=elapsed, hint=hint)


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
    if isinstance(watch, Watch) and watch.profiling:
        watch.notes.append(what)
