"""Tools that explore: search in all types, and the neighbours of a node."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from omnigraph.mcp.answers import list_answer
from omnigraph.mcp.budget import Page
from omnigraph.mcp.read_tools import After, Branch, Limit, Point, RowId, Text, TypeName
from omnigraph.mcp.session import Session, point_of
from omnigraph.mcp.tool import DATA_NOTE, Answer, Tool, make_tool
from omnigraph.wire.json_values import row_value
from omnigraph.wire.requests.request import NAME_MAX, Request

WORDS_MAX = 2_000
HITS = 10
_DIGITS = 4


class SearchInput(Request):
    """Arguments of `search`."""

    text: Annotated[str, Meta(min_length=1, max_length=WORDS_MAX, description="Words, or a question.")]
    types: Annotated[list[Text], Meta(max_length=100, description="Only these node types.")] | None = None
    by: Annotated[
        Literal["both", "words", "meaning"],
        Meta(description="words (BM25), meaning (vectors), or both, which fuses them. By default both."),
    ] = "both"
    filters: (
        Annotated[
            dict[str, Any],
            Meta(description='Property to value or conditions: {"year": {">=": 1900}, "kind": "print"}.'),
        ]
        | None
    ) = None
    branch: Branch | None = None
    at: Point | None = None
    limit: Limit | None = None
    after: After | None = None


class NeighborsInput(Request):
    """Arguments of `neighbors`."""

    type: TypeName
    id: RowId
    edge: Annotated[str, Meta(max_length=NAME_MAX, description="Only edges of this type.")] | None = None
    direction: Annotated[Literal["out", "in"], Meta(description="Only outgoing or incoming edges.")] | None = None
    branch: Branch | None = None
    at: Point | None = None
    limit: Limit | None = None
    after: After | None = None


def search_nodes(session: Session, given: SearchInput) -> Answer:
    """Search the nodes of all types."""

    def fetch(count: int) -> Page[dict[str, Any]]:
        found = session.graph.search(
            given.text,
            given.types,
            by=given.by,
            filters=given.filters,
            limit=count,
            after=given.after,
            why=False,
            branch=given.branch,
            at=point_of(given.at),
            limits=session.limits,
        )
        hits = [hit.to_json(row_value) for hit in found.hits]
        items = [{**_without(hit, "why"), "score": round(hit["score"], _DIGITS)} for hit in hits]
        head = {"counts": found.counts, "notes": list(found.notes), "commit": found.commit_id}
        return Page(items, found.next, head)

    return list_answer(session, "hits", given.limit or HITS, fetch)


def list_neighbors(session: Session, given: NeighborsInput) -> Answer:
    """Return the neighbours of a node; the first page has their numbers by edge type and direction."""
    point: dict[str, Any] = {"branch": given.branch, "at": point_of(given.at)}
    degrees = session.graph.degrees(given.type, given.id, **point, **session.bounds) if given.after is None else []
    counts = [f"{each.edge} {each.direction} {each.type}: {each.count}" for each in degrees if each.count]

    def fetch(count: int) -> Page[dict[str, Any]]:
        found = session.graph.neighbors(
            given.type,
            given.id,
            given.edge,
            given.direction,
            limit=count,
            after=given.after,
            **point,
            **session.bounds,
        )
        items = [_without(each.to_json(row_value), "edge_id") for each in found.neighbors]
        return Page(items, found.next, {"counts": counts, "commit": found.commit_id})

    return list_answer(session, "neighbors", given.limit, fetch)


def _without(members: dict[str, Any], name: str) -> dict[str, Any]:
    return {member: value for member, value in members.items() if member != name}


EXPLORATION_TOOLS: tuple[Tool, ...] = (
    make_tool(
        "search",
        "Search",
        "Find nodes of all types by words and by meaning, best first, with their properties. Use it when neither type "
        f"nor id is known. {DATA_NOTE}",
        SearchInput,
        search_nodes,
    ),
    make_tool(
        "neighbors",
        "Neighbours",
        "Return the edges of a node and the nodes at their other ends, and their numbers by edge type and direction. "
        f"{DATA_NOTE}",
        NeighborsInput,
        list_neighbors,
    ),
)
