"""The state of a server process: its work, lanes, plans, memory, graphs and last reload."""

from __future__ import annotations

import os
import time
from itertools import islice

from msgspec import UNSET

from omnigraph.errors import NotFound, OmniGraphError
from omnigraph.graph_handle import context_of
from omnigraph.graph_queries import GraphQueries
from omnigraph.operations.graph_context import GraphContext
from omnigraph.server.caller import Caller
from omnigraph.server.caller_limits import limits_of
from omnigraph.server.deployment.graphs import ServedGraph
from omnigraph.server.deployment.state import Digests, ReloadReport
from omnigraph.server.observability import log
from omnigraph.server.observability.query_statistics import PLANS_MAX, PlanStatistics
from omnigraph.server.routes.operations import operation_document
from omnigraph.version import __version__
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.versioning.upkeep.coverage import TableCoverage
from omnigraph.wire.queries import ExplainDocument
from omnigraph.wire.server_state import (
    CacheDocument,
    LaneDocument,
    MemoryDocument,
    PlanDocument,
    ReloadStateDocument,
    ServedGraphDocument,
    ServedTableDocument,
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
        operations=[operation_document(caller, operation) for operation in server.operations.pending],
        plans=_plans(caller),
        graphs=[_served(caller, served) for served in state.graphs.values()],
        digests=digests_of(state.digests),
        last_reload=_reload(report) if report is not None else UNSET,
    )


def get_plan(caller: Caller, plan_hash: str) -> ExplainDocument:
    """Return the plan of a query that ran before, by its hash."""
    context = context_of(caller.graph)
    text = GraphQueries(context).explain_known(context.snapshot(MAIN), plan_hash)
    if text is None:
        raise NotFound(
            f"the plan '{plan_hash[:80]}' is not in memory",
            code="no_such_plan",
            hint="plans of the queries used last are kept; explain the text of the query",
        )
    return ExplainDocument.of({"text": text, "plan_hash": text.plan_hash, "plan": text.tree})


def _plans(caller: Caller) -> list[PlanDocument]:
    """Return the costly plans; of a graph whose rows rules limit, those that the caller can look at."""
    graphs, statistics = caller.state.graphs, caller.server.reporter.statistics
    limits = {graph_id: limits_of(caller, served) for graph_id, served in graphs.items()}
    known = {graph_id: each.plans for graph_id, each in limits.items() if each is not None}
    plans = statistics.top(PLANS_MAX if known else PLANS)
    found = (plan for plan in plans if plan.graph not in known or plan.plan_hash in known[plan.graph])
    return [_plan(plan) for plan in islice(found, PLANS)]


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
    limits = limits_of(caller, served)
    return ServedGraphDocument(
        graph_id=served.graph_id,
        state="ready",
        graph_commit_id=figures.head,
        storage_stamp=figures.stamp if figures.stamp is not None else UNSET,
        branches=figures.branches,
        fragments=figures.fragments if limits is None else UNSET,
        uncovered_rows=UNSET if served.has_row_rules else figures.uncovered_rows,
        last_maintenance_at=figures.maintained_us if figures.maintained_us is not None else UNSET,
        caches=_caches(context),
        tables=[
            _table(table, with_rows=not served.has_row_rules)
            for table in figures.tables
            if limits is None or table.table_key in limits.tables
        ],
    )


def _table(table: TableCoverage, *, with_rows: bool) -> ServedTableDocument:
    return ServedTableDocument(
        table_key=table.table_key,
        version=table.version,
        fragments=table.fragments,
        rows=table.rows if with_rows else UNSET,
        uncovered_rows=table.uncovered_rows if with_rows else UNSET,
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
