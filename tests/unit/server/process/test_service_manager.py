"""The service manager: messages on a real datagram socket, and servers on a socket that they inherit."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.errors import InputError
from omnigraph.server.process.listening import listen_address
from omnigraph.server.process.service_manager import ServiceManager, take_socket
from support.serving import WAIT_S, environment, make_graph, program, request
from support.waiting import wait_for

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")


class Manager:
    """The receiving end: what a service manager reads."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(WAIT_S)
        self.socket.bind(address)

    def receive(self) -> list[str]:
        return self.socket.recv(4096).decode().split("\n")

    def receive_until(self, first: str) -> list[list[str]]:
        """Return the messages up to the first one that begins with an assignment."""
        found = [self.receive()]
        while found[-1][0] != first:
            found.append(self.receive())
        return found


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    opened = Manager(str(tmp_path / "notify"))
    yield opened
    opened.socket.close()


def variables_of(manager: Manager, **more: str) -> dict[str, str]:
    return {"NOTIFY_SOCKET": manager.socket.getsockname(), **more}


def test_messages_are_those_of_the_protocol(manager):
    environ = variables_of(manager)
    told = ServiceManager.of(environ)
    assert environ == {}, "workers and commands do not inherit the address"
    told.ready("listening on 127.0.0.1:80")
    told.reloading()
    told.stopping()
    told.alive()
    assert manager.receive() == ["READY=1", "STATUS=listening on 127.0.0.1:80"]
    reload = manager.receive()
    assert (reload[0], reload[1].partition("=")[0]) == ("RELOADING=1", "MONOTONIC_USEC")
    assert reload[1].partition("=")[2].isdigit()
    assert manager.receive()[0] == "STOPPING=1"
    manager.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        manager.receive()


@pytest.mark.skipif(sys.platform != "linux", reason="abstract addresses")
def test_an_abstract_address_is_used():
    name = f"omnigraph-test-{os.getpid()}"
    manager = Manager(f"\0{name}")
    try:
        ServiceManager(f"@{name}").stopping()
        assert manager.receive()[0] == "STOPPING=1"
    finally:
        manager.socket.close()


def test_a_missing_manager_is_a_warning(tmp_path, caplog):
    ServiceManager(str(tmp_path / "gone")).ready("serves")
    assert "cannot be told" in caplog.text
    ServiceManager.of({}).ready("serves")
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("variables", "pings"),
    [
        ({"WATCHDOG_USEC": "40000"}, True),
        ({"WATCHDOG_USEC": "40000", "WATCHDOG_PID": str(os.getpid())}, True),
        ({"WATCHDOG_USEC": "40000", "WATCHDOG_PID": "1"}, False),
        ({"WATCHDOG_USEC": "soon"}, False),
        ({"WATCHDOG_USEC": "0"}, False),
        ({}, False),
    ],
)
def test_the_watchdog_is_told_if_it_asks(manager, variables: dict[str, str], pings: bool):
    told = ServiceManager.of(variables_of(manager, **variables))

    async def run() -> None:
        task = asyncio.ensure_future(told.keep_alive())
        if pings:
            loop = asyncio.get_running_loop()
            for _ in range(3):
                assert await loop.run_in_executor(None, manager.receive) == ["WATCHDOG=1"]
            task.cancel()
        else:
            await asyncio.wait_for(task, WAIT_S)

    asyncio.run(run())


def test_a_server_tells_ready_reload_and_stop(manager, tmp_path):
    make_graph(tmp_path / "kb.omni")
    variables = variables_of(manager, WATCHDOG_USEC="200000")
    with program(tmp_path, "kb.omni", "--bind", "127.0.0.1:0", **variables) as server:
        assert manager.receive() == ["READY=1", f"STATUS=listening on {server.address}"]
        manager.receive_until("WATCHDOG=1")
        (tmp_path / "omnigraph.yaml").write_text("server: {hide_uri: true}\n")
        server.send(signal.SIGHUP)
        manager.receive_until("RELOADING=1")
        assert manager.receive_until("READY=1")[-1][1] == f"STATUS=listening on {server.address}"
        (tmp_path / "omnigraph.yaml").write_text("server: {hide_uri: maybe}\n")
        server.send(signal.SIGHUP)
        manager.receive_until("RELOADING=1")
        assert manager.receive_until("READY=1")[-1][1].endswith("the last reload failed, see the log")
        assert server.stop() == 0
        manager.receive_until("STOPPING=1")


