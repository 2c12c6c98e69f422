"""`unify`: values by rules, edges, aliases in lookups, writes and loads, revert, diff and errors."""

from __future__ import annotations

import json

import numpy as np
import pytest

import omnigraph as og
from omnigraph.errors import CompileError, ConstraintViolation, InputError, KeyConflict, NotFound, ParameterError
from omnigraph.operations.load.load_request import LoadRequest
from omnigraph.pipeline.load import load_source
from omnigraph.pipeline.runner import InlineRunner
from omnigraph.pipeline.splits import plan_input
from omnigraph.pipeline.staged_input import FileSource
from omnigraph.versioning.write.transaction import WriteOptions

SCHEMA = """
node Person {
    name: String @key
    email: String?
    age: I64?
    tags: [String]?
    code: String? @unique
}
node City { name: String @key }
edge Knows: Person -> Person { since: I64? }
edge Likes: Person -> Person { weight: I64?
    @unique(src, dst) }
edge LivesIn: Person -> City @card(0..1)
"""


def person(name, **values):
    return {"type": "Person", "data": {"name": name, **values}}


def edge(kind, source, target, **values):
    return {"edge": kind, "from": source, "to": target, "data": values}


ROWS = [
    person("b", age=3, tags=["x"]),
    person("a", email="a@x", age=30, tags=["y", "x"]),
    person("c"),
    person("d"),
    {"type": "City", "data": {"name": "oslo"}},
    {"type": "City", "data": {"name": "rome"}},
    edge("Knows", "a", "c", id="k1", since=1),
    edge("Knows", "c", "a", id="k2", since=2),
    edge("Knows", "b", "c", id="k3", since=1),
    edge("Knows", "a", "b", id="k4"),
    edge("Likes", "d", "a", id="l1", weight=1),
    edge("Likes", "d", "b", id="l2", weight=2),
]


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, sync=False)
    graph.load(ROWS, mode="merge")
    return graph


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory):
    """A graph of which every change is refused."""
    graph = og.init(tmp_path_factory.mktemp("unify") / "g", SCHEMA, sync=False)
    graph.load(ROWS, mode="merge")
    return graph


def rows(graph, type_name):
    return sorted(graph.to_arrow(type_name).to_pylist(), key=lambda row: row["id"])


def state(graph):
    tables = {name: rows(graph, name) for name in ("Person", "Knows", "Likes", "LivesIn")}
    return {**tables, "aliases": graph.snapshot().aliases_hash}


def aliases(graph):
    known = graph.snapshot().aliases
    return {old: kept for table in known.tables() for old, kept in known.entries(table).items()}


def test_values_edges_and_report(graph):
    result = graph.unify("Person", keep="b", drop="a", rules={"email": "theirs", "tags": "union", "age": "ours"})
    assert rows(graph, "Person")[0] == {
        "id": "b", "name": "b", "email": "a@x", "age": 3, "tags": ["x", "y"], "code": None
    }  # fmt: skip
    assert [(row["id"], row["src"], row["dst"]) for row in rows(graph, "Knows")] == [
        ("k2", "c", "b"), ("k3", "b", "c"), ("k4", "b", "b"),
    ]  # fmt: skip
    assert rows(graph, "Likes") == [{"id": "l2", "src": "d", "dst": "b", "weight": 2}]
    assert result.unified is not None
    assert result.unified.to_json() == {
        "nodes": 1, "repointed": 2, "folded": 2, "self_loops": 1, "loops": [{"type": "Knows", "id": "k4", "node": "b"}]
    }  # fmt: skip
    assert aliases(graph) == {"a": "b"}


@pytest.mark.parametrize(
    ("rule", "age"), [("ours", 3), ("theirs", 30), ("newest", 31), ({"value": 7}, 7), ({"value": None}, None)]
)
def test_rules(graph, rule, age):
    graph.mutate("update Person set { age: 31 } where name = 'a'".replace("'", '"'))
    wanted = 31 if rule == "theirs" else age
    graph.unify("Person", keep="b", drop="a", rules={"age": rule})
    assert graph.get("Person", "b")["age"] == wanted


