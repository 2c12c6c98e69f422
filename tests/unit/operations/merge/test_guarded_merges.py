"""Merges and reverts under a guard: which changes are denied, which conflicts are shown, and what errors contain."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import Denied, InputError, MergeConflict, OmniGraphError, PolicyInvalid
from omnigraph.graph import Graph
from omnigraph.graph_open import init
from omnigraph.policy.describe import describe_rules
from omnigraph.policy.load import parse_policy_text
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
}
node Sealed {
  name: String @key
}
edge Cites: Note -> Note @card(0..2) {
  weight: I64?
}
edge Holds: Sealed -> Note
"""
TEXT = PropertyType("String", nullable=True)
INT = PropertyType("I64", nullable=True)


def compare(op: Any, name: str, value: Any, type_: PropertyType = ir.STRING) -> ir.Condition:
    return ir.Compare(op, ir.Prop(ROW, name, type_), ir.Const(value, type_.with_nullable(False)))


ACME = compare("=", "tenant", "acme")
NAMED_A = compare("=", "name", "a")
SEES = Visibility(
    {"node:Note": ACME, "node:Sealed": None}, {("node:Note", "pay"): NAMED_A, ("node:Note", "secret"): None}
)
READER = WriteGuard(SEES)
CANARIES = ("xx", "xray", "777", "XCODE", "secret", "Sealed", "Holds", "sealed-s", "hidden-edge")
"""Parts of hidden rows, values and names; no error may contain one."""


def note(name: str, tenant: str = "acme", **more: Any) -> dict[str, Any]:
    return {"type": "Note", "data": {"name": name, "tenant": tenant, **more}}


def cites(source: str, target: str, **data: Any) -> dict[str, Any]:
    return {"edge": "Cites", "from": source, "to": target, "data": data}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = init(tmp_path / "graph", SCHEMA, sync=False, environ={})
    graph.load(
        [
            note("a", state="open", pay=1, code="A", secret="sa"),
            note("b", state="open", pay=2, code="B", secret="sb"),
            note("c"),
            note("xray", "xx", pay=777, code="XCODE", secret="sx"),
            {"type": "Sealed", "data": {"name": "sealed-s"}},
            cites("a", "b", weight=5, id="ab"),
            cites("b", "xray", weight=9, id="hidden-edge"),
            {"edge": "Holds", "from": "sealed-s", "to": "c"},
        ],
        mode="merge",
    )
    graph.branch_create("work")
    return graph


def on_work(graph: Graph, *texts: str) -> None:
    for text in texts:
        graph.mutate(text, branch="work")


def guarded(graph: Graph, guard: WriteGuard = READER) -> Graph:
    return Graph(graph._context.with_guard(guard))


def merge(graph: Graph, guard: WriteGuard = READER, **more: Any) -> Any:
    return guarded(graph, guard).merge("work", **more)


def refused(
    graph: Graph, error: type[OmniGraphError], *parts: str, guard: WriteGuard = READER, **more: Any
) -> OmniGraphError:
    """Merge, and check the error, that nothing was written, and that the error contains nothing hidden."""
    head = graph.snapshot().commit_id
    with pytest.raises(error) as caught:
        merge(graph, guard, **more)
    text = f"{caught.value.message} {caught.value.hint} {getattr(caught.value, 'conflicts', '')}"
    for part in parts:
        assert part in text, text
    for canary in CANARIES:
        assert canary not in text, text
    assert graph.snapshot().commit_id == head
    return caught.value


def note_row(graph: Graph, name: str) -> dict[str, Any] | None:
    return next((row for row in graph.to_arrow("Note").to_pylist() if row["id"] == name), None)


# -- changes -------------------------------------------------------------------------------------


def test_a_merge_of_visible_rows_lands(graph):
    on_work(graph, 'update Note set { state: "s" } where name = "a"', 'insert Note { name: "n", tenant: "acme" }')
    on_work(graph, 'insert Cites { from: "a", to: "n" }')
    assert merge(graph).outcome == "fast_forward"
    assert note_row(graph, "a")["state"] == "s"
    on_work(graph, 'update Note set { state: "t" } where name = "b"')
    graph.mutate('update Note set { state: "u" } where name = "a"')
    assert merge(graph).outcome == "merged"
    assert (note_row(graph, "a")["state"], note_row(graph, "b")["state"]) == ("u", "t")


