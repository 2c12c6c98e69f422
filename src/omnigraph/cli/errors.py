"""Error → exit code, text on stderr and, with `--json`, the error object on stdout."""

from __future__ import annotations

import sys
from typing import Any

from omnigraph.cli.output import print_json
from omnigraph.errors import (
    CompileError,
    Conflict,
    Damaged,
    Denied,
    InputError,
    NotFound,
    OmniGraphError,
    OutcomeUnknown,
)

FAILED, USAGE, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141

_WIRE_CODES: dict[type[OmniGraphError], str] = {
    InputError: "bad_request",
    NotFound: "not_found",
    Conflict: "conflict",
    Denied: "forbidden",
    OutcomeUnknown: "internal",
    Damaged: "internal",
    OmniGraphError: "internal",
}
"""The closed set of `code` in an error object; a subclass has its nearest ancestor's."""


def wire_code(error: OmniGraphError) -> str:
    """The code of the error object."""
    return next(_WIRE_CODES[cls] for cls in type(error).__mro__ if cls in _WIRE_CODES)


def error_object(error: OmniGraphError) -> dict[str, Any]:
    """The error as one JSON object; what is empty is left out."""
    data: dict[str, Any] = {"error": error.message, "code": wire_code(error), "reason": error.code}
    if error.hint:
        data["hint"] = error.hint
    if isinstance(error, CompileError):
        data["diagnostics"] = [diagnostic.to_dict() for diagnostic in error.diagnostics]
    return data


def report(error: OmniGraphError, *, as_json: bool) -> int:
    """Print the error and return the exit code."""
    if isinstance(error, CompileError):
        text = str(error)
    else:
        text = error.message + (f"\nhint: {error.hint}" if error.hint else "")
    print(f"error: {text}", file=sys.stderr)
    if as_json:
        print_json(error_object(error))
    return FAILED
