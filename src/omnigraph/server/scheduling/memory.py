"""Memory of the process: what it uses, what it may use, and what happens above the limit.

The memory of a process is what it has allocated; mapped files do not count, because the system can drop them. It is
compared with `server.limits.memory_high` several times a second. Above the limit, requests to graphs are refused and
the caches of the engine shrink. At 9/8 of the limit, which is 90 % of the memory by default, the largest running query
is cancelled.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.errors import LimitReached, Overloaded
from omnigraph.machine_memory import total_memory
from omnigraph.server.deployment.graph_tuning import bound_caches, halve_caches
from omnigraph.server.deployment.settings import ServerSettings
from omnigraph.server.scheduling.operations import Operation

if TYPE_CHECKING:
    from omnigraph.server.app import Server

TICK_S = 0.1
"""The interval at which the memory is read."""
TRIM_S = 60.0
"""The interval at which free memory is returned to the system. Small blocks that live long keep the rest of a heap."""
SHRINK_S = 1.0
"""The interval at which the caches are halved above the limit."""
NOT_READY_S = 30.0
"""The time above the limit after which the process is not ready."""
RETRY_S = 5
_CRITICAL = 9 / 8
_PROCESS = Path("/proc/self")
_log = logging.getLogger(__name__)


class MemoryGuard:
    """The memory of the process and its limit."""

    def __init__(self, measure: Callable[[], int | None] | None = None) -> None:
        self._measure = measure or used_memory
        self.used = self._measure() or 0
        """Bytes that the process has allocated, at the last look."""
        self.limit: int | None = None
        """The limit in bytes; None if there is none."""
        self.high_since: float | None = None
        """When the limit was exceeded, in seconds of the monotonic clock; None below it."""
        self.cancelled = 0
        """The number of queries that were cancelled since the start of the process."""
        self._shrunk_at = float("-inf")
        self._trimmed_at = time.monotonic()
        self._victim: Operation | None = None

    def configure(self, settings: ServerSettings) -> None:
        """Take the limit of the settings."""
        is_known = self._measure() is not None
        self.limit = limit_of(settings) if is_known else None
        if self.limit is None:
            _log.warning("'server.limits.memory_high' is not available on this system; memory is not limited")

    @property
    def is_high(self) -> bool:
        """True if the limit was exceeded at the last look."""
        return self.high_since is not None

    @property
    def is_ready(self) -> bool:
        """False if the limit has been exceeded for long."""
        return self.high_since is None or time.monotonic() - self.high_since < NOT_READY_S

    def check(self) -> None:
        """Refuse new work above the limit."""
        if self.high_since is None or self.limit is None:
            return
        raise Overloaded(
            f"the server process uses {self.used:,} bytes of memory, and new work is refused above {self.limit:,}; "
            "nothing was executed",
            scope="server",
            retry_after_s=RETRY_S,
            limit="memory_high",
            value=self.limit,
            actual=self.used,
        )

    async def watch(self, server: Server) -> None:
        """Look at the memory at intervals, until cancelled."""
        while True:
            await asyncio.sleep(TICK_S)
            try:
                await self.look(server)
            except Exception:
                _log.exception("the memory of the process cannot be checked")

    async def look(self, server: Server) -> None:
        """Read the memory; above the limit, shrink the caches and cancel the largest query."""
        state = server.holder.current
        bound_caches(state.graphs.values(), state.settings.cache_bytes_max)
        now = time.monotonic()
        if now - self._trimmed_at >= TRIM_S:
            self._trimmed_at = now
            await server.execution.call("audit", release_memory)
        self.used = self._measure() or 0
        if self.limit is None or self.used <= self.limit:
            self.high_since = None
            return
        if self.high_since is None:
            self.high_since = now
            _log.warning("memory: %d bytes, above the limit of %d; new work is refused", self.used, self.limit)
        if now - self._shrunk_at >= SHRINK_S:
            self._shrunk_at = now
            await server.execution.call("audit", lambda: halve_caches(state.graphs.values()))
            await server.execution.call("audit", release_memory)
        if self.used > self.limit * _CRITICAL:
            self._cancel_largest(server.operations.running)

    def _cancel_largest(self, running: tuple[Operation, ...]) -> None:
        """Cancel the query with the most memory. The next one is cancelled only if it does not suffice."""
        if self._victim in running:
            return
        self._victim = largest(running)
        if self._victim is None:
            return
        assert self.limit is not None
        self.cancelled += 1
        _log.warning("memory: %d bytes; operation %s is cancelled", self.used, self._victim.id)
        self._victim.stopped = LimitReached(
            f"the query was cancelled: the server process used {self.used:,} bytes of memory, "
            f"its limit is {self.limit:,}, and no other query used more",
            resource="memory",
            limit=self.limit,
            actual=self.used,
            hint="narrow the match, read pages or a stream, or try again when the server has less work",
        )
        self._victim.cancel.cancel()


def largest(running: Iterable[Operation]) -> Operation | None:
    """Return the read with the largest rows, and of equal ones the oldest; None if no read runs."""
    reads = [operation for operation in running if not operation.writes and not operation.cancel.cancelled]
    return max(reads, key=lambda operation: operation.cancel.held_bytes, default=None)


def limit_of(settings: ServerSettings) -> int | None:
    """Return the limit in bytes; None if it is a share of a memory whose size is unknown.

    A share is divided by the number of workers. A size is the limit of each process.
    """
    high = settings.limits.memory_high
    if isinstance(high, int):
        return high
    total = total_memory()
    share = float(high.removesuffix("%")) / 100
    return None if total is None else int(total * share / settings.workers)


class _HeapSizes(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks",
                     "keepcost")
    )  # fmt: skip


def free_memory() -> int:
    """Return the bytes that the heap of the process has free and has not returned to the system; 0 if unknown."""
    sizes = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if sizes is None:
        return 0
    sizes.restype = _HeapSizes
    return int(sizes().fordblks)


def release_memory() -> None:
    """Return free memory of the heap and of Arrow to the system."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def used_memory() -> int | None:
    """Return the bytes that the process has allocated; None on a system without /proc."""
    try:
        fields = (_PROCESS / "statm").read_bytes().split()
    except OSError:
        return None
    resident, shared = int(fields[1]), int(fields[2])
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
