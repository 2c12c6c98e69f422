"""`AsyncGraph`: results equal those of `Graph`, calls run in threads, and cancellation stops them."""

from __future__ import annotations

import asyncio
import inspect
import threading

import pytest

import omnigraph as og
from omnigraph.aio import WriteCancelled
from omnigraph.errors import BranchNotFound, ConstraintViolation, GraphNotFound, InputError, OmniGraphError
from omnigraph.storage.failpoints import arm
from support.writes import beside, new_graph, shelf

QUERY = "query q() { match { $s: Shelf } return { $s.code } order { $s.code } }"


@pytest.fixture
def uri(tmp_path):
    return new_graph(tmp_path, "node Shelf { code: String @key  cap: I32? }\nedge Beside: Shelf -> Shelf").uri


def test_methods_are_coroutines_and_iterators_are_asynchronous(uri):
    async def scenario():
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

    asyncio.run(scenario())


def test_pages_are_fetched_one_by_one(uri):
    async def scenario():
        graph = await og.aopen(uri)
        await graph.load([shelf(code) for code in "abcde"], mode="append")
        seen: list[list[str]] = []
        async for page in graph.pages(QUERY, page=2):
            seen.append([row["s.code"] for row in page])
        assert seen == [["a", "b"], ["c", "d"], ["e"]]
        first = await graph.query(QUERY, page=4)
        assert len(await graph.query(QUERY, page=4, after=first.next)) == 1

    asyncio.run(scenario())


def test_reads_and_writes_run_concurrently(uri):
    async def scenario():
        graph = await og.aopen(uri)
        loads = [graph.load([shelf(f"s{number}")], mode="append") for number in range(8)]
        done = await asyncio.gather(*loads, *[graph.query(QUERY) for _ in range(8)])
        assert len({result.commit_id for result in done[:8]}) == 8
        assert len(await graph.query(QUERY)) == 8

    asyncio.run(scenario())


def test_errors_are_those_of_graph(uri, tmp_path):
    async def scenario():
        graph = await og.aopen(uri)
        with pytest.raises(BranchNotFound):
            await graph.on("missing")
        with pytest.raises(AttributeError):
            graph.no_such_method  # noqa: B018
        with pytest.raises(GraphNotFound):
            await og.aopen(str(tmp_path / "none"))

    asyncio.run(scenario())


METHODS = [name for name, _ in inspect.getmembers(og.Graph, inspect.isfunction) if not name.startswith("_")]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_the_parameters_of_graph(name):
    ours, theirs = (inspect.signature(getattr(class_, name)) for class_ in (og.AsyncGraph, og.Graph))
    assert list(ours.parameters.values()) == list(theirs.parameters.values())


def test_aopen_has_the_parameters_of_open():
    ours, theirs = (set(inspect.signature(function).parameters) for function in (og.aopen, og.open))
    assert ours - theirs == {"threads"}
    assert theirs <= ours


def test_properties_of_graph_are_coroutines(uri):
    members = inspect.getmembers(og.Graph, lambda member: isinstance(member, property))
    names = {name for name, _ in members if not name.startswith("_")}
    assert names
    assert all(inspect.iscoroutinefunction(getattr(og.AsyncGraph, name)) for name in names)
    graph = asyncio.run(og.aopen(uri))
    assert asyncio.run(graph.uri()) == uri
    assert repr(graph) == f"AsyncGraph({uri!r}, branch='main')"


# -- cancelled calls ---------------------------------------------------------------------------------

INSERT = 'query q() { insert Shelf { code: "w" } }'
WAIT_S = 60
WRITES = {
    "mutate": lambda graph: graph.mutate(INSERT),
    "load": lambda graph: graph.load([shelf("w")], mode="append"),
}


class Blocker:
    """Blocks the thread of a write at a failpoint until it is released."""

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
def test_write_cancelled_before_publish_is_not_published(uri, place, write):
    held = Blocker()

    async def scenario():
        async with await og.aopen(uri) as graph:
            call = asyncio.create_task(write(graph))
            await held.has_arrived()
            call.cancel()
            await asyncio.sleep(0)
            assert not call.done(), "the call must wait until the write has stopped"
            held.released.set()
            with pytest.raises(WriteCancelled, match="nothing was written") as cancelled:
                await call
            assert cancelled.value.settled
            assert cancelled.value.idempotency_key
            return graph.graph

    with arm(place, held):
        graph = asyncio.run(scenario())
    assert codes(graph) == []
    assert [commit.kind for commit in graph.commits()] == ["init"]
    assert not list((graph._repository.location.path / "__recovery").glob("*")), "the intent must be removed"


def test_write_cancelled_after_publish_returns_its_result(uri):
    held = Blocker()

    async def scenario():
        async with await og.aopen(uri) as graph:
            call = asyncio.create_task(graph.mutate(INSERT))
            await held.has_arrived()
            call.cancel()
            held.released.set()
            return graph.graph, await call

    with arm("publish.after_commit", held):
        graph, result = asyncio.run(scenario())
    assert result.commit_id == graph.commits()[0].id
    assert codes(graph) == ["w"]


