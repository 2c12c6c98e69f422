"""Traces of a real server in process, with the SDK and its exporter in memory."""

from __future__ import annotations

import builtins
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import omnigraph as og
from omnigraph.errors import MissingPackage
from omnigraph.server.observability.tracing import Tracing
from support.guarded_server import READS_MAIN, SERVER_ADMIN, guarded
from support.provider import running as providing
from support.server import Reply, ServerUnderTest, serving
from support.serving import WAIT_S

NAMED = "query named($name: String) { match { $p: Person { name: $name } } return { $p.age } }"
ADD = "query add($name: String) { insert Person { name: $name } }"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
DROPPED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
SCHEMA = "node Person { name: String @key age: I64? }"


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    """The exporter of the process; a provider can be set only once."""
    provider = TracerProvider()
    found = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(found))
    trace.set_tracer_provider(provider)
    return found


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Iterator[InMemorySpanExporter]:
    exporter.clear()
    yield exporter
    exporter.clear()


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "people.omni", SCHEMA, sync=False)
    graph.load([{"type": "Person", "data": {"name": "ana", "age": 30}}], mode="append")
    return graph


@pytest.fixture
def server(graph: og.Graph, spans: InMemorySpanExporter) -> Iterator[ServerUnderTest]:
    with serving(graph.uri, flags={"traces.enabled": True}) as running:
        yield running


def finished(spans: InMemorySpanExporter) -> tuple[ReadableSpan, dict[str, ReadableSpan]]:
    """Return the span of the request, which ends after its answer, and those of its phases by name."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        found = spans.get_finished_spans()
        requests = [span for span in found if span.kind is trace.SpanKind.SERVER]
        if requests:
            return requests[0], {span.name: span for span in found if span is not requests[0]}
        time.sleep(0.01)
    raise AssertionError("the span of the request did not end")


def read(server: ServerUnderTest, **headers: str) -> Reply:
    return server.post("/query", {"query": NAMED, "params": {"name": "canary-9"}}, headers=headers)


def test_a_read_has_a_span_for_each_phase(server: ServerUnderTest, spans: InMemorySpanExporter) -> None:
    reply = read(server, traceparent=PARENT)
    request, phases = finished(spans)
    assert set(phases) == {"policy", "queue", "compile", "run", "encode"}
    assert request.name == "POST /query"
    assert request.parent is not None
    assert f"{request.context.trace_id:032x}" == PARENT.split("-")[1]
    assert f"{request.parent.span_id:016x}" == PARENT.split("-")[2]
    assert reply.headers["traceparent"] == f"00-{PARENT.split('-')[1]}-{request.context.span_id:016x}-01"
    for span in phases.values():
        assert span.parent is not None
        assert span.parent.span_id == request.context.span_id
        assert (request.start_time or 0) <= (span.start_time or 0) + 1_000_000
        assert (span.start_time or 0) <= (span.end_time or 0) <= (request.end_time or 0) + 1_000_000


def test_attributes_follow_the_conventions_and_hold_no_values(
    server: ServerUnderTest, spans: InMemorySpanExporter
) -> None:
    read(server)
    request, phases = finished(spans)
    found = dict(request.attributes or {})
    assert found["db.system.name"] == "omnigraph"
    assert found["db.namespace"] == "default"
    assert found["db.operation.name"] == "query"
    assert found["db.query.summary"] == "named"
    assert found["db.response.returned_rows"] == 0
    assert (found["http.request.method"], found["http.route"]) == ("POST", "/query")
    assert found["http.response.status_code"] == 200
    assert dict(phases["run"].attributes or {})["db.namespace"] == "default"
    assert "canary" not in " ".join(span.to_json() for span in spans.get_finished_spans())


def test_a_change_is_staged_and_published(server: ServerUnderTest, spans: InMemorySpanExporter) -> None:
    assert server.post("/mutate", {"query": ADD, "params": {"name": "bo"}}).status == 200
    _, phases = finished(spans)
    assert {"compile", "run", "stage", "publish"} <= set(phases)


def test_a_profile_has_an_event_for_each_step(server: ServerUnderTest, spans: InMemorySpanExporter) -> None:
    query = "query all() { match { $p: Person } return { $p.name } order { $p.name } }"
    assert server.post("/profile", {"query": query}).status == 200
    _, phases = finished(spans)
    events = phases["run"].events
    assert events[0].name == "NodeScan"
    assert dict(events[0].attributes or {})["omnigraph.rows"] == 1


def test_a_call_of_a_provider_belongs_to_the_trace(tmp_path: Path, spans: InMemorySpanExporter) -> None:
    graph = og.init(tmp_path / "notes.omni", "node Note { name: String @key meaning: Vector(4)? }", sync=False)
    graph.load([{"type": "Note", "data": {"name": "a", "meaning": [1, 0, 0, 0]}}], mode="append")
    query = 'query near() { match { $n: Note } return { $n.name } order { nearest($n.meaning, "words") } limit 1 }'
    with providing() as provider:
        environ = provider.environ(ALLOW_MIXED=1)
        with serving(graph.uri, environ=environ, flags={"traces.enabled": True}) as server:
            reply = server.post("/query", {"query": query}, headers={"traceparent": PARENT})
        (sent,) = provider.seen
    assert (reply.status, sent.headers["traceparent"]) == (200, reply.headers["traceparent"])


def test_authentication_and_failures(graph: og.Graph, spans: InMemorySpanExporter) -> None:
    with guarded(graph, READS_MAIN, SERVER_ADMIN, "  traces: {enabled: true}") as server:
        assert server.get("/snapshot", token="wrong").status == 401
        request, phases = finished(spans)
        assert set(phases) == {"auth"}
        assert dict(request.attributes or {})["error.type"] == "invalid_token"
        assert request.status.status_code is trace.StatusCode.UNSET


def test_an_unexpected_failure_is_an_error(
    server: ServerUnderTest, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("canary")

    monkeypatch.setattr("omnigraph.graph.Graph.query", fail)
    assert read(server).status == 500
    request, _ = finished(spans)
    assert request.status.status_code is trace.StatusCode.ERROR
    assert "canary" not in request.to_json()


def test_a_trace_that_is_not_sampled_is_passed_on(server: ServerUnderTest, spans: InMemorySpanExporter) -> None:
    reply = read(server, traceparent=DROPPED)
    assert reply.headers["traceparent"].startswith(f"00-{DROPPED.split('-')[1]}-")
    assert reply.headers["traceparent"].endswith("-00")
    assert spans.get_finished_spans() == ()


@pytest.mark.parametrize("header", ["", "00-zz", "ff" * 40, PARENT.replace("-", "_")])
def test_a_wrong_parent_is_ignored(server: ServerUnderTest, spans: InMemorySpanExporter, header: str) -> None:
    assert read(server, traceparent=header).status == 200
    request, _ = finished(spans)
    assert request.parent is None


def test_without_the_setting_there_are_no_spans(graph: og.Graph, spans: InMemorySpanExporter) -> None:
    with serving(graph.uri) as server:
        reply = read(server, traceparent=PARENT)
        assert "traceparent" not in reply.headers
        assert server.app.server.tracing is None
    assert spans.get_finished_spans() == ()


def test_a_server_without_traces_does_not_import_the_package() -> None:
    code = "import sys, omnigraph.server.main; sys.exit('opentelemetry' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ImportError(name)
        return imported(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingPackage, match="opentelemetry-api"):
        Tracing()
