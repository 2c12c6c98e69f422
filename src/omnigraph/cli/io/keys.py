"""Single keys from a terminal: read without echo and without the end of a line."""

from __future__ import annotations

import os
import re
import select
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ReadKey = Callable[[float], str | None]
"""Waits up to a number of seconds for a key; returns its name or character, or None."""

_NAMES = {"\x1b[A": "up", "\x1b[B": "down", "\x1bOA": "up", "\x1bOB": "down", "\x03": "q", "\x04": "q"}
"""Escape sequences of arrow keys, and the control characters of an interrupt and an end of input."""
_KEY = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)
_BYTES = 256


@contextmanager
def terminal_keys() -> Iterator[ReadKey]:
    """Put the terminal of stdin into a mode that delivers single keys; the former mode returns at the end."""
    import termios
    import tty

    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    tty.setcbreak(file)

    waiting: deque[str] = deque()

    def read(seconds: float) -> str | None:
        if not waiting:
            ready, _, _ = select.select([file], [], [], max(seconds, 0.0))
            waiting.extend(parse_keys(os.read(file, _BYTES)) if ready else ())
        return waiting.popleft() if waiting else None

    try:
        yield read
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


def parse_keys(data: bytes) -> list[str]:
    """Return the keys of what a terminal sent; the end of the input quits."""
    keys = _KEY.findall(data.decode(errors="replace")) if data else ["\x04"]
    return [_NAMES.get(key, key.lower()) for key in keys]
