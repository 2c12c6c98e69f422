"""`omnigraph top` against a real server, also on a real terminal."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

import omnigraph as og
from omnigraph.cli.io.status_screen import status_screen
from omnigraph.cli.main import run
from omnigraph.wire.server_state import OperationDocument, ServerStatusDocument
from support.guarded_server import READS_MAIN, SERVER_ADMIN, TOKEN, guarded
from support.server import ServerUnderTest, serving
from support.serving import WAIT_S

if sys.platform != "win32":
    import fcntl
    import pty
    import termios

SCHEMA = "node Person { name: String @key age: I64? }"
SLOW = """query slow() {
    match { $a: Person $b: Person $c: Person $d: Person $a.age < $b.age $b.age < $c.age } return { count($d) as n }
}"""
BUSY = {"limits.rows_max": 10**13, "limits.query_bytes": "1000 TiB", "limits.query_s": 300}


@pytest.fixture
def graph(tmp_path: Path, clean_environment: None) -> og.Graph:
    graph = og.init(tmp_path / "people.omni", SCHEMA, sync=False)
    graph.load([{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(9000)], mode="append")
    return graph


@pytest.fixture
def server(graph: og.Graph) -> Iterator[ServerUnderTest]:
    with serving(graph.uri, flags=BUSY) as running:
        yield running


def test_the_state_is_printed_once(server: ServerUnderTest, capsys: pytest.CaptureFixture[str]) -> None:
    server.post("/query", {"query": 'query one() { match { $p: Person { name: "p1" } } return { $p.age } }'})
    assert run(["top", "--server", server.url, "--once"]) == 0
    printed = capsys.readouterr().out
    assert f"omnigraph {og.__version__}  open  pid {os.getpid()}" in printed
    assert re.search(r"^lanes: reads 0/\d+", printed, re.MULTILINE)
    assert re.search(r"^[0-9a-f]{8} +default +one +1 ", printed, re.MULTILINE)
    assert re.search(r"^default +ready +[0-9A-Z]{26} +1 ", printed, re.MULTILINE)


def test_the_state_as_json(server: ServerUnderTest, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["top", server.url, "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["version"], status["graphs"][0]["graph_id"]) == (og.__version__, "default")


def test_a_token_is_required_and_used(
    graph: og.Graph, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with guarded(graph, READS_MAIN, SERVER_ADMIN) as server:
        command = ["top", "--server", server.url, "--once"]
        assert run(command) != 0
        assert "token" in capsys.readouterr().err
        monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "token-of-bo")
        assert run(command) != 0
        assert "'admin' is denied" in capsys.readouterr().err
        monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", TOKEN)
        assert run(command) == 0
        assert "policy  pid" in capsys.readouterr().out


def test_storage_has_no_work(graph: og.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["top", graph.uri]) != 0
    assert "requires a server" in capsys.readouterr().err


def test_names_cannot_control_the_terminal(server: ServerUnderTest) -> None:
    reply = server.get("/status")
    status = msgspec.json.decode(reply.body, type=ServerStatusDocument)
    hostile = "\x1b[2J[red]x[/red]\n\x9b"
    status.operations.append(
        OperationDocument(
            id=hostile, kind="query", state="running", graph_id="g", actor_id=hostile, request_id="r", started_at=0
        )
    )
    console = Console(width=200, force_terminal=False)
    with console.capture() as captured:
        console.print(status_screen(status, hostile))
    assert "\x1b" not in captured.get()
    assert "[red]x[/red]" in captured.get()


@pytest.mark.parametrize(("width", "whole"), [(80, False), (200, True)])
def test_a_narrow_screen_leaves_out_columns(server: ServerUnderTest, width: int, whole: bool) -> None:
    status = msgspec.json.decode(server.get("/status").body, type=ServerStatusDocument)
    status.operations.append(
        OperationDocument(
            id="op-00000000000000000000000001",
            kind="query",
            state="cancelling",
            graph_id="default",
            actor_id="someone@example.com",
            request_id="r",
            started_at=0,
            age_s=1234.5,
            lane="reads",
            branch="review/one",
            query="friends_of_friends",
            rows=1000,
        )
    )
    console = Console(width=width, force_terminal=False)
    with console.capture() as captured:
        console.print(status_screen(status, width=width))
    printed = captured.get()
    assert re.search(r"cancelling +1234.5 s +.*query +.*review/one +.*friends_of_friends +.*1,000", printed)
    assert re.search(r"default +ready +[0-9A-Z]{26} +1 ", printed)
    assert ("op-00000000000000000000000001" in printed, "someone@example.com" in printed) == (whole, whole)


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_an_operation_is_cancelled_on_a_terminal(server: ServerUnderTest) -> None:
    replies: list[int] = []
    query = threading.Thread(target=lambda: replies.append(server.post("/query", {"query": SLOW}).status))
    with TerminalProgram("top", "--server", server.url, "--interval", "0.2") as program:
        program.wait_for("q: quit")
        query.start()
        program.wait_for("running")
        program.wait_for("slow")
        program.type("jc")
        program.wait_for("? y/n")
        program.type("n")
        program.wait_for("q: quit")
        program.type("c")
        program.wait_for("? y/n")
        program.type("y")
        program.wait_for("cancelled ")
        query.join(WAIT_S)
        assert replies == [409]
        program.type("q")
        assert program.end() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_a_server_that_ends_is_reported_and_an_interrupt_quits(graph: og.Graph) -> None:
    with serving(graph.uri) as server:
        program = TerminalProgram("top", "--server", server.url, "--interval", "0.1", OMNIGRAPH_HTTP_TIMEOUT_MS="500")
        program.wait_for("graph")
    with program:
        program.wait_for("error: ")
        program.interrupt()
        assert program.end() == 0


class TerminalProgram:
    """The program on a pseudo-terminal of 30 lines and 80 columns."""

    def __init__(self, *arguments: str, **environ: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 80, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "omnigraph", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "30", **environ},
            start_new_session=True,
        )
        os.close(slave)
        self._unread = ""

    def __enter__(self) -> TerminalProgram:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(WAIT_S)
        os.close(self._master)

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def wait_for(self, text: str) -> None:
        """Read the screen until a text appears after the last one."""
        deadline = time.monotonic() + WAIT_S
        while text not in self._unread:
            if time.monotonic() > deadline:
                pytest.fail(f"{text!r} did not appear in {self._unread[-3000:]!r}")
            self._read()
        self._unread = self._unread.partition(text)[2]

    def end(self) -> int:
        """Return the exit code; the output is read so that the program can write."""
        deadline = time.monotonic() + WAIT_S
        while self._process.poll() is None and time.monotonic() < deadline:
            self._read()
        return self._process.wait(WAIT_S)

    def _read(self) -> None:
        ready, _, _ = select.select([self._master], [], [], 0.1)
        if ready:
            try:
                self._unread += os.read(self._master, 65536).decode(errors="replace")
            except OSError:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(0.1)  # the program closed the terminal
