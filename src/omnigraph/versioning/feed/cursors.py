"""Stateless tokens: positions in a feed, in a commit or in a result, kept by the caller.

A token is the base64url encoding of a JSON text and its SHA-256. The digest detects damage and mistakes; it is neither
a secret nor a signature. Nothing is stored on this side. A token names the object it belongs to and is refused
elsewhere. It also has the number of purges and redactions of the graph, its purge epoch: both change what commits show,
so that its position is not one of the history any more.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

from omnigraph.errors import ChangeCursorRejected, InputError

TokenKind = Literal[
    "commit-page", "diff-page", "feed-cursor", "feed-page", "neighbor-page", "query-page", "search-page"
]
Rejected = Callable[[str], InputError]
"""Creates the error with the reason why a token cannot be used."""

VERSION = 1
BYTES_MAX = 4_096
_DIGEST = 32
_ID_MAX = 256
_PREFIX = 64


def write_token(kind: TokenKind, epoch: int, fields: Mapping[str, Any]) -> str:
    """Encode fields as a token; `epoch` is the purge epoch of the history that it was made from, or an earlier one."""
    if epoch:
        # Tokens of earlier releases have none. On a graph without purges, they stay valid.
        fields = {**fields, "epoch": epoch}
    text = json.dumps({"v": VERSION, "k": kind, **fields}, ensure_ascii=False, separators=(",", ":")).encode()
    token = base64.urlsafe_b64encode(text + hashlib.sha256(text).digest()).decode()
    assert len(token) <= BYTES_MAX, "every field of a token is short"
    return token


def read_token(
    token: object,
    kind: TokenKind,
    binding: Mapping[str, Any],
    shape: Mapping[str, type],
    *,
    rejected: Rejected = ChangeCursorRejected,
) -> dict[str, Any]:
    """Decode a token, or raise the reason why it cannot be used here; `shape` has the types of the other fields.

    The caller compares `epoch` of the fields with that of the history that it reads: `check_epoch`.
    """
    if not isinstance(token, str):
        raise rejected(f"it must be a str, not {type(token).__name__}")
    fields = _unpack(token, rejected)
    if fields.get("v") != VERSION:
        raise rejected(f"it has version {fields.get('v')}; this release reads version {VERSION}")
    if fields.get("k") != kind:
        raise rejected(f"it is a {fields.get('k')}, not a {kind}")
    for name, value in binding.items():
        if fields.get(name) != value:
            raise rejected(f"it belongs to another {name}")
    fields.setdefault("epoch", 0)
    if not all(type(fields.get(name)) is type_ for name, type_ in {**shape, "epoch": int}.items()):
        raise rejected("it is not a valid token")
    return fields


def check_epoch(fields: Mapping[str, Any], epoch: int, rejected: Rejected = ChangeCursorRejected) -> None:
    """Refuse a token from before a purge or redaction of the history that is read."""
    if fields["epoch"] != epoch:
        raise rejected("the history was purged or redacted since it was issued")


def _unpack(token: str, rejected: Rejected) -> dict[str, Any]:
    if len(token) > BYTES_MAX:
        raise rejected(f"it is longer than {BYTES_MAX} bytes")
    try:
        data = base64.urlsafe_b64decode(token.encode("ascii"))
        text, digest = data[:-_DIGEST], data[-_DIGEST:]
        if hashlib.sha256(text).digest() != digest:
            raise rejected("it is damaged")
        fields = json.loads(text)
    except (binascii.Error, UnicodeError, ValueError, RecursionError) as error:
        raise rejected("it is not a valid token") from error
    if not isinstance(fields, dict):
        raise rejected("it is not a valid token")
    return fields


def short_id(id_: str) -> Any:
    """Return an id as stored in a token: the id itself, or the beginning and a hash of a long one."""
    data = id_.encode()
    if len(data) <= _ID_MAX:
        return id_
    return [data[:_PREFIX].decode(errors="ignore"), hashlib.sha256(data).hexdigest()]


def is_id(id_: str, short: Any) -> bool:
    """Return True if an id matches the form stored in a token."""
    return bool(short_id(id_) == short)


def id_start(short: Any) -> str:
    """Return a text that is not greater than the id of a form stored in a token."""
    return short if isinstance(short, str) else str(short[0]) if short else ""
