"""Differences, the change feed and the history of rows for a handle that sees a part of a graph."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.errors import ChangeCursorRejected, PageCursorRejected, TypeNotFound
from omnigraph.graph import Graph
from omnigraph.graph_open import init
from omnigraph.operations.authorization.visible_changes import GraphSight, VisibleDiff
from omnigraph.query.visibility import Visibility
from unit.test_graph_visibility import ACME, CANARY, CANARY_NUMBER, OTHER, SCHEMA, equals, note, seen

AROUND = {"src": "a", "dst": "x"}


@pytest.fixture
def graph(tmp_path):
    graph = init(tmp_path / "graph", SCHEMA, sync=False, environ={})
    graph.load(
        [
            note("a", "acme", "red", 10),
            note("x", "other", CANARY, CANARY_NUMBER),
            note("y", "other", CANARY, CANARY_NUMBER),
            {"type": "Sealed", "data": {"name": CANARY}},
            {"edge": "Cites", "from": "a", "to": "x", "data": {"id": "e1", "weight": CANARY_NUMBER}},
            {"edge": "Cites", "from": "x", "to": "y", "data": {"id": "e2", "weight": CANARY_NUMBER}},
        ],
        mode="merge",
    )
    return graph


def move(graph: Graph, name: str, tenant: str) -> str:
    """Move a note into or out of sight."""
    done = graph.mutate(
        f'query q() {{ update Note set {{ tenant: "{tenant}", text: "plain" }} where name = "{name}" }}'
    )
    assert done.commit_id is not None
    return done.commit_id


def ops(changes: Any) -> list[tuple[str, str, str]]:
    return [(change.table_key, change.id, change.op) for change in changes]


def test_row_that_becomes_visible_is_an_insert_with_its_edges(graph):
    first = graph.commits()[0].id
    second = move(graph, "x", "acme")
    appeared = [("edge:Cites", "e1", "insert"), ("node:Note", "x", "insert")]
    assert ops(seen(graph).diff(first, second)) == appeared
    assert ops(seen(graph).diff(second, first)) == [(key, id, "delete") for key, id, _ in appeared]
    assert ops(graph.diff(first, second)) == [("node:Note", "x", "update")]
    node, edge = seen(graph).commit_changes(second)
    assert (node.op, node.before, node.after["pay"]) == ("insert", None, None)
    assert edge.after == {"id": "e1", **AROUND}
    third = move(graph, "x", "other")
    assert ops(seen(graph).diff(second, third)) == [(key, id, "delete") for key, id, _ in appeared]
    assert seen(graph).diff(first, third).counts() == {}
    assert ops(graph.diff(first, third)) == [("node:Note", "x", "update")]


def test_change_of_masked_and_hidden_values_is_no_change(graph):
    first = move(graph, "x", "acme")
    graph.mutate('query q() { update Note set { pay: 5 } where name = "x" }')
    graph.mutate("query q() { update Cites set { weight: 5 } where from = 'a' }".replace("'", '"'))
    assert ops(seen(graph).diff(first)) == []
    assert ops(graph.diff(first)) == [("edge:Cites", "e1", "update"), ("node:Note", "x", "update")]
    graph.mutate('query q() { update Note set { pay: 6 } where name = "a" }')
    (change,) = seen(graph).diff(first)
    assert (change.id, change.properties, change.after["pay"]) == ("a", ["pay"], 6)
    assert [len(block) for block in seen(graph).changes(start=f"after:{first}")] == [0, 0, 1]


def test_rules_for_another_branch_are_applied_to_its_side(graph):
    # A visibility of a handle does not depend on the branch; two handles compare as one with such rules would.
    at = graph._context.repository.snapshot("main")
    one, other = (GraphSight(graph._context.with_visibility(each)).side(at) for each in (ACME, OTHER))
    diff = VisibleDiff(one, other)
    pairs = {pair.key: pair for pair in diff.pairs}
    assert not diff.of(pairs["node:Note"]).alike
    assert diff.schema_changed
    assert pairs["node:Sealed"].before is None


def test_history_begins_where_the_row_becomes_visible(graph):
    handle = seen(graph)
    assert list(handle.history("Note", "x")) == []
    assert handle.blame("Note", "x") == []
    appeared = move(graph, "x", "acme")
    (change,) = handle.history("Note", "x")
    assert (change.op, change.commit.id, change.before) == ("insert", appeared, None)
    assert {one.commit.id for one in handle.blame("Note", "x")} == {appeared}
    (edge,) = handle.history("Cites", "e1")
    assert (edge.op, edge.commit.id, edge.after) == ("insert", appeared, {"id": "e1", **AROUND})
    gone = move(graph, "x", "other")
    assert [(one.op, one.commit.id) for one in handle.history("Note", "x")] == [("delete", gone), ("insert", appeared)]
    assert [one.op for one in handle.history("Cites", "e1")] == ["delete", "insert"]
    assert [one.op for one in graph.history("Cites", "e1")] == ["insert"]
    with pytest.raises(TypeNotFound):
        list(handle.history("Sealed", CANARY))


def test_schema_steps_name_visible_parts(graph):
    first = graph.commits()[0].id
    graph.apply_schema(
        SCHEMA.replace("weight: I64?", "weight: I64?\n  more: I64?").replace(
            "tenant: String", "tenant: String\n  extra: I64?"
        )
    )
    hidden = Visibility(ACME.rows, {**ACME.properties, ("edge:Cites", "more"): None})
    handle = seen(graph, hidden)
    assert len(graph.diff(first).schema_steps) == 2
    (step,) = handle.diff(first).schema_steps
    assert "extra" in step
    everything = {**hidden.properties, ("node:Note", "extra"): None}
    blind = seen(graph, Visibility(ACME.rows, everything))
    assert blind.diff(first).schema_steps == ()
    assert [block.schema_changed for block in blind.changes(start=f"after:{first}")] == [False]
    assert [block.schema_changed for block in handle.changes(start=f"after:{first}")] == [True]
    assert blind.commit_changes(graph.commits()[0].id).changes == ()


def test_feed_cursor_is_bound_to_what_the_reader_sees(graph):
    cursor = seen(graph).changes(start="now").cursor
    assert cursor is not None
    (*_, last) = seen(graph).changes_baseline()
    assert last["baseline"]["resume_cursor"] == cursor
    move(graph, "x", "acme")
    assert len(seen(graph).changes(cursor).blocks) == 1
    for other in (seen(graph, OTHER), graph):
        with pytest.raises(ChangeCursorRejected, match="what you may see has changed") as error:
            other.changes(cursor)
        assert "baseline" in str(error.value.hint)
    with pytest.raises(ChangeCursorRejected, match="what you may see has changed"):
        seen(graph).changes(graph.changes(start="now").cursor)


def test_feed_page_is_bound_to_what_the_reader_sees(graph):
    first = graph.commits()[0].id
    move(graph, "x", "acme")
    page = seen(graph).changes(start=f"after:{first}", changes_max=1).page
    assert page is not None
    assert [change.id for block in seen(graph).changes(page=page) for change in block] == ["e1"]
    block = seen(graph).commit_changes(graph.commits()[0].id, changes_max=1)
    assert [change.id for change in seen(graph).commit_changes(block.commit.id, changes_max=1, page=block.page)] == [
        "e1"
    ]
    for other in (seen(graph, OTHER), graph):
        with pytest.raises(ChangeCursorRejected, match="what you may see has changed"):
            other.changes(page=page)
        with pytest.raises(ChangeCursorRejected, match="what you may see has changed"):
            other.commit_changes(block.commit.id, changes_max=1, page=block.page)


def test_feed_cursor_survives_a_new_type(graph):
    """Rules for a type that did not exist at the cursor do not end the feed."""
    cursor = seen(graph).changes(start="now").cursor
    graph.apply_schema(SCHEMA + "node Fresh { name: String @key }")
    graph.load([{"type": "Fresh", "data": {"name": "f"}}], mode="append")
    assert [len(block) for block in seen(graph).changes(cursor)] == [0, 1]


def test_diff_page_is_bound_to_what_the_reader_sees(graph):
    first = graph.commits()[0].id
    move(graph, "x", "acme")
    page = seen(graph).diff(first, limit=1)
    assert page.next is not None
    assert ops(seen(graph).diff(first, limit=1, after=page.next)) == [("node:Note", "x", "insert")]
    for other in (seen(graph, OTHER), graph):
        with pytest.raises(PageCursorRejected, match="what you may see has changed"):
            other.diff(first, limit=1, after=page.next)


def test_diff_pages_of_a_branch_without_commits(graph):
    first = graph.commits()[0].id
    move(graph, "x", "acme")
    graph.branch_create("side")
    page = seen(graph).diff(first, "side", limit=1)
    assert page.next is not None
    assert len(list(seen(graph).diff(first, "side", limit=1, after=page.next))) == 1


def test_no_hidden_value_is_in_an_answer(graph):
    handle = seen(graph)
    first = graph.commits()[-1].id
    graph.mutate(f'query q() {{ update Note set {{ text: "{CANARY}2" }} where name = "y" }}')
    graph.mutate('query q() { delete Note where name = "y" }')
    answers: list[object] = [
        [change.to_json() for change in handle.diff(first)],
        handle.diff(first).counts(),
        handle.diff(first)._repr_html_(),
        handle.changes(start="beginning").to_json(),
        list(handle.changes_baseline()),
        [handle.commit_changes(commit.id).to_json() for commit in graph.commits()[:-1]],
        [[change.to_json() for change in handle.history("Note", id)] for id in ("a", "x", "y")],
        [[one.to_json() for one in handle.blame("Note", id)] for id in ("a", "x", "y")],
        [[change.to_json() for change in handle.history("Cites", id)] for id in ("e1", "e2")],
    ]
    for answer in answers:
        assert CANARY not in str(answer)
        assert str(CANARY_NUMBER) not in str(answer)
        assert "Sealed" not in str(answer)


def test_update_of_the_row_condition_alone(graph):
    """A rule on an edge and a rule on its ends both decide."""
    rules = Visibility({"edge:Cites": equals("id", "e1"), "node:Note": equals("tenant", "acme")})
    first = graph.commits()[0].id
    move(graph, "x", "acme")
    move(graph, "y", "acme")
    assert ops(seen(graph, rules).diff(first)) == [
        ("edge:Cites", "e1", "insert"), ("node:Note", "x", "insert"), ("node:Note", "y", "insert"),
    ]  # fmt: skip


def test_edge_appears_with_its_source(graph):
    move(graph, "y", "acme")
    first = graph.commits()[0].id
    second = move(graph, "x", "acme")
    assert ops(seen(graph).diff(first, second, kinds=["edge"])) == [
        ("edge:Cites", "e1", "insert"), ("edge:Cites", "e2", "insert"),
    ]  # fmt: skip
    assert [change.op for change in seen(graph).diff(second, first, kinds=["edge"])] == ["delete", "delete"]


def test_commits_of_changes_list_visible_types(graph):
    handle = seen(graph)
    load = graph.commits()[0]
    assert "node:Sealed" in load.changed
    commits = [
        *(block.commit for block in handle.changes(start="beginning")),
        handle.commit_changes(load.id).commit,
        *(change.commit for change in handle.history("Note", "a")),
        *(one.commit for one in handle.blame("Note", "a")),
    ]
    assert {commit.changed for commit in commits} == {(), ("edge:Cites", "node:Note")}
    assert not any(commit.metadata for commit in commits)


def test_a_property_that_is_hidden_now_and_whose_name_another_has(graph):
    """From the point of view of the caller, the property was dropped, and another one got its name."""
    first = graph.commits()[0].id
    graph.apply_schema(SCHEMA.replace("pay: I64?", 'wage: I64? @rename_from("pay")'))
    graph.apply_schema(
        SCHEMA.replace("pay: I64?", "wage: I64?").replace("text: String?", 'pay: String? @rename_from("text")')
    )
    shown = {one.id: one for one in seen(graph, Visibility({}, {("node:Note", "wage"): None})).diff(first, "main")}
    assert {id: one.properties for id, one in shown.items()} == {id: ["pay (dropped)"] for id in "axy"}
    assert (shown["a"].before["pay (dropped)"], shown["a"].before["pay"], shown["a"].after["pay"]) == (10, "red", "red")


def test_a_renamed_property_has_the_rules_of_its_name(graph):
    first = graph.commits()[0].id
    graph.apply_schema(SCHEMA.replace("pay: I64?", 'wage: I64? @rename_from("pay")'))
    masked = Visibility(
        {}, {("node:Note", "pay"): equals("name", "nobody"), ("node:Note", "wage"): equals("name", "a")}
    )
    shown, hidden = seen(graph, masked).diff(first, "main"), seen(graph, masked).diff("main", first)
    assert [(one.id, one.op, one.before["wage"], one.after["wage"]) for one in shown] == [("a", "update", None, 10)]
    assert [(one.id, one.op, one.before["pay"], one.after["pay"]) for one in hidden] == [("a", "update", 10, None)]
