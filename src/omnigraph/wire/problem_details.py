"""The error object as problem details (RFC 9457): the same members after `type`, `title` and `status`."""

from __future__ import annotations

from omnigraph.wire.errors import ErrorDocument


class ProblemDetailsDocument(ErrorDocument):
    """The error object, with the page of its `reason`, a title and the status of the answer."""

    type: str
    title: str
    status: int


def problem_details(error: ErrorDocument, status: int, *, documentation: str) -> ProblemDetailsDocument:
    """Return the problem details of an error object; `documentation` is the address of the page of error codes."""
    members = {field: getattr(error, field) for field in ErrorDocument.__struct_fields__}
    return ProblemDetailsDocument(f"{documentation}#{error.reason}", error.reason.replace("_", " "), status, **members)
