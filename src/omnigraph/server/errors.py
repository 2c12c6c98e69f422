"""HTTP statuses of errors. This is the only module that translates an error class to a status.

A subclass has the status of its nearest ancestor in the table. Faults of the HTTP layer itself (an unknown path, a body
that is too large) are `RequestFault`s, which carry their status.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from omnigraph.errors import (
    Cancelled,
    ChangeFeedGap,
    Conflict,
    Damaged,
    Denied,
    IncompatibleFormat,
    InputError,
    LimitReached,
    MissingPackage,
    NotFound,
    OmniGraphError,
    Overloaded,
    PageGone,
    PreconditionFailed,
    RangeNotSatisfiable,
    StorageError,
    Unauthorized,
)
from omnigraph.wire.errors import ErrorCode, ErrorDocument, error_document

CLIENT_CLOSED = 499
"""Status in the log of a request whose client closed the connection."""

_STATUSES: Mapping[type[OmniGraphError], int] = {
    OmniGraphError: 500,
    InputError: 400,
    LimitReached: 413,
    RangeNotSatisfiable: 416,
    NotFound: 404,
    ChangeFeedGap: 410,
    PageGone: 410,
    Conflict: 409,
    PreconditionFailed: 412,
    Cancelled: 409,
    Denied: 403,
    Unauthorized: 401,
    MissingPackage: 501,
    IncompatibleFormat: 503,
}
_UNREACHABLE = frozenset({"unreachable", "audit_unavailable"})
_CODES: Mapping[int, ErrorCode] = {404: "not_found", 405: "method_not_allowed", 412: "conflict"}


class RequestFault(InputError):
    """A request that the HTTP layer refuses. `code` names the fault, `status` is the answer."""

    default_code = "bad_http_request"

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        code: str | None = None,
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.status = status
        self.headers = dict(headers or {})


def status_of(error: OmniGraphError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, RequestFault):
        return error.status
    if isinstance(error, Overloaded):
        return 429 if error.scope == "actor" else 503
    if isinstance(error, StorageError) and error.code in _UNREACHABLE:
        return 503
    if _is_gone(error):
        return 410
    return next(_STATUSES[cls] for cls in type(error).__mro__ if cls in _STATUSES)


def headers_of(error: OmniGraphError) -> dict[str, str]:
    """Return the headers that belong to an error: the challenge of a 401, the delay before a repetition."""
    if isinstance(error, RequestFault):
        return error.headers
    if isinstance(error, Unauthorized):
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(error, Overloaded):
        return {"Retry-After": str(error.retry_after_s)}
    if isinstance(error, RangeNotSatisfiable):
        return {"Content-Range": f"bytes */{error.length}"}
    return {"Retry-After": "5"} if status_of(error) == HTTPStatus.SERVICE_UNAVAILABLE else {}


def document_of(error: OmniGraphError, request_id: str, *, typed: bool = False) -> ErrorDocument:
    """Return the error object of an error, with the id of the request; with `typed`, row values keep their types."""
    document = error_document(error, typed=typed)
    if isinstance(error, RequestFault):
        document.code = _CODES.get(error.status, "bad_request")
    elif _is_gone(error):
        document.code = "not_found"
    document.request_id = request_id
    return document


def _is_gone(error: OmniGraphError) -> bool:
    """True if a cleanup removed the data that the request names."""
    return isinstance(error, Damaged) and error.code == "version_reclaimed"


def internal_error(error: BaseException) -> OmniGraphError:
    """Return the error that a caller sees of an unexpected failure: without details, which are in the log."""
    if isinstance(error, OmniGraphError):
        return error
    return OmniGraphError(
        "an internal error occurred; the log of the server has the details",
        code="internal_error",
        hint="give the request_id of this answer to the operator",
    )
