"""Compiled min-heap of the largest values."""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True)
def replace_least(heap, value):  # type: ignore[no-untyped-def]
    """Replace the smallest value by a larger one."""
    size = len(heap)
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = value
