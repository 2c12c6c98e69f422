"""Queries at past points, by every kind of name, with the schema of that point."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from omnigraph.errors import InputError, TypeCheckError
from omnigraph.graph import Graph
from support.writes import edge, new_graph, node

FIRST = """
node Doc { name: String @key  text: String? @index  vec: Vector(2)? @index  n: I64? }
edge Cites: Doc -> Doc { weight: I64? }
"""
SECOND = FIRST.replace("text: String?", 'body: String? @rename_from("text")').replace(
    "n: I64?", "n: I64?  extra: String?"
)

QUERIES = [
    "match { $d: Doc } return { $d.name, $d.TEXT as t, $d.n } order { $d.name }",
    "match { $d: Doc { n: 1 } } return { $d }",
    "match { $a: Doc $a cites{1,3} $b } return { $a.name, $b.name } order { $a.name, $b.name }",
    "match { $a: Doc $a $w:cites $b } return { $b.name, count($a) as c, sum($w.weight) as s } order { $b.name }",
    "match { $a: Doc not { $a cites $_ } } return { $a.name } order { $a.name }",
    'match { $d: Doc search($d.TEXT, "red") } return { $d.name } order { $d.name }',
    'match { $d: Doc fuzzy($d.TEXT, "rod", 1) } return { $d.name } order { $d.name }',
    'match { $d: Doc } return { $d.name, bm25($d.TEXT, "red stone") as s } order { s } limit 4',
    "match { $d: Doc } return { $d.name, nearest($d.vec, [1, 0]) as far } order { nearest($d.vec, [1, 0]) } limit 4",
    "match { $d: Doc $d cites $c } return { $d.name, $c.name as cited } "
    'order { rrf(nearest($d.vec, [1, 0]), bm25($d.TEXT, "red")) } limit 4',
]


def answers(graph: Graph, column: str, **where: Any) -> list[Any]:
    texts = [f"query q() {{ {query.replace('TEXT', column)} }}" for query in QUERIES]
    return [graph.query(text, **where).to_rows() for text in texts]


def history(graph: Graph) -> Iterator[str]:
    """Change the graph in steps; yield the name of its text property after each."""
    yield "text"
    graph.load(
        [node("Doc", name="x", text="red red", vec=[2, 1], n=1), edge("Cites", "x", "a", weight=5)], mode="append"
    )
    yield "text"
    graph.mutate('query q() { update Doc set { text: "blue", n: 1 } where name = "b" }')
    yield "text"
    graph.mutate('query q() { delete Doc where name = "a" }')
    yield "text"
    graph.optimize()
    yield "text"
    graph.apply_schema(SECOND)
    yield "body"
    graph.load([node("Doc", name="y", body="red stone", extra="e", vec=[1, 0])], mode="append")
    yield "body"


def test_query_at_every_point_by_every_kind_of_name(tmp_path):
    docs = [
        node("Doc", name="a", text="red river", vec=[1, 0], n=0),
        node("Doc", name="b", text="red stone", vec=[0, 1], n=1),
        node("Doc", name="c", text=None, vec=None),
        node("Doc", name="d", text="rod", vec=[-1, 0.5], n=1),
    ]
    cites = [edge("Cites", *ends, weight=at, id_=f"e{at}") for at, ends in enumerate(("ab", "bc", "cd", "da", "db"))]
    graph = new_graph(tmp_path, FIRST, *docs, *cites)
    points = []
    for number, column in enumerate(history(graph)):
        graph.branch_create(f"then-{number}")
        graph.tag_create(f"tag-{number}")
        snapshot = graph.snapshot()
        points.append((number, column, snapshot.commit_id, snapshot.version, answers(graph, column)))
    assert len({str(found) for *_, found in points}) >= 5, "the points differ"
    reader = Graph(graph._context)
    for number, column, commit, version, expected in reversed(points):
        created = graph.commit(commit).created_at
        names: list[dict[str, Any]] = [
            {"branch": f"then-{number}"},
            {"at": commit},
            {"at": f"tag-{number}"},
            {"at": version},
            {"at": f"manifest:main:v{version}"},
            {"at": created},
            {"branch": f"then-{number}", "at": commit},
        ]
        for where in names:
            assert answers(reader, column, **where) == expected, (number, where)
            assert reader.query(f"query q() {{ {QUERIES[0].replace('TEXT', column)} }}", **where).commit_id == commit


def test_query_is_checked_against_the_schema_of_its_snapshot(tmp_path):
    graph = new_graph(tmp_path, FIRST, node("Doc", name="a", text="red"))
    before = graph.commits()[0].id
    graph.apply_schema(SECOND)
    old, new = (f"query q() {{ match {{ $d: Doc }} return {{ $d.{name} as t }} }}" for name in ("text", "body"))
    assert graph.query(old, at=before).to_rows() == graph.query(new).to_rows() == [{"t": "red"}]
    for text, where in ((old, {}), (new, {"at": before})):
        with pytest.raises(TypeCheckError) as caught:
            graph.query(text, **where)
        assert caught.value.code == "T6"
    assert "$d.text" in graph.explain(old, at=before)
    assert "$d.text" in graph.profile(old, at=before)


@pytest.mark.parametrize("at", [True, 1.0, float("nan"), b"1", date(2026, 1, 1), [1], {}], ids=str)
def test_point_of_another_type_is_rejected(tmp_path, at):
    graph = new_graph(tmp_path, FIRST, node("Doc", name="a", text="red"))
    for use in (lambda: graph.snapshot(at=at), lambda: graph.get("Doc", "a", at=at), lambda: list(graph.export(at=at))):
        with pytest.raises(InputError, match="a point of history is"):
            use()


def test_id_that_is_not_unicode_is_rejected(tmp_path):
    graph = new_graph(tmp_path, FIRST, node("Doc", name="a", text="red"))
    with pytest.raises(InputError, match="not valid Unicode"):
        graph.get("Doc", "\ud800")
