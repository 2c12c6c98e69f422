"""Cancellation of a write before its publish.

A caller that can abandon a write runs it inside `cancelled_by`. The write calls `check_cancelled` between its steps and
immediately before each attempt to publish, so a cancelled write makes nothing visible.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

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
    """Raise `Cancelled` if the write of this thread was cancelled."""
    cancellation = _current.get()
    if cancellation is not None and cancellation.cancelled:
        raise Cancelled("the write was cancelled; nothing was written")
