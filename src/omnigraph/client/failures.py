"""Errors of answers: the exception that the embedded graph raises, or `RemoteError` for another answer."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from omnigraph.client.results.conflicts import conflict_of
from omnigraph.errors import Hint, MergeConflict, OmniGraphError, Overloaded, RemoteError
from omnigraph.wire.errors import ErrorDocument, decode_error

TEXT_MAX = 500
"""The number of characters that a `RemoteError` quotes."""
_REDIRECTS = range(300, 400)
_decoder = msgspec.json.Decoder(ErrorDocument)


def failure_of(status: int, headers: Mapping[str, str], body: bytes, base_url: str) -> OmniGraphError:
    """Return the error of an answer that is not a success."""
    try:
        document = _decoder.decode(body)
    except msgspec.MsgspecError:
        return _foreign(status, headers, body, base_url)
    error = decode_error(document, typed="values=typed" in headers.get("content-type", ""))
    if isinstance(error, MergeConflict):
        error.conflicts = tuple(map(conflict_of, error.conflicts))
    return error


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
        f"the answer of {base_url} is not complete: {what}",
        status=200,
        text="",
        code="incomplete_answer",
        hint="repeat the call; if it fails again, the log of the server has the reason",
    )
