"""Checkpoints: points where a long operation tests its time limit and its cancellation.

Every loop whose length depends on data, query text or parameters calls `checkpoint`, directly or through `paced`.
Outside an operation with limits, both do nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")

ITEMS_AT_ONCE = 256
"""Items that a Python loop processes between two checkpoints."""


class Stoppable(Protocol):
    """An operation that can be stopped at its checkpoints."""

    @property
    def limited(self) -> bool:
        """True if a deadline or another thread can stop the operation."""

    def check(self) -> None:
        """Raise an error if the operation must stop."""


current: ContextVar[Stoppable | None] = ContextVar("omnigraph_operation", default=None)
"""The operation of this thread."""


def checkpoint() -> None:
    """Raise an error if the operation of this thread must stop."""
    operation = current.get()
    if operation is not None:
        operation.check()


def checked(items: Iterable[T]) -> Iterator[T]:
    """Yield the items, such as batches of rows, with a checkpoint before each."""
    for item in items:
        checkpoint()
        yield item


def paced(items: Iterable[T]) -> Iterator[T]:
    """Yield the items, with a checkpoint before the first and after every `ITEMS_AT_ONCE`."""
    if current.get() is None:
        yield from items
        return
    for number, item in enumerate(items):
        if number % ITEMS_AT_ONCE == 0:
            checkpoint()
        yield item
