"""Turns at the event loop, and the delay of refusals."""

from __future__ import annotations

import asyncio
import json

import pytest

import omnigraph as og
from omnigraph.server.process import loop_turns
from omnigraph.server.process.loop_turns import REFUSAL_DELAY_S, REFUSALS_AT_ONCE, LoopTurns, RefusalPace
from support.server import serving

PEOPLE = "query people() { match { $p: Person } return { $p.name } }"


def test_a_single_actor_does_not_wait() -> None:
    async def work() -> None:
        turns = LoopTurns()
        assert all(turns.try_begin("ana") for _ in range(100))
        turns.spend(1.0)
        assert turns.try_begin("ana")

    asyncio.run(work())


def test_a_flood_delays_another_actor_by_a_few_requests() -> None:
    async def work() -> list[str]:
        turns, begun = LoopTurns(), []
        turns.try_begin("ana")

        async def request(actor: str) -> None:
            if not turns.try_begin(actor):
                await turns.begin(actor)
            begun.append(actor)

        tasks = [asyncio.create_task(request("flood")) for _ in range(200)]
        await asyncio.sleep(0)
        before = len(begun)
        tasks.append(asyncio.create_task(request("ana")))
        await asyncio.wait_for(asyncio.gather(*tasks), 20)
        assert turns.waiting == 0
        return begun[before:]

    assert "ana" in asyncio.run(work())[:8]


def test_a_cancelled_wait_leaves_the_queue() -> None:
    async def work() -> int:
        turns = LoopTurns()
        turns.try_begin("ana")
        turns.try_begin("bo")
        turns.spend(1.0)
        assert not turns.try_begin("bo")
        waiting = asyncio.create_task(turns.begin("bo"))
        waiting.cancel()
        await asyncio.wait({waiting})
        await asyncio.sleep(0)
        return turns.waiting

    assert asyncio.run(work()) == 0


def test_refusals_of_one_actor_are_answered_more_and_more_slowly() -> None:
    pace = RefusalPace()
    delays = [pace.delay("flood") for _ in range(1000)]
    assert set(delays[:REFUSALS_AT_ONCE]) == {0.0}
    assert delays[REFUSALS_AT_ONCE + 2] > 0
    assert max(delays) == REFUSAL_DELAY_S
    assert pace.delay("ana") == 0.0


def test_the_pace_forgets_actors_who_are_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_turns, "REFUSALS_PER_S", 1e9)
    pace = RefusalPace()
    for number in range(5000):
        pace.delay(f"actor-{number}")
    assert len(pace._due) <= 1025


def test_a_delayed_refusal_is_the_same_answer(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_turns, "REFUSALS_AT_ONCE", 0)
    environ = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"ana": "secret-1"})}
    with serving(graph.uri, environ=environ, token="secret-1", flags={"limits.memory_high": 1}) as server:
        while not server.app.server.memory.is_high:
            server.get("/healthz")
        for _ in range(3):
            reply = server.post("/query", {"query": PEOPLE})
            assert (reply.status, reply.json["overload"]["limit"]) == (503, "memory_high")