def test_write_repeated_after_wait_for_timeout_is_applied_once(uri):
    async def attempt(graph, number: int) -> bool:
        held = Blocker()
        with arm(("table.staged", "publish.after_commit")[number % 2], held):
            loading = asyncio.ensure_future(graph.load([shelf(f"s{number}")], mode="append"))
            await held.has_arrived()
            asyncio.get_running_loop().call_soon(held.released.set)
            try:
                await asyncio.wait_for(loading, 0)
            except TimeoutError:
                return False
        return True

    async def scenario():
        async with await og.aopen(uri) as graph:
            for number in range(6):
                if not await attempt(graph, number):
                    await graph.load([shelf(f"s{number}")], mode="append")
            return graph.graph

    graph = asyncio.run(scenario())
    assert codes(graph) == [f"s{number}" for number in range(6)]
    assert len([commit for commit in graph.commits() if commit.kind == "load"]) == 6


def test_write_cancelled_twice_can_be_repeated_with_its_key(uri):
    held = Blocker()

    async def scenario():
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
        graph = asyncio.run(scenario())
    assert codes(graph) == ["w"]
    assert len(graph.commits()) == 2


def test_queued_write_is_cancelled_immediately(uri):
    held = Blocker()

    async def scenario():
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
        graph = asyncio.run(scenario())
    assert codes(graph) == ["w"]


def test_failed_write_reports_its_generated_key(uri):
    async def scenario():
        async with await og.aopen(uri) as graph:
            with pytest.raises(ConstraintViolation) as failed:
                await graph.mutate('query q() { insert Beside { from: "no", to: "no" } }')
            key = failed.value.idempotency_key
            done = await graph.mutate(INSERT, idempotency_key=key)
            assert await graph.mutate(INSERT, idempotency_key=key) == done
            given = await graph.load([shelf("x")], mode="append", job_id="night")
            assert (await graph.load([shelf("x")], mode="append", job_id="night")).commit_id == given.commit_id
            return graph.graph

    assert codes(asyncio.run(scenario())) == ["w", "x"]


def test_generated_key_does_not_limit_returned_rows(uri):
    async def scenario():
        async with await og.aopen(uri) as graph:
            await graph.load([shelf(f"{number:06}" + "x" * 200) for number in range(20_000)], mode="append")
            done = await graph.mutate(
                'query q() { update Shelf set { cap: 1 } where code > "" as $s return { $s.code } }'
            )
            return len(done.rows)

    assert asyncio.run(scenario()) == 20_000


def test_threads_end_when_the_graph_is_closed(uri):
    before = set(threading.enumerate())

    def ours() -> list[str]:
        new = set(threading.enumerate()) - before
        return [thread.name for thread in new if thread.name.startswith("omnigraph_")]

    async def scenario():
        async with await og.aopen(uri, threads=2) as graph:
            await asyncio.gather(*(graph.query(QUERY) for _ in range(6)))
            assert 1 <= len(ours()) <= 2
            other = await graph.on("main")
        with pytest.raises(InputError, match="closed") as closed:
            await other.query(QUERY)
        assert closed.value.code == "graph_closed"

    asyncio.run(scenario())
    assert ours() == []


FAILING = {
    "apply_schema": lambda g: g.apply_schema("node"),
    "analyze": lambda g: g.analyze("none", write="cap"),
    "embed": lambda g: g.embed(types=["None"]),
    "unify": lambda g: g.unify("None", keep="a", drop="b"),
    "branch_create": lambda g: g.branch_create("main"),
    "branch_update": lambda g: g.branch_update("none"),
    "branch_delete": lambda g: g.branch_delete("none"),
    "merge": lambda g: g.merge("none"),
    "revert": lambda g: g.revert("none"),
    "tag_create": lambda g: g.tag_create("main"),
    "store_query": lambda g: g.store_query("query q() { match { $x: None } return { $x } }"),
    "delete_query": lambda g: g.delete_query("none"),
    "invoke": lambda g: g.invoke("none"),
    "propose": lambda g: g.propose("none", title="x"),
    "tag_delete": lambda g: g.tag_delete("none"),
    "ensure_indices": lambda g: g.ensure_indices("none"),
    "optimize": lambda g: g.optimize("none"),
    "purge": lambda g: g.purge("None", ["a"], reason="x"),
}


def test_every_write_has_a_key(uri):
    async def scenario():
        async with await og.aopen(uri) as graph:
            for name, call in FAILING.items():
                with pytest.raises(OmniGraphError) as failed:
                    await call(graph)
                assert failed.value.idempotency_key, name
            keyed = {n for n in METHODS if "idempotency_key" in inspect.signature(getattr(og.Graph, n)).parameters}
            assert keyed == {*FAILING, "mutate"}

    asyncio.run(scenario())
