"""The asynchronous face: the same answers, and the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import threading

import pytest

import omnigraph as og
from omnigraph.aio import WriteCancelled
from omnigraph.errors import BranchNotFound, ConstraintViolation, GraphNotFound, InputError
from omnigraph.storage.failpoints import arm
from support.writes import beside, new_graph, shelf

QUERY = "query q() { match { $s: Shelf } return { $s.code } order { $s.code } }"


@pytest.fixture
def uri(tmp_path):
    return new_graph(tmp_path, "node Shelf { code: String @key  cap: I32? }\nedge Beside: Shelf -> Shelf").uri


def test_methods_are_coroutines_and_iterators_are_asynchronous(uri):
    async def story():
        async with await og.aopen(uri, actor="act-ana") as graph:
            await graph.load([shelf("a"), shelf("b"), beside("a", "b", id_="e")], mode="append")
            assert (await graph.query(QUERY)).to_pylist() == [{"s.code": "a"}, {"s.code": "b"}]
            await graph.branch_create("more")
            more = await graph.on("more")
            assert isinstance(more, og.AsyncGraph)
            await more.mutate('query q() { insert Shelf { code: "c" } }')
            assert [change.id async for change in graph.diff("main", "more")] == ["c"]
            assert len([record async for record in await graph.export(branch="more")]) == 4
            assert (graph.branch, more.branch, graph.actor) == ("main", "more", "act-ana")
            assert "Shelf" in await graph.schema()
            assert [commit.kind for commit in await graph.commits()] == ["load", "init"]

    asyncio.run(story())


def test_pages_come_one_by_one(uri):
    async def story():
        graph = await og.aopen(uri)
        await graph.load([shelf(code) for code in "abcde"], mode="append")
        seen: list[list[str]] = []
        async for page in graph.pages(QUERY, page=2):
            seen.append([row["s.code"] for row in page])
        assert seen == [["a", "b"], ["c", "d"], ["e"]]
        first = await graph.query(QUERY, page=4)
        assert len(await graph.query(QUERY, page=4, after=first.next)) == 1

    asyncio.run(story())


def test_reads_and_writes_run_side_by_side(uri):
    async def story():
        graph = await og.aopen(uri)
        loads = [graph.load([shelf(f"s{number}")], mode="append") for number in range(8)]
        done = await asyncio.gather(*loads, *[graph.query(QUERY) for _ in range(8)])
        assert len({result.commit_id for result in done[:8]}) == 8
        assert len(await graph.query(QUERY)) == 8

    asyncio.run(story())


def test_errors_are_those_of_the_graph(uri, tmp_path):
    async def story():
        graph = await og.aopen(uri)
        with pytest.raises(BranchNotFound):
            await graph.on("nowhere")
        with pytest.raises(AttributeError):
            graph.nothing_of_the_kind  # noqa: B018
        with pytest.raises(GraphNotFound):
            await og.aopen(str(tmp_path / "none"))

    asyncio.run(story())


def test_it_offers_every_method_of_a_graph(uri):
    graph = asyncio.run(og.aopen(uri))
    methods = {name for name in dir(og.Graph) if not name.startswith("_")}
    assert methods <= set(dir(graph))
    assert all(callable(getattr(graph, name)) for name in methods)
    assert repr(graph) == f"AsyncGraph({uri!r}, branch='main')"


# -- cancelled calls ---------------------------------------------------------------------------------

INSERT = 'query q() { insert Shelf { code: "w" } }'
WAIT_S = 60
WRITES = {
    "mutate": lambda graph: graph.mutate(INSERT),
    "load": lambda graph: graph.load([shelf("w")], mode="append"),
}


class Held:
    """Holds the thread of a write at a failpoint until it is released."""

    def __init__(self) -> None:
        self.arrived, self.released = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.arrived.set()
        assert self.released.wait(WAIT_S)

    async def has_arrived(self) -> None:
        assert await asyncio.to_thread(self.arrived.wait, WAIT_S)


def codes(graph: og.Graph) -> list[str]:
    return [row["s.code"] for row in graph.query(QUERY)]


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("place", ["table.staged", "intent.written", "table.promoted"])
def test_a_write_that_is_cancelled_before_its_publish_never_lands(uri, place, write):
    held = Held()

    async def story():
        async with await og.aopen(uri) as graph:
            call = asyncio.create_task(write(graph))
            await held.has_arrived()
            call.cancel()
            await asyncio.sleep(0)
            assert not call.done(), "the call waits until the write has stopped"
            held.released.set()
            with pytest.raises(WriteCancelled, match="nothing was written") as cancelled:
                await call
            assert cancelled.value.settled
            assert cancelled.value.idempotency_key
            return graph.graph

    with arm(place, held):
        graph = asyncio.run(story())
    assert codes(graph) == []
    assert [commit.kind for commit in graph.commits()] == ["init"]
    assert not list((graph._repository.location.path / "__recovery").glob("*")), "no intent is left behind"


def test_a_write_that_was_published_when_it_is_cancelled_returns_its_result(uri):
    held = Held()

    async def story():
        async with await og.aopen(uri) as graph:
            call = asyncio.create_task(graph.mutate(INSERT))
            await held.has_arrived()
            call.cancel()
            held.released.set()
            return graph.graph, await call

    with arm("publish.after_commit", held):
        graph, result = asyncio.run(story())
    assert result.commit_id == graph.commits()[0].id
    assert codes(graph) == ["w"]


def test_a_write_abandoned_by_wait_for_and_repeated_is_there_once(uri):
    async def release_later(held: Held) -> None:
        await held.has_arrived()
        await asyncio.sleep(0.2)
        held.released.set()

    async def attempt(graph, number: int) -> bool:
        held = Held()
        with arm(("table.staged", "publish.after_commit")[number % 2], held):
            releasing = asyncio.create_task(release_later(held))
            try:
                await asyncio.wait_for(graph.load([shelf(f"s{number}")], mode="append"), 0.05)
            except TimeoutError:
                return False
            finally:
                held.arrived.set()
                await releasing
        return True

    async def story():
        async with await og.aopen(uri) as graph:
            for number in range(6):
                if not await attempt(graph, number):
                    await graph.load([shelf(f"s{number}")], mode="append")
            return graph.graph

    graph = asyncio.run(story())
    assert codes(graph) == [f"s{number}" for number in range(6)]
    assert len([commit for commit in graph.commits() if commit.kind == "load"]) == 6


def test_a_write_cancelled_twice_can_be_repeated_with_its_key(uri):
    held = Held()

    async def story():
        graph = await og.aopen(uri)
        call = asyncio.create_task(graph.mutate(INSERT))
        await held.has_arrived()
        call.cancel()
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(WriteCancelled, match="outcome is not known") as cancelled:
            await call
        held.released.set()
        assert not cancelled.value.settled
        await graph.aclose()
        again = await og.aopen(uri)
        await again.mutate(INSERT, idempotency_key=cancelled.value.idempotency_key)
        return again.graph

    with arm("publish.after_commit", held):
        graph = asyncio.run(story())
    assert codes(graph) == ["w"]
    assert len(graph.commits()) == 2


def test_a_write_that_waits_for_a_thread_is_cancelled_at_once(uri):
    held = Held()

    async def story():
        async with await og.aopen(uri, threads=1) as graph:
            first = asyncio.create_task(graph.mutate(INSERT))
            await held.has_arrived()
            second = asyncio.create_task(graph.mutate(INSERT.replace('"w"', '"x"')))
            await asyncio.sleep(0)
            second.cancel()
            with pytest.raises(WriteCancelled):
                await second
            held.released.set()
            await first
            return graph.graph

    with arm("table.staged", held):
        graph = asyncio.run(story())
    assert codes(graph) == ["w"]


def test_every_write_has_a_key_that_a_failure_carries(uri):
    async def story():
        async with await og.aopen(uri) as graph:
            with pytest.raises(ConstraintViolation) as failed:
                await graph.mutate('query q() { insert Beside { from: "no", to: "no" } }')
            key = failed.value.idempotency_key
            done = await graph.mutate(INSERT, idempotency_key=key)
            assert await graph.mutate(INSERT, idempotency_key=key) == done
            given = await graph.load([shelf("x")], mode="append", job_id="night")
            assert (await graph.load([shelf("x")], mode="append", job_id="night")).commit_id == given.commit_id
            return graph.graph

    assert codes(asyncio.run(story())) == ["w", "x"]


def test_a_generated_key_does_not_limit_what_a_change_returns(uri):
    async def story():
        async with await og.aopen(uri) as graph:
            await graph.load([shelf(f"{number:06}" + "x" * 200) for number in range(20_000)], mode="append")
            done = await graph.mutate(
                'query q() { update Shelf set { cap: 1 } where code > "" as $s return { $s.code } }'
            )
            return len(done.rows)

    assert asyncio.run(story()) == 20_000


def test_the_threads_end_with_the_graph(uri):
    def ours() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name.startswith("omnigraph")]

    async def story():
        async with await og.aopen(uri, threads=2) as graph:
            await asyncio.gather(*(graph.query(QUERY) for _ in range(6)))
            assert 1 <= len(ours()) <= 2
            other = await graph.on("main")
        with pytest.raises(InputError, match="closed") as closed:
            await other.query(QUERY)
        assert closed.value.code == "graph_closed"

    asyncio.run(story())
    assert ours() == []
