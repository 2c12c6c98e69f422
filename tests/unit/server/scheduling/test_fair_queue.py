"""A queue where actors take turns."""

from __future__ import annotations

import asyncio

from omnigraph.server.scheduling.fair_queue import FairQueue


def test_actors_take_turns_and_each_is_served_in_order() -> None:
    async def work() -> tuple[list[str | None], list[bool]]:
        queue = FairQueue()
        turns = [queue.add(actor) for actor in ("a", "a", "a", "b", "c", "b")]
        assert len(queue) == 6
        served = [queue.serve() for _ in range(3)]
        return served, [turn.done() for turn in turns]

    served, done = asyncio.run(work())
    assert served == ["a", "b", "c"]
    assert done == [True, False, False, True, True, False]


def test_places_that_were_given_up_are_passed_over() -> None:
    async def work() -> None:
        queue = FairQueue()
        first, second, third = queue.add("a"), queue.add("a"), queue.add("b")
        first.cancel()
        queue.forget("b", third)
        queue.forget("b", third)
        assert len(queue) == 2
        assert queue.serve() == "a"
        assert second.done()
        assert (queue.serve(), len(queue)) == (None, 0)

    asyncio.run(work())


def test_an_actor_who_may_not_be_served_keeps_its_place() -> None:
    async def work() -> None:
        queue = FairQueue()
        turn = queue.add("a")
        queue.add("b")
        assert queue.serve(lambda actor: actor != "a") == "b"
        assert queue.serve(lambda actor: actor != "a") is None
        assert not turn.done()
        assert queue.serve() == "a"

    asyncio.run(work())
