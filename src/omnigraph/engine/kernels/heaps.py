"""Min-heap of the largest values, for the loops of other modules."""

from __future__ import annotations

from typing import Any


def replace_least(heap: Any, size: int, value: Any) -> None:
    """Replace the smallest value by a larger one."""
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
