"""`RemoteGraph` and `AsyncRemoteGraph` against a server."""

from __future__ import annotations

import asyncio

import pytest

import omnigraph as og
from omnigraph.errors import BranchNotFound, InputError, TypeCheckError
from support.server import serving
from support.writes import SHELVES, new_graph, shelf

ALL = "query q() { match { $s: Shelf } return { $s.code } order { $s.code } }"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    graph = new_graph(tmp_path_factory.mktemp("remote"), SHELVES, shelf("a"), shelf("b"))
    with serving(graph.uri, flags={"unauthenticated": True}) as running:
        yield running


@pytest.fixture
def graph(server):
    with og.connect(server.url) as opened:
        yield opened


def test_query_returns_the_result_of_the_embedded_graph(graph, server):
    embedded = server.holder.current.find_graph(None).graph
    found, expected = graph.query(ALL), embedded.query(ALL)
    assert found.to_pylist() == expected.to_pylist() == [{"s.code": "a"}, {"s.code": "b"}]
    assert (found.query_name, found.commit_id, found.next) == ("q", expected.commit_id, None)
    assert found.schema == expected.schema
    assert len(found) == 2


def test_errors_are_those_of_the_embedded_graph(graph, server):
    embedded = server.holder.current.find_graph(None).graph
    with pytest.raises(TypeCheckError) as remote:
        graph.query("match { $s: Shelff } return { $s.code }")
    with pytest.raises(TypeCheckError) as local:
        embedded.query("match { $s: Shelff } return { $s.code }")
    assert (str(remote.value), remote.value.hint) == (str(local.value), local.value.hint)
    with pytest.raises(BranchNotFound):
        graph.on("absent")


def test_asynchronous_graph(server):
    async def scenario():
        async with await og.aconnect(server.url) as graph:
            assert (await graph.query(ALL)).to_pylist() == [{"s.code": "a"}, {"s.code": "b"}]
            both = await asyncio.gather(graph.query(ALL), graph.query(ALL))
            assert [len(result) for result in both] == [2, 2]
            with pytest.raises(BranchNotFound):
                await graph.on("absent")

    asyncio.run(scenario())


def test_a_closed_graph_refuses_calls(server):
    graph = og.connect(server.url)
    graph.close()
    with pytest.raises(InputError) as caught:
        graph.query(ALL)
    assert caught.value.code == "graph_closed"
