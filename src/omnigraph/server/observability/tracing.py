"""Traces of requests with OpenTelemetry: one span for the request and one for each of its phases.

The package is imported when traces are enabled. The spans go to the tracer provider of the process; without one, or if
its sampler drops a request, they are not recorded. The spans of phases are made when a phase ends, with its times, so
that the engine does not know them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.errors import MissingPackage
from omnigraph.observer import Step
from omnigraph.version import __version__

SYSTEM = "omnigraph"
_SERVER_ERROR = 500


def load_opentelemetry() -> Any:
    """Return the module `opentelemetry.trace`; raises `MissingPackage` without the package."""
    try:
        from opentelemetry import trace  # noqa: PLC0415 (only a server with traces needs it)
    except ImportError as error:
        raise MissingPackage(
            "'opentelemetry-api' is not installed, and the settings ask for traces",
            hint="install it: pip install 'omnigraph[otel]', or remove 'server.traces' from the configuration",
        ) from error
    return trace


class Tracing:
    """Makes the spans of a process."""

    def __init__(self) -> None:
        self.api = load_opentelemetry()
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

        self.tracer = self.api.get_tracer(SYSTEM, __version__)
        self.propagator = TraceContextTextMapPropagator()

    def begin(self, method: str, route: str, operation: str, headers: Mapping[str, str]) -> RequestTrace:
        """Begin the span of a request; `traceparent` of the headers names its parent."""
        return RequestTrace(self, f"{method} {route}", self.propagator.extract(headers), operation, method, route)


class RequestTrace:
    """The span of one request and those of its phases. Threads may add phases."""

    __slots__ = ("_context", "_database", "_offset_ns", "_span", "_tracing")

    def __init__(self, tracing: Tracing, name: str, parent: Any, operation: str, method: str, route: str) -> None:
        self._tracing = tracing
        self._offset_ns = time.time_ns() - time.perf_counter_ns()
        self._database: dict[str, Any] = {"db.system.name": SYSTEM, "db.operation.name": operation}
        attributes = {"http.request.method": method, "http.route": route, **self._database}
        kind = tracing.api.SpanKind.SERVER
        self._span = tracing.tracer.start_span(name, context=parent, kind=kind, attributes=attributes)
        self._context = tracing.api.set_span_in_context(self._span, parent)

    @property
    def headers(self) -> dict[str, str]:
        """The headers that pass the trace on: `traceparent`, and `tracestate` if there is one."""
        carrier: dict[str, str] = {}
        self._tracing.propagator.inject(carrier, context=self._context)
        return carrier

    def set_graph(self, graph: str) -> None:
        """Name the graph."""
        self._database["db.namespace"] = graph
        self._span.set_attribute("db.namespace", graph)

    def phase(self, name: str, started: float, ended: float, steps: Sequence[Step] = ()) -> None:
        """Add the span of a phase; times are those of `time.perf_counter`."""
        if not self._span.is_recording():
            return
        tracer = self._tracing.tracer
        span = tracer.start_span(
            name, context=self._context, attributes=self._database, start_time=self._to_ns(started)
        )
        for step in steps:
            attributes = {"omnigraph.rows": step.rows, "omnigraph.ms": step.ms, "omnigraph.notes": list(step.notes)}
            span.add_event(step.name, attributes, timestamp=self._to_ns(ended))
        span.end(self._to_ns(ended))

    def set_query(self, name: str | None, plan_hash: str | None, rows: int | None) -> None:
        """Describe the query of the request by its name or the hash of its plan; never by its text."""
        summary = name or plan_hash
        if summary:
            self._span.set_attribute("db.query.summary", summary)
        if plan_hash is not None:
            self._span.set_attribute("omnigraph.plan_hash", plan_hash)
        if rows is not None:
            self._span.set_attribute("db.response.returned_rows", rows)

    def end(self, status: int, code: str | None) -> None:
        """End the span of the request."""
        self._span.set_attribute("http.response.status_code", status)
        if code is not None:
            self._span.set_attribute("error.type", code)
        if status >= _SERVER_ERROR:
            self._span.set_status(self._tracing.api.Status(self._tracing.api.StatusCode.ERROR))
        self._span.end()

    def _to_ns(self, seconds: float) -> int:
        return int(seconds * 1_000_000_000) + self._offset_ns
