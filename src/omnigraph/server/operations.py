"""Operations: the running and recent work of this process, for listing and cancellation.

Every admitted request is an operation. Long work, such as maintenance, is answered with 202 and continues as an
operation; its outcome is kept here for a while and in the history of the graph for ever.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.errors import NotFound
from omnigraph.wire.document import Document
from omnigraph.wire.errors import ErrorDocument

if TYPE_CHECKING:
    from omnigraph.server.caller import Caller
    from omnigraph.server.route import Route

OperationState = Literal["running", "succeeded", "failed", "cancelled"]

RECENT_MAX = 1_000
"""Number of ended background operations that are kept."""


@dataclass
class Operation:
    """One piece of work of this process."""

    id: str
    route: str
    graph_id: str | None
    actor: str | None
    writes: bool
    cancel: Cancellation = field(repr=False)
    started_at: float = field(default_factory=time.time)
    ended_at: float | None = None
    state: OperationState = "running"
    result: Document | None = None
    error: ErrorDocument | None = None


class Operations:
    """The operations of a process. A request is listed while it runs, background work also after its end."""

    def __init__(self) -> None:
        self._running: dict[str, Operation] = {}
        self._recent: OrderedDict[str, Operation] = OrderedDict()

    def start(self, caller: Caller, route: Route) -> Callable[[], None]:
        """List a request until the returned function is called."""
        graph_id = caller.served.graph_id if caller.served is not None else None
        key = self._free(caller.request_id)
        self._running[key] = Operation(key, route.name, graph_id, caller.actor, caller.writes, caller.cancel)
        return lambda: self._end(key)

    def start_background(self, caller: Caller, name: str) -> Operation:
        """List work that continues after the answer of its request."""
        graph_id = caller.served.graph_id if caller.served is not None else None
        operation = Operation(
            self._free(f"{caller.request_id}-work"), name, graph_id, caller.actor, True, caller.cancel
        )
        self._running[operation.id] = operation
        return operation

    def end_background(
        self, operation: Operation, state: OperationState, result: Document | None, error: ErrorDocument | None
    ) -> None:
        """Keep the outcome of background work."""
        operation.state, operation.result, operation.error = state, result, error
        operation.ended_at = time.time()
        self._running.pop(operation.id, None)
        self._recent[operation.id] = operation
        while len(self._recent) > RECENT_MAX:
            self._recent.popitem(last=False)

    def list(self, actor: str | None, *, all_actors: bool) -> list[Operation]:
        """Return the operations that an actor may see, newest first."""
        found = [*self._running.values(), *self._recent.values()]
        shown = [operation for operation in found if all_actors or operation.actor == actor]
        return sorted(shown, key=lambda operation: operation.started_at, reverse=True)

    def get(self, id: str, actor: str | None, *, all_actors: bool) -> Operation:
        """Return one operation; one of another actor is not found."""
        operation = self._running.get(id) or self._recent.get(id)
        if operation is None or not (all_actors or operation.actor == actor):
            raise NotFound(
                f"there is no operation '{id}' in this process",
                code="no_such_operation",
                hint="an operation is known to the process that runs it; its outcome is in the history of the graph",
            )
        return operation

    def _free(self, id: str) -> str:
        """Return an id that no running operation has: clients may send the same request id twice."""
        candidate, number = id, 2
        while candidate in self._running:
            candidate, number = f"{id}.{number}", number + 1
        return candidate

    def _end(self, id: str) -> None:
        self._running.pop(id, None)
