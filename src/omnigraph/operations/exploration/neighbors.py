"""Neighbours of one node: their exact number by edge type and direction, and their rows in pages.

Edges are read through the adjacency of their type, which is built once per version of its table and kept. A page reads
the rows of its edges and nodes only, so the first page of a node with a million neighbours costs as much as that of
a node with a hundred.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from omnigraph.engine.adjacency.csr import IncidentRows
from omnigraph.engine.cache.id_index import find_visible
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.engine.exec.context import NO_LIMITS, ExecutionContext
from omnigraph.errors import InputError, NotFound, PageCursorRejected, TypeNotFound
from omnigraph.fast_dataclass import dataclass
from omnigraph.operations.exploration.rows_by_id import rows_by_number, shown_columns
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.lost_structures import repeated_if_lost
from omnigraph.operations.paging import snapshot_of_page
from omnigraph.schema.catalog import EdgeType
from omnigraph.suggestions import did_you_mean
from omnigraph.table_key import TableKey
from omnigraph.versioning.feed.cursors import read_token, short_id, write_token
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.ref_names import check_text
from omnigraph.versioning.write.repository import At

EdgeDirection = Literal["out", "in"]
LIMIT_MAX = 1_000

Convert = Callable[[Any], Any]


@dataclass(frozen=True)
class Degree:
    """The number of edges of one type and direction at a node."""

    edge: str
    direction: EdgeDirection
    """`out` if the node is the source."""
    type: str
    """The type of the nodes at the other end."""
    count: int

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"edge": self.edge, "direction": self.direction, "type": self.type, "count": self.count}


@dataclass(frozen=True)
class Neighbor:
    """An edge of a node, and the node at its other end; rows are without vectors and Blobs."""

    edge: str
    direction: EdgeDirection
    edge_row: dict[str, Any]
    """`id`, `src`, `dst` and the properties of the edge."""
    type: str
    row: dict[str, Any]
    """`id` and the properties of the node."""

    @property
    def id(self) -> str:
        """The id of the node."""
        return cast(str, self.row["id"])

    def to_json(self, convert: Convert = lambda value: value) -> dict[str, Any]:
        """Return the JSON form; `convert` converts the values of properties."""
        fixed = ("id", "src", "dst")
        return {
            "edge": self.edge,
            "direction": self.direction,
            "edge_id": self.edge_row["id"],
            "edge_data": {name: convert(value) for name, value in self.edge_row.items() if name not in fixed},
            "type": self.type,
            "id": self.id,
            "data": {name: convert(value) for name, value in self.row.items() if name != "id"},
        }


@dataclass(frozen=True)
class NeighborPage:
    """Some neighbours of a node, by edge type, outgoing edges first, then in the order of the stored edges."""

    neighbors: tuple[Neighbor, ...]
    next: str | None
    """The cursor of the following page; None at the end."""
    commit_id: str
    total: int
    """The exact number of neighbours on all pages."""

    def to_json(self, convert: Convert = lambda value: value) -> dict[str, Any]:
        """Return the JSON form; `convert` converts the values of properties."""
        data: dict[str, Any] = {
            "neighbors": [each.to_json(convert) for each in self.neighbors],
            "graph_commit_id": self.commit_id,
            "total": self.total,
        }
        if self.next is not None:
            data["next"] = self.next
        return data


class NeighborRequest(NamedTuple):
    """The edges of a node that are followed."""

    type_name: str
    id: str
    edge: str | None = None
    direction: EdgeDirection | None = None

    @classmethod
    def of(cls, type_name: str, id_: str, edge: str | None = None, direction: str | None = None) -> NeighborRequest:
        """Return the request that the arguments of a call describe."""
        check_text(type_name, "type")
        if edge is not None:
            check_text(edge, "edge type")
        if direction not in (None, "out", "in"):
            raise InputError(
                f"there is no direction '{str(direction)[:40]}'",
                code="bad_direction",
                hint="the directions are out (outgoing edges) and in (incoming edges); by default both",
            )
        return cls(type_name, id_, edge, cast("EdgeDirection | None", direction))

    @property
    def digest(self) -> str:
        """Identifies the request in a cursor."""
        return hashlib.sha256(repr(self).encode("utf-8", "surrogatepass")).hexdigest()[:32]


class _Hop(NamedTuple):
    """The edges of one type and direction at the node."""

    edge: EdgeType
    direction: EdgeDirection
    rows: IncidentRows

    @property
    def far(self) -> str:
        """The type of the nodes at the other end."""
        return self.edge.to_type if self.direction == "out" else self.edge.from_type


@repeated_if_lost
def degrees_of(context: GraphContext, snapshot: Snapshot, request: NeighborRequest) -> list[Degree]:
    """Return the numbers of the visible edges of a node, by edge type and direction, zeros included."""
    node, hops = _node_and_hops(context, snapshot, request)
    return [Degree(hop.edge.name, hop.direction, hop.far, _count(hop, node)) for hop in hops]


@repeated_if_lost
def neighbors_of(
    context: GraphContext, request: NeighborRequest, limit: int, *, branch: str, at: At, after: str | None
) -> NeighborPage:
    """Return one page of the neighbours of a node."""
    check_limit(limit)
    cursor = None if after is None else _read_cursor(after, branch, request)
    position = (cursor["commit"], cursor["epoch"]) if cursor is not None else None
    snapshot = snapshot_of_page(context, branch, at, position)
    visibility = context.visibility_of(snapshot)
    seen = "" if visibility is None else visibility.digest
    if cursor is not None and cursor["seen"] != seen:
        raise PageCursorRejected("its caller saw other rows")
    offset = 0 if cursor is None else cursor["offset"]
    node, hops = _node_and_hops(context, snapshot, request)
    total = sum(_count(hop, node) for hop in hops)
    found = tuple(_some(context, snapshot, hops, node, offset, limit))
    following = None
    if offset + limit < total:
        fields = {"commit": snapshot.commit_id, "offset": offset + limit, "digest": request.digest, "seen": seen}
        following = write_token("neighbor-page", snapshot.purge_epoch, {"branch": short_id(branch), **fields})
    return NeighborPage(found, following, snapshot.commit_id, total)


@repeated_if_lost
def some_neighbors(
    context: GraphContext, snapshot: Snapshot, request: NeighborRequest, offset: int, limit: int
) -> list[Neighbor]:
    """Return at most `limit` neighbours of a node of a snapshot, from an offset on."""
    node, hops = _node_and_hops(context, snapshot, request)
    return list(_some(context, snapshot, hops, node, offset, limit))


def check_limit(limit: int) -> int:
    """Return the size of a page; `InputError` if it is not valid."""
    if type(limit) is not int or not 1 <= limit <= LIMIT_MAX:
        raise InputError(f"the limit must be an integer from 1 to {LIMIT_MAX} (got {limit!r})", code="bad_page")
    return limit


def _read_cursor(text: object, branch: str, request: NeighborRequest) -> dict[str, Any]:
    fields = read_token(
        text,
        "neighbor-page",
        {"branch": short_id(branch)},
        {"commit": str, "offset": int, "digest": str, "seen": str},
        rejected=PageCursorRejected,
    )
    if fields["offset"] < 0:
        raise PageCursorRejected("it is not a valid token")
    if fields["digest"] != request.digest:
        raise PageCursorRejected("it belongs to another node, edge type or direction")
    return fields


def _node_and_hops(context: GraphContext, snapshot: Snapshot, request: NeighborRequest) -> tuple[Numbers, list[_Hop]]:
    """Return the row number of a visible node, and its edges by type and direction."""
    catalog = context.catalog(snapshot)
    if request.type_name not in catalog.nodes:
        raise TypeNotFound(
            f"node type '{request.type_name}' does not exist at commit {snapshot.commit_id}",
            hint=did_you_mean(request.type_name, catalog.nodes),
        )
    view = context.view(snapshot)
    tables = ExecutionContext(catalog, snapshot, context.cache, NO_LIMITS) if view is None else view.context
    key = TableKey.node(request.type_name)
    row = find_visible(tables.type_table(key), snapshot.find_alias(key, request.id) or request.id)
    if row is None:
        raise NotFound(
            f"{request.type_name} '{request.id}' does not exist at commit {snapshot.commit_id}",
            code="entity_not_found",
            hint="the id of a keyed node is its key",
        )
    touching = catalog.edges_touching.get(request.type_name, ())
    edges = sorted(touching, key=lambda edge: edge.name)
    if request.edge is not None:
        named = catalog.find_edge(request.edge)
        if named is None or named not in edges:
            known = [edge.name for edge in edges]
            raise TypeNotFound(
                f"{request.type_name} has no edge type '{request.edge[:80]}'", hint=did_you_mean(request.edge, known)
            )
        edges = [named]

    def hops() -> Iterator[_Hop]:
        ends: tuple[EdgeDirection, ...] = ("out", "in")
        for edge in edges:
            for direction in ends if request.direction is None else (request.direction,):
                if request.type_name == (edge.from_type if direction == "out" else edge.to_type):
                    yield _Hop(edge, direction, tables.adjacency(edge.name).edge_rows(direction))

    return np.array([row]), list(hops())


def _count(hop: _Hop, node: Numbers) -> int:
    return int(hop.rows.degrees(node)[0])


def _some(
    context: GraphContext, snapshot: Snapshot, hops: list[_Hop], node: Numbers, offset: int, limit: int
) -> Iterator[Neighbor]:
    """Yield at most `limit` neighbours from an offset on."""
    for hop in hops:
        count = _count(hop, node)
        if offset >= count:
            offset -= count
            continue
        _, edges, targets = hop.rows.expand(node)
        chosen = slice(offset, offset + limit)
        yield from _neighbors(context, snapshot, hop, edges[chosen], targets[chosen])
        limit -= min(limit, count - offset)
        offset = 0
        if limit == 0:
            return


def _neighbors(
    context: GraphContext, snapshot: Snapshot, hop: _Hop, edges: Numbers, targets: Numbers
) -> Iterator[Neighbor]:
    catalog, edge_key, node_key = context.catalog(snapshot), hop.edge.table_key, TableKey.node(hop.far)
    edge_rows = rows_by_number(context, snapshot, edge_key, shown_columns(catalog, edge_key), edges)
    rows = rows_by_number(context, snapshot, node_key, shown_columns(catalog, node_key), targets)
    for edge_row, row in zip(edge_rows, rows, strict=True):
        yield Neighbor(hop.edge.name, hop.direction, edge_row, hop.far, row)
