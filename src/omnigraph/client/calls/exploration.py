"""Calls of searches and of the neighbours of a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import UNSET, UnsetType

from omnigraph.client.call import Call
from omnigraph.client.calls.handle import CallHandle, at_text
from omnigraph.client.calls.tables import check_timeout
from omnigraph.client.decoders import read_arrow
from omnigraph.client.failures import reading, unreadable
from omnigraph.client.messages import ARROW, TYPED_JSON
from omnigraph.client.query_texts import sent_limits, sent_params
from omnigraph.graph_tables import row_id
from omnigraph.operations.exploration.neighbors import Degree, Neighbor, NeighborPage, NeighborRequest, check_limit
from omnigraph.operations.requests import limits_of
from omnigraph.operations.search.search_request import search_request
from omnigraph.operations.search.search_result import RankerShare, RankOf, SearchHit, SearchResult, TermWeight
from omnigraph.versioning.write.ref_names import check_text
from omnigraph.wire.entities import EntityDocument
from omnigraph.wire.exploration import (
    NeighborDocument,
    NeighborListDocument,
    RankerShareDocument,
    SearchDocument,
    SearchHitDocument,
)
from omnigraph.wire.requests.exploration import NeighborQuery, ProjectionQuery, SearchRequest
from omnigraph.wire.requests.tables import GetQuery
from omnigraph.wire.typed_values import untyped_value

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.engine.exec.context import Limits
    from omnigraph.versioning.write.repository import At


class ExplorationCalls(CallHandle):
    """Calls of searches and of the neighbours of a node."""

    def search(
        self,
        text: str,
        types: Sequence[str] | None = None,
        *,
        by: str = "both",
        filters: Mapping[str, Any] | None = None,
        limit: int = 10,
        after: str | None = None,
        why: bool = True,
        rank_of: str | int | None = None,
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
        limits: Limits | None = None,
    ) -> Call[SearchResult]:
        """Search the nodes of some types, by default of all, by their texts and their vectors.

        Arguments are as in `Graph.search`.
        """
        checked = search_request(text, types, by, filters, limit, why=why, rank_of=rank_of)
        bounds = limits_of(limits, timeout, cancel)
        input = SearchRequest(
            text=text,
            types=None if checked.types is None else list(checked.types),
            by=checked.by,
            filters=sent_params(filters),
            limit=limit,
            after=after,
            why=why,
            rank_of=checked.rank_of,
            branch=self._branch(branch),
            at=at_text(at),
            limits=sent_limits(bounds),
        )
        answer = yield self._post(
            "search",
            input=input,
            media_type=TYPED_JSON,
            accept=TYPED_JSON,
            timeout=bounds.timeout_s,
            cancel=bounds.cancellation,
        )
        return _result_of(answer.document(SearchDocument))

    def neighbors(
        self,
        type_name: str,
        id: str | int,
        edge: str | None = None,
        direction: str | None = None,
        *,
        limit: int = 100,
        after: str | None = None,
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> Call[NeighborPage]:
        """Return the edges of a node and the nodes at their other ends, at most `limit`.

        Arguments are as in `Graph.neighbors`.
        """
        check_timeout(timeout)
        request = NeighborRequest.of(type_name, row_id(id), edge, direction)
        input = NeighborQuery(
            edge=edge,
            direction=request.direction,
            limit=check_limit(limit),
            after=after,
            branch=self._branch(branch),
            at=at_text(at),
        )
        path = ("entities", type_name, request.id, "neighbors")
        answer = yield self._get(*path, input=input, accept=TYPED_JSON, timeout=timeout, cancel=cancel)
        found = answer.document(NeighborListDocument)
        listed = tuple(_neighbor_of(request, each) for each in found.neighbors)
        return NeighborPage(listed, _given(found.next), found.graph_commit_id, found.total)

    def degrees(
        self,
        type_name: str,
        id: str | int,
        *,
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> Call[list[Degree]]:
        """Return the numbers of edges of a node by edge type and direction, zeros included."""
        check_timeout(timeout)
        request = NeighborRequest.of(type_name, row_id(id))
        input = GetQuery(branch=self._branch(branch), at=at_text(at), entity="node", include="degrees")
        path = ("entities", type_name, request.id)
        answer = yield self._get(*path, input=input, accept=TYPED_JSON, timeout=timeout, cancel=cancel)
        found = answer.document(EntityDocument).degrees
        if found is UNSET:
            raise unreadable("it has no degrees")
        return [Degree(each.edge, each.direction, each.type, each.count) for each in found]

    def projection(
        self,
        type_name: str,
        property: str,
        *,
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> Call[pa.Table]:
        """Return the vectors of a property in two dimensions: an Arrow table of `id`, `x` and `y`."""
        check_timeout(timeout)
        check_text(type_name, "type")
        check_text(property, "property")
        input = ProjectionQuery(type=type_name, property_=property, branch=self._branch(branch), at=at_text(at))
        answer = yield self._get("projection", input=input, accept=ARROW, timeout=timeout, cancel=cancel)
        return read_arrow(answer.body).replace_schema_metadata(None)


def _given(text: str | UnsetType) -> str | None:
    return None if text is UNSET else text


def _result_of(document: SearchDocument) -> SearchResult:
    ranks = [] if document.rank_of is UNSET else document.rank_of
    return SearchResult(
        tuple(_hit_of(hit) for hit in document.hits),
        document.counts,
        tuple(document.notes),
        _given(document.next),
        document.graph_commit_id,
        tuple(
            RankOf(
                each.type,
                each.id,
                each.rank,
                each.reason,
                each.message,
                tuple(each.filters),
                tuple(_share_of(share) for share in each.why),
            )
            for each in ranks
        ),
    )


@reading
def _hit_of(hit: SearchHitDocument) -> SearchHit:
    row = {"id": hit.id, **{name: untyped_value(value) for name, value in hit.data.items()}}
    return SearchHit(hit.type, hit.id, hit.rank, hit.score, row, tuple(_share_of(share) for share in hit.why))


def _share_of(share: RankerShareDocument) -> RankerShare:
    listed = [] if share.terms is UNSET else share.terms
    terms = tuple(TermWeight(each.term, each.word, each.weight, tuple(each.places)) for each in listed)
    return RankerShare(share.by, share.property, share.rank, share.score, share.share, terms)


@reading
def _neighbor_of(request: NeighborRequest, each: NeighborDocument) -> Neighbor:
    ends = (request.id, each.id) if each.direction == "out" else (each.id, request.id)
    fixed = {"id": each.edge_id, "src": ends[0], "dst": ends[1]}
    edge_row = {**fixed, **{name: untyped_value(value) for name, value in each.edge_data.items()}}
    row = {"id": each.id, **{name: untyped_value(value) for name, value in each.data.items()}}
    return Neighbor(each.edge, each.direction, edge_row, each.type, row)
