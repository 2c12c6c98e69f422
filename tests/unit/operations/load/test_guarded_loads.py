"""Loads under a guard: what records may name, which rows they may change, and what errors and rejects contain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import ConstraintViolation, Denied, KeyConflict, OmniGraphError, RecordError
from omnigraph.graph import Graph
from omnigraph.graph_open import init
from omnigraph.operations.load.load_request import LoadRequest
from omnigraph.operations.load.load_result import Reject
from omnigraph.pipeline.load import load_source
from omnigraph.pipeline.memory_source import divide
from omnigraph.pipeline.runner import InlineRunner
from omnigraph.query.plan import ir
from omnigraph.query.visibility import ROW, Visibility
from omnigraph.query.write_guard import WriteGuard
from omnigraph.types import PropertyType

SCHEMA = """
node Note {
  name: String @key
  tenant: String
  state: String?
  pay: I64?
  code: String?
  secret: String?
  @range(pay, 0..1000)
  @unique(code)
  @unique(secret, state)
}
node Log {
  text: String
}
node Vault {
  name: String @key
  canary: String
}
node Sealed {
  name: String @key
}
edge Cites: Note -> Note @card(0..3) {
  weight: I64?
  @unique(src, dst)
}
edge Rates: Note -> Note {
  stars: I64?
  @unique(src, dst, stars)
}
edge Holds: Sealed -> Note
"""
INT = PropertyType("I64", nullable=True)
TEXT = PropertyType("String", nullable=True)


def compare(op: Any, name: str, value: Any, type_: PropertyType = ir.STRING) -> ir.Condition:
    return ir.Compare(op, ir.Prop(ROW, name, type_), ir.Const(value, type_.with_nullable(False)))


ACME = compare("=", "tenant", "acme")
OPEN = compare("=", "state", "open", TEXT)
NAMED_A = compare("=", "name", "a")
FIVE_STARS = compare("=", "stars", 5, INT)
SEES = Visibility(
    {"node:Note": ACME, "node:Sealed": None},
    {
        ("node:Note", "pay"): NAMED_A,
        ("node:Note", "secret"): None,
        ("node:Vault", "canary"): None,
        ("edge:Rates", "stars"): FIVE_STARS,
    },
)
READER = WriteGuard(SEES)
EDITOR = WriteGuard(
    SEES,
    {
        ("row_insert", "node:Note"): ACME,
        ("row_update", "node:Note"): OPEN,
        ("row_delete", "node:Note"): NAMED_A,
        ("row_delete", "edge:Cites"): compare(">", "weight", 1, INT),
    },
    {("node:Note", "pay"): NAMED_A, ("node:Note", "code"): None},
    {("row_update", "node:Note"): ("open-notes",)},
    {("node:Note", "pay"): ("pay-of-a",)},
)
CANARIES = ("xx", "xray", "777", "XCODE", "secret", "canary", "Sealed", "Holds", "sealed-s", "hidden-edge")
"""Parts of hidden rows, values and names; no error may contain one."""


def note(name: str, tenant: str | None = "acme", **more: Any) -> dict[str, Any]:
    return {"type": "Note", "data": {"name": name, **({} if tenant is None else {"tenant": tenant}), **more}}


def cites(source: str, target: str, **data: Any) -> dict[str, Any]:
    return {"edge": "Cites", "from": source, "to": target, "data": data}


def rates(source: str, target: str, **data: Any) -> dict[str, Any]:
    return {"edge": "Rates", "from": source, "to": target, "data": data}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = init(tmp_path / "graph", SCHEMA, sync=False, environ={})
    graph.load(
        [
            note("a", state="open", pay=1, code="A", secret="sa"),
            note("b", state="open", pay=2, code="B", secret="sb"),
            note("c", state="shut", pay=3),
            note("xray", "xx", state="open", pay=777, code="XCODE", secret="sx"),
            {"type": "Sealed", "data": {"name": "sealed-s"}},
            cites("a", "b", weight=5),
            cites("c", "b", weight=1),
            cites("b", "xray", weight=9, id="hidden-edge"),
            rates("a", "b", stars=5, id="r5"),
            rates("a", "b", stars=4, id="r4"),
        ],
        mode="merge",
    )
    return graph


def guarded(graph: Graph, guard: WriteGuard = EDITOR) -> Graph:
    return Graph(graph._context.with_guard(guard))


def load(graph: Graph, records: Any, guard: WriteGuard = EDITOR, mode: str = "merge", **more: Any) -> Any:
    return guarded(graph, guard).load(records, mode=mode, **more)


def stored(graph: Graph) -> dict[str, Any]:
    tables = {name: graph.to_arrow(name).to_pylist() for name in ("Note", "Log", "Vault", "Cites", "Rates")}
    return {name: sorted(rows, key=lambda row: row["id"]) for name, rows in tables.items()}


def row(graph: Graph, name: str) -> dict[str, Any]:
    return next(row for row in graph.to_arrow("Note").to_pylist() if row["id"] == name)


def refused(
    graph: Graph,
    error: type[OmniGraphError],
    records: Any,
    *parts: str,
    guard: WriteGuard = EDITOR,
    mode: str = "merge",
    given: tuple[str, ...] = (),
    **more: Any,
) -> OmniGraphError:
    """Load, and check the error, that nothing was written, and that the error contains no canary but those `given`."""
    before = stored(graph), graph.snapshot().commit_id
    with pytest.raises(error) as caught:
        load(graph, records, guard, mode, **more)
    text = f"{caught.value.message} {caught.value.hint}"
    for part in parts:
        assert part in text, text
    for canary in CANARIES:
        assert canary not in text or canary in given, text
    assert (stored(graph), graph.snapshot().commit_id) == before
    return caught.value


# -- names ---------------------------------------------------------------------------------------


def test_hidden_types_and_properties_do_not_exist_for_records(graph):
    seal = {"type": "Sealed", "data": {"name": "t"}}
    hold = {"edge": "Holds", "from": "t", "to": "a"}
    known = refused(graph, RecordError, [seal], "there is no node type 'Sealed'", given=("Sealed",))
    assert "Note" in (known.hint or "")
    refused(graph, RecordError, [hold], "there is no edge type 'Holds'", given=("Holds",))
    refused(graph, RecordError, [note("a", secret="s")], "has no property 'secret'", given=("secret",))
    unknown = refused(graph, RecordError, [note("a", secrat="s")], "has no property 'secrat'")
    assert "code" in (unknown.hint or "")


def test_hidden_properties_do_not_exist_for_tables_and_files(graph, tmp_path):
    columns = {"name": ["a"], "tenant": ["acme"], "secret": ["s"]}
    refused(graph, OmniGraphError, {"Note": pa.table(columns)}, "'secret'", given=("secret",))
    path = tmp_path / "Note.csv"
    path.write_text("name,tenant,secret\na,acme,s\n")
    refused(graph, OmniGraphError, path, "'secret'", given=("secret",))
    lines = tmp_path / "notes.jsonl"
    lines.write_text(json.dumps(note("a", secret="s")) + "\n")
    refused(graph, RecordError, lines, "'secret'", given=("secret",))


def test_a_required_hidden_property_is_not_named(graph):
    vault = {"type": "Vault", "data": {"name": "v"}}
    text = "requires a property that you cannot read"
    for mode in ("merge", "append", "overwrite"):
        refused(graph, RecordError, [vault], text, guard=READER, mode=mode)
    rejects: list[Reject] = []
    load(graph, [vault], READER, rejects=rejects)
    assert (rejects[0].property, rejects[0].rule) == (None, "required")


# -- merge ---------------------------------------------------------------------------------------


def test_an_absent_withheld_property_keeps_its_value(graph):
    for missing in ("keep", "null"):
        load(graph, [note("b", state="open")], missing=missing, guard=WriteGuard(SEES))
        assert (row(graph, "b")["pay"], row(graph, "b")["secret"]) == (2, "sb")
    assert row(graph, "b")["code"] is None


def test_an_absent_property_that_is_set_to_null_is_assigned(graph):
    refused(graph, Denied, [note("b", state="open")], "'property_write' of 'code' of Note 'b'", missing="null")
    load(graph, [note("n", state="open")], missing="null")
    load(graph, [note("b", state="open")])
    assert row(graph, "b")["code"] == "B"


def test_update_needs_row_update_for_the_old_and_the_new_row(graph):
    load(graph, [note("b", "new")])
    assert row(graph, "b")["tenant"] == "new"
    error = refused(graph, Denied, [note("c", state="open")], "'row_update'", "Note 'c'", "open-notes")
    assert isinstance(error, Denied)
    assert error.rules == ("open-notes",)
    refused(graph, Denied, [note("a", state="shut")], "Note 'a' as it would be after the change")


def test_insert_needs_row_insert(graph):
    load(graph, [note("n")])
    refused(graph, Denied, [note("m", "yy")], "'row_insert'", "Note 'm'")
    refused(graph, Denied, [note("m", "yy")], "'row_insert'", "Note 'm'", mode="append")


def test_assignment_needs_property_write_also_with_an_equal_value(graph):
    load(graph, [note("a", pay=9)])
    assert row(graph, "a")["pay"] == 9
    for value in (2, 3, None):
        refused(graph, Denied, [note("b", pay=value)], "'property_write' of 'pay' of Note 'b'", "pay-of-a")
    refused(graph, Denied, [note("n", code="N")], "'property_write' of 'code'", mode="append")
    refused(graph, Denied, [note("b", pay=2), note("b")], "'property_write' of 'pay'")


def test_a_record_with_the_key_of_a_hidden_row_is_a_key_conflict(graph):
    for mode in ("merge", "append"):
        error = refused(graph, ConstraintViolation, [note("xray")], "@unique violation on Note.name", mode=mode,
                        given=("xray",))  # fmt: skip
        assert not isinstance(error, KeyConflict)
        assert "'xray'" not in error.message
        refused(graph, Denied, [note("xray", "yy")], "'row_insert'", mode=mode, given=("xray",))


def test_a_partial_record_for_a_hidden_row_is_that_of_a_new_row(graph):
    hidden = refused(graph, RecordError, [note("xray", None, state="s")], "is new and needs tenant", given=("xray",))
    missing = refused(graph, RecordError, [note("none", None, state="s")], "is new and needs tenant")
    assert hidden.message == missing.message.replace("none", "xray")


def test_the_id_of_a_hidden_edge_is_taken(graph):
    edge = cites("a", "c", id="hidden-edge")
    refused(graph, ConstraintViolation, [edge], "@unique violation on Cites.id", given=("hidden-edge",))


def test_a_hidden_node_is_not_found(graph):
    hidden = refused(graph, ConstraintViolation, [cites("a", "xray")], "dst 'xray' not found in Note", given=("xray",))
    missing = refused(graph, ConstraintViolation, [cites("a", "none")], "dst 'none' not found in Note")
    assert hidden.message == missing.message.replace("none", "xray")
    assert hidden.hint == missing.hint


def test_edges_are_matched_by_visible_edges_and_values(graph):
    load(graph, [cites("a", "b", weight=6)])
    assert sorted(edge["weight"] for edge in stored(graph)["Cites"]) == [1, 6, 9]
    load(graph, [rates("a", "b", stars=5)], READER)
    assert len(stored(graph)["Rates"]) == 2
    # The stars of r4 are masked: the record is no update of it, and the rule says no more than its name.
    error = refused(graph, ConstraintViolation, [rates("a", "b", stars=4)], "@unique violation on Rates", guard=READER)
    assert "r4" not in error.message


def test_an_edge_is_not_matched_by_a_hidden_edge(graph):
    heavy = WriteGuard(Visibility({"edge:Cites": compare(">", "weight", 1, INT)}))
    error = refused(graph, ConstraintViolation, [cites("c", "b", weight=5)], "Cites.(dst, src)", guard=heavy)
    assert "'c'" not in error.message


# -- append and overwrite ------------------------------------------------------------------------


def test_append_refuses_the_id_of_a_visible_row_as_without_a_guard(graph):
    error = refused(graph, KeyConflict, [note("a")], "'a' exists already", mode="append")
    assert "merge" in (error.hint or "")


def test_overwrite_deletes_only_visible_rows(graph):
    refused(graph, Denied, [note("a"), note("xray")], "rows that you cannot read would be deleted", mode="overwrite",
            guard=READER)  # fmt: skip
    refused(graph, Denied, [cites("a", "b", weight=1)], "rows that you cannot read would be deleted",
            mode="overwrite", guard=READER)  # fmt: skip
    assert [edge["id"] for edge in stored(graph)["Rates"]] == ["r4", "r5"]
    load(graph, [rates("a", "b", stars=2, id="r")], READER, "overwrite")
    assert [edge["id"] for edge in stored(graph)["Rates"]] == ["r"]


def test_overwrite_needs_row_delete_and_row_insert(graph):
    log = {"type": "Log", "data": {"text": "t", "id": "l"}}
    load(graph, [log], READER)
    denies = WriteGuard(SEES, {("row_delete", "node:Log"): None})
    refused(graph, Denied, [log], "'row_delete' of Log 'l'", guard=denies, mode="overwrite")
    denies = WriteGuard(SEES, {("row_insert", "node:Log"): None})
    refused(graph, Denied, [log], "'row_insert' of a new Log", guard=denies, mode="overwrite")
    updates = WriteGuard(SEES, {("row_update", "node:Log"): None})
    load(graph, [log], updates, "overwrite")


def test_overwrite_names_no_hidden_edge_that_loses_its_node(graph):
    graph.mutate('delete Note where name = "xray"')
    graph.mutate("delete Cites where weight = 1")
    graph.load([{"edge": "Holds", "from": "sealed-s", "to": "c", "data": {"id": "hidden-edge"}}], mode="merge")
    error = refused(graph, ConstraintViolation, [note("a"), note("b")], "edges that you cannot read still end at it",
                    guard=READER, mode="overwrite")  # fmt: skip
    assert error.code == "orphan_violation"
    held = [note("a"), note("c")]
    visible = refused(graph, ConstraintViolation, held, "still points at it", guard=READER, mode="overwrite")
    assert "'b'" in visible.message


# -- constraints and rejects ---------------------------------------------------------------------


def test_constraints_with_hidden_rows_and_values_name_the_rule_only(graph):
    guard = WriteGuard(SEES)
    error = refused(graph, ConstraintViolation, [note("n", code="XCODE")], "@unique violation on Note.code",
                    guard=guard)  # fmt: skip
    assert "held by" not in error.message
    visible = refused(graph, ConstraintViolation, [note("n", code="A")], "'a'", guard=guard)
    assert "held by" in visible.message
    edges = [cites("b", name) for name in ("a", "b", "c")]
    card = refused(graph, ConstraintViolation, edges, "@card violation on edge Cites (max 3)", guard=guard)
    assert "'b'" not in card.message


def test_rejects_contain_nothing_hidden(graph, tmp_path):
    records = [
        note("xray"),
        note("n", code="XCODE"),
        cites("a", "xray"),
        cites("a", "none"),
        note("a", secret="s"),
        note("ok"),
    ]
    out = tmp_path / "rejects.jsonl"
    result = load(graph, records, WriteGuard(SEES), rejects=out)
    assert result.rejected_count == 5
    assert row(graph, "xray")["tenant"] == "xx"
    assert row(graph, "ok")["tenant"] == "acme"
    found = [json.loads(line) for line in out.read_text().splitlines()]
    reasons = {one["line"]: one["reason"] for one in found}
    assert reasons[1] == "@unique violation on Note.name"
    assert reasons[2] == "@unique violation on Note.code"
    assert reasons[3] == reasons[4].replace("none", "xray")
    text = out.read_text()
    assert not any(canary in text for canary in ("xx", "777", "hidden-edge", "sealed-s"))
    assert all(one["record"] == records[one["line"] - 1] for one in found)


def test_rejects_name_no_hidden_property(graph):
    graph.mutate('update Note set { secret: "sa", state: "shut" } where name = "b"')
    rejects: list[Reject] = []
    load(graph, [note("b", state="open")], WriteGuard(SEES), rejects=rejects)
    [reject] = rejects
    assert (reject.reason, reject.property, reject.rule) == ("@unique violation on Note", None, "unique")


def test_rejects_of_append_do_not_tell_that_a_hidden_id_exists(graph):
    rejects: list[Reject] = []
    load(graph, [note("xray"), note("a"), note("n")], WriteGuard(SEES), "append", rejects=rejects)
    assert [reject.reason for reject in rejects] == [
        "@unique violation on Note.name",
        "Note: the id 'a' exists already",
    ]
    assert row(graph, "n")["tenant"] == "acme"


def test_a_denied_record_ends_a_load_with_rejects(graph):
    rejects: list[Reject] = []
    refused(graph, Denied, [note("n"), note("m", "yy"), cites("a", "none")], "'row_insert'", rejects=rejects)
    assert rejects == []
    append = [note("a", "yy"), note("n")]
    refused(graph, Denied, append, "'row_insert'", rejects=rejects, mode="append")


# -- engines and branches ------------------------------------------------------------------------


def test_a_load_on_spark_is_refused(graph, tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text(json.dumps(note("n", state="open")) + "\n")
    refused(graph, Denied, path, "Spark", "engine='memory'", engine="spark")
    refused(graph, Denied, path, "Spark", spark=object())
    load(graph, path, engine="memory")
    load(graph, path)


def test_auto_chooses_memory_at_any_size(graph, tmp_path, tune):
    tune(memory_load_bytes_max=1, spark_bytes_min=1, spark_cores_min=1)
    path = tmp_path / "notes.jsonl"
    path.write_text(json.dumps(note("n", "yy")) + "\n")
    refused(graph, Denied, path, "'row_insert'")


def test_an_input_that_exceeds_the_memory_is_refused(graph, tmp_path, tune):
    path = tmp_path / "notes.jsonl"
    path.write_text("".join(json.dumps(note(f"n{number}")) + "\n" for number in range(100)))
    tune(decoded_bytes_max=1000)
    refused(graph, Denied, path, "exceeds the memory", "in several calls")


def test_records_that_exceed_the_memory_budget_are_refused(graph, tmp_path):
    small = og.open(tmp_path / "graph", memory="64MiB")
    rows = 6_000
    names = [f"n{number}" for number in range(rows)]
    table = pa.table({"name": names, "tenant": ["acme"] * rows, "state": ["y" * 1000] * rows})
    refused(small, Denied, {"Note": table}, "exceeds the memory", guard=WriteGuard(SEES), mode="append")


def test_a_job_refuses_a_guard_itself(graph, tmp_path):
    request = LoadRequest("merge", guard_of=lambda _: READER)
    with pytest.raises(Denied, match="load as a job"):
        load_source(graph._repository, InlineRunner(), divide([note("n")], 1 << 20), request)


POLICY = """
version: 2
groups: { staff: [ana], admins: [root] }
rows: { default: allow }
rules:
  - id: work
    allow: { actors: { any: true }, role: maintainer }
  - id: acme
    allow: { actors: { group: staff }, actions: [row_read, row_insert, row_update], types: [Note],
             when: 'resource.tenant == "acme"' }
  - id: everything
    allow: { actors: { group: admins }, actions: [row_read, row_insert, row_update, row_delete], types: [Note] }
  - id: drafts
    allow: { actors: { any: true }, actions: [row_read], types: [Note], branches: ["draft/*"] }