@pytest.mark.parametrize("moved", [False, True])
def test_changes_of_hidden_rows_are_denied(graph, moved):
    """The check is the same if the target adopts the table of the source and if it merges rows."""
    if moved:
        graph.mutate('update Note set { state: "moved" } where name = "c"')
        graph.load([cites("a", "c", id="more")], mode="merge")
    for texts, what in (
        (('update Note set { state: "s" } where name = "xray"',), "changed"),
        (("delete Cites where weight = 9", 'delete Note where name = "xray"'), "deleted"),
    ):
        on_work(graph, *texts)
        refused(graph, Denied, f"rows that you cannot read would be {what}")
        graph.branch_delete("work", force=True)
        graph.branch_create("work")


@pytest.mark.parametrize("moved", [False, True])
def test_each_row_needs_its_right(graph, moved):
    if moved:
        graph.mutate('update Note set { state: "moved" } where name = "c"')
        graph.load([cites("a", "c", id="more")], mode="merge")
    open_only = {("row_update", "node:Note"): compare("=", "state", "open", TEXT)}
    on_work(graph, 'update Note set { state: "shut" } where name = "a"')
    refused(graph, Denied, "'row_update' of Note 'a' as it would be", guard=WriteGuard(SEES, open_only))
    on_work(graph, 'update Note set { state: "open", code: "Z" } where name = "a"')
    refused(graph, Denied, "'property_write' of 'code' of Note 'a'",
            guard=WriteGuard(SEES, {}, {("node:Note", "code"): None}))  # fmt: skip
    merge(graph, WriteGuard(SEES, open_only, {("node:Note", "pay"): None, ("node:Note", "secret"): None}))
    on_work(graph, 'insert Note { name: "n", tenant: "acme" }')
    refused(graph, Denied, "'row_insert' of Note 'n'", guard=WriteGuard(SEES, {("row_insert", "node:Note"): None}))
    on_work(graph, "delete Cites where weight = 5")
    refused(graph, Denied, "'row_delete' of edge Cites 'ab'",
            guard=WriteGuard(SEES, {("row_delete", "edge:Cites"): None}))  # fmt: skip


def test_a_hidden_property_is_not_named(graph):
    on_work(graph, 'update Note set { secret: "t" } where name = "a"')
    denies = WriteGuard(SEES, {}, {("node:Note", "secret"): None})
    refused(graph, Denied, "'property_write' of a property of Note 'a'", guard=denies)


def test_a_hidden_new_row_is_not_named(graph):
    on_work(graph, 'insert Note { name: "xray2", tenant: "xx" }')
    refused(graph, Denied, "'row_insert' of a row that you cannot read",
            guard=WriteGuard(SEES, {("row_insert", "node:Note"): ACME}))  # fmt: skip
    merge(graph)
    assert note_row(graph, "xray2") is not None


def test_a_hidden_type_is_not_named(graph):
    on_work(graph, 'delete Sealed where name = "sealed-s"')
    refused(graph, Denied, "'row_delete' is denied: rows that you cannot read would be deleted")


def test_edges_at_hidden_nodes_are_hidden_conflicts(graph):
    on_work(graph, 'insert Cites { from: "a", to: "xray" }')
    error = refused(graph, MergeConflict, "1 conflict is hidden from you")
    assert isinstance(error, MergeConflict)
    assert error.conflicts == ()


def test_a_merge_that_changes_the_schema_is_denied(graph):
    graph.apply_schema(SCHEMA.replace("state: String?", "state: String?\n  extra: String?"), branch="work")
    refused(graph, Denied, "it changes the schema")


# -- conflicts -----------------------------------------------------------------------------------


def conflicting(graph: Graph, *names: str, **values: Any) -> None:
    """Update rows differently on both branches."""
    for branch, state in (("main", "here"), ("work", "there")):
        for name in names:
            given = ", ".join(f"{key}: {value[branch == 'work']}" for key, value in values.items())
            body = given or f'state: "{state}"'
            graph.mutate(f'update Note set {{ {body} }} where name = "{name}"', branch=branch)


def test_conflicts_in_hidden_rows_are_counted(graph):
    conflicting(graph, "a", "xray")
    error = refused(graph, MergeConflict, "node:Note:a (divergent_update)", "1 conflict is hidden from you")
    assert isinstance(error, MergeConflict)
    [conflict] = error.conflicts
    assert "secret" not in conflict.ours
    assert conflict.ours["pay"] == 1


