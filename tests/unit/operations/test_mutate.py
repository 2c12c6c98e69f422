"""Mutations: effects and counts of each statement, and failures that write nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from omnigraph.engine.write.fill_vectors import Unconfigured
from omnigraph.errors import (
    CompileError,
    ConstraintViolation,
    EmbeddingError,
    InputError,
    KeyConflict,
    KeyReused,
    ParameterError,
    PreconditionFailed,
    QueryNotFound,
    TypeCheckError,
)
from omnigraph.graph import Graph
from omnigraph.operations.create import create_graph
from omnigraph.operations.embed.embedder import GraphEmbedder
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.mutate import MutationResult, mutate
from omnigraph.operations.requests import MutationRequest, QueryText
from omnigraph.versioning.write.transaction import WriteOptions
from support.writes import (
    FakeEmbedder,
    edge,
    ends_of,
    everything,
    ids_of,
    interfere,
    manifest_files,
    named,
    new_graph,
    node,
    reopened,
    rows_of,
)

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    city: String?
    seen: DateTime?
    @range(age, 0..150)
}
node Team { label: String  size: I32? }
edge Knows: Person -> Person { since: Date? }
edge Likes: Person -> Person
edge In: Person -> Team @card(0..2) { role: enum(head, member)? }
edge Owns: Team -> Person
"""


@pytest.fixture
def graph(tmp_path):
    return new_graph(tmp_path, SCHEMA)


def people(*names: str, **values: Any) -> list[dict[str, Any]]:
    return [node("Person", name=name, **values) for name in names]


def change(
    graph: Graph, statements: str, params: dict[str, Any] | None = None, declared: str = "", **options: Any
) -> Any:
    """Run statements as one query; return the counts of nodes and edges."""
    result = graph.mutate(f"query q({declared}) {{ {statements} }}", params=params, **options)
    return result.affected_nodes, result.affected_edges


# -- insert ------------------------------------------------------------------------------------------


def test_insert_of_existing_key_is_a_conflict(graph):
    assert change(graph, 'insert Person { name: "ada", age: 7, city: "Ulm" }') == (1, 0)
    before = everything(graph)
    with pytest.raises(KeyConflict) as caught:
        change(graph, 'insert Person { name: "bea" } insert Person { name: "ada", age: 8 }')
    assert caught.value.code == "key_conflict"
    assert (caught.value.table_key, caught.value.row_id) == ("node:Person", "ada")
    assert caught.value.message == "Person 'ada' already exists; nothing was written"
    assert "upsert Person { name: …, … }" in str(caught.value.hint)
    assert "'update Person'" in str(caught.value.hint)
    assert everything(graph) == before


def test_two_inserts_of_one_key_in_one_mutation_conflict(graph):
    with pytest.raises(KeyConflict, match="Person 'a' already exists"):
        change(graph, 'insert Person { name: "a", age: 1 } insert Person { name: "a", age: 2 }')
    with pytest.raises(KeyConflict, match="Person 'a' already exists"):
        change(graph, 'upsert Person { name: "a" } insert Person { name: "a" }')
    assert rows_of(graph, "Person") == {}


def test_a_deleted_key_can_be_inserted_again(graph):
    graph.load(people("a", age=1), mode="append")
    text = 'atomic { delete Person where name = "a" insert Person { name: "a", city: "x" } }'
    assert change(graph, text) == (2, 0)
    text = 'atomic { insert Person { name: "b" } delete Person where name = "b" insert Person { name: "b", age: 2 } }'
    assert change(graph, text) == (3, 0)
    assert rows_of(graph, "Person") == {
        "a": {"age": None, "city": "x", "name": "a", "seen": None},
        "b": {"age": 2, "city": None, "name": "b", "seen": None},
    }
    assert graph.verify() == []


def test_insert_that_loses_a_race_for_its_key_is_a_conflict(graph, monkeypatch):
    other = reopened(graph)
    interfere(monkeypatch, lambda: change(other, 'insert Person { name: "a", age: 1 }'))
    with pytest.raises(KeyConflict, match="Person 'a' already exists"):
        change(graph, 'insert Person { name: "a", age: 2 }')
    assert rows_of(graph, "Person")["a"]["age"] == 1


def test_insert_that_loses_a_race_to_another_key_is_retried(graph, monkeypatch):
    other = reopened(graph)
    interfere(monkeypatch, lambda: change(other, 'insert Person { name: "a", age: 1 }'))
    assert change(graph, 'insert Person { name: "b", age: 2 }') == (1, 0)
    assert ids_of(graph, "Person") == ["a", "b"]


def test_repeated_request_is_not_a_conflict(graph):
    for _ in range(2):
        assert change(graph, 'insert Person { name: "a" }', idempotency_key="k") == (1, 0)
    assert ids_of(graph, "Person") == ["a"]


# -- upsert ------------------------------------------------------------------------------------------


def test_upsert_sets_only_named_properties(graph):
    graph.load(people("a", age=3, city="x"), mode="append")
    assert change(graph, 'upsert Person { name: "a", age: 4 }') == (1, 0)
    assert rows_of(graph, "Person")["a"] == {"age": 4, "city": "x", "name": "a", "seen": None}
    assert change(graph, 'upsert Person { name: "a", city: null }') == (1, 0)
    assert rows_of(graph, "Person")["a"] == {"age": 4, "city": None, "name": "a", "seen": None}


def test_assignments_beside_the_key_apply_to_new_and_existing_rows(graph):
    text = 'upsert Person { name: "a", city: "x" } new { age: 1 } existing { age: coalesce(age, 0) + 10 }'
    assert change(graph, text) == (1, 0)
    assert rows_of(graph, "Person")["a"] == {"age": 1, "city": "x", "name": "a", "seen": None}
    assert change(graph, text) == (1, 0)
    assert rows_of(graph, "Person")["a"] == {"age": 11, "city": "x", "name": "a", "seen": None}


