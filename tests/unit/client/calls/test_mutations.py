"""Mutations, algorithms and embeddings of a remote graph."""

from __future__ import annotations

import asyncio
from datetime import date

import pytest

import omnigraph as og
from omnigraph.errors import InputError, KeyReused, PreconditionFailed

INSERT = """
query add($name: String, $born: Date?) {
    insert Person { name: $name, born: $born } as $p
    return { $p.name as name, $p.born as born }
}
"""


@pytest.fixture
def graph(local, remote):
    """A branch of its own, so that the tests do not see each other."""
    name = f"b-{len(local.branches())}"
    local.branch_create(name)
    return remote.on(name)


def test_mutation(local, graph):
    result = graph.mutate(INSERT, {"name": "eve", "born": date(2000, 1, 2)}, message="hello")
    assert (result.affected_nodes, result.affected_edges) == (1, 0)
    assert result.rows.to_pylist() == [{"name": "eve", "born": date(2000, 1, 2)}]
    commit = local.commit(result.commit_id)
    assert (commit.message, commit.branch) == ("hello", graph.branch)
    assert graph.get("Person", "eve")["born"] == date(2000, 1, 2)
    nothing = graph.mutate('delete Person where name = "none"')
    assert (nothing.affected_nodes, nothing.commit_id, nothing.rows.columns) == (0, None, [])


def test_results_equal_those_of_the_embedded_graph(local, graph):
    local.branch_create(f"{graph.branch}-l", graph.branch)
    there = graph.mutate(INSERT, {"name": "fay"})
    here = local.mutate(INSERT, {"name": "fay"}, branch=f"{graph.branch}-l")
    assert there.rows.schema == here.rows.schema
    assert there.rows.query_name == here.rows.query_name
    assert {**there.to_json(), "commit_id": None} == {**here.to_json(), "commit_id": None}


def test_preconditions_and_keys(graph):
    head = graph.query("match { $p: Person } return { $p.name }").commit_id
    first = graph.mutate(INSERT, {"name": "gil"}, if_commit=head, idempotency_key="gil-1")
    again = graph.mutate(INSERT, {"name": "gil"}, if_commit=head, idempotency_key="gil-1")
    assert again == first
    with pytest.raises(PreconditionFailed) as stale:
        graph.mutate(INSERT, {"name": "hal"}, if_commit=head)
    assert stale.value.idempotency_key is not None
    with pytest.raises(KeyReused):
        graph.mutate(INSERT, {"name": "ida"}, idempotency_key="gil-1")
    with pytest.raises(InputError) as other:
        graph.mutate(INSERT, {"name": "ida"}, actor="someone")
    assert other.value.code == "not_remote"


def test_reads_contain_own_writes(graph):
    result = graph.mutate(INSERT, {"name": "joe"})
    assert graph._loop.session.min_commit == result.commit_id
    assert graph.query("match { $p: Person } return { $p.name }").commit_id == result.commit_id


@pytest.mark.parametrize("algorithm", ["pagerank", "components", "degrees"])
def test_algorithms(local, graph, algorithm):
    here, there = local.analyze(algorithm, branch=graph.branch), graph.analyze(algorithm)
    assert there.to_json() == here.to_json()
    assert {name: table.to_pylist() for name, table in there.tables.items()} == {
        name: table.to_pylist() for name, table in here.tables.items()
    }
    assert there.top("Person", 2) == here.top("Person", 2)


def test_an_algorithm_writes_properties(graph):
    done = graph.analyze("pagerank", nodes=["Person"], edges=["Knows"], write="score", idempotency_key="rank")
    assert done.rows_written == 2
    assert graph.get("Person", "ana")["score"] > 0
    with pytest.raises(InputError, match="past state"):
        graph.analyze("pagerank", write="score", at=done.commit_id)


def test_nothing_to_embed(local, graph):
    assert graph.embed() == local.embed(branch=graph.branch)


def test_asynchronous_writes(local, server):
    async def scenario():
        local.branch_create("async-writes")
        async with await og.aconnect(server.url, branch="async-writes") as graph:
            await asyncio.gather(*(graph.mutate(INSERT, {"name": f"n{number}"}) for number in range(4)))
            found = await graph.query("match { $p: Person } return { count($p) as n }")
            assert found.to_pylist() == [{"n": 6}]
            with pytest.raises(KeyReused) as caught:
                await asyncio.gather(
                    graph.mutate(INSERT, {"name": "x1"}, idempotency_key="x"),
                    graph.mutate(INSERT, {"name": "x2"}, idempotency_key="x"),
                )
            assert caught.value.idempotency_key == "x"

    asyncio.run(scenario())