def test_longest_and_nulls(graph):
    graph.mutate('update Person set { email: "a long address" } where name = "b"')
    graph.unify("Person", keep="a", drop="b", rules={"email": "longest", "tags": "longest"})
    assert graph.get("Person", "a")["email"] == "a long address"
    assert graph.get("Person", "a")["tags"] == ["y", "x"]
    graph.unify("Person", keep="c", drop="a")
    assert graph.get("Person", "c")["age"] == 30, "a null loses against a value"


@pytest.mark.parametrize(("rule", "left"), [("keep", ["l1", "l2"]), ("ours", ["l2"]), ("theirs", ["l1"])])
def test_rules_of_edges(graph, rule, left):
    if rule == "keep":
        with pytest.raises(ConstraintViolation, match="@unique"):
            graph.unify("Person", keep="b", drop="a", edges={"Likes": rule})
        return
    graph.unify("Person", keep="b", drop="a", edges={"Likes": rule, "Knows": "newest"})
    assert [row["id"] for row in rows(graph, "Likes")] == left


def test_newest_edge(graph):
    graph.mutate('update Likes set { weight: 9 } where to = "a"')
    graph.unify("Person", keep="b", drop="a", edges={"Likes": "newest"})
    assert [row["weight"] for row in rows(graph, "Likes")] == [9]


@pytest.mark.parametrize("column", ["$p.name", "id($p)"])
def test_aliases_in_lists_denote_the_nodes_of_a_read(graph, column):
    graph.unify("Person", keep="b", drop="a")
    read = f"match {{ $p: Person  {column} in $names }} return {{ $p.name }} order {{ $p.name }}"
    for names, found in ((["a"], ["b"]), (["a", "b", "c"], ["b", "c"]), (["zz", "a"], ["b"]), ([], [])):
        assert [row["p.name"] for row in graph.query(read, {"names": names})] == found
    assert [row["p.name"] for row in graph.query(read.replace("$names", '["a", "c"]'))] == ["b", "c"]


def test_aliases_in_lists_denote_the_nodes_of_a_statement(graph):
    graph.unify("Person", keep="b", drop="a")
    change = "query q($names: [String]) { update Person set { age: 77 } where name in $names }"
    assert graph.mutate(change, {"names": ["a", "b", "d"]}).affected_nodes == 2
    assert [graph.get("Person", name)["age"] for name in ("b", "c", "d")] == [77, None, 77]
    ends = [(row["src"], row["dst"]) for row in rows(graph, "Knows")]
    gone = [pair for pair in ends if pair[0] == "b" and pair[1] in ("b", "c")]
    assert gone
    done = graph.mutate('delete Knows where from in ["a"] and to in ["a", "c"]')
    assert done.affected_edges == len(gone)
    assert sorted((row["src"], row["dst"]) for row in rows(graph, "Knows")) == sorted(
        pair for pair in ends if pair not in gone
    )
    assert graph.mutate('delete Person where name in ["a"]').affected_nodes == 1
    assert graph.get("Person", "b") is None


def test_aliases_in_alternatives_denote_the_nodes(graph):
    """A list with a parameter in it is an alternative of equalities."""
    graph.unify("Person", keep="b", drop="a")
    read = "match { $p: Person  $p.name in [$one, $other] } return { $p.name } order { $p.name }"
    assert [row["p.name"] for row in graph.query(read, {"one": "d", "other": "a"})] == ["b", "d"]
    read = 'match { $p: Person  ($p.age < 0 or $p.name = "a") } return { $p.name }'
    assert [row["p.name"] for row in graph.query(read)] == ["b"]
    change = 'query q($x: String) { update Person set { age: 5 } where name in ["c", $x] and name != "d" }'
    assert graph.mutate(change, {"x": "a"}).affected_nodes == 2
    assert [graph.get("Person", name)["age"] for name in ("b", "c", "d")] == [5, 5, None]


