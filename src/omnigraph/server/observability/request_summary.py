"""`RequestSummary`: what is kept of an answered request for the log, the statistics and the metrics.

Summaries are named tuples: one is made for each request, and a frozen dataclass takes five times as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from omnigraph.server.observability.log import QueryLogEntry, is_logged, log_decision, log_query, log_request
from omnigraph.server.observability.request_observer import RequestObserver

if TYPE_CHECKING:
    from omnigraph.policy.decide import PolicyDecision

Failure = tuple[Literal["auth_failures", "conflicts", "query_cancelled"], str]
"""The metric that counts a failed request, and the reason."""


class QuerySummary(NamedTuple):
    """The query of a request. Parameters are named; their values are not kept."""

    kind: Literal["read", "change"]
    branch: str | None
    commit: str | None
    params: tuple[str, ...]
    rows: int | None
    bytes: int | None
    is_slow: bool
    observer: RequestObserver
    counts_rows: bool
    """False if rules limit who may know the number of rows; then the log alone has it."""


class RequestSummary(NamedTuple):
    """An answered request."""

    at: float
    """The time of its end, in seconds since the epoch."""
    method: str
    route: str
    """The template of the path."""
    status: int
    seconds: float
    request_id: str
    actor: str | None
    graph: str | None
    decisions: Sequence[PolicyDecision]
    phases: Mapping[str, float]
    """Seconds by phase of the server, such as `policy`, `queue` and `encode`."""
    lane: str | None
    """The lane of a request that waited for a slot."""
    failure: Failure | None
    query: QuerySummary | None

    def log(self) -> None:
        """Write the lines of the request: its decisions, itself, and its query."""
        query = self.query
        if is_logged():
            for decision in dict.fromkeys(self.decisions):
                log_decision(decision, self.request_id, self.at)
            log_request(self.method, self.route, self.status, self.seconds * 1000, self.request_id, self.actor, self.at)
        if query is not None:
            log_query(self._entry(query), self.at, slow=query.is_slow)

    def _entry(self, query: QuerySummary) -> QueryLogEntry:
        observer = query.observer
        phases = {**self.phases, **observer.phases}
        return QueryLogEntry(
            request_id=self.request_id,
            actor=self.actor,
            graph=self.graph or "",
            branch=query.branch,
            commit=query.commit,
            query=observer.query_name or None,
            plan_hash=observer.plan_hash,
            params=query.params,
            rows=query.rows,
            bytes=query.bytes,
            plan_cache="miss" if observer.missed_plans else "hit",
            table_cache="miss" if observer.missed_tables else "hit",
            ms={"total": self.seconds * 1000, **{name: seconds * 1000 for name, seconds in phases.items()}},
        )
