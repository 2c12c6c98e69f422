from __future__ import annotations

from typing import Any

import pytest

from omnigraph.errors import InputError
from omnigraph.query.compile import compile_query
from omnigraph.schema.check import compile_schema
from omnigraph.spark.dataframe_lowering import run_on_spark

SCHEMA = """
node A { name: String @key  text: String? @index  place: Vector(2)? }
node B { name: String @key }
edge Ab: A -> B
edge Aa: A -> A
"""
RANKED, SEVERAL, PATHS = "ranks by search", "nodes of several types", "searches paths"
UNSUPPORTED = {
    "returned rank": ("match { $a: A } return { $a.name, bm25($a.text, \"x\") as score }", RANKED),
    "rank in order": ("match { $a: A } return { $a.name } order { nearest($a.place, [1, 2]) } limit 3", RANKED),
    "bound variable of several types": ("match { $a: A|B } return { $a.name }", SEVERAL),
    "target of several types": ("match { $a: A  $a -> $x } return { $a.name }", SEVERAL),
    "several types in a negation": ("match { $a: A  not { $a ab|aa $_ } } return { $a.name }", SEVERAL),
    "path": ("match { $a: A  $p: path { $a aa{1,3} $b } } return { length($p) as n }", PATHS),
    "negated path": ("match { $a: A  not { $p: path { $a aa{1,3} $b } } } return { $a.name }", PATHS),
}  # fmt: skip


@pytest.mark.parametrize(("text", "why"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_unsupported_plans_are_rejected(text: str, why: str) -> None:
    catalog = compile_schema(SCHEMA)
    plan: Any = compile_query(catalog, f"query q() {{ {text} }}")
    nothing: Any = None
    with pytest.raises(InputError, match=f"query 'q' .*{why}.*, which Spark does not support") as caught:
        run_on_spark(nothing, plan, catalog, nothing, {}, now_ms=0)
    assert (caught.value.code, caught.value.hint) == ("not_on_spark", "run it with engine='memory'")
