"""A handle that sees a part of a graph: what it reads, and what it refuses."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from omnigraph.engine.exec import context
from omnigraph.errors import (
    CompileError,
    Denied,
    InputError,
    NotFound,
    OmniGraphError,
    PageCursorRejected,
    QueryNotFound,
    TypeNotFound,
)
from omnigraph.graph import Graph
from omnigraph.graph_open import init
from omnigraph.operations import export
from omnigraph.operations.create import read_catalog
from omnigraph.query.plan import ir
from omnigraph.query.visibility import ROW, Visibility
from omnigraph.schema.check import compile_schema
from omnigraph.types import PropertyType

SCHEMA = """
node Note {
  name: String @key
  tenant: String
  text: String? @index
  pay: I64?
  vec: Vector(2)?
}
node Sealed {
  name: String @key
}
edge Cites: Note -> Note {
  weight: I64?
}
edge Holds: Sealed -> Note {
}
"""
CANARY = "zebraword"
CANARY_NUMBER = 918273645


def equals(name: str, value: Any, type_: PropertyType = ir.STRING) -> ir.Condition:
    return ir.Compare("=", ir.Prop(ROW, name, type_), ir.Const(value, type_))


ACME = Visibility(
    {"node:Note": equals("tenant", "acme"), "node:Sealed": None},
    {("node:Note", "pay"): equals("name", "a"), ("edge:Cites", "weight"): None},
)
OTHER = Visibility({"node:Note": equals("tenant", "other")})


def note(name: str, tenant: str, text: str, pay: int) -> dict[str, Any]:
    data = {"name": name, "tenant": tenant, "text": text, "pay": pay, "vec": [1.0, float(len(name))]}
    return {"type": "Note", "data": data}


@pytest.fixture
def graph(tmp_path):
    graph = init(tmp_path / "graph", SCHEMA, sync=False, environ={})
    graph.load(
        [
            note("a", "acme", "red apple", 10),
            note("b", "acme", "green apple", CANARY_NUMBER),
            note("c", "acme", "blue", CANARY_NUMBER),
            note("x", "other", f"{CANARY} apple", CANARY_NUMBER),
            {"type": "Sealed", "data": {"name": CANARY}},
            *({"edge": "Cites", "from": a, "to": b, "data": {"weight": CANARY_NUMBER}} for a, b in ("ab", "bx", "xc")),
            {"edge": "Holds", "from": CANARY, "to": "a"},
        ],
        mode="merge",
    )
    return graph


def seen(graph: Graph, visibility: Visibility = ACME) -> Graph:
    return Graph(graph._context.with_visibility(visibility))


def rows(graph: Graph, text: str, **params: Any) -> list[dict[str, Any]]:
    return graph.query(text, params=params or None).to_pylist()


QUERIES = [
    "match { $n: Note } return { $n.name as name, $n.text as text, $n.pay as pay } order { $n.name }",
    'match { $n: Note { name: "x" } } return { $n.text as text }',
    'match { $n: Note { name: "b" } } return { $n.text as text, $n.pay as pay }',
    'match { $n: Note { name: "b" } $n cites $m } return { $m.name as name }',
    "match { $n: Note $n cites $m } return { $n.name as n, $m.name as m }",
    "match { $n: Note $n cites{1,4} $m } return { $n.name as n, $m.name as m }",
    "match { $n: Note not { $n cites $m } } return { $n.name as name } order { $n.name }",
    "match { $n: Note } return { count($n) as n, sum($n.pay) as pay }",
    'match { $n: Note search($n.text, "apple") } return { $n.name as name } order { bm25($n.text, "apple") } limit 5',
    f'match {{ $n: Note fuzzy($n.text, "{CANARY[:-1]}x", 2) }} return {{ $n.name as name }}',
    "match { $n: Note } return { $n.name as name, why() } order { nearest($n.vec, $v) } limit 9",
    "match { $n: Note } return { $n } order { $n.name }",
]
"""Reads that all rows would answer differently."""


@pytest.mark.parametrize("text", QUERIES)
def test_no_hidden_value_is_in_an_answer(graph, text):
    params = {"v": [1.0, 1.0]} if "$v" in text else None
    for handle in (seen(graph), seen(graph)):
        answers = [str(handle.query(text, params).to_pylist()), str(handle.explain(text, params))]
        answers.append(str(handle.profile(text, params)))
        for found in answers:
            assert CANARY not in found
            assert str(CANARY_NUMBER) not in found


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda g: g.query("match { $x: Zebra } return { $x }"), "no node type is declared or visible"),
        (lambda g: g.mutate("delete Zebra where id = 1"), "no type is declared or visible"),
        (lambda g: g.load({"Zebra": [{"name": "z"}]}, mode="merge"), "no type is declared or visible"),
        (lambda g: g.load([{"type": "Zebra", "data": {}}], mode="merge"), "no node type is declared or visible"),
    ],
)
def test_hints_do_not_list_types_if_all_are_hidden(graph, call, hint):
    with pytest.raises(OmniGraphError) as caught:
        call(seen(graph, Visibility({"node:Note": None, "node:Sealed": None})))
    assert f"{caught.value}\n{caught.value.hint}".endswith(hint) or caught.value.diagnostics[0].hint == hint


def test_rows_and_values_of_the_projected_copy(graph):
    handle = seen(graph)
    assert rows(handle, QUERIES[0]) == [
        {"name": "a", "text": "red apple", "pay": 10},
        {"name": "b", "text": "green apple", "pay": None},
        {"name": "c", "text": "blue", "pay": None},
    ]
    assert rows(handle, QUERIES[1]) == []
    assert rows(handle, QUERIES[2]) == [{"text": "green apple", "pay": None}]
    assert rows(handle, QUERIES[3]) == []
    assert rows(handle, QUERIES[4]) == rows(handle, QUERIES[5]) == [{"n": "a", "m": "b"}]
    assert rows(handle, QUERIES[6]) == [{"name": "b"}, {"name": "c"}]
    assert rows(handle, QUERIES[7]) == [{"n": 3, "pay": 10}]
    assert [row["name"] for row in rows(handle, QUERIES[8])] == ["a", "b"]
    assert rows(handle, QUERIES[9]) == []
    assert len(rows(graph, QUERIES[0])) == 4
    assert len(rows(graph, QUERIES[9])) == 1


def test_two_visibilities_share_nothing(graph):
    text = "match { $n: Note } return { $n.name as name } order { $n.name }"
    for _ in range(3):
        assert [row["name"] for row in rows(seen(graph), text)] == ["a", "b", "c"]
        assert [row["name"] for row in rows(seen(graph, OTHER), text)] == ["x"]
        assert [row["name"] for row in rows(graph, text)] == ["a", "b", "c", "x"]


def test_many_visibilities_stay_within_the_cache(tmp_path):
    graph = init(tmp_path / "graph", "node Note { number: I64 @key }", sync=False, environ={})
    graph.load([{"type": "Note", "data": {"number": number}} for number in range(3_000)], mode="append")
    cache = graph._context.cache
    cache.bytes_max = 200_000
    number = PropertyType("I64")
    for last in range(400):
        below = ir.Compare("<", ir.Prop(ROW, "number", number), ir.Const(last, number))
        found = rows(seen(graph, Visibility({"node:Note": below})), "match { $n: Note } return { count($n) as n }")
        assert found == [{"n": last}]
        assert cache.bytes <= cache.bytes_max
    (opened,) = cache.snapshots.values()
    assert len(opened.views) <= context._VIEWS_MAX


def test_rows_move_in_and_out_of_sight(graph):
    text = "match { $n: Note } return { $n.name as name } order { $n.name }"
    handle = seen(graph)
    assert [row["name"] for row in rows(handle, text)] == ["a", "b", "c"]
    graph.mutate('update Note set { tenant: "acme" } where name = "x"')
    graph.mutate('update Note set { tenant: "other" } where name = "a"')
    graph.load([note("d", "acme", "new", 1), note("y", "other", "new", 1)], mode="merge")
    assert [row["name"] for row in rows(handle, text)] == ["b", "c", "d", "x"]
    assert rows(handle, 'match { $n: Note { name: "x" } $n cites $m } return { $m.name as name }') == [{"name": "c"}]


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("match { $s: Sealed } return { $s.name }", "Sealed"),
        ("match { $s: Note $x holds $s } return { $s.name }", "holds"),
        ("match { $n: Note $n $e:cites $m } return { $e.weight }", "weight"),
    ],
)
def test_hidden_names_do_not_exist(graph, text, unknown):
    graph.query(text)
    with pytest.raises(CompileError) as hidden:
        seen(graph).query(text)
    with pytest.raises(CompileError) as absent:
        seen(graph).query(text.replace(unknown, "Qwertyuiop" if unknown[0].isupper() else "qwertyuiop"))
    assert hidden.value.code == absent.value.code
    assert unknown not in seen(graph).catalog().nodes
    assert "Holds" not in seen(graph).catalog().edges


def test_stored_rows_are_those_that_are_visible(graph):
    handle = seen(graph)
    assert handle.get("Note", "x") is None
    assert handle.get("Note", "b")["pay"] is None
    assert handle.get("Note", "a")["pay"] == 10
    records = list(handle.export())
    assert CANARY not in str(records)
    assert str(CANARY_NUMBER) not in str(records)
    assert [record["data"]["name"] for record in records if "type" in record] == ["a", "b", "c"]
    assert [(record["from"], record["to"]) for record in records if "edge" in record] == [("a", "b")]
    assert sorted(handle.to_arrow("Note")["name"].to_pylist()) == ["a", "b", "c"]
    assert handle.to_arrow("Cites").column_names == ["id", "src", "dst"]
    with pytest.raises(TypeNotFound) as error:
        handle.to_arrow("Seale")
    assert "Sealed" not in str(error.value)
    with pytest.raises(InputError):
        handle.to_arrow("Cites", columns=["weight"])


def test_export_of_many_rows_is_in_the_order_of_ids(graph, monkeypatch, tmp_path):
    monkeypatch.setattr(export, "_ROWS_MIN", 1)
    monkeypatch.setattr(export, "_ROWS_MAX", 1)
    handle = seen(graph)
    assert [record["data"]["id"] for record in handle.export(types=["Note"])] == ["a", "b", "c"]
    assert handle.export(tmp_path / "out.jsonl") == 4
    assert CANARY not in (tmp_path / "out.jsonl").read_text()


def test_blob_of_a_hidden_row_or_property(tmp_path):
    graph = init(tmp_path / "graph", "node File { name: String @key  data: Blob? }", sync=False, environ={})
    graph.load([{"type": "File", "data": {"name": name, "data": "base64:aGk="}} for name in "abc"], mode="merge")
    one = Visibility({"node:File": ir.Compare("!=", ir.Prop(ROW, "name", ir.STRING), ir.Const("a", ir.STRING))})
    with pytest.raises(NotFound) as hidden:
        seen(graph, one).blob("File", "a", "data")
    assert hidden.value.code == "entity_not_found"
    assert seen(graph, one).blob("File", "b", "data").read() == b"hi"
    masked = Visibility({}, {("node:File", "data"): equals("name", "b")})
    with pytest.raises(NotFound) as null:
        seen(graph, masked).blob("File", "c", "data")
    assert null.value.code == "null_blob"
    assert seen(graph, masked).blob("File", "b", "data").read() == b"hi"
    assert [record["data"]["data"] for record in seen(graph, masked).export()] == [None, "base64:aGk=", None]


def test_page_cursor_is_bound_to_the_visibility(graph):
    text = "match { $n: Note } return { $n.name as name } order { $n.name }"
    first = seen(graph).query(text, page=1)
    assert first.next is not None
    assert [row["name"] for row in seen(graph).query(text, page=1, after=first.next).to_pylist()] == ["b"]
    for other in (seen(graph, OTHER), graph):
        with pytest.raises(PageCursorRejected):
            other.query(text, page=1, after=first.next)


def test_plans_show_no_figures_of_hidden_rows(graph):
    text = "match { $n: Note $n cites $m } return { $n.name, $m.name }"
    assert "rows" not in str(seen(graph).explain(text))
    assert "expected" not in str(seen(graph).profile(text))
    assert not re.search(r"\d\.\d", str(seen(graph).profile(text))), "times are whole milliseconds"


APPLIES = {
    "query", "pages", "explain", "profile", "lint", "catalog", "on", "with_access", "with_metadata",
    "get", "entity_at", "blob", "to_arrow", "to_batches", "to_networkx", "to_rustworkx", "to_sparse", "to_spark",
    "to_pyg", "export", "mutate", "unify", "resolve", "sql",
    "duckdb",
    "load", "ingest", "merge", "revert", "embed", "queries", "validate_queries", "store_query", "delete_query",
    "invoke",
    "search", "show", "neighbors", "degrees", "complete", "hover", "diff_summary", "diff_graph", "branch_status",
    "projection",
    "propose", "proposals", "proposal", "proposal_events",
    "snapshot", "schema", "commit", "commits", "head", "branches", "tags",
    "branch_create", "branch_update", "branch_delete", "tag_create", "tag_delete",
    "merge_preview", "revert_preview", "analyze", "export_diff",
    "diff", "commit_changes", "changes", "changes_baseline", "history", "blame",
}  # fmt: skip
"""Methods that apply the visibility, or return a handle that does."""
FREE = {"uri", "branch", "actor", "newest_version"}
"""Attributes that hold no rows."""
MAINTAINS = {"optimize", "ensure_indices", "cleanup", "recover", "verify"}
MAINTAINS |= {"purge", "purge_allow", "purge_preview", "purge_redact", "purge_resume", "purge_verify", "purges"}
"""Methods that treat the whole graph and need the action `maintain` or `purge`."""


def test_all_other_methods_refuse(graph):
    handle = seen(graph)
    names = {name for name, _ in inspect.getmembers(Graph) if not name.startswith("_")}
    for name in sorted(names - APPLIES - FREE - MAINTAINS):
        with pytest.raises(Denied, match="rules"):
            _call(handle, name)
    with pytest.raises(Denied, match="rules"):
        handle.analyze("degrees", engine="spark", spark=object())
    with pytest.raises(Denied, match="a resolution on Spark applies no rules"):
        handle.resolve("Note", ["name"], engine="spark")


def test_stored_queries_show_visible_rows(graph):
    text = "query notes() { match { $n: Note } return { $n.name as name } order { $n.name } }"
    graph.store_query(text, text.replace("notes", "sealed").replace("Note", "Sealed"))
    handle = seen(graph)
    assert handle.invoke("notes").to_pylist() == handle.query(text).to_pylist() != graph.query(text).to_pylist()
    assert [query.name for query in handle.queries()] == ["notes"]
    assert (handle.validate_queries().ok, handle.validate_queries().queries) == (True, 1)
    assert graph.validate_queries().queries == 2
    with pytest.raises(QueryNotFound) as denied:
        handle.invoke("sealed")
    assert (denied.value.message, denied.value.hint) == ("there is no stored query 'sealed'", None)
    with pytest.raises(OmniGraphError) as hidden:
        handle.store_query(text.replace("notes", "other").replace("Note", "Sealed"))
    with pytest.raises(OmniGraphError) as unknown:
        handle.store_query(text.replace("notes", "other").replace("Note", "Nothing"))
    assert hidden.value.code == unknown.value.code


def test_a_search_finds_visible_rows(graph):
    handle = seen(graph)
    assert [hit.id for hit in handle.search("apple", by="words").hits] == ["a", "b"]
    assert sorted(hit.id for hit in graph.search("apple", by="words").hits) == ["a", "b", "x"]
    found = handle.search(f"{CANARY} apple", by="words", rank_of="x")
    assert [(each.type, each.reason) for each in found.rank_of] == [(None, "not_found")]
    assert str(CANARY_NUMBER) not in str(found)
    assert found.hits[1].row["pay"] is None
    assert [term.term for term in found.hits[0].why[0].terms] == ["appl"]
    # Hidden rows change no score: the statistics are those of the visible rows.
    alone = handle.search("apple", by="words").hits[0].why[0].score
    text = 'match { $n: Note } return { bm25($n.text, "apple") as score } order { score } limit 1'
    assert alone == handle.query(text).to_pylist()[0]["score"]
    with pytest.raises(TypeNotFound):
        handle.search("apple", ["Sealed"])
    with pytest.raises(PageCursorRejected):
        seen(graph, OTHER).search("apple", by="words", limit=1, after=handle.search("apple", by="words", limit=1).next)


def test_editors_know_visible_types_only(graph):
    words = {each.text for each in seen(graph).complete("match { $x: ", 12).candidates}
    assert words == {"Note"}
    assert "Sealed" in {each.text for each in graph.complete("match { $x: ", 12).candidates}
    assert seen(graph).hover("match { $x: Sealed }", 13).kind == "scalar"


def test_differences_and_dry_runs_count_visible_rows(graph):
    graph.branch_create("b")
    hidden = f'update Note set {{ text: "{CANARY}" }} where name = "x"'
    graph.on("b").mutate(f'atomic {{ {hidden} insert Note {{ name: "n", tenant: "acme" }} }}')
    handle = seen(graph)
    assert handle.diff_summary("main", "b").tables == {"node:Note": {"insert": 1, "update": 0, "delete": 0}}
    shown = handle.diff_graph("main", "b")
    assert [(node.id, node.op) for node in shown.nodes] == [("n", "insert")]
    assert CANARY not in str(shown)
    assert [(each.ahead, each.head.pins) for each in handle.branch_status()] == [(0, ()), (1, ())]
    done = handle.mutate('update Note set { text: "q" } where tenant != "none"', dry_run=True)
    assert done.tables == {"node:Note": {"insert": 0, "update": 3, "delete": 0}}


def test_projections_show_visible_rows(graph):
    assert graph.projection("Note", "vec")["id"].to_pylist() == ["a", "b", "c", "x"]
    assert seen(graph).projection("Note", "vec")["id"].to_pylist() == ["a", "b", "c"]
    with pytest.raises(TypeNotFound):
        seen(graph).projection("Sealed", "vec")


def test_neighbours_are_visible_rows(graph):
    handle = seen(graph)
    assert [each.id for each in graph.neighbors("Note", "b").neighbors] == ["x", "a"]
    assert [each.id for each in handle.neighbors("Note", "b").neighbors] == ["a"]
    assert [degree.count for degree in handle.degrees("Note", "b")] == [0, 1]
    assert [degree.edge for degree in graph.degrees("Note", "a")] == ["Cites", "Cites", "Holds"]
    assert {degree.edge for degree in handle.degrees("Note", "a")} == {"Cites"}
    assert str(CANARY_NUMBER) not in str(handle.neighbors("Note", "b"))
    for hidden in ("x", "none"):
        with pytest.raises(NotFound, match=f"Note '{hidden}' does not exist"):
            handle.neighbors("Note", hidden)
    with pytest.raises(TypeNotFound):
        handle.degrees("Sealed", CANARY)


def test_snapshots_count_visible_rows(graph):
    snapshot = seen(graph).snapshot()
    counts = {table["table_key"]: table["row_count"] for table in snapshot.to_json()["tables"]}
    assert counts == {"node:Note": 3, "edge:Cites": 1}
    assert {table.pin.row_count for table in graph.snapshot().tables.values()} == {4, 1, 3}
    assert [table["table_path"] for table in snapshot.to_json()["tables"]] == ["", ""]
    assert snapshot.commit_id == graph.snapshot().commit_id
    assert snapshot.entity("node:Note", "x") is None
    assert snapshot.entity("node:Note", "b")["pay"] is None
    assert snapshot.table_branch("node:Note") is None
    for call in (snapshot.table, lambda key: snapshot.open(snapshot.tables[key])):
        with pytest.raises(Denied, match="rules"):
            call("node:Note")
    for hidden in ("node:Sealed", "node:Seale"):
        with pytest.raises(TypeNotFound) as error:
            snapshot.table(hidden)
        assert str(error.value).replace(hidden, "") == f"'' does not exist at commit {snapshot.commit_id}"


def test_schema_is_that_of_the_visible_types(graph):
    text = seen(graph).schema
    for hidden in ("Sealed", "Holds", "weight"):
        assert hidden in graph.schema
        assert hidden not in text
    assert compile_schema(text).nodes.keys() == {"Note"}
    record = seen(graph).snapshot().schema
    assert read_catalog(record).edges.keys() == {"Cites"}
    assert "Sealed" not in record.ir
    assert "Sealed" not in seen(graph)._repr_html_()


def test_commits_show_visible_types_and_no_rows(graph):
    graph.mutate(f'insert Sealed {{ name: "{CANARY}2" }}')
    text = 'update Note set { pay: 1 } where name = "x" as $n return { $n.text as text }'
    assert CANARY in str(graph.mutate(text, idempotency_key="k").rows)
    whole, commits = graph.commits(), seen(graph).commits()
    assert [one.id for one in whole] == [one.id for one in commits]
    assert "node:Sealed" in whole[1].changed
    assert [one.changed for one in commits[:2]] == [("node:Note",), ()]
    assert whole[0].metadata
    assert not any(one.metadata for one in commits)
    assert seen(graph).commit(whole[1].id) == commits[1]
    assert not seen(graph).head().pins
    graph.tag_create("v1")
    assert not seen(graph).tags()[0].pins
    assert graph.tags()[0].pins


def test_branches_and_tags_can_be_changed(graph):
    handle = seen(graph)
    handle.branch_create("b1")
    handle.branch_update("b1", description="a branch")
    assert handle.on("b1").get("Note", "x") is None
    assert handle.branches() == ["main", "b1"]
    handle.tag_create("v1")
    handle.tag_delete("v1")
    handle.branch_delete("b1")


def test_maintenance_treats_the_whole_graph(graph):
    handle = seen(graph)
    assert {table.table_key for table in handle.optimize()} >= {"node:Sealed"}
    assert handle.verify() == []
    assert handle.recover() == []
    handle.ensure_indices()
    handle.cleanup(keep=10)


def _call(handle: Graph, name: str) -> None:
    """Call a method with the name of a branch for each required argument; read a property."""
    method = getattr(handle, name)
    required = [one for one in inspect.signature(method).parameters.values() if one.default is one.empty]
    given = {one.name: "main" for one in required if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    if name in ("load", "ingest"):
        given["mode"] = "merge"
    found = method(**given)
    if inspect.isgenerator(found) or hasattr(found, "__next__"):
        next(found)
