"""How the checks of a query say that something is wrong."""

from __future__ import annotations

from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.spans import Span


class Silenced(Exception):
    """What is being checked rests on a mistake that was reported already."""


def type_fault(code: str | None, message: str, span: Span, hint: str | None = None) -> Fault:
    """A type error; rules without a number of their own have the plain code."""
    return Fault(message, span, kind="type", code=code, hint=hint)
