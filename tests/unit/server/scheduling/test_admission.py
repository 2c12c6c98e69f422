"""Admission: limits per actor, fair lanes, and slots that are free afterwards."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from omnigraph.errors import Overloaded
from omnigraph.server.scheduling.admission import (
    WAITING_WRITES,
    ActorLimits,
    Admission,
    BodyMemory,
    Lane,
    ServiceTime,
)

T = TypeVar("T")
LIMITS = ActorLimits(reads=2, writes=1, write_bytes=100)


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, 20))


def test_an_actor_cannot_exceed_its_reads_and_others_are_unaffected() -> None:
    admission = Admission()
    first, _ = admission.read("ana", LIMITS), admission.read("ana", LIMITS)
    with pytest.raises(Overloaded, match="2 concurrent reads") as caught:
        admission.read("ana", LIMITS)
    assert (caught.value.scope, caught.value.limit, caught.value.value) == ("actor", "reads_per_actor", 2)
    admission.read("bo", LIMITS)()
    first()
    admission.read("ana", LIMITS)


def test_write_bytes_are_reserved_together() -> None:
    async def work() -> None:
        admission = Admission()
        limits = ActorLimits(reads=1, writes=8, write_bytes=100)
        first = await admission.write("ana", 60, limits, 10)
        with pytest.raises(Overloaded, match="100 bytes") as caught:
            await admission.write("ana", 41, limits, 0)
        assert (caught.value.limit, caught.value.actual) == ("bytes_per_actor", 101)
        (await admission.write("ana", 40, limits, 10)).release()
        first.release()
        with pytest.raises(Overloaded, match="100 bytes"):
            await admission.write("ana", 101, limits, 3600)
        assert admission.actors == 0

    run(work())


def test_a_write_that_grows_keeps_to_the_bytes_of_its_actor() -> None:
    async def work() -> None:
        admission = Admission()
        limits = ActorLimits(reads=1, writes=8, write_bytes=100)
        first, second = await admission.write("ana", 10, limits, 0), await admission.write("ana", 10, limits, 0)
        first.resize(90)
        with pytest.raises(Overloaded, match="now 101"):
            second.resize(11)
        first.resize(20)
        second.resize(80)
        first.release()
        second.release()
        assert admission.actors == 0

    run(work())


def test_writes_over_the_limit_begin_in_order_of_arrival() -> None:
    """A small write does not overtake a large one, and the bytes of both are within the limit."""

    async def work() -> list[int]:
        admission, order = Admission(), []
        limits = ActorLimits(reads=1, writes=2, write_bytes=100)
        first = await admission.write("ana", 60, limits, 10)

        async def write(number: int, size: int) -> None:
            admitted = await admission.write("ana", size, limits, 10)
            order.append(number)
            assert admission.usage["ana"].write_bytes <= 100
            await asyncio.sleep(0)
            admitted.release()

        tasks = []
        for number, size in enumerate([70, 10, 40, 90, 1]):
            tasks.append(asyncio.create_task(write(number, size)))
            await asyncio.sleep(0)
        assert (order, len(admission.usage["ana"].waiting)) == ([], 5)
        first.release()
        await asyncio.gather(*tasks)
        assert admission.actors == 0
        return order

    assert run(work()) == [0, 1, 2, 3, 4]


def test_the_queue_of_an_actor_is_bounded_and_its_refusal_estimates_the_wait() -> None:
    async def work() -> tuple[int, int, str | None]:
        now = 0.0
        admission, limits = Admission(lambda: now), ActorLimits(reads=1, writes=1, write_bytes=100)
        (await admission.write("bo", 1, limits, 10)).release()
        ended = await admission.write("bo", 1, limits, 10)
        now = 4.0
        ended.release()  # the mean of 0 s and 4 s over 8 requests is 0.5 s
        running = await admission.write("ana", 1, limits, 10)
        waiting = [asyncio.create_task(admission.write("ana", 1, limits, 10)) for _ in range(WAITING_WRITES)]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded) as caught:
            await admission.write("ana", 1, limits, 10)
        running.release()
        for task in waiting:
            (await task).release()
        assert admission.actors == 0
        return caught.value.retry_after_s, WAITING_WRITES, caught.value.limit

    assert run(work()) == (3, 4, "writes_per_actor")


@pytest.mark.parametrize(("mean_s", "waiting", "places", "expected"), [(0, 5, 1, 1), (2, 5, 4, 3), (600, 5, 1, 60)])
def test_an_estimate_is_the_length_of_the_queue_times_the_time_of_service(
    mean_s: float, waiting: int, places: int, expected: int
) -> None:
    service = ServiceTime()
    service.add(mean_s)
    assert service.wait_s(waiting, places) == expected
    assert ServiceTime().wait_s(waiting, places) == 1


def test_the_refusal_of_a_full_lane_estimates_the_wait() -> None:
    async def work() -> int:
        now = 0.0
        lane = Lane("writes", 1, lambda: now)
        await lane.enter("ana", 1)
        now = 10.0
        lane.leave("ana")
        await lane.enter("ana", 1)
        with pytest.raises(Overloaded) as caught:
            await lane.enter("bo", 0)
        return caught.value.retry_after_s

    assert run(work()) == 10


def test_body_memory_is_bounded_per_actor_and_in_all() -> None:
    bodies = BodyMemory()
    bodies.grow("ana", 50, 100)
    with pytest.raises(Overloaded, match="one actor") as caught:
        bodies.grow("ana", 1, 100)
    assert (caught.value.scope, caught.value.limit, caught.value.value) == ("actor", "body_memory", 50)
    bodies.grow("bo", 50, 100)
    with pytest.raises(Overloaded, match="all requests") as caught:
        bodies.grow("cy", 1, 100)
    assert (caught.value.scope, bodies.used) == ("server", 100)
    bodies.shrink("ana", 50)
    bodies.grow("cy", 1, 100)


def test_an_actor_without_work_is_forgotten() -> None:
    async def work() -> int:
        admission = Admission()
        with pytest.raises(Overloaded):
            admission.read("ana", ActorLimits(0, 0, 0))
        with pytest.raises(Overloaded):
            await admission.write("ana", 1, ActorLimits(0, 0, 0), 3600)
        (await admission.write("ana", 1, LIMITS, 10)).release()
        return admission.actors

    assert run(work()) == 0


def test_actors_take_turns_in_a_lane() -> None:
    async def work() -> list[str]:
        lane, order = Lane("reads", 1), []
        await lane.enter("flood", 10)

        async def one(actor: str) -> None:
            await lane.enter(actor, 10)
            order.append(actor)
            lane.leave(actor)

        tasks = [asyncio.create_task(one("flood")) for _ in range(20)]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(one("ana")))
        await asyncio.sleep(0)
        lane.leave("flood")
        await asyncio.gather(*tasks)
        assert (lane.running, lane.waiting) == (0, 0)
        return order

    assert "ana" in run(work())[:2]


def test_a_full_lane_refuses_after_the_queue_time_and_leaks_no_slot() -> None:
    async def work() -> None:
        lane = Lane("exports", 1)
        await lane.enter("ana", 1)
        with pytest.raises(Overloaded, match="1 slots for exports") as caught:
            await lane.enter("bo", 0.01)
        assert caught.value.scope == "server"
        assert lane.waiting == 0
        lane.leave("ana")
        await lane.enter("bo", 1)
        lane.leave("bo")
        assert lane.running == 0

    run(work())


def test_a_cancelled_wait_leaks_no_slot() -> None:
    async def work() -> None:
        lane = Lane("reads", 1)
        await lane.enter("ana", 1)
        waiting = asyncio.create_task(lane.enter("bo", 5))
        await asyncio.sleep(0)
        lane.leave("ana")  # assigns the slot to the waiting task, which is cancelled before it runs
        waiting.cancel()
        await asyncio.wait({waiting})
        assert (lane.running, lane.waiting) == (0, 0)

    run(work())


def test_a_place_in_the_queue_can_be_given_up() -> None:
    async def work() -> tuple[int, int]:
        lane = Lane("reads", 1)
        await lane.enter("ana", 1)
        turn = lane.queue("bo")
        waiting = asyncio.create_task(lane.wait(turn, "bo", 10))
        await asyncio.sleep(0)
        turn.set_exception(ConnectionError())
        with pytest.raises(ConnectionError):
            await waiting
        assert lane.waiting == 0
        lane.leave("ana")
        return lane.running, lane.waiting

    assert run(work()) == (0, 0)


def test_refusals_and_usage_are_counted() -> None:
    async def work() -> None:
        admission = Admission()
        write = await admission.write("ana", 60, LIMITS, 0)
        usage = admission.usage["ana"]
        assert (usage.reads, usage.writes, usage.write_bytes) == (0, 1, 60)
        for _ in range(2):
            with pytest.raises(Overloaded) as caught:
                await admission.write("ana", 1, LIMITS, 0)
            admission.count_refusal(caught.value)
        assert admission.rejected == {"writes_per_actor": 2}
        write.release()
        assert dict(admission.usage) == {}

    run(work())


def test_a_lane_counts_the_requests_that_got_a_slot() -> None:
    async def work() -> tuple[int, int]:
        lane = Lane("reads", 1)
        await lane.enter("ana", 1)
        waiting = asyncio.create_task(lane.enter("bo", 5))
        await asyncio.sleep(0)
        before = lane.admitted
        lane.leave("ana")
        await waiting
        lane.leave("bo")
        return before, lane.admitted

    assert run(work()) == (1, 2)


def test_an_actor_cannot_take_every_slot_of_a_lane() -> None:
    async def work() -> tuple[bool, int]:
        lane = Lane("reads", 4)
        for _ in range(3):
            await lane.enter("flood", 1)
        waiting = asyncio.create_task(lane.enter("flood", 5))
        await asyncio.sleep(0)
        assert (lane.running, lane.waiting) == (3, 1)
        entered = lane.try_enter("ana")
        lane.leave("flood")
        await waiting
        lane.leave("ana")
        for _ in range(3):
            lane.leave("flood")
        return entered, lane.running

    assert run(work()) == (True, 0)


@pytest.mark.parametrize("seed", range(40))
def test_slots_are_free_after_any_interleaving(seed: int) -> None:
    """Requests of several actors end by themselves, fail, are cancelled, give up or wait too long, in any order."""
    chance = random.Random(seed)
    limits = ActorLimits(reads=4, writes=2, write_bytes=50)

    async def work() -> None:
        admission, lane, running = Admission(), Lane("reads", chance.choice([1, 2, 5])), 0

        async def request(actor: str) -> None:
            nonlocal running
            size = chance.randrange(40)
            if chance.random() < 0.7:
                release = admission.read(actor, limits)
            else:
                release = (await admission.write(actor, size, limits, chance.choice([0.001, 0.01, 5]))).release
            try:
                if not lane.try_enter(actor):
                    turn = lane.queue(actor)
                    if chance.random() < 0.2:
                        loop.call_later(chance.random() / 500, lambda: turn.done() or turn.set_exception(OSError()))
                    await lane.wait(turn, actor, chance.choice([0.001, 0.01, 5]))
                try:
                    running += 1
                    assert running <= lane.slots
                    for _ in range(chance.choice([1, 1, 5])):
                        await asyncio.sleep(0)
                    if chance.random() < 0.3:
                        raise ValueError
                finally:
                    running -= 1
                    lane.leave(actor)
            finally:
                release()

        loop = asyncio.get_running_loop()
        tasks: list[asyncio.Task[None]] = []
        for _ in range(60):
            tasks.append(loop.create_task(request(chance.choice(["ana", "bo", "cy"]))))
            if chance.random() < 0.3:
                chance.choice(tasks).cancel()
            if chance.random() < 0.5:
                for _ in range(chance.choice([1, 5])):
                    await asyncio.sleep(0)
        done = await asyncio.gather(*tasks, return_exceptions=True)
        expected = (Overloaded, ValueError, OSError, asyncio.CancelledError)
        assert all(outcome is None or isinstance(outcome, expected) for outcome in done)
        assert (lane.running, lane.waiting, admission.actors) == (0, 0, 0)
        assert all(lane.try_enter("new") for _ in range(lane.share))

    run(work())