def test_upsert_without_new_branch_updates_rows_and_requires_properties_to_insert(tmp_path):
    graph = new_graph(tmp_path, "node P { k: String @key  req: I32  opt: I32? }", node("P", k="a", req=1))
    assert change(graph, 'upsert P { k: "a", opt: 2 }') == (1, 0)
    assert rows_of(graph, "P") == {"a": {"k": "a", "opt": 2, "req": 1}}
    with pytest.raises(InputError, match=r"'P.req' \(I32\) is required") as caught:
        change(graph, 'upsert P { k: "b", opt: 2 }')
    assert caught.value.code == "required_property"
    assert change(graph, 'upsert P { k: "b", opt: 2, req: 3 }') == (1, 0)
    assert rows_of(graph, "P")["b"] == {"k": "b", "opt": 2, "req": 3}


@pytest.mark.parametrize("branch", ["new", "existing"])
def test_a_property_beside_the_key_and_in_a_branch_is_an_error(graph, branch):
    with pytest.raises(CompileError) as caught:
        change(graph, f'upsert Person {{ name: "a", age: 1 }} {branch} {{ age: 2 }}')
    assert caught.value.code == "T13"
    assert f"'age' is assigned beside the key and in '{branch}'" in caught.value.message


def test_upsert_requires_the_whole_composite_key(tmp_path):
    graph = new_graph(tmp_path, "node Bed { ward: String  no: I32  soft: Bool?  @key(ward, no) }")
    with pytest.raises(CompileError) as caught:
        change(graph, "upsert Bed { no: 7, soft: true }")
    assert caught.value.code == "T32"
    assert change(graph, 'upsert Bed { soft: true, no: 7, ward: "n" }') == (1, 0)
    assert rows_of(graph, "Bed") == {'["7","n"]': {"no": 7, "soft": True, "ward": "n"}}


def test_insert_of_keyless_type_always_adds_a_row(graph):
    for _ in range(2):
        assert change(graph, 'insert Team { label: "x" }') == (1, 0)
    first, second = ids_of(graph, "Team")
    assert first != second
    assert len(first) == len(second) == 26


def test_edge_insert_always_adds_a_row(graph):
    graph.load(people("a", "b"), mode="append")
    statement = 'insert Knows { from: "a", to: "b", since: date("2024-01-01") }'
    for _ in range(2):
        assert change(graph, statement) == (0, 1)
    assert ends_of(graph, "Knows") == [("a", "b"), ("a", "b")]
    assert [row["since"] for row in rows_of(graph, "Knows").values()] == [19_723, 19_723]


def test_edge_can_refer_to_nodes_inserted_before_or_after_it(graph):
    assert change(
        graph,
        'insert Knows { from: "a", to: "b" } insert Person { name: "a" } insert Person { name: "b" } '
        'insert Likes { from: "b", to: "a" }',
    ) == (2, 2)
    assert ends_of(graph, "Knows") == [("a", "b")]
    assert ends_of(graph, "Likes") == [("b", "a")]


def test_row_written_twice_counts_twice(graph):
    assert change(graph, 'insert Person { name: "a", age: 1, city: "x" } upsert Person { name: "a", age: 2 }') == (2, 0)
    assert rows_of(graph, "Person")["a"] == {"age": 2, "city": "x", "name": "a", "seen": None}


def test_composite_and_numeric_keys(tmp_path):
    graph = new_graph(tmp_path, "node Bed { ward: String  no: I32  soft: Bool?  @key(ward, no) } edge At: Bed -> Bed")
    assert change(graph, 'insert Bed { no: 7, ward: "n" } upsert Bed { no: 7, ward: "n", soft: true }') == (2, 0)
    assert rows_of(graph, "Bed") == {'["7","n"]': {"no": 7, "soft": True, "ward": "n"}}
    assert change(graph, "insert At { from: $a, to: $a }", {"a": '["7","n"]'}, "$a: String") == (0, 1)


# -- update ------------------------------------------------------------------------------------------


def test_update_sets_assigned_properties_of_matching_rows(graph):
    graph.load([*people("a", "b", age=3, city="x"), *people("c", age=4)], mode="append")
    assert change(graph, 'update Person set { city: "y" } where age = 3') == (2, 0)
    assert {id_: (row["age"], row["city"]) for id_, row in rows_of(graph, "Person").items()} == {
        "a": (3, "y"),
        "b": (3, "y"),
        "c": (4, None),
    }


def test_update_sees_rows_inserted_by_the_query(graph):
    graph.load(people("old", age=1), mode="append")
    statements = (
        'insert Person { name: "new", age: 1 } update Person set { age: 2 } where age = 1 '
        "update Person set { age: 3 } where age = 2"
    )
    assert change(graph, statements) == (5, 0)
    assert {id_: row["age"] for id_, row in rows_of(graph, "Person").items()} == {"new": 3, "old": 3}


def test_update_does_not_see_replaced_values(graph):
    graph.load(people("a", age=1), mode="append")
    assert change(graph, 'upsert Person { name: "a", age: 9 } update Person set { city: "x" } where age = 1') == (1, 0)
    assert rows_of(graph, "Person")["a"]["city"] is None


def test_update_of_rows_without_a_key(graph):
    assert change(graph, 'insert Team { label: "x" } update Team set { size: 4 } where label = "x"') == (2, 0)
    assert [row["size"] for row in rows_of(graph, "Team").values()] == [4]
    assert change(graph, 'update Team set { size: 5 } where label = "x"') == (1, 0)
    assert [row["size"] for row in rows_of(graph, "Team").values()] == [5]