def test_masked_values_are_not_in_conflicts(graph):
    conflicting(graph, "b", pay=(5, 6), state=('"h"', '"t"'))
    error = refused(graph, MergeConflict, "node:Note:b")
    assert isinstance(error, MergeConflict)
    [conflict] = error.conflicts
    assert conflict.properties == ("state",)
    assert [image["pay"] for image in (conflict.base, conflict.ours, conflict.theirs)] == [None] * 3
    assert "pay" not in conflict.message


def test_conflicts_in_masked_values_alone_are_hidden(graph):
    conflicting(graph, "b", pay=(5, 6))
    error = refused(graph, MergeConflict, "1 conflict is hidden from you")
    assert isinstance(error, MergeConflict)
    assert error.conflicts == ()


def test_hidden_conflicts_are_resolved_only_as_a_whole(graph):
    conflicting(graph, "xray")
    head = graph.snapshot().commit_id
    errors = []
    for name in ("xray", "none"):
        with pytest.raises(InputError) as caught:
            merge(graph, resolve={f"node:Note:{name}": "ours"})
        errors.append(caught.value)
    assert errors[0].message == errors[1].message.replace("none", "xray")
    assert graph.snapshot().commit_id == head
    refused(graph, Denied, "rows that you cannot read would be changed", resolve="theirs")
    assert merge(graph, resolve="ours").outcome == "merged"
    assert note_row(graph, "xray")["state"] == "here"


@pytest.mark.parametrize("choice", ["ours", "theirs", "columns", {"state": "s"}, None])
def test_hidden_conflicts_cannot_be_named(graph, choice):
    """The id of a hidden row, or of a conflict in masked values alone, is the id of no conflict."""
    conflicting(graph, "xray")
    conflicting(graph, "b", pay=(5, 6))
    errors = []
    for name in ("xray", "b", "none"):
        for resolve in ({f"node:Note:{name}": choice}, {f"node:Note:{name}": choice, "*": "ours"}):
            with pytest.raises(InputError) as caught:
                merge(graph, resolve=resolve)
            errors.append(caught.value)
            assert caught.value.code == "unknown_conflict"
    assert {error.message for error in errors} == {
        f"there is no conflict 'node:Note:{n}'" for n in ("xray", "b", "none")
    }


def test_hidden_conflicts_of_aliases_and_queries_cannot_be_named(graph):
    graph.load([note(name, "xx") for name in ("old", "one", "two")], mode="merge")
    graph.store_query("query q() { match { $n: Note } return { $n.name } }")
    graph.branch_delete("work", force=True)
    graph.branch_create("work")
    for branch, node in (("work", "one"), ("main", "two")):
        graph.unify("Note", node, "old", branch=branch)
        graph.store_query(f"query q() {{ match {{ $n: Note }} return {{ $n.name as {node} }} }}", branch=branch)
    for name, unknown in (("alias:Note:old", "alias:Note:none"), ("query:q", "query:none")):
        for one in (name, unknown):
            for resolve in ({one: "ours"}, {one: "ours", "*": "ours"}):
                error = refused(graph, InputError, f"there is no conflict '{one}'", resolve=resolve)
                assert error.code == "unknown_conflict"
    refused(graph, MergeConflict, "2 conflicts are hidden from you")
    assert graph.merge("work", resolve={"alias:Note:old": "ours", "query:q": "ours"}).outcome == "merged"


def test_a_resolution_cannot_test_a_guess_of_a_masked_value(graph):
    """A value that the caller sets is an assignment, also if it is equal to the stored one."""
    conflicting(graph, "b")
    guard = WriteGuard(SEES, {}, {("node:Note", "pay"): NAMED_A})
    errors = set()
    for guess in (2, 3):
        for state in ("here", "other"):
            choice = {"node:Note:b": {"state": state, "pay": guess}}
            error = refused(graph, Denied, "property_write", guard=guard, resolve=choice)
            errors.add(error.message)
    assert len(errors) == 1
    assert merge(graph, guard, resolve={"node:Note:b": {"state": "other"}}).outcome == "merged"


