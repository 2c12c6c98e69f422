"""Errors raised by the type checker."""

from __future__ import annotations

from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.spans import Span


class Silenced(Exception):
    """The construct depends on an error that has already been reported."""


def type_fault(code: str | None, message: str, span: Span, hint: str | None = None) -> Fault:
    """Return a type error; a rule without a number has the general code."""
    return Fault(message, span, kind="type", code=code, hint=hint)
