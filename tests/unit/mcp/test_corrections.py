"""Corrected texts of queries."""

from __future__ import annotations

import pytest

from omnigraph.errors import CompileError
from omnigraph.mcp.corrections import compile_text, corrected_text
from omnigraph.schema.check import compile_schema

CATALOG = compile_schema(
    "node Person { name: String @key  born: Date? }\nnode Ort { name: String @key }\nedge LivesIn: Person -> Ort"
)


def corrected(text, params=None):
    with pytest.raises(CompileError) as caught:
        compile_text(CATALOG, text, params or {})
    return corrected_text(CATALOG, text, params or {}, caught.value)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("match { $p: Persn } return { $p.name }", "match { $p: Person } return { $p.name }"),
        ("match { $p: Persn } return { $p.nmae }", "match { $p: Person } return { $p.name }"),
        (
            "match { $p: Person $p livesn $o } return { $o.name }",
            "match { $p: Person $p livesIn $o } return { $o.name }",
        ),
        ("match { $é: Person } return { $é.nme }", None),
        (
            "query q($n: String) { match { $p: Person { nam: $n } } return { $p.name } }",
            "query q($n: String) { match { $p: Person { name: $n } } return { $p.name } }",
        ),
        ("match { $p: Person } return { $p.zzzzzz }", None),
        ("match { $p: Person ", None),
        ("match { $p: Person $p.born > 3 } return { $p.name }", None),
    ],
)
def test_corrections(wrong, right):
    assert corrected(wrong) == right


def test_bare_parameters_take_their_types_from_values():
    text = "match { $p: Person $p.nme = $n } return { $p.name }"
    assert corrected(text, {"n": "ana"}) == "match { $p: Person $p.name = $n } return { $p.name }"
