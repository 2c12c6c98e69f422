"""Routes of maintenance and of operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from omnigraph.server.messages.answers import Reply
from omnigraph.server.route import Gate, Route
from omnigraph.server.routes import maintenance, operations
from omnigraph.wire.requests.branches import ListQuery
from omnigraph.wire.requests.maintenance import (
    CleanupRequest,
    EmbedRequest,
    IndicesRequest,
    OptimizeRequest,
    RecoverRequest,
    VerifyRequest,
)
from omnigraph.wire.requests.request import Request
from omnigraph.wire.server_state import OperationDocument, OperationListDocument

_BRANCH = Gate("maintain", branch="branch")
_GRAPH = Gate("maintain")

_WORK: tuple[tuple[str, str, Callable[..., Reply], type[Request], Gate, str], ...] = (
    (
        "optimize",
        "optimize",
        maintenance.optimize,
        OptimizeRequest,
        _BRANCH,
        "Compact the tables of a branch, update its indexes and build its search structures.",
    ),
    (
        "buildIndices",
        "indices",
        maintenance.build_indices,
        IndicesRequest,
        _BRANCH,
        "Build the indexes and search structures that the tables lack.",
    ),
    (
        "cleanup",
        "cleanup",
        maintenance.cleanup,
        CleanupRequest,
        _GRAPH,
        "Remove old versions that no branch, tag or kept commit uses.",
    ),
    ("recover", "recover", maintenance.recover, RecoverRequest, _GRAPH, "Complete or roll back interrupted writes."),
    (
        "verify",
        "verify",
        maintenance.verify,
        VerifyRequest,
        _GRAPH,
        "Read the whole graph and check every invariant.",
    ),
    (
        "embed",
        "embed",
        maintenance.embed,
        EmbedRequest,
        _BRANCH,
        "Compute the missing vectors of texts as one commit.",
    ),
)


def _maintenance_routes() -> Iterator[Route]:
    for name, work, handler, input_, gate, summary in _WORK:
        yield Route(
            name=name,
            method="POST",
            path=f"/maintenance/{work}",
            handler=handler,
            tag="maintenance",
            summary=summary,
            input=input_,
            answer=OperationDocument,
            gates=(gate,),
            lane="slow",
            body="json",
            writes=True,
            success=202,
        )


_OPERATIONS = (
    Route(
        name="listOperations",
        method="GET",
        path="/operations",
        handler=operations.list_operations,
        tag="operations",
        summary="List the running and recent work of this process: that of the caller, or with `admin` of all actors.",
        input=ListQuery,
        answer=OperationListDocument,
        scope="server",
        lane=None,
    ),
    Route(
        name="getOperation",
        method="GET",
        path="/operations/{operation_id}",
        handler=operations.get_operation,
        tag="operations",
        summary="Return one operation, with its result when it has ended.",
        answer=OperationDocument,
        scope="server",
        lane=None,
    ),
    Route(
        name="cancelOperation",
        method="DELETE",
        path="/operations/{operation_id}",
        handler=operations.cancel_operation,
        tag="operations",
        summary="Stop an operation; a write whose publish has begun runs to its end.",
        answer=OperationDocument,
        scope="server",
        lane=None,
    ),
)
ROUTES: tuple[Route, ...] = (*_maintenance_routes(), *_OPERATIONS)
