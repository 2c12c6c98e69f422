"""Samples: the metrics that are read from the parts of a server when they are scraped, not when they change."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.errors import OmniGraphError
from omnigraph.graph_handle import context_of
from omnigraph.operations.authorization.access import Access
from omnigraph.operations.exploration.graph_figures import GraphFigures, proposal_states
from omnigraph.server.deployment.graphs import ServedGraph
from omnigraph.server.observability import log
from omnigraph.server.observability.metrics import Metrics
from omnigraph.server.scheduling.memory import free_memory

if TYPE_CHECKING:
    from omnigraph.server.app import Server

OWNERS = ("tables", "plans", "versions", "history", "lance", "arrow", "free")
"""What keeps memory: five parts of the opened graphs, the pool of Arrow, and the heap that is not in use."""
SAMPLE_S = 5.0
"""The interval of samples in a process that is not scraped itself."""
LISTING_S = 30.0
"""The interval of listings of the proposals of a bucket."""
_log = logging.getLogger(__name__)


class Sampler:
    """Reads counters, queues, caches and graphs, and sets their metrics. Threads take turns."""

    def __init__(self, server: Server, metrics: Metrics) -> None:
        self._server = server
        self._metrics = metrics
        self._lock = threading.Lock()
        self._counted: dict[tuple[str, ...], float] = {}
        """The values of counters at the last sample."""
        self._tables: dict[str, frozenset[str]] = {}
        """The tables of each graph at the last sample."""
        self._proposals_due: dict[str, float] = {}
        """The time of the next listing of the proposals of each graph."""
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Sample at intervals, in a thread."""
        self._thread = threading.Thread(target=self._run, name="omnigraph-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        if self._thread is not None:
            self._stopped.set()
            self._thread.join(SAMPLE_S)

    def _run(self) -> None:
        while True:
            try:
                self.sample()
            except Exception:
                _log.exception("the metrics cannot be sampled")
            if self._stopped.wait(SAMPLE_S):
                return

    def sample(self) -> None:
        """Set the metrics of this moment."""
        with self._lock:
            self._sample_requests()
            self._sample_process()
            for served in self._server.holder.current.graphs.values():
                self._sample_graph(served)

    def _sample_requests(self) -> None:
        server = self._server
        self._gauge("http_in_flight", server.reporter.in_flight)
        self._gauge("connections", len(server.connections.open))
        self._count("connections_refused", server.connections.refused)
        for lane in server.execution.lanes.values():
            self._gauge("lane_requests", lane.running, lane.name, "running")
            self._gauge("lane_requests", lane.waiting, lane.name, "queued")
        for limit, count in tuple(server.admission.rejected.items()):
            self._count("admission_rejected", count, limit)
        self._gauge("operations", len(server.operations.running), "running")
        self._gauge("operations", sum(lane.waiting for lane in server.execution.lanes.values()), "queued")

    def _sample_process(self) -> None:
        server, holder = self._server, self._server.holder
        self._gauge("memory_used_bytes", server.memory.used)
        owners = dict.fromkeys(OWNERS, 0)
        for served in holder.current.graphs.values():
            if served.graph is not None:
                for owner, size in context_of(served.graph).bytes_by_owner.items():
                    owners[owner] += size
        owners["arrow"] = pa.total_allocated_bytes()
        owners["free"] = free_memory()
        for owner, size in owners.items():
            self._gauge("memory_bytes", size, owner)
        self._count("memory_cancelled", server.memory.cancelled)
        self._count("log_dropped", log.dropped())
        for result, count in holder.reloads.items():
            self._count("config_reload", count, result)
        self._gauge("policy_stale", int(holder.last_reload is not None and not holder.last_reload.ok))

    def _sample_graph(self, served: ServedGraph) -> None:
        name = served.graph_id
        figures: GraphFigures | None = None
        if served.graph is not None:
            context = context_of(served.graph)
            self._gauge("cache_bytes", context.cache.bytes, name, "tables")
            for kind, cache in (("tables", context.cache), ("plans", context.plans)):
                self._count("cache_hits", cache.hits, name, kind)
                self._count("cache_misses", cache.misses, name, kind)
            try:
                figures = self._server.figures.of(context)
            except OmniGraphError as error:
                _log.warning("the figures of graph '%s' cannot be read (%s)", name, error.code)
        self._gauge("graph_ready", int(figures is not None), name)
        if figures is not None:
            self._sample_tables(name, figures, with_rows=not served.has_row_rules)
            self._sample_proposals(served)

    def _sample_proposals(self, served: ServedGraph) -> None:
        """Set the numbers of open proposals; a listing of a bucket is repeated at intervals only."""
        now = time.monotonic()
        if served.graph is None or now < self._proposals_due.get(served.graph_id, now):
            return
        self._proposals_due[served.graph_id] = now + (0 if served.is_local else LISTING_S)
        context = context_of(served.graph)
        if served.policy is not None:
            context = context.with_access(Access(served.policy, None))
        for state, count in proposal_states(context).items():
            self._gauge("proposals", count, served.graph_id, state)

    def _sample_tables(self, graph: str, figures: GraphFigures, *, with_rows: bool) -> None:
        """Set the figures of tables; without those that count rows if rules limit who may know them."""
        self._gauge("branches", figures.branches, graph)
        for table in figures.tables:
            self._gauge("table_rows", table.rows if with_rows else 0, graph, table.table_key)
            self._gauge("table_fragments", table.fragments, graph, table.table_key)
            self._gauge("index_uncovered_rows", table.uncovered_rows if with_rows else 0, graph, table.table_key)
        present = frozenset(table.table_key for table in figures.tables)
        for key in self._tables.get(graph, frozenset()) - present:
            for name in ("table_rows", "table_fragments", "index_uncovered_rows"):
                self._gauge(name, 0, graph, key)
        self._tables[graph] = present

    def _gauge(self, name: str, value: float, *labels: str) -> None:
        self._metrics.child(name, *labels).set(value)

    def _count(self, name: str, value: float, *labels: str) -> None:
        """Add what a counter gained since the last sample. A smaller value is that of a new object."""
        key = (name, *labels)
        before = self._counted.get(key, 0)
        self._metrics.child(name, *labels).inc(value - before if value >= before else value)
        self._counted[key] = value
