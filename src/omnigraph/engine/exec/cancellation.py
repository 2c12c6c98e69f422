"""A query under way: when it has to end, who may stop it, and what it tells about itself.

Whatever takes long calls `checkpoint` now and then, however deep it is; what is worth knowing about how something was
done is `say`'d. Both reach the query of the calling thread, and do nothing where there is none.
"""

from __future__ import annotations

import time

from omnigraph.checkpoints import checkpoint, current, paced
from omnigraph.errors import Cancelled, QueryTimeout

__all__ = ["Cancellation", "Watch", "add_note", "checkpoint", "paced", "watching"]


class Cancellation:
    """Stops queries from another thread: give it to `query`, then call `cancel`."""

    __slots__ = ("cancelled",)

    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        """Stop the queries that were given this, at their next checkpoint; later ones do not start."""
        self.cancelled = True


class Watch:
    """What one query has to mind."""

    __slots__ = ("_cancellation", "_deadline", "_timeout_s", "notes", "profiling")

    def __init__(self, timeout_s: float | None = None, cancellation: Cancellation | None = None) -> None:
        self._timeout_s = timeout_s
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._cancellation = cancellation
        self.profiling = False
        """Whether anybody wants to know what is said."""
        self.notes: list[str] = []

    @property
    def limited(self) -> bool:
        """Whether anything can stop the query."""
        return self._deadline is not None or self._cancellation is not None

    def check(self) -> None:
        """Stop a query that has run too long, or that somebody cancelled."""
        if self._cancellation is not None and self._cancellation.cancelled:
            raise Cancelled("the query was cancelled")
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise QueryTimeout(
                f"the query took longer than {self._timeout_s} s", hint="raise the timeout, or narrow the match"
            )


class watching:  # noqa: N801 (reads as a word, and a generator in its place costs as much as a small query)
    """While a query runs."""

    __slots__ = ("_token", "_watch")

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __enter__(self) -> None:
        self._token = current.set(self._watch)

    def __exit__(self, *_: object) -> None:
        current.reset(self._token)


def add_note(what: str) -> None:
    """Tell how something was done, for `profile`."""
    watch = current.get()
    if isinstance(watch, Watch) and watch.profiling:
        watch.notes.append(what)
