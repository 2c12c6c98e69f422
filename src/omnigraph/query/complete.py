"""Completion and description of words of a query text at a position, from the schema and the language.

The text before the position is split into tokens but not parsed, because it is incomplete.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omnigraph.lang.editor_hints import Candidate, Completion, Hover, completion_of
from omnigraph.lang.tokens import END, LOWER, PUNCT, UPPER, VAR, Token, lex
from omnigraph.query.functions import AGGREGATE, FUNCTIONS, RANK, TEXT, VALUE
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.describe_words import (
    SCALAR_TYPES,
    declaration,
    edge_word,
    find_type,
    property_description,
    property_words,
    scalar_words,
    type_description,
    type_words,
)

CLAUSES = (
    "valid",
    "match",
    "with",
    "return",
    "having",
    "order",
    "skip",
    "limit",
    "query",
    "insert",
    "upsert",
    "update",
    "delete",
    "unify",
    "end",
)
STATEMENTS = ("insert", "upsert", "update", "delete", "unify", "end")
OPERATORS = ("not", "optional", "or", "and", "in", "is", "contains", "starts_with", "ends_with", "matches")


def complete(text: str, offset: int, catalog: Catalog) -> Completion:
    """Return the words that can stand at a position of a query text."""
    before = text[:offset]
    tokens = [token for token in lex(before).tokens if token.kind != END]
    partial = ""
    if tokens and tokens[-1].end == len(before) and tokens[-1].kind in (LOWER, UPPER, VAR):
        partial = tokens.pop().text
    elif before.endswith("$"):
        partial = "$"
        tokens = tokens[:-1]
    proposals = {each.text: each for each in _proposals(tokens, catalog)}
    return completion_of(len(before) - len(partial), len(before), partial, proposals)


def hover(text: str, offset: int, catalog: Catalog) -> Hover | None:
    """Return the description of the word at a position of a query text; None if there is nothing to say."""
    tokens = [token for token in lex(text).tokens if token.kind in (LOWER, UPPER, VAR, PUNCT)]
    at = next((at for at, token in enumerate(tokens) if token.start <= offset < token.end), None)
    if at is None or tokens[at].kind == PUNCT:
        return None
    token = tokens[at]
    found = _described(tokens, at, catalog)
    if found is None:
        return None
    title = found.type if found.kind in ("type", "edge", "function", "property") else f"{found.text}: {found.type}"
    return Hover(token.start, token.end, found.kind, title or found.text, found.description)


def _described(tokens: Sequence[Token], at: int, catalog: Catalog) -> Candidate | None:
    """Return the word at an index as a candidate whose type is its title."""
    token = tokens[at]
    types = variable_types(tokens, catalog)
    if token.kind == VAR:
        return Candidate(token.text, "variable", types[token.text]) if token.text in types else None
    if token.kind == UPPER:
        type_ = find_type(catalog, token.text)
        if type_ is not None:
            return Candidate(token.text, "type", declaration(type_), type_description(type_))
        return Candidate(token.text, "scalar", "scalar type", SCALAR_TYPES.get(token.text))
    if at > 1 and tokens[at - 1].text == "." and tokens[at - 2].kind == VAR:
        return _property(types.get(tokens[at - 2].text), token.text, catalog)
    if at + 1 < len(tokens) and tokens[at + 1].text == "(" and token.text in FUNCTIONS:
        return Candidate(token.text, "function", FUNCTIONS[token.text].usage)
    edge = catalog.find_edge(token.text)
    if edge is not None and at and tokens[at - 1].kind == VAR:
        return Candidate(token.text, "edge", declaration(edge), type_description(edge))
    return _property(_surroundings(tokens[:at])[1], token.text, catalog)


def _property(type_name: str | None, name: str, catalog: Catalog) -> Candidate | None:
    type_ = find_type(catalog, type_name or "")
    property_ = type_.properties.get(name) if type_ is not None else None
    if property_ is None:
        return None
    assert type_ is not None, "it has the property"
    return Candidate(name, "property", f"{type_name}.{name}: {property_.type}", property_description(type_, property_))


def _proposals(tokens: Sequence[Token], catalog: Catalog) -> Iterable[Candidate]:
    last = tokens[-1].text if tokens else ""
    before = tokens[-2] if len(tokens) > 1 else None
    types = variable_types(tokens, catalog)
    block, type_name = _surroundings(tokens)
    if last == "." and before is not None and before.kind == VAR:
        return _properties(types.get(before.text), catalog)
    if last == ":" and before is not None and before.kind == VAR:
        return (
            scalar_words() if block == "query" else type_words([*catalog.nodes.values(), *catalog.interfaces.values()])
        )
    if last == "valid":
        return keywords("at", "during")
    if last in STATEMENTS and not (last == "end" and block in ("match", "with", "return", "having", "order", "where")):
        edges = () if last in ("update", "unify") else catalog.edges.values()
        return type_words([*catalog.nodes.values(), *edges])
    if type_name is not None and (last in ("{", ",", "where") or block == "where"):
        ends = keywords("from", "to") if type_name in catalog.edges else []
        return [*_properties(type_name, catalog), *ends]
    if block == "match" and tokens[-1].kind == VAR:
        return _edges(types.get(last), catalog)
    return _in_block(block, _variables(tokens, types), catalog)


def _in_block(block: str, variables: list[Candidate], catalog: Catalog) -> list[Candidate]:
    """Return the words that can begin an item of a block."""
    if block == "match":
        words = keywords(*OPERATORS, "date", "datetime")
        return [*variables, *words, *functions(*TEXT, *VALUE, "now"), *_edges(None, catalog)]
    if block in ("with", "return", "having"):
        return [*variables, *functions(*AGGREGATE, *RANK, *VALUE, "why"), *keywords("as", "distinct")]
    if block == "order":
        return [*variables, *functions(*RANK), *keywords("asc", "desc")]
    return keywords(*CLAUSES)


def keywords(*words: str) -> list[Candidate]:
    """Return keywords as candidates."""
    return [Candidate(word, "keyword") for word in words]


def functions(*names: str) -> list[Candidate]:
    """Return functions as candidates."""
    return [Candidate(name, "function", FUNCTIONS[name].usage) for name in names]


def _variables(tokens: Sequence[Token], types: dict[str, str]) -> list[Candidate]:
    names = {token.text for token in tokens if token.kind == VAR}
    return [Candidate(name, "variable", types.get(name)) for name in names]


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


def variable_types(tokens: Sequence[Token], catalog: Catalog) -> dict[str, str]:
    """Return the types of variables that follow from bindings and hops."""
    types: dict[str, str] = {}
    for a, b, c in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if a.kind == VAR and b.text == ":" and c.kind == UPPER:
            types[a.text] = c.text
    for a, b, c in zip(tokens, tokens[1:], tokens[2:], strict=False):
        edge = catalog.find_edge(b.text) if b.kind == LOWER else None
        if a.kind == VAR and c.kind == VAR and edge is not None:
            types.setdefault(a.text, edge.from_type)
            types.setdefault(c.text, edge.to_type)
    return types


def _properties(type_name: str | None, catalog: Catalog) -> list[Candidate]:
    type_ = find_type(catalog, type_name or "")
    if type_ is not None:
        return property_words(type_)
    return [] if type_name else [word for node in catalog.nodes.values() for word in property_words(node)]


def _edges(type_name: str | None, catalog: Catalog) -> list[Candidate]:
    return [
        edge_word(edge)
        for edge in catalog.edges.values()
        if type_name is None or type_name in (edge.from_type, edge.to_type)
    ]
