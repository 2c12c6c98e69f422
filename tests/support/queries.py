"""A small schema with one of everything, and short ways to compile queries against it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from omnigraph.errors import Diagnostic, TypeCheckError
from omnigraph.query.compile import compile_query
from omnigraph.query.plan.explain import explain
from omnigraph.query.plan.ir import AnyIR, MutationIR, QueryIR
from omnigraph.schema.check import compile_schema

SCHEMA = """
interface Named {
    name: String
}

node Person implements Named {
    name: String @key
    age: I32?
    wealth: U64?
    height: F32?
    born: Date?
    seen: DateTime?
    bio: String?
    mood: enum(calm, cross)?
    active: Bool?
    nicknames: [String]?
    marks: [I32]?
    photo: Blob?
    face: Vector(3)?
}

node Company {
    name: String @key
    founded: Date?
}

node City {
    name: String @key
}

node Note {
    title: String
    body: String
    vector: Vector(3) @embed("body")
}

edge Knows: Person -> Person {
    since: Date?
    remark: String?
    scan: Blob?
    feel: Vector(3)?
}

edge WorksAt: Person -> Company {
    role: String
}

edge BasedIn: Company -> City

edge Twins: City -> City
"""

CATALOG = compile_schema(SCHEMA)

PARAMS = (
    "$text: String, $count: I64, $ratio: F64, $flag: Bool, $day: Date, $moment: DateTime, $blob: Blob, "
    "$vector: Vector(3), $short: Vector(2), $texts: [String], $counts: [I64], $maybe: String?"
)
"""One parameter of each type."""


class Mistake(NamedTuple):
    """The tested parts of a diagnostic: the code and the underlined text."""

    code: str
    at: str


NO_CODE = "type_error"
"""The code of a rule that has no number."""


def read(match: str, give: str = "1", then: str = "") -> str:
    """The text of a read with every parameter declared."""
    return f"query q({PARAMS}) {{ match {{ {match} }} return {{ {give} }} {then} }}"


def write(statements: str) -> str:
    """The text of a mutation with every parameter declared."""
    return f"query q({PARAMS}) {{ {statements} }}"


def plan(text: str) -> AnyIR:
    return compile_query(CATALOG, text)


def read_plan(match: str, give: str = "1", then: str = "") -> QueryIR:
    compiled = plan(read(match, give, then))
    assert isinstance(compiled, QueryIR)
    return compiled


def write_plan(statements: str) -> MutationIR:
    compiled = plan(write(statements))
    assert isinstance(compiled, MutationIR)
    return compiled


def steps(match: str) -> list[str]:
    """The operations of a match block as `explain` shows them."""
    return explain(read_plan(match)).splitlines()[1:-1]


def diagnostics(text: str) -> Sequence[Diagnostic]:
    with pytest.raises(TypeCheckError) as caught:
        plan(text)
    return caught.value.diagnostics


def underlined(text: str, diagnostic: Diagnostic) -> str:
    return text.encode()[diagnostic.start : diagnostic.end].decode()


def mistakes(text: str) -> list[Mistake]:
    """Every error of the only query in `text`, in text order."""
    return [Mistake(found.code, underlined(text, found)) for found in diagnostics(text)]
