"""Prints formatted text line by line and inserts the comments of the source.

A formatter prints items in source order with their source positions. Before an item, the printer prints every comment
that precedes it in the source: at the end of the previous line if it was written there, otherwise on its own line. A
comment inside an item that is printed on one line follows that line. No comment is lost, and formatting is idempotent.
One blank line between items is kept.

A tree that was built by a program has no source, and therefore no comments and no blank lines.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from omnigraph.lang.spans import Source, Span
from omnigraph.lang.tokens import Comment

INDENT = "    "
WIDTH = 100
_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def quote(text: str) -> str:
    """Return a string literal with this value."""
    return f'"{text.translate(_ESCAPES)}"'


class Printer:
    """Printed text and the comments that are not yet printed."""

    def __init__(self, source: Source | None = None, comments: Iterable[Comment] = ()) -> None:
        self._source = source
        self._comments = deque(comments)
        self._lines: list[str] = []
        self._depth = 0
        self._last_end = 0
        self._sealed = False
        """True if the last line ends in a `//` comment: nothing may be appended to it."""
        self._fresh = True
        """True if the open block is empty so far: no blank line may follow."""

    # -- queries of formatters -------------------------------------------------------------------

    def literal(self, span: Span, fallback: str) -> str:
        """Return the source text of a literal, or `fallback` if the tree has no source."""
        if self._source is None or span.end <= span.start:
            return fallback
        return self._source.text[span.start : span.end]

    def fits(self, text: str, span: Span) -> bool:
        """Return True if `text` may replace the source text of `span` on one line."""
        if "\n" in text or self._depth * len(INDENT) + len(text) > WIDTH:
            return False
        return not self.has_comment(span)

    def has_comment(self, span: Span) -> bool:
        """Return True if a comment within `span` is not yet printed."""
        for comment in self._comments:
            if comment.start >= span.end:
                return False
            if comment.start >= span.start:
                return True
        return False

    # -- output of formatters --------------------------------------------------------------------

    def item(self, text: str, span: Span, *, apart: bool = False) -> None:
        """Print one line; `apart` requests a blank line before it."""
        self._flush(span.start, apart=apart)
        self._write(text)
        self._last_end = span.end

    def open(self, text: str, start: int, brace: int, *, apart: bool = False) -> None:
        """Print the line that opens a block, including its brace, and indent."""
        self._flush(start, apart=apart)
        self._write(text)
        self._last_end = brace + 1
        self._depth += 1
        self._fresh = True

    def close(self, end: int, text: str = "}", *, last: int | None = None) -> None:
        """Print the closing line of the innermost block; its source brace ends at `end`, its last line at `last`."""
        self.dedent(end - 1)
        self._write(text)
        self._last_end = end if last is None else last

    def dedent(self, before: int) -> None:
        """End the innermost block without a closing line, after the comments in it."""
        self._place_comments(before)
        self._depth -= 1
        self._fresh = False

    def finish(self) -> str:
        """Print the remaining comments and return the whole text."""
        if self._source is not None:
            self._place_comments(len(self._source.text) + 1)
        assert not self._comments
        return "\n".join(self._lines) + "\n" if self._lines else ""

    # -- implementation --------------------------------------------------------------------------

    def _write(self, text: str) -> None:
        indent = INDENT * self._depth
        self._lines.append(indent + text)
        self._sealed = text.startswith("//")
        self._fresh = False

    def _flush(self, start: int, *, apart: bool) -> None:
        apart = self._place_comments(start, apart=apart)
        if not self._fresh and (apart or self._blank_before(start)):
            self._lines.append("")

    def _place_comments(self, before: int, *, apart: bool = False) -> bool:
        """Print the comments that start before `before`; return True if the blank line of `apart` is still due."""
        while self._comments and self._comments[0].start < before:
            comment = self._comments.popleft()
            if self._trails(comment):
                self._lines[-1] += f"  {comment.text.rstrip()}"
                self._sealed = comment.text.startswith("//")
            else:
                if not self._fresh and (apart or self._blank_before(comment.start)):
                    self._lines.append("")
                apart = False
                self._write(comment.text.rstrip())
            self._last_end = max(self._last_end, comment.end)
        return apart

    def _trails(self, comment: Comment) -> bool:
        """Return True if the comment was at the end of the current last line and may be appended to it."""
        if not self._lines or self._sealed or comment.start < self._last_end:
            return False
        assert self._source is not None
        return "\n" not in self._source.text[self._last_end : comment.start]

    def _blank_before(self, start: int) -> bool:
        if self._source is None or start <= self._last_end:
            return False
        return self._source.text.count("\n", self._last_end, start) > 1
