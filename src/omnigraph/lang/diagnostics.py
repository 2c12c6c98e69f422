"""Collects the errors of a text and raises them as one typed error.

A compiler pass reports to a `Reporter` and continues as long as its results remain valid; at the end `raise_if_any`
raises all errors in text order. A parser abandons a construct by raising `Fault`, which never leaves the package: the
code that recovers passes it to `Reporter.add`.
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
    """Error at a position; raised to abandon the construct that is being parsed or checked."""

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
    """Errors found in one source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.diagnostics: list[Diagnostic] = []
        self._seen: set[tuple[str, Span]] = set()

    def add(self, fault: Fault, *, subject: str | None = None) -> None:
        """Record a fault; the same message at the same position counts once.

        The hundredth error raises immediately, because searching for more takes time and is of no use.
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
        """Raise the collected errors; the first one in the text determines the class."""
        if self.diagnostics:
            ordered = sorted(self.diagnostics, key=lambda diagnostic: diagnostic.start)
            raise _ERROR_OF_KIND[ordered[0].kind](ordered)


def _hint_line(hint: str) -> str:
    """Return a hint that is safe to display, in the variants of all interfaces."""
    if isinstance(hint, Hint):
        return Hint(_one_line(hint), cli=_one_line(hint.cli), in_shell=_one_line(hint.shell))
    return _one_line(hint)


def _one_line(text: str) -> str:
    """Return a message that is safe to display: names and values in it come from the source and may contain any
    character.
    """
    return visible(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")
