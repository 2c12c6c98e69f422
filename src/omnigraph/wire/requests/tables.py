"""Inputs of reads without a query: snapshots, rows, tables, exports and blobs."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from omnigraph.wire.requests.queries import Snapshot
from omnigraph.wire.requests.request import (
    After,
    Branch,
    Limit,
    Name,
    Point,
    Request,
    TypeName,
    exclude,
)

Kind = Annotated[Literal["node", "edge"], Meta(description="The kind of the type; by default either.")]


class PointQuery(Request, kw_only=True):
    """A point of a branch."""

    branch: Branch | None = None
    at: Point | None = None


class SnapshotQuery(PointQuery, kw_only=True):
    """The point whose tables are listed."""


class EntityQuery(PointQuery, kw_only=True):
    """The point at which a node or edge is read."""


class GetQuery(EntityQuery, kw_only=True):
    """The node or edge to read."""

    entity: Kind | None = None
    include: (
        Annotated[
            str,
            Meta(
                pattern="^(blame|degrees)(,(blame|degrees))*$",
                description="Further members of the answer, separated by commas: `blame`, the commit that last set "
                "each property, and `degrees`, the numbers of edges by type and direction.",
                examples=["blame,degrees"],
            ),
        ]
        | None
    ) = None


class HistoryQuery(PointQuery, kw_only=True):
    """A part of the history of a node or edge."""

    limit: Limit | None = None
    after: After | None = None


class TableQuery(PointQuery, kw_only=True):
    """The columns of a table to read."""

    entity: Kind | None = None

    columns: (
        Annotated[list[Name], Meta(description="The properties to read; by default all. Repeat for several.")] | None
    ) = None


class ExportRequest(PointQuery, kw_only=True):
    """The types to export."""

    type_names: Annotated[list[TypeName], Meta(description="The types; by default all.")] | None = None
    table_keys: Annotated[list[Name], Meta(description="The tables, such as `node:Person`; by default all.")] | None = (
        None
    )


class BlobQuery(Request, kw_only=True):
    """A blob property of a node or edge."""

    entity: Kind | None = None
    type: TypeName
    id: Annotated[str, Meta(min_length=1, description="The id of the node or edge.")]
    property_: Annotated[Name, Meta(description="The name of the property.")] = field(name="property")
    branch: Branch | None = None
    snapshot: Snapshot | None = None
    at: Point | None = None

    @property
    def point(self) -> str | None:
        """The point to read: `snapshot` or `at`; None means the newest commit of the branch."""
        exclude({"branch": self.branch, "snapshot": self.snapshot})
        exclude({"snapshot": self.snapshot, "at": self.at})
        return self.snapshot if self.snapshot is not None else self.at