@pytest.mark.parametrize(
    ("hidden", "unknown"),
    [
        ("Sealed", "Absent"),
        ("Sealed.name", "Absent.name"),
        ("Note.secret", "Note.absent"),
        ("node:Sealed:sealed-s", "node:Absent:sealed-s"),
    ],
)
def test_resolutions_know_no_hidden_names(graph, hidden, unknown):
    conflicting(graph, "a")
    errors = []
    for name in (hidden, unknown):
        with pytest.raises(InputError) as caught:
            merge(graph, resolve={name: "ours"})
        word = re.split("[.:]", name)[1 if name.startswith(("Note", "node")) else 0]
        errors.append((caught.value.code, caught.value.message.replace(word, "…"), caught.value.hint))
    assert errors[0] == errors[1]


def test_hints_of_resolutions_propose_no_hidden_names(graph):
    conflicting(graph, "a")
    for name in ("Seald", "Note.secre"):
        refused(graph, InputError, resolve={name: "ours"})


def test_values_of_hidden_properties_are_those_of_unknown_ones(graph):
    conflicting(graph, "a")
    errors = []
    for name in ("secret", "absent"):
        with pytest.raises(InputError) as caught:
            merge(graph, resolve={"node:Note:a": {name: "x"}})
        errors.append((caught.value.code, caught.value.message.replace(name, "…")))
    assert errors[0] == errors[1]


def test_named_visible_conflicts_are_resolved(graph):
    conflicting(graph, "a")
    merge(graph, resolve={"node:Note:a": "theirs"})
    assert note_row(graph, "a")["state"] == "there"


def test_violations_with_hidden_rows_are_hidden(graph):
    graph.mutate('update Note set { code: "T" } where name = "xray"')
    on_work(graph, 'update Note set { code: "T" } where name = "c"')
    error = refused(graph, MergeConflict, "@unique violation on Note.code")
    assert isinstance(error, MergeConflict)
    assert [conflict.row_id for conflict in error.conflicts] == ["c"]


def test_violations_of_hidden_source_rows_are_hidden(graph):
    graph.mutate('update Note set { code: "T" } where name = "c"')
    on_work(graph, 'insert Note { name: "xray3", tenant: "xx", code: "T" }')
    error = refused(graph, MergeConflict, "1 conflict is hidden from you")
    assert isinstance(error, MergeConflict)
    assert error.conflicts == ()


@pytest.mark.parametrize("name", ["0xray", "zxray"])
def test_values_of_a_resolution_tell_nothing_about_hidden_source_rows(graph, name):
    conflicting(graph, "a")
    on_work(graph, f'insert Note {{ name: "{name}", tenant: "xx", code: "T" }}')
    refused(graph, MergeConflict, resolve={"node:Note:a": {"code": "T", "state": "s"}})


def test_cardinalities_of_hidden_nodes_are_not_named(graph):
    graph.load([cites("xray", "a")], mode="merge")
    on_work(graph, 'insert Cites { from: "xray", to: "b" }', 'insert Cites { from: "xray", to: "c" }')
    refused(graph, MergeConflict, "hidden from you")


def test_conflicts_of_hidden_types_are_hidden(tmp_path):
    schema = SCHEMA.replace("edge Holds: Sealed -> Note", "edge Holds: Sealed -> Note @card(0..1)")
    graph = init(tmp_path / "graph", schema, sync=False, environ={})
    graph.load([note("a"), note("b"), {"type": "Sealed", "data": {"name": "sealed-s"}}], mode="append")
    graph.branch_create("work")
    for branch, target in (("main", "a"), ("work", "b")):
        graph.load([{"edge": "Holds", "from": "sealed-s", "to": target}], mode="append", branch=branch)
    error = refused(graph, MergeConflict, "2 conflicts are hidden from you")
    assert isinstance(error, MergeConflict)
    assert error.conflicts == ()


def test_conflicts_of_schemas_are_hidden(graph):
    for branch, kind in (("main", "String"), ("work", "I64")):
        schema = SCHEMA.replace("node Sealed {", f"node Sealed {{\n  extra: {kind}?")
        graph.apply_schema(schema, branch=branch)
    error = refused(graph, MergeConflict, "hidden from you")
    assert isinstance(error, MergeConflict)
    assert error.conflicts == ()


# -- aliases -------------------------------------------------------------------------------------

