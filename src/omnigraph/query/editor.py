"""Services of an editor for query and schema texts: completion, description, check and format, by language."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent
from typing import Any, Literal, cast, get_args

from omnigraph.errors import InputError
from omnigraph.lang.editor_hints import Completion, Hover
from omnigraph.lang.tokens import lex
from omnigraph.query.complete import complete, hover
from omnigraph.query.lint import LintReport, lint, lint_schema
from omnigraph.query.syntax.format import format_queries
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.complete import complete_schema, hover_schema
from omnigraph.schema.format import format_schema

Language = Literal["gq", "pg"]
"""Queries (`.gq`) or schemas (`.pg`)."""
_INLINE = "query inline() {\n"
"""The head that the formatter gives to a query without one."""


def check_language(language: Any) -> Language:
    """Return the language of a text; `InputError` if there is none of this name."""
    if language not in get_args(Language):
        raise InputError(
            f"there is no language '{str(language)[:40]}'",
            code="bad_language",
            hint="the languages are gq (queries) and pg (schemas)",
        )
    return cast(Language, language)


def complete_text(text: str, offset: int, language: Language, catalog: Catalog) -> Completion:
    """Return the words that can stand at a position of a text."""
    at = check_offset(text, offset)
    return complete(text, at, catalog) if language == "gq" else complete_schema(text, at)


def hover_text(text: str, offset: int, language: Language, catalog: Catalog) -> Hover | None:
    """Return the description of the word at a position of a text; None if there is nothing to say."""
    at = check_offset(text, offset)
    return hover(text, at, catalog) if language == "gq" else hover_schema(text, at)


def lint_text(
    text: str, language: Language, catalog: Catalog, *, query_path: str, schema_source: Mapping[str, str]
) -> LintReport:
    """Check a text."""
    if language == "pg":
        return lint_schema(text, query_path=query_path, schema_source=schema_source)
    return lint(catalog, text, query_path=query_path, schema_source=schema_source)


def format_text(text: str, language: Language) -> str:
    """Return a text in the standard layout; `ParseError` if it has a syntax error.

    A query without a head stays one: its parameters take their types from their values, so a head would not compile.
    """
    if language == "pg":
        return format_schema(text)
    formatted = format_queries(text)
    if any(token.text == "query" for token in lex(text).tokens[:1]) or _INLINE not in formatted:
        return formatted
    before, body = formatted.split(_INLINE, 1)
    body, after = body.rsplit("}\n", 1)
    return before + dedent(body) + after


def check_offset(text: Any, offset: Any) -> int:
    """Return a position of a text in characters; `InputError` if it lies outside."""
    if not isinstance(text, str):
        raise InputError(f"a text is a str, not {type(text).__name__}")
    if type(offset) is not int or not 0 <= offset <= len(text):
        raise InputError(
            f"the offset must be an integer from 0 to {len(text)} (got {str(offset)[:40]})", code="bad_offset"
        )
    return offset
