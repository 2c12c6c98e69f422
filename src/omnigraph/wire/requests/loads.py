"""Inputs of loads."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from omnigraph.wire.loads import LoadMode
from omnigraph.wire.requests.request import Branch, BranchName, Message, Request, TypeName, UrlMessage

Mode = Annotated[
    LoadMode,
    Meta(
        description="What happens to rows whose key exists: updated, refused, or all rows replaced; by default `merge`."
    ),
]
FromBranch = Annotated[BranchName, Meta(description="The branch from which a missing `branch` is created.")]
Rejects = Annotated[bool, Meta(description="Set wrong records aside and list them in `rejected`, instead of failing.")]


class LoadRequest(Request, kw_only=True):
    """Records to load; a missing branch is created only if `from` is given."""

    branch: Branch | None = None
    from_: FromBranch | None = field(name="from", default=None)
    mode: Mode = "merge"
    data: Annotated[
        str, Meta(description="The records as JSON lines.", examples=['{"type":"Person","data":{"name":"Ana"}}'])
    ]
    message: Message | None = None
    rejects: Rejects = False


class IngestRequest(LoadRequest, kw_only=True):
    """Records to load; a missing branch is created from `from`, by default from `main`."""


class LoadQuery(Request, kw_only=True):
    """Options of a load whose records are the body."""

    branch: Branch | None = None
    from_: FromBranch | None = field(name="from", default=None)
    mode: Mode = "merge"
    type: Annotated[TypeName, Meta(description="The type of the rows of an Arrow stream.")] | None = None
    message: UrlMessage | None = None
    rejects: Rejects = False
    missing: Annotated[
        Literal["keep", "clear"],
        Meta(description="What a merge does with a property that is absent from a record: keep it, or set it to null."),
    ] = "keep"
    embed: Annotated[bool, Meta(description="Compute vectors from their texts.")] = True


class LoadFilesQuery(LoadQuery, kw_only=True):
    """Options of a load whose body is an archive of files."""

    delimiter: (
        Annotated[
            Literal[",", ";", "|", "\t"],
            Meta(description="The delimiter of CSV files; by default the header decides."),
        ]
        | None
    ) = None
