"""What both parsers do alike: read a file piece by piece, and after a mistake go on with the next piece."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from omnigraph.lang.cursor import Cursor
from omnigraph.lang.diagnostics import Fault, Reporter
from omnigraph.lang.spans import Source
from omnigraph.lang.tokens import Comment

Piece = TypeVar("Piece")


class FileParser(Generic[Piece]):
    """Parses a file that is a list of pieces: declarations, or queries."""

    def __init__(self, source: Source) -> None:
        self.reporter = Reporter(source)
        try:
            self.cursor = Cursor(source)
        except Fault as fault:
            self.reporter.add(fault)
            self.reporter.raise_if_any()
            raise

    def parse(
        self, one: Callable[[], Piece], starts: Callable[[Cursor], bool]
    ) -> tuple[tuple[Piece, ...], list[Comment]]:
        """All pieces and the comments between them, or `ParseError` with every mistake found.

        A piece that is broken is left at its mistake; reading goes on where one `starts`.
        """
        pieces: list[Piece] = []
        while not self.cursor.at_end():
            self.attempt(lambda: pieces.append(one()), starts)
        self.reporter.raise_if_any()
        return tuple(pieces), self.cursor.comments

    def attempt(self, one: Callable[[], None], starts: Callable[[Cursor], bool]) -> bool:
        """Read something; after a mistake, step on to where the next thing starts. Whether it went well."""
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
