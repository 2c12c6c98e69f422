"""Records the fsyncs of this process: `os.fsync` and `os.fdatasync` are wrapped. Lance itself never syncs.

Barriers are the length of the longest chain of fsync calls in which each began after the previous one had ended.
Calls that overlap, in different threads, count as one step; calls that one thread makes in turn count singly.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.counting_proxy import depths


@dataclass(frozen=True)
class Fsync:
    """A call; times are those of `time.monotonic`."""

    path: str
    thread: int
    began: float
    ended: float


@dataclass
class Fsyncs:
    """The calls since the last `clear`."""

    calls: list[Fsync] = field(default_factory=list)

    def clear(self) -> None:
        self.calls.clear()

    @property
    def barriers(self) -> int:
        """The length of the longest chain of calls that do not overlap."""
        return max(depths([(call.began, call.ended) for call in self.calls]), default=0)

    @property
    def seconds(self) -> float:
        """The time in which at least one call was under way."""
        total = end = 0.0
        for call in sorted(self.calls, key=lambda call: call.began):
            total += max(0.0, call.ended - max(call.began, end))
            end = max(end, call.ended)
        return total

    def trace(self, root: Path) -> list[str]:
        """One line per call: its depth, its thread, its times and its path."""
        calls = sorted(self.calls, key=lambda call: call.began)
        threads = list(dict.fromkeys(call.thread for call in calls))
        places = depths([(call.began, call.ended) for call in calls])
        return [
            f"{depth:>3} thread {threads.index(call.thread)} {(call.began - calls[0].began) * 1e3:7.2f} –"
            f"{(call.ended - calls[0].began) * 1e3:7.2f} ms  {os.path.relpath(call.path, root)}"
            for depth, call in zip(places, calls, strict=True)
        ]


@contextmanager
def recording() -> Iterator[Fsyncs]:
    """Record the calls inside the block."""
    recorded = Fsyncs()
    plain = {name: getattr(os, name) for name in ("fsync", "fdatasync") if hasattr(os, name)}

    def wrapped(call: Callable[[Any], None]) -> Callable[[Any], None]:
        def run(file: Any) -> None:
            handle = file if isinstance(file, int) else file.fileno()
            path = os.readlink(f"/proc/self/fd/{handle}") if os.path.isdir("/proc/self/fd") else "?"  # noqa: PTH112, PTH115
            began = time.monotonic()
            try:
                call(file)
            finally:
                recorded.calls.append(Fsync(path, threading.get_ident(), began, time.monotonic()))

        return run

    for name, call in plain.items():
        setattr(os, name, wrapped(call))
    try:
        yield recorded
    finally:
        for name, call in plain.items():
            setattr(os, name, call)
