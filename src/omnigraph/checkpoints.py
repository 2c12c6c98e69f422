"""Checkpoints: the places where a long operation stops when the limits of its caller ask for it.

Every loop whose length depends on data, on a query text or on a parameter calls `checkpoint`, directly or through
`paced`. Outside an operation with limits both do nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")

ITEMS_AT_ONCE = 256
"""Items that a loop of Python handles between two checkpoints."""


class Stoppable(Protocol):
    """An operation that can be stopped at its checkpoints."""

    @property
    def limited(self) -> bool:
        """Whether anything can stop it: a deadline, or another thread."""

    def check(self) -> None:
        """Raise if the operation has to stop."""


current: ContextVar[Stoppable | None] = ContextVar("omnigraph_operation", default=None)
"""The operation of this thread."""


def checkpoint() -> None:
    """Stop here if the operation of this thread has to."""
    operation = current.get()
    if operation is not None:
        operation.check()


def paced(items: Iterable[T]) -> Iterator[T]:
    """The items, with a checkpoint before the first and after every `ITEMS_AT_ONCE`."""
    if current.get() is None:
        yield from items
        return
    for number, item in enumerate(items):
        if number % ITEMS_AT_ONCE == 0:
            checkpoint()
        yield item
