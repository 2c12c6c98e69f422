"""Turns at the event loop, so that one actor with many connections does not delay the requests of others.

All requests are parsed, authenticated and answered by one thread, the event loop. It serves connections in the order in
which bytes arrive; hundreds of connections of one actor would delay another actor by hundreds of requests. Therefore
each round of the loop begins a bounded amount of work. What exceeds it waits, and actors take turns.

A refused request is cheap for its client, which can repeat it at once. Above a number of refusals per second, the
answers of refusals to one actor are delayed.
"""

from __future__ import annotations

import asyncio
import time

from omnigraph.server.scheduling.fair_queue import FairQueue

ROUND_S = 0.0006
"""The time of requests that one round of the event loop begins."""
REQUEST_S = 0.0003
"""The time that the parts of a request around its work take."""
REFUSALS_PER_S = 50
REFUSALS_AT_ONCE = 50
"""The number of refusals that are answered without a delay."""
REFUSAL_DELAY_S = 5.0
"""The longest delay of a refusal."""
SHARED_S = 10.0
"""After the last change from one actor to another, actors take turns for this time. A single actor needs no turns."""
_ACTORS_MAX = 1024


class LoopTurns:
    """The time of the event loop in the present round, and the requests that wait for another one."""

    def __init__(self) -> None:
        self._queue = FairQueue()
        self._spent = 0.0
        self._last = ""
        self._shared_until = float("-inf")

    @property
    def waiting(self) -> int:
        """The number of waiting requests."""
        return len(self._queue)

    def try_begin(self, actor: str) -> bool:
        """Begin a request in this round, if it has time left and no other request waits, or if there is one actor."""
        now = time.monotonic()
        if actor != self._last:
            self._shared_until = now + SHARED_S if self._last else self._shared_until
            self._last = actor
        if now > self._shared_until and not self._queue:
            return True
        if self._spent >= ROUND_S or self._queue:
            return False
        self.spend(REQUEST_S)
        return True

    async def begin(self, actor: str) -> None:
        """Wait for the turn of an actor."""
        turn = self._queue.add(actor)
        try:
            await turn
        except BaseException:
            self._queue.forget(actor, turn)
            raise

    def spend(self, seconds: float) -> None:
        """Count time of the event loop in this round."""
        if not self._spent:
            asyncio.get_running_loop().call_soon(self._next_round)
        self._spent += seconds

    def _next_round(self) -> None:
        self._spent = 0.0
        while self._spent < ROUND_S and self._queue.serve() is not None:
            self.spend(REQUEST_S)


class RefusalPace:
    """Delays of refusals, by actor."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        """When the next refusal of an actor would be answered if none were answered at once."""

    def delay(self, actor: str) -> float:
        """Count a refusal; return the seconds after which it is answered."""
        now = time.monotonic()
        due = max(self._due.get(actor, now), now)
        at_once = REFUSALS_AT_ONCE / REFUSALS_PER_S
        delay = due - now - at_once
        if delay < REFUSAL_DELAY_S:
            self._due[actor] = due + 1 / REFUSALS_PER_S
        if len(self._due) > _ACTORS_MAX:
            self._due = {name: at for name, at in self._due.items() if at > now}
        return min(max(delay, 0.0), REFUSAL_DELAY_S)
