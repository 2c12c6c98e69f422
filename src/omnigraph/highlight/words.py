"""Classes of words of both languages, for colours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from omnigraph.lang.tokens import BAD, DECIMAL, DIGITS, LOWER, PUNCT, STRING, UPPER, VAR, Token
from omnigraph.query.complete import CLAUSES, OPERATORS
from omnigraph.query.editor import Language
from omnigraph.query.functions import FUNCTIONS
from omnigraph.query.symbols import DECLARATIONS
from omnigraph.scalar_types.registry import LITERAL_CALLS
from omnigraph.schema.describe_words import SCALAR_TYPES

WordClass = Literal[
    "keyword", "constant", "function", "scalar", "type", "annotation", "name", "variable", "number", "string",
    "punctuation", "error",
]  # fmt: skip

KEYWORDS: Mapping[Language, tuple[str, ...]] = {
    "pg": (*DECLARATIONS, "implements", "enum", "merge"),
    "gq": (
        *dict.fromkeys(
            (*CLAUSES, *OPERATORS, "as", "asc", "desc", "distinct", "set", "where", "shortest", "path", "by", "case",
             "when", "then", "else", "end", "new", "existing", "at", "during")
        ),
    ),
}  # fmt: skip
"""Words that have a meaning of their own; none is reserved, so each can also be a name."""
CONSTANTS = ("true", "false", "null")
FUNCTION_NAMES = tuple(sorted({*FUNCTIONS, *LITERAL_CALLS}))
SCALARS = tuple(SCALAR_TYPES)

_OTHERS: Mapping[str, WordClass] = {
    VAR: "variable",
    DIGITS: "number",
    DECIMAL: "number",
    STRING: "string",
    PUNCT: "punctuation",
    BAD: "error",
}


def class_of(token: Token, before: str, after: str, language: Language) -> WordClass:
    """Return the class of a token; `before` and `after` are the texts directly beside it."""
    if token.kind == UPPER:
        return "scalar" if token.text in SCALAR_TYPES else "type"
    if token.kind != LOWER:
        return _OTHERS[token.kind]
    if before == "@":
        return "annotation"
    if before == "." or (after == ":" and language == "pg"):
        return "name"
    if token.text in CONSTANTS:
        return "constant"
    if after == "(" and language == "gq" and token.text in FUNCTION_NAMES:
        return "function"
    return "keyword" if token.text in KEYWORDS[language] else "name"
