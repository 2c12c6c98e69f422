"""Results of a search: hits, the explanation of their ranks, and the rank of a requested node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from omnigraph.fast_dataclass import dataclass

By = Literal["words", "meaning"]
Absence = Literal["not_found", "filtered", "no_match", "beyond"]
Offset = Callable[[str, int], int]
"""Converts an offset in characters of a text to another unit."""


@dataclass(frozen=True)
class TermWeight:
    """A term of the search text in one property of a node."""

    term: str
    """The term after analysis, such as `heron`."""
    word: str
    """The word of the search text."""
    weight: float
    """Its part of the relevance."""
    places: tuple[tuple[int, int], ...]
    """Its first places in the property: (start, end) in characters."""


@dataclass(frozen=True)
class RankerShare:
    """The rank of a node in one of the two rankings."""

    by: By
    property: str | None
    """The property that ranks best; None if the node is not in the ranking."""
    rank: int | None
    """The position in the ranking of all types, from 1; None if the node is not in it."""
    score: float | None
    """The relevance (BM25), or the cosine distance."""
    share: float
    """The contribution to the fused score: 1 / (60 + rank), or 0."""
    terms: tuple[TermWeight, ...] = ()
    """The terms that occur, by descending weight; for words only."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        data = {name: getattr(self, name) for name in ("by", "property", "rank", "score", "share")}
        if self.by == "words":
            data["terms"] = [
                {
                    "term": each.term,
                    "word": each.word,
                    "weight": each.weight,
                    "places": [list(at) for at in each.places],
                }
                for each in self.terms
            ]
        return data


@dataclass(frozen=True)
class SearchHit:
    """A node that a search found."""

    type: str
    id: str
    rank: int
    score: float
    """The fused score: the sum of the shares."""
    row: dict[str, Any]
    """The properties, without vectors and Blobs."""
    why: tuple[RankerShare, ...] = ()

    def to_json(self, convert: Callable[[Any], Any] = lambda value: value) -> dict[str, Any]:
        """Return the JSON form; `convert` converts the values of properties."""
        return {
            "type": self.type,
            "id": self.id,
            "rank": self.rank,
            "score": self.score,
            "data": {name: convert(value) for name, value in self.row.items() if name != "id"},
            "why": [each.to_json() for each in self.why],
        }


@dataclass(frozen=True)
class RankOf:
    """The rank of a requested node, or the reason why it is not among the hits."""

    type: str | None
    """The type; None if no searched type has a node with the id."""
    id: str
    rank: int | None
    reason: Absence | None
    """None if it has a rank."""
    message: str
    filters: tuple[str, ...] = ()
    """The filters that the node does not satisfy."""
    why: tuple[RankerShare, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        data = {name: getattr(self, name) for name in ("type", "id", "rank", "reason", "message")}
        return {**data, "filters": list(self.filters), "why": [each.to_json() for each in self.why]}


@dataclass(frozen=True)
class SearchResult:
    """A page of hits, best first."""

    hits: tuple[SearchHit, ...]
    counts: dict[str, int]
    """Type → the number of its nodes among all hits."""
    notes: tuple[str, ...]
    """What the search left out, and why."""
    next: str | None
    """The cursor of the following page; None at the end."""
    commit_id: str
    rank_of: tuple[RankOf, ...] = ()
    """With `rank_of`: one entry for each searched type that has a node with the id, else a single one."""

    def to_json(self, convert: Callable[[Any], Any] = lambda value: value) -> dict[str, Any]:
        """Return the JSON form; `convert` converts the values of properties."""
        data: dict[str, Any] = {
            "hits": [hit.to_json(convert) for hit in self.hits],
            "counts": self.counts,
            "notes": list(self.notes),
            "graph_commit_id": self.commit_id,
        }
        if self.rank_of:
            data["rank_of"] = [each.to_json() for each in self.rank_of]
        if self.next is not None:
            data["next"] = self.next
        return data
