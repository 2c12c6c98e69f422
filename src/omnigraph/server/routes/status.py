"""The state of a server process: its work, lanes, plans, memory, graphs and last reload."""

from __future__ import annotations

import os
import time

from msgspec import UNSET

from omnigraph.errors import OmniGraphError
from omnigraph.graph_handle import context_of
from omnigraph.operations.graph_context import GraphContext
from omnigraph.server.caller import Caller
from omnigraph.server.graphs import ServedGraph
from omnigraph.server.observability import log
from omnigraph.server.observability.query_statistics import PlanStatistics
from omnigraph.server.state import Digests, ReloadReport
from omnigraph.version import __version__
from omnigraph.wire.server_state import (
    CacheDocument,
    LaneDocument,
    MemoryDocument,
    PlanDocument,
    ReloadStateDocument,
    ServedGraphDocument,
    ServerStatusDocument,
)

PLANS = 20
"""Number of plans that are listed."""
FLUSH_S = 1.0
"""The time that the statistics of the newest requests are waited for."""


def get_status(caller: Caller) -> ServerStatusDocument:
    """Return the state of this process: work, lanes, costly plans, caches, graphs and reloads."""
    server, state = caller.server, caller.state
    log.flush(FLUSH_S)  # the thread of the log sums up the plans
    lanes, report = server.execution.lanes.values(), server.holder.last_reload
    return ServerStatusDocument(
        version=__version__,
        mode=state.mode,
        pid=os.getpid(),
        workers=state.settings.workers,
        started_at=round(server.started * 1_000_000),
        uptime_s=round(time.time() - server.started, 3),
        draining=server.is_draining,
        requests=server.reporter.in_flight,
        connections=len(server.connections.open),
        memory=MemoryDocument(used_bytes=server.memory.used, limit_bytes=server.memory.limit),
        rejected=dict(server.admission.rejected),
        lanes=[LaneDocument(lane.name, lane.running, lane.waiting, lane.slots) for lane in lanes],
        operations=[operation.document() for operation in server.operations.pending],
        plans=[_plan(plan) for plan in server.reporter.statistics.top(PLANS)],
        graphs=[_served(caller, served) for served in state.graphs.values()],
        digests=digests_of(state.digests),
        last_reload=_reload(report) if report is not None else UNSET,
    )


def _plan(plan: PlanStatistics) -> PlanDocument:
    return PlanDocument(
        graph_id=plan.graph,
        plan_hash=plan.plan_hash,
        query=plan.query,
        count=plan.count,
        total_ms=round(plan.seconds * 1000, 3),
        max_ms=round(plan.max_s * 1000, 3),
        rows=plan.rows,
    )


def _served(caller: Caller, served: ServedGraph) -> ServedGraphDocument:
    if served.graph is None:
        assert served.failure is not None
        return ServedGraphDocument(graph_id=served.graph_id, state="quarantined", failure=served.failure.message)
    context = context_of(served.graph)
    try:
        figures = caller.server.figures.of(context)
    except OmniGraphError as error:
        return ServedGraphDocument(graph_id=served.graph_id, state="failed", failure=error.code)
    return ServedGraphDocument(
        graph_id=served.graph_id,
        state="ready",
        graph_commit_id=figures.head,
        storage_stamp=figures.stamp if figures.stamp is not None else UNSET,
        branches=figures.branches,
        fragments=figures.fragments,
        uncovered_rows=UNSET if served.has_row_rules else figures.uncovered_rows,
        last_maintenance_at=figures.maintained_us if figures.maintained_us is not None else UNSET,
        caches=_caches(context),
    )


def _caches(context: GraphContext) -> list[CacheDocument]:
    tables, plans = context.cache, context.plans
    return [
        CacheDocument(
            kind="tables", entries=tables.entry_count, bytes=tables.bytes, hits=tables.hits, misses=tables.misses
        ),
        CacheDocument(kind="plans", entries=len(plans), hits=plans.hits, misses=plans.misses),
    ]


def _reload(report: ReloadReport) -> ReloadStateDocument:
    return ReloadStateDocument(
        ok=report.ok,
        reason=report.reason,
        at=round(report.at * 1_000_000),
        changed=list(report.changed),
        warnings=list(report.warnings),
        error=report.error,
    )


def digests_of(digests: Digests) -> dict[str, str]:
    """Return the digests that exist, by name."""
    named = {"config": digests.config, "policy": digests.policy, "tokens": digests.tokens}
    return {name: digest for name, digest in named.items() if digest is not None}
