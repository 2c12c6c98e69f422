"""Corrected query texts: the misspelled names of a failed query replaced by the names that the compiler suggests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from omnigraph.errors import CompileError, Diagnostic
from omnigraph.query.compile import compile_query
from omnigraph.query.inline import inline_params
from omnigraph.query.syntax.parser import parse_queries
from omnigraph.schema.catalog import Catalog

_SUGGESTION = re.compile(r"did you mean '([^']+)'\?")
_ROUNDS = 4
"""Errors behind an error show up only when it is corrected."""


def compile_text(catalog: Catalog, text: str, params: Mapping[str, Any]) -> None:
    """Compile every query of a text; the values of parameters give the types that a bare query does not declare."""
    declared = inline_params(text, dict(params))
    for definition in parse_queries(text).queries:
        compile_query(catalog, text, definition.name.text, declared=declared)


def corrected_text(catalog: Catalog, source: str, params: Mapping[str, Any], error: CompileError) -> str | None:
    """Return the text with every error corrected; None if the compiler does not know a correction of each."""
    text, failed = source, error
    for _ in range(_ROUNDS):
        changed = _replace(text, failed.diagnostics)
        if changed is None or changed == text:
            return None
        text = changed
        try:
            compile_text(catalog, text, params)
        except CompileError as next_error:
            failed = next_error
            continue
        return text
    return None


def _replace(text: str, diagnostics: tuple[Diagnostic, ...]) -> str | None:
    """Return the text with the suggested names; None if an error has no suggestion or its place is not the name."""
    data = text.encode()
    for diagnostic in sorted(diagnostics, key=lambda each: each.start, reverse=True):
        match = _SUGGESTION.search(str(diagnostic.hint or ""))
        place = data[diagnostic.start : diagnostic.end].decode(errors="replace")
        names = list(re.finditer(r"\w+", place))
        if match is None or not names:
            return None
        # `$p.nmae` marks the variable too; the misspelled name is the last one.
        name = names[-1]
        start = diagnostic.start + len(place[: name.start()].encode())
        data = data[:start] + match[1].lstrip("$").encode() + data[start + len(name[0].encode()) :]
    return data.decode()
