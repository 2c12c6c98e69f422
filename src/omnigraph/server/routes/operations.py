"""Operations: the running and recent work of this process. An actor sees its own; an administrator sees all."""

from __future__ import annotations

from msgspec import UNSET

from omnigraph.errors import NotFound
from omnigraph.server.caller import Caller
from omnigraph.server.caller_limits import limits_of
from omnigraph.server.scheduling.operations import Operation
from omnigraph.wire.requests.branches import ListQuery
from omnigraph.wire.server_state import OperationDocument, OperationListDocument

LISTED = 100
"""Number of operations of a list without a limit."""


def list_operations(caller: Caller, body: ListQuery) -> OperationListDocument:
    """List running and recent operations, newest first."""
    found = caller.server.operations.list(caller.actor, all_actors=_sees_all(caller))
    if body.after is not None:
        ids = [operation.id for operation in found]
        if body.after not in ids:
            raise NotFound(
                f"there is no operation '{body.after}' in this process",
                code="no_such_operation",
                hint="start again with the first page",
            )
        found = found[ids.index(body.after) + 1 :]
    page = found[: body.limit or LISTED]
    next_ = page[-1].id if len(page) < len(found) else UNSET
    return OperationListDocument([operation_document(caller, operation) for operation in page], next_)


def get_operation(caller: Caller, operation_id: str) -> OperationDocument:
    """Return one operation, with its result when it has ended."""
    return operation_document(caller, _find(caller, operation_id))


def cancel_operation(caller: Caller, operation_id: str) -> OperationDocument:
    """Stop an operation. A write whose publish has begun runs to its end; an ended operation does not change."""
    operation = _find(caller, operation_id)
    operation.stop()
    return operation_document(caller, operation)


def operation_document(caller: Caller, operation: Operation) -> OperationDocument:
    """Return an operation as its caller may see it.

    The queries and outcomes of other actors are left out if rules limit the rows of the graph for the caller.
    """
    document = operation.document()
    served = caller.state.graphs.get(operation.graph_id) if operation.graph_id is not None else None
    if operation.actor != caller.actor and served is not None and limits_of(caller, served) is not None:
        document.query = document.plan_hash = document.result = document.error = UNSET
    return document


def _find(caller: Caller, operation_id: str) -> Operation:
    return caller.server.operations.get(operation_id, caller.actor, all_actors=_sees_all(caller))


def _sees_all(caller: Caller) -> bool:
    return caller.access is not None and caller.access.decide("admin").allowed