PEOPLE = """
node Person {
  name: String @key
}
edge Knows: Person -> Person {
  since: I64?
  note: String?
}
edge WorksFor: Person -> Person {
  sealed: Bool?
  @unique(src, dst)
}
"""
UNSEALED = ir.Compare("=", ir.Prop(ROW, "sealed", PropertyType("Bool", nullable=True)), ir.Const(False, ir.BOOL))
SEES_EDGES = WriteGuard(
    Visibility({"edge:WorksFor": UNSEALED}, {("edge:Knows", "since"): compare("=", "note", "shown", TEXT)})
)


def person(name: str) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name}}


def edge(type_: str, source: str, id_: str, **data: Any) -> dict[str, Any]:
    return {"edge": type_, "from": source, "to": "p", "data": {"id": id_, **data}}


def united(path: Path, new: list[dict[str, Any]], known: list[dict[str, Any]], side: str = "main") -> Graph:
    """Return a graph in which one branch unifies a with b and has the edges `known`; the other one inserts `new`."""
    graph = init(path, PEOPLE, sync=False, environ={})
    graph.load([person(name) for name in "abpq"], mode="append")
    graph.branch_create("work")
    graph.unify("Person", "b", "a", branch=side)
    graph.load(known, mode="append", branch=side)
    graph.load(new, mode="append", branch="work" if side == "main" else "main")
    return graph


def starts(graph: Graph, type_: str) -> dict[str, str]:
    return {row["id"]: row["src"] for row in graph.to_arrow(type_).to_pylist()}


@pytest.mark.parametrize("sealed", [True, False])
def test_an_edge_is_not_folded_with_a_hidden_one(tmp_path, sealed):
    """Also not if the visible edge is the one that stays."""
    new, known = edge("WorksFor", "a", "e1", sealed=sealed), edge("WorksFor", "b", "e2", sealed=not sealed)
    graph = united(tmp_path / "graph", [new], [known])
    refused(graph, Denied, "an edge would be folded with one that you cannot read", guard=SEES_EDGES)
    with pytest.raises(Denied, match="one that you cannot read"):
        guarded(graph, SEES_EDGES).merge_preview("work")
    assert starts(graph, "WorksFor") == {"e2": "b"}
    assert graph.merge("work").outcome == "merged"


def test_an_edge_of_the_target_is_not_folded_with_a_hidden_one(tmp_path):
    new, known = edge("WorksFor", "a", "e1", sealed=False), edge("WorksFor", "b", "e2", sealed=True)
    graph = united(tmp_path / "graph", [new], [known], "work")
    refused(graph, Denied, "an edge would be folded with one that you cannot read", guard=SEES_EDGES)
    assert starts(graph, "WorksFor") == {"e1": "a"}


@pytest.mark.parametrize("side", ["main", "work"])
def test_a_fold_compares_no_hidden_values_of_edges(tmp_path, side):
    errors = set()
    for guess in (41, 42):
        new, known = edge("Knows", "a", "e1", since=guess), edge("Knows", "b", "e2", since=42)
        graph = united(tmp_path / str(guess), [new], [known], side)
        errors.add(refused(graph, Denied, "a value of the edges is hidden from you", guard=SEES_EDGES).message)
        with pytest.raises(Denied, match="a value of the edges is hidden from you"):
            guarded(graph, SEES_EDGES).merge_preview("work")
    assert len(errors) == 1


@pytest.mark.parametrize("guess", [41, 42])
def test_a_change_of_a_folded_edge_tells_no_hidden_value(tmp_path, guess):
    """The conflict is the same if another edge of the target has the masked value of the deleted edge."""
    graph = init(tmp_path / "graph", PEOPLE, sync=False, environ={})
    graph.load([*map(person, "abpq"), edge("Knows", "a", "e1", since=42)], mode="append")
    graph.branch_create("work")
    graph.mutate('delete Knows where from = "a"')
    graph.load([edge("Knows", "b", "e2", since=guess)], mode="append")
    graph.unify("Person", "b", "a")
    on_work(graph, 'update Knows set { note: "n" } where from = "a"')
    error = refused(graph, MergeConflict, guard=SEES_EDGES)
    assert isinstance(error, MergeConflict)
    assert [conflict.row_id for conflict in error.conflicts] == ["e1"]