def test_update_of_edges_by_their_ends_and_properties(web):
    before = rows_of(web, "Knows")
    assert change(web, 'update Knows set { since: date("2024-05-01") } where from = "a"') == (
        0,
        sum(row["from"] == "a" for row in before.values()),
    )
    for id_, row in rows_of(web, "Knows").items():
        assert row == {**before[id_], **({"since": 19_844} if row["from"] == "a" else {})}
    assert change(web, 'update Knows set { since: null } where since = date("2024-05-01") and to != "z"')[1] > 0
    assert {row["since"] for row in rows_of(web, "Knows").values() if row["from"] == "a"} == {None}
    assert web.verify() == []


def test_hops_see_updated_edges(graph):
    graph.load([*people("a", "b", "c"), edge("Knows", "a", "b"), edge("Knows", "b", "c")], mode="append")
    hops = """query q($n: String) {
        match { $p: Person { name: $n } $p knows{1,2} $f } return { $f.name } order { $f.name } limit 9 }"""
    assert graph.query(hops, params={"n": "a"}).to_rows() == [{"f.name": "b"}, {"f.name": "c"}]
    assert change(graph, 'update Knows set { since: date("2024-01-01") } where from = "a" and to = "b"') == (0, 1)
    assert graph.query(hops, params={"n": "a"}).to_rows() == [{"f.name": "b"}, {"f.name": "c"}]
    assert [row["since"] for row in rows_of(graph, "Knows").values() if row["from"] == "a"] == [19_723]


def test_update_of_edges_inserted_by_the_query_is_validated(tmp_path):
    schema = """
    node P { k: String @key }
    edge E: P -> P { no: I32  note: String?  @unique(src, no) }
    """
    graph = new_graph(tmp_path, schema, *(node("P", k=k) for k in "ab"), edge("E", "a", "b", no=1))
    text = 'insert E { from: "a", to: "b", no: 2 } update E set { note: "n" } where from = "a" as $e return { $e.no }'
    done = graph.mutate(f"query q() {{ {text} }}")
    assert (done.affected_nodes, done.affected_edges) == (0, 3)
    assert sorted(row["e.no"] for row in done.rows.to_rows()) == [1, 2]
    with pytest.raises(ConstraintViolation, match=r"@unique violation on E.\(no, src\)"):
        change(graph, "update E set { no: 2 } where no = 1")
    with pytest.raises(InputError, match="null, but I32 is required"):
        change(graph, "update E set { no: $n } where no = 1", {"n": None}, "$n: I32?")
    with pytest.raises(ConstraintViolation, match=r"@unique violation on E.\(no, src\)"):
        change(graph, 'insert E { from: "a", to: "a", no: 2 }')


def test_update_sets_and_compares_null(graph):
    graph.load([*people("a", age=1), *people("b")], mode="append")
    assert change(graph, 'update Person set { age: $n } where name = "a"', {"n": None}, "$n: I32?") == (1, 0)
    assert rows_of(graph, "Person")["a"]["age"] is None
    for op in ("=", "!=", "<", ">="):
        assert change(graph, f'update Person set {{ city: "x" }} where age {op} $n', {"n": None}, "$n: I32?") == (0, 0)
        assert change(graph, f'update Person set {{ city: "x" }} where age {op} 5') == (0, 0)


@pytest.mark.parametrize(
    ("where", "hit"),
    [
        ("age = 2.7", ""),
        ("age < 2.7", "ab"),
        ("age > 2.7", "cd"),
        ("age != 2.7", "abcd"),
        ("age >= 2", "bcd"),
        ("age < 9223372036854775807", "abcd"),
        ('city = "o\'brien"', "a"),
        ('city > "Z"', "abc"),
        ('city <= "日"', "abd"),
        ('name != "a"', "bcde"),
    ],
)
def test_where(graph, where, hit):
    cities = ("o'brien", "zoo", "日本", "A")
    rows = [
        node("Person", name=name, age=age, city=city)
        for name, age, city in zip("abcd", (1, 2, 3, 4), cities, strict=True)
    ]
    graph.load([*rows, *people("e")], mode="append")
    assert change(graph, f"update Person set {{ seen: now() }} where {where}") == (len(hit), 0)
    assert "".join(id_ for id_, row in rows_of(graph, "Person").items() if row["seen"] is not None) == hit


# -- delete ------------------------------------------------------------------------------------------


@pytest.fixture
def web(graph):
    """A complete graph of Knows edges with self loops, and teams at both ends."""
    names = ("a", "b", "c")
    records = [*people(*names), node("Team", id_="t1", label="x"), node("Team", id_="t2", label="y")]
    records += [edge("Knows", src, dst, id_=f"k{src}{dst}") for src in names for dst in names]
    records += [edge("Likes", "a", "b", id_="l1"), edge("In", "a", "t1", id_="i1"), edge("In", "b", "t1", id_="i2")]
    records += [edge("Owns", "t1", "a", id_="o1"), edge("Owns", "t2", "b", id_="o2")]
    graph.load(records, mode="append")
    return graph


def test_delete_removes_all_incident_edges(web):
    # Five Knows edges (the self loop once), and one each of Likes, In and Owns.
    assert change(web, 'delete Person where name = "a"') == (1, 8)
    assert ids_of(web, "Person") == ["b", "c"]
    assert ids_of(web, "Knows") == ["kbb", "kbc", "kcb", "kcc"]
    assert ids_of(web, "Likes") == []
    assert ids_of(web, "In") == ["i2"]
    assert ids_of(web, "Owns") == ["o2"]
    assert web.verify() == []


def test_delete_cascades_from_the_target_type(web):
    assert change(web, 'delete Team where label = "x"') == (1, 3)
    assert ids_of(web, "In") == []
    assert ids_of(web, "Owns") == ["o2"]


