"""Identifiers that sort by the time they were made."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

Clock = Callable[[], int]
"""Microseconds since the epoch."""


def system_clock() -> int:
    """The machine's own time."""
    return time.time_ns() // 1000


def new_ulid(now_us: int) -> str:
    """A ULID: 48 bits of milliseconds, 80 random bits, in 26 characters of Crockford's base 32."""
    value = ((now_us // 1000) & (2**48 - 1)) << 80 | secrets.randbits(80)
    return "".join(_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5))
