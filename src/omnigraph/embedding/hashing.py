"""64-bit hashes of many byte strings at once: FNV-1a, and a mixer that spreads its bits.

Bit for bit the same on every machine and in every process, unlike Python's own `hash`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_OFFSET = 14_695_981_039_346_656_037
_PRIME = 1_099_511_628_211
_MASK = 2**64 - 1

_FEW = 16
"""Below so many strings a Python loop over the bytes is faster than numpy over the strings."""


def fnv1a(strings: Sequence[bytes]) -> NDArray[np.uint64]:
    """The 64-bit FNV-1a hash of each string."""
    lengths = np.fromiter(map(len, strings), np.int64, len(strings))
    order = np.argsort(-lengths, kind="stable")
    joined = np.frombuffer(b"".join(strings), np.uint8)
    starts = (np.cumsum(lengths) - lengths)[order]
    hashes = np.full(len(strings), _OFFSET, np.uint64)
    # Longest first, so the strings that have a byte at `place` are the first ones.
    longest_first = lengths[order]
    place, active = 0, int(np.count_nonzero(longest_first > 0))
    while active >= _FEW:
        hashes[:active] ^= joined[starts[:active] + place]
        hashes[:active] *= np.uint64(_PRIME)
        place += 1
        active = int(np.searchsorted(-longest_first, -place, side="left"))
    for number in range(active):
        rest = strings[order[number]][place:]
        hashes[number] = _fnv1a_one(rest, int(hashes[number]))
    in_order = np.empty_like(hashes)
    in_order[order] = hashes
    return in_order


def _fnv1a_one(data: bytes, value: int) -> int:
    for byte in data:
        value = ((value ^ byte) * _PRIME) & _MASK
    return value


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64: every bit of the result depends on every bit of the value."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
