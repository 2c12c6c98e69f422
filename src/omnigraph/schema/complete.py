"""Completion and description of words of a schema text at a position.

The text is split into tokens but not parsed, because it is incomplete. The types are those that it declares.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from omnigraph.errors import CompileError
from omnigraph.lang.editor_hints import Candidate, Completion, Hover, completion_of
from omnigraph.lang.tokens import END, LOWER, PUNCT, UPPER, Token, lex
from omnigraph.schema.catalog import MERGE_PROPERTIES
from omnigraph.schema.check import compile_schema
from omnigraph.schema.describe_words import (
    ANNOTATIONS,
    SCALAR_TYPES,
    declaration,
    find_type,
    property_description,
    scalar_words,
    type_description,
)

_DECLARATIONS = ("node", "edge", "interface")


def complete_schema(text: str, offset: int) -> Completion:
    """Return the words that can stand at a position of a schema text."""
    before = text[:offset]
    tokens = [token for token in lex(before).tokens if token.kind != END]
    partial = ""
    if tokens and tokens[-1].end == len(before) and tokens[-1].kind in (LOWER, UPPER):
        partial = tokens.pop().text
    declared = _declared([token for token in lex(text).tokens if token.kind != END])
    proposals = {each.text: each for each in _proposals(tokens, declared)}
    return completion_of(len(before) - len(partial), len(before), partial, proposals)


def hover_schema(text: str, offset: int) -> Hover | None:
    """Return the description of the word at a position of a schema text; None if there is nothing to say."""
    tokens = lex(text).tokens
    at = next((at for at, token in enumerate(tokens) if token.start <= offset < token.end), None)
    if at is None:
        return None
    token = tokens[at]
    if token.kind == LOWER and at and tokens[at - 1].text == "@" and token.text in ANNOTATIONS:
        usage, meaning = ANNOTATIONS[token.text]
        return Hover(token.start, token.end, "annotation", usage, meaning)
    if token.kind == LOWER and at + 1 < len(tokens) and tokens[at + 1].text == ":":
        return _hover_property(text, tokens, at)
    if token.kind != UPPER:
        return None
    if token.text in SCALAR_TYPES:
        return Hover(token.start, token.end, "scalar", token.text, SCALAR_TYPES[token.text])
    try:
        type_ = find_type(compile_schema(text), token.text)
    except CompileError:
        kind = _declared(tokens).get(token.text)
        return None if kind is None else Hover(token.start, token.end, "type", f"{kind} {token.text}")
    return None if type_ is None else Hover(token.start, token.end, "type", declaration(type_), type_description(type_))


def _hover_property(text: str, tokens: Sequence[Token], at: int) -> Hover | None:
    """Return the description of a declared property: its type, constraints and source of embeddings."""
    head, depth = _surroundings(tokens[:at])
    if depth != 1 or len(head) < 2:
        return None
    try:
        type_ = find_type(compile_schema(text), head[1])
    except CompileError:
        return None
    token = tokens[at]
    property_ = None if type_ is None else type_.properties.get(token.text)
    if type_ is None or property_ is None:
        return None
    title = f"{type_.name}.{property_.name}: {property_.type}"
    return Hover(token.start, token.end, "property", title, property_description(type_, property_))


def _declared(tokens: Sequence[Token]) -> dict[str, str]:
    """Return the kinds of the declared types, by name."""
    pairs = pairwise(tokens)
    return {name.text: word.text for word, name in pairs if word.text in _DECLARATIONS and name.kind == UPPER}


def _proposals(tokens: Sequence[Token], declared: dict[str, str]) -> list[Candidate]:
    last = tokens[-1].text if tokens else ""
    head, depth = _surroundings(tokens)
    if last == "@":
        return [Candidate(name, "annotation", usage, text) for name, (usage, text) in ANNOTATIONS.items()]
    if last == "implements" or (last == "," and depth == 0 and "implements" in head):
        return _types(declared, "interface")
    if depth == 0 and head[:1] == ["edge"] and last in (":", "->"):
        return _types(declared, "node")
    if depth == 0:
        follows = len(head) == 2 and head[0] == "node"
        return [Candidate(word, "keyword") for word in (("implements",) if follows else (*_DECLARATIONS, "merge"))]
    if head == ["merge"]:
        return [Candidate(word, "keyword") for word in (MERGE_PROPERTIES if last == ":" else ("properties",))]
    if last in (":", "["):
        return [*scalar_words(), Candidate("enum", "keyword", "enum(one, two)", "A text that is one of the values.")]
    return []


def _surroundings(tokens: Sequence[Token]) -> tuple[list[str], int]:
    """Return the words of the last declaration's head, and the number of open braces."""
    depth, head = 0, list[str]()
    for token in tokens:
        if token.kind == PUNCT and token.text in "{}":
            depth = max(0, depth + (1 if token.text == "{" else -1))
            head = head if depth else []
        elif depth == 0 and token.text in (*_DECLARATIONS, "merge"):
            head = [token.text]
        elif depth == 0:
            head.append(token.text)
    return head, depth


def _types(declared: dict[str, str], kind: str) -> list[Candidate]:
    return [Candidate(name, "type", kind) for name, found in declared.items() if found == kind]