@pytest.mark.parametrize("side", ["main", "work"])
def test_visible_edges_are_folded_and_others_are_re_pointed(tmp_path, side):
    new = [
        edge("Knows", "a", "k1", since=1, note="shown"),
        edge("Knows", "a", "k3", since=1, note="other"),
        edge("WorksFor", "a", "w1", sealed=False),
    ]
    known = [edge("Knows", "b", "k2", since=1, note="shown"), edge("WorksFor", "b", "w2", sealed=False)]
    graph = united(tmp_path / "graph", new, known, side)
    assert merge(graph, SEES_EDGES).outcome == "merged"
    assert set(starts(graph, "Knows").values()) == set(starts(graph, "WorksFor").values()) == {"b"}
    assert (len(starts(graph, "Knows")), len(starts(graph, "WorksFor"))) == (2, 1)


TRUST = """version: 2
groups: { staff: [ana], reviewers: [rita] }
rows: { default: allow }
rules:
  - { id: all, allow: { actors: { any: true }, actions: [read, change, branch_merge] } }
  - id: sealed
    deny: { actors: { any: true }, actions: [row_read], types: [WorksFor],
            when: 'resource has sealed && resource.sealed' }
  - id: reviewed
    allow: { actors: { group: reviewers }, actions: [branch_merge], row_check: skip }
"""


def test_row_check_skip_folds_edges(tmp_path):
    (tmp_path / "policy.yaml").write_text(TRUST)
    new, known = edge("WorksFor", "a", "e1", sealed=False), edge("WorksFor", "b", "e2", sealed=True)
    graph = united(tmp_path / "graph", [new], [known])
    with pytest.raises(Denied, match="one that you cannot read"):
        opened(tmp_path, "ana").merge("work")
    assert opened(tmp_path, "rita").merge_preview("work").hidden_conflicts == 0
    assert opened(tmp_path, "rita").merge("work").outcome == "merged"
    assert starts(graph, "WorksFor") == {"e2": "b"}


# -- reverts -------------------------------------------------------------------------------------


def test_a_revert_is_checked(graph):
    hidden = graph.mutate('update Note set { state: "s" } where name = "xray"').commit_id
    shown = graph.mutate('update Note set { state: "s" } where name = "a"').commit_id
    handle = guarded(graph)
    with pytest.raises(Denied, match="rows that you cannot read would be changed"):
        handle.revert(hidden)
    assert handle.revert(shown).commit_id is not None
    assert note_row(graph, "a")["state"] == "open"
    frozen = guarded(graph, WriteGuard(SEES, {("row_update", "node:Note"): None}))
    with pytest.raises(Denied, match="row_update"):
        frozen.revert(graph.snapshot().commit_id)


def test_hidden_conflicts_of_a_revert_are_counted(graph):
    commit = graph.mutate('update Note set { state: "s" } where name = "xray"').commit_id
    graph.mutate('update Note set { state: "t" } where name = "xray"')
    with pytest.raises(MergeConflict) as caught:
        guarded(graph).revert(commit)
    assert "1 conflict is hidden from you" in caught.value.message
    assert "xray" not in caught.value.message
    assert caught.value.conflicts == ()


# -- policies ------------------------------------------------------------------------------------

POLICY = """
version: 2
groups: { staff: [ana], reviewers: [rita] }
rows: { default: allow }
rules:
  - id: work
    allow: { actors: { any: true }, role: maintainer }
  - id: acme
    allow: { actors: { any: true }, actions: [row_read, row_insert, row_update, row_delete], types: [Note],
             when: 'resource.tenant == "acme"' }
  - id: drafts
    allow: { actors: { group: staff }, actions: [row_read], types: [Note], branches: ["draft/*"] }
  - id: reviewed
    allow: { actors: { group: reviewers }, actions: [branch_merge], row_check: skip }
"""


@pytest.fixture
def place(graph, tmp_path) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path


def opened(place: Path, actor: str) -> og.Graph:
    return og.open(place / "graph", policy=place / "policy.yaml", actor=actor)


def test_row_check_skip_trusts_a_merge(place, graph):
    on_work(graph, 'update Note set { state: "s" } where name = "xray"')
    with pytest.raises(Denied, match="rows that you cannot read"):
        opened(place, "ana").merge("work")
    assert opened(place, "rita").merge("work").outcome == "fast_forward"
    assert note_row(graph, "xray")["state"] == "s"


