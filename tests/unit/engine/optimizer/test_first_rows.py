"""Which variable determines the first rows of a query."""

from __future__ import annotations

import pytest

from omnigraph.engine.optimizer.first_rows import FirstRows, first_rows_of
from omnigraph.query.compile import compile_query
from omnigraph.query.plan import ir
from omnigraph.schema.check import compile_schema
from support.writes import edge, new_graph, node

SCHEMA = """
node P { name: String @key  n: I64?  text: String? @index  vec: Vector(2)? }
edge E: P -> P
"""
NEAREST = "nearest($q.vec, [1, 0])"
# clauses after the match: (variable, nodes that are tried first, ranked property, fused); None: all rows are matched
CLAUSES = {
    "return { $p.name } order { $q.n } limit 3": ("q", 64, None, False),
    "return { $p.name } order { $q.n desc, $q.name } skip 5 limit 30": ("q", 140, None, False),
    f"return {{ $p.name }} order {{ {NEAREST} }} limit 3": ("q", 64, "vec", False),
    'return { $p.name } order { bm25($q.text, "a") } limit 3': ("q", 64, None, False),
    f'return {{ $p.name }} order {{ rrf({NEAREST}, bm25($q.text, "a")) }} limit 3': ("q", 64, None, True),
    "return { $p.name } order { $q.n, $p.n } limit 3": None,
    "return { $p.name } order { $q.n }": None,
    "return { $p.name } limit 3": (None, 64, None, False),
    "return { $p.name, count($q) as n } order { n } limit 3": None,
}


@pytest.mark.parametrize(("rest", "expected"), CLAUSES.items(), ids=CLAUSES)
def test_first_rows(tune, rest, expected):
    tune(ranked_candidates_min=64, ranked_overfetch=4)
    compiled = compile_query(compile_schema(SCHEMA), f"query q() {{ match {{ $p: P $p e $q }} {rest} }}")
    assert isinstance(compiled, ir.QueryIR)
    found = first_rows_of(compiled)
    if expected is None:
        assert found is None
        return
    var, wanted, ranked, fused = expected
    assert isinstance(found, FirstRows)
    assert (found.var, found.wanted, found.fused) == (var, wanted, fused)
    assert (found.ranked.name if found.ranked else None) == ranked


def test_limit_alone_determines_the_start(tmp_path):
    """All firms of some sizes are matched from the firms; a few of them from a few persons."""
    schema = (
        "node Person { name: String @key }\nnode Firm { name: String @key  size: I64 }\nedge WorksAt: Person -> Firm\n"
    )
    records = [node("Person", name=f"p{at}") for at in range(6_000)]
    records += [node("Firm", name=f"f{at}", size=at) for at in range(3_000)]
    records += [edge("WorksAt", f"p{at}", f"f{at // 2}") for at in range(6_000)]
    graph = new_graph(tmp_path, schema, *records)
    match = "query q() { match { $p: Person $p worksAt $f $f.size < 1000 } return { $p.name as p, $f.size as size }"
    assert "  chosen  $f → $p" in graph.explain(f"{match} }}")
    few = f"{match} limit 5 }}"
    explained = graph.explain(few)
    assert "  chosen  $p → $f" in explained
    assert "of 6,000 Person, until the limit is reached" in explained
    found = graph.query(few).to_pylist()
    assert len(found) == 5
    assert all(int(row["p"][1:]) // 2 == row["size"] < 1_000 for row in found)
