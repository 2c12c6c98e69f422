"""Compiled: a heap of the best so far, the least of them on top."""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True)
def replace_least(heap, value):  # type: ignore[no-untyped-def]
    """Put a value that is larger than the least in its place."""
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