def test_a_supervisor_tells_when_all_workers_have_reloaded(manager, tmp_path):
    make_graph(tmp_path / "kb.omni")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        arguments = ("kb.omni", "--workers", "2")
        with program(tmp_path, *arguments, listener=listener, **variables_of(manager)) as server:
            assert server.address == listen_address(listener)
            assert manager.receive() == ["READY=1", f"STATUS=listening on {server.address}"]
            server.send(signal.SIGHUP)
            assert manager.receive()[0] == "RELOADING=1"
            assert manager.receive()[0] == "READY=1"
            wait_for(lambda: server.log.count("reload (SIGHUP)") == 2, "the reload of both workers")
            assert server.get("/readyz").status == 200
            assert server.stop() == 0
            assert manager.receive()[0] == "STOPPING=1"


def test_an_inherited_socket_outlives_the_server(tmp_path):
    """A connection that arrives between two processes waits in the queue of the socket."""
    make_graph(tmp_path / "kb.omni")
    path = tmp_path / "og.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        with program(tmp_path, "kb.omni", "--bind", "127.0.0.1:1", listener=listener) as server:
            assert server.address == f"unix:{path}"
            assert server.get("/readyz").status == 200
            assert server.stop() == 0
        assert path.exists(), "the file belongs to the service manager"
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(WAIT_S)
            client.connect(str(path))
            client.sendall(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            with program(tmp_path, "kb.omni", listener=listener) as server:
                assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
                assert server.stop() == 0


def test_the_first_connection_starts_a_server(tmp_path):
    """The program of systemd opens the address and starts the server when a client connects."""
    activate = shutil.which("systemd-socket-activate")
    if activate is None:
        pytest.skip("systemd-socket-activate is not installed")
    make_graph(tmp_path / "kb.omni")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = listen_address(free)
    passed = [f"--setenv={name}" for name in environment()]
    command = [activate, f"--listen={address}", *passed, sys.executable, "-m", "omnigraph", "serve", "kb.omni"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=log, stderr=log)
    try:
        wait_for(lambda: "Listening on" in (tmp_path / "log").read_text(), "the socket")
        assert request(address, "/readyz").status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
    finally:
        process.kill()
        process.wait(WAIT_S)
    assert f"OMNIGRAPH_LISTEN_ADDR={address}" in (tmp_path / "log").read_text()


def test_the_address_of_the_socket_decides_the_mode(tmp_path):
    """A socket on all addresses is not opened to everybody by a loopback `--bind`."""
    make_graph(tmp_path / "kb.omni")
    with (
        socket.create_server(("0.0.0.0", 0)) as listener,
        pytest.raises(AssertionError, match="can be reached from other machines"),
        program(tmp_path, "kb.omni", "--bind", "127.0.0.1:0", listener=listener),
    ):
        pass


def test_sockets_of_another_process_are_ignored():
    environ = {"LISTEN_FDS": "1", "LISTEN_PID": "1", "LISTEN_FDNAMES": "http"}
    assert take_socket(environ) is None
    assert environ == {}


def test_several_sockets_are_refused():
    with pytest.raises(InputError, match="passed 2 sockets; a server listens on one"):
        take_socket({"LISTEN_FDS": "2", "LISTEN_PID": str(os.getpid())})


@pytest.mark.parametrize("given", ["a socket that is not bound", "no socket"])
def test_a_descriptor_that_does_not_listen_is_refused(given: str, tmp_path):
    script = (
        "import os, socket, sys\n"
        "from omnigraph.server.process.service_manager import take_socket\n"
        "os.close(3) if sys.argv[1] == 'no socket' else None\n"
        "try: take_socket({'LISTEN_FDS': '1', 'LISTEN_PID': str(os.getpid())})\n"
        "except Exception as error: print(error)\n"
    )
    with socket.socket() as silent:
        os.set_inheritable(silent.fileno(), True)
        command = f"exec {sys.executable} -c \"$0\" '{given}' 3<&{silent.fileno()}"
        found = subprocess.run(
            ["bash", "-c", command, script],
            pass_fds=[silent.fileno()],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )
    assert "file descriptor 3 of the service manager cannot be used" in found.stdout, found.stderr
