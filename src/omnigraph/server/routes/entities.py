"""Single nodes and edges: their values, history, blame and neighbours."""

from __future__ import annotations

from itertools import islice

from omnigraph.errors import NotFound
from omnigraph.server.caller import Caller, point_of
from omnigraph.server.messages.answers import Answer
from omnigraph.server.messages.details import commit_members
from omnigraph.wire.changes import BlameDocument, HistoryDocument, PropertyBlameDocument
from omnigraph.wire.entities import EntityDocument
from omnigraph.wire.exploration import DegreeDocument, NeighborListDocument
from omnigraph.wire.requests.exploration import NeighborQuery
from omnigraph.wire.requests.request import LIST_MAX
from omnigraph.wire.requests.tables import EntityQuery, GetQuery, HistoryQuery


def get_entity(caller: Caller, body: GetQuery, type: str, id: str) -> Answer:
    """Return one node or edge."""
    commit, point = caller.point(body.branch, point_of(body.at))
    row = caller.graph.get(type, id, at=point, kind=body.entity)
    if row is None:
        raise _not_found(type, id, commit)
    data = {name: caller.row_value(value) for name, value in row.items() if name != "id"}
    id = row["id"]  # The requested id can be an alias.
    document = EntityDocument(type, id, data, commit)
    included = (body.include or "").split(",")
    if "blame" in included:
        document.blame = _blame(caller, type, id, point)
    if "degrees" in included:
        document.degrees = _degrees(caller, body, type, id, point)
    return Answer(document, commit=commit)


def get_neighbors(caller: Caller, body: NeighborQuery, type: str, id: str) -> Answer:
    """Return a page of the neighbours of a node."""
    found = caller.graph.neighbors(
        type,
        id,
        body.edge,
        body.direction,
        limit=body.limit,
        after=body.after,
        branch=body.branch,
        at=point_of(body.at),
        cancel=caller.cancel,
        timeout=caller.timeout_s,
    )
    return Answer(NeighborListDocument.of(found.to_json(caller.row_value)), commit=found.commit_id)


def get_history(caller: Caller, body: HistoryQuery, type: str, id: str) -> Answer:
    """Return the changes of one node or edge, newest first."""
    commit, point = caller.point(body.branch, point_of(body.at))
    count = body.limit or LIST_MAX
    changes = caller.graph.history(type, id, at=point, after=body.after, cancel=caller.cancel, timeout=caller.timeout_s)
    found = list(islice(changes, count + 1))
    if not found and body.after is None:
        raise _not_found(type, id, commit)
    page = found[:count]
    listed = [{**change.to_json(caller.row_value), **commit_members(caller, change.commit)} for change in page]
    document = HistoryDocument.of({"type_name": type, "id": id, "changes": listed})
    if len(found) > count:
        document.next = page[-1].commit.id
    return Answer(document, commit=commit)


def get_blame(caller: Caller, body: EntityQuery, type: str, id: str) -> Answer:
    """Return the commit that last set each property of one node or edge."""
    commit, point = caller.point(body.branch, point_of(body.at))
    properties = _blame(caller, type, id, point)
    if not properties:
        raise _not_found(type, id, commit)
    return Answer(BlameDocument(type, id, properties), commit=commit)


def _blame(caller: Caller, type: str, id: str, point: str) -> list[PropertyBlameDocument]:
    """Return the commit that last set each property; none for a node or edge that does not exist."""
    found = caller.graph.blame(type, id, at=point, cancel=caller.cancel, timeout=caller.timeout_s)
    return [
        PropertyBlameDocument.of({**blame.to_json(caller.row_value), **commit_members(caller, blame.commit)})
        for blame in found
        if blame.property != "id" or caller.negotiated.typed
    ]


def _degrees(caller: Caller, body: GetQuery, type: str, id: str, point: str) -> list[DegreeDocument]:
    """Return the numbers of edges of a node; none for an edge."""
    if body.entity == "edge" or type not in caller.graph.catalog(at=point).nodes:
        return []
    found = caller.graph.degrees(type, id, at=point, cancel=caller.cancel, timeout=caller.timeout_s)
    return [DegreeDocument.of(degree.to_json()) for degree in found]


def _not_found(type_name: str, id: str, commit: str) -> NotFound:
    return NotFound(
        f"{type_name} '{id}' does not exist at commit {commit}",
        code="entity_not_found",
        hint="the id of a keyed node is its key",
    )
