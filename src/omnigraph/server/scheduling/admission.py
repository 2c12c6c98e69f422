"""Admission: limits on concurrent work and on the memory of bodies, by actor and for the whole process.

A request passes the limits of its actor first, then waits for a slot of its lane, where actors take turns. A write over
the limits of its actor waits in order for the end of another one. Everything here runs on the event loop, so that a
reservation is a plain assignment and needs no lock.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from omnigraph.errors import Overloaded
from omnigraph.server.scheduling.fair_queue import FairQueue, Turn

ANONYMOUS = "anonymous"
"""Actor of requests without authentication."""

WAITING_WRITES = 4
"""An actor may have this many waiting writes for each one that it may have in flight."""
RETRY_MAX_S = 60
"""The largest estimate of a wait."""
_RECENT = 8
"""The number of recent requests that the mean time of service is about."""
_SHARED_SLOTS = 4
"""From this many slots on, one actor cannot have all of them."""

Clock = Callable[[], float]


class ServiceTime:
    """The mean time that recent requests held a place, and the wait that it predicts."""

    def __init__(self) -> None:
        self._mean_s: float | None = None

    def add(self, seconds: float) -> None:
        """Count a request that has left its place."""
        mean = seconds if self._mean_s is None else self._mean_s
        self._mean_s = mean + (seconds - mean) / _RECENT

    def wait_s(self, waiting: int, places: int) -> int:
        """Return the whole seconds until the last of the waiting requests has a place: at least 1."""
        return min(max(math.ceil(waiting * (self._mean_s or 0.0) / max(places, 1)), 1), RETRY_MAX_S)


@dataclass(frozen=True)
class ActorLimits:
    """Limits of each actor in this process."""

    reads: int
    writes: int
    write_bytes: int


@dataclass(frozen=True, eq=False)
class _WaitingWrite:
    """A write over the limits of its actor."""

    turn: Turn
    size: int
    limits: ActorLimits


@dataclass
class ActorUsage:
    """The work of one actor that is running or waiting."""

    reads: int = 0
    writes: int = 0
    write_bytes: int = 0
    waiting: deque[_WaitingWrite] = field(default_factory=deque)
    """The writes over the limits, in order of arrival."""

    @property
    def idle(self) -> bool:
        """True if the actor has no work."""
        return not (self.reads or self.writes or self.waiting)

    def fits(self, size: int, limits: ActorLimits) -> bool:
        """Return True if a further write is within the limits."""
        return self.writes < limits.writes and self.write_bytes + size <= limits.write_bytes


class Lane:
    """A bounded number of slots with one queue per actor.

    One slot of a lane with four or more is kept for other actors, so that they need not wait for the end of a request.
    """

    def __init__(self, name: str, slots: int, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self.name = name
        self.slots = slots
        self.share = slots if slots < _SHARED_SLOTS else slots - 1
        """The slots that one actor may have."""
        self.running = 0
        self.admitted = 0
        """The number of requests that got a slot since the start of the process."""
        self._held: dict[str, deque[float]] = {}
        """When each slot of an actor was taken. The mean time is right whichever of them is returned first."""
        self._service = ServiceTime()
        self._queue = FairQueue()

    @property
    def waiting(self) -> int:
        """The number of waiting requests."""
        return len(self._queue)

    @property
    def is_full(self) -> bool:
        """True if requests wait, or a further one would."""
        return self.running >= self.slots or bool(self._queue)

    async def enter(self, actor: str, queue_s: float) -> None:
        """Take a slot; raise `Overloaded` if none becomes free within `queue_s` seconds."""
        if not self.try_enter(actor):
            await self.wait(self.queue(actor), actor, queue_s)

    def try_enter(self, actor: str) -> bool:
        """Take a slot if one is free for the actor. A free slot has no waiting actor who may take it."""
        if self.running >= self.slots or not self._may(actor):
            return False
        self._take(actor)
        return True

    def queue(self, actor: str) -> Turn:
        """Return a place at the end of the queue of an actor; an exception that is set on it gives it up."""
        return self._queue.add(actor)

    async def wait(self, turn: Turn, actor: str, queue_s: float) -> None:
        """Wait for a slot; raise `Overloaded` after `queue_s` seconds, or the exception that is set on the place."""
        try:
            async with asyncio.timeout(queue_s):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                # The slot was assigned at the moment of the timeout or the cancellation.
                self.leave(actor)
            else:
                self._queue.forget(actor, turn)
            if not isinstance(error, TimeoutError):
                raise
            raise Overloaded(
                f"the server has {self.slots} slots for {self.name}, and none became free within {queue_s:g} s; "
                "nothing was executed",
                scope="server",
                retry_after_s=self._service.wait_s(self.waiting + 1, self.slots),
                limit=self.name,
                value=self.slots,
                actual=self.running + self.waiting,
            ) from None

    def leave(self, actor: str) -> None:
        """Return a slot: the next actor takes it."""
        self.running -= 1
        self._service.add(self._clock() - self._held[actor].popleft())
        if not self._held[actor]:
            del self._held[actor]
        while self.running < self.slots and (following := self._queue.serve(self._may)) is not None:
            self._take(following)

    def _may(self, actor: str) -> bool:
        return len(self._held.get(actor, ())) < self.share

    def _take(self, actor: str) -> None:
        self.running += 1
        self.admitted += 1
        self._held.setdefault(actor, deque()).append(self._clock())


class AdmittedWrite:
    """A write in flight. Its size is an estimate until its body is complete."""

    def __init__(self, actor: str, usage: ActorUsage, waited: _WaitingWrite, admission: Admission) -> None:
        self._actor = actor
        self._usage = usage
        self._limits = waited.limits
        self._size = waited.size
        self._admission = admission
        self._started = admission.clock()

    def resize(self, size: int) -> None:
        """Change the estimated bytes; raise `Overloaded` if the actor then exceeds its limit."""
        total = self._usage.write_bytes - self._size + size
        if size > self._size and total > self._limits.write_bytes:
            raise self._admission.actor_full("bytes_per_actor", self._limits, self._usage, size - self._size)
        self._usage.write_bytes, self._size = total, size

    def release(self) -> None:
        """End the write; the next one of the actor begins."""
        self._admission.writes_time.add(self._admission.clock() - self._started)
        self._admission.end_write(self._actor, self._usage, self._size)


class BodyMemory:
    """The memory of the request bodies of this process. One actor may have half of it."""

    def __init__(self) -> None:
        self.used = 0
        self._actors: Counter[str] = Counter()

    def grow(self, actor: str, size: int, limit: int) -> None:
        """Count bytes; raise `Overloaded` if the actor or the process then exceeds its limit."""
        if self._actors[actor] + size > limit // 2:
            raise _bodies_full("actor", limit // 2, self._actors[actor] + size)
        if self.used + size > limit:
            raise _bodies_full("server", limit, self.used + size)
        self.used += size
        self._actors[actor] += size

    def shrink(self, actor: str, size: int) -> None:
        """Return bytes."""
        self.used -= size
        self._actors[actor] -= size
        if not self._actors[actor]:
            del self._actors[actor]


def _bodies_full(scope: Literal["actor", "server"], limit: int, size: int) -> Overloaded:
    requests = "one actor" if scope == "actor" else "all requests"
    return Overloaded(
        f"the request bodies of {requests} may use {limit:,} bytes of memory in one server process (now {size:,}); "
        "nothing was executed",
        scope=scope,
        retry_after_s=1,
        limit="body_memory",
        value=limit,
        actual=size,
    )


class Admission:
    """The work of all actors in this process."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.clock = clock
        self.bodies = BodyMemory()
        self.writes_time = ServiceTime()
        self._reads_time = ServiceTime()
        self._actors: dict[str, ActorUsage] = {}
        self.rejected: Counter[str] = Counter()
        """The number of requests that were refused since the start of the process, by the name of the limit."""

    @property
    def usage(self) -> Mapping[str, ActorUsage]:
        """The running and waiting work of each actor."""
        return self._actors

    @property
    def actors(self) -> int:
        """The number of actors with running or waiting work."""
        return len(self._actors)

    def count_refusal(self, error: Overloaded) -> None:
        """Count a request that was refused."""
        self.rejected[error.limit or error.code] += 1

    def read(self, actor: str, limits: ActorLimits) -> Callable[[], None]:
        """Count a read of an actor while it waits and runs; the returned function ends it."""
        usage = self._actors.get(actor) or ActorUsage()
        if usage.reads >= limits.reads:
            raise self.actor_full("reads_per_actor", limits, usage)
        self._actors[actor] = usage
        usage.reads += 1
        started = self.clock()

        def release() -> None:
            self._reads_time.add(self.clock() - started)
            usage.reads -= 1
            self._drop_idle(actor, usage)

        return release

    async def write(self, actor: str, size: int, limits: ActorLimits, queue_s: float) -> AdmittedWrite:
        """Count a write of an actor and its estimated bytes; a write over the limits waits in order.

        `Overloaded` is raised if it can never be within the limits, if too many writes wait, and after `queue_s`
        seconds.
        """
        usage = self._actors.get(actor) or ActorUsage()
        write = _WaitingWrite(asyncio.get_running_loop().create_future(), size, limits)
        is_possible = ActorUsage().fits(size, limits)
        if not is_possible or len(usage.waiting) >= WAITING_WRITES * limits.writes:
            raise self._full(write, usage)
        self._actors[actor] = usage
        usage.waiting.append(write)
        self._serve(usage)
        if not write.turn.done():
            await self._wait(actor, usage, write, queue_s)
        return AdmittedWrite(actor, usage, write, self)

    async def _wait(self, actor: str, usage: ActorUsage, write: _WaitingWrite, queue_s: float) -> None:
        try:
            async with asyncio.timeout(queue_s):
                await write.turn
        except BaseException as error:
            refusal = self._full(write, usage)
            if write in usage.waiting:
                usage.waiting.remove(write)
                self._serve(usage)
                self._drop_idle(actor, usage)
            else:
                # Its turn came at the moment of the timeout or the cancellation.
                self.end_write(actor, usage, write.size)
            if not isinstance(error, TimeoutError):
                raise
            raise refusal from None

    def end_write(self, actor: str, usage: ActorUsage, size: int) -> None:
        """Give up the place of a write; the next ones of its actor begin."""
        usage.writes -= 1
        usage.write_bytes -= size
        self._serve(usage)
        self._drop_idle(actor, usage)

    def _serve(self, usage: ActorUsage) -> None:
        """Begin the first waiting writes that are within the limits."""
        while usage.waiting and usage.fits(usage.waiting[0].size, usage.waiting[0].limits):
            write = usage.waiting.popleft()
            usage.writes += 1
            usage.write_bytes += write.size
            if not write.turn.done():
                write.turn.set_result(None)

    def _drop_idle(self, actor: str, usage: ActorUsage) -> None:
        if usage.idle:
            self._actors.pop(actor, None)

    def _full(self, write: _WaitingWrite, usage: ActorUsage) -> Overloaded:
        limit = "writes_per_actor" if usage.writes >= write.limits.writes else "bytes_per_actor"
        return self.actor_full(limit, write.limits, usage, write.size)

    def actor_full(self, limit: str, limits: ActorLimits, usage: ActorUsage, size: int = 0) -> Overloaded:
        """Return the refusal of a request by a limit of its actor."""
        noun, value, actual = {
            "reads_per_actor": ("concurrent reads", limits.reads, usage.reads),
            "writes_per_actor": ("concurrent writes", limits.writes, usage.writes),
            "bytes_per_actor": ("bytes of concurrent writes", limits.write_bytes, usage.write_bytes + size),
        }[limit]
        reads = limit == "reads_per_actor"
        time_, places = (self._reads_time, limits.reads) if reads else (self.writes_time, limits.writes)
        return Overloaded(
            f"an actor may have {value:,} {noun} in one server process (now {actual:,}); nothing was executed",
            scope="actor",
            retry_after_s=time_.wait_s(len(usage.waiting) + 1, places),
            limit=limit,
            value=value,
            actual=actual,
        )
