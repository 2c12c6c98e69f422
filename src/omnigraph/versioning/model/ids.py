"""Identifiers that sort by creation time."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
"""The two characters of each ten bits."""

Clock = Callable[[], int]
"""Microseconds since the epoch."""


def system_clock() -> int:
    """Return the time of this machine."""
    return time.time_ns() // 1000


def new_ulid(now_us: int) -> str:
    """Return a ULID: 48 bits of milliseconds and 80 random bits, in 26 characters of Crockford's base 32."""
    return _encode(((now_us // 1000) & (2**48 - 1)) << 80 | secrets.randbits(80))


def derived_ulid(now_us: int, seed: str) -> str:
    """Return the ULID of a time and a text; the same one for the same arguments."""
    digest = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:10], "big")
    return _encode(((now_us // 1000) & (2**48 - 1)) << 80 | digest)


def later_ulid(previous: str, now_us: int) -> str:
    """Return a ULID that sorts after another one; ULIDs of one millisecond are otherwise in no order."""
    made = new_ulid(now_us)
    if made > previous:
        return made
    value = 0
    for letter in previous:
        value = value << 5 | _ALPHABET.index(letter)
    return _encode(value + 1)


def ulid_of(digest: str) -> str:
    """Return an id in the form of a ULID for a hexadecimal digest; it has no time."""
    return _encode(int(digest[:30], 16))


def _encode(value: int) -> str:
    return "".join([_PAIRS[(value >> shift) & 1023] for shift in range(120, -1, -10)])


def first_ulid(now_us: int) -> str:
    """Return the smallest ULID of a millisecond."""
    return _encode(((now_us // 1000) & (2**48 - 1)) << 80)


def new_ulids(now_us: int, count: int) -> pa.Array:
    """Return a column of new ULIDs."""
    letters = np.frombuffer(_ALPHABET.encode(), np.uint8)
    text = np.empty((count, 26), np.uint8)
    text[:, :10] = np.frombuffer(new_ulid(now_us)[:10].encode(), np.uint8)
    # Forty bits are five bytes or eight characters.
    fives = np.frombuffer(secrets.token_bytes(count * 10), np.uint8).reshape(-1, 5).astype(np.uint64)
    numbers = fives @ (np.uint64(1) << np.arange(32, -8, -8, dtype=np.uint64))
    digits = (numbers[:, None] >> np.arange(35, -5, -5, dtype=np.uint64)) & np.uint64(31)
    text[:, 10:] = letters[digits].reshape(count, 16)
    ends = np.arange(count + 1, dtype=np.int32) * np.int32(26)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(text))
