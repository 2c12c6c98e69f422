"""Maintenance in the background: tables with many fragments or unindexed rows are optimized.

At intervals, the branch `main` of each graph is inspected. Tables that are due are optimized by one operation, which
`GET /operations` lists and whose commit has the actor `omnigraph:maintain`. A process runs one such operation at a
time, and of the processes that serve a graph, the one with the claim runs it. Requests come first: nothing starts while
a lane is full, other maintenance runs, or the memory is above its limit. A failure is logged, and the graph is left
alone for a growing time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from random import SystemRandom
from typing import TYPE_CHECKING
from uuid import uuid4

from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.graph import Graph
from omnigraph.operations.stoppable import stoppable
from omnigraph.server.deployment.graphs import ServedGraph
from omnigraph.server.deployment.settings import MaintainSettings
from omnigraph.server.scheduling.execution import LaneName
from omnigraph.server.scheduling.operations import Operation
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.versioning.upkeep.coverage import TableCoverage
from omnigraph.wire.maintenance import OptimizeDocument

if TYPE_CHECKING:
    from omnigraph.server.app import Server

ACTOR = "omnigraph:maintain"
MESSAGE = "background maintenance"
OPERATION = "maintain"
"""The kind of the operation."""
BACKOFF_MAX_S = 3600.0
_LANE: LaneName = "slow"
_USER_LANES: tuple[LaneName, ...] = ("reads", "writes", "exports")
_JITTER = 0.2
"""Intervals vary by this share, so that processes do not inspect a graph at the same time."""
_TICK_S = 0.1
_log = logging.getLogger(__name__)


@dataclass
class _GraphRecord:
    """What is known of a graph since its last inspection."""

    inspected: int = -1
    """The version of the manifest at which nothing was due."""
    failures: int = 0
    not_before: float = 0.0
    settled: dict[str, int] | None = None
    """Table key → version that an optimization left as it was."""


class Maintainer:
    """The background maintenance of one server process."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._records: dict[str, _GraphRecord] = {}

    async def run(self) -> None:
        """Inspect the graphs at intervals, until cancelled."""
        while True:
            every_s = self._settings.every_s
            await asyncio.sleep(every_s * SystemRandom().uniform(1 - _JITTER, 1 + _JITTER))
            if self._settings.enabled:
                await self.inspect_all()

    async def inspect_all(self) -> None:
        """Inspect every graph, and optimize what is due."""
        graphs = self._server.holder.current.graphs
        self._records = {graph_id: self._records.get(graph_id, _GraphRecord()) for graph_id in graphs}
        for served in graphs.values():
            record = self._records[served.graph_id]
            if served.graph is None or served.read_only or time.monotonic() < record.not_before:
                continue
            if self.is_busy:
                return
            try:
                await self._inspect(served, served.graph, record)
            except Exception as error:
                self._failed(served, record, error)

    @property
    def is_busy(self) -> bool:
        """True if requests need the process: then nothing is inspected and nothing starts."""
        server = self._server
        lanes = server.execution.lanes
        full = any(lanes[name].is_full for name in _USER_LANES)
        return full or lanes[_LANE].running > 0 or server.memory.is_high or server.is_draining

    async def _inspect(self, served: ServedGraph, graph: Graph, record: _GraphRecord) -> None:
        version, tables = await self._server.execution.call(_LANE, partial(_coverage, graph, record.inspected))
        due = self._due(tables, record)
        if not due:
            record.inspected = version
        if not due or await self._server.execution.call(_LANE, lambda: graph._maintenance.is_claimed):
            return
        if self.is_busy or not self._server.execution.lanes[_LANE].try_enter(ACTOR):
            return
        operation = await self._optimize(served, graph, due)
        if operation.state == "failed":
            assert operation.error is not None
            raise _MaintenanceError(operation.error.error)
        if operation.state == "done" and isinstance(operation.result, OptimizeDocument):
            self._succeeded(record, tables, operation.result)

    def _due(self, tables: Collection[TableCoverage], record: _GraphRecord) -> list[str]:
        settings, settled = self._settings, record.settled or {}
        return [
            table.table_key
            for table in tables
            if table.is_due(settings.rows_min, settings.fragments_min) and settled.get(table.table_key) != table.version
        ]

    async def _optimize(self, served: ServedGraph, graph: Graph, due: Collection[str]) -> Operation:
        """Optimize tables as an operation, whose slot of the lane is taken, and return it after its end."""
        server, cancel, id_ = self._server, Cancellation(), f"maintain-{uuid4().hex}"
        operation = Operation(id_, OPERATION, served.graph_id, MAIN, ACTOR, id_, _LANE, writes=True, cancel=cancel)
        held = ExitStack()
        held.callback(server.execution.lanes[_LANE].leave, ACTOR)
        held.callback(server.execution.track_write())
        uri = served.graph_id if server.holder.current.settings.hide_uri else served.uri
        work: Callable[[], OptimizeDocument] = partial(_optimize, graph, uri, due, operation)
        _log.info("graph '%s': optimizing %s", served.graph_id, ", ".join(sorted(due)))
        task = server.operations.continue_work(operation, work, held, server.execution, _LANE)
        while not task.done():
            await asyncio.wait({task}, timeout=_TICK_S)
            if server.is_draining:
                cancel.cancel()
        return operation

    def _succeeded(self, record: _GraphRecord, tables: Collection[TableCoverage], result: OptimizeDocument) -> None:
        record.failures, record.not_before = 0, 0.0
        unchanged = {table.table_key for table in result.tables if not table.committed}
        record.settled = {table.table_key: table.version for table in tables if table.table_key in unchanged}

    def _failed(self, served: ServedGraph, record: _GraphRecord, error: Exception) -> None:
        """Log a failure and leave the graph alone for a while."""
        record.failures += 1
        wait_s = min(self._settings.every_s * 2**record.failures, BACKOFF_MAX_S)
        record.not_before = time.monotonic() + wait_s
        text = error if isinstance(error, _MaintenanceError) else type(error).__name__
        _log.warning("graph '%s': maintenance failed, next try in %.0f s: %s", served.graph_id, wait_s, text)

    @property
    def _settings(self) -> MaintainSettings:
        return self._server.holder.current.settings.maintain


class _MaintenanceError(Exception):
    """An operation failed; the text is that of its error."""


def _coverage(graph: Graph, inspected: int) -> tuple[int, list[TableCoverage]]:
    """Return the version of the manifest and the tables of `main`; no tables at a version that was inspected."""
    version = graph.newest_version
    return version, [] if version == inspected else graph._maintenance.coverage(MAIN)


def _optimize(graph: Graph, uri: str, due: Collection[str], operation: Operation) -> OptimizeDocument:
    """Optimize tables if this process gets the claim; without it, nothing is treated."""
    maintenance = graph.with_metadata({"request_id": operation.id})
    options = maintenance._options(MAIN, ACTOR, MESSAGE, action="maintain")
    documents = []
    with stoppable("maintenance", operation.cancel, None, writes=True), graph._maintenance.claimed() as is_mine:
        if is_mine:
            documents = [table.to_json() for table in graph._maintenance.optimize(options, due)]
    return OptimizeDocument.of({"uri": uri, "branch": MAIN, "tables": documents})
