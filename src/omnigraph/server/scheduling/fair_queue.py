"""`FairQueue`: places in a queue where actors take turns.

The places of one actor are served in order of arrival; actors are served in turn. An actor with a thousand places
therefore delays another actor by one place.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable

Turn = asyncio.Future[None]
"""A place in a queue; it is done when its turn has come."""


class FairQueue:
    """One queue for each actor, served in turn. Used on the event loop only."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, deque[Turn]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, actor: str) -> Turn:
        """Return a place at the end of the queue of an actor; an exception that is set on it gives it up."""
        turn: Turn = asyncio.get_running_loop().create_future()
        self._turns.setdefault(actor, deque()).append(turn)
        self._length += 1
        return turn

    def serve(self, may: Callable[[str], bool] | None = None) -> str | None:
        """End the wait of the next actor for whom `may` is true; return the actor, or None if there is none."""
        for actor in list(self._turns):
            if may is not None and not may(actor):
                continue
            if self._serve(actor):
                return actor
        return None

    def _serve(self, actor: str) -> bool:
        """End the wait of the first place of an actor that was not given up; the actor is then the last in turn."""
        turns = self._turns[actor]
        while turns:
            turn = turns.popleft()
            self._length -= 1
            if not turns:
                del self._turns[actor]
            if not turn.done():
                turn.set_result(None)
                if turns:
                    self._turns.move_to_end(actor)
                return True
        return False

    def forget(self, actor: str, turn: Turn) -> None:
        """Remove a place."""
        turns = self._turns.get(actor)
        if turns is not None and turn in turns:
            turns.remove(turn)
            self._length -= 1
            if not turns:
                del self._turns[actor]