def test_delete_of_edges_by_end_and_by_property(web):
    assert change(web, 'delete Knows where from = "a"') == (0, 3)
    assert change(web, 'delete Knows where to = "a"') == (0, 2)
    assert ids_of(web, "Knows") == ["kbb", "kbc", "kcb", "kcc"]
    web.load([edge("In", "c", "t1", id_="i3", role="head")], mode="append")
    assert change(web, 'delete In where role = "head"') == (0, 1)
    assert ids_of(web, "In") == ["i1", "i2"]


def test_node_without_edges_can_be_deleted_and_inserted_again(graph):
    graph.load(people("a"), mode="append")
    assert change(graph, 'delete Person where name = "a"') == (1, 0)
    assert change(graph, 'insert Person { name: "a" }') == (1, 0)
    assert ids_of(graph, "Person") == ["a"]


def test_overlapping_deletes_count_each_row_once(web):
    statements = 'delete Person where name = "a" delete Person where name <= "b" delete Knows where from = "b"'
    # The first delete removes eight edges, the second the remaining edges of b (bb, bc, cb; i2, o2), the last none.
    assert change(web, statements) == (2, 8 + 5)
    assert ids_of(web, "Knows") == ["kcc"]
    assert ids_of(web, "Person") == ["c"]


def test_delete_of_edges_before_their_nodes(web):
    assert change(web, 'delete Knows where from = "a" delete Person where name = "a"') == (1, 3 + 5)


def test_later_delete_sees_rows_the_earlier_predicate_did_not_match(graph):
    graph.load([*people("a", age=5), *people("b"), edge("Knows", "b", "a")], mode="append")
    assert change(graph, 'delete Person where age > 1 delete Person where name != "zz"') == (2, 1)
    assert ids_of(graph, "Person") == []
    assert ids_of(graph, "Knows") == []


def test_delete_of_many_rows(graph):
    names = [f"p{number:04}" for number in range(2_500)]
    graph.load([*people(*names), *(edge("Knows", name, names[0]) for name in names)], mode="append")
    assert change(graph, 'delete Person where name != "p0000"') == (2_499, 2_499)
    assert ends_of(graph, "Knows") == [("p0000", "p0000")]


# -- the whole of it ---------------------------------------------------------------------------------


def test_one_query_is_one_commit(web):
    before = len(web.commits())
    change(web, 'insert Person { name: "z" } insert Team { label: "t" } insert Knows { from: "z", to: "a" }')
    assert len(web.commits()) == before + 1
    assert web.commits()[0].kind == "mutation"
    assert web.commits()[0].changed == ("edge:Knows", "node:Person", "node:Team")


NO_EFFECT = named(
    [
        ("update", 'update Person set { age: 1 } where name = "nobody"'),
        ("delete", 'delete Person where name = "nobody"'),
        ("delete edges", 'delete Knows where from = "nobody"'),
        (
            "several",
            'delete Person where name = "nobody" delete Team where label = "none" delete Knows where to = "nobody"',
        ),
    ]
)


@pytest.mark.parametrize("statements", [statements for (statements,) in NO_EFFECT.values()], ids=NO_EFFECT)
def test_mutation_without_effect_makes_no_commit(web, statements):
    before, files = everything(web), manifest_files(web)
    result = web.mutate(f"query q() {{ {statements} }}")
    assert result == MutationResult(0, 0, None)
    assert everything(web) == before
    assert manifest_files(web) == files


FAILING = named(
    [
        (
            "range",
            'insert Person { name: "z" } insert Person { name: "y", age: 151 }',
            "@range violation on Person.age: 151 is not in 0..150",
        ),
        (
            "range by update",
            'insert Person { name: "z" } update Person set { age: 200 } where name = "z"',
            "@range violation on Person.age",
        ),
        (
            "enum",
            'insert In { from: "c", to: "t1", role: $r }',
            "invalid enum value 'boss' for In.role: allowed are 'head', 'member'",
        ),
        (
            "endpoint",
            'insert Person { name: "z" } insert Knows { from: "z", to: "nobody" }',
            "edge Knows: dst 'nobody' not found in Person",
        ),
        (
            "endpoint of another type",
            'insert Knows { from: "t1", to: "a" }',
            "edge Knows: src 't1' not found in Person",
        ),
        (
            "cardinality",
            'insert In { from: "a", to: "t1" } insert In { from: "a", to: "t2" }',
            "@card violation on edge In: source 'a' has 3 edges (max 2)",
        ),
    ]
)


@pytest.mark.parametrize(("statements", "message"), FAILING.values(), ids=FAILING)
def test_failing_statement_writes_nothing(web, statements, message):
    before, files = everything(web), manifest_files(web)
    with pytest.raises(ConstraintViolation) as caught:
        change(web, statements, {"r": "boss"}, "$r: String")
    assert caught.value.message.startswith(message)
    assert everything(web) == before
    assert manifest_files(web) == files


def test_violation_of_an_update_names_the_first_row(tmp_path):
    schema = """
    node P { k: String @key  v: I32?  c: String?  kind: enum(a, b)?  @range(v, 0..1000)  @check(c, "^x") }
    edge E: P -> P { kind: enum(a, b) }
    """
    graph = new_graph(tmp_path, schema, *(node("P", k=k, v=1) for k in ("p1", "p2")), edge("E", "p1", "p2", kind="a"))
    messages = {
        'update P set { v: 2000 } where k != ""': "@range violation on P.v: 2000 is not in 0..1000 (row 'p1')",
        'update P set { c: "y" } where k = "p2"': "@check violation on P.c: 'y' does not match \"^x\" (row 'p2')",
        'update P set { kind: $d } where k = "p2"': (
            "invalid enum value 'c' for P.kind: allowed are 'a', 'b' (row 'p2')"
        ),
        'insert P { k: "p3", v: 2000 }': "@range violation on P.v: 2000 is not in 0..1000",
    }
    for statement, message in messages.items():
        with pytest.raises(ConstraintViolation) as caught:
            change(graph, statement, {"d": "c"}, "$d: String")
        assert caught.value.message == message
    with pytest.raises(ConstraintViolation, match=r"^invalid enum value 'c' for E.kind: .* \(row '\w{26}'\)$"):
        change(graph, 'update E set { kind: $d } where from = "p1"', {"d": "c"}, "$d: String")


