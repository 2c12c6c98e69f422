"""The guide: its examples compile against the schema and run on the graph."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.mcp.corrections import compile_text
from omnigraph.mcp.guide import LINES_MAX, guide_text, read_examples, write_examples
from omnigraph.schema.check import compile_schema

ROOT = Path(__file__).parents[3]
FILES = sorted({*ROOT.glob("examples/**/*.pg"), *ROOT.glob("src/omnigraph/demo/*.pg")})
MUSEUM = (
    (ROOT / "docs" / "query-language.md").read_text(encoding="utf-8").split("```pg name=museum\n")[1].split("```")[0]
)
SMALL = {
    "museum": MUSEUM,
    "one node": "node N { }",
    "only a key": "node N { k: I64 @key }",
    "two keys": "node N { a: String  b: I64  @key(a, b) }",
    "a loop": "node N { k: String @key }\nedge E: N -> N",
    "odd names": "node Match { return: String @key  order: I64? }\nedge Not: Match -> Match\nedge In: Match -> Match",
    "vectors": 'node N { k: String @key  t: String  v: Vector(2)? @embed("t")  w: Vector(3)? }',
}
SCHEMAS = {**{str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in FILES}, **SMALL}


@pytest.mark.parametrize("name", SCHEMAS)
def test_examples_compile(name):
    catalog = compile_schema(SCHEMAS[name])
    text = guide_text(catalog, write=True)
    assert len(text.splitlines()) <= LINES_MAX
    blocks = text.split("```\n")[1::2]
    assert len(blocks) == len(read_examples(catalog)) + len(write_examples(catalog)) >= 1
    for block in blocks:
        compile_text(catalog, block, {})


def test_a_rich_schema_has_every_example():
    """No example is left out of a schema that has what it needs: the texts themselves are valid."""
    catalog = compile_schema(MUSEUM)
    titles = [example.title.partition(",")[0].partition(":")[0] for example in read_examples(catalog)]
    assert titles == [
        "Some nodes of a type",
        "One node by its key",
        "Conditions and order",
        "Counts by value. Other aggregates",
        "Follow an edge",
        "Bind the edge to read its properties",
        "Nodes without an edge",
        "Keep nodes without a match",
        "A stage",
        "Nodes within three edges",
        "A shortest path between two nodes",
        "Neighbours over edges of any type",
        "Full text",
        "Nearest vectors",
    ]
    assert len(write_examples(catalog)) == 4


def test_examples_run(graph, endpoint):
    values = {"key": "ana", "from": "ana", "to": "bo", "words": "ships", "like": [1.0, 0.0, 0.0]}
    for example in read_examples(graph.catalog()):
        params = {name: value for name, value in values.items() if f"${name}:" in example.text}
        assert not endpoint().call("query", {"query": example.text, "params": params}).is_error, example.title


def test_write_examples_run(tmp_path):
    graph = og.init(tmp_path / "g.omni", "node A { k: String @key  n: I64 }\nedge E: A -> A { w: F64 }")
    values = {"k": "a", "n": 1, "key": "a", "value": 2, "from": "b", "to": "b", "w": 1.5}
    graph.mutate('insert A { k: "b", n: 0 }')
    for example in write_examples(graph.catalog()):
        for query in example.text.split("\nquery "):
            text = query if query.startswith("query ") else f"query {query}"
            params = {name: value for name, value in values.items() if f"${name}:" in text}
            assert graph.mutate(text, params).commit_id is not None or "upsert" in text
    assert [row["a.k"] for row in graph.query("match { $a: A } return { $a.k }")] == ["b"]
