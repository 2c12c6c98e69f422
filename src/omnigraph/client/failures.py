"""Errors of answers: the exception that the embedded graph raises, or `RemoteError` for another answer."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from contextlib import ContextDecorator
from types import TracebackType

import msgspec
import pyarrow as pa

from omnigraph.client.results.conflicts import conflict_of
from omnigraph.decodable import decodable
from omnigraph.errors import Hint, MergeConflict, OmniGraphError, Overloaded, RemoteError
from omnigraph.wire.document import Document
from omnigraph.wire.errors import ERROR_CODES, ErrorDocument, decode_error

TEXT_MAX = 500
"""The number of characters that a `RemoteError` quotes."""
_REDIRECTS = range(300, 400)
_UNREADABLE = (
    msgspec.MsgspecError,
    pa.ArrowException,
    struct.error,
    RecursionError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
)
"""What raises the conversion of an answer that does not have the form of the interface."""
_decoder = msgspec.json.Decoder(decodable(ErrorDocument))


class _UnknownError(Document):
    """The members of an error object that every release has."""

    error: str
    reason: str = "internal"
    hint: str | msgspec.UnsetType = msgspec.UNSET
    class_: str | msgspec.UnsetType = msgspec.field(name="class", default=msgspec.UNSET)
    code: str = "internal"
    idempotency_key: str | msgspec.UnsetType = msgspec.UNSET


_lenient_decoder = msgspec.json.Decoder(decodable(_UnknownError))


def failure_of(status: int, headers: Mapping[str, str], body: bytes, base_url: str) -> OmniGraphError:
    """Return the error of an answer that is not a success."""
    typed = "values=typed" in headers.get("content-type", "")
    try:
        try:
            error = decode_error(_decoder.decode(body), typed=typed)
        except _UNREADABLE:
            error = decode_error(_known_members(body))
    except _UNREADABLE:
        return _foreign(status, headers, body, base_url)
    if isinstance(error, MergeConflict):
        error.conflicts = tuple(map(conflict_of, error.conflicts))
    return error


def _known_members(body: bytes) -> ErrorDocument:
    """Return the error object of a later release without the members that this release cannot read."""
    found = _lenient_decoder.decode(body)
    return ErrorDocument(
        error=found.error,
        code=found.code if found.code in ERROR_CODES else "internal",
        reason=found.reason,
        hint=found.hint,
        class_=found.class_,
        idempotency_key=found.idempotency_key,
    )


def add_retry_after(error: OmniGraphError, after: str) -> None:
    """Add the value of `Retry-After` to the hint of an error, unless the hint has it."""
    hint = error.hint
    if not after or isinstance(error, Overloaded):
        return
    advice = f"retry after {after} s" if after.isdecimal() else f"retry after {after}"
    if isinstance(hint, Hint):
        error.hint = Hint(f"{hint}; {advice}", cli=f"{hint.cli}; {advice}", in_shell=f"{hint.shell}; {advice}")
    else:
        error.hint = f"{hint}; {advice}" if hint else advice


def _foreign(status: int, headers: Mapping[str, str], body: bytes, base_url: str) -> RemoteError:
    text = body[: TEXT_MAX * 4].decode("utf-8", "replace")[:TEXT_MAX].strip()
    if status in _REDIRECTS and "location" in headers:
        return RemoteError(
            f"the server at {base_url} redirects to {headers['location'][:TEXT_MAX]!r}; redirects are not followed",
            status=status,
            text=text,
            code="redirected",
            hint="connect to the address that the server names, if you trust it with the token",
        )
    said = f": {text}" if text else ""
    return RemoteError(
        f"{base_url} answered with status {status} and a body that is not that of an OmniGraph server{said}",
        status=status,
        text=text,
        hint="check the address; a proxy in front of the server may have answered",
    )


def unreadable(what: str, base_url: str = "the server") -> RemoteError:
    """Return the error of a successful answer that cannot be read."""
    return RemoteError(
        f"the answer of {base_url} cannot be read: {what}",
        status=200,
        text="",
        code="incomplete_answer",
        hint="repeat the call; if it fails again, the log of the server has the reason",
    )


class _Reading(ContextDecorator):
    """Raises `RemoteError` if the code that reads an answer fails because the answer has another form."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, _UNREADABLE):
            raise unreadable(str(error)[:TEXT_MAX] or type(error).__name__) from error


reading = _Reading()
"""Context and decorator of code that reads an answer."""
