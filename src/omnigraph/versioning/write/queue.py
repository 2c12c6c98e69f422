"""The queue of the writers of one process: small writes to a branch take turns, in the order of their arrival.

A write that waits has not staged anything, so it loses no work to the writers before it. Loads, merges and maintenance
do not queue: they may take minutes, and others must not wait for them. They race with the writer whose turn it is, and
the loser starts over.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock

from omnigraph.cancellation import check_cancelled

_PATIENCE_S = 60.0
"""A write that waited so long begins nevertheless: the order saves work, and correctness does not depend on it."""
_LOOK_S = 0.05
"""Interval at which a waiting write looks whether it was cancelled."""


class WriteQueue:
    """The queues of all branches of a graph."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._lines: dict[str, deque[Event]] = {}

    @contextmanager
    def turn(self, branch: str) -> Iterator[None]:
        """Wait for a turn at a branch and hold it during the block; a cancelled write raises instead."""
        turn = Event()
        with self._lock:
            line = self._lines.setdefault(branch, deque())
            line.append(turn)
            if line[0] is turn:
                turn.set()
        try:
            end = time.monotonic() + _PATIENCE_S
            while not turn.wait(_LOOK_S) and time.monotonic() < end:
                check_cancelled()
            yield
        finally:
            with self._lock:
                line.remove(turn)
                if line:
                    line[0].set()
                else:
                    self._lines.pop(branch, None)

    def length(self, branch: str) -> int:
        """Return the number of writes that wait for a turn or have it."""
        with self._lock:
            return len(self._lines.get(branch, ()))