"""


@pytest.fixture
def place(graph, tmp_path) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path


def opened(place: Path, actor: str) -> og.Graph:
    return og.open(place / "graph", policy=place / "policy.yaml", actor=actor)


def test_the_rules_of_a_policy_limit_loads(place, graph):
    ana = opened(place, "ana")
    ana.load([note("n")], mode="merge")
    with pytest.raises(Denied, match="row_insert"):
        ana.load([note("m", "yy")], mode="merge")
    with pytest.raises(ConstraintViolation, match=r"@unique violation on Note\.name$"):
        ana.load([note("xray")], mode="merge")
    with pytest.raises(Denied, match="rows that you cannot read"):
        ana.load([note("n")], mode="overwrite")
    opened(place, "root").load([note("xray", "zz")], mode="merge")
    assert row(graph, "xray")["tenant"] == "zz"


def test_ingest_applies_the_rules_of_its_branch(place):
    ana = opened(place, "ana")
    result = ana.ingest([note("n")], branch="work")
    assert result.branch_created
    with pytest.raises(Denied, match="row_insert"):
        ana.ingest([note("m", "yy")], branch="work")


def test_ingest_creates_no_branch_that_shows_other_rows(place, graph):
    with pytest.raises(Denied, match="show other rows and values"):
        opened(place, "ana").ingest([note("n")], branch="draft/a")
    assert "draft/a" not in graph.branches()
    opened(place, "root").ingest([note("n")], branch="draft/a")
    assert "draft/a" in graph.branches()


def test_aliases_of_hidden_nodes(graph):
    graph.load([note("old", "xx"), note("mine", state="open")], mode="merge")
    graph.unify("Note", "xray", "old")
    graph.unify("Note", "b", "mine")
    for mode in ("merge", "append"):
        refused(graph, ConstraintViolation, [note("old")], "@unique violation on Note.name", mode=mode)
        refused(graph, ConstraintViolation, [cites("a", "old")], "dst 'old' not found in Note", mode=mode)
        refused(graph, Denied, [note("old", "zz")], "'row_insert' of Note 'old'", mode=mode)
    refused(graph, RecordError, [note("old", None)], "Note 'old' is new and needs tenant")
    load(graph, [note("mine", state="open", pay=5), cites("mine", "a")], WriteGuard(SEES))
    assert row(graph, "b")["pay"] == 5
    rejects: list[Reject] = []
    load(graph, [note("old"), note("new")], WriteGuard(SEES), rejects=rejects)
    assert [(reject.line, reject.reason) for reject in rejects] == [(1, "@unique violation on Note.name")]
