"""Vectors are computed of visible texts only, and each vector needs the rights of a change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import Denied, InputError, TypeNotFound
from omnigraph.graph import Graph
from omnigraph.query.plan import ir
from omnigraph.query.visibility import ROW, Visibility
from omnigraph.query.write_guard import WriteGuard

SCHEMA = """
node Note {
    slug: String @key
    tenant: String
    text: String?
    meaning: Vector(8)? @embed("text")
}
node Sealed {
    slug: String @key
    text: String?
    meaning: Vector(8)? @embed("text")
}
"""
LOCAL = {"OMNIGRAPH_EMBED_PROVIDER": "local"}


def equal(name: str, value: str) -> ir.Condition:
    return ir.Compare("=", ir.Prop(ROW, name, ir.STRING), ir.Const(value, ir.STRING))


ACME, NAMED_A = equal("tenant", "acme"), equal("slug", "a")
SEES = Visibility({"node:Note": ACME, "node:Sealed": None})


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "g.omni", SCHEMA, environ={})
    rows = [("a", "acme"), ("b", "acme"), ("x", "other")]
    notes = [{"type": "Note", "data": {"slug": one, "tenant": of, "text": f"text {one}"}} for one, of in rows]
    graph.load([*notes, {"type": "Sealed", "data": {"slug": "s", "text": "sealed"}}], mode="append", embed=False)
    return og.open(tmp_path / "g.omni", environ=LOCAL)


def guarded(graph: og.Graph, seen: Visibility = SEES, **rules: Any) -> Graph:
    return Graph(graph._context.with_guard(WriteGuard(seen, **rules)))


def embedded(graph: og.Graph) -> set[str]:
    rows = [row for name in ("Note", "Sealed") for row in graph.to_arrow(name).to_pylist()]
    return {row["slug"] for row in rows if row["meaning"] is not None}


def test_visible_texts_are_embedded(graph):
    assert guarded(graph).embed().embedded == (("Note", 2),)
    assert embedded(graph) == {"a", "b"}
    assert guarded(graph).embed().commit_id is None
    with pytest.raises(TypeNotFound):
        guarded(graph).embed(types=["Sealed"])


def test_vectors_need_row_update_and_property_write(graph):
    for rules in (
        {"rows": {("row_update", "node:Note"): NAMED_A}},
        {"properties": {("node:Note", "meaning"): NAMED_A}},
    ):
        with pytest.raises(Denied, match="Note 'b'"):
            guarded(graph, **rules).embed()
    assert embedded(graph) == set()


@pytest.mark.parametrize("name", ["text", "meaning"])
def test_rows_with_masked_texts_or_vectors_are_left_out(graph, name):
    masks = Visibility(SEES.rows, {("node:Note", name): NAMED_A})
    assert guarded(graph, masks).embed(again=True).embedded == (("Note", 1),)
    assert embedded(graph) == {"a"}


@pytest.mark.parametrize("name", ["text", "meaning"])
def test_hidden_texts_and_vectors_do_not_exist(graph, name):
    hides = Visibility(SEES.rows, {("node:Note", name): None})
    assert guarded(graph, hides).embed().embedded == ()
    assert embedded(graph) == set()


@pytest.mark.parametrize("condition", [None, NAMED_A])
def test_a_load_embeds_no_text_that_the_actor_cannot_read(graph, condition):
    hides = Visibility(SEES.rows, {("node:Note", "text"): condition})
    record = {"type": "Note", "data": {"slug": "b", "tenant": "acme"}}
    assert guarded(graph, hides).load([record], mode="merge").embedded_rows == 0
    assert guarded(graph).load([record], mode="merge").embedded_rows == 1
    assert embedded(graph) == {"b"}


def test_different_models_of_a_hidden_vector_are_not_named(graph):
    graph.branch_create("work")
    insert = 'insert Note {{ slug: "{0}", tenant: "acme", text: "text {0}" }}'
    graph.mutate(insert.format("m"))
    og.open(graph.uri, environ={"OMNIGRAPH_EMBED_PROVIDER": "mock"}).mutate(insert.format("w"), branch="work")
    hides = Visibility({}, {("node:Note", "meaning"): None})
    for handle, named in ((graph, True), (guarded(graph, hides), False)):
        with pytest.raises(InputError, match="different models") as caught:
            handle.merge("work")
        assert ("meaning" in caught.value.message) is named
