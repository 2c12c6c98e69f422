"""The queue of the small writes of one process to a branch, in the order of their arrival.

The first write in the queue leads: it runs, and takes the writes that wait behind it along (`group_commit`). A write
that finds the queue empty runs at once. When the leader ends, the next waiting write leads. Writes that wait have not
staged anything, so they lose no work to the writers before them.

Loads, merges and maintenance do not queue: they may take minutes, and others must not wait for them. They race with the
leader, and the loser starts over.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Generic, TypeVar

from omnigraph.cancellation import check_cancelled
from omnigraph.errors import OmniGraphError

_PATIENCE_S = 60.0
"""A write that waited so long leaves the queue and runs: the order saves work, correctness does not depend on it."""
_LOOK_S = 0.05
"""Interval at which a waiting write looks whether it was cancelled."""

W = TypeVar("W")


class QueuedWrite(Generic[W]):
    """A write in the queue; `work` is what the leader needs to run it."""

    def __init__(self, work: W) -> None:
        self.work = work
        self.context = copy_context()
        """The context of the thread that waits for the write: its limits, its cancellation and its observer."""
        self.finish: Callable[[], None] | None = None
        """Returns or raises the outcome in the thread that waits; None until a leader has run the write."""
        self.wake = Event()
        self.leads = False
        self.is_abandoned = False
        """True if the thread that waited was interrupted. The outcome is discarded."""

    def deliver(self, finish: Callable[[], None]) -> None:
        """Set the outcome and wake the thread that waits for it."""
        self.finish = finish
        self.wake.set()


@dataclass
class _Line(Generic[W]):
    waiting: deque[QueuedWrite[W]] = field(default_factory=deque)
    is_led: bool = False
    length: int = 0
    """Writes that wait or run."""


class Leader(Generic[W]):
    """What a leading write can do with the writes behind it."""

    def __init__(self, queue: WriteQueue[W], line: _Line[W], first: QueuedWrite[W]) -> None:
        self._queue = queue
        self._line = line
        self.first = first

    def take(self) -> QueuedWrite[W] | None:
        """Take the next waiting write; it must be finished or put back. Return None if there is none."""
        with self._queue.lock:
            return self._line.waiting.popleft() if self._line.waiting else None

    def put_back(self, writes: Sequence[QueuedWrite[W]]) -> None:
        """Let writes that were taken wait again, at the front and in the same order."""
        with self._queue.lock:
            self._line.waiting.extendleft(write for write in reversed(writes) if not write.is_abandoned)


class WriteQueue(Generic[W]):
    """The queues of all branches of a graph."""

    def __init__(self) -> None:
        self.lock = Lock()
        self._lines: dict[str, _Line[W]] = {}

    def run(self, branch: str, work: W, lead: Callable[[Leader[W]], None], alone: Callable[[], None]) -> None:
        """Run a write in its turn, by `lead` or by the leader before it; call `alone` if it waited too long.

        A write that is cancelled while it waits raises instead.
        """
        write = QueuedWrite(work)
        with self.lock:
            line = self._lines.setdefault(branch, _Line())
            line.length += 1
            if line.is_led:
                line.waiting.append(write)
            else:
                line.is_led = write.leads = True
        try:
            if not write.leads and not self._wait(line, write):
                alone()
            elif write.leads:
                lead(Leader(self, line, write))
        except BaseException:
            self._abandon(line, write)
            raise
        finally:
            self._hand_over(line, write)
            self._leave(branch, line)
        if write.finish is not None:
            write.finish()

    def _wait(self, line: _Line[W], write: QueuedWrite[W]) -> bool:
        """Wait until the write was run or leads; return False if it must run on its own."""
        end = time.monotonic() + _PATIENCE_S
        while not write.wake.wait(_LOOK_S):
            late = time.monotonic() >= end
            try:
                check_cancelled()
            except OmniGraphError:
                if self._withdraw(line, write):
                    raise
            if late and self._withdraw(line, write):
                return False
        return True

    def _withdraw(self, line: _Line[W], write: QueuedWrite[W]) -> bool:
        """Remove a waiting write; return False if a leader has taken it, or if it leads now."""
        with self.lock:
            if write in line.waiting:
                line.waiting.remove(write)
                return True
            return False

    def _abandon(self, line: _Line[W], write: QueuedWrite[W]) -> None:
        """Remove a write whose thread was interrupted. If a leader runs it, it is not put back."""
        with self.lock:
            write.is_abandoned = True
            if write in line.waiting:
                line.waiting.remove(write)

    def _hand_over(self, line: _Line[W], write: QueuedWrite[W]) -> None:
        """Let the next waiting write lead, if the given one leads."""
        with self.lock:
            if not write.leads:
                return
            write.leads = False
            if line.waiting:
                following = line.waiting.popleft()
                following.leads = True
                following.wake.set()
            else:
                line.is_led = False

    def _leave(self, branch: str, line: _Line[W]) -> None:
        with self.lock:
            line.length -= 1
            if not line.length:
                del self._lines[branch]

    def length(self, branch: str) -> int:
        """Return the number of writes that wait or run."""
        with self.lock:
            line = self._lines.get(branch)
            return line.length if line is not None else 0
