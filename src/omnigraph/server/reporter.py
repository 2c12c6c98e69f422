"""`Reporter`: what a server process keeps of its requests: log lines, statistics of plans, slow queries.

The thread of a request makes one small object when the answer is sent. The thread of the log does the rest.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from omnigraph.errors import OmniGraphError
from omnigraph.server.caller import Caller
from omnigraph.server.observability import log
from omnigraph.server.observability.metrics import UNROUTED, Metrics, failure_of
from omnigraph.server.observability.query_statistics import PlanStatistics, QueryStatistics
from omnigraph.server.observability.request_summary import QuerySummary, RequestSummary
from omnigraph.server.observability.slow_profiles import SlowProfiles
from omnigraph.server.route import Route

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Outcome(NamedTuple):
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
        query = _query(caller, body, outcome, phases) if caller.observer.is_planned else None
        if query is None and self.metrics is None and not log.is_logged():
            return
        access, error = caller.access, outcome.error
        summary = RequestSummary(
            time.time(),
            caller.method,
            route.path,
            outcome.status,
            outcome.seconds,
            caller.request_id,
            caller.actor,
            caller.served.graph_id if caller.served is not None else None,
            tuple(access.decisions) if access is not None else (),
            phases,
            route.lane,
            failure_of(error, disconnected=outcome.is_disconnected) if error is not None else None,
            query,
        )
        if not log.defer(partial(self._record, summary)) and self.metrics is not None:
            # The log cannot keep up. No metric is lost with its line.
            self.metrics.answered(summary)
        if query is not None and query.is_slow:
            self.slow_profiles.start(caller, body)

    def refused(self, method: str, status: int, seconds: float, request_id: str) -> None:
        """Report a request that reached no route."""
        if self.metrics is not None:
            known = method if method in _METHODS else "other"
            self.metrics.counted(known, UNROUTED, None, status, seconds)
        log.defer(partial(log.log_request, method, UNROUTED, status, seconds * 1000, request_id, None, time.time()))

    def _record(self, summary: RequestSummary) -> None:
        """Log and count a request and its query; called in the thread of the log."""
        if self.metrics is not None:
            self.metrics.answered(summary)
        summary.log()
        query = summary.query
        plan_hash = query.observer.plan_hash if query is not None else None
        if query is None or plan_hash is None:
            return
        name, seconds = query.observer.query_name, summary.seconds
        rows = (query.rows or 0) if query.counts_rows else 0
        executed = PlanStatistics(summary.graph or "", plan_hash, name or None, 1, seconds, seconds, rows)
        self.statistics.add(executed, summary.at)


def _query(caller: Caller, body: Any, outcome: Outcome, phases: Mapping[str, float]) -> QuerySummary:
    """Return the query of a request."""
    seconds = phases["engine"] + phases["encode"] if "encode" in phases else outcome.seconds
    return QuerySummary(
        "change" if caller.writes else "read",
        getattr(body, "branch", None),
        outcome.commit,
        tuple(getattr(body, "params", None) or ()),
        caller.audit.get("rows"),
        outcome.size,
        seconds * 1000 >= caller.state.settings.slow_ms,
        caller.observer,
        counts_rows=caller.served is None or not caller.served.has_row_rules,
    )
