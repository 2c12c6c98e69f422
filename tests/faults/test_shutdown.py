"""Stop signals at inconvenient times: during an upload, a stream, maintenance, and with several workers."""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.storage import failpoints
from support.server import ServerUnderTest, serving
from support.serving import WAIT_S, Program, make_graph, program
from support.stalled_server import SIGN
from support.waiting import wait_for

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")
BIND = ("--bind", "127.0.0.1:0")
GRACE_S = 0.3
"""The time of reads at shutdown in these tests."""


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return make_graph(tmp_path / "kb.omni", "Ana", "Bo")


@pytest.fixture
def server(graph: Path) -> Iterator[ServerUnderTest]:
    with serving(graph, read_grace_s=GRACE_S) as server:
        yield server


def stop(server: ServerUnderTest) -> None:
    """Stop a server and wait for its end."""
    server.lifecycle.stop()
    wait_for(lambda: server.code is not None, "the end of the server")


def begin(server: ServerUnderTest, *lines: str) -> socket.socket:
    """Send the head of a request and keep the connection open."""
    connection = socket.create_connection(("127.0.0.1", server.port), WAIT_S)
    connection.sendall("\r\n".join([*lines, "Host: 127.0.0.1", "", ""]).encode())
    return connection


def rest(connection: socket.socket) -> bytes:
    """Read until the connection is closed or reset."""
    parts: list[bytes] = []
    with suppress(ConnectionError):
        while part := connection.recv(1 << 20):
            parts.append(part)
    return b"".join(parts)


def test_a_stop_during_an_upload_leaves_no_file(server, graph, tmp_path, monkeypatch):
    folder = tmp_path / "bodies"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    head = ("POST /load/ndjson?mode=append HTTP/1.1", "Content-Type: application/x-ndjson", "Content-Length: 1000")
    with begin(server, *head) as connection:
        connection.sendall(b'{"type": "Person", "data": {"name": "Cy"}}\n')
        wait_for(lambda: len(list(folder.iterdir())) == 1, "the temporary file")
        stop(server)
        assert connection.recv(1024) == b""
    assert server.code == 0
    assert list(folder.iterdir()) == []
    assert len(og.open(graph).commits()) == 2


def test_a_stop_ends_an_event_stream(server):
    with begin(server, "GET /changes/stream HTTP/1.1", "Accept: text/event-stream") as connection:
        assert connection.recv(20).startswith(b"HTTP/1.1 200")
        wait_for(lambda: server.app.server.execution.in_flight_reads == 1)
        stop(server)
    assert server.code == 0
    assert server.becomes_idle()


def test_a_stop_ends_a_stream_that_its_client_does_not_read(server, graph):
    # More than the buffers of a connection hold.
    people = [{"type": "Person", "data": {"name": f"{number:>500}"}} for number in range(40_000)]
    og.open(graph, sync=False).load(people, mode="append")
    with begin(server, "GET /tables/Person HTTP/1.1", "Accept: application/x-ndjson") as connection:
        assert connection.recv(20).startswith(b"HTTP/1.1 200")
        stop(server)
        assert not rest(connection).endswith(b"0\r\n\r\n"), "the body ends properly only if it is complete"
    assert server.code == 0
    assert server.becomes_idle()


def test_a_stop_cancels_maintenance(server, graph):
    waiting, cancelled = threading.Event(), threading.Event()

    def stall() -> None:
        waiting.set()
        assert cancelled.wait(WAIT_S)

    with failpoints.arm("optimize.compacted", stall):
        accepted = server.post("/maintenance/optimize")
        operation = server.app.server.operations.get(accepted.json["id"], None, all_actors=True)
        assert waiting.wait(WAIT_S)
        server.lifecycle.stop()
        wait_for(lambda: operation.cancel.cancelled, "the cancellation")
        cancelled.set()
        wait_for(lambda: server.code is not None, "the end of the server")
    assert server.code == 0
    assert operation.state == "cancelled"
    assert len(og.open(graph).commits()) == 2


# -- processes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", ["1", "2"])
def test_work_that_does_not_end_does_not_keep_the_process(graph, tmp_path, workers):
    paths = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    variables = {"OMNIGRAPH_SHUTDOWN_GRACE_SECS": "0.2", "PYTHONPATH": paths}
    arguments = ("kb.omni", *BIND, "--workers", workers)
    with program(tmp_path, *arguments, module="support.stalled_server", **variables) as server:
        accepted = server.get("/maintenance/optimize", method="POST", body="{}", headers=JSON)
        assert accepted.status == 202
        wait_for((tmp_path / SIGN).exists, "the work")
        children = children_of(server)
        assert server.stop() == 1
        assert "1 writes did not finish in time" in server.log
        wait_for(lambda: not any(map(is_alive, children)), "the end of the workers")
    og.open(graph).recover()
    assert og.open(graph).verify(deep=True) == []


def test_an_interrupt_of_the_whole_group_ends_workers_in_order(graph, tmp_path):
    with program(tmp_path, "kb.omni", *BIND, "--workers", "2") as server:
        assert server.get("/readyz").status == 200
        children = children_of(server)
        assert len(children) >= 2
        # A terminal sends Ctrl+C to all processes of the group.
        os.killpg(server.process.pid, signal.SIGINT)
        assert server.process.wait(WAIT_S) == 0
        wait_for(lambda: not any(map(is_alive, children)), "the end of the workers")
        assert "Traceback" not in server.log
        assert "KeyboardInterrupt" not in server.log


JSON = {"Content-Type": "application/json"}


def children_of(server: Program) -> list[int]:
    """The processes that a server has started."""
    tasks = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    return [int(pid) for pid in tasks.read_text().split()] if tasks.exists() else []


def is_alive(pid: int) -> bool:
    """True if a process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
