"""Documents of tokens: create, list, revoke."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from omnigraph.wire.document import Document


class TokenLimitsDocument(Document, kw_only=True):
    """What a token is limited to; an absent member does not limit."""

    actions: list[str] | UnsetType = UNSET
    graphs: list[str] | UnsetType = UNSET
    branches: list[str] | UnsetType = UNSET


class TokenDescription(Document, kw_only=True):
    """One token of a file, without the token itself."""

    actor: str
    name: str | None
    not_after: str | None
    expired: bool
    plain: bool
    groups: list[str]
    only: TokenLimitsDocument | None


class TokenListDocument(Document):
    """The tokens of a file."""

    path: str
    tokens: list[TokenDescription]


class TokenCreatedDocument(Document):
    """A new token. No other document contains a token."""

    path: str
    actor: str
    name: str | None
    not_after: str | None
    token: str


class RevokedTokenDocument(Document):
    """A token that was removed from a file."""

    actor: str
    name: str | None


class TokensRevokedDocument(Document):
    """The tokens that were removed from a file."""

    path: str
    revoked: list[RevokedTokenDocument]
