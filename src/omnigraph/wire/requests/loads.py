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
    dry_run: Annotated[bool, Meta(description="Read and validate the records, and write nothing.")] = False


class LoadTablesQuery(LoadQuery, kw_only=True):
    """Options of a load whose body has tables."""

    column: Annotated[
        list[Annotated[str, Meta(max_length=1_000)]],
        Meta(
            max_length=1_000,
            description="`COLUMN=PROPERTY`: the property of a column of a table, `from`, `to` or `id`; without a "
            "property the column is left out. `TYPE:COLUMN` limits it to one type. Repeat for several.",
        ),
    ] = []  # noqa: RUF012 (msgspec copies it)
    skip_null_ends: Annotated[bool, Meta(description="Leave out rows of edge types without one of their ends.")] = False


class LoadFilesQuery(LoadTablesQuery, kw_only=True):
    """Options of a load whose body is an archive of files."""

    delimiter: (
        Annotated[
            Literal[",", ";", "|", "\t"],
            Meta(description="The delimiter of CSV files; by default the header decides."),
        ]
        | None
    ) = None
    null: Annotated[
        list[Annotated[str, Meta(max_length=1_000)]],
        Meta(max_length=100, description="A text of CSV cells without quotes that is null. Repeat for several."),
    ] = []  # noqa: RUF012 (msgspec copies it)
    date_format: (
        Annotated[
            str,
            Meta(
                max_length=100,
                description="The form of Date and DateTime cells of CSV files, as in `strptime`; by default ISO 8601.",
            ),
        ]
        | None
    ) = None
    format: (
        Annotated[
            Literal["neo4j", "graphml"],
            Meta(
                description="The format of files with nodes and edges of several types: Neo4j admin CSV or GraphML; by "
                "default the names of the files say it."
            ),
        ]
        | None
    ) = None
    array_delimiter: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1,
            description="Separates the items of a list in a cell of Neo4j admin CSV.",
        ),
    ] = ";"
