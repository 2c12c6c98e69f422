"""Mutations under a guard: which rows they match, which changes are denied, and what messages contain."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from omnigraph.engine.write.overlay import WriteOverlay
from omnigraph.engine.write.row_guard import GuardedWrite
from omnigraph.errors import (
    CompileError,
    ConstraintViolation,
    Denied,
    InputError,
    KeyConflict,
    KeyReused,
    NotFound,
    TypeNotFound,
)
from omnigraph.graph import Graph
from omnigraph.graph_open import init
from omnigraph.operations.mutate import MutationResult, mutate
from omnigraph.operations.requests import MutationRequest, QueryText
from omnigraph.policy.load import parse_policy_text
from omnigraph.policy.rows.row_policies import RowPolicies
from omnigraph.policy.statements import PolicyStatements
from omnigraph.query.plan import ir
from omnigraph.query.visibility import ROW, Visibility
from omnigraph.query.write_guard import WriteGuard
from omnigraph.types import PropertyType
from omnigraph.versioning.write.transaction import WriteOptions

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
  @unique(state, pay)
}
node Log {
  text: String
}
node Sealed {
  name: String @key
}
edge Cites: Note -> Note @card(0..2) {
  weight: I64?
  @unique(src, dst)
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
SEES = Visibility(
    {"node:Note": ACME, "node:Sealed": None}, {("node:Note", "pay"): NAMED_A, ("node:Note", "secret"): None}
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


def note(name: str, tenant: str, **more: Any) -> dict[str, Any]:
    return {"type": "Note", "data": {"name": name, "tenant": tenant, **more}}


def cites(source: str, target: str, weight: int) -> dict[str, Any]:
    return {"edge": "Cites", "from": source, "to": target, "data": {"weight": weight}}


@pytest.fixture
def graph(tmp_path):
    graph = init(tmp_path / "graph", SCHEMA, sync=False, environ={})
    graph.load(
        [
            note("a", "acme", state="open", pay=1, code="A", secret="sa"),
            note("b", "acme", state="open", pay=2, code="B", secret="sb"),
            note("c", "acme", state="shut", pay=3),
            note("d", "acme", state="open"),
            note("x", "other", state="open", pay=77, code="X"),
            {"type": "Sealed", "data": {"name": "s"}},
            cites("a", "b", 5),
            cites("c", "b", 1),
            cites("b", "x", 9),
        ],
        mode="merge",
    )
    return graph


def run(graph: Graph, text: str, guard: WriteGuard | None = EDITOR) -> MutationResult:
    context = graph._context if guard is None else graph._context.with_guard(guard)
    return mutate(context, MutationRequest(QueryText(text), WriteOptions()))


def notes(graph: Graph) -> dict[str, tuple[Any, ...]]:
    names = ("tenant", "state", "pay", "code", "secret")
    columns = ", ".join(f"$n.{name} as {name}" for name in names)
    rows = graph.query(f"match {{ $n: Note }} return {{ $n.name as name, {columns} }}").to_pylist()
    return {row["name"]: tuple(row[name] for name in names) for row in rows}


def edges(graph: Graph) -> set[tuple[str, str]]:
    found = graph.query("match { $a: Note $a cites $b } return { $a.name as a, $b.name as b }").to_pylist()
    return {(row["a"], row["b"]) for row in found}


def denied(graph: Graph, text: str, *parts: str, guard: WriteGuard = EDITOR) -> Denied:
    before = notes(graph), edges(graph), graph.snapshot().commit_id
    with pytest.raises(Denied) as caught:
        run(graph, text, guard)
    for part in parts:
        assert part in caught.value.message
    assert (notes(graph), edges(graph), graph.snapshot().commit_id) == before
    return caught.value


# -- rows ----------------------------------------------------------------------------------------


def test_insert_needs_row_insert_for_the_new_row(graph):
    run(graph, 'insert Note { name: "n", tenant: "acme" }')
    assert notes(graph)["n"] == ("acme", None, None, None, None)
    denied(graph, 'insert Note { name: "m", tenant: "other" }', "'row_insert'", "Note 'm'")


def test_a_new_row_without_a_key_is_not_named_by_its_id(graph):
    guard = WriteGuard(SEES, {("row_insert", "node:Log"): None})
    denied(graph, 'insert Log { text: "t" }', "'row_insert' of a new Log is denied;", guard=guard)


def test_update_needs_row_update_for_the_old_and_the_new_row(graph):
    run(graph, 'update Note set { tenant: "other" } where name = "b"')
    assert notes(graph)["b"][0] == "other"
    error = denied(
        graph, 'update Note set { state: "open" } where name = "c"', "'row_update'", "Note 'c'", "open-notes"
    )
    assert error.rules == ("open-notes",)
    denied(graph, 'update Note set { state: "shut" } where name = "d"', "Note 'd' as it would be after the change")


def test_one_denied_row_refuses_the_statement(graph):
    denied(graph, 'update Note set { tenant: "new" } where tenant = "acme"', "Note 'c'")


def test_delete_needs_row_delete_for_each_row_and_its_edges(graph):
    denied(graph, 'delete Note where name = "d"', "'row_delete'", "Note 'd'")
    run(graph, 'delete Note where name = "a"')
    assert edges(graph) == {("c", "b"), ("b", "x")}
    denied(graph, "delete Cites where weight = 1", "'row_delete'", "edge Cites")


def test_an_edge_that_goes_with_its_node_needs_row_delete(graph):
    guard = WriteGuard(SEES, {("row_delete", "edge:Cites"): compare(">", "weight", 1, INT)})
    denied(graph, 'delete Note where name = "c"', "'row_delete'", "edge Cites", guard=guard)
    assert run(graph, 'delete Note where name = "a"', guard).affected_edges == 1


def test_a_node_with_hidden_edges_cannot_be_deleted(graph):
    error = denied(graph, 'delete Note where name = "b"', "Note 'b'", "edges that you cannot read", guard=READER)
    assert "'x'" not in error.message
    graph.load([{"edge": "Holds", "from": "s", "to": "d"}], mode="merge")
    denied(graph, 'delete Note where name = "d"', "Note 'd'", "edges that you cannot read", guard=READER)


def test_hidden_rows_match_no_condition(graph):
    for text in (
        'update Note set { state: "new" } where name = "x"',
        'update Note set { state: "new" } where tenant = "other"',
        'delete Note where name = "x"',
        "delete Cites where weight = 9",
        "update Cites set { weight: 0 } where weight = 9",
    ):
        result = run(graph, text, READER)
        assert (result.affected_nodes, result.affected_edges, result.commit_id) == (0, 0, None)


def test_types_without_a_visible_row_and_hidden_properties_do_not_exist(graph):
    with pytest.raises((TypeNotFound, CompileError)):
        run(graph, 'insert Sealed { name: "t" }')
    with pytest.raises(CompileError):
        run(graph, 'update Note set { secret: "t" } where name = "a"')


def test_a_row_that_is_deleted_and_inserted_again_is_both(graph):
    text = (
        'query q() { atomic { delete Note where name = "d" insert Note { name: "d", tenant: "acme", state: "open" } } }'
    )
    denied(graph, text, "'row_delete'", "Note 'd'")
    again = text.replace('"d"', '"a"')
    run(graph, again)
    assert notes(graph)["a"] == ("acme", "open", None, None, None)


# -- properties ----------------------------------------------------------------------------------


def test_assigning_a_property_needs_property_write(graph):
    run(graph, 'update Note set { pay: 4 } where name = "a"')
    assert notes(graph)["a"][2] == 4
    error = denied(graph, 'update Note set { pay: 2 } where name = "b"', "'property_write' of 'pay' of Note 'b'")
    assert error.rules == ("pay-of-a",)
    denied(graph, 'insert Note { name: "n", tenant: "acme", pay: 1 }', "'pay' of Note 'n'")
    denied(graph, 'upsert Note { name: "n", tenant: "acme", code: "N" }', "'code' of Note 'n'")


def test_property_write_is_needed_for_the_old_and_the_new_row(graph):
    guard = WriteGuard(SEES, {}, {("node:Note", "pay"): OPEN})
    denied(graph, 'update Note set { pay: 9, state: "open" } where name = "c"', "'pay' of Note 'c'", guard=guard)
    denied(graph, 'update Note set { pay: 9, state: "shut" } where name = "d"', "'pay' of Note 'd'", guard=guard)
    run(graph, 'update Note set { pay: 9 } where name = "d"', guard)
    assert notes(graph)["d"][2] == 9


def test_properties_that_are_not_assigned_keep_their_values(graph):
    run(graph, 'upsert Note { name: "b", tenant: "acme2" }')
    run(graph, 'update Note set { tenant: "acme3" } where name = "d"')
    assert notes(graph)["b"] == ("acme2", "open", 2, "B", "sb")


def test_masked_values_are_null_in_conditions_and_expressions(graph):
    guard = WriteGuard(SEES)
    assert run(graph, 'update Note set { state: "rich" } where pay > 1', guard).affected_nodes == 0
    assert run(graph, 'update Note set { state: "rich" } where pay = 1', guard).affected_nodes == 1
    assert run(graph, 'update Note set { code: "new" } where pay is null and name = "b"', guard).affected_nodes == 1
    run(graph, 'update Note set { pay: pay + 1 } where name = "a" or name = "b"', guard)
    assert [notes(graph)[name][2] for name in "ab"] == [2, None]


def test_returned_rows_contain_what_is_visible(graph):
    text = """query q() {
      update Note set { code: null } where tenant = "acme" as $n
      return { $n.name as name, $n.pay as pay }
    }"""
    rows = run(graph, text, READER).rows.to_pylist()
    assert rows == [{"name": n, "pay": p} for n, p in (("a", 1), ("b", None), ("c", None), ("d", None))]


# -- integrity -----------------------------------------------------------------------------------


def message(graph: Graph, text: str, guard: WriteGuard = READER, error: type[Exception] = ConstraintViolation) -> str:
    with pytest.raises(error) as caught:
        run(graph, text, guard)
    assert type(caught.value) is error
    return str(caught.value)


def test_a_hidden_node_is_not_found_like_a_missing_one(graph):
    for column, other in (("to", "from"), ("from", "to")):
        hidden = message(graph, f'insert Cites {{ {column}: "x", {other}: "a" }}')
        missing = message(graph, f'insert Cites {{ {column}: "y", {other}: "a" }}')
        assert hidden.replace("'x'", "'y'") == missing
        assert "not found in Note" in missing
    # The edge b → x exists; the uniqueness of edges must not reveal it.
    assert "not found in Note" in message(graph, 'insert Cites { from: "b", to: "x" }')
    run(graph, 'insert Cites { from: "a", to: "d" }', READER)


def test_an_edge_may_end_at_a_node_of_the_same_write(graph):
    text = 'query q() { insert Note { name: "n", tenant: "other" } insert Cites { from: "a", to: "n" } }'
    run(graph, text, READER)
    assert ("a", "n") in edges(graph)


def test_the_key_of_a_hidden_row_is_taken(graph):
    for kind in ("insert", "upsert"):
        text = message(graph, f'{kind} Note {{ name: "x", tenant: "acme" }}')
        assert text.startswith("@unique violation on Note.name")
        assert "'x'" not in text
        # An actor that may not insert the node learns nothing of it.
        denied(graph, f'{kind} Note {{ name: "x", tenant: "third" }}', "'row_insert'", "Note 'x'")
    assert "'a' already exists" in message(graph, 'insert Note { name: "a", tenant: "acme" }', error=KeyConflict)


def test_violations_by_hidden_rows_and_values_name_the_rule_only(graph):
    assert message(graph, 'update Note set { code: "X" } where name = "b"') == "@unique violation on Note.code"
    assert "'a'" in message(graph, 'update Note set { code: "A" } where name = "b"')
    text = message(graph, 'update Note set { state: "shut", pay: 3 } where name = "a"')
    assert text == "@unique violation on Note.(pay, state)"
    # After the change a and b would have equal values; that of b is masked.
    graph.mutate('update Note set { pay: 1, state: "one" } where name = "b"')
    text = message(graph, 'update Note set { state: "two" } where name = "a" or name = "b"')
    assert text == "@unique violation on Note.(pay, state)"
    run(graph, 'insert Cites { from: "b", to: "a" }', READER)
    assert message(graph, 'insert Cites { from: "b", to: "d" }') == "@card violation on edge Cites (max 2)"
    with pytest.raises(ConstraintViolation, match=r"5000 is not in 0..1000 \(row 'a'\)$"):
        run(graph, 'update Note set { pay: 5000 } where name = "a"', READER)
    assert message(graph, 'update Note set { pay: 5000 } where name = "b"') == "@range violation on Note.pay"


def test_a_required_hidden_property_is_not_named(tmp_path):
    graph = init(tmp_path / "g", "node N {\n name: String @key\n hush: String\n}", sync=False, environ={})
    guard = WriteGuard(Visibility({}, {("node:N", "hush"): None}))
    with pytest.raises(InputError) as caught:
        run(graph, 'insert N { name: "a" }', guard)
    assert "hush" not in str(caught.value)


def test_conditions_of_another_schema_are_refused(graph):
    guard = WriteGuard(Visibility({"node:Note": compare("=", "gone", "x")}))
    with pytest.raises(Denied, match="another schema"):
        run(graph, 'delete Note where name = "a"', guard)


def test_a_guard_sees_the_writes_that_are_published_with_it(graph):
    snapshot = graph.snapshot()
    below = WriteOverlay(snapshot)
    pending = below.table("node:Note")
    moved = pending.by_id("a").to_pylist()[0] | {"tenant": "other"}
    pending.put(pa.Table.from_pylist([moved], schema=pending.schema))
    overlay = WriteOverlay(snapshot, below)
    catalog = graph._context.catalog(snapshot)
    guarded = GuardedWrite(READER, catalog, overlay)
    assert guarded.visible_ends(overlay.delta(), catalog.nodes["Note"], pa.array(["a", "b", "x"])).to_pylist() == ["b"]
    cites = overlay.table("edge:Cites")
    edges = cites.with_ids(cites.ids_with(["dst"], pa.array(["b"])), cites.schema.names)
    shown = dict(zip(edges["src"].to_pylist(), guarded.sees(catalog.edges["Cites"], edges).tolist(), strict=True))
    assert shown == {"a": False, "c": True}


# -- policies ------------------------------------------------------------------------------------

POLICY = """\
version: 2
groups: { staff: [ana], hr: [cleo], owners: [olga] }
attributes:
  declare: { tenant: String }
  ana: { tenant: acme }
