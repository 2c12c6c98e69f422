"""`Reporter`: what a server process keeps of its requests: log lines, statistics of plans, slow queries.

The thread of a request makes one small object when the answer is sent. The thread of the log does the rest.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from omnigraph.errors import OmniGraphError
from omnigraph.server.caller import Caller
from omnigraph.server.observability import log
from omnigraph.server.observability.metrics import UNROUTED, Metrics
from omnigraph.server.observability.query_statistics import PlanStatistics, QueryStatistics
from omnigraph.server.observability.request_summary import QuerySummary, RequestSummary
from omnigraph.server.observability.slow_profiles import SlowProfiles
from omnigraph.server.route import Route

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a request ended."""

    status: int
    seconds: float
    commit: str | None
    size: int | None
    """The number of bytes of the answer that were sent."""
    error: OmniGraphError | None = None
    """Why the request failed."""
    is_disconnected: bool = False


class Reporter:
    """The log and the statistics of the requests of one process."""

    def __init__(self) -> None:
        self.metrics: Metrics | None = None
        self.in_flight = 0
        """The number of requests that are being answered."""
        self.statistics = QueryStatistics()
        self.slow_profiles = SlowProfiles()

    def finished(self, route: Route, caller: Caller, body: Any, outcome: Outcome, phases: Mapping[str, float]) -> None:
        """Report an answered request; `body` is its decoded input, `phases` are the seconds of the server's phases."""
        query = _query(caller, body, outcome, phases)
        if self.metrics is not None:
            _count(self.metrics, route, caller, outcome, phases, query)
        if query is None and not log.is_logged():
            return
        summary = RequestSummary(
            at=time.time(),
            method=caller.method,
            route=route.path,
            status=outcome.status,
            seconds=outcome.seconds,
            request_id=caller.request_id,
            actor=caller.actor,
            graph=caller.served.graph_id if caller.served is not None else None,
            decisions=tuple(caller.access.decisions) if caller.access is not None else (),
            phases=phases,
            query=query,
        )
        log.defer(partial(self._record, summary))
        if query is not None and query.is_slow:
            self.slow_profiles.start(caller, body)

    def refused(self, method: str, status: int, seconds: float, request_id: str) -> None:
        """Report a request that reached no route."""
        if self.metrics is not None:
            known = method if method in _METHODS else "other"
            self.metrics.answered(known, UNROUTED, None, status, seconds)
        log.defer(partial(log.log_request, method, UNROUTED, status, seconds * 1000, request_id, None, time.time()))

    def _record(self, summary: RequestSummary) -> None:
        """Log a request and count its query; called in the thread of the log."""
        summary.log()
        query = summary.query
        plan_hash = query.observer.plan_hash if query is not None else None
        if query is None or plan_hash is None:
            return
        name, seconds = query.observer.query_name, summary.seconds
        executed = PlanStatistics(summary.graph or "", plan_hash, name or None, 1, seconds, seconds, query.rows or 0)
        self.statistics.add(executed, summary.at)


def _count(
    metrics: Metrics,
    route: Route,
    caller: Caller,
    outcome: Outcome,
    phases: Mapping[str, float],
    query: QuerySummary | None,
) -> None:
    """Update the metrics of a request."""
    graph = caller.served.graph_id if caller.served is not None else None
    metrics.answered(caller.method, route.path, graph, outcome.status, outcome.seconds)
    if caller.access is not None:
        metrics.decided(caller.access.decisions, phases.get("policy"))
    if route.lane is not None and "queue" in phases:
        metrics.waited(route.lane, phases["queue"])
    if query is not None:
        metrics.executed(query, graph, phases)
    if outcome.error is not None:
        metrics.failed(outcome.error, disconnected=outcome.is_disconnected)


def _query(caller: Caller, body: Any, outcome: Outcome, phases: Mapping[str, float]) -> QuerySummary | None:
    """Return the query of a request; None if none was compiled."""
    observer = caller.observer
    if not observer.is_planned:
        return None
    seconds = phases["engine"] + phases["encode"] if "encode" in phases else outcome.seconds
    return QuerySummary(
        kind="change" if caller.writes else "read",
        branch=getattr(body, "branch", None),
        commit=outcome.commit,
        params=tuple(getattr(body, "params", None) or ()),
        rows=caller.audit.get("rows"),
        bytes=outcome.size,
        is_slow=seconds * 1000 >= caller.state.settings.slow_ms,
        observer=observer,
    )
