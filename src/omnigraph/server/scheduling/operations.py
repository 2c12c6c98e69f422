"""Operations: the running and recent work of this process, for listing and cancellation.

Every admitted request is an operation. Long work, such as maintenance, is answered with 202 and continues as an
operation; its outcome is kept here for a while and in the history of the graph for ever. Everything here runs on the
event loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import UNSET

from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.errors import Cancelled, NotFound, OmniGraphError
from omnigraph.server.errors import document_of, internal_error
from omnigraph.server.scheduling.execution import Execution, LaneName
from omnigraph.wire.document import Document
from omnigraph.wire.errors import ErrorDocument
from omnigraph.wire.server_state import OperationDocument, OperationState

if TYPE_CHECKING:
    from omnigraph.server.caller import Caller
    from omnigraph.server.observability.request_observer import RequestObserver
    from omnigraph.server.route import Route

RECENT_MAX = 1_000
"""Number of ended background operations that are kept."""
_log = logging.getLogger("omnigraph.server")


@dataclass
class Operation:
    """One piece of work of this process."""

    id: str
    route: str
    graph_id: str | None
    branch: str | None
    actor: str | None
    request_id: str
    lane: str
    writes: bool
    cancel: Cancellation = field(repr=False)
    started_at: float = field(default_factory=time.time)
    ended_at: float | None = None
    state: OperationState = "running"
    continues: bool = False
    """True if the work continues after the answer of its request."""
    observer: RequestObserver | None = field(default=None, repr=False)
    """What the engine does for the request."""
    counts_rows: bool = True
    """False if rules limit who may know the number of rows."""
    on_cancel: Callable[[], None] | None = field(default=None, repr=False)
    """Takes a waiting request out of its queue."""
    stopped: OmniGraphError | None = None
    """Why the server stopped the work, for its answer."""
    result: Document | None = None
    error: ErrorDocument | None = None

    def document(self) -> OperationDocument:
        """Return the operation as a document."""
        document = OperationDocument(
            id=self.id,
            kind=self.route,
            state=self.state,
            graph_id=self.graph_id,
            branch=self.branch,
            actor_id=self.actor,
            request_id=self.request_id,
            started_at=_microseconds(self.started_at),
            lane=self.lane,
        )
        self._describe(document)
        if self.ended_at is not None:
            document.finished_at = _microseconds(self.ended_at)
            document.result = self.result if self.result is not None else UNSET
            document.error = self.error if self.error is not None else UNSET
        return document

    def begin(self) -> None:
        """Note that the request has a slot and runs."""
        self.state, self.started_at, self.on_cancel = "running", time.time(), None

    def stop(self) -> None:
        """Cancel the work. A request that waits for a slot leaves the queue; called on the event loop."""
        self.cancel.cancel()
        if self.on_cancel is not None:
            self.on_cancel()

    def _describe(self, document: OperationDocument) -> None:
        """Add the age of pending work, and the query that it runs."""
        observer = self.observer
        if self.ended_at is None:
            document.age_s = round(max(time.time() - self.started_at, 0.0), 3)
        if observer is not None and observer.is_planned:
            document.query = observer.query_name or UNSET
            document.plan_hash = observer.plan_hash or UNSET
            document.rows = observer.rows if observer.rows is not None and self.counts_rows else UNSET


class Operations:
    """The operations of a process. A request is listed while it runs, background work also after its end."""

    def __init__(self) -> None:
        self._running: dict[str, Operation] = {}
        self._recent: OrderedDict[str, Operation] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> tuple[Operation, ...]:
        """The admitted requests and the background work that run now, oldest first."""
        return tuple(operation for operation in tuple(self._running.values()) if operation.state == "running")

    @property
    def pending(self) -> tuple[Operation, ...]:
        """The requests that wait for a slot and the work that runs, oldest first."""
        return tuple(self._running.values())

    def start(self, caller: Caller, route: Route, lane: LaneName, branch: str | None = None) -> Operation:
        """List a request, which waits for a slot of its lane, until `end` is called."""
        graph_id = caller.served.graph_id if caller.served is not None else None
        id_ = self._free(caller.request_id)
        operation = Operation(
            id_, route.name, graph_id, branch, caller.actor, caller.request_id, lane, caller.writes, caller.cancel
        )
        operation.state, operation.observer = "queued", caller.observer
        operation.counts_rows = caller.served is None or not caller.served.has_row_rules
        self._running[id_] = operation
        return operation

    def end(self, operation: Operation) -> None:
        """Remove a request from the list, unless its work continues."""
        if not operation.continues:
            self._running.pop(operation.id, None)

    def continue_work(
        self,
        operation: Operation,
        work: Callable[[], Document],
        held: ExitStack,
        execution: Execution,
        lane: LaneName,
    ) -> asyncio.Task[None]:
        """Run work in a thread of a lane, after the answer of its request or without one.

        `held` is released at its end. The task never fails: the operation holds the outcome.
        """
        self._running[operation.id] = operation
        operation.continues = True
        task = asyncio.get_running_loop().create_task(self._run(operation, work, held, execution, lane))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run(
        self,
        operation: Operation,
        work: Callable[[], Document],
        held: ExitStack,
        execution: Execution,
        lane: LaneName,
    ) -> None:
        with held:
            try:
                operation.result = await execution.call(lane, work)
            except Exception as error:
                _report(operation, error)
                operation.error = document_of(internal_error(error), operation.request_id)
                self._keep(operation, "cancelled" if isinstance(error, Cancelled) else "failed")
            else:
                self._keep(operation, "done")

    def _keep(self, operation: Operation, state: OperationState) -> None:
        """Keep the outcome of background work."""
        operation.state, operation.ended_at = state, time.time()
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
        """Return an id that no operation has: clients may send the same request id twice."""
        candidate, number = id, 2
        while candidate in self._running or candidate in self._recent:
            candidate, number = f"{id}.{number}", number + 1
        return candidate


def _report(operation: Operation, error: Exception) -> None:
    """Log an unexpected failure: its type and the stack, but not its text, which may hold values."""
    if not isinstance(error, OmniGraphError):
        stack = "".join(traceback.format_tb(error.__traceback__))
        _log.error("operation %s failed: %s\n%s", operation.id, type(error).__name__, stack)


def _microseconds(seconds: float) -> int:
    return round(seconds * 1_000_000)
