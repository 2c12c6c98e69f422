"""Inputs of queries, changes and algorithms."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from omnigraph.errors import InputError
from omnigraph.wire.requests.request import (
    LIST_MAX,
    After,
    Branch,
    CommitId,
    Message,
    Name,
    Point,
    Request,
    TypeName,
    either,
    exclude,
)

PAGE_MAX = 100_000
"""Largest number of rows of a page."""

Source = Annotated[
    str,
    Meta(
        description="The text of one or more queries.",
        examples=["query people() { match { $p: Person } return { $p.name } }"],
    ),
]
QueryName = Annotated[
    str,
    Meta(min_length=1, max_length=200, description="The name of the query in the text; required if there are several."),
]
Parameters = Annotated[dict[str, Any], Meta(description="The values of the query's parameters, by name.")]
Snapshot = Annotated[CommitId, Meta(description="The id of the commit to read. It excludes `branch` and `at`.")]


class QueryLimits(Request, kw_only=True):
    """Limits of one query. The limits of the server hold too."""

    rows: Annotated[int, Meta(ge=1, description="The largest number of rows at any point of the match.")] | None = None
    bytes: Annotated[int, Meta(ge=1, description="The largest size of the rows of one operator.")] | None = None
    timeout_ms: Annotated[int, Meta(ge=1, description="The largest duration in milliseconds.")] | None = None


class QueryText(Request, kw_only=True):
    """The text of a query and the name of one; each has two names."""

    query: Source | None = None
    query_source: Source | None = None

    @property
    def source(self) -> str:
        """The text; `InputError` if it is missing or given twice."""
        text = either("query", self.query, "query_source", self.query_source)
        if text is None:
            raise InputError("the member 'query' is missing", code="bad_member", hint="give the text of the query")
        return text


class NamedQuery(QueryText, kw_only=True):
    """A query with parameters."""

    name: QueryName | None = None
    query_name: QueryName | None = None
    params: Parameters | None = None

    @property
    def selected(self) -> str | None:
        """The name of the query in the text; None if it is not given."""
        return either("name", self.name, "query_name", self.query_name)


class ExplainRequest(NamedQuery, kw_only=True):
    """A query and the point that it reads."""

    branch: Branch | None = None
    snapshot: Snapshot | None = None
    at: Point | None = None

    @property
    def point(self) -> str | None:
        """The point to read: `snapshot` or `at`; None means the newest commit of the branch."""
        if self.snapshot is None:
            return self.at
        exclude({"branch": self.branch, "snapshot": self.snapshot})
        exclude({"snapshot": self.snapshot, "at": self.at})
        return self.snapshot


class ProfileRequest(ExplainRequest, kw_only=True):
    """A query to run and measure."""

    limits: QueryLimits | None = None


class ReadRequest(ProfileRequest, kw_only=True):
    """A read query."""

    page: (
        Annotated[
            int, Meta(ge=1, le=PAGE_MAX, description="The number of rows of a page; by default all rows are returned.")
        ]
        | None
    ) = None
    after: After | None = None


class LintRequest(QueryText, kw_only=True):
    """A text of queries, or a schema, to check."""

    branch: Branch | None = None
    language: Annotated[
        Literal["gq", "pg"], Meta(description="The language of the text: queries (`gq`) or a schema (`pg`).")
    ] = "gq"
    offsets: (
        Annotated[
            Literal["utf16"],
            Meta(
                description="With `utf16`, `span` and `column` of diagnostics count UTF-16 code units. By default "
                "`span` counts bytes and `column` characters."
            ),
        ]
        | None
    ) = None


class ChangeRequest(NamedQuery, kw_only=True):
    """A change query."""

    branch: Branch | None = None
    message: Message | None = None
    dry_run: Annotated[bool, Meta(description="Run and check the statements, and write nothing.")] = False


class AnalyzeRequest(Request, kw_only=True):
    """A graph algorithm."""

    algorithm: Literal[
        "pagerank",
        "components",
        "degrees",
        "betweenness",
        "closeness",
        "communities",
        "label_propagation",
        "cores",
        "topological_order",
        "spanning_tree",
        "similarity",
        "embeddings",
    ]
    nodes: Annotated[list[TypeName], Meta(description="The node types; by default all.")] | None = None
    edges: Annotated[list[TypeName], Meta(description="The edge types; by default all.")] | None = None
    weight: Annotated[Name, Meta(description="The edge property that holds the weight.")] | None = None
    damping: (
        Annotated[float, Meta(ge=0, le=1, description="The damping factor of `pagerank`; by default 0.85.")] | None
    ) = None
    parameters: (
        Annotated[
            dict[str, bool | int | float | str | list[float]],
            Meta(description="Parameters of the algorithm, such as `samples`; others have their defaults."),
        ]
        | None
    ) = None
    write: (
        Annotated[
            str | dict[str, str],
            Meta(description="The property that receives the values, or an object that maps each value to a property."),
        ]
        | None
    ) = None
    top: Annotated[int, Meta(ge=1, le=LIST_MAX, description="The number of nodes per type in the answer.")] = 10
    branch: Branch | None = None
    at: Point | None = None
    message: Message | None = None