def test_unique_is_enforced(tmp_path):
    graph = new_graph(tmp_path, "node P { k: String @key  mail: String? @unique  a: I32?  b: String?  @unique(a, b) }")
    change(graph, 'insert P { k: "1", mail: "x", a: 1, b: "p|q" } insert P { k: "2", a: 1, b: "p" }')
    with pytest.raises(ConstraintViolation, match=r"^@unique violation on P.mail: value 'x' is held by '1' and '3'$"):
        change(graph, 'insert P { k: "3", mail: "x" }')
    with pytest.raises(
        ConstraintViolation, match=r"^@unique violation on P.\(a, b\): value '\(1, p\)' is held by '2' and '3'$"
    ):
        change(graph, 'insert P { k: "3", a: 1, b: "p" }')
    # A row's own value, a value released in the same query, and an unused value.
    assert change(graph, 'upsert P { k: "1", mail: "x" }') == (1, 0)
    assert change(graph, 'update P set { mail: "y" } where k = "1" insert P { k: "3", mail: "x" }') == (2, 0)
    with pytest.raises(ConstraintViolation, match=r"value 'z' is held by"):
        change(graph, 'update P set { mail: "z" } where k != ""')
    assert change(graph, 'delete P where k = "3"') == (1, 0)
    assert change(graph, 'insert P { k: "4", mail: "x" }') == (1, 0)


def test_delete_keeps_minimum_cardinality(tmp_path):
    graph = new_graph(tmp_path, "node P { k: String @key } edge E: P -> P @card(1..)", *(node("P", k=k) for k in "abc"))
    graph.load(
        [edge("E", "a", "b", id_="1"), edge("E", "b", "c", id_="2"), edge("E", "b", "a", id_="3")], mode="append"
    )
    before = everything(graph)
    with pytest.raises(ConstraintViolation, match=r"^@card violation on edge E: source 'a' has 0 edges \(min 1\)$"):
        change(graph, 'delete E where from = "a"')
    # A cascade must not violate the minimum of another node.
    with pytest.raises(ConstraintViolation, match=r"source 'a' has 0 edges \(min 1\)"):
        change(graph, 'delete P where k = "b"')
    assert everything(graph) == before
    assert change(graph, 'delete E where to = "c"') == (0, 1)
    assert change(graph, 'delete P where k <= "b"') == (2, 2)


# -- values ------------------------------------------------------------------------------------------

ALL = """
node All {
    k: String @key
    i: I32?  l: I64?  u: U32?  w: U64?  f: F32?  d: F64?  ok: Bool?  day: Date?  at: DateTime?  must: I32
    mood: enum(a, b)?  tags: [String]?  nums: [I32]?  days: [Date]?  times: [DateTime]?  vec: Vector(2)?  blob: Blob?
}
"""


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    return new_graph(tmp_path_factory.mktemp("typed"), ALL)


VALUES = named([
    ("I32", "i", "I32?", -5, -5),
    ("I32 from text", "i", "I32?", "-5", -5),
    ("I64 into I32", "i", "I64", 2**31 - 1, 2**31 - 1),
    ("I64 at its end", "l", "I64", -(2**63), -(2**63)),
    ("U32", "u", "U32", 2**32 - 1, 2**32 - 1),
    ("U64 at its end", "w", "U64", 2**64 - 1, 2**64 - 1),
    ("U64 from text", "w", "U64", "18446744073709551615", 2**64 - 1),
    ("F32 rounds", "f", "F32", 0.1, 0.10000000149011612),
    ("F64 into F32", "f", "F64", 0.1, 0.10000000149011612),
    ("I64 into F64", "d", "I64", 2**53, 2.0**53),
    ("F64", "d", "F64", 1e308, 1e308),
    ("Bool", "ok", "Bool", False, False),
    ("Date", "day", "Date", "2024-02-29", 19_782),
    ("Date of a moment", "day", "Date", "2024-02-29T23:30:00-01:00", 19_783),
    ("DateTime", "at", "DateTime", "1969-12-31T23:59:59.999Z", -1),
    ("enum", "mood", "String", "b", "b"),
    ("texts", "tags", "[String]", ["x", ""], ["x", ""]),
    ("no texts", "tags", "[String]?", [], []),
    ("numbers", "nums", "[I64]", [1, "2"], [1, 2]),
    ("dates", "days", "[Date]", ["1970-01-02"], [1]),
    ("times", "times", "[DateTime]", ["1970-01-01T00:00:00.007Z"], [7]),
    ("vector", "vec", "Vector(2)", [1, 0.5], [1.0, 0.5]),
    ("blob", "blob", "Blob", "base64:AAE=", "base64:AAE="),
    ("empty blob", "blob", "Blob", "base64:", "base64:"),
    ("text into a blob", "blob", "String", "base64:AAE=", "base64:AAE="),
    ("null", "i", "I32?", None, None),
    ("null vector", "vec", "Vector(2)?", None, None),
    ("null blob", "blob", "Blob?", None, None),
])  # fmt: skip


@pytest.mark.parametrize(("name", "declared", "given", "stored"), VALUES.values(), ids=VALUES)
def test_values_are_stored_in_their_column_type(typed, name, declared, given, stored):
    for statement in (
        f'upsert All {{ k: "x", must: 1, {name}: $v }}',
        f'update All set {{ {name}: $v }} where k = "x"',
    ):
        assert change(typed, statement, {"v": given}, f"$v: {declared}") == (1, 0)
        found = rows_of(typed, "All")["x"][name]
        assert (type(found), found) == (type(stored), stored)


