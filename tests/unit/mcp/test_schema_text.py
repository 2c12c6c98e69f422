"""The compact schema, and how a large one is cut."""

from __future__ import annotations

import pytest

from omnigraph.mcp.schema_text import schema_text, type_text
from omnigraph.schema.check import compile_schema

SCHEMA = """
interface Named { name: String }
node Author @description("Writes books.") implements Named {
    slug: String @key
    mail: String? @unique
    about: String? @index
    meaning: Vector(4)? @embed("about")
    tags: [String]?
    kind: enum(person, group)
}
node Book { isbn: String @key  year: I32? }
edge Wrote: Author -> Book @card(1..3) { role: String }
"""


def test_marks_and_arrows():
    text, complete = schema_text(compile_schema(SCHEMA))
    assert complete
    assert text.splitlines()[1:] == [
        "Author(slug String key, about String? text, kind enum(group, person), mail String? unique, "
        "meaning Vector(4)? vector of about, name String, tags [String]?) implements Named -- Writes books.",
        "Book(isbn String key, year I32?)",
        "Wrote: Author -> Book (role String) [1..3 per Author]",
        "interface Named(name String)",
    ]


def test_a_large_schema_shows_names_first():
    nodes = "\n".join(f"node Type{n:03} {{ key: String @key  a: String?  b: I64?  c: F64? }}" for n in range(200))
    edges = "\n".join(f"edge Edge{n:03}: Type{n:03} -> Type{n + 1:03}" for n in range(100))
    catalog = compile_schema(f"{nodes}\n{edges}")
    for tokens in (100, 300, 800, 2_000, 3_000):
        text, complete = schema_text(catalog, tokens)
        assert not complete
        assert len(text.encode()) <= tokens * 3.5
        assert "nodes: Type000, Type001" in text
    assert "Edge099: Type099 -> Type100" in schema_text(catalog, 3_000)[0]
    assert type_text(catalog, "Type005").splitlines() == [
        "Type005(key String key, a String?, b I64?, c F64?)",
        "Edge004: Type004 -> Type005",
        "Edge005: Type005 -> Type006",
    ]


@pytest.mark.parametrize("name", ["Wrote", "wrote"])
def test_an_edge_type_shows_its_ends(name):
    text = type_text(compile_schema(SCHEMA), name)
    assert [line.partition("(")[0].strip() for line in text.splitlines()] == ["Wrote: Author -> Book", "Author", "Book"]


def test_an_interface_shows_its_types():
    assert type_text(compile_schema(SCHEMA), "Named").endswith("implemented by: Author")