@pytest.mark.parametrize("several", ["Named", "A|B"])
def test_aliases_denote_nodes_of_several_types(tmp_path, several):
    """`x` is an alias in one type and a node of another; `y` is a node of both."""
    schema = "interface Named { name: String @key }\nnode A implements Named { name: String @key }\n"
    schema += "node B implements Named { name: String @key }\nedge ToA: B -> A\nedge ToB: B -> B"
    graph = og.init(tmp_path / "g", schema, sync=False)
    nodes = [("A", "x"), ("A", "y"), ("B", "x"), ("B", "y")]
    records = [{"type": type_, "data": {"name": name}} for type_, name in nodes]
    edges = [{"edge": f"To{type_}", "from": "x", "to": name} for type_, name in nodes]
    graph.load([*records, *edges], mode="append")
    graph.unify("A", keep="y", drop="x")
    expected = [("A", "y"), ("B", "x")]
    for condition in ('$p.name = "x"', 'id($p) = "x"', '$p.name in ["x"]', '($p.name = "x" or $p.name = "-")'):
        for match in (f"$p: {several} {condition}", f'$b: B {{ name: "x" }} $b toA|toB $p $p: {several} {condition}'):
            read = f"match {{ {match} }} return distinct {{ type($p) as t, $p.name as name }} order {{ t }}"
            assert [(row["t"], row["name"]) for row in graph.query(read)] == expected, read
    match = f'$p: {several} $p.name in ["x", "y"]'
    both = f"match {{ {match} }} return {{ type($p) as t, $p.name as name }} order {{ t, name }}"
    assert [(row["t"], row["name"]) for row in graph.query(both)] == [("A", "y"), ("B", "x"), ("B", "y")]


@pytest.mark.parametrize("value", [5, "a", [1], [None], float("nan"), {"a": 1}, np.array(5)])
def test_wrong_lists_are_refused_in_a_graph_with_aliases(graph, value):
    graph.unify("Person", keep="b", drop="a")
    read = "query q($names: [String]) { match { $p: Person  $p.name in $names } return { $p.name } }"
    change = "query q($names: [String]) { delete Person where name in $names }"
    for run, text in ((graph.query, read), (graph.mutate, change)):
        with pytest.raises(ParameterError, match="names"):
            run(text, {"names": value})


def test_aliases_in_every_form_of_a_parameter(tmp_path):
    graph = og.init(tmp_path / "g", "node N { number: I64 @key }\nnode T { name: String @key }", sync=False)
    graph.load([{"type": "N", "data": {"number": number}} for number in range(5)], mode="append")
    graph.load([{"type": "T", "data": {"name": name}} for name in "abc"], mode="append")
    graph.unify("N", keep="2", drop="1")
    graph.unify("T", keep="b", drop="a")
    read = "query q($k: [I64]) { match { $n: N  $n.number in $k } return { $n.number as k } order { k } }"
    for value in ([1, 3], (1, 3), ["1", "3"], np.array([1, 3]), [np.int64(1), 3]):
        assert [row["k"] for row in graph.query(read, {"k": value})] == [2, 3]
    read = "query q($k: I64) { match { $n: N  $n.number = $k } return { $n.number as k } }"
    for value in (1, "1", np.int64(1)):
        assert [row["k"] for row in graph.query(read, {"k": value})] == [2]
    read = "query q($k: [String]) { match { $t: T  $t.name in $k } return { $t.name as k } order { k } }"
    for names, found in ((np.array(["a", "c"]), ["b", "c"]), (np.array([], str), [])):
        assert [row["k"] for row in graph.query(read, {"k": names})] == found


def test_an_alias_denotes_the_node(graph):
    graph.unify("Person", keep="b", drop="a")
    read = "match { $p: Person { name: $n } } return { $p.name }"
    assert graph.query(read, {"n": "a"}).to_rows() == [{"p.name": "b"}]
    assert graph.query('match { $p: Person $p knows $q $q.name = "a" } return { $p.name }').to_rows() == [
        {"p.name": "c"}, {"p.name": "b"},
    ]  # fmt: skip
    absent = 'match { $p: Person not { $p knows $q $q.name = "a" } } return { $p.name } order { $p.name }'
    assert [row["p.name"] for row in graph.query(absent).to_rows()] == ["d"]
    assert graph.get("Person", "a")["id"] == "b"
    assert graph.neighbors("Person", "a").total == graph.neighbors("Person", "b").total > 0
    graph.mutate('update Person set { age: 99 } where name = "a"')
    graph.mutate('insert Knows { from: "d", to: "a", since: 5 }')
    graph.mutate('upsert Person { name: "a", email: "new" }')
    assert (graph.get("Person", "b")["age"], graph.get("Person", "b")["email"]) == (99, "new")
    assert ("d", "b") in {(row["src"], row["dst"]) for row in rows(graph, "Knows")}
    assert graph.mutate('delete Knows where to = "a" and since = 5').affected_edges == 1
    with pytest.raises(KeyConflict, match="'a' is an alias of Person 'b'"):
        graph.mutate('insert Person { name: "a" }')


