"""Collects what is wrong with a text and turns it into one typed error.

A compiler pass holds a `Reporter` and keeps going as long as what it says stays trustworthy; at the
end `raise_if_any` raises all of it at once, in text order. Parsers stop a broken piece by raising
`Fault`, which never leaves the package: whoever recovers hands it to `Reporter.add`.
"""

from __future__ import annotations

from omnigraph.errors import CompileError, Diagnostic, DiagnosticKind, Hint, ParseError, SchemaError, TypeCheckError
from omnigraph.lang.spans import Source, Span
from omnigraph.lang.tokens import visible

_MOST = 100
_LONGEST = 400

_ERROR_OF_KIND: dict[DiagnosticKind, type[CompileError]] = {
    "parse": ParseError,
    "catalog": SchemaError,
    "type": TypeCheckError,
}


class Fault(Exception):
    """Something wrong at a place; raised to abandon the piece being parsed or checked."""

    def __init__(
        self,
        message: str,
        span: Span,
        *,
        kind: DiagnosticKind = "parse",
        code: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.kind = kind
        self.code = code or f"{kind}_error"
        self.hint = hint


class Reporter:
    """The problems found in one source so far."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.diagnostics: list[Diagnostic] = []
        self._seen: set[tuple[str, Span]] = set()

    def add(self, fault: Fault, *, subject: str | None = None) -> None:
        """Record a fault; the same sentence about the same place counts once.

        The hundredth problem is the last: it raises at once, because nobody reads on and looking for
        more costs time.
        """
        if (fault.message, fault.span) in self._seen:
            return
        self._seen.add((fault.message, fault.span))
        source, span = self.source, fault.span
        line, column = source.line_and_column(span.start)
        start = source.byte_offset(span.start)
        self.diagnostics.append(
            Diagnostic(
                kind=fault.kind,
                code=fault.code,
                message=_one_line(fault.message),
                source_name=source.name,
                line=line,
                column=column,
                start=start,
                end=max(start + 1, source.byte_offset(span.end)),
                excerpt=source.excerpt(span),
                hint=_hint_line(fault.hint) if fault.hint else None,
                subject=_one_line(subject) if subject else None,
            )
        )
        if len(self.diagnostics) >= _MOST:
            self.raise_if_any()

    def raise_if_any(self) -> None:
        """Raise what was collected; the first problem in the text decides the class."""
        if self.diagnostics:
            ordered = sorted(self.diagnostics, key=lambda diagnostic: diagnostic.start)
            raise _ERROR_OF_KIND[ordered[0].kind](ordered)


def _hint_line(hint: str) -> str:
    """A hint as it may be shown, in the words of every surface."""
    if isinstance(hint, Hint):
        return Hint(_one_line(hint), cli=_one_line(hint.cli), in_shell=_one_line(hint.shell))
    return _one_line(hint)


def _one_line(text: str) -> str:
    """A sentence as it may be shown: names and values in it come from the source and can be anything."""
    return visible(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")
