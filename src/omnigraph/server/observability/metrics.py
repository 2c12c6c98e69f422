"""`Metrics`: the counters and histograms of one process, in the registry of prometheus-client.

The package is imported when the metrics are created. The thread of the log updates the metrics of requests after their
answers are sent; the threads of requests update those of the engine. Gauges are set at a scrape (`metric_samples`).
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.errors import Cancelled, Conflict, LimitReached, MissingPackage, OmniGraphError, Unauthorized
from omnigraph.observer import Cache, Phase, Progress, Service, Step
from omnigraph.server.observability.metric_table import METRICS, PREFIX, Metric
from omnigraph.version import STORAGE_FORMAT, __version__

if TYPE_CHECKING:
    from omnigraph.server.observability.request_summary import Failure, QuerySummary, RequestSummary

_MODES = {"sum": "livesum", "newest": "livemostrecent", "largest": "livemax"}
UNROUTED = "(none)"
"""The route of a request that reaches no route."""


def load_prometheus() -> Any:
    """Return the package prometheus-client; raises `MissingPackage` without it."""
    try:
        import prometheus_client  # noqa: PLC0415 (only a server with metrics needs it)
    except ImportError as error:
        raise MissingPackage(
            "'prometheus-client' is not installed, and the settings ask for metrics",
            hint="install it: pip install 'omnigraph[server]', or remove 'server.metrics' from the configuration",
        ) from error
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    return prometheus_client


class Metrics:
    """The metrics of a process. It is the observer of engine work that belongs to no request."""

    def __init__(self) -> None:
        self._prometheus = load_prometheus()
        self.registry = self._prometheus.CollectorRegistry()
        self._families = {metric.name: self._make(metric) for metric in METRICS}
        self._children: dict[tuple[str, ...], Any] = {}
        """Metrics with values of their labels; `labels` of the library takes longer than an update."""
        self.child("build_info", __version__, str(STORAGE_FORMAT), platform.python_version()).set(1)

    def _make(self, metric: Metric) -> Any:
        name, registry = PREFIX + metric.name, self.registry
        if metric.kind == "counter":
            return self._prometheus.Counter(name, metric.description, metric.labels, registry=registry)
        if metric.kind == "gauge":
            mode = _MODES[metric.across]
            return self._prometheus.Gauge(
                name, metric.description, metric.labels, registry=registry, multiprocess_mode=mode
            )
        return self._prometheus.Histogram(
            name, metric.description, metric.labels, registry=registry, buckets=metric.buckets
        )

    def child(self, name: str, *labels: str) -> Any:
        """Return a metric with the values of its labels."""
        key = (name, *labels)
        found = self._children.get(key)
        if found is None:
            family = self._families[name]
            found = self._children[key] = family.labels(*labels) if labels else family
        return found

    # -- requests --------------------------------------------------------------------------------

    def answered(self, summary: RequestSummary) -> None:
        """Count an answered request, its decisions, its wait, its query and its failure."""
        self.counted(summary.method, summary.route, summary.graph, summary.status, summary.seconds)
        for decision in summary.decisions:
            self.child("policy_decisions", decision.action, "allow" if decision.allowed else "deny").inc()
        phases = summary.phases
        if "policy" in phases:
            self.child("policy_decision_seconds").observe(phases["policy"])
        if summary.lane is not None and "queue" in phases:
            self.child("queue_seconds", summary.lane).observe(phases["queue"])
        if summary.failure is not None:
            self.child(*summary.failure).inc()
        if summary.query is not None:
            self._executed(summary.query, summary.graph or "", phases)

    def counted(self, method: str, route: str, graph: str | None, status: int, seconds: float) -> None:
        """Count a request."""
        self.child("http_requests", method, route, graph or "", f"{status // 100}xx").inc()
        self.child("http_request_seconds", method, route).observe(seconds)

    def _executed(self, query: QuerySummary, graph: str, phases: Mapping[str, float]) -> None:
        if "encode" in phases:
            self.child("query_seconds", query.kind, graph).observe(phases["engine"] + phases["encode"])
        if query.rows is not None and query.counts_rows:
            self.child("query_rows", query.kind).observe(query.rows)
        if query.is_slow:
            self.child("slow_queries", graph).inc()

    def delivered(self, graph: str, lag_s: float) -> None:
        """Count a commit that an event stream delivers."""
        self.child("feed_lag_seconds", graph).observe(max(lag_s, 0.0))

    # -- reports of the engine -------------------------------------------------------------------

    def committed(self, kind: str, seconds: float) -> None:
        """Count a commit."""
        self.child("commits", kind).inc()
        self.child("commit_seconds", kind).observe(seconds)

    def retried(self) -> None:
        """Count a write that starts over."""
        self.child("write_retries").inc()

    def called(self, service: Service, operation: str, seconds: float) -> None:
        """Count a call of the storage or of a provider."""
        if service == "storage":
            self.child("storage_seconds", operation).observe(seconds)
        else:
            self.child("embedding_seconds").observe(seconds)

    def planned(self, name: str, plan_hash: Callable[[], str], progress: Progress | None) -> None:
        """Nothing: queries are counted with their request."""

    def phase(self, name: Phase, started: float, ended: float, steps: Sequence[Step] = ()) -> None:
        """Nothing: phases are part of the log."""

    def headers(self) -> Mapping[str, str]:
        """Nothing: what belongs to no request has no trace."""
        return {}

    def missed(self, cache: Cache) -> None:
        """Nothing: the caches count by themselves."""


def failure_of(error: OmniGraphError, *, disconnected: bool) -> Failure | None:
    """Return the metric that counts the failure of a request, and its reason; None if none does."""
    if isinstance(error, Unauthorized):
        return "auth_failures", error.code
    if isinstance(error, Conflict):
        return "conflicts", error.code
    if isinstance(error, Cancelled):
        return "query_cancelled", "disconnect" if disconnected else "cancelled"
    if isinstance(error, LimitReached):
        return "query_cancelled", error.resource
    return None
