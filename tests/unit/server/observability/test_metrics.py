"""Metrics of a real server: names, formats, values, and who may see them."""

from __future__ import annotations

import builtins
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

import omnigraph as og
from omnigraph.embedding.client import EmbeddingClient
from omnigraph.embedding.config import find_config
from omnigraph.errors import InputError, MissingPackage
from omnigraph.observer import process_observer
from omnigraph.server.observability import log
from omnigraph.server.observability.exposition import CONTENT_TYPE
from omnigraph.server.observability.metric_samples import OWNERS
from omnigraph.server.observability.metric_table import METRICS
from omnigraph.server.observability.metrics import Metrics
from omnigraph.server.observability.metrics_endpoint import MetricsEndpoint
from support.server import serving
from support.serving import make_graph, program, request
from support.tenants import CHANGE, READ, Tenants, tenants
from support.waiting import wait_for

PAIRS = "query pairs() { match { $a: Person $b: Person } return { $a.name, $b.name } }"
PAGE = Path(__file__).parents[4] / "docs" / "metrics.md"


def families(text: bytes) -> dict[str, Metric]:
    """Return the metrics of a text; the parser of the library refuses a text in another format."""
    return {family.name: family for family in text_string_to_metric_families(text.decode())}


def value(text: bytes, name: str, **labels: str) -> float:
    """Return the sum of the samples of a name that have these labels."""
    samples = [sample for family in families(text).values() for sample in family.samples]
    return sum(
        sample.value
        for sample in samples
        if sample.name == f"omnigraph_{name}" and labels.items() <= sample.labels.items()
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    folder = tmp_path_factory.mktemp("metrics")
    with tenants(folder, metrics__enabled=True, slow_ms=0, limits__bytes_per_actor=200_000) as running:
        _use(running)
        yield running


def _use(site: Tenants) -> None:
    """Send requests that touch every metric."""
    server, root = site.server, site.tokens["root"]
    assert server.post("/query", {"query": READ}, token=root).status == 200
    assert server.post("/query", {"query": READ}, token=root).status == 200
    assert server.post("/query", {"query": PAIRS, "limits": {"rows": 1}}, token=root).status != 200
    assert server.post("/mutate", CHANGE, token=root).status == 200
    assert server.post("/mutate", {**CHANGE, "message": "x" * 250_000}, token=root).status in (400, 429)
    assert server.request("POST", "/ingest", {"data": "x" * 300_000}, token=root).status in (400, 429)
    assert server.post("/branches", {"name": "public"}, token=root).status == 409
    assert server.post("/mutate", CHANGE, token=site.tokens["ana"]).status == 403
    assert server.get("/snapshot", token="og_wrong").status == 401
    assert server.get("/none", token=root).status == 404
    assert server.request("PURGE", "/snapshot", token=root).status == 405
    assert server.get("/changes/stream", params={"start": "beginning"}, token=root).status == 200
    assert server.post("/admin/reload", token=root).status == 200
    config = find_config({"OMNIGRAPH_EMBEDDINGS_MOCK": "1"})
    assert config is not None
    EmbeddingClient(config).embed(["a text"], 4)


def scrape(site: Tenants) -> bytes:
    reply = site.server.get("/metrics", token=site.tokens["root"])
    assert (reply.status, reply.headers["content-type"]) == (200, CONTENT_TYPE)
    return reply.body


def test_the_documented_metrics_are_those_of_a_server(site: Tenants) -> None:
    documented = set(re.findall(r"^\| `(omnigraph_\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    found = families(scrape(site))
    exposed = {f"{name}_total" if family.type == "counter" else name for name, family in found.items()}
    assert {name for name in exposed if name.startswith("omnigraph_")} == documented
    assert "process_resident_memory_bytes" in exposed or sys.platform != "linux"
    without = {metric.name for metric in METRICS if not found[f"omnigraph_{metric.name}"].samples}
    without_webhooks = {"webhook_tries", "webhook_dropped", "webhook_lag_seconds"}
    assert without == without_webhooks, "every other metric has a value after real traffic"


def test_the_labels_are_those_of_the_table(site: Tenants) -> None:
    found = families(scrape(site))
    for metric in METRICS:
        for sample in found[f"omnigraph_{metric.name}"].samples:
            assert set(sample.labels) - {"le"} == set(metric.labels), metric.name


def test_no_label_names_an_actor_or_a_query(site: Tenants) -> None:
    text = scrape(site).decode()
    for word in ("root", "ana", "people", "canary", "PURGE", *site.tokens.values()):
        assert f'"{word}' not in text


def test_values(site: Tenants) -> None:
    text = scrape(site)
    assert value(text, "http_requests_total", route="/query", graph="a", status="2xx") == 2
    assert value(text, "http_requests_total", route="(none)", method="other", status="4xx") == 1
    assert value(text, "http_request_seconds_count", route="/query") == 3
    assert value(text, "query_seconds_count", kind="read", graph="a") == 2
    assert value(text, "query_cancelled_total", reason="rows") == 1
    assert value(text, "commits_total", kind="mutation") == 1
    assert value(text, "conflicts_total", reason="branch_exists") == 1
    assert value(text, "auth_failures_total", reason="invalid_token") == 1
    assert value(text, "policy_decisions_total", action="change", decision="deny") == 1
    assert value(text, "admission_rejected_total", limit="bytes_per_actor") >= 1
    assert value(text, "config_reload_total", result="ok") == 1
    assert value(text, "feed_lag_seconds_count", graph="a") >= 1
    assert value(text, "storage_seconds_count", op="manifest_publish") >= 1
    assert value(text, "embedding_seconds_count") == 1
    assert value(text, "cache_hits_total", graph="a", kind="plans") >= 1
    assert value(text, "table_rows", graph="b", table="node:Person") == 3
    assert value(text, "branches", graph="b") == 4
    assert (value(text, "proposals", graph="a"), value(text, "proposals", graph="b")) == (1, 0)
    assert value(text, "policy_stale") == 0
    assert value(text, "http_in_flight") >= 1
    assert value(text, "build_info", version=og.__version__) == 1


def test_counters_do_not_grow_by_scrapes(site: Tenants) -> None:
    names = ("cache_hits_total", "cache_misses_total", "admission_rejected_total", "config_reload_total")
    first, second = scrape(site), scrape(site)
    assert [value(first, name) for name in names] == [value(second, name) for name in names]


def test_a_log_that_cannot_keep_up_loses_no_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(make_graph(tmp_path / "kb.omni", "Ana"), flags={"metrics.enabled": True}) as server:
        monkeypatch.setattr(log._queue, "_limit", 0)
        before = log.dropped()
        for _ in range(3):
            server.get("/snapshot")
        wait_for(lambda: log.dropped() == before + 3, "the dropped lines")
        assert value(server.get("/metrics").body, "http_requests_total", route="/snapshot") == 3


def test_only_administrators_see_them(site: Tenants) -> None:
    assert site.server.get("/metrics", token=site.tokens["ana"]).status == 403
    assert site.server.get("/metrics", token=site.tokens["do-admin"]).status == 200


def test_a_failed_reload_is_stale(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "kb.omni", "Ana")
    config = tmp_path / "omnigraph.yaml"
    config.write_text(f"graphs: {{kb: {{uri: {graph}}}}}\nserver: {{metrics: {{enabled: true}}}}\n")
    with serving(config=config) as server:
        config.write_text("server: {limits: {reads: none}}\n")
        assert server.post("/admin/reload").status == 409
        text = server.get("/metrics").body
    assert (value(text, "policy_stale"), value(text, "config_reload_total", result="failed")) == (1, 1)


def test_without_the_setting_there_are_none(tmp_path: Path) -> None:
    before = process_observer()  # that of another server of this process, if one runs
    with serving(make_graph(tmp_path / "kb.omni")) as server:
        reply = server.get("/metrics")
        assert (reply.status, reply.json["reason"]) == (404, "no_metrics")
        assert server.app.server.reporter.metrics is None
        assert process_observer() is before


def test_an_address_of_its_own_needs_no_token(tmp_path: Path) -> None:
    with serving(make_graph(tmp_path / "kb.omni", "Ana"), flags={"metrics.bind": "127.0.0.1:0"}) as server:
        service = server.app.server.metrics
        assert service is not None
        assert service.endpoint is not None
        server.get("/snapshot")
        address = service.endpoint.address
        answer = request(address, "/metrics")
        assert (answer.status, answer.headers["content-type"]) == (200, CONTENT_TYPE)
        assert value(answer.body, "http_requests_total", route="/snapshot") == 1
        assert request(address, "/snapshot").status == 404
        assert request(address, "/metrics", method="POST").status == 501
    with pytest.raises(ConnectionError):
        request(address, "/metrics")


def test_an_address_in_use_is_refused() -> None:
    first = MetricsEndpoint("127.0.0.1", 0, lambda: b"")
    host, port = first.address.split(":")
    try:
        with pytest.raises(InputError, match="cannot be used") as caught:
            MetricsEndpoint(host, int(port), lambda: b"")
        assert caught.value.code == "cannot_bind"
    finally:
        first.close()


def test_a_failure_of_the_text_is_an_error() -> None:
    endpoint = MetricsEndpoint("127.0.0.1", 0, lambda: bytes(1 // 0))
    try:
        assert request(endpoint.address, "/metrics").status == 500
    finally:
        endpoint.close()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name.startswith("prometheus_client"):
            raise ImportError(name)
        return imported(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingPackage, match="prometheus-client"):
        Metrics()


def test_a_server_without_metrics_does_not_import_the_package() -> None:
    code = "import sys, omnigraph.server.main; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_several_workers_share_their_metrics(tmp_path: Path) -> None:
    make_graph(tmp_path / "kb.omni", "Ana")
    options = ("--workers", "2", "--metrics-bind", "127.0.0.1:0")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with program(tmp_path, "kb.omni", *options, TMPDIR=str(temporary), OMNIGRAPH_LOG_FORMAT="json") as server:
        found = re.search(r'"event":"metrics","address":"([^"]+)"', server.log)
        assert found is not None
        address = found[1]
        for _ in range(20):
            assert server.get("/snapshot").status == 200

        def counted() -> float:
            return value(request(address, "/metrics").body, "http_requests_total", route="/snapshot")

        wait_for(lambda: counted() == 20, "the sum of both workers")
        wait_for(lambda: len(_workers(server.process.pid)) == 2, "both workers")
        wait_for(
            lambda: value(request(address, "/metrics").body, "table_rows", table="node:Person") == 1, "the graph gauges"
        )
        assert value(server.get("/metrics").body, "http_requests_total", route="/snapshot") == 20
        text = request(address, "/metrics").body
        assert families(text)["process_resident_memory_bytes"].samples[0].value > 50e6
        os.kill(_workers(server.process.pid)[0], signal.SIGKILL)
        wait_for(lambda: "ended with exit code" in server.log, "the report of the end")
        assert counted() == 20, "the counters of a worker that ended stay"
        assert server.stop() == 0
    assert list(temporary.iterdir()) == []


def _workers(pid: int) -> list[int]:
    """Return the worker processes: the children with a gauge file."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [
        int(child) for child in children if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text(errors="replace")
    ]


def test_memory_by_owner(site: Tenants) -> None:
    """Each owner has a size; those that the requests of the site used are not 0."""
    text = site.server.get("/metrics", token=site.tokens["root"]).body
    sizes = {owner: value(text, "memory_bytes", owner=owner) for owner in OWNERS}
    assert {owner for owner, size in sizes.items() if size == 0} <= {"arrow", "free", "tables"}
    assert sizes["plans"] < sizes["versions"] + sizes["lance"] + 2**20
