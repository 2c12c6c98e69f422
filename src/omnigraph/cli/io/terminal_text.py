"""Texts on a terminal: control characters of data and of servers have no effect there.

Data can contain escape sequences that change the title of a terminal, hide lines or answer prompts. Redirected output
is unchanged.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_CONTROL = re.compile(
    # Colours are kept: the program itself writes them.
    r"(\x1b\[[0-9;]*m)"
    # C0 without tab and newline, DEL, C1, and characters that change the direction of a text.
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)


def visible(text: str) -> str:
    """Return a text whose control characters are written as `\\x1b`; colours are kept."""
    return _CONTROL.sub(lambda found: found[1] or _escaped(found[0]), text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


@contextmanager
def drawing() -> Iterator[None]:
    """Let the program draw on stdout with escape sequences of its own; the texts in it must be safe."""
    stream = sys.stdout
    if not hasattr(stream, "filters"):
        yield
        return
    before = stream.filters
    stream.filters = False
    try:
        yield
    finally:
        stream.filters = before
