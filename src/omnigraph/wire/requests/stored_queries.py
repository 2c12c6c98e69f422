"""Inputs of stored queries."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from omnigraph.wire.requests.queries import PAGE_MAX, Parameters, QueryLimits, Snapshot
from omnigraph.wire.requests.request import After, Branch, Message, Name, Point, Request, UrlMessage, exclude

StoredSource = Annotated[
    str,
    Meta(
        description="The text of the queries, with their annotations.",
        examples=['query people() @description("All people.") { match { $p: Person } return { $p.name } }'],
    ),
]


class StoredQueriesQuery(Request, kw_only=True):
    """The point whose stored queries are read."""

    branch: Branch | None = None
    at: Point | None = None


class ValidateQueriesRequest(StoredQueriesQuery, kw_only=True):
    """The stored queries to check, and the schema to check them against; by default that of their point."""

    schema_source: Annotated[str, Meta(description="The text of a schema (.pg).")] | None = None


class QueryRowsQuery(StoredQueriesQuery, kw_only=True):
    """A call of a stored read by its address. All other parameters of the query string are those of the query."""

    params: (
        Annotated[
            dict[str, list[str]],
            Meta(
                description="The parameters of the query by name, as JSON or as text: `?name=ana&least=30`."
                " Repeat one for a list."
            ),
        ]
        | None
    ) = None


class StoreQueryRequest(Request, kw_only=True):
    """Queries to store on a branch; a query of the same name is replaced."""

    source: StoredSource
    branch: Branch | None = None
    message: Message | None = None


class DeleteQueryQuery(Request, kw_only=True):
    """The deletion of one stored query."""

    branch: Branch | None = None
    message: UrlMessage | None = None


class DeleteQueriesQuery(DeleteQueryQuery, kw_only=True):
    """The deletion of stored queries."""

    name: Annotated[list[Name], Meta(min_length=1, description="The name of a query. Repeat for several.")]


class InvokeRequest(Request, kw_only=True):
    """A call of a stored query. A read takes a point, pages and limits; a change takes a message."""

    params: Parameters | None = None
    branch: Branch | None = None
    snapshot: Snapshot | None = None
    at: Point | None = None
    expect_mutation: (
        Annotated[bool, Meta(description="True for a change, false for a read; a query of the other kind is refused.")]
        | None
    ) = None
    page: (
        Annotated[
            int, Meta(ge=1, le=PAGE_MAX, description="The number of rows of a page; by default all rows are returned.")
        ]
        | None
    ) = None
    after: After | None = None
    limits: QueryLimits | None = None
    message: Message | None = None

    @property
    def point(self) -> str | None:
        """The point to read: `snapshot` or `at`; None means the newest commit of the branch."""
        if self.snapshot is None:
            return self.at
        exclude({"branch": self.branch, "snapshot": self.snapshot})
        exclude({"snapshot": self.snapshot, "at": self.at})
        return self.snapshot
