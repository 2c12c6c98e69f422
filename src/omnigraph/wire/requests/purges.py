"""Inputs of purges."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from omnigraph.wire.requests.request import Request, TypeName

IDS_MAX = 100_000
"""Largest number of ids or values of one request."""
Ids = Annotated[list[str], Meta(max_length=IDS_MAX, description="The ids of the rows, which are their keys.")]


class PurgeRunRequest(Request, kw_only=True):
    """The rows to remove from every branch and all history."""

    type: TypeName
    ids: Ids
    edges: Annotated[bool, Meta(description="Remove the edges of the nodes too.")] = False
    reason: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=4_096,
            description="Why; it is recorded, so it must not contain values of the rows.",
        ),
    ]


class PurgePreviewRequest(Request, kw_only=True):
    """The rows that a purge would remove."""

    type: TypeName
    ids: Ids


class PurgeAllowRequest(Request, kw_only=True):
    """Purged ids that can be written again."""

    type: TypeName
    ids: Ids


class PurgeResumeRequest(Request, kw_only=True):
    """The completion of interrupted purges; it has no options."""


class PurgeVerifyRequest(Request, kw_only=True):
    """Values that must not be stored. Purged ids are recognised without them."""

    values: (
        Annotated[
            list[str], Meta(max_length=IDS_MAX, description="Texts of at least four bytes that must not be stored.")
        ]
        | None
    ) = None
    hex: (
        Annotated[list[str], Meta(max_length=IDS_MAX, description="Bytes that must not be stored, in hexadecimal.")]
        | None
    ) = None


class RedactRequest(Request, kw_only=True):
    """Texts to replace in messages, descriptions and proposals of all history."""

    texts: Annotated[list[str], Meta(max_length=IDS_MAX, description="Texts of at least four bytes.")]
    confirm: Annotated[bool, Meta(description="Replace the texts; without it, their places are counted.")] = False
