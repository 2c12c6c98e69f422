"""Inputs of searches and of the neighbours of a node."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from omnigraph.wire.requests.queries import QueryLimits
from omnigraph.wire.requests.request import After, Limit, Name, TypeName, Types
from omnigraph.wire.requests.tables import PointQuery

Offsets = Annotated[
    Literal["unicode", "utf16"],
    Meta(description="The unit of offsets in texts: characters, or UTF-16 code units as in JavaScript."),
]


class SearchRequest(PointQuery, kw_only=True):
    """A search in the nodes of some types, by default of all."""

    text: Annotated[str, Meta(min_length=1, max_length=10_000, description="The text to search for.")]
    types: Types | None = None
    by: Annotated[Literal["both", "words", "meaning"], Meta(description="Rank by words, by vectors, or by both.")] = (
        "both"
    )
    filters: (
        Annotated[
            dict[str, Any],
            Meta(
                description="An object that maps a property to a value, or to an object of conditions.",
                examples=[{"year": {">=": 1900}, "kind": "print"}],
            ),
        ]
        | None
    ) = None
    limit: Limit = 10
    after: After | None = None
    why: Annotated[bool, Meta(description="Explain the rank of each hit.")] = True
    rank_of: (
        Annotated[Name, Meta(description="The id of a node whose rank, or absence, the answer explains.")] | None
    ) = None
    offsets: Offsets = "unicode"
    limits: QueryLimits | None = None


class NeighborQuery(PointQuery, kw_only=True):
    """The edges of a node that are followed; by default all."""

    edge: Annotated[Name, Meta(description="The name of an edge type.")] | None = None
    direction: (
        Annotated[Literal["out", "in"], Meta(description="Only outgoing edges, or only incoming ones.")] | None
    ) = None
    limit: Limit = 100
    after: After | None = None


class ProjectionQuery(PointQuery, kw_only=True):
    """A vector property to project."""

    type: TypeName
    property_: Annotated[Name, Meta(description="The name of a Vector property.")] = field(name="property")