def test_row_check_skip_lands_edges_and_schemas_and_conceals_conflicts(place, graph):
    on_work(graph, 'insert Cites { from: "a", to: "xray" }')
    graph.apply_schema(SCHEMA.replace("state: String?", "state: String?\n  extra: String?"), branch="work")
    with pytest.raises(Denied, match="'schema_apply'"):
        opened(place, "rita").merge("work")
    schemas = "  - {id: schemas, allow: {actors: {group: reviewers}, actions: [schema_apply]}}"
    (place / "policy.yaml").write_text(f"{POLICY}{schemas}\n")
    rita = opened(place, "rita")
    assert rita.merge("work").schema_steps == ()
    conflicting(graph, "a", "xray")
    with pytest.raises(MergeConflict) as caught:
        rita.merge("work")
    assert [conflict.row_id for conflict in caught.value.conflicts] == ["a"]
    assert "1 conflict is hidden from you" in caught.value.message


def test_row_check_skip_does_not_cover_what_a_resolution_writes(place, graph):
    """The values and deletions of a resolution are changes of the caller, without a review."""
    rules = """  - id: pay
    allow: { actors: { group: staff }, actions: [property_read, property_write], types: [Note], properties: [pay],
             otherwise: mask }
  - id: kept
    deny: { actors: { group: reviewers }, actions: [row_delete], types: [Note] }
"""
    (place / "policy.yaml").write_text(POLICY + rules)
    conflicting(graph, "a")
    rita = opened(place, "rita")
    for choice, action in (({"state": "s", "pay": 1}, "property_write"), (None, "row_delete")):
        with pytest.raises(Denied, match=f"'{action}' of"):
            rita.merge("work", resolve={"node:Note:a": choice})
    assert rita.merge("work", resolve={"node:Note:a": {"state": "s"}}).outcome == "merged"
    assert note_row(graph, "a")["state"] == "s"


def test_row_check_skip_does_not_trust_a_revert(place, graph):
    commit = graph.mutate('update Note set { state: "s" } where name = "xray"').commit_id
    with pytest.raises(Denied, match="rows that you cannot read"):
        opened(place, "rita").revert(commit)


def test_a_merge_to_a_branch_that_shows_other_rows_is_denied(place, graph):
    graph.branch_create("draft/a")
    on_work(graph, 'insert Note { name: "n", tenant: "xx" }')
    with pytest.raises(Denied, match="show other rows and values of its source"):
        opened(place, "ana").merge("work", into="draft/a")


def test_row_check_in_rules_and_decisions(place):
    rules = parse_policy_text(POLICY)
    described = {rule["rule"]: rule["limits"] for rule in describe_rules(rules)}
    assert described["reviewed"] == "without a check of rows"
    assert "check" not in described["work"]
    access = opened(place, "rita")._context.access
    decision = access.decide("branch_merge", "work", "main")
    assert decision.skips_row_check
    assert "rule 'reviewed' skips the check of rows" in decision.message
    assert not opened(place, "ana")._context.access.decide("branch_merge", "work", "main").skips_row_check


def test_row_check_belongs_to_rules_that_allow_merges():
    for body in ("deny: { actors: { any: true }, actions: [branch_merge], row_check: skip }",
                 "allow: { actors: { any: true }, actions: [change], row_check: skip }",
                 "allow: { actors: { any: true }, actions: [branch_merge], row_check: never }"):  # fmt: skip
        with pytest.raises(PolicyInvalid) as caught:
            parse_policy_text(f"version: 2\nrules:\n  - id: r\n    {body}\n")
        assert "row_check" in str(caught.value.problems)


def test_a_hidden_node_that_loses_its_edges_is_not_named(tmp_path):
    graph = init(tmp_path / "graph", SCHEMA.replace("@card(0..2)", "@card(1..3)"), sync=False, environ={})
    edges = [cites("xray", "a", weight=weight) for weight in (1, 2)]
    graph.load([note("a"), note("xray", "xx"), *edges], mode="append")
    graph.branch_create("work")
    graph.mutate("delete Cites where weight = 1")
    on_work(graph, "delete Cites where weight = 2")
    (tmp_path / "policy.yaml").write_text(POLICY)
    with pytest.raises(MergeConflict) as caught:
        opened(tmp_path, "rita").merge("work")
    assert "xray" not in f"{caught.value.message} {caught.value.conflicts}"
