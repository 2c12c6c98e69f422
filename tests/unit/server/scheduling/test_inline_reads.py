"""Inline reads: the same answers as in a thread, and only for short reads of the same commit."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.server.scheduling import inline_reads
from support.server import ServerUnderTest, serving

ONE = "query one($name: String) { match { $p: Person { name: $name } } return { $p.name, $p.age } }"


def ask(server: ServerUnderTest, name: str) -> tuple[list[dict[str, object]], bool]:
    """Return the rows, and whether the read ran inline: it then waited for no lane."""
    reply = server.post("/query", {"query": ONE, "params": {"name": name}})
    assert reply.status == 200, reply.body
    return reply.json["rows"], "queue" not in reply.headers["server-timing"]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learn from slow reads too: the machine of a test may be busy."""
    monkeypatch.setattr(inline_reads, "LEARN_S", 10.0)


@pytest.mark.usefixtures("patient")
def test_a_repeated_lookup_runs_inline_until_the_branch_moves(server: ServerUnderTest, graph: og.Graph) -> None:
    assert ask(server, "ana") == ([{"p.name": "ana", "p.age": 30}], False)
    assert ask(server, "bo") == ([{"p.name": "bo", "p.age": 41}], True)
    graph.load([{"type": "Person", "data": {"name": "bo", "age": 42}}], mode="merge")
    assert ask(server, "bo") == ([{"p.name": "bo", "p.age": 42}], False)
    assert ask(server, "ana") == ([{"p.name": "ana", "p.age": 30}], True)


@pytest.mark.usefixtures("patient")
def test_a_read_that_takes_too_long_inline_runs_in_a_thread(
    server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(server, "ana")
    monkeypatch.setattr("omnigraph.server.exchange.LIMIT_S", 0.0)
    assert ask(server, "bo") == ([{"p.name": "bo", "p.age": 41}], False)


@pytest.mark.usefixtures("patient")
def test_points_pages_and_other_forms_run_in_a_thread(server: ServerUnderTest, graph: og.Graph) -> None:
    body = {"query": ONE, "params": {"name": "ana"}}
    for more in ({"page": 1}, {"at": graph.commits(limit=1)[0].id}, {"limits": {"rows": 10}}):
        for _ in range(2):
            assert "queue" in server.post("/query", {**body, **more}).headers["server-timing"]
    for _ in range(2):
        assert "queue" in server.post("/query", body, headers={"Accept": "text/csv"}).headers["server-timing"]


@pytest.mark.usefixtures("patient")
def test_the_setting_turns_inline_reads_off(graph: og.Graph) -> None:
    with serving(graph.uri, flags={"inline_reads": False}) as server:
        assert [ask(server, "ana")[1] for _ in range(3)] == [False, False, False]


NEIGHBOURS = "query n($name: String) { match { $p: Person { name: $name } $p knows $q } return { $q.name } }"


@pytest.mark.usefixtures("patient")
def test_a_node_with_many_neighbours_is_read_in_a_thread(server: ServerUnderTest, graph: og.Graph) -> None:
    many = range(inline_reads.ROWS_MAX + 1)
    graph.load([{"type": "Person", "data": {"name": f"p{n}"}} for n in many], mode="merge")
    graph.load([{"edge": "Knows", "from": "bo", "to": f"p{n}", "data": {}} for n in many], mode="append")

    def count(name: str) -> tuple[int, bool]:
        reply = server.post("/query", {"query": NEIGHBOURS, "params": {"name": name}})
        return reply.json["row_count"], "queue" not in reply.headers["server-timing"]

    assert [count("ana"), count("ana")] == [(1, False), (1, True)]
    assert count("bo") == (len(many), False)
    assert [count("ana"), count("ana")] == [(1, False), (1, False)]
    graph.load([{"type": "Person", "data": {"name": "new"}}], mode="merge")
    assert [count("ana"), count("ana")] == [(1, False), (1, True)]


@pytest.mark.usefixtures("patient")
def test_large_requests_and_remote_functions_run_in_a_thread(server: ServerUnderTest) -> None:
    for text in (f"// {'x' * inline_reads.BODY_MAX}\n{ONE}", f"// nearest\n{ONE}"):
        for _ in range(2):
            reply = server.post("/query", {"query": text, "params": {"name": "ana"}})
            assert reply.status == 200, reply.body
            assert "queue" in reply.headers["server-timing"]