BAD = named(
    [
        ("I64 beyond I32", "i", "I64", 2**31, InputError, "'All.i': 2147483648 exceeds Int32 range"),
        ("negative for U32", "u", "I64", -1, InputError, "'All.u': -1 exceeds UInt32 range"),
        ("U64 beyond I64", "l", "U64", 2**63, InputError, "'All.l': 9223372036854775808 exceeds Int64 range"),
        ("fraction into I32", "i", "F64", 2.5, InputError, "'All.i': expected I32?, found the number 2.5"),
        ("F64 beyond F32", "f", "F64", 1e39, InputError, "'All.f': 1e+39 exceeds Float32 range"),
        ("no such member", "mood", "String", "c", ConstraintViolation, "invalid enum value 'c' for All.mood"),
        ("null for a required property", "must", "I32?", None, InputError, "'All.must': null, but I32 is required"),
        ("null for the key", "k", "String?", None, InputError, "'All.k': null, but String is required"),
        ("bad base64", "blob", "String", "base64:?", InputError, "'All.blob': invalid base64 data"),
        (
            "a reference",
            "blob",
            "Blob",
            "s3://b/k",
            InputError,
            "'All.blob': 's3://b/k' is an external reference",
        ),
        (
            "list item out of range",
            "nums",
            "[I64]",
            [1, 2**40],
            InputError,
            "'All.nums': 1099511627776 exceeds Int32 range",
        ),
        ("I32 out of range", "i", "I32", 2**31, ParameterError, "parameter 'v' (I32): 2147483648 exceeds Int32 range"),
        (
            "text for a number",
            "i",
            "I32",
            "x",
            ParameterError,
            "parameter 'v' (I32): expected I32, found the string 'x'",
        ),
        ("number for a date", "day", "Date", 5, ParameterError, "parameter 'v' (Date): expected a date string"),
        (
            "short vector",
            "vec",
            "Vector(2)",
            [1],
            ParameterError,
            "parameter 'v' (Vector(2)): expected 2 dimensions, got 1",
        ),
        (
            "null for a required parameter",
            "i",
            "I32",
            None,
            ParameterError,
            "parameter 'v' (I32): null, but I32 is required",
        ),
    ]
)


@pytest.mark.parametrize(("name", "declared", "given", "kind", "message"), BAD.values(), ids=BAD)
def test_mismatching_value_writes_nothing(typed, name, declared, given, kind, message):
    before = everything(typed)
    values = {"k": '"y"', "must": "1"} | {name: "$v"}
    assigned = ", ".join(f"{key}: {value}" for key, value in values.items())
    with pytest.raises(kind) as caught:
        change(typed, f"insert All {{ {assigned} }}", {"v": given}, f"$v: {declared}")
    assert caught.value.message.startswith(message)
    assert everything(typed) == before


def test_update_keeps_every_other_value(tmp_path):
    graph = new_graph(tmp_path, ALL)
    full = {
        "k": "full", "must": 1, "i": -1, "l": -(2**63), "u": 2**32 - 1, "w": 2**64 - 1, "f": 0.5, "d": 0.1, "ok": True,
        "day": -1, "at": 86_400_001, "mood": "a", "tags": ["", "x"], "nums": [], "days": [3], "times": [7],
        "vec": [1.0, 2.0], "blob": "base64:AAE=",
    }  # fmt: skip
    empty = dict.fromkeys(full) | {"k": "empty", "must": 2, "tags": [], "blob": "base64:"}
    graph.load([node("All", **full), node("All", **empty)], mode="append")
    assert change(graph, 'update All set { must: 9 } where k != ""') == (2, 0)
    assert rows_of(graph, "All") == {"full": full | {"must": 9}, "empty": empty | {"must": 9}}


@pytest.mark.parametrize(
    ("type_", "given", "id_"),
    [
        ("String", 'o\'brien "é"', 'o\'brien "é"'),
        ("Bool", True, "true"),
        ("I64", "-9223372036854775808", "-9223372036854775808"),
        ("U64", 2**64 - 1, "18446744073709551615"),
        ("F32", 0.1, "0.1"),
        ("F64", 1e21, "1000000000000000000000"),
        ("F64", -0.0, "0"),
        ("Date", "2024-01-01", "19723"),
        ("DateTime", "2024-01-01T00:00:00.001Z", "1704067200001"),
    ],
)
def test_keys_of_every_type_find_their_row(tmp_path, type_, given, id_):
    """Insert, edge, where and cascade use the id that a load derives."""
    graph = new_graph(tmp_path, f"node P {{ order: {type_} @key  groupBy: I32? }}\nedge E: P -> P\n")
    params, declared = {"v": given, "id": id_}, f"$v: {type_}, $id: String"
    assert change(graph, "insert P { order: $v, groupBy: 1 }", params, declared) == (1, 0)
    with pytest.raises(KeyConflict) as caught:
        change(graph, "insert P { order: $v, groupBy: 2 }", params, declared)
    assert caught.value.row_id == id_
    assert change(graph, "upsert P { order: $v, groupBy: 2 }", params, declared) == (1, 0)
    stored = rows_of(graph, "P")
    assert list(stored) == [id_]
    graph.load([node("P", **stored[id_], id_=id_)], mode="merge")
    assert change(graph, "insert E { from: $id, to: $id }", params, declared) == (0, 1)
    assert change(graph, "update P set { groupBy: 3 } where order = $v", params, declared) == (1, 0)
    assert change(graph, "update P set { groupBy: 4 } where order != $v", params, declared) == (0, 0)
    assert rows_of(graph, "P")[id_]["groupBy"] == 3
    assert change(graph, "delete E where from = $id", params, declared) == (0, 1)
    assert change(graph, "insert E { from: $id, to: $id }", params, declared) == (0, 1)
    assert change(graph, "delete P where order >= $v", params, declared) == (1, 1)


