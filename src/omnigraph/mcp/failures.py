"""Failures of tools: the message, the hint and, of a query, the place and the corrected text."""

from __future__ import annotations

from typing import Any

from omnigraph.errors import CompileError, OmniGraphError
from omnigraph.mcp.budget import Budget, clip_text, clip_value
from omnigraph.mcp.tool import Answer
from omnigraph.wire.errors import error_document

_MESSAGE_MAX = 2_000
_MEMBERS = ("error", "code", "reason", "hint", "resource_limit", "key_conflict", "record_error", "denial")
_LISTS = ("diagnostics", "merge_conflicts")
_LISTED_MAX = 5


def failure_answer(error: OmniGraphError, budget: Budget, corrected: str | None = None) -> Answer:
    """Return the answer of a failed call."""
    document = error_document(error).to_json()
    most = min(_MESSAGE_MAX, budget.bytes // 5)
    members: dict[str, Any] = {name: clip_value(document[name], most) for name in _MEMBERS if name in document}
    for name in _LISTS:
        if name in document:
            members[name] = clip_value(document[name][:_LISTED_MAX], most)
    lines = [clip_text(_described(error), most)]
    if error.hint and not isinstance(error, CompileError):
        lines.append(f"hint: {error.hint}")
    if corrected is not None and len(corrected) <= most:
        members["corrected"] = corrected
        lines += ["corrected:", corrected]
    return Answer(budget.clip(members), "\n".join(lines), is_error=True)


def _described(error: OmniGraphError) -> str:
    return error.render() if isinstance(error, CompileError) else f"{error.code}: {error.message}"
