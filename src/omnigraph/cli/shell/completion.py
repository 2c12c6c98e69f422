"""Completion of words at the cursor, from the schema, the branches and the query language.

The text before the cursor is split into tokens but not parsed, because it is incomplete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from omnigraph.lang.tokens import END, LOWER, PUNCT, UPPER, VAR, Token, lex
from omnigraph.query.functions import AGGREGATE, RANK, TEXT
from omnigraph.schema.catalog import Catalog
from omnigraph.types import SCALARS

CLAUSES = ("match", "with", "return", "having", "order", "skip", "limit", "query", "insert", "update", "delete")
STATEMENTS = ("insert", "update", "delete")


@dataclass(frozen=True)
class CompletionWords:
    """Candidates other than those of the schema."""

    commands: Sequence[str] = ()
    branches: Callable[[], Iterable[str]] = tuple
    formats: Sequence[str] = ()
    queries: Callable[[], Iterable[str]] = tuple
    points: frozenset[str] = field(default_factory=frozenset)
    """Commands whose arguments are branches."""


def complete(text: str, catalog: Catalog, words: CompletionWords) -> tuple[str, list[str]]:
    """Return the incomplete word before the cursor and its completions."""
    if text.lstrip().startswith(":"):
        return _command(text.lstrip(), catalog, words)
    tokens = [token for token in lex(text).tokens if token.kind != END]
    partial = ""
    if tokens and tokens[-1].end == len(text) and tokens[-1].kind in (LOWER, UPPER, VAR):
        partial = tokens.pop().text
    elif text.endswith("$"):
        partial = "$"
        tokens = tokens[:-1]
    return partial, _matching(partial, _proposals(tokens, catalog))


def _matching(partial: str, proposals: Iterable[str]) -> list[str]:
    found = {word for word in proposals if word.lower().startswith(partial.lower()) and word != partial}
    return sorted(found)


def _command(text: str, catalog: Catalog, words: CompletionWords) -> tuple[str, list[str]]:
    name, blank, rest = text[1:].partition(" ")
    if not blank:
        return f":{name}", _matching(f":{name}", [f":{command}" for command in words.commands])
    partial = rest.rpartition(" ")[2]
    if name in words.points:
        proposals: Iterable[str] = words.branches()
    elif name == "format":
        proposals = words.formats
    elif name == "run":
        proposals = words.queries()
    elif name in ("schema", "history", "blame"):
        proposals = [*catalog.nodes, *catalog.edges]
    else:
        proposals = ()
    return partial, _matching(partial, proposals)


def _proposals(tokens: Sequence[Token], catalog: Catalog) -> Iterable[str]:
    last = tokens[-1].text if tokens else ""
    before = tokens[-2] if len(tokens) > 1 else None
    types = _variable_types(tokens, catalog)
    block, type_name = _surroundings(tokens)
    if last == "." and before is not None and before.kind == VAR:
        return _properties(types.get(before.text), catalog)
    if last == ":" and before is not None and before.kind == VAR:
        return SCALARS if block == "query" else catalog.nodes
    if last in STATEMENTS:
        return catalog.nodes if last == "update" else [*catalog.nodes, *catalog.edges]
    if type_name is not None and (last in ("{", ",", "where") or block == "where"):
        ends = ("from", "to") if type_name in catalog.edges else ()
        return [*_properties(type_name, catalog), *ends]
    if block == "match" and tokens[-1].kind == VAR:
        return _edges(types.get(last), catalog)
    variables = {token.text for token in tokens if token.kind == VAR}
    if block == "match":
        return [*variables, "not", "optional", "or", "in", *TEXT, "date", "datetime", "now", *_edges(None, catalog)]
    if block in ("with", "return", "having"):
        return [*variables, *AGGREGATE, *RANK, "as"]
    if block == "order":
        return [*variables, *RANK, "asc", "desc"]
    return CLAUSES


def _surroundings(tokens: Sequence[Token]) -> tuple[str, str | None]:
    """Return the innermost open block and the type of its statement."""
    stack: list[tuple[str, str | None]] = [("", None)]
    word, type_name = "", None
    for token in tokens:
        if token.kind == PUNCT and token.text in "{(":
            # A pattern belongs to its enclosing block, a parameter list to its query.
            inside = word if token.text == "{" or word == "query" else stack[-1][0]
            stack.append((inside, type_name if word in STATEMENTS or word in ("set", "pattern") else None))
            word = ""
        elif token.kind == PUNCT and token.text in "})" and len(stack) > 1:
            stack.pop()
            word = ""
        elif token.kind == LOWER and token.text in (*CLAUSES, "not", "optional", "set", "where"):
            word = "match" if token.text in ("not", "optional") else token.text
            if word == "where":
                stack[-1] = ("where", type_name)
        elif token.kind == UPPER:
            type_name = token.text
            if stack[-1][0] == "match" and word not in STATEMENTS:
                word = "pattern"
    return stack[-1]


def _variable_types(tokens: Sequence[Token], catalog: Catalog) -> dict[str, str]:
    """Return the types of variables that follow from bindings and hops."""
    types: dict[str, str] = {}
    for a, b, c in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if a.kind == VAR and b.text == ":" and c.kind == UPPER:
            types[a.text] = c.text
    for a, b, c in zip(tokens, tokens[1:], tokens[2:], strict=False):
        edge = catalog.edges.get(b.text[:1].upper() + b.text[1:]) if b.kind == LOWER else None
        if a.kind == VAR and c.kind == VAR and edge is not None:
            types.setdefault(a.text, edge.from_type)
            types.setdefault(c.text, edge.to_type)
    return types


def _properties(type_name: str | None, catalog: Catalog) -> list[str]:
    found = catalog.nodes.get(type_name or "") or catalog.edges.get(type_name or "")
    if found is not None:
        return list(found.properties)
    return [] if type_name else [name for node in catalog.nodes.values() for name in node.properties]


def _edges(type_name: str | None, catalog: Catalog) -> list[str]:
    touching = [
        name for name, edge in catalog.edges.items() if type_name is None or type_name in (edge.from_type, edge.to_type)
    ]
    return [name[:1].lower() + name[1:] for name in touching]
