"""Plans as trees."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.query.compile import compile_query
from omnigraph.query.plan.explain import explain
from omnigraph.query.plan.plan_tree import plan_tree
from omnigraph.schema.check import compile_schema

SCHEMA = """
node Person { name: String @key
  age: I32? }
edge Knows: Person -> Person
"""
QUERIES = [
    "query q($n: String) { match { $p: Person { name: $n } $p knows $q not { $q knows $p } } return { $q.name } }",
    "query q() { match { $p: Person optional { $p knows $q } } return { $p.name, count($q) as n } order { n } }",
    "query q() { match { $p knows $q } with { $p, count($q) as $n } match { $p knows $r } return { $r.name } }",
    'query q() { insert Person { name: "a" } }',
]


def lines_of(node, depth=0):
    """The lines of the text, from the tree."""
    word = f"{node['op']:<7}" if depth else node["op"]
    yield f"{'  ' * depth}{word} {node['text']}".rstrip()
    for child in node["children"]:
        yield from lines_of(child, depth + 1)


@pytest.mark.parametrize("text", QUERIES)
def test_the_tree_is_the_text(text):
    plan = compile_query(compile_schema(SCHEMA), text)
    assert [" ".join(line.split()) for line in lines_of(plan_tree(plan))] == [
        " ".join(line.split()) for line in explain(plan).splitlines()
    ]


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    graph = og.init(tmp_path_factory.mktemp("plan") / "g", SCHEMA, sync=False, environ={})
    graph.load(
        [
            *({"type": "Person", "data": {"name": name}} for name in "abc"),
            *({"edge": "Knows", "from": a, "to": b} for a, b in ("ab", "bc", "ca")),
        ],
        mode="merge",
    )
    return graph


def test_explain_has_estimates_and_notes(graph):
    plan = graph.explain("match { $p: Person $p knows $q not { $q knows $p } } return { $q.name }")
    scan, expand, without, result = plan.tree["children"]
    assert (scan["op"], scan["expected"], scan["notes"]) == ("scan", 3.0, ["of 3"])
    assert expand["op"] == "expand"
    assert any("adjacency" in note for note in expand["notes"])
    assert [child["op"] for child in without["children"]]
    assert "rows" not in scan
    assert result["op"] == "return"
    assert all(note in str(plan) for note in [*plan.tree["notes"], *expand["notes"]])


def test_profile_has_rows_and_times(graph):
    plan = graph.profile("match { $p: Person $p knows $q } return { $q.name } order { $q.name } limit 2")
    assert plan.tree["rows"] == 2
    assert plan.tree["ms"] >= 0
    measured = [child for child in plan.tree["children"] if "rows" in child]
    assert [child["rows"] for child in measured][:2] == [3, 3]
    assert all(child["ms"] >= 0 for child in measured)


def test_mutations_have_a_tree(graph):
    plan = graph.explain('insert Person { name: "x" }')
    assert plan.tree["op"] == "change"
    assert plan.tree["children"][0]["op"] == "insert"
