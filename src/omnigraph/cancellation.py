"""Cancellation of a write before its publish.

A caller that can abandon a write runs it inside `cancelled_by`, or as an operation with checkpoints. The write calls
`check_cancelled` between its steps and immediately before each attempt to publish, so a stopped write makes nothing
visible. A published write runs on: `ignore_cancellation` ends the effect of both. Work after the publish that may be
left out runs inside the `Limits` that were taken before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from omnigraph.checkpoints import checkpoint, current
from omnigraph.errors import Cancelled


class Cancellable(Protocol):
    """A cancellation flag."""

    @property
    def cancelled(self) -> bool:
        """True once the work must stop."""


_current: ContextVar[Cancellable | None] = ContextVar("omnigraph_write", default=None)


@contextmanager
def cancelled_by(cancellation: Cancellable) -> Iterator[None]:
    """Let a cancellation stop the writes of this block."""
    token = _current.set(cancellation)
    try:
        yield
    finally:
        _current.reset(token)


def check_cancelled() -> None:
    """Raise an error if the write of this thread was cancelled, or its operation must stop."""
    cancellation = _current.get()
    if cancellation is not None and cancellation.cancelled:
        raise Cancelled("the write was cancelled; nothing was written")
    checkpoint()


def ignore_cancellation() -> None:
    """Let the published write of this thread run on: until the blocks that limit it end, nothing stops it."""
    if _current.get() is not None:
        _current.set(None)
    if current.get() is not None:
        current.set(None)


class Limits:
    """The limits of an operation, taken before it publishes."""

    def __init__(self) -> None:
        self._cancellation = _current.get()
        self._operation = current.get()

    @property
    def limited(self) -> bool:
        """True if a deadline or another thread can stop the operation."""
        return self._cancellation is not None or (self._operation is not None and self._operation.limited)

    def check(self) -> None:
        """Raise an error if the operation must stop."""
        if self._cancellation is not None and self._cancellation.cancelled:
            raise Cancelled("the operation was cancelled")
        if self._operation is not None:
            self._operation.check()

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Let the limits stop the work of a block at its checkpoints."""
        token = current.set(self)
        try:
            yield
        finally:
            current.reset(token)