def test_blob_reference_is_rejected_by_property(typed):
    with pytest.raises(InputError, match=r"^'All.blob': 's3://b/k' is an external reference"):
        change(typed, 'insert All { k: "y", must: 1, blob: "s3://b/k" }')


def test_missing_parameter_is_rejected(graph):
    with pytest.raises(ParameterError, match=r"parameter 'n' \(String\) is missing"):
        change(graph, "insert Person { name: $n }", {}, "$n: String")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('query q() { insert Person { age: 1 } }', "T12"),
        ('query q() { insert Person { name: "a", name: "b" } }', "T13"),
        ('query q() { insert Knows { from: "a" } }', "T12"),
        ('query q() { update Knows set { from: "b" } where from = "a" }', "T16"),
        ('query q() { insert Nobody { name: "a" } }', "T10"),
        ('query q() { delete Person where name = "a" insert Person { name: "b" } }', "D2"),
        ('query q() { insert Knows { from: 1, to: "b" } }', "T3"),
    ],
)  # fmt: skip
def test_compile_error_writes_nothing(graph, text, code):
    before = everything(graph)
    with pytest.raises(TypeCheckError) as caught:
        graph.mutate(text)
    assert caught.value.code == code
    assert everything(graph) == before


def test_now_is_one_instant(tmp_path):
    ticks = iter(range(1_700_000_000_000_000, 1_800_000_000_000_000, 1_000_000))
    schema = "node P { k: String @key  at: DateTime?  was: DateTime? }"
    repository = create_graph(tmp_path / "g", schema, sync=False, clock=lambda: next(ticks), environ={})
    context = GraphContext.of(repository, {}, ())
    statements = (
        'insert P { k: "a", at: now(), was: now() } insert P { k: "b", at: now() } '
        "update P set { was: now() } where at = now()"
    )
    result = mutate(context, MutationRequest(QueryText(f"query q() {{ {statements} }}"), WriteOptions()))
    assert (result.affected_nodes, result.affected_edges) == (4, 0)
    rows = repository.snapshot().table("node:P").read()
    moments = {value.value for name in ("at", "was") for value in rows[name]}
    assert len(moments) == 1
    assert moments.pop() % 1000 == 0


def test_retry_keeps_the_value_of_now(tmp_path, monkeypatch):
    """A retried write keeps its instant and sees the commit that was published in between."""
    schema = "node P { k: String @key  n: I32?  at: DateTime? }"
    graph = new_graph(tmp_path, schema, node("P", k="a", n=1))
    other = reopened(graph)
    interfere(monkeypatch, lambda: other.mutate('query q() { update P set { n: 5 } where k = "a" }'))
    change(graph, 'update P set { at: now() } where n = 5 update P set { at: now() } where k = "a"')
    row = rows_of(graph, "P")["a"]
    assert row["n"] == 5
    between = graph.commits()[1]
    assert between.kind == "mutation"
    assert row["at"] <= between.created_us // 1000


# -- conditions --------------------------------------------------------------------------------------


def test_actor_and_message_are_recorded(tmp_path):
    graph = new_graph(tmp_path, SCHEMA, actor="act-ana")
    change(graph, 'insert Person { name: "a" }', message="why not")
    assert (graph.commits()[0].actor, graph.commits()[0].message) == ("act-ana", "why not")
    change(graph, 'insert Person { name: "b" }', actor="act-bob")
    assert graph.commits()[0].actor == "act-bob"


def test_mutation_of_another_branch(graph):
    graph.branch_create("side")
    change(graph, 'insert Person { name: "a" }', branch="side")
    change(graph.on("side"), 'insert Person { name: "b" }')
    assert ids_of(graph, "Person") == []
    assert ids_of(graph, "Person", branch="side") == ["a", "b"]


def test_if_commit(graph):
    head = graph.commits()[0].id
    result = graph.mutate('query q() { insert Person { name: "a" } }', if_commit=head)
    before = everything(graph)
    for statement in ('insert Person { name: "b" }', 'delete Person where name = "nobody"'):
        with pytest.raises(PreconditionFailed) as caught:
            change(graph, statement, if_commit=head)
        assert (caught.value.branch, caught.value.expected, caught.value.actual) == ("main", head, result.commit_id)
    assert everything(graph) == before


def test_if_commit_is_not_retried(graph, monkeypatch):
    other = reopened(graph)
    head = graph.commits()[0].id
    interfere(monkeypatch, lambda: other.mutate('query q() { insert Person { name: "first" } }'))
    with pytest.raises(PreconditionFailed):
        change(graph, 'insert Person { name: "a" }', if_commit=head)
    assert ids_of(graph, "Person") == ["first"]


def test_idempotency_key_returns_the_first_result(graph):
    query = "query q($n: String) { upsert Person { name: $n } insert Knows { from: $n, to: $n } }"
    first = graph.mutate(query, params={"n": "a"}, idempotency_key="k1")
    again = graph.mutate(query, params={"n": "a"}, idempotency_key="k1")
    assert again == first
    assert (again.affected_nodes, again.affected_edges) == (1, 1)
    assert len(ids_of(graph, "Knows")) == 1
    assert graph.mutate(query, params={"n": "a"}, idempotency_key="k2") != first
    assert len(ids_of(graph, "Knows")) == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"params": {"n": "b"}},
        {"source": "query q($n: String) { insert Person { name: $n, age: 1 } }"},
        {"branch": "side"},
    ],
)
def test_idempotency_key_is_bound_to_one_request(graph, changed):
    graph.branch_create("side")
    request = {
        "source": "query q($n: String) { insert Person { name: $n } }",
        "params": {"n": "a"},
        "idempotency_key": "k",
    }
    graph.mutate(**request)
    before = everything(graph)
    with pytest.raises(KeyReused):
        graph.mutate(**{**request, **changed})
    assert everything(graph) == before


