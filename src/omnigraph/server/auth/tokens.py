"""Bearer tokens: their form, the set of accepted tokens, and the check of a request.

A set keeps SHA-256 digests, never tokens. A presented token is hashed, and the hash is looked up under an HMAC whose
key is drawn at the start of the process. The caller cannot steer the keyed value, so the time of the lookup reveals
nothing about stored tokens and does not depend on their number.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
import zlib
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from omnigraph.errors import Hint, InputError, Unauthorized
from omnigraph.operations.authorization.access import Only

PREFIX = "og_"
TOKEN_PATTERN = re.compile(r"og_[0-9A-Za-z_-]{43,}")
"""Matches tokens made by `new_token`, also damaged ones; for the masking of output."""

_TOKEN = re.compile(r"og_([0-9A-Za-z_-]{43})([0-9A-Za-z_-]{6})")
_KEY = secrets.token_bytes(32)
_NO_DIGEST = bytes(32)
_CHALLENGE = "send the header 'Authorization: Bearer TOKEN'"


@dataclass(frozen=True, slots=True)
class Principal:
    """The authenticated caller of a request."""

    actor: str
    token_name: str | None = None
    groups: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    only: Only | None = None
    not_after: float | None = None
    """The time at which the token expires, in seconds since 1970; None if it does not."""


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """One accepted token: the digest of its text, whose token it is, and when it expires."""

    sha256: bytes
    principal: Principal
    not_after: datetime | None = None

    @property
    def label(self) -> str:
        """The actor, and the name of the token if it has one; for messages."""
        principal = self.principal
        return f"'{principal.actor}'" + (f" (token '{principal.token_name}')" if principal.token_name else "")


class TokenSet:
    """The tokens that a server accepts. A set does not change; a reload makes another one."""

    __slots__ = ("_found", "actors", "digest")

    def __init__(self, entries: tuple[TokenEntry, ...]) -> None:
        self._found = {
            _keyed(entry.sha256): (
                entry.sha256,
                entry.principal,
                entry.not_after.timestamp() if entry.not_after is not None else float("inf"),
            )
            for entry in entries
        }
        self.actors = frozenset(entry.principal.actor for entry in entries)
        self.digest = _digest(entries)

    @classmethod
    def of(cls, entries: Iterable[TokenEntry]) -> TokenSet:
        """Return the set of these tokens; refuses a token that occurs twice, and two tokens of one actor and name."""
        listed = tuple(entries)
        names: set[tuple[str, str | None]] = set()
        tokens: dict[bytes, TokenEntry] = {}
        for entry in listed:
            name = (entry.principal.actor, entry.principal.token_name)
            if name in names:
                raise InputError(
                    f"the actor {entry.label} occurs twice",
                    code="bad_tokens",
                    hint=Hint(
                        "give each token of an actor a 'name' of its own",
                        cli="give each token of an actor a 'name' of its own (token create: --name NAME)",
                    ),
                )
            if entry.sha256 in tokens:
                raise InputError(
                    f"{tokens[entry.sha256].label} and {entry.label} have the same token",
                    code="bad_tokens",
                    hint="give each a token of its own: 'omnigraph token create'",
                )
            names.add(name)
            tokens[entry.sha256] = entry
        return cls(listed)

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, token: bytes) -> bool:
        """True if a token is one of the set, also if it has expired."""
        presented = hashlib.sha256(token).digest()
        return hmac.compare_digest(self._found.get(_keyed(presented), (_NO_DIGEST, None, 0.0))[0], presented)

    def __repr__(self) -> str:
        return f"TokenSet({len(self)} tokens of {len(self.actors)} actors)"

    def find(self, header: str | None) -> Principal:
        """Return the caller of a request from its `Authorization` header, decoded as Latin-1; else `Unauthorized`."""
        token = bearer_token(header)
        presented = hashlib.sha256(token).digest()
        known, principal, not_after = self._found.get(_keyed(presented), (_NO_DIGEST, None, 0.0))
        if not hmac.compare_digest(known, presented) or principal is None:
            raise Unauthorized("invalid bearer token", code="invalid_token", hint=_advice(token))
        if time.time() >= not_after:
            expired = datetime.fromtimestamp(not_after, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            raise Unauthorized(
                f"the bearer token expired at {expired}", code="token_expired", hint="ask for a new token"
            )
        return principal


def new_token() -> str:
    """Return a random token: `og_`, 256 bits as 43 characters, and 6 check characters."""
    body = secrets.token_urlsafe(32)
    return f"{PREFIX}{body}{_check(body)}"


def token_digest(token: str) -> bytes:
    """Return the digest under which a token is stored."""
    return hashlib.sha256(token.strip().encode()).digest()


def bearer_token(header: str | None) -> bytes:
    """Return the token of an `Authorization` header."""
    scheme, _, token = (header or "").strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise Unauthorized("missing bearer token", code="missing_token", hint=_CHALLENGE)
    try:
        return token.encode("latin-1")
    except UnicodeEncodeError:
        return token.encode("utf-8", "surrogatepass")


def _advice(token: bytes) -> str:
    found = _TOKEN.fullmatch(token.decode("latin-1"))
    if found is not None and _check(found[1]) != found[2]:
        return "the check characters of the token do not match: copy the whole token again"
    return "the server does not know this token, or it was revoked"


def _check(body: str) -> str:
    return urlsafe_b64encode(zlib.crc32(body.encode()).to_bytes(4, "big")).decode().rstrip("=")


def _keyed(sha256: bytes) -> bytes:
    return hmac.digest(_KEY, sha256, "sha256")


def only_members(only: Only | None) -> dict[str, list[str]]:
    """Return the JSON form of the limits of a token."""
    limits = {} if only is None else {"actions": only.actions, "graphs": only.graphs, "branches": only.branches}
    return {key: list(values) for key, values in limits.items() if values is not None}


def _digest(entries: Iterable[TokenEntry]) -> str:
    """Return a digest of all entries; equal in every process with the same tokens."""
    lines = sorted(map(_line, entries))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _line(entry: TokenEntry) -> str:
    owner = entry.principal
    rights = [owner.actor, owner.token_name, owner.groups, owner.attributes, only_members(owner.only)]
    return json.dumps([entry.sha256.hex(), str(entry.not_after), owner.only is None, *rights], sort_keys=True)
