"""ANSI colours for terminals: which stream gets them, and one colour per meaning.

A stream gets colours when it is a terminal and `NO_COLOR` is not set. `FORCE_COLOR` turns them on for pipes and files.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import TextIO

from omnigraph.fast_dataclass import dataclass

_DIAGNOSTIC = re.compile(r"^(\s*)(error|warning|note|hint|next|[a-z]+ error)(:)")
_CARETS = re.compile(r"^(\s*\|\s*)(\^+.*)$")
_KINDS = {"warning": "yellow", "note": "cyan", "hint": "cyan", "next": "cyan"}
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


@dataclass(frozen=True)
class Colours:
    """Decorates text by its meaning; without `enabled` it returns the text unchanged."""

    enabled: bool = False

    def header(self, text: str) -> str:
        """The header of a table."""
        return self._paint(text, "bold")

    def muted(self, text: str) -> str:
        """Rulers, nulls and other text of less interest."""
        return self._paint(text, "dim")

    def commit(self, text: str) -> str:
        """A commit id."""
        return self._paint(text, "yellow")

    def name(self, text: str) -> str:
        """The name of a branch or tag."""
        return self._paint(text, "cyan")

    def added(self, text: str) -> str:
        """An inserted row or a value that appears."""
        return self._paint(text, "green")

    def removed(self, text: str) -> str:
        """A deleted row or a value that disappears."""
        return self._paint(text, "red")

    def changed(self, text: str) -> str:
        """An updated row."""
        return self._paint(text, "yellow")

    def diagnostic(self, text: str) -> str:
        """An error report or a note: the kind, the carets and the hint stand out."""
        return "\n".join(self._diagnostic_line(line) for line in text.split("\n")) if self.enabled else text

    def _diagnostic_line(self, line: str) -> str:
        found = _DIAGNOSTIC.match(line)
        if found:
            indent, kind, colon = found.groups()
            label = self._paint(kind + colon, "bold", _KINDS.get(kind, "red"))
            return f"{indent}{label}{line[found.end() :]}"
        return _CARETS.sub(lambda match: match[1] + self._paint(match[2], "red"), line)

    def _paint(self, text: str, *names: str) -> str:
        if not self.enabled or not text:
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m"


PLAIN = Colours()


def colours(stream: TextIO | None = None, environ: Mapping[str, str] = os.environ) -> Colours:
    """The colours of a stream; stdout by default."""
    if environ.get("NO_COLOR"):
        return PLAIN
    if environ.get("FORCE_COLOR"):
        return Colours(enabled=True)
    stream = sys.stdout if stream is None else stream
    return Colours(enabled=stream.isatty() and environ.get("TERM") != "dumb")
