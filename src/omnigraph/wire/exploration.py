"""Documents of searches and of the neighbours of a node."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from omnigraph.wire.document import Document

EdgeDirectionName = Literal["out", "in"]
RankerName = Literal["words", "meaning"]
AbsenceReason = Literal["not_found", "filtered", "no_match", "beyond"]


class TermWeightDocument(Document):
    """A term of the search text in one property: its part of the relevance, and its first places."""

    term: str
    word: str
    weight: float
    places: list[tuple[int, int]]
    """[start, end] of each place, in the requested unit."""


class RankerShareDocument(Document):
    """The rank of a node in one ranking; `score` is the relevance, or the cosine distance."""

    by: RankerName
    property: str | None
    rank: int | None
    score: float | None
    share: float
    """The contribution to the fused score."""
    terms: list[TermWeightDocument] | UnsetType = UNSET


class SearchHitDocument(Document):
    """A node that a search found; `data` has no vectors and no Blobs."""

    type: str
    id: str
    rank: int
    score: float
    data: dict[str, Any]
    why: list[RankerShareDocument]


class RankOfDocument(Document):
    """The rank of a requested node, or the reason why it is not among the hits."""

    type: str | None
    id: str
    rank: int | None
    reason: AbsenceReason | None
    message: str
    filters: list[str]
    why: list[RankerShareDocument]


class SearchDocument(Document):
    """A page of hits, best first; `counts` has the number of hits of each type on all pages."""

    hits: list[SearchHitDocument]
    counts: dict[str, int]
    notes: list[str]
    graph_commit_id: str
    rank_of: list[RankOfDocument] | UnsetType = UNSET
    next: str | UnsetType = UNSET


class DegreeDocument(Document):
    """The number of edges of one type and direction at a node."""

    edge: str
    direction: EdgeDirectionName
    type: str
    """The type of the nodes at the other end."""
    count: int


class NeighborDocument(Document):
    """An edge of a node, and the node at its other end; without vectors and Blobs."""

    edge: str
    direction: EdgeDirectionName
    edge_id: str
    edge_data: dict[str, Any]
    type: str
    id: str
    data: dict[str, Any]


class NeighborListDocument(Document):
    """A page of the neighbours of a node; `total` is their exact number on all pages."""

    neighbors: list[NeighborDocument]
    graph_commit_id: str
    total: int
    next: str | UnsetType = UNSET
