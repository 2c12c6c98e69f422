"""The rewrite in isolation: the searches of a query before and after."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omnigraph.query.compile import compile_query
from omnigraph.query.plan.ir import AntiJoin, FindPaths, LeftJoin, Pipeline, QueryIR
from omnigraph.query.plan.rewrites.measure_paths import measure_paths
from omnigraph.schema.check import compile_schema

CATALOG = compile_schema("node P { name: String @key  n: I64? }\nedge E: P -> P { w: F64 }\n")
PATH = "$w: shortest { $p e{1,4} $q }"
# match and what follows: True if only the distance of the path is computed
CASES = {
    (PATH, "return { $q.name, length($w) as hops }"): True,
    (f"{PATH} by w", "return { $q.name, weight($w) as cost }"): True,
    (PATH, "return { $q.name }"): True,
    (f"{PATH} length($w) < 3", "return { $q.name }"): True,
    (PATH, "return { $q.name, length($w) as hops } order { hops }"): True,
    (PATH, "return { count($w) as paths }"): True,
    (f"not {{ {PATH} $q.n = 1 }}", "return { $p.name }"): True,
    (f"optional {{ {PATH} }}", "return { $p.name, length($w) as hops }"): True,
    (PATH, "return { $q.name, $w }"): False,
    (PATH, "return { $q.name, nodes($w) as nodes }"): False,
    (PATH, "return { $q.name, nodes($w, name) as names }"): False,
    (f'{PATH} "x" in nodes($w, name)', "return { $q.name }"): False,
    (f"optional {{ {PATH} }}", "return { $p.name, $w }"): False,
    ("$w: path { $p e{1,4} $q }", "return { $q.name, length($w) as hops }"): False,
    ("$w: all shortest { $p e{1,4} $q }", "return { $q.name, length($w) as hops }"): False,
    ("$w: shortest { $p e{1,4} $_ }", "return { $p.name, length($w) as hops } order { hops }"): False,
    ("$w: shortest { $p e{1,4} $_ }", "return { $p.name, length($w) as hops }"): True,
}


def searches(pipeline: Pipeline) -> list[FindPaths]:
    found = [op for op in pipeline if isinstance(op, FindPaths)]
    blocks = [op for op in pipeline if isinstance(op, AntiJoin | LeftJoin)]
    return [*found, *(search for block in blocks for search in searches(block.inner))]


def unmeasured(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline as it is before the rewrite."""
    return tuple(
        replace(op, measured=False)
        if isinstance(op, FindPaths)
        else replace(op, inner=unmeasured(op.inner))
        if isinstance(op, AntiJoin | LeftJoin)
        else op
        for op in pipeline
    )


@pytest.mark.parametrize(("text", "measured"), CASES.items(), ids=[" ".join(text) for text in CASES])
def test_measured_paths(text, measured):
    match, rest = text
    compiled = compile_query(CATALOG, f"query q() {{ match {{ $p: P {match} }} {rest} }}")
    assert isinstance(compiled, QueryIR)
    before = replace(compiled, pipeline=unmeasured(compiled.pipeline))
    after = measure_paths(before)
    assert [search.measured for search in searches(before.pipeline)] == [False]
    assert [search.measured for search in searches(after.pipeline)] == [measured]
    assert unmeasured(after.pipeline) == before.pipeline


def test_a_query_without_paths_is_not_rewritten():
    compiled = compile_query(CATALOG, "query q() { match { $p: P not { $p e{1,4} $q } } return { $p.name } }")
    assert isinstance(compiled, QueryIR)
    assert measure_paths(compiled) is compiled
