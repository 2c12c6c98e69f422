"""An analysis that writes its values under a guard: visible rows get values, and each needs its rights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import Denied, InputError
from omnigraph.graph import Graph
from omnigraph.graph_open import init
from omnigraph.query.plan import ir
from omnigraph.query.visibility import ROW, Visibility
from omnigraph.query.write_guard import WriteGuard

SCHEMA = """
node Note {
  name: String @key
  tenant: String
  degree: I64?
  hidden: I64?
}
edge Cites: Note -> Note
"""


def equal(name: str, value: str) -> ir.Condition:
    return ir.Compare("=", ir.Prop(ROW, name, ir.STRING), ir.Const(value, ir.STRING))


ACME = equal("tenant", "acme")
SEES = Visibility({"node:Note": ACME}, {("node:Note", "hidden"): None})


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = init(tmp_path / "graph", SCHEMA, sync=False, environ={})
    notes = [{"name": name, "tenant": "acme", "degree": 7} for name in "ab"]
    notes.append({"name": "x", "tenant": "other", "degree": 7})
    edges = [("a", "b"), ("a", "x"), ("x", "b")]
    graph.load(
        [
            *({"type": "Note", "data": data} for data in notes),
            *({"edge": "Cites", "from": source, "to": target} for source, target in edges),
        ],
        mode="append",
    )
    return graph


def analyze(graph: Graph, guard: WriteGuard, into: str = "degree") -> Any:
    return Graph(graph._context.with_guard(guard)).analyze("degrees", write={"degree": into})


def degrees(graph: Graph) -> dict[str, int]:
    return {row["name"]: row["degree"] for row in graph.to_arrow("Note").to_pylist()}


def test_visible_rows_get_the_values_of_the_visible_graph(graph):
    assert analyze(graph, WriteGuard(SEES)).rows_written == 2
    assert degrees(graph) == {"a": 1, "b": 1, "x": 7}
    assert analyze(graph, WriteGuard(SEES)).rows_written == 0


def test_each_row_needs_row_update_and_property_write(graph):
    for guard in (
        WriteGuard(SEES, {("row_update", "node:Note"): equal("name", "a")}),
        WriteGuard(SEES, {}, {("node:Note", "degree"): equal("name", "a")}),
    ):
        with pytest.raises(Denied, match="Note 'b'"):
            analyze(graph, guard)
    assert degrees(graph) == {"a": 7, "b": 7, "x": 7}


def test_a_hidden_property_is_unknown(graph):
    with pytest.raises(InputError, match="has no property 'hidden' to write to"):
        analyze(graph, WriteGuard(SEES), "hidden")


def test_masked_values_are_not_compared(graph):
    """The number of written rows would tell which guesses of masked values are right."""
    graph.mutate('update Note set { degree: 1 } where name = "b"')
    masks = Visibility({"node:Note": ACME}, {("node:Note", "degree"): equal("name", "a")})
    assert analyze(graph, WriteGuard(masks)).rows_written == 2
    with pytest.raises(Denied, match="Note 'b'"):
        analyze(graph, WriteGuard(masks, {}, {("node:Note", "degree"): equal("name", "a")}))