rows: { default: allow }
rules:
  - id: own-tenant
    allow: { actors: { group: staff }, actions: [row_read, row_insert, row_update], types: [Note],
             when: 'resource.tenant == principal.tenant' }
  - id: owners
    allow: { actors: { group: owners }, role: owner }
  - id: everything
    allow: { actors: { group: hr }, actions: [row_read, row_insert, row_update, row_delete], types: [Note] }
  - id: pay
    allow: { actors: { group: hr }, actions: [property_read, property_write], types: [Note], properties: [pay],
             otherwise: mask }
"""


def test_the_guard_of_a_policy(graph):
    statements = parse_policy_text(POLICY)
    assert isinstance(statements, PolicyStatements)
    policies = RowPolicies(statements, graph._context.catalog(graph.snapshot()))
    assert policies.write_guard(policies.actor("cleo"), "main") is None
    guard = policies.write_guard(policies.actor("ana"), "main")
    assert guard is not None
    assert guard.rows["row_delete", "node:Note"] is None
    assert ("row_update", "edge:Cites") not in guard.rows
    run(graph, 'update Note set { state: "x" } where name = "b"', guard)
    error = denied(graph, 'update Note set { tenant: "other" } where name = "b"', "'own-tenant'", guard=guard)
    assert error.rules == ("own-tenant",)
    denied(graph, 'update Note set { pay: 9 } where name = "b"', "'pay'", guard=guard)
    denied(graph, 'delete Note where name = "a"', "'row_delete'", "Note 'a'", guard=guard)


# -- repeated requests ---------------------------------------------------------------------------


def repeated(graph: Graph, text: str, visibility: Visibility | None) -> MutationResult:
    context = graph._context if visibility is None else graph._context.with_guard(WriteGuard(visibility))
    return mutate(context, MutationRequest(QueryText(text), WriteOptions(idempotency_key="k")))


NAMED = 'update Note set { state: "s" } where name = "a" as $n return { $n.name as name, $n.pay as pay }'
TENANT = Visibility({"node:Note": ACME})


@pytest.mark.parametrize("first", [None, TENANT, Visibility({}, {("node:Note", "pay"): NAMED_A})])
def test_a_repeated_request_returns_rows_only_to_a_caller_that_sees_the_same(graph, first):
    rows = [{"name": "a", "pay": 1}]
    for visibility in (first, first, None):
        assert repeated(graph, NAMED, visibility).rows.to_pylist() == rows
    head = graph.snapshot().commit_id
    hidden = compare("=", "tenant", "none")
    for narrowed in (Visibility({"node:Note": hidden}), Visibility({"node:Note": ACME}, {("node:Note", "pay"): None})):
        with pytest.raises(KeyReused, match="you see other rows or values now than then") as caught:
            repeated(graph, NAMED, narrowed)
        assert head in caught.value.message
    assert graph.snapshot().commit_id == head


def test_a_repeated_request_without_rows_returns_its_counts(graph):
    text = 'update Note set { state: "s" } where name = "a"'
    assert repeated(graph, text, None) == repeated(graph, text, TENANT)


def test_a_repeated_unify_reports_only_to_a_caller_that_sees_the_same(graph):
    graph.load([note("e", "acme")], mode="merge")
    text = 'unify Note "e" into "d"'
    assert repeated(graph, text, TENANT) == repeated(graph, text, TENANT)
    with pytest.raises(KeyReused):
        repeated(graph, text, SEES)


# -- unify ---------------------------------------------------------------------------------------


def test_unify_does_not_find_hidden_nodes(graph):
    for name in ("x", "absent"):
        for text in (f'unify Note "{name}" into "a"', f'unify Note "d" into "{name}"'):
            with pytest.raises(NotFound) as caught:
                run(graph, text)
            assert caught.value.message == f"Note '{name}' does not exist; nothing was unified"


def test_unify_of_hidden_values_and_edges_is_denied(graph):
    denied(graph, 'unify Note "b" into "d"', "a value of the nodes is hidden from you")
    graph.load([note("e", "acme", state="open"), cites("d", "x", 3)], mode="merge")
    guard = WriteGuard(Visibility({"node:Note": ACME}), {("row_delete", "node:Note"): NAMED_A})
    denied(graph, 'unify Note "d" into "e"', "a node has edges that you cannot read", guard=guard)
    denied(graph, 'unify Note "e" into "d"', "'row_delete'", "Note 'e'", guard=guard)


PEOPLE = """
node Person {
  name: String @key
}
edge Knows: Person -> Person {
  since: I64?
  sealed: Bool?
  note: String?
}
edge WorksFor: Person -> Person {
  sealed: Bool?
  since: I64?
  @unique(src, dst)
}
"""
UNSEALED = ir.Compare("=", ir.Prop(ROW, "sealed", PropertyType("Bool", nullable=True)), ir.Const(False, ir.BOOL))
SEALED_EDGES = WriteGuard(Visibility({"edge:Knows": UNSEALED, "edge:WorksFor": UNSEALED}))


def people(path, *edges: tuple[str, str, str, dict[str, Any]]) -> Graph:
    """Return a graph of the persons a, b and x with edges (type, id, source, data) to x."""
    graph = init(path, PEOPLE, sync=False, environ={})
    graph.load([{"type": "Person", "data": {"name": name}} for name in "abx"], mode="append")
    records = [
        {"edge": type_, "from": source, "to": "x", "data": {"id": id_, **data}} for type_, id_, source, data in edges
    ]
    graph.load(records, mode="append")
    return graph


def ends(graph: Graph, type_: str) -> dict[str, str]:
    return {row["id"]: row["src"] for row in graph.to_arrow(type_).to_pylist()}


@pytest.mark.parametrize("rule", ["", " edges { Knows: ours }", " edges { Knows: theirs }", " edges { Knows: newest }"])
def test_unify_folds_no_edge_that_the_caller_does_not_see(tmp_path, rule):
    """The effect and the report are those of a graph without the hidden edge."""
    seen = ("Knows", "k1", "a", {"since": 1, "sealed": False})
    hidden = ("Knows", "k2", "b", {"since": 1, "sealed": True})
    reports = []
    for name, edges in (("visible", [seen]), ("whole", [seen, hidden])):
        graph = people(tmp_path / name, *edges)
        done = run(graph, f'unify Person "a" into "b"{rule}', SEALED_EDGES)
        reports.append((done.unified, done.affected_edges))
        assert ends(graph, "Knows") == {id_: "b" for _, id_, _, _ in edges}
    assert reports[0] == reports[1]
    assert reports[0][0].folded == 0


def test_unify_folds_edges_that_the_caller_sees(tmp_path):
    sealed = {"since": 1, "sealed": False}
    graph = people(tmp_path / "graph", ("Knows", "k1", "a", sealed), ("Knows", "k2", "b", sealed))
    assert run(graph, 'unify Person "a" into "b"', SEALED_EDGES).unified.folded == 1
    assert ends(graph, "Knows") == {"k2": "b"}


def test_unify_that_violates_unique_by_a_hidden_edge_names_the_rule_only(tmp_path):
    edges = [("WorksFor", "w1", "a", {"sealed": False}), ("WorksFor", "w2", "b", {"sealed": True})]
    graph = people(tmp_path / "graph", *edges)
    for rule in ("", " edges { WorksFor: ours }"):
        text = f'unify Person "a" into "b"{rule}'
        assert message(graph, text, SEALED_EDGES) == "@unique violation on WorksFor.(dst, src)"
    assert ends(graph, "WorksFor") == {"w1": "a", "w2": "b"}


NOTED = ir.Compare("=", ir.Prop(ROW, "note", TEXT), ir.Const("shown", ir.STRING))
SHOWN = {"since": 1, "note": "shown"}
MASKED_EDGES = WriteGuard(Visibility({}, {("edge:Knows", "since"): NOTED, ("edge:WorksFor", "since"): None}))


@pytest.mark.parametrize("rule", ["", " edges { Knows: newest }"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_unify_compares_no_edge_values_that_the_caller_does_not_see(tmp_path, rule, dry_run):
    """The masked value 42 is not compared with a guess."""
    errors = set()
    for guess in (41, 42):
        edges = [("Knows", "k1", "a", {"since": guess}), ("Knows", "k2", "b", {"since": 42})]
        graph = people(tmp_path / str(guess), *edges)
        request = MutationRequest(QueryText(f'unify Person "a" into "b"{rule}'), WriteOptions(), dry_run=dry_run)
        with pytest.raises(Denied, match="a value of the edges is hidden from you; nothing was written") as caught:
            mutate(graph._context.with_guard(MASKED_EDGES), request)
        errors.add(str(caught.value))
        assert ends(graph, "Knows") == {"k1": "a", "k2": "b"}
    assert len(errors) == 1


@pytest.mark.parametrize(
    ("edges", "rule", "folded"),
    [
        # The values of 'since' are visible where the note says so.
        ([("Knows", "k1", "a", SHOWN), ("Knows", "k2", "b", SHOWN)], "", 1),
        # The visible values differ.
        ([("Knows", "k1", "a", {"since": 1, "note": "m"}), ("Knows", "k2", "b", {"since": 1, "note": "n"})], "", 0),
        # The rules 'keep' and 'ours' compare no values.
        ([("Knows", "k1", "a", {"since": 1}), ("Knows", "k2", "b", {"since": 1})], "keep", 0),
        ([("Knows", "k1", "a", {"since": 1}), ("Knows", "k2", "b", {"since": 2})], "ours", 1),
        # The unique tuple has no hidden value.
        ([("WorksFor", "w1", "a", {"since": 1}), ("WorksFor", "w2", "b", {"since": 2})], "", 1),
        # Edges of other nodes are not compared.
        ([("Knows", "k1", "a", {"since": 1}), ("Knows", "k2", "x", {"since": 1})], "", 0),
    ],
)  # fmt: skip
def test_unify_is_allowed_if_no_hidden_value_decides(tmp_path, edges, rule, folded):
    graph = people(tmp_path / "graph", *edges)
    clause = f" edges {{ Knows: {rule} }}" if rule else ""
    assert run(graph, f'unify Person "a" into "b"{clause}', MASKED_EDGES).unified.folded == folded


# -- aliases -------------------------------------------------------------------------------------


@pytest.fixture
def aliases(graph):
    graph.load([note(name, "other") for name in ("y", "z")] + [note("e", "acme")], mode="merge")
    graph.unify("Note", "x", "z")
    graph.unify("Note", "x", "e")
    graph.unify("Note", "d", "y")
    return graph


HIDDEN = ("z", "e")
"""Aliases of the hidden node 'x'."""


def test_aliases_of_hidden_nodes_are_unknown_to_reads(aliases):
    reader = Graph(aliases._context.with_guard(READER))
    lookups = (
        'match {{ $n: Note {{ name: "{}" }} }} return {{ $n.name as name }}',
        'match {{ $n: Note $n.name in ["{}"] }} return {{ $n.name as name }}',
    )
    for text in lookups:
        for name in HIDDEN:
            assert reader.query(text.format(name)).to_pylist() == []
            assert str(reader.explain(text.format(name))) == str(reader.explain(text.format("absent"))).replace(
                "absent", name
            )
        assert reader.query(text.format("y")).to_pylist() == [{"name": "d"}]
    assert reader.get("Note", "y")["name"] == "d"
    for name in HIDDEN:
        assert reader.get("Note", name) is None
        with pytest.raises(NotFound, match=f"Note '{name}' does not exist"):
            reader.neighbors("Note", name)


def test_aliases_of_hidden_nodes_are_unknown_to_statements(aliases):
    texts = (
        'unify Note "{}" into "a"',
        'unify Note "d" into "{}"',
        'unify Note "{}" into "x"',
        'insert Cites {{ from: "a", to: "{}" }}',
    )
    for text in texts:
        for name in HIDDEN:
            with pytest.raises((NotFound, ConstraintViolation)) as caught:
                run(aliases, text.format(name))
            assert f"'{name}'" in caught.value.message
            assert "'x'" not in caught.value.message
    for name in HIDDEN:
        assert run(aliases, f'update Note set {{ state: "open" }} where name = "{name}"').affected_nodes == 0
        assert run(aliases, f'delete Cites where to = "{name}"').affected_edges == 0


def test_aliases_of_hidden_nodes_are_taken(aliases):
    for name in HIDDEN:
        for statement in ("insert", "upsert"):
            with pytest.raises(ConstraintViolation) as caught:
                run(aliases, f'{statement} Note {{ name: "{name}", tenant: "acme" }}')
            assert caught.value.message == "@unique violation on Note.name"
            denied(aliases, f'{statement} Note {{ name: "{name}", tenant: "other" }}', "'row_insert'", f"Note '{name}'")
