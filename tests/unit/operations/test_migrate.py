"""Schema changes on graphs with data: effects on rows, history and other branches."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from omnigraph.errors import (
    Conflict,
    ConstraintViolation,
    OmniGraphError,
    SchemaChangeError,
    TypeCheckError,
    TypeNotFound,
)
from omnigraph.graph import Graph
from support.writes import (
    edge,
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

BASE = "node P { k: String @key  n: I32? }\nnode Q { k: String @key }\nedge E: P -> Q { w: F64? }\n"


@pytest.fixture
def graph(tmp_path):
    return new_graph(
        tmp_path, BASE, node("P", k="a", n=1), node("P", k="b"), node("Q", k="q"), edge("E", "a", "q", id_="e", w=0.5)
    )


def kinds(result: Any) -> list[str]:
    return [step.to_json()["kind"] for step in result.steps]


# -- each step ---------------------------------------------------------------------------------------


def test_add_type(graph):
    result = graph.apply_schema(BASE + "node R { v: I32? }\nedge F: R -> P\n")
    assert kinds(result) == ["add_type", "add_type"]
    assert (rows_of(graph, "R"), rows_of(graph, "F")) == ({}, {})
    graph.load([node("R", id_="r", v=3), edge("F", "r", "a")], mode="append")
    assert rows_of(graph, "R") == {"r": {"v": 3}}
    assert graph.verify() == []


ADDED = named([
    ("String", "String?", "x", "x"),
    ("Bool", "Bool?", True, True),
    ("I32", "I32?", -1, -1),
    ("U64", "U64?", 2**64 - 1, 2**64 - 1),
    ("F32", "F32?", 0.5, 0.5),
    ("Date", "Date?", "2024-01-01", 19_723),
    ("DateTime", "DateTime?", 1, 1),
    ("enum", "enum(a, b)?", "a", "a"),
    ("list", "[Date]?", [1], [1]),
    ("Vector", "Vector(2)?", [1, 2], [1.0, 2.0]),
    ("Blob", "Blob?", "base64:AA==", "base64:AA=="),
])  # fmt: skip


@pytest.mark.parametrize(("type_", "given", "stored"), ADDED.values(), ids=ADDED)
def test_added_property_is_null_in_existing_rows(graph, type_, given, stored):
    changed = BASE.replace("n: I32?", f"n: I32?  extra: {type_}").replace("w: F64?", f"w: F64?  extra: {type_}")
    assert kinds(graph.apply_schema(changed)) == ["add_property", "add_property"]
    assert rows_of(graph, "P") == {"a": {"extra": None, "k": "a", "n": 1}, "b": {"extra": None, "k": "b", "n": None}}
    assert rows_of(graph, "E") == {"e": {"extra": None, "from": "a", "to": "q", "w": 0.5}}
    graph.load([node("P", k="c", extra=given)], mode="append")
    graph.mutate('query q() { update P set { n: 9 } where k = "c" }')
    assert rows_of(graph, "P")["c"] == {"extra": stored, "k": "c", "n": 9}
    assert rows_of(graph, "P")["a"]["n"] == 1
    assert graph.verify() == []


RENAMED = """
node Person @rename_from("P") { k: String @key  age: I32? @rename_from("n") }
node Q { k: String @key }
edge Has: Person -> Q @rename_from("E") { weight: F64? @rename_from("w") }
"""


def test_renames_keep_rows_ids_and_history(graph):
    before = graph.snapshot()
    result = graph.apply_schema(RENAMED)
    assert sorted(kinds(result)) == ["rename_property", "rename_property", "rename_type", "rename_type"]
    assert rows_of(graph, "Person") == {"a": {"age": 1, "k": "a"}, "b": {"age": None, "k": "b"}}
    assert rows_of(graph, "Has") == {"e": {"from": "a", "to": "q", "weight": 0.5}}
    after = graph.snapshot()
    for old, new in (("node:P", "node:Person"), ("edge:E", "edge:Has")):
        assert after.tables[new].folder == before.tables[old].folder
        assert after.tables[new].pin.table_id == before.tables[old].pin.table_id
        assert after.tables[new].pin.incarnation == before.tables[old].pin.incarnation
    assert "node:P" not in after.tables
    with pytest.raises(TypeNotFound):
        graph.to_arrow("P")
    # History keeps the old names.
    assert rows_of(graph, "P", at=before.commit_id) == {"a": {"k": "a", "n": 1}, "b": {"k": "b", "n": None}}
    assert rows_of(graph, "E", at=before.commit_id) == {"e": {"from": "a", "to": "q", "w": 0.5}}
    with pytest.raises(TypeNotFound):
        graph.to_arrow("Person", at=before.commit_id)
    graph.mutate(
        'query q() { update Person set { age: 5 } where age = 1 insert Has { from: "b", to: "q", weight: 2.5 } }'
    )
    assert rows_of(graph, "Person")["a"]["age"] == 5
    assert graph.verify() == []


def test_renaming_only_a_type_writes_no_table(graph):
    before = graph.snapshot().tables["node:P"].pin
    graph.apply_schema(BASE.replace("node P", 'node Person @rename_from("P")').replace("P ->", "Person ->"))
    after = graph.snapshot().tables["node:Person"].pin
    assert (after.lance_version, after.table_version) == (before.lance_version, before.table_version)


def test_composite_ids_stay_when_a_key_column_is_renamed(tmp_path):
    graph = new_graph(tmp_path, "node B { ward: String  no: I32  @key(ward, no) }", node("B", ward="n", no=7))
    graph.apply_schema('node B { area: String @rename_from("ward")  no: I32  @key(area, no) }')
    assert rows_of(graph, "B") == {'["7","n"]': {"area": "n", "no": 7}}
    graph.load([node("B", area="s", no=8), node("B", area="n", no=7, id_='["7","n"]')], mode="merge")
    assert ids_of(graph, "B") == ['["7","n"]', '["8","s"]']


def test_old_name_of_a_renamed_type_can_be_used_again(graph):
    graph.apply_schema(RENAMED)
    graph.apply_schema(RENAMED.replace(' @rename_from("P")', "") + "node P { z: I32? }\n")
    graph.load([node("P", id_="new", z=1)], mode="append")
    assert rows_of(graph, "P") == {"new": {"z": 1}}
    assert ids_of(graph, "Person") == ["a", "b"]
    tables = graph.snapshot().tables
    assert tables["node:P"].folder != tables["node:Person"].folder
    assert graph.verify() == []


DROPPED = "node P { k: String @key }\nnode Q { k: String @key }\n"


def test_a_drop_is_readable_in_history(graph):
    old = graph.commits()[0].id
    result = graph.apply_schema(DROPPED, allow_data_loss=True)
    assert kinds(result) == ["drop_property", "drop_type"]
    assert rows_of(graph, "P") == {"a": {"k": "a"}, "b": {"k": "b"}}
    with pytest.raises(TypeNotFound):
        graph.to_arrow("E")
    assert rows_of(graph, "P", at=old)["a"] == {"k": "a", "n": 1}
    assert rows_of(graph, "E", at=old) == {"e": {"from": "a", "to": "q", "w": 0.5}}
    assert graph.verify() == []


def test_dropped_and_added_again_is_another_type(graph):
    old = graph.snapshot().tables["edge:E"]
    graph.apply_schema(BASE.replace("edge E: P -> Q { w: F64? }", ""), allow_data_loss=True)
    graph.apply_schema(BASE)
    new = graph.snapshot().tables["edge:E"]
    assert new.pin.table_id != old.pin.table_id
    assert new.folder != old.folder
    assert rows_of(graph, "E") == {}


def test_enum_accepts_its_new_values(tmp_path):
    schema = "node P { k: String @key  m: enum(a, b)? }\nedge E: P -> P { m: enum(x)? }\n"
    graph = new_graph(tmp_path, schema, node("P", k="1", m="a"))
    graph.branch_create("side")
    before = graph.snapshot().tables["node:P"].pin
    with pytest.raises(ConstraintViolation):
        graph.load([node("P", k="2", m="c")], mode="append")
    result = graph.apply_schema(schema.replace("enum(a, b)", "enum(c, a, b)").replace("enum(x)", "enum(x, y)"))
    assert kinds(result) == ["extend_enum", "extend_enum"]
    graph.load([node("P", k="2", m="c"), edge("E", "2", "1", m="y")], mode="append")
    assert before.lance_version + 1 >= graph.snapshot().tables["node:P"].pin.lance_version
    with pytest.raises(ConstraintViolation, match=r"allowed are 'a', 'b'$"):
        graph.load([node("P", k="2", m="c")], mode="append", branch="side")


def test_index_and_descriptions_write_no_table(graph):
    pins = {key: table.pin for key, table in graph.snapshot().tables.items()}
    changed = BASE.replace("n: I32?", 'n: I32? @index @description("how many")').replace(
        "node Q", 'node Q @instruction("ask")'
    )
    result = graph.apply_schema(changed)
    assert sorted(kinds(result)) == ["add_constraint", "update_property_metadata", "update_type_metadata"]
    assert {key: table.pin for key, table in graph.snapshot().tables.items()} == pins
    assert result.applied
    graph.ensure_indices()
    assert graph.mutate("query q() { update P set { n: 2 } where n = 1 }").affected_nodes == 1


def test_unaffected_indexes_are_kept(graph):
    graph.ensure_indices()
    before = graph.snapshot().tables["node:Q"].pin
    graph.apply_schema(BASE.replace("n: I32?", "n: I32?  extra: I32?"))
    assert graph.snapshot().tables["node:Q"].pin == before


@pytest.mark.parametrize("changed", [
    "node P { k: String @key }",
    'node P { k: String @key  m: I32? @index @rename_from("n") }',
    "node P { k: String @key  n: I32? @index  t: String? @index }",
])  # fmt: skip
def test_changes_of_indexed_columns(tmp_path, changed):
    graph = new_graph(
        tmp_path, "node P { k: String @key  n: I32? @index }", *(node("P", k=str(n), n=n) for n in range(20))
    )
    graph.ensure_indices()
    graph.apply_schema(changed, allow_data_loss=True)
    assert len(ids_of(graph, "P")) == 20
    graph.ensure_indices()
    graph.optimize()
    if "n: I32?" in changed or "m: I32?" in changed:
        name = "m" if "m: I32?" in changed else "n"
        assert graph.mutate(f"query q() {{ update P set {{ {name}: 99 }} where {name} >= 15 }}").affected_nodes == 5
    assert graph.mutate('query q() { delete P where k = "3" }').affected_nodes == 1
    assert graph.verify() == []


# -- migrations --------------------------------------------------------------------------------------


def test_a_copy_of_the_schema_that_cannot_be_written_does_not_fail_the_migration(graph, caplog):
    copy = Path(graph.uri) / "_schema.pg"
    copy.unlink()
    copy.mkdir()
    text = BASE.replace("n: I32?", "n: I32?  extra: I32?")
    result = graph.apply_schema(text)
    assert (result.commit_id, graph.schema) == (graph.commits()[0].id, text)
    assert "the readable copy of the schema is not current" in caplog.text


def test_migration_is_one_commit_with_its_schema(graph):
    before = len(graph.commits())
    text = BASE.replace("n: I32?", "n: I32?  extra: I32?") + "node R {}\n// the end\n"
    result = graph.apply_schema(text, actor="act-ana", message="more")
    commit = graph.commits()[0]
    assert len(graph.commits()) == before + 1
    assert (commit.id, commit.kind, commit.actor, commit.message) == (
        result.commit_id,
        "schema_apply",
        "act-ana",
        "more",
    )
    assert result.manifest_version == commit.manifest_version
    assert graph.schema == text
    assert (Path(graph.uri) / "_schema.pg").read_text() == text
    assert result.to_json() == {
        "supported": True,
        "applied": True,
        "manifest_version": commit.manifest_version,
        "commit_id": commit.id,
        "step_count": 2,
        "steps": [
            {
                "kind": "add_property", "type_kind": "node", "type_name": "P", "property_name": "extra",
                "property_type": {"scalar": "I32", "nullable": True, "list": False, "enum_values": None},
            },
            {"kind": "add_type", "type_kind": "node", "name": "R"},
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [BASE, "// other words\n" + BASE, "node Q { k: String @key }\n" + BASE.replace("node Q { k: String @key }\n", "")],
)
def test_migration_without_changes_makes_no_commit(graph, text):
    before, files = everything(graph), manifest_files(graph)
    result = graph.apply_schema(text)
    assert (result.supported, result.applied, result.commit_id, result.steps) == (True, False, None, ())
    assert result.manifest_version == graph.snapshot().version
    assert everything(graph) == before
    assert manifest_files(graph) == files


UNSUPPORTED = named(
    [
        (
            "required property",
            BASE.replace("n: I32?", "n: I32?  must: I32"),
            "OG-MF-103",
            "cannot change node:P.must: [OG-MF-103] ",
        ),
        (
            "another type",
            BASE.replace("n: I32?", "n: I64?"),
            "OG-MF-106",
            "cannot change node:P.n: [OG-MF-106] the type changes from I32? to I64?",
        ),
        ("nullability", BASE.replace("n: I32?", "n: I32"), "OG-MF-106", "cannot change node:P.n: [OG-MF-106] "),
        (
            "cardinality",
            BASE.replace("P -> Q", "P -> Q @card(0..1)"),
            "schema_change",
            "cannot change edge:E: @card changes",
        ),
        (
            "ends",
            BASE.replace("P -> Q", "Q -> P"),
            "schema_change",
            "cannot change edge:E: the source changes from P to Q",
        ),
        (
            "unique",
            BASE.replace("n: I32?", "n: I32? @unique"),
            "schema_change",
            "cannot change node:P.n: @unique(n) cannot be added",
        ),
        (
            "key",
            BASE.replace("node Q { k: String @key }", "node Q { k: String }"),
            "schema_change",
            "cannot change node:Q.k: @key(k) cannot be removed",
        ),
        (
            "much at once",
            BASE.replace("n: I32?", "n: I64?  must: I32  fine: I32?") + "node R {}\n",
            "OG-MF-103",
            "OG-MF-106",
        ),
    ]
)


@pytest.mark.parametrize(("text", "code", "part"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_unsupported_plan_changes_nothing_and_reports_every_reason(graph, text, code, part):
    before, files = everything(graph), manifest_files(graph)
    plan = graph.plan_schema(text)
    assert not plan.supported
    with pytest.raises(SchemaChangeError) as caught:
        graph.apply_schema(text, allow_data_loss=True)
    assert caught.value.code == code
    assert part in caught.value.message
    for step in plan.unsupported:
        assert step.describe() in caught.value.message
    assert caught.value.message.endswith("; nothing was changed")
    assert everything(graph) == before
    assert manifest_files(graph) == files


@pytest.mark.parametrize(
    "text",
    [
        "node P {",
        "node P { k: Strin }",
        "edge E: P -> Nobody",
        BASE.replace("n: I32?", 'n: I32? @rename_from("zzz")').replace("n: I32?", "m: I32?"),
    ],
)
def test_schema_that_does_not_compile_changes_nothing(graph, text):
    before = everything(graph)
    with pytest.raises(OmniGraphError):
        graph.apply_schema(text)
    assert everything(graph) == before


def test_plan_writes_nothing(graph):
    before, files = everything(graph), manifest_files(graph)
    plan = graph.plan_schema(DROPPED, allow_data_loss=True)
    assert [step.to_json()["kind"] for step in plan.steps] == ["drop_property", "drop_type"]
    assert everything(graph) == before
    assert manifest_files(graph) == files


def test_schema_from_a_file(graph, tmp_path):
    path = tmp_path / "next.pg"
    path.write_text(BASE + "node R {}\n")
    assert graph.plan_schema(path).supported
    assert graph.apply_schema(path).applied
    assert "R" in graph.catalog().nodes


# -- branches ----------------------------------------------------------------------------------------


def test_each_branch_has_its_own_schema(graph):
    graph.branch_create("side")
    graph.apply_schema(BASE.replace("n: I32?", "n: I32?  extra: I32?"), branch="side")
    assert graph.schema == BASE
    assert (Path(graph.uri) / "_schema.pg").read_text() == BASE
    graph.load([node("P", k="c", extra=1)], mode="append", branch="side")
    assert rows_of(graph, "P", branch="side")["c"]["extra"] == 1
    with pytest.raises(OmniGraphError, match="has no property 'extra'"):
        graph.load([node("P", k="c", extra=1)], mode="append")
    with pytest.raises(TypeCheckError):
        graph.mutate("query q() { update P set { extra: 1 } where n = 1 }")
    assert rows_of(graph, "P")["a"] == {"k": "a", "n": 1}
    assert "extra" in graph.on("side").schema
    assert graph.verify() == []


def test_types_added_on_two_branches_are_different(graph):
    graph.branch_create("side")
    for branch in ("main", "side", "main", "side"):
        names = [f"R{number}" for number in range(1 + len(graph.catalog(branch).nodes) - 2)]
        graph.apply_schema(BASE + "".join(f"node {name} {{}}\n" for name in names), branch=branch)
    tables = {branch: graph.snapshot(branch).tables for branch in ("main", "side")}
    new = [
        (table.folder, table.pin.table_id, table.pin.incarnation)
        for one in tables.values()
        for key, table in one.items()
        if ":R" in key
    ]
    assert len(new) == 4
    for part in zip(*new, strict=True):
        assert len(set(part)) == 4
    numbers: list[int] = []
    for branch in ("main", "side"):
        ir = json.loads(graph.snapshot(branch).schema.ir)
        numbers += [type_["id"] for type_ in ir["nodes"] if type_["name"].startswith("R")]
    assert len(set(numbers)) == 4


# -- concurrency -------------------------------------------------------------------------------------


def test_migration_after_a_write_sees_its_rows(graph, monkeypatch):
    other = reopened(graph)
    interfere(monkeypatch, lambda: other.load([node("P", k="c", n=3)], mode="append"))
    graph.apply_schema(BASE.replace("n: I32?", 'm: I32? @rename_from("n")'))
    assert rows_of(graph, "P")["c"] == {"k": "c", "m": 3}


def test_write_after_a_migration_is_compiled_again(graph, monkeypatch):
    other = reopened(graph)
    interfere(monkeypatch, lambda: other.apply_schema(BASE.replace("n: I32?", "n: I32?  extra: I32?")))
    graph.mutate('query q() { insert P { k: "c", n: 3 } }')
    assert rows_of(graph, "P")["c"] == {"extra": None, "k": "c", "n": 3}
    interfere(monkeypatch, lambda: other.apply_schema(BASE.replace("n: I32?", 'm: I32? @rename_from("n")')))
    with pytest.raises(TypeCheckError, match="'P' has no property 'n'"):
        graph.mutate('query q() { insert P { k: "d", n: 3 } }')
    assert ids_of(graph, "P") == ["a", "b", "c"]


def test_loser_of_two_migrations_gets_an_error(graph, monkeypatch):
    """A new plan would drop the additions of the winner."""
    other = reopened(graph)
    interfere(monkeypatch, lambda: other.apply_schema(BASE.replace("n: I32?", "n: I32?  first: I32?")))
    with pytest.raises(Conflict) as caught:
        graph.apply_schema(BASE.replace("n: I32?", "n: I32?  second: I32?"))
    assert caught.value.code == "schema_changed"
    assert list(rows_of(graph, "P")["a"]) == ["first", "k", "n"]


def test_concurrent_migrations_of_two_branches_succeed(graph, monkeypatch):
    graph.branch_create("side")
    other = reopened(graph)
    interfere(monkeypatch, lambda: other.apply_schema(BASE + "node R {}\n", branch="side"))
    graph.apply_schema(BASE + "node S {}\n")
    assert "node:S" in graph.snapshot().tables
    assert "node:R" in graph.snapshot("side").tables
    assert graph.snapshot().tables["node:S"].pin.table_id != graph.snapshot("side").tables["node:R"].pin.table_id


def test_concurrent_migrations_and_writes_are_isolated(tmp_path):
    """Threads with their own handles: every commit has rows with exactly the columns of its schema."""
    graph = new_graph(tmp_path, "node P { k: String @key  n: I32? }")
    failures: list[BaseException] = []
    done: list[int] = []

    def write() -> None:
        mine = reopened(graph)
        for number in range(15):
            mine.load([node("P", k=f"w{number}", n=number)], mode="append")
            done.append(number)

    def change() -> None:
        mine = reopened(graph)
        for number in range(6):
            extra = "".join(f"  x{one}: I32?" for one in range(number % 3 + 1))
            mine.apply_schema(f"node P {{ k: String @key  n: I32?{extra} }}")

    def guarded(act: Any) -> None:
        try:
            act()
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=guarded, args=(act,)) for act in (write, change)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert {id_: row["n"] for id_, row in rows_of(graph, "P").items()} == {f"w{number}": number for number in done}
    seen = set()
    for commit in graph.commits():
        catalog = graph.catalog(at=commit.id)
        stored = graph.snapshot(at=commit.id).table("node:P").schema.names
        assert set(stored) == {"id", *catalog.nodes["P"].properties}
        seen.add(tuple(sorted(stored)))
    assert len(seen) > 1
    assert graph.verify() == []


def test_handle_of_another_process_sees_the_new_schema(graph):
    other: Graph = reopened(graph)
    assert ids_of(other, "P") == ["a", "b"]
    graph.apply_schema(BASE.replace("n: I32?", 'm: I32? @rename_from("n")'))
    assert rows_of(other, "P")["a"] == {"k": "a", "m": 1}
    assert other.mutate("query q() { update P set { m: 2 } where m = 1 }").affected_nodes == 1


# -- data loss ---------------------------------------------------------------------------------------

LOSSES = {
    "type": (BASE.replace("edge E: P -> Q { w: F64? }", ""), "edge:E: [OG-DS-103] dropping it removes 1 row"),
    "node type": ("node P { k: String @key  n: I32? }", "node:Q: [OG-DS-102] dropping it removes 1 row"),
    "property": (BASE.replace("  n: I32?", ""), "node:P.n: [OG-DS-104] dropping it removes 1 value"),
    "property of an edge type": (BASE.replace("{ w: F64? }", ""), "edge:E.w: [OG-DS-104] dropping it removes 1 value"),
    "property of a renamed type": (
        RENAMED.replace('  age: I32? @rename_from("n")', ""),
        "node:Person.n: [OG-DS-104] dropping it removes 1 value",
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_drop_of_data_needs_permission(graph, name):
    text, reason = LOSSES[name]
    before, files = everything(graph), manifest_files(graph)
    plan = graph.plan_schema(text)
    assert not plan.supported
    assert len(plan.losses) == len(plan.unsupported)
    with pytest.raises(SchemaChangeError) as caught:
        graph.apply_schema(text)
    assert reason in caught.value.message
    assert caught.value.code.startswith("OG-DS-")
    assert "allow_data_loss=True permits the losses" in caught.value.hint
    assert (everything(graph), manifest_files(graph)) == (before, files)
    result = graph.apply_schema(text, allow_data_loss=True)
    assert result.losses == plan.losses
    graph.revert(result.commit_id)
    assert [branch[2:] for branch in everything(graph)] == [branch[2:] for branch in before]


def test_a_drop_without_data_needs_no_permission(tmp_path):
    graph = new_graph(tmp_path, BASE, node("P", k="a"), node("Q", k="q"))
    result = graph.apply_schema(DROPPED)
    assert (kinds(result), result.losses) == (["drop_property", "drop_type"], ())


def test_rows_that_another_writer_adds_meanwhile_are_not_lost(tmp_path, monkeypatch):
    graph = new_graph(tmp_path, BASE, node("P", k="a"), node("Q", k="q"))
    other = reopened(graph)
    interfere(monkeypatch, lambda: other.load([edge("E", "a", "q")], mode="append"))
    with pytest.raises(OmniGraphError):
        graph.apply_schema(DROPPED)
    assert len(rows_of(graph, "E")) == 1


def test_an_empty_schema_is_refused(graph):
    before = everything(graph)
    for text in ("", "// all gone", "interface I { a: I32? }"):
        with pytest.raises(SchemaChangeError) as caught:
            graph.apply_schema(text, allow_data_loss=True)
        assert caught.value.code == "empty_schema"
    assert everything(graph) == before
