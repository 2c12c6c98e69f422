"""Loads: modes, ids, repeated records, order of validation, records set aside, and results."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import (
    BranchNotFound,
    ConstraintViolation,
    EmbeddingError,
    InputError,
    KeyConflict,
    OmniGraphError,
    RecordError,
)
from omnigraph.graph import Graph
from omnigraph.operations.catalog_cache import CatalogCache
from omnigraph.operations.load.load import load
from omnigraph.operations.load.load_request import LoadRequest
from omnigraph.operations.load.load_result import LoadResult, Reject
from support.writes import (
    SHELVES,
    FakeEmbedder,
    beside,
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
    shelf,
    write_jsonl,
)

MODES = ("overwrite", "append", "merge")


@pytest.fixture
def graph(tmp_path):
    return new_graph(tmp_path, SHELVES, shelf("a", note="x", cap=3), shelf("b"), beside("a", "b", id_="e"))


# -- modes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_load_is_one_commit(graph, mode):
    before = len(graph.commits())
    graph.load(
        [shelf("c"), shelf("d"), beside("c", "d"), shelf("a"), shelf("b")][: None if mode != "append" else 3], mode=mode
    )
    assert len(graph.commits()) == before + 1
    assert graph.commits()[0].kind == "load"
    assert graph.commits()[0].changed == ("edge:Beside", "node:Shelf")


@pytest.mark.parametrize(("missing", "note"), [("keep", "x"), ("null", None)])
def test_merge_updates_rows_and_keeps_the_others(graph, missing, note):
    graph.load([shelf("a", cap=4), shelf("c")], mode="merge", missing=missing)
    assert rows_of(graph, "Shelf") == {
        "a": {"cap": 4, "code": "a", "note": note},
        "b": {"cap": None, "code": "b", "note": None},
        "c": {"cap": None, "code": "c", "note": None},
    }
    assert ends_of(graph, "Beside") == [("a", "b")]


def test_overwrite_replaces_the_tables_in_the_input(graph):
    graph.load([beside("b", "b", id_="f")], mode="overwrite")
    assert ids_of(graph, "Shelf") == ["a", "b"]
    assert rows_of(graph, "Beside") == {"f": {"from": "b", "to": "b"}}


def test_overwrite_ignores_the_replaced_rows(tmp_path):
    schema = "node P { k: String @key  v: I32? @unique } edge E: P -> P @card(0..1)"
    graph = new_graph(tmp_path, schema, node("P", k="a", v=1), node("P", k="b"), edge("E", "a", "b"))
    graph.load([node("P", k="c", v=1), node("P", k="d"), edge("E", "c", "d")], mode="overwrite")
    assert ids_of(graph, "P") == ["c", "d"]
    assert ends_of(graph, "E") == [("c", "d")]


def test_edge_may_precede_its_nodes(graph):
    graph.load([beside("x", "y"), shelf("y"), shelf("x")], mode="append")
    assert ("x", "y") in ends_of(graph, "Beside")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("data", [[], {}, iter(())])
def test_empty_input_makes_no_commit(graph, mode, data):
    before = everything(graph)
    result = graph.load(data, mode=mode)
    assert (result.tables, result.commit_id) == ((), None)
    assert result.notes == ("no record was loaded; nothing was committed",)
    assert everything(graph) == before


def test_loading_an_export_again_changes_nothing(graph):
    before = list(graph.export())
    for mode in ("merge", "overwrite"):
        graph.load(list(graph.export()), mode=mode)
        assert list(graph.export()) == before


def test_unknown_mode_is_refused(graph):
    with pytest.raises(InputError, match="there is no load mode 'upsert'") as caught:
        graph.load([], mode="upsert")
    assert caught.value.hint == "the modes are overwrite, append, merge"


# -- ids and repeated records ------------------------------------------------------------------------

MIXED = """
node Shelf { code: U32 @key  note: String? }
node Free { v: I32? }
edge Beside: Shelf -> Shelf
edge Up: Free -> Shelf
"""


@pytest.fixture
def mixed(tmp_path):
    return new_graph(tmp_path, MIXED, node("Shelf", code=1), node("Shelf", code=2), node("Free", id_="f", v=1))


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_repeated_key_is_a_violation(mixed, mode):
    before = everything(mixed)
    with pytest.raises(ConstraintViolation) as caught:
        mixed.load([node("Shelf", code=7), node("Shelf", code=8), node("Shelf", code=7, note="again")], mode=mode)
    assert caught.value.message == "line 3: @unique violation on Shelf.code: the key '7' is written twice"
    assert everything(mixed) == before


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize(
    ("records", "key", "id_"),
    [
        ([node("Free", id_="x"), node("Free"), node("Free", id_="x", v=2)], "node:Free", "x"),
        (
            [edge("Beside", "1", "2", id_="e"), edge("Beside", "1", "1"), edge("Beside", "2", "1", id_="e")],
            "edge:Beside",
            "e",
        ),
    ],
)
def test_repeated_explicit_id_is_a_conflict(mixed, mode, records, key, id_):
    before = everything(mixed)
    with pytest.raises(KeyConflict) as caught:
        mixed.load(records, mode=mode)
    assert (caught.value.table_key, caught.value.row_id) == (key, id_)
    assert caught.value.message == f"line 3: {key[5:]}: the id '{id_}' is given twice; nothing was written"
    assert everything(mixed) == before


def test_in_a_merge_the_last_record_wins_and_all_are_counted(mixed):
    records = [
        node("Free", id_="x", v=1),
        node("Free", id_="x", v=2),
        edge("Beside", "1", "2", id_="e"),
        edge("Beside", "2", "1", id_="e"),
    ]
    result = mixed.load(records, mode="merge")
    assert rows_of(mixed, "Free")["x"] == {"v": 2}
    assert rows_of(mixed, "Beside") == {"e": {"from": "2", "to": "1"}}
    assert result.tables == (("edge:Beside", 2), ("node:Free", 2))


@pytest.mark.parametrize(
    "names", [("beside", "Beside", "beside"), ("Beside", "beside", "BESIDE"), ("BESIDE", "Beside", "BESIDE")]
)
def test_last_line_wins_for_any_spelling_of_the_edge_type(graph, tmp_path, names):
    ends = (("a", "a"), ("b", "b"), ("b", "a"))
    lines = [edge(name, *end, id_="x") for name, end in zip(names, ends, strict=True)]
    graph.load(write_jsonl(tmp_path / "in.jsonl", lines), mode="merge")
    assert rows_of(graph, "Beside")["x"] == {"from": "b", "to": "a"}


def test_overridden_record_is_not_validated(tmp_path):
    schema = "node P { v: I32? @range(v, 0..9) @unique(v) } edge E: P -> P @card(0..1)"
    graph = new_graph(tmp_path, schema, node("P", id_="a"), node("P", id_="b"))
    edges = [edge("E", "a", "nowhere", id_="1"), edge("E", "a", "b", id_="1")]
    graph.load([node("P", id_="x", v=99), node("P", id_="x", v=1), *edges], mode="merge")
    assert ends_of(graph, "E") == [("a", "b")]


@pytest.mark.parametrize(
    ("records", "line", "id_"),
    [
        ([shelf("new"), shelf("b"), shelf("a")], 2, "b"),
        ([beside("a", "a"), beside("b", "a", id_="e")], 2, "e"),
        ([shelf("a"), beside("b", "a", id_="e")], 2, "e"),
    ],
)
def test_append_refuses_an_existing_id(graph, records, line, id_):
    """The first type by name, then the first record."""
    before = everything(graph)
    with pytest.raises(KeyConflict) as caught:
        graph.load(records, mode="append")
    assert caught.value.row_id == id_
    assert caught.value.message.startswith(f"line {line}: ")
    assert caught.value.message.endswith(f"the id '{id_}' exists already; nothing was written")
    assert caught.value.hint == "load with mode 'merge' to update it"
    assert everything(graph) == before


def test_old_spellings_are_replaced_in_nodes_and_edges(mixed):
    records = [
        edge("Beside", "0007", "+8"),
        node("Shelf", code=7, id_="0007"),
        node("Shelf", code=8, id_="+8"),
        edge("Up", "f", "0007"),
        edge("Beside", "7", "1"),
    ]
    mixed.load(records, mode="merge")
    assert ids_of(mixed, "Shelf") == ["1", "2", "7", "8"]
    assert ends_of(mixed, "Beside") == [("7", "1"), ("7", "8")]
    assert ends_of(mixed, "Up") == [("f", "7")]


def test_old_spelling_of_another_input_is_unknown(mixed):
    mixed.load([node("Shelf", code=7, id_="0007")], mode="merge")
    with pytest.raises(ConstraintViolation, match="src '0007' not found in Shelf"):
        mixed.load([edge("Beside", "0007", "1")], mode="merge")


def test_old_spelling_applies_to_its_own_type_only(tmp_path):
    schema = "node A { k: U32 @key } node B { k: String @key } edge E: A -> B"
    graph = new_graph(tmp_path, schema)
    graph.load([node("A", k=7, id_="07"), node("B", k="07"), edge("E", "07", "07")], mode="append")
    assert ends_of(graph, "E") == [("7", "07")]


def test_old_spelling_of_two_keys_in_two_files_is_refused(tmp_path):
    graph = new_graph(tmp_path, "node C { a: I32  b: String  @key(a, b) }")
    paths = [
        write_jsonl(tmp_path / f"{name}.jsonl", [node("C", a=number, b="x", id_="x")])
        for name, number in (("one", 1), ("two", 2))
    ]
    with pytest.raises(RecordError, match=r"two.jsonl, line 1: the id 'x' of C stands for two keys"):
        graph.load(paths, mode="append")


def test_id_that_differs_from_the_key_is_refused(mixed):
    before = everything(mixed)
    with pytest.raises(RecordError, match=r"^line 2: the id '9' of Shelf differs from its key '7'$"):
        mixed.load([node("Shelf", code=8), node("Shelf", code=7, id_="9")], mode="merge")
    assert everything(mixed) == before


# -- order of validation -----------------------------------------------------------------------------

STRICT = """
node A { k: String @key  n: I32?  v: String? @unique  c: String?  m: enum(x, y)?  @range(n, 0..9) @check(c, "^c") }
node B { w: I32? @unique }
edge E: A -> B @card(0..1) { s: I32? @unique  m: enum(x, y)? }
"""
STAGES = named(
    [
        ("shape", '{"type":"A","data":{"k":"s","nope":1}}', "node type 'A' has no property 'nope'"),
        ("value", '{"type":"A","data":{"k":"t","n":"x"}}', "A.n: expected I32?, found the string 'x'"),
        ("range", '{"type":"A","data":{"k":"r","n":10}}', "@range violation on A.n: 10 is not in 0..9"),
        ("check", '{"type":"A","data":{"k":"c","c":"d"}}', "@check violation on A.c: 'd' does not match \"^c\""),
        ("enum", '{"type":"A","data":{"k":"m","m":"z"}}', "invalid enum value 'z' for A.m: allowed are 'x', 'y'"),
        (
            "edge enum",
            '{"edge":"E","from":"a","to":"b","data":{"m":"z"}}',
            "invalid enum value 'z' for E.m: allowed are 'x', 'y'",
        ),
        ("key", '{"type":"A","data":{"k":"new"}}', "@unique violation on A.k: the key 'new' is written twice"),
        (
            "unique",
            '{"type":"A","data":{"k":"u","v":"taken"}}',
            "@unique violation on A.v: value 'taken' is held by 'a' and 'u'",
        ),
        (
            "edge unique",
            '{"edge":"E","from":"a2","to":"b","data":{"id":"z","s":1}}',
            "@unique violation on E.s: value '1' is held by 'e' and 'z'",
        ),
        ("source", '{"edge":"E","from":"nobody","to":"b"}', "edge E: src 'nobody' not found in A"),
        ("target", '{"edge":"E","from":"a2","to":"nobody"}', "edge E: dst 'nobody' not found in B"),
        (
            "cardinality",
            '{"edge":"E","from":"a","to":"b"}',
            "@card violation on edge E: source 'a' has 2 edges (max 1)",
        ),
        ("admission", '{"type":"B","data":{"id":"b"}}', "B: the id 'b' exists already; nothing was written"),
    ]
)


@pytest.mark.parametrize("stage", STAGES)
def test_first_failing_stage_is_reported(tmp_path, stage):
    """All records of this and later stages, in reverse order: the earliest stage is reported, with its line."""
    graph = new_graph(
        tmp_path,
        STRICT,
        node("A", k="a", v="taken"),
        node("A", k="a2"),
        node("B", id_="b"),
        edge("E", "a", "b", id_="e", s=1),
    )
    names = list(STAGES)
    wanted = names[names.index(stage) :]
    # Both ends are checked in one stage.
    wanted = [name for name in wanted if (stage, name) != ("source", "target")]
    lines = [STAGES[name][0] for name in reversed(wanted)]
    lines.insert(0, '{"type":"A","data":{"k":"new"}}')
    path = write_jsonl(tmp_path / "in.jsonl", lines)
    before, files = everything(graph), manifest_files(graph)
    with pytest.raises(OmniGraphError) as caught:
        graph.load(path, mode="append")
    assert caught.value.message == f"{path}, line {len(lines)}: {STAGES[stage][1]}"
    assert everything(graph) == before
    assert manifest_files(graph) == files


def test_within_a_stage_the_first_type_and_line_is_reported(tmp_path):
    graph = new_graph(
        tmp_path,
        "node B { n: I32? @range(n, 0..1) }\n"
        "node A { n: I32? m: I32? @range(n, 0..1) @range(m, 0..1) }\n"
        "edge AA: A -> A { d: Date? }\n",
    )
    with pytest.raises(ConstraintViolation, match=r"^line 2: @range violation on A.n"):
        graph.load([node("B", n=9), node("A", n=9), node("A", m=9)], mode="append")
    with pytest.raises(ConstraintViolation, match=r"^line 1: @range violation on A.n"):
        graph.load([node("A", n=9), node("A", m=9)], mode="append")
    with pytest.raises(ConstraintViolation, match=r"^line 1: @range violation on A.m"):
        graph.load([node("A", m=9), node("A", n=9)], mode="append")
    with pytest.raises(RecordError, match=r"^line 2: A.n: "):
        graph.load([edge("AA", "a", "a", d="x"), node("A", n="x")], mode="append")


def test_violation_of_committed_rows_has_no_line(graph):
    with pytest.raises(ConstraintViolation, match=r"^edge Beside: dst 'b' not found in Shelf: it is removed"):
        graph.load([shelf("a")], mode="overwrite")


# -- setting aside -----------------------------------------------------------------------------------


def aside(graph: Graph, data: Any, mode: str = "append") -> tuple[LoadResult, list[tuple[int | None, str]]]:
    rejects: list[Reject] = []
    result = graph.load(data, mode=mode, rejects=rejects)
    assert tuple(rejects) == result.rejected
    assert graph.verify() == []
    return result, [(reject.line, reject.rule) for reject in rejects]


def test_dependent_records_are_set_aside_with_wrong_ones(tmp_path):
    """The edges of a node out of range are set aside with it, then the other edges of a source with too few edges."""
    schema = "node P { k: String @key  n: I32?  @range(n, 0..9) } edge E: P -> P @card(2..)"
    graph = new_graph(tmp_path, schema)
    records = [
        node("P", k="good"),
        node("P", k="bad", n=10),
        edge("E", "good", "bad"),
        edge("E", "good", "good"),
        edge("E", "bad", "good"),
        {"type": "Q"},
        node("P", k="fine"),
        node("P", n=3),
        edge("E", "fine", "good"),
        edge("E", "fine", "fine"),
    ]
    result, rejects = aside(graph, records)
    assert rejects == [
        (2, "range"),
        (3, "endpoint"),
        (4, "cardinality"),
        (5, "endpoint"),
        (6, "record"),
        (8, "required"),
    ]
    assert result.tables == (("edge:E", 2), ("node:P", 2))
    assert ids_of(graph, "P") == ["fine", "good"]
    assert ends_of(graph, "E") == [("fine", "fine"), ("fine", "good")]


def test_record_set_aside_causes_no_other_violation(tmp_path):
    """The first holder of a value violates another rule, so the second may have the value."""
    schema = "node P { k: String @key  v: String? @unique  n: I32?  @range(n, 0..9) }"
    graph = new_graph(tmp_path, schema)
    _, rejects = aside(graph, [node("P", k="a", v="x", n=10), node("P", k="b", v="x"), node("P", k="c", v="x")])
    assert rejects == [(1, "range"), (3, "unique")]
    assert ids_of(graph, "P") == ["b"]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_first_record_of_a_key_stays(tmp_path, mode):
    graph = new_graph(tmp_path)
    result, rejects = aside(graph, [shelf("a", cap=1), shelf("b"), shelf("a", cap=2)], mode)
    assert rejects == [(3, "unique")]
    assert rows_of(graph, "Shelf")["a"]["cap"] == 1
    assert result.tables == (("node:Shelf", 2),)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_first_record_of_an_explicit_id_stays(tmp_path, mode):
    graph = new_graph(tmp_path, SHELVES, shelf("a"))
    result, rejects = aside(graph, [beside("a", "a", id_="e"), beside("a", "a"), beside("a", "a", id_="e")], mode)
    assert rejects == [(3, "unique")]
    assert len(ids_of(graph, "Beside")) == 2
    assert result.tables == (("edge:Beside", 2),)


def test_existing_ids_are_set_aside_and_the_rest_is_validated_again(tmp_path):
    schema = "node P { k: String @key } edge E: P -> P @card(2..)"
    graph = new_graph(
        tmp_path, schema, node("P", k="a"), node("P", k="b"), edge("E", "a", "a", id_="1"), edge("E", "a", "b", id_="2")
    )
    # Edge 1 exists already, and without it b has too few edges.
    _, rejects = aside(
        graph, [node("P", k="c"), node("P", k="a"), edge("E", "b", "a", id_="1"), edge("E", "b", "b", id_="3")]
    )
    assert rejects == [(2, "unique"), (3, "unique"), (4, "cardinality")]
    assert ids_of(graph, "P") == ["a", "b", "c"]
    assert ids_of(graph, "E") == ["1", "2"]


def test_edge_type_with_the_name_of_a_node_type(tmp_path):
    schema = "node P { k: String @key } edge E: P -> P @card(0..1)"
    graph = new_graph(tmp_path, schema, node("P", k="a"), node("P", k="b"))
    _, rejects = aside(
        graph,
        [
            edge("E", "b", "a", id_="a"),
            edge("E", "a", "a", id_="x"),
            edge("E", "a", "b", id_="y"),
            edge("E", "b", "no", id_="b"),
        ],
    )
    assert rejects == [(3, "cardinality"), (4, "endpoint")]
    assert ids_of(graph, "E") == ["a", "x"]


@pytest.mark.parametrize("mode", MODES)
def test_first_edges_within_the_cardinality_stay(tmp_path, mode):
    schema = "node P { k: String @key } edge E: P -> P @card(0..2)"
    graph = new_graph(tmp_path, schema, node("P", k="a"), node("P", k="b"), edge("E", "a", "a", id_="old"))
    records = [edge("E", "a", "b", id_=f"new{number}") for number in range(3)] + [edge("E", "b", "b", id_="b")]
    _, rejects = aside(graph, records, mode)
    if mode == "overwrite":
        assert rejects == [(3, "cardinality")]
        assert ids_of(graph, "E") == ["b", "new0", "new1"]
    else:
        assert rejects == [(2, "cardinality"), (3, "cardinality")]
        assert ids_of(graph, "E") == ["b", "new0", "old"]


def test_overwrite_must_not_leave_too_few_edges(tmp_path):
    schema = "node P { k: String @key } edge E: P -> P @card(1..)"
    graph = new_graph(tmp_path, schema, node("P", k="a"), node("P", k="b"), edge("E", "a", "a", id_="1"))
    for rejects in (None, []):
        with pytest.raises(ConstraintViolation, match="source 'a' has 0 edges") as caught:
            graph.load([edge("E", "b", "a")], mode="overwrite", rejects=rejects)
        assert caught.value.code == "cardinality_violation"
    graph.load([node("P", k="b"), edge("E", "b", "b")], mode="overwrite")
    assert ends_of(graph, "E") == [("b", "b")]


def test_violation_without_a_loaded_row_is_an_error(graph):
    before = everything(graph)
    with pytest.raises(ConstraintViolation, match="it is removed, but edge 'e' still points at it"):
        graph.load([shelf("a"), {"type": "Nobody"}], mode="overwrite", rejects=[])
    assert everything(graph) == before


def test_rejects_have_all_fields(tmp_path):
    graph = new_graph(tmp_path)
    one = write_jsonl(tmp_path / "b.jsonl", [shelf("a"), "garbage", shelf("b", cap="x")])
    two = write_jsonl(tmp_path / "a.jsonl", [shelf("a")])
    rejects: list[Reject] = []
    result = graph.load([one, two], mode="append", rejects=rejects)
    assert [reject.to_json() for reject in rejects] == [
        {
            "source": str(two), "line": 1, "type": "Shelf", "property": "code", "column": None, "rule": "unique",
            "reason": "@unique violation on Shelf.code: the key 'a' is written twice", "record": shelf("a"),
        },
        {
            "source": str(one), "line": 2, "type": None, "property": None, "column": None, "rule": "record",
            "reason": rejects[1].reason, "record": rejects[1].record,
        },
        {
            "source": str(one), "line": 3, "type": "Shelf", "property": "cap", "column": None, "rule": "value",
            "reason": "Shelf.cap: expected I32?, found the string 'x'", "record": shelf("b", cap="x"),
        },
    ]  # fmt: skip
    assert result.to_json()["rejected"] == 3


def test_load_with_only_wrong_records_makes_no_commit(tmp_path):
    graph = new_graph(tmp_path)
    result, rejects = aside(graph, [{"type": "Nobody"}, shelf("a", cap="x")])
    assert rejects == [(1, "record"), (2, "value")]
    assert (result.tables, result.commit_id) == ((("node:Shelf", 0),), None)
    assert result.notes == ("no record was loaded; nothing was committed",)
    assert len(graph.commits()) == 1


# -- branches ----------------------------------------------------------------------------------------


def test_load_never_creates_a_branch(graph):
    with pytest.raises(BranchNotFound, match="nowhere"):
        graph.load([shelf("z")], mode="merge", branch="nowhere")
    assert graph.branches() == ["main"]


def test_ingest_creates_its_branch(graph):
    result = graph.ingest([shelf("z")], branch="new", actor="act-ana", message="hello")
    assert graph.branches() == ["main", "new"]
    assert ids_of(graph, "Shelf", branch="new") == ["a", "b", "z"]
    assert ids_of(graph, "Shelf") == ["a", "b"]
    assert result.to_json() == {
        "branch": "new",
        "base_branch": "main",
        "branch_created": True,
        "mode": "merge",
        "tables": [{"table_key": "node:Shelf", "rows_loaded": 1}],
        "commit_id": graph.commits("new")[0].id,
        "rejected": 0,
        "embedded_rows": 0,
        "pending_embeddings": 0,
        "notes": [],
        "repeated": False,
    }
    commit = graph.commits("new")[0]
    assert (commit.actor, commit.message, commit.branch) == ("act-ana", "hello", "new")


def test_ingest_into_an_existing_branch_does_not_fork_again(graph):
    graph.ingest([shelf("z")], branch="new")
    graph.load([shelf("later")], mode="append")
    graph.branch_create("other")
    result = graph.ingest([shelf("y")], branch="new", from_branch="other")
    assert (result.base_branch, result.branch_created) == ("other", False)
    assert ids_of(graph, "Shelf", branch="new") == ["a", "b", "y", "z"]
    assert graph.ingest([shelf("x")], branch="new", from_branch="gone").branch_created is False


def test_ingest_from_another_branch(graph):
    graph.ingest([shelf("z")], branch="one")
    graph.ingest([shelf("y")], branch="two", from_branch="one")
    assert ids_of(graph, "Shelf", branch="two") == ["a", "b", "y", "z"]
    with pytest.raises(BranchNotFound, match="base branch 'gone' does not exist"):
        graph.ingest([shelf("y")], branch="three", from_branch="gone")
    assert graph.branches() == ["main", "one", "two"]


@pytest.mark.parametrize(
    ("data", "mode"),
    [
        ([shelf("z", cap="x")], "merge"),
        ([beside("a", "nowhere")], "merge"),
        ([shelf("a")], "append"),
    ],
)
def test_failed_ingest_reports_that_the_new_branch_stays(graph, data, mode):
    with pytest.raises(OmniGraphError) as caught:
        graph.ingest(data, branch="new", mode=mode)
    assert caught.value.message.endswith("; branch 'new' was created from 'main' and stays there")
    assert str(caught.value) == caught.value.message
    assert graph.branches() == ["main", "new"]
    assert graph.snapshot("new").commit_id == graph.snapshot("main").commit_id
    with pytest.raises(OmniGraphError) as again:
        graph.ingest(data, branch="new", mode=mode)
    assert "was created" not in again.value.message


@pytest.mark.parametrize("data", ["no/such/file.jsonl", 5])
def test_ingest_of_nothing_creates_nothing(graph, data):
    with pytest.raises(InputError):
        graph.ingest(data, branch="new")
    with pytest.raises(InputError):
        graph.ingest([], branch="new", mode="upsert")
    assert graph.branches() == ["main"]


@pytest.mark.parametrize("name", ["__schema_apply_lock__", "__run__x", "", "a b"])
def test_ingest_refuses_invalid_branch_names(graph, name):
    with pytest.raises(InputError):
        graph.ingest([shelf("z")], branch=name)
    assert graph.branches() == ["main"]


def test_load_on_a_branch_does_not_change_main(graph):
    graph.branch_create("side")
    graph.on("side").load([shelf("z")], mode="append")
    assert ids_of(graph, "Shelf") == ["a", "b"]
    assert ids_of(graph, "Shelf", branch="side") == ["a", "b", "z"]


# -- inputs ------------------------------------------------------------------------------------------


def test_files_of_every_kind_in_one_load(tmp_path):
    graph = new_graph(tmp_path)
    folder = tmp_path / "in"
    folder.mkdir()
    write_jsonl(folder / "one.jsonl", ["// a comment", shelf("a"), beside("c", "d")])
    write_jsonl(folder / "two.ndjson", [shelf("b")])
    (folder / "Shelf.csv").write_text("code,cap\nc,3\n")
    pq.write_table(pa.table({"code": ["d"], "note": ["n"]}), folder / "Shelf.parquet")
    pq.write_table(pa.table({"from": ["a"], "to": ["d"], "id": ["e"]}), folder / "Beside.parquet")
    result = graph.load(folder / "*", mode="append")
    assert ids_of(graph, "Shelf") == ["a", "b", "c", "d"]
    assert ends_of(graph, "Beside") == [("a", "d"), ("c", "d")]
    assert result.tables == (("edge:Beside", 2), ("node:Shelf", 4))


def test_paths_in_every_form(tmp_path):
    graph = new_graph(tmp_path)
    for name in ("x1", "x2", "y[1]"):
        write_jsonl(tmp_path / f"{name}.jsonl", [shelf(name)])
    graph.load(str(tmp_path / "x?.jsonl"), mode="append")
    graph.load((tmp_path / "y[1].jsonl",), mode="append")
    assert ids_of(graph, "Shelf") == ["x1", "x2", "y[1]"]
    graph.load([str(tmp_path / "x*.jsonl"), tmp_path / "y[1].jsonl"], mode="merge")


@pytest.mark.parametrize("name", ["gone.jsonl", "gone*.jsonl", "folder"])
def test_missing_file_is_refused(tmp_path, name):
    graph = new_graph(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="there is no file") as caught:
        graph.load(tmp_path / name, mode="append")
    assert caught.value.code == "no_such_file"


def test_file_of_unknown_type_is_refused(tmp_path):
    graph = new_graph(tmp_path)
    (tmp_path / "x.txt").write_text("")
    (tmp_path / "x.csv.zip").write_bytes(b"")
    with pytest.raises(InputError, match="has an unknown file type") as caught:
        graph.load(tmp_path / "x.txt", mode="append")
    assert caught.value.hint == "load .jsonl, .parquet, .csv, .tsv, .arrow or .graphml files"
    with pytest.raises(InputError, match="has an unknown file type") as caught:
        graph.load(tmp_path / "x.csv.zip", mode="append")
    assert caught.value.hint == f"unpack the archive: python -m zipfile -e {tmp_path / 'x.csv.zip'} ."


def test_errors_name_the_file_if_there_are_several(tmp_path):
    graph = new_graph(tmp_path)
    one = write_jsonl(tmp_path / "one.jsonl", [shelf("a")])
    for name, bad in (("shape", "x"), ("value", shelf("z", cap="x")), ("rule", beside("a", "z")), ("key", shelf("a"))):
        two = write_jsonl(tmp_path / f"{name}.jsonl", [shelf("b"), bad])
        with pytest.raises(OmniGraphError) as caught:
            graph.load([one, two], mode="append")
        assert caught.value.message.startswith(f"{two}, line 2: ")
    assert ids_of(graph, "Shelf") == []


def test_tables_by_type_name(tmp_path):
    graph = new_graph(tmp_path)
    tables = {
        "Shelf": pa.table({"code": ["a", "b"], "cap": [1, None]}),
        "beside": pa.table({"src": ["a"], "dst": ["b"]}),
    }
    result = graph.load(tables, mode="overwrite")
    assert result.tables == (("edge:Beside", 1), ("node:Shelf", 2))
    assert rows_of(graph, "Shelf")["a"] == {"cap": 1, "code": "a", "note": None}
    with pytest.raises(RecordError, match=r"^line 2: Shelf.cap: "):
        graph.load({"Shelf": pa.table({"code": ["a", "b"], "cap": [1, 2**40]})}, mode="merge")


@pytest.mark.parametrize("data", [5, None, b"bytes", {"type": "Shelf", "data": {}}])
def test_unsupported_input_is_refused(tmp_path, data):
    graph = new_graph(tmp_path)
    with pytest.raises(InputError, match="cannot load a"):
        graph.load(data, mode="merge")


def test_actor_of_the_handle_is_recorded(tmp_path):
    graph = new_graph(tmp_path, actor="act-ana")
    graph.load([shelf("a")], mode="append", message="first")
    assert (graph.commits()[0].actor, graph.commits()[0].message) == ("act-ana", "first")


def test_json_form_of_the_result(graph):
    result = graph.load([shelf("z"), beside("z", "a"), beside("z", "b")], mode="merge")
    assert result.to_json() == {
        "branch": "main",
        "base_branch": None,
        "branch_created": False,
        "mode": "merge",
        "tables": [{"table_key": "edge:Beside", "rows_loaded": 2}, {"table_key": "node:Shelf", "rows_loaded": 1}],
        "commit_id": graph.commits()[0].id,
        "rejected": 0,
        "embedded_rows": 0,
        "pending_embeddings": 0,
        "notes": [
            "edge:Beside: records without an id were added, and a second load adds them again; "
            "give ids or declare @unique(src, dst)"
        ],
        "repeated": False,
    }


def test_load_starts_over_if_the_branch_moved(graph, monkeypatch):
    """A stream is read once and its records are kept. Concurrent rows are validated."""
    other = reopened(graph)
    interfere(monkeypatch, lambda: other.mutate('query q() { insert Shelf { code: "z" } }'))
    with pytest.raises(KeyConflict, match="the id 'z' exists already"):
        graph.load(iter([shelf("y"), shelf("z")]), mode="append")
    interfere(monkeypatch, lambda: other.mutate('query q() { insert Shelf { code: "w" } }'))
    graph.load(iter([shelf("y"), beside("y", "z")]), mode="append")
    assert ids_of(graph, "Shelf") == ["a", "b", "w", "y", "z"]


# -- embeddings --------------------------------------------------------------------------------------


EMBEDDED = """
node P { k: String @key  bio: String?  vec: Vector(2)? @embed("bio")  n: I32?  @range(n, 0..9) }
node Q { bio: String?  vec: Vector(2) @embed("bio") }
"""


def embed(graph: Graph, records: Any, embedder: Any, **rest: Any) -> LoadResult:
    return load(graph._repository, CatalogCache(), records, LoadRequest("merge", **rest), embedder)


def test_missing_vectors_are_made_once_per_text(tmp_path):
    graph = new_graph(tmp_path, EMBEDDED)
    fake = FakeEmbedder()
    records = [
        node("P", k="a", bio="abc"),
        node("P", k="b", bio="abc"),
        node("P", k="c", bio="x", vec=[9, 9]),
        node("P", k="d"),
        node("Q", bio="abc", id_="q"),
    ]
    result = embed(graph, records, fake)
    assert {id_: row["vec"] for id_, row in rows_of(graph, "P").items()} == {
        "a": [3, 3],
        "b": [3, 3],
        "c": [9, 9],
        "d": None,
    }
    assert rows_of(graph, "Q")["q"]["vec"] == [3, 3]
    assert fake.asked == ["abc"]
    assert (result.embedded_rows, result.pending_embeddings) == (3, 0)


def test_without_a_provider_nullable_vectors_stay_null_and_required_ones_fail(tmp_path):
    graph = new_graph(tmp_path, EMBEDDED)
    assert graph.load([node("P", k="a", bio="abc")], mode="merge").pending_embeddings == 1
    before = everything(graph)
    with pytest.raises(InputError, match=r"'Q.vec' must be embedded from 'bio', and no provider is configured"):
        graph.load([node("P", k="b"), node("Q", bio="x")], mode="merge")
    for bio in (None, "", "  "):
        with pytest.raises(RecordError, match=r"^line 2: Q.vec is required \(Vector\(2\)\)$"):
            graph.load([node("Q", vec=[1, 2]), node("Q", bio=bio)], mode="merge")
    assert everything(graph) == before


def test_failing_provider_writes_nothing(tmp_path):
    graph = new_graph(tmp_path, EMBEDDED)
    before, files = everything(graph), manifest_files(graph)
    with pytest.raises(EmbeddingError, match="the provider is down"):
        embed(
            graph, [node("P", k="z"), node("P", k="a", bio="abc")], FakeEmbedder(EmbeddingError("the provider is down"))
        )
    assert everything(graph) == before
    assert manifest_files(graph) == files


def test_texts_of_wrong_records_are_not_embedded(tmp_path):
    graph = new_graph(tmp_path, EMBEDDED)
    fake = FakeEmbedder()
    with pytest.raises(ConstraintViolation):
        embed(graph, [node("P", k="a", bio="abc", n=99)], fake)
    assert fake.asked == []
    result = embed(
        graph, [node("P", k="a", bio="abc", n=99), node("P", k="b", bio="de"), node("Q")], fake, set_aside=True
    )
    assert fake.asked == ["de"]
    assert [(reject.line, reject.rule) for reject in result.rejected] == [(1, "range"), (3, "required")]


def test_mock_provider_embeds_on_load(tmp_path):
    graph = new_graph(tmp_path, EMBEDDED, environ={"OMNIGRAPH_EMBEDDINGS_MOCK": "1"})
    result = graph.load([node("P", k="a", bio="abc")], mode="append")
    assert result.embedded_rows == 1
    vector = rows_of(graph, "P")["a"]["vec"]
    assert sum(x * x for x in vector) == pytest.approx(1)


def test_load_with_more_ids_than_one_filter_takes(tmp_path):
    """More ids than one filter takes, in three chunks, are found, replaced and refused like few ids."""
    graph = new_graph(tmp_path)
    codes = [f"s{number:05}" for number in range(5_000)]
    graph.load([*map(shelf, codes), *(beside(code, codes[-1], id_=code) for code in codes)], mode="append")
    graph.load(
        [
            *(shelf(code, cap=1) for code in codes[:4_000]),
            *(beside(code, codes[0], id_=code) for code in codes[:4_000]),
        ],
        mode="merge",
    )
    rows = rows_of(graph, "Shelf")
    assert len(rows) == 5_000
    assert sum(row["cap"] == 1 for row in rows.values()) == 4_000
    assert sum(row["to"] == codes[0] for row in rows_of(graph, "Beside").values()) == 4_000
    with pytest.raises(KeyConflict, match="line 2502: Shelf: the id 's02500' exists already"):
        graph.load([*(shelf(f"t{number}") for number in range(2_501)), *map(shelf, codes[2_500:])], mode="append")
