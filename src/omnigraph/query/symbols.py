"""Definitions and uses of names in query and schema texts.

The texts are split into tokens but not parsed: an editor asks while a text is incomplete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from omnigraph.lang.tokens import END, LOWER, PUNCT, UPPER, VAR, Token, lex
from omnigraph.query.complete import variable_types
from omnigraph.query.editor import Language
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.describe_words import SCALAR_TYPES

SymbolKind = Literal["query", "variable", "type", "edge", "property"]
DECLARATIONS = ("node", "edge", "interface")
_BEFORE_EDGES = ("|", ":", "->", "<")


class Symbol(NamedTuple):
    """One occurrence of a name."""

    kind: SymbolKind
    name: str
    """The name; of an edge, that of its type."""
    start: int
    end: int
    is_definition: bool = False
    scope: str = ""
    """Of a variable, its query; of a property, its type."""

    def is_same(self, other: Symbol) -> bool:
        """Return True if two occurrences are of the same name; edges are types."""
        kinds = {"edge": "type"}
        return (kinds.get(self.kind, self.kind), self.name, self.scope) == (
            kinds.get(other.kind, other.kind),
            other.name,
            other.scope,
        )


def symbols_of(text: str, language: Language, catalog: Catalog) -> list[Symbol]:
    """Return the names of a text in its order; the catalog tells types of variables and words of edges."""
    tokens = [token for token in lex(text).tokens if token.kind != END]
    return list(_query_symbols(tokens, catalog) if language == "gq" else _schema_symbols(tokens))


def symbol_at(symbols: Sequence[Symbol], offset: int) -> Symbol | None:
    """Return the name at an offset, or directly before it."""
    return next((each for each in symbols if each.start <= offset <= each.end), None)


def _query_symbols(tokens: Sequence[Token], catalog: Catalog) -> Iterator[Symbol]:
    types, depth, query = variable_types(tokens, catalog), 0, ""
    seen: set[tuple[str, str]] = set()
    for at, token in enumerate(tokens):
        before = tokens[at - 1] if at else None
        if token.kind == PUNCT:
            depth = max(0, depth + {"{": 1, "}": -1}.get(token.text, 0))
        elif token.kind == LOWER and before is not None and before.text == "query" and depth == 0:
            query = token.text
            yield Symbol("query", token.text, token.start, token.end, is_definition=True)
        elif token.kind == VAR and token.text != "$_":
            first = (query, token.text) not in seen
            seen.add((query, token.text))
            yield Symbol("variable", token.text, token.start, token.end, first, query)
        elif token.kind == UPPER and token.text not in SCALAR_TYPES:
            yield Symbol("type", token.text, token.start, token.end)
        elif token.kind == LOWER and before is not None:
            yield from _word(token, tokens[max(0, at - 2) : at], types, catalog)


def _word(token: Token, before: Sequence[Token], types: dict[str, str], catalog: Catalog) -> Iterator[Symbol]:
    """Yield the property or edge that a word is."""
    last = before[-1]
    if last.text == "." and len(before) > 1 and before[0].kind == VAR:
        yield Symbol("property", token.text, token.start, token.end, scope=types.get(before[0].text, ""))
    elif last.kind == VAR or last.text in _BEFORE_EDGES:
        edge = catalog.find_edge(token.text)
        if edge is not None:
            yield Symbol("edge", edge.name, token.start, token.end)


def _schema_symbols(tokens: Sequence[Token]) -> Iterator[Symbol]:
    depth, type_ = 0, ""
    for at, token in enumerate(tokens):
        before = tokens[at - 1].text if at else ""
        after = tokens[at + 1].text if at + 1 < len(tokens) else ""
        if token.kind == PUNCT:
            depth = max(0, depth + {"{": 1, "}": -1}.get(token.text, 0))
        elif token.kind == UPPER and token.text not in SCALAR_TYPES:
            declares = depth == 0 and before in DECLARATIONS
            type_ = token.text if declares else type_
            yield Symbol("type", token.text, token.start, token.end, declares)
        elif token.kind == LOWER and depth == 1 and after == ":":
            yield Symbol("property", token.text, token.start, token.end, is_definition=True, scope=type_)
