"""Kinds and types of result columns, and the hops between them."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.engine.result.result_graph import read_result_graph

SCHEMA = """
node Person { name: String @key }
node Town { name: String @key }
edge LivesIn: Person -> Town
edge Knows: Person -> Person
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    graph = og.init(tmp_path_factory.mktemp("shape") / "g", SCHEMA, sync=False, environ={})
    graph.load(
        [
            {"type": "Person", "data": {"name": "ana"}},
            {"type": "Town", "data": {"name": "Rome"}},
            {"edge": "LivesIn", "from": "ana", "to": "Rome"},
        ],
        mode="merge",
    )
    return graph


def test_columns_and_hops(graph):
    result = graph.query("match { $p: Person $p livesIn $t } return { $t, $p.name as name, $p, 1 as one }")
    assert result.shape.to_json() == {
        "columns": [
            {"kind": "node", "type": "Town"},
            {"kind": "value", "type": "String"},
            {"kind": "node", "type": "Person"},
            {"kind": "value", "type": "I64"},
        ],
        "hops": [{"source": 2, "target": 0, "label": "LivesIn", "directed": True, "several": False}],
    }
    assert read_result_graph(result.shape.to_json()).to_json() == result.shape.to_json()


def test_paths_unions_and_groups(graph):
    paths = graph.query("match { $p: Person $r: path { $p livesIn $t } } return { $r }")
    assert [column.kind for column in paths.shape.columns] == ["path"]
    union = graph.query("match { $x: Person|Town } return { $x }")
    assert [(column.kind, column.type) for column in union.shape.columns] == [("node", "Person|Town")]
    groups = graph.query("match { $p livesIn $t } return { $t, count($p) as n }")
    assert [column.kind for column in groups.shape.columns] == ["node", "value"]
