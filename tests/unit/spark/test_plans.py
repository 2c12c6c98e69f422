from __future__ import annotations

from typing import Any

import pytest

from omnigraph.errors import InputError
from omnigraph.query.compile import compile_query
from omnigraph.schema.check import compile_schema
from omnigraph.spark.plans import run_on_spark

SCHEMA = """
node A { name: String @key  text: String? @index  place: Vector(2)? }
node B { name: String @key }
edge Ab: A -> B
edge Aa: A -> A
"""
RANKED = {
    "returned": "return { $a.name, bm25($a.text, \"x\") as score }",
    "ordered by": "return { $a.name } order { nearest($a.place, [1.0, 2.0]) } limit 3",
}  # fmt: skip


@pytest.mark.parametrize("returned", RANKED.values(), ids=RANKED)
def test_a_rank_is_refused_wherever_it_is(returned: str) -> None:
    catalog = compile_schema(SCHEMA)
    plan: Any = compile_query(catalog, f"query q() {{ match {{ $a: A }} {returned} }}")
    nothing: Any = None
    with pytest.raises(InputError) as caught:
        run_on_spark(nothing, plan, catalog, nothing, {}, now_ms=0)
    assert caught.value.code == "not_on_spark"


SEVERAL = {
    "bound": "$a: A|B",
    "reached": "$a: A  $a -> $x",
    "somewhere inside": "$a: A  not { $a ab|aa $_ }",
}


@pytest.mark.parametrize("match", SEVERAL.values(), ids=SEVERAL)
def test_nodes_of_several_types_are_refused(match: str) -> None:
    catalog = compile_schema(SCHEMA)
    plan: Any = compile_query(catalog, f"query q() {{ match {{ {match} }} return {{ $a.name }} }}")
    nothing: Any = None
    with pytest.raises(InputError, match="nodes of several types") as caught:
        run_on_spark(nothing, plan, catalog, nothing, {}, now_ms=0)
    assert caught.value.code == "not_on_spark"
