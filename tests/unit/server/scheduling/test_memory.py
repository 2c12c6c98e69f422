"""The limit of memory: its value, what is refused above it, caches that shrink and queries that are cancelled."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.config_keys import parse_memory
from omnigraph.graph_handle import cache_of
from omnigraph.server.deployment.settings import default_settings
from omnigraph.server.scheduling import memory
from omnigraph.server.scheduling.memory import MemoryGuard, limit_of, total_memory
from support.server import WAIT_S, Reply, ServerUnderTest, serving
from support.waiting import wait_for

PEOPLE = "query people() { match { $p: Person } return { $p.name } }"
SLOW = """query slow() {
    match { $a: Person $b: Person $c: Person $a.age < $b.age $b.age < $c.age } return { count($a) as n }
}"""
HIGH = 1 << 20
"""A limit that every process exceeds."""


@pytest.mark.parametrize(
    ("value", "expected"),
    [("80%", "80%"), ("12.5 %", "12.5%"), ("100%", "100%"), ("4 GiB", 4 << 30), (1024, 1024)]
    + [(bad, None) for bad in ("0%", "101%", "-1%", "80 percent", 0, -1, True, None, "")],
)
def test_a_limit_is_a_size_or_a_share(value: object, expected: object) -> None:
    assert parse_memory(value) == expected


def test_a_share_is_divided_by_the_workers_and_a_size_is_not() -> None:
    total = total_memory()
    assert total is not None
    assert limit_of(default_settings()) == int(total * 0.8)
    assert limit_of(default_settings(workers=4)) == int(total * 0.8 / 4)
    assert limit_of(default_settings(workers=4, limits__memory_high=1000)) == 1000
    assert default_settings(workers=4).cache_bytes_max == 512 << 20
    assert default_settings(workers=4, cache_bytes=1000).cache_bytes_max == 1000


def test_memory_of_the_process_grows_with_what_it_allocates() -> None:
    # In a process of its own: libraries that other tests loaded return memory in the background.
    code = """
from omnigraph.server.scheduling.memory import used_memory
before = used_memory()
held = bytearray(64 << 20)
print(used_memory() - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=WAIT_S)
    assert int(done.stdout) > 60 << 20


@pytest.mark.parametrize(
    ("line", "files", "expected"),
    [
        ("0::/a/b", {"a/b/memory.max": "max", "a/memory.max": "5000000"}, 5_000_000),
        ("0::/", {"memory.max": "7000000"}, 7_000_000),
        ("3:cpu,memory:/x", {"memory/x/memory.limit_in_bytes": "3000000"}, 3_000_000),
        ("3:memory:/elsewhere", {"memory/memory.limit_in_bytes": "4000000"}, 4_000_000),
    ],
    ids=["version 2", "version 2 in a container", "version 1", "version 1 in a container"],
)
def test_the_memory_of_a_control_group(tmp_path: Path, line: str, files: dict[str, str], expected: int) -> None:
    (tmp_path / "cgroup").write_text(f"1:name=systemd:/\n{line}\n")
    for name, text in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    assert total_memory(tmp_path, tmp_path / "groups") == expected


def test_a_group_without_limit_has_the_memory_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / "cgroup").write_text("0::/\n2:memory:/\n")
    assert total_memory(tmp_path, tmp_path) == total_memory(tmp_path / "none", tmp_path)


def test_a_system_without_the_figure_has_no_limit(caplog: pytest.LogCaptureFixture) -> None:
    guard = MemoryGuard(measure=lambda: None)
    guard.configure(default_settings())
    assert guard.limit is None
    assert "not available on this system" in caplog.text
    guard.check()


def test_above_the_limit_work_is_refused_and_the_server_can_be_inspected(
    graph: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "NOT_READY_S", 0.0)
    config = tmp_path / "omnigraph.yaml"
    config.write_text(f"server:\n  limits:\n    memory_high: {HIGH}\n")
    with serving(graph.uri, config=config) as server:
        guard = server.app.server.memory
        wait_for(lambda: guard.is_high)
        for reply in (server.post("/query", {"query": PEOPLE}), server.get("/snapshot"), server.post("/export")):
            assert reply.status == 503
            assert reply.headers["retry-after"] == "5"
            assert "nothing was executed" in reply.json["error"]
            overload = reply.json["overload"]
            assert (overload["scope"], overload["limit"], overload["value"]) == ("server", "memory_high", HIGH)
            assert overload["actual"] > HIGH
        assert server.app.server.admission.rejected == {"memory_high": 3}
        assert server.get("/status").status == 200
        assert server.get("/healthz").status == 200
        ready = server.get("/readyz")
        assert (ready.status, ready.json["reasons"]) == (503, ["memory_high"])

        config.write_text("server:\n  limits:\n    memory_high: 100%\n")
        assert server.holder.reload("test").ok
        wait_for(lambda: not guard.is_high)
        assert server.get("/readyz").status == 200
        assert server.post("/query", {"query": PEOPLE}).status == 200


def test_a_body_is_not_read_above_the_limit(graph: og.Graph) -> None:
    with serving(graph.uri, flags={"limits.memory_high": HIGH}) as server:
        wait_for(lambda: server.app.server.memory.is_high)
        headers = {"Content-Type": "application/x-ndjson", "Expect": "100-continue"}
        reply = server.request("POST", "/load/ndjson?mode=merge", b"not a record", headers=headers)
        assert (reply.status, reply.headers["connection"]) == (503, "close")


def test_caches_shrink_above_the_limit(server: ServerUnderTest) -> None:
    assert server.post("/query", {"query": PEOPLE}).status == 200
    served = server.holder.current.graphs["default"].graph
    assert served is not None
    cache = cache_of(served)
    assert cache.bytes > 0
    server.app.server.memory.limit = HIGH
    before = cache.bytes
    wait_for(lambda: cache.bytes <= before // 2)


def test_the_largest_query_is_cancelled_with_the_limit(graph: og.Graph) -> None:
    graph.load([{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(3000)], mode="merge")
    replies: list[Reply] = []
    with serving(graph.uri, flags={"limits.rows_max": 50_000_000_000, "limits.query_bytes": "1000 GiB"}) as server:
        running = server.app.server.operations
        thread = threading.Thread(target=lambda: replies.append(server.post("/query", {"query": SLOW})))
        thread.start()
        wait_for(lambda: any(operation.cancel.held_bytes for operation in running.running))
        server.app.server.memory.limit = HIGH
        thread.join(WAIT_S)
        server.app.server.memory.limit = None
        assert server.becomes_idle()
        assert server.app.server.memory.cancelled == 1
    document = replies[0].json
    assert (replies[0].status, document["reason"]) == (413, "limit_reached")
    assert document["resource_limit"]["resource"] == "memory"
    assert document["resource_limit"]["limit"] == HIGH
    assert document["resource_limit"]["actual"] > HIGH
