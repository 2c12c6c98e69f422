"""Error recovery of both parsers: after an error, parsing continues at the next item."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from omnigraph.lang.cursor import Cursor
from omnigraph.lang.diagnostics import Fault, Reporter
from omnigraph.lang.spans import Source
from omnigraph.lang.tokens import Comment

Item = TypeVar("Item")


class FileParser(Generic[Item]):
    """Parses a file that is a list of items: declarations or queries."""

    def __init__(self, source: Source) -> None:
        self.reporter = Reporter(source)
        try:
            self.cursor = Cursor(source)
        except Fault as fault:
            self.reporter.add(fault)
            self.reporter.raise_if_any()
            raise

    def parse(
        self, one: Callable[[], Item], starts: Callable[[Cursor], bool]
    ) -> tuple[tuple[Item, ...], list[Comment]]:
        """Return all items and the comments between them, or raise `ParseError` with all errors.

        An item with an error is abandoned; parsing continues where the next item `starts`.
        """
        items: list[Item] = []
        while not self.cursor.at_end():
            self.attempt(lambda: items.append(one()), starts)
        self.reporter.raise_if_any()
        return tuple(items), self.cursor.comments

    def attempt(self, one: Callable[[], None], starts: Callable[[Cursor], bool]) -> bool:
        """Parse an item; after an error, advance to the start of the next one. Return True on success."""
        cursor = self.cursor
        before = cursor.mark
        try:
            one()
        except Fault as fault:
            self.reporter.add(fault)
            if cursor.mark == before:
                cursor.take()
            cursor.skip_past(starts)
            return False
        return True
