"""Searches in the nodes of all types, and projections of vectors."""

from __future__ import annotations

import time

from omnigraph.engine.result.result import Result
from omnigraph.operations.search.utf16_places import utf16_places
from omnigraph.server.caller import Caller, point_of
from omnigraph.server.messages.answers import Answer, Rows
from omnigraph.server.routes.query import narrowed
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.wire.exploration import SearchDocument
from omnigraph.wire.queries import TargetDocument
from omnigraph.wire.requests.exploration import ProjectionQuery, SearchRequest


def search(caller: Caller, body: SearchRequest) -> Answer:
    """Return a page of the hits of a search."""
    found = caller.graph.search(
        body.text,
        body.types,
        by=body.by,
        filters=caller.given_params(body.filters),
        limit=body.limit,
        after=body.after,
        why=body.why,
        rank_of=body.rank_of,
        branch=body.branch,
        at=point_of(body.at),
        limits=narrowed(caller.limits, body.limits),
    )
    shown = utf16_places(found) if body.offsets == "utf16" else found
    return Answer(SearchDocument.of(shown.to_json(caller.row_value)), commit=found.commit_id)


def projection(caller: Caller, body: ProjectionQuery) -> Rows:
    """Return the vectors of a property in two dimensions."""
    started = time.perf_counter()
    commit, point = caller.point(body.branch, point_of(body.at))
    found = caller.graph.projection(body.type, body.property_, at=point, cancel=caller.cancel, timeout=caller.timeout_s)
    elapsed_ms = (time.perf_counter() - started) * 1000
    result = Result(found, query_name="projection", commit_id=commit, elapsed_ms=elapsed_ms)
    target = TargetDocument(body.branch or MAIN, None) if body.at is None else TargetDocument(None, body.at)
    return Rows(result, target)
