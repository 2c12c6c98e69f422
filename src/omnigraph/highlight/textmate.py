"""TextMate grammars of both languages, from the same lists of words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from omnigraph.highlight.words import CONSTANTS, FUNCTION_NAMES, KEYWORDS, SCALARS, WordClass
from omnigraph.query.editor import Language

SCOPES: dict[WordClass, str] = {
    "keyword": "keyword.control",
    "constant": "constant.language",
    "function": "support.function",
    "scalar": "support.type",
    "type": "entity.name.type",
    "annotation": "entity.other.attribute-name",
    "name": "variable.other.member",
    "variable": "variable.parameter",
    "number": "constant.numeric",
    "string": "string.quoted.double",
    "punctuation": "punctuation",
    "error": "invalid.illegal",
}
"""Class of a word → its scope, to which the language is appended."""
_TITLES: dict[Language, str] = {"pg": "OmniGraph schema", "gq": "OmniGraph query"}


def grammar(language: Language) -> dict[str, Any]:
    """Return the grammar of a language as a JSON document."""

    def rule(kind: WordClass, pattern: str) -> dict[str, Any]:
        return {"name": f"{SCOPES[kind]}.{language}", "match": pattern}

    words: list[dict[str, Any]] = [
        {"name": f"comment.line.{language}", "match": r"//.*$"},
        {"name": f"comment.block.{language}", "begin": r"/\*", "end": r"\*/"},
        rule("string", r'"(?:[^"\\]|\\.)*"'),
        rule("annotation", r"(?<=@)[a-z_][A-Za-z0-9_]*"),
        rule("variable", r"\$[a-z_][A-Za-z0-9_]*"),
        rule("number", r"[0-9]+(?:\.[0-9]+)?"),
        rule("scalar", rf"\b(?:{_one_of(SCALARS)})\b"),
        rule("type", r"\b[A-Z][A-Za-z0-9_]*"),
        rule("name", r"(?<=\.)[a-z_][A-Za-z0-9_]*"),
    ]
    if language == "pg":
        words.append(rule("name", r"\b[a-z_][A-Za-z0-9_]*(?=\s*:)"))
    words.append(rule("constant", rf"\b(?:{_one_of(CONSTANTS)})\b"))
    if language == "gq":
        words.append(rule("function", rf"\b(?:{_one_of(FUNCTION_NAMES)})(?=\s*\()"))
    words += [
        rule("keyword", rf"\b(?:{_one_of(KEYWORDS[language])})\b"),
        rule("name", r"\b[a-z_][A-Za-z0-9_]*"),
        rule("punctuation", r"->|\.\.|>=|<=|!=|[{}()\[\]:,.<>=@?*|+%/-]"),
    ]
    return {
        "name": _TITLES[language],
        "scopeName": f"source.{language}",
        "fileTypes": [language],
        "patterns": words,
    }


def _one_of(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))
