"""The table of metrics: names, kinds, labels and descriptions. The metrics and docs/metrics.md are made from it.

Every label has a bounded number of values: the template of a route, a graph, a table of a schema, an action, a class of
statuses, a reason. No label contains an actor, a query or a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]
Across = Literal["sum", "newest", "largest"]
"""How the gauges of several processes are combined."""

PREFIX = "omnigraph_"
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SHORT_SECONDS = (0.00001, 0.0001, 0.001, 0.01, 0.1, 1.0)
LAG_SECONDS = (0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 3_600.0)
ROWS = (0.0, 1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0)


@dataclass(frozen=True)
class Metric:
    """One metric; the name is without the prefix, that of a counter also without `_total`."""

    name: str
    kind: Kind
    description: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = SECONDS
    across: Across = "sum"

    @property
    def full_name(self) -> str:
        """The name that is exposed."""
        return f"{PREFIX}{self.name}_total" if self.kind == "counter" else f"{PREFIX}{self.name}"


METRICS: tuple[Metric, ...] = (
    Metric("http_requests", "counter", "Answered requests.", ("method", "route", "graph", "status")),
    Metric("http_request_seconds", "histogram", "Time from the head of a request to the end of its answer.",
           ("method", "route")),
    Metric("http_in_flight", "gauge", "Requests that are being answered."),
    Metric("connections", "gauge", "Open connections."),
    Metric("connections_refused", "counter", "Connections over `limits.connections`."),
    Metric("queue_seconds", "histogram", "Time that an admitted request waited for a slot of its lane.", ("lane",)),
    Metric("lane_requests", "gauge", "Requests of a lane that run or wait.", ("lane", "state")),
    Metric("admission_rejected", "counter", "Requests that were refused because of a limit.", ("limit",)),
    Metric("policy_decisions", "counter", "Decisions of policies.", ("action", "decision")),
    Metric("policy_decision_seconds", "histogram", "Time of the decisions before admission.", buckets=SHORT_SECONDS),
    Metric("policy_stale", "gauge", "1 if the last reload failed, so that older settings are in force.",
           across="largest"),
    Metric("auth_failures", "counter", "Requests without a valid token.", ("reason",)),
    Metric("query_seconds", "histogram", "Time of a query in the engine and of the encoding of its answer.",
           ("kind", "graph")),
    Metric("query_rows", "histogram", "Rows of the answer of a query.", ("kind",), buckets=ROWS),
    Metric("query_cancelled", "counter", "Queries that were stopped before their end.", ("reason",)),
    Metric("slow_queries", "counter", "Queries above `slow_ms`.", ("graph",)),
    Metric("commits", "counter", "Commits that this server made.", ("kind",)),
    Metric("commit_seconds", "histogram", "Time of staging and publish of a commit.", ("kind",)),
    Metric("write_retries", "counter", "Writes that started over because their branch moved."),
    Metric("conflicts", "counter", "Requests that were refused because of a conflict.", ("reason",)),
    Metric("cache_bytes", "gauge", "Size of the columns and indexes of a graph in memory.", ("graph", "kind")),
    Metric("cache_hits", "counter", "Requested cache entries that were in memory.", ("graph", "kind")),
    Metric("cache_misses", "counter", "Requested cache entries that were read or computed.", ("graph", "kind")),
    Metric("graph_ready", "gauge", "1 if the graph is served, 0 if it is quarantined.", ("graph",), across="newest"),
    Metric("branches", "gauge", "Branches of a graph.", ("graph",), across="newest"),
    Metric("proposals", "gauge", "Open proposals of a graph, by state.", ("graph", "state"), across="newest"),
    Metric("table_rows", "gauge", "Rows of a table on `main`; 0 if rules limit rows.", ("graph", "table"),
           across="newest"),
    Metric("table_fragments", "gauge", "Fragments of a table on `main`; maintenance merges them.", ("graph", "table"),
           across="newest"),
    Metric("index_uncovered_rows", "gauge",
           "Rows of a table on `main` that an index does not cover; 0 if rules limit rows.",
           ("graph", "table"), across="newest"),
    Metric("feed_lag_seconds", "histogram", "Time between a commit and its delivery on an event stream.",
           ("graph",), buckets=LAG_SECONDS),
    Metric("webhook_tries", "counter", "Tries to deliver an event. `refused`: the address is not permitted.",
           ("webhook", "graph", "result")),
    Metric("webhook_dropped", "counter", "Events that are not tried again, because they failed for three days.",
           ("webhook", "graph")),
    Metric("webhook_lag_seconds", "histogram", "Time between an event and its delivery.", ("webhook", "graph"),
           buckets=LAG_SECONDS),
    Metric("embedding_seconds", "histogram", "Time of a call of the provider of embeddings."),
    Metric("storage_seconds", "histogram", "Time of a call of the storage.", ("op",)),
    Metric("operations", "gauge", "Admitted work.", ("state",)),
    Metric("memory_used_bytes", "gauge", "Memory that the processes have allocated."),
    Metric("memory_bytes", "gauge", "Memory by what keeps it; see below.", ("owner",)),
    Metric("memory_cancelled", "counter", "Queries that were cancelled for lack of memory."),
    Metric("log_dropped", "counter", "Log lines that were dropped because the log could not keep up."),
    Metric("config_reload", "counter", "Reloads of settings, tokens and policies.", ("result",)),
    Metric("build_info", "gauge", "1; the labels describe the program.", ("version", "storage_format", "python"),
           across="largest"),
)  # fmt: skip
"""Every metric, in the order of the documentation."""
