"""Lets another thread stop a write before it is published.

A surface that can abandon a write runs it inside `cancelled_by`. The write calls `check_cancelled` between its steps
and right before each attempt to publish, so a cancelled write leaves nothing visible.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from omnigraph.errors import Cancelled


class Cancellable(Protocol):
    """Has been cancelled, or not yet."""

    @property
    def cancelled(self) -> bool:
        """True once the work is to stop."""


_current: ContextVar[Cancellable | None] = ContextVar("omnigraph_write", default=None)


@contextmanager
def cancelled_by(cancellation: Cancellable) -> Iterator[None]:
    """Let the writes of this block be stopped by a cancellation."""
    token = _current.set(cancellation)
    try:
        yield
    finally:
        _current.reset(token)


def check_cancelled() -> None:
    """Raise `Cancelled` if the write of this thread is to stop."""
    cancellation = _current.get()
    if cancellation is not None and cancellation.cancelled:
        raise Cancelled("the write was cancelled; nothing was written")
