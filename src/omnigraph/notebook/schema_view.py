"""A schema as highlighted source text and a picture of its types."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from omnigraph.display import save, show
from omnigraph.lang.tokens import LOWER, STRING, UPPER, lex
from omnigraph.notebook.picture import Dot, Line, draw
from omnigraph.notebook.tables import side_by_side
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.check import compile_schema

_WORDS = ("node", "edge", "interface", "implements", "enum")
_COLOURS = {UPPER: "#54a24b", STRING: "#b07a1a"}


class SchemaText(str):
    """The text of a schema, with an HTML form."""

    __slots__ = ()

    def show(self) -> Any:
        """Return a widget with the types as a picture and a table for a notebook (extra `notebook`)."""
        return show(self)

    def save(self, path: str | Path) -> Path:
        """Write the types as one HTML file, which loads nothing, and return its path."""
        return save(self, path)

    def _repr_html_(self) -> str:
        source = f'<pre style="margin:0">{"".join(_coloured(self))}</pre>'
        return side_by_side(source, picture_of(compile_schema(str(self))))


def picture_of(catalog: Catalog) -> str:
    """Return a picture with node types as dots and edge types as lines."""
    dots = [Dot(name, name, "node type") for name in catalog.nodes]
    lines = [Line(edge.from_type, edge.to_type, name) for name, edge in catalog.edges.items()]
    return draw(dots, lines)


def _coloured(text: str) -> Iterator[str]:
    end = 0
    for token in lex(text).tokens:
        yield escape(text[end : token.start])
        part = escape(text[token.start : token.end])
        if token.kind == LOWER and token.text in _WORDS:
            part = f"<b>{part}</b>"
        elif token.kind in _COLOURS:
            part = f'<span style="color:{_COLOURS[token.kind]}">{part}</span>'
        yield part
        end = token.end