# -- sources -----------------------------------------------------------------------------------------


def test_source_is_text_or_file_with_query_name(graph, tmp_path):
    text = 'query one() { insert Person { name: "1" } } query two() { insert Person { name: "2" } }'
    path = tmp_path / "changes.gq"
    path.write_text(text)
    graph.mutate(path, "two")
    graph.mutate(text, "one")
    assert ids_of(graph, "Person") == ["1", "2"]
    with pytest.raises(InputError, match="the source holds several queries: 'one', 'two'"):
        graph.mutate(text)
    with pytest.raises(QueryNotFound, match="the source holds no query 'three'"):
        graph.mutate(text, "three")
    with pytest.raises(InputError, match="query 'r' reads and changes nothing") as caught:
        graph.mutate("query r() { match { $p: Person } return { $p.name } }")
    assert "query" in (caught.value.hint or "")


def test_result_as_json(graph):
    result = graph.mutate('query q() { insert Person { name: "a" } }')
    assert result.to_json() == {"affected_nodes": 1, "affected_edges": 0, "commit_id": result.commit_id}


# -- embeddings --------------------------------------------------------------------------------------

EMBEDDED = 'node P { k: String @key  bio: String?  vec: Vector(2)? @embed("bio")  must: Vector(2)? }'


def run(graph: Graph, statements: str, embedder: Any, declared: str = "", params: dict[str, Any] | None = None) -> Any:
    text = f"query q({declared}) {{ {statements} }}"
    context = replace(graph._context, embedder=embedder)
    return mutate(context, MutationRequest(QueryText(text, params=params), WriteOptions()))


def vectors(graph: Graph) -> dict[str, Any]:
    return {id_: row["vec"] for id_, row in rows_of(graph, "P").items()}


def test_insert_is_embedded_unless_a_vector_is_given(tmp_path):
    graph = new_graph(tmp_path, EMBEDDED)
    fake = FakeEmbedder()
    run(graph, 'insert P { k: "a", bio: "abc" } insert P { k: "b", bio: "abc", vec: [9, 9] } insert P { k: "c" }', fake)
    assert vectors(graph) == {"a": [3, 3], "b": [9, 9], "c": None}
    assert fake.asked == ["abc"]


def test_update_of_the_text_recomputes_the_vector(tmp_path):
    graph = new_graph(tmp_path, EMBEDDED)
    fake = FakeEmbedder()
    run(graph, 'insert P { k: "a", bio: "abc" } insert P { k: "b", bio: "abc" }', fake)
    run(graph, 'update P set { bio: "abcdef" } where k = "a"', fake)
    assert vectors(graph) == {"a": [6, 6], "b": [3, 3]}
    run(graph, 'update P set { bio: "x", vec: [8, 8] } where k = "a"', fake)
    assert vectors(graph)["a"] == [8, 8]
    run(graph, 'update P set { bio: $n } where k = "a"', fake, "$n: String?", {"n": None})
    assert vectors(graph)["a"] is None
    asked = list(fake.asked)
    run(graph, 'update P set { must: [1, 1] } where k = "b"', fake)
    assert vectors(graph)["b"] == [3, 3]
    assert fake.asked == asked


def test_without_provider_the_vector_stays_null(tmp_path):
    graph = new_graph(tmp_path, EMBEDDED)
    run(graph, 'insert P { k: "a", bio: "abc" }', GraphEmbedder({}))
    run(graph, 'insert P { k: "b", bio: "abc" }', FakeEmbedder(Unconfigured()))
    assert vectors(graph) == {"a": None, "b": None}


def test_required_vector_needs_text_and_provider(tmp_path):
    graph = new_graph(tmp_path, 'node P { k: String @key  bio: String?  vec: Vector(2) @embed("bio") }')
    before = everything(graph)
    with pytest.raises(InputError, match=r"'P.vec' must be embedded from 'bio', and no provider is configured"):
        run(graph, 'insert P { k: "a", bio: "abc" }', GraphEmbedder({}))
    with pytest.raises(InputError, match=r"'P.vec' \(Vector\(2\)\) is required and cannot be null"):
        run(graph, 'insert P { k: "a", bio: $n }', FakeEmbedder(), "$n: String?", {"n": None})
    assert everything(graph) == before
    run(graph, 'insert P { k: "a", bio: "abc" }', FakeEmbedder())
    with pytest.raises(InputError, match="is required and cannot be null"):
        run(graph, 'update P set { bio: "  " } where k = "a"', FakeEmbedder())


def test_failing_provider_writes_nothing(tmp_path):
    graph = new_graph(tmp_path, EMBEDDED)
    before, files = everything(graph), manifest_files(graph)
    with pytest.raises(EmbeddingError, match="the provider is down"):
        run(
            graph,
            'insert P { k: "b" } insert P { k: "a", bio: "abc" }',
            FakeEmbedder(EmbeddingError("the provider is down")),
        )
    assert everything(graph) == before
    assert manifest_files(graph) == files


def test_retry_embeds_each_text_once(tmp_path, monkeypatch):
    graph = new_graph(tmp_path, EMBEDDED)
    fake = FakeEmbedder()
    other = reopened(graph)
    interfere(monkeypatch, lambda: other.mutate('query q() { insert P { k: "z" } }'))
    run(graph, 'insert P { k: "a", bio: "abc" }', fake)
    assert ids_of(graph, "P") == ["a", "z"]
    assert fake.asked == ["abc"]
