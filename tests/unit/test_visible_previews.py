"""Previews of merges and reverts for a handle that sees a part of a graph."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.errors import Denied
from omnigraph.graph import Graph
from omnigraph.graph_open import init
from omnigraph.operations.merge.merge_preview import PreviewTable
from unit.test_graph_visibility import ACME, CANARY, CANARY_NUMBER, SCHEMA, note, seen


@pytest.fixture
def graph(tmp_path):
    graph = init(tmp_path / "graph", SCHEMA, sync=False, environ={})
    graph.load(
        [
            note("a", "acme", "red", 10),
            note("b", "acme", "blue", CANARY_NUMBER),
            note("x", "other", CANARY, CANARY_NUMBER),
            note("y", "other", CANARY, CANARY_NUMBER),
            {"edge": "Cites", "from": "a", "to": "b", "data": {"id": "e1", "weight": CANARY_NUMBER}},
            {"edge": "Cites", "from": "a", "to": "x", "data": {"id": "e2", "weight": CANARY_NUMBER}},
        ],
        mode="merge",
    )
    graph.branch_create("side")
    return graph


def update(graph: Graph, branch: str, name: str, **values: Any) -> str:
    """Set properties of a note."""
    assigned = ", ".join(f"{key}: {value!r}".replace("'", '"') for key, value in values.items())
    text = f'query q() {{ update Note set {{ {assigned} }} where name = "{name}" }}'
    done = graph.mutate(text, branch=branch)
    assert done.commit_id is not None
    return done.commit_id


def has_no_canary(*answers: object) -> bool:
    return not any(word in str(answer) for answer in answers for word in (CANARY, str(CANARY_NUMBER), "Sealed"))


def test_hidden_changes_are_mentioned(graph):
    for name in ("a", "x", "y"):
        update(graph, "side", name, text=f"{CANARY}2" if name != "a" else "pink")
    graph.load([{"type": "Sealed", "data": {"name": CANARY}}], mode="append", branch="side")
    preview = seen(graph).merge_preview("side")
    assert preview.tables == {"node:Note": PreviewTable(0, 1, 0, adopted=True)}
    assert (preview.hidden_changes, preview.hidden_conflicts, preview.conflicts) == (True, 0, [])
    assert has_no_canary(preview, preview.to_json())
    whole = graph.merge_preview("side")
    assert whole.tables["node:Note"].updated == 3
    assert "hidden_changes" not in whole.to_json()


def test_rows_move_into_and_out_of_sight(graph):
    update(graph, "side", "x", tenant="acme")
    update(graph, "side", "b", tenant="other")
    preview = seen(graph).merge_preview("side")
    assert preview.tables == {"node:Note": PreviewTable(1, 0, 1, adopted=True)}
    update(graph, "main", "a", text="pink")
    assert seen(graph).merge_preview("side").tables == {"node:Note": PreviewTable(1, 0, 1, adopted=False)}


def test_change_of_a_masked_value_is_hidden(graph):
    update(graph, "side", "b", pay=7)
    graph.mutate('query q() { update Cites set { weight: 7 } where from = "a" }', branch="side")
    preview = seen(graph).merge_preview("side")
    assert (preview.tables, preview.hidden_changes) == ({}, True)
    update(graph, "side", "a", pay=8)
    assert seen(graph).merge_preview("side").tables == {"node:Note": PreviewTable(0, 1, 0, adopted=True)}


def test_edges_are_judged_by_their_ends_after_the_merge(graph):
    update(graph, "side", "x", tenant="acme")
    graph.load(
        [{"edge": "Cites", "from": "b", "to": end, "data": {"id": f"to {end}"}} for end in "xy"],
        mode="append",
        branch="side",
    )
    preview = seen(graph).merge_preview("side")
    assert preview.tables["edge:Cites"] == PreviewTable(1, 0, 0, adopted=True)
    assert preview.hidden_changes


def test_hidden_conflicts_are_counted(graph):
    for branch, text in (("main", "one"), ("side", "two")):
        for name in ("a", "x", "y"):
            update(graph, branch, name, text=f"{CANARY} {text}" if name != "a" else text)
    preview = seen(graph).merge_preview("side")
    assert [conflict.row_id for conflict in preview.conflicts] == ["a"]
    assert preview.hidden_conflicts == 2
    assert "2 conflicts hidden from you" in repr(preview)
    assert preview.to_json()["hidden_conflicts"] == 2
    assert has_no_canary(preview, preview.to_json())
    assert len(graph.merge_preview("side").conflicts) == 3


def test_preview_of_a_revert(graph):
    commit = update(graph, "main", "x", text=f"{CANARY}3")
    other = update(graph, "main", "a", text="pink")
    assert seen(graph).revert_preview(commit).tables == {}
    assert seen(graph).revert_preview(commit).hidden_changes
    assert not seen(graph).revert_preview(other).hidden_changes
    assert seen(graph).revert_preview(other).tables["node:Note"].updated == 1
    update(graph, "main", "x", text=f"{CANARY}4")
    preview = seen(graph).revert_preview(commit)
    assert (preview.conflicts, preview.hidden_conflicts) == ([], 1)
    assert "1 conflict hidden from you" in repr(preview)
    assert has_no_canary(preview, preview.to_json())


def test_new_and_dropped_types_are_hidden(graph):
    graph.apply_schema(SCHEMA + "node Fresh { name: String @key }", branch="side")
    graph.load([{"type": "Fresh", "data": {"name": "f"}}], mode="append", branch="side")
    preview = seen(graph).merge_preview("side")
    assert preview.tables == {"node:Fresh": PreviewTable(1, 0, 0, adopted=True)}
    assert preview.schema_changes
    assert preview.schema_steps == ()
    graph.branch_create("less")
    without = SCHEMA.replace("node Sealed {\n  name: String @key\n}\n", "")
    graph.apply_schema(without.replace("edge Holds: Sealed -> Note {\n}\n", ""), branch="less")
    assert set(graph.merge_preview("less").dropped) == {"node:Sealed", "edge:Holds"}
    assert seen(graph).merge_preview("less").dropped == ()


def test_preview_does_not_need_the_right_to_change(graph):
    update(graph, "side", "x", text="plain")
    assert seen(graph).merge_preview("side").outcome == "fast_forward"
    with pytest.raises(Denied):
        seen(graph).merge("side")
    assert ACME.rows
