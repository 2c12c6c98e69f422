"""Reads: one snapshot, its schema, and parameters that are checked before execution."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from omnigraph.engine.exec.context import NO_LIMITS, Limits
from omnigraph.errors import InputError, ParameterError, QueryNotFound, TypeCheckError
from omnigraph.graph import Graph
from omnigraph.operations.read import read
from omnigraph.operations.requests import QueryText, ReadRequest
from support.random_reads.graphs import ManualClock
from support.writes import edge, new_graph, node

SCHEMA = "node P { name: String @key  n: I64?  at: DateTime? }\nedge Knows: P -> P\n"
NAMES = "query names() { match { $p: P } return { $p.name } order { $p.name } }"


@pytest.fixture
def graph(tmp_path):
    return new_graph(tmp_path, SCHEMA, *(node("P", name=name, n=0) for name in "abcde"))


def test_source_is_text_or_a_file(graph, tmp_path):
    file = tmp_path / "some.gq"
    file.write_text(NAMES + "\nquery none() { match { $p: P { n: 9 } } return { $p.name } }")
    assert len(graph.query(NAMES)) == len(graph.query(file, "names")) == 5
    assert len(graph.query(file, "none")) == 0
    with pytest.raises(InputError, match="several queries: 'names'"):
        graph.query(file)
    with pytest.raises(QueryNotFound, match="no query 'nmes'") as caught:
        graph.query(file, "nmes")
    assert "names" in caught.value.hint


def test_query_rejects_a_mutation(graph):
    before = graph.commits()[0].id
    with pytest.raises(InputError, match="query 'q' changes the graph") as caught:
        graph.query('query q() { delete P where name = "a" }')
    assert "mutate" in caught.value.hint
    assert graph.commits()[0].id == before


def test_compile_error_names_the_file(graph, tmp_path):
    file = tmp_path / "wrong.gq"
    file.write_text("query q() { match { $p: Q } return { $p.name } }")
    with pytest.raises(TypeCheckError, match=r"wrong\.gq:1:"):
        graph.query(file)


@pytest.mark.parametrize(
    ("executor", "limits", "ran"),
    [
        ("memory", NO_LIMITS, "fastpath"),
        ("pipeline", NO_LIMITS, "pipeline"),
        ("memory", Limits(rows_max=100), "fastpath"),
        ("memory", Limits(bytes_max=1 << 20), "pipeline"),
    ],
)
def test_outcome_names_the_executor_that_ran(graph, executor, limits, ran):
    query = QueryText("query q($n: String) { match { $p: P { name: $n } } return { $p.name } }", params={"n": "a"})
    outcome = read(graph._context, graph.snapshot(), ReadRequest(query, "main", limits=limits, executor=executor))
    assert outcome.executor == ran
    assert outcome.result.to_pylist() == [{"p.name": "a"}]


PARAMETERS = (
    "query q($n: I64, $name: String?) { match { $p: P { n: $n } } return { $p.name, $name } order { $p.name } }"
)
WRONG = [
    (None, "parameter 'n' (I64) is missing"),
    ({}, "parameter 'n' (I64) is missing"),
    ({"$n": 1}, "the query has no parameter '$n'"),
    ({"n": None}, "parameter 'n' (I64): null, but I64 is required"),
    ({"n": 1.5}, "parameter 'n' (I64): expected I64, found the number 1.5"),
    ({"n": "x"}, "parameter 'n' (I64): expected I64, found the string 'x'"),
    ({"n": 2**63}, "parameter 'n' (I64): 9223372036854775808 exceeds Int64 range"),
    ({"n": 1, "name": 5}, "parameter 'name' (String?): expected String?, found the integer 5"),
    ({"n": 1, "other": {}}, "the query has no parameter 'other'"),
    ([1], "parameters are an object of names and values, not an array"),
]


@pytest.mark.parametrize(("params", "message"), WRONG)
def test_wrong_parameters_are_rejected_by_name(graph, params, message):
    with pytest.raises(ParameterError) as caught:
        graph.query(PARAMETERS, params=params)
    assert caught.value.message.startswith(message)


def test_parameters(graph):
    assert len(graph.query(PARAMETERS, params={"n": "0"})) == 5
    assert len(graph.query(PARAMETERS, params={"n": 1, "name": "x"})) == 0
    assert graph.query(PARAMETERS, params={"n": 0, "name": "x"}).to_rows()[0] == {"p.name": "a", "name": "x"}


def test_now_is_one_instant_of_the_repository_clock(graph):
    graph.load([node("P", name="past", at=1_000), node("P", name="next", at=1_001)], mode="merge")
    graph._repository.clock = ManualClock(1_000_999)
    query = "query q() { match { $p: P $p.at <= now() } return { $p.name, now(), now() as then } }"
    moment = "1970-01-01T00:00:01.000Z"
    assert graph.query(query).to_rows() == [{"p.name": "past", "now": moment, "then": moment}]


def test_explain_shows_the_plan_without_running_it(graph):
    assert graph.explain(PARAMETERS).startswith("query q($n: I64, $name: String?)")


# -- many threads ------------------------------------------------------------------------------------

ALL = "query q() { match { $p: P } return { $p.n, count($p) as c } }"
HOPS = "query q() { match { $p: P $p knows $q } return { $p.n, $q.n, count($q) as c } }"
CHANGE = "query q($n: I64) { update P set { n: $n } where n >= 0 }"


def test_every_result_belongs_to_one_commit(graph):
    """Eight threads read while one updates every node and adds an edge; no read sees a partial write."""
    rounds = 12
    graph.load([edge("Knows", "a", "b")], mode="append")
    made: dict[str, tuple[int, int]] = {graph.commits()[0].id: (0, 1)}
    seen: list[tuple[str, str, list[dict[str, Any]]]] = []
    failures: list[BaseException] = []
    done = threading.Event()

    def change() -> None:
        try:
            for number in range(1, rounds + 1):
                made[str(graph.mutate(CHANGE, params={"n": number}).commit_id)] = (number, number)
                added = graph.load([edge("Knows", "abcde"[number % 5], "c", id_=f"e{number}")], mode="append")
                made[str(added.commit_id)] = (number, number + 1)
        finally:
            done.set()

    def read(reader: Graph, query: str) -> None:
        try:
            last = False
            while not last:
                last = done.is_set()
                result = reader.query(query)
                seen.append((query, result.commit_id, result.to_rows()))
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=read, args=(graph, (ALL, HOPS)[number % 2])) for number in range(8)]
    writer = threading.Thread(target=change)
    for thread in (*readers, writer):
        thread.start()
    for thread in (*readers, writer):
        thread.join()
    assert failures == []
    assert len(made) == 2 * rounds + 1
    assert {commit for _, commit, _ in seen} <= made.keys()
    for query, commit, rows in seen:
        number, edges = made[commit]
        pairs = {("abcde"[at % 5], "c") for at in range(1, edges)} | {("a", "b")}
        if query == ALL:
            assert rows == [{"p.n": number, "c": 5}]
        else:
            assert rows == [{"p.n": number, "q.n": number, "c": len(pairs)}]
    assert {commit for _, commit, _ in seen} >= {graph.commits()[0].id}


SERIAL = "node P { name: String @key  n: I64 }\nedge Knows: P -> P { since: I64 }\n"
SERIAL_CHANGE = """query q($n: I64, $to: String) {
  update P set { n: $n } where n >= 0
  insert P { name: $to, n: $n }
  insert Knows { from: "a", to: $to, since: $n }
}"""
SERIAL_READS = (
    "query q() { match { $p: P } return { $p.n as n, count($p) as rows } }",
    'query q() { match { $p: P { name: "a" } $p knows $q } return { $q.n as n, count($q) as rows } }',
    'query q() { match { $p: P { name: "a" } $p $e:knows $q } return { $p.n as n, count($e.since) as rows } }',
    "query q() { match { $q: P not { $p knows $q } } return { $q.n as n, count($q) as rows } }",
)


def test_concurrent_readers_see_whole_commits_only(tmp_path):
    """Every commit writes its number to all nodes and adds a node and an edge; no read mixes two commits."""
    graph = new_graph(tmp_path, SERIAL, node("P", name="a", n=0))
    rounds = 8
    seen: list[tuple[int, str, list[dict[str, Any]]]] = []
    failures: list[BaseException] = []

    def guarded(work: Any, *arguments: Any) -> None:
        try:
            work(*arguments)
        except BaseException as error:
            failures.append(error)

    def change(writer: int) -> None:
        for number in range(1, rounds + 1):
            mine = writer * 1000 + number
            graph.mutate(SERIAL_CHANGE, params={"n": mine, "to": f"t{mine}"}, message=str(mine))

    def read(place: int) -> None:
        last = False
        while not last:
            last = done.is_set()
            result = graph.query(SERIAL_READS[place % len(SERIAL_READS)])
            seen.append((place % len(SERIAL_READS), result.commit_id, result.to_rows()))
            begun.set()

    begun, done = threading.Event(), threading.Event()
    readers = [threading.Thread(target=guarded, args=(read, place)) for place in range(16)]
    writers = [threading.Thread(target=guarded, args=(change, writer)) for writer in (1, 2)]
    for thread in readers:
        thread.start()
    assert begun.wait(60)
    for thread in writers:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert failures == []
    history = graph.commits()[::-1]
    assert sum(commit.message is not None for commit in history) == 2 * rounds
    loaded = next(place for place, commit in enumerate(history) if commit.message is not None) - 1
    expected = {
        commit.id: (int(commit.message or 0), place - loaded) for place, commit in enumerate(history) if place >= loaded
    }
    for place, commit_id, rows in seen:
        number, edges = expected[commit_id]
        counts = (edges + 1, edges, edges, 1)
        assert rows == ([{"n": number, "rows": counts[place]}] if counts[place] else []), commit_id
    assert len({commit_id for _, commit_id, _ in seen}) > 1
