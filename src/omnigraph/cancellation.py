"""Cancellation of a write before its publish.

A caller that can abandon a write runs it inside `cancelled_by`, or as an operation with checkpoints. The write calls
`check_cancelled` between its steps and immediately before each attempt to publish, so a stopped write makes nothing
visible. A published write runs on: `ignore_cancellation` ends the effect of both.
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
