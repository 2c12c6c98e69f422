"""Rows returned by mutations: content, retries, and repeated requests."""

from __future__ import annotations

import pytest

from omnigraph.engine.exec.context import Limits
from omnigraph.engine.write import returned_rows
from omnigraph.errors import InputError, LimitReached, TypeCheckError
from omnigraph.operations import mutate as operation
from support.writes import interfere, new_graph, node, reopened

SCHEMA = """
node Person { name: String @key  age: I32?  photo: Blob? }
node Note { text: String }
edge Wrote: Person -> Note { at: DateTime? }
edge Knows: Person -> Person
"""


@pytest.fixture
def graph(tmp_path):
    people = [node("Person", name="Ada", age=3, photo="base64:AAEC"), node("Person", name="Bo")]
    return new_graph(tmp_path, SCHEMA, *people)


def returned(graph, body: str, **more):
    return graph.mutate(f"query q() {{ {body} }}", **more).rows.to_pylist()


def test_generated_id_is_returned_and_usable_as_edge_end(graph):
    body = """
        insert Note { text: "new" } as $n
        insert Person { name: "Cy" } as $p
        insert Wrote { from: $p, to: $n, at: now() } as $w
        return { $n, $p.name, $w.at = now() as at_once }
    """
    (row,) = returned(graph, body)
    (found,) = graph.query("query f() { match { $p wrote $n } return { $p.name, $n } }")
    assert found == {"p.name": "Cy", "n": row["n"]}
    assert row["at_once"] is True
    assert set(row["n"]) == {"id", "text"}


def test_blobs_are_not_returned(graph):
    for body in (
        'update Person set { age: 4 } where name = "Ada" as $p',
        'upsert Person { name: "Ada" } as $p',
        'delete Person where name = "Ada" as $p',
    ):
        assert returned(graph, f"{body} return {{ $p }}") == [{"p": {"id": "Ada", "age": 4, "name": "Ada"}}]


def test_result_has_commit_and_query_name(graph):
    done = graph.mutate('query add() { insert Person { name: "Cy" } as $p return { $p } }')
    assert (done.rows.query_name, done.rows.commit_id, done.rows.columns) == ("add", done.commit_id, ["p"])
    assert "Cy" in done.rows._repr_html_()
    assert done.to_json()["rows"] == [{"p": {"id": "Cy", "age": None, "name": "Cy"}}]


def test_without_return_the_result_has_no_columns(graph):
    done = graph.mutate('query add() { insert Person { name: "Cy" } as $p }')
    assert (done.rows.columns, done.rows.to_pylist(), "rows" in done.to_json()) == ([], [], False)


def test_mutation_without_effect_returns_rows_without_commit(graph):
    before = graph.commits()
    done = graph.mutate('query get() { upsert Person { name: "Ada" } new { age: 9 } as $p return { $p.age } }')
    assert (done.affected_nodes, done.commit_id, done.rows.to_pylist()) == (0, None, [{"p.age": 3}])
    assert graph.commits() == before
    assert done.rows.commit_id == before[0].id


def test_rows_are_those_of_the_published_attempt(graph, monkeypatch):
    other = reopened(graph)
    interfere(monkeypatch, lambda: other.mutate('query o() { update Person set { age: 30 } where name = "Ada" }'))
    body = 'update Person set { age: age + 1 } where name = "Ada" as $p return { $p.age }'
    assert returned(graph, body) == [{"p.age": 31}]


def test_repeated_request_returns_the_same_rows(graph):
    query = 'query q() { insert Note { text: "x" } as $n return { $n, now() as at } }'
    first = graph.mutate(query, idempotency_key="k")
    again = graph.mutate(query, idempotency_key="k")
    assert again == first
    assert again.rows.to_pylist() == first.rows.to_pylist()
    assert (again.rows.columns, again.rows.query_name) == (["n", "at"], "q")
    assert len(graph.to_arrow("Note")) == 1


def test_rows_too_large_to_store_are_rejected_before_the_publish(graph, monkeypatch):
    monkeypatch.setattr(operation, "_ROWS_BYTES_MAX", 10)
    before = graph.commits()
    query = 'query q() { insert Note { text: "x" } as $n return { $n } }'
    with pytest.raises(InputError) as caught:
        graph.mutate(query, idempotency_key="k")
    assert caught.value.code == "rows_too_large"
    assert graph.commits() == before
    assert graph.mutate(query).affected_nodes == 1


def test_too_many_combinations_are_rejected(graph, monkeypatch):
    monkeypatch.setattr(returned_rows, "Limits", lambda: Limits(rows_max=3))
    body = "update Person set { age: 1 } where true as $a update Person set { age: 2 } where true as $b"
    with pytest.raises(LimitReached, match="the change would return 4 rows; the limit is 3"):
        returned(graph, f"{body} return {{ $a }}")
    assert returned(graph, body) == []


def test_every_error_is_reported(graph):
    body = """
        insert Persn { name: "a" } as $p
        insert Knows { from: $p, to: $q }
        insert Person { name: "b" } as $q
        return { $p.name, $q.nme, $r, count($q), nearest($q.name, "x") }
    """
    with pytest.raises(TypeCheckError) as caught:
        returned(graph, body)
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == ["T10", "T41", "T6", "T40", "T40", "T40"]
