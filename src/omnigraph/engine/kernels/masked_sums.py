"""Exact sums of the integers that a mask selects; numpy fallback: `engine.exec.column_aggregates`."""

from __future__ import annotations

from typing import Any

import numpy as np

from omnigraph.engine.kernels.native_library import Loop, NativeLibrary


def _masked_sum(values: Any, mask: Any, count: int, halves: Any) -> int:
    high = 0
    low = 0
    for at in range(count):
        # A choice, not a jump, so that several values are added at a time.
        value = values[at] if mask[at] else 0
        high += value >> 32
        low += value & 0xFFFFFFFF
    halves[0] = high
    halves[1] = low
    return count


LOOPS = {"masked_sum": Loop(_masked_sum, ("int64*", "uint8*", "int64", "int64&"))}


class Kernels:
    """Calls of the compiled loops."""

    def __init__(self, library: NativeLibrary) -> None:
        self._masked_sum = library.function("masked_sum", LOOPS["masked_sum"])

    def masked_sum(self, values: Any, mask: Any) -> int:
        """Return the sum of 64-bit integers that a mask selects; neither half of the digits can overflow."""
        halves = np.zeros(2, np.int64)
        self._masked_sum(values, mask.view(np.uint8), len(values), halves)
        return (int(halves[0]) << 32) + int(halves[1])
