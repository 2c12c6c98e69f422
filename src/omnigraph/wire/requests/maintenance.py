"""Inputs of maintenance."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from omnigraph.wire.requests.branches import Duration
from omnigraph.wire.requests.request import Branch, Message, Request, TypeName


class OptimizeRequest(Request, kw_only=True):
    """The branch whose tables are compacted."""

    branch: Branch | None = None
    message: Message | None = None


class IndicesRequest(Request, kw_only=True):
    """The branch whose missing indexes are built."""

    branch: Branch | None = None
    message: Message | None = None


class CleanupRequest(Request, kw_only=True):
    """The versions that a cleanup keeps. One of `keep` and `older_than` is required."""

    keep: Annotated[int, Meta(ge=0, description="Keep the newest commits of every branch, this many.")] | None = None
    older_than: (
        Annotated[Duration, Meta(description="Keep versions younger than this: `90s`, `15m`, `12h`, `7d`, `2w`.")]
        | None
    ) = None
    confirm: Annotated[bool, Meta(description="Remove the versions; without it, they are only listed.")] = False
    message: Annotated[Message, Meta(description="A message that the deletion of expired branches records.")] | None = (
        None
    )


class RecoverRequest(Request, kw_only=True):
    """A recovery of interrupted writes; it has no options."""


class VerifyRequest(Request, kw_only=True):
    """The extent of a verification."""

    deep: Annotated[bool, Meta(description="Verify the digest of every file.")] = False


class EmbedRequest(Request, kw_only=True):
    """The vectors to compute."""

    types: Annotated[list[TypeName], Meta(description="The types; by default all that declare embeddings.")] | None = (
        None
    )
    again: Annotated[bool, Meta(description="Compute existing vectors again.")] = False
    branch: Branch | None = None
    message: Message | None = None
