"""Identifiers that sort by the time they were made."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator

import numpy as np

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_BATCH = 4096

Clock = Callable[[], int]
"""Microseconds since the epoch."""


def system_clock() -> int:
    """The machine's own time."""
    return time.time_ns() // 1000


def new_ulid(now_us: int) -> str:
    """A ULID: 48 bits of milliseconds, 80 random bits, in 26 characters of Crockford's base 32."""
    return _spell(((now_us // 1000) & (2**48 - 1)) << 80 | secrets.randbits(80))


def _spell(value: int) -> str:
    return "".join(_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5))


def first_ulid(now_us: int) -> str:
    """The smallest ULID of its millisecond."""
    return _spell(((now_us // 1000) & (2**48 - 1)) << 80)


def new_ulids(clock: Clock) -> Iterator[str]:
    """ULIDs without end, for who needs many: they are made by the thousand."""
    letters = np.frombuffer(_ALPHABET.encode(), np.uint8)
    while True:
        # Forty bits are five bytes, and eight characters.
        fives = np.frombuffer(secrets.token_bytes(_BATCH * 10), np.uint8).reshape(-1, 5).astype(np.uint64)
        numbers = fives @ (np.uint64(1) << np.arange(32, -8, -8, dtype=np.uint64))
        digits = (numbers[:, None] >> np.arange(35, -5, -5, dtype=np.uint64)) & np.uint64(31)
        text = letters[digits].tobytes().decode()
        time_part = new_ulid(clock())[:10]
        yield from [time_part + text[start : start + 16] for start in range(0, len(text), 16)]