def load_as_a_job(graph, file):
    request = LoadRequest("merge", WriteOptions())
    source = FileSource(plan_input([str(file)], {}, 1, split_bytes=60))
    load_source(graph._repository, InlineRunner(), source, request)


@pytest.mark.parametrize("load", [lambda graph, file: graph.load(file, mode="merge"), load_as_a_job])
def test_loads(graph, load, tmp_path):
    graph.unify("Person", keep="b", drop="a")
    file = tmp_path / "more.jsonl"
    more = [person("a", age=44), edge("Knows", "a", "d", since=7), edge("Likes", "d", "a", weight=8)]
    file.write_text("\n".join(map(json.dumps, more)))
    load(graph, file)
    assert graph.get("Person", "b") == {**graph.get("Person", "b"), "name": "b", "age": 44}
    assert {"src": "b", "dst": "d", "since": 7}.items() <= rows(graph, "Knows")[0].items()
    assert rows(graph, "Likes") == [{"id": "l2", "src": "d", "dst": "b", "weight": 8}]
    with pytest.raises(KeyConflict):
        graph.load([person("a", age=1)], mode="append")
    graph.load([row for row in ROWS if row.get("type") == "Person"], mode="overwrite")
    assert aliases(graph) == {}


def test_chains_and_deletes(graph):
    graph.unify("Person", keep="b", drop="a")
    graph.unify("Person", keep="c", drop="a")
    assert aliases(graph) == {"a": "c", "b": "c"}
    assert graph.unify("Person", keep="c", drop="a").commit_id is None, "they are one node already"
    graph.mutate('delete Person where name = "b"')
    assert aliases(graph) == {}
    assert graph.mutate('insert Person { name: "a" }').affected_nodes == 1


def test_pairs_are_one_commit(graph):
    before = len(graph.commits())
    result = graph.unify("Person", pairs=[("b", "a"), ("c", "b"), ("c", "d")])
    assert len(graph.commits()) == before + 1
    assert result.unified.nodes == 3
    assert aliases(graph) == {"a": "c", "b": "c", "d": "c"}
    assert [row["id"] for row in rows(graph, "Person")] == ["c"]


def test_revert_is_the_inverse(graph):
    before = state(graph)
    done = graph.unify("Person", keep="b", drop="a", rules={"tags": "union"}, message="one")
    after = state(graph)
    undone = graph.revert(done.commit_id)
    assert state(graph) == before
    graph.revert(undone.commit_id)
    assert state(graph) == after
    assert [one.commit.message for one in graph.history("Person", "a") if one.op == "delete"][-1] == "one"


def test_diff_blame_and_time_travel(graph):
    before = graph.snapshot().commit_id
    done = graph.unify("Person", keep="b", drop="a", rules={"email": "theirs"})
    found = graph.diff(before, "main", types=["Person"])
    assert found.aliases == ("Person 'a' is an alias of 'b'",)
    assert [(change.op, change.id) for change in found] == [("delete", "a"), ("update", "b")]
    assert graph.diff("main", before).aliases == ("Person 'a' is no longer an alias of 'b'",)
    blame = {one.property: one.commit.id for one in graph.blame("Person", "b")}
    assert (blame["email"], blame["age"]) == (done.commit_id, before)
    assert graph.get("Person", "a", at=before)["id"] == "a"
    assert graph.get("Person", "a")["id"] == "b"


