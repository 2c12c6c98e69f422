"""The asynchronous face: the same answers, and the loop goes on meanwhile."""

from __future__ import annotations

import asyncio

import pytest

import omnigraph as og
from omnigraph.errors import BranchNotFound, GraphNotFound
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
