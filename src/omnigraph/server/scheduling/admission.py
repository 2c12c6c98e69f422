"""Admission: limits on concurrent work, by actor and for the whole process.

A request passes the limits of its actor first, then waits for a slot of its lane, where actors take turns. Everything
here runs on the event loop, so that a reservation is a plain assignment and needs no lock.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from omnigraph.errors import Overloaded
from omnigraph.server.scheduling.fair_queue import FairQueue, Turn

ANONYMOUS = "anonymous"
"""Actor of requests without authentication."""

_WRITE_RETRY_S = 60
_SHARED_SLOTS = 4
"""From this many slots on, one actor cannot have all of them."""


@dataclass
class ActorUsage:
    """The work of one actor that is running or waiting."""

    reads: int = 0
    writes: int = 0
    write_bytes: int = 0

    @property
    def idle(self) -> bool:
        """True if the actor has no work."""
        return not (self.reads or self.writes)


class Lane:
    """A bounded number of slots with one queue per actor.

    One slot of a lane with four or more is kept for other actors, so that they need not wait for the end of a request.
    """

    def __init__(self, name: str, slots: int) -> None:
        self.name = name
        self.slots = slots
        self.share = slots if slots < _SHARED_SLOTS else slots - 1
        """The slots that one actor may have."""
        self.running = 0
        self.admitted = 0
        """The number of requests that got a slot since the start of the process."""
        self._held: Counter[str] = Counter()
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
                retry_after_s=1,
                limit=self.name,
                value=self.slots,
                actual=self.running + self.waiting,
            ) from None

    def leave(self, actor: str) -> None:
        """Return a slot: the next actor takes it."""
        self.running -= 1
        self._held[actor] -= 1
        if not self._held[actor]:
            del self._held[actor]
        while self.running < self.slots and (following := self._queue.serve(self._may)) is not None:
            self._take(following)

    def _may(self, actor: str) -> bool:
        return self._held[actor] < self.share

    def _take(self, actor: str) -> None:
        self.running += 1
        self.admitted += 1
        self._held[actor] += 1


@dataclass(frozen=True)
class ActorLimits:
    """Limits of each actor in this process."""

    reads: int
    writes: int
    write_bytes: int


class Admission:
    """The work of all actors in this process."""

    def __init__(self) -> None:
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
            raise _actor_full("reads_per_actor", limits.reads, usage.reads, retry_after_s=1)
        self._actors[actor] = usage
        usage.reads += 1

        def release() -> None:
            usage.reads -= 1
            self._drop_idle(actor, usage)

        return release

    def write(self, actor: str, size: int, limits: ActorLimits) -> Callable[[], None]:
        """Count a write of an actor and its estimated bytes; the returned function ends it."""
        usage = self._actors.get(actor) or ActorUsage()
        if usage.writes >= limits.writes:
            raise _actor_full("writes_per_actor", limits.writes, usage.writes, retry_after_s=_WRITE_RETRY_S)
        if usage.write_bytes + size > limits.write_bytes:
            asked = usage.write_bytes + size
            raise _actor_full("bytes_per_actor", limits.write_bytes, asked, retry_after_s=_WRITE_RETRY_S)
        self._actors[actor] = usage
        usage.writes += 1
        usage.write_bytes += size

        def release() -> None:
            usage.writes -= 1
            usage.write_bytes -= size
            self._drop_idle(actor, usage)

        return release

    def _drop_idle(self, actor: str, usage: ActorUsage) -> None:
        if usage.idle:
            self._actors.pop(actor, None)


_LIMITS = {
    "reads_per_actor": "concurrent reads",
    "writes_per_actor": "concurrent writes",
    "bytes_per_actor": "bytes of concurrent writes",
}


def _actor_full(limit: str, value: int, actual: int, *, retry_after_s: int) -> Overloaded:
    return Overloaded(
        f"an actor may have {value:,} {_LIMITS[limit]} in one server process (now {actual:,}); nothing was executed",
        scope="actor",
        retry_after_s=retry_after_s,
        limit=limit,
        value=value,
        actual=actual,
    )