def test_integrity_rules_apply(graph):
    graph.mutate('insert LivesIn { from: "a", to: "oslo" }')
    graph.mutate('insert LivesIn { from: "b", to: "rome" }')
    before = state(graph)
    with pytest.raises(ConstraintViolation, match="LivesIn"):
        graph.unify("Person", keep="b", drop="a")
    graph.mutate('update Person set { code: "7" } where name = "c"')
    with pytest.raises(ConstraintViolation, match="code"):
        graph.unify("Person", keep="d", drop="a", rules={"code": {"value": "7"}})
    assert state(graph)["Knows"] == before["Knows"]


def test_a_dry_run_writes_nothing(graph):
    before = state(graph)
    result = graph.unify("Person", keep="b", drop="a", dry_run=True)
    assert result.tables["node:Person"] == {"insert": 0, "update": 1, "delete": 1}
    assert state(graph) == before


def test_a_repeated_request(graph):
    first, again = (graph.unify("Person", keep="b", drop="a", idempotency_key="k") for _ in range(2))
    assert again.to_json() == first.to_json()


@pytest.mark.parametrize(
    ("pairs", "error", "text"),
    [
        ([("b", "b")], InputError, "itself"),
        ([("b", "a"), ("a", "b")], InputError, "lead back"),
        ([("b", "a"), ("c", "a")], InputError, "dropped twice"),
        ([("b", "nobody")], NotFound, "'nobody' does not exist"),
        ([("b",)], InputError, "a pair is"),
    ],
)
def test_wrong_pairs(unchanged, pairs, error, text):
    with pytest.raises(error, match=text):
        unchanged.unify("Person", pairs=pairs)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('unify Knows "a" into "b"', "T50"),
        ('unify Person "a" into "b" { name: ours }', "T50"),
        ('unify Person "a" into "b" { age: longest }', "T50"),
        ('unify Person "a" into "b" { age: union }', "T50"),
        ('unify Person "a" into "b" { age: lastest }', "T50"),
        ('unify Person "a" into "b" { size: ours }', "T11"),
        ('unify Person "a" into "b" { age: "old" }', "T3"),
        ('unify Person "a" into "b" { age: ours age: theirs }', "T13"),
        ('unify Person ["a"] into "b"', "T50"),
        ('unify Person "a" into "b" edges { Visits: ours }', "T50"),
        ('unify Person "a" into "b" edges { Knows: union }', "T50"),
    ],
)
def test_statements_that_do_not_fit(unchanged, text, found):
    with pytest.raises(CompileError) as caught:
        unchanged.mutate(text)
    assert caught.value.diagnostics[0].code == found


@pytest.mark.parametrize(
    "arguments",
    [
        {"keep": "b"},
        {"keep": "b", "drop": "a", "pairs": []},
        {"keep": "b", "drop": "a", "rules": {"age": "latest"}},
        {"keep": "b", "drop": "a", "rules": {"age } }": "ours"}},
        {"keep": "b", "drop": "a", "rules": {"age": {"text": 1}}},
        {"keep": True, "drop": "a"},
    ],
)
def test_wrong_arguments(unchanged, arguments):
    with pytest.raises(InputError):
        unchanged.unify("Person", **arguments)


def test_statements_of_one_mutation(graph):
    text = """atomic {
        unify Person "a" into "b"
        insert Knows { from: "a", to: "d", since: 8 }
    } """
    graph.mutate(text)
    assert {"src": "b", "since": 8}.items() <= rows(graph, "Knows")[0].items()
    named = 'unify Person "c" into "b" as $p return { $p.name, $p.age }'
    assert graph.mutate(named).rows.to_rows() == [{"p.name": "b", "p.age": 3}]


def test_branches_and_storage_format(graph, tmp_path):
    assert graph.snapshot().format < 1006
    graph.branch_create("old")
    graph.unify("Person", keep="b", drop="a")
    assert graph.snapshot().format == 1006
    assert graph.on("old").get("Person", "a")["id"] == "a"
    graph.tag_create("now")
    graph.branch_create("new", at="now")
    assert og.open(tmp_path / "g").on("new").get("Person", "a")["id"] == "b"
    graph.on("new").mutate('insert Knows { from: "c", to: "d" }')
    assert graph.on("new").get("Person", "a")["id"] == "b"
