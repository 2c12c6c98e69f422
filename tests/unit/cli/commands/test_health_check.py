"""`omnigraph-server --health`: TCP, Unix sockets, TLS, and a server that is absent, silent or broken."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from omnigraph.cli.commands.serve import health_check
from omnigraph.cli.commands.serve.health_check import find_problem
from support.serving import WAIT_S, environment, make_graph, program
from support.tls import write_certificate

SERVER_PROGRAM = "omnigraph.cli.commands.serve.server_program"


def check(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the health check as a container does."""
    return subprocess.run(
        [sys.executable, "-m", SERVER_PROGRAM, "--health"],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )


def test_the_entry_of_a_container_is_healthy_until_it_stops(tmp_path):
    make_graph(tmp_path / "kb.omni")
    variables = {
        "OMNIGRAPH_TARGET_URI": str(tmp_path / "kb.omni"),
        "OMNIGRAPH_BIND": "0.0.0.0:0",
        "OMNIGRAPH_SERVER_BEARER_TOKEN": "secret",
    }
    with program(tmp_path, module=SERVER_PROGRAM, **variables) as server:
        running = {**variables, "OMNIGRAPH_BIND": server.address}
        found = check(tmp_path, **running)
        assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
        assert server.stop() == 0
    found = check(tmp_path, **running)
    assert found.returncode == 1
    assert f"the server at '{server.address}' does not answer: " in found.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")
@pytest.mark.parametrize("tls", ["certificate", "certificate in a file of variables", "client certificate"])
def test_the_configuration_says_how_to_connect(tmp_path, tls: str):
    make_graph(tmp_path / "kb.omni")
    write_certificate(tmp_path, "public name")
    settings = {
        "certificate": "{cert: cert.pem, key: key.pem}",
        "certificate in a file of variables": "{}}\nauth: {env_file: ./tls.env",
        "client certificate": "{cert: cert.pem, key: key.pem, client_ca: cert.pem}",
    }
    (tmp_path / "og.yaml").write_text(f"graphs: {{kb: {{uri: ./kb.omni}}}}\nserver: {{tls: {settings[tls]}}}\n")
    files = (f"OMNIGRAPH_SERVER_TLS_{name}={tmp_path}/{name.lower()}.pem" for name in ("CERT", "KEY"))
    (tmp_path / "tls.env").write_text("\n".join(files))
    variables = {
        "OMNIGRAPH_CONFIG": str(tmp_path / "og.yaml"),
        "OMNIGRAPH_TARGET": "kb",
        "OMNIGRAPH_BIND": f"unix:{tmp_path}/og.sock",
    }
    with program(tmp_path, module=SERVER_PROGRAM, **variables):
        assert find_problem(variables, variables["OMNIGRAPH_BIND"]) is None


def test_a_server_that_does_not_answer_is_not_healthy(monkeypatch):
    monkeypatch.setattr(health_check, "TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        assert find_problem({}, address) == f"the server at '{address}' does not answer: timed out"


def test_another_status_is_not_healthy():
    with socket.create_server(("127.0.0.1", 0)) as broken:

        def answer() -> None:
            peer, _ = broken.accept()
            peer.recv(4096)
            peer.sendall(b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n")
            peer.close()

        thread = threading.Thread(target=answer)
        thread.start()
        assert find_problem({}, f"0.0.0.0:{broken.getsockname()[1]}") == "'/healthz' answers with status 500"
        thread.join(WAIT_S)


def test_a_wrong_address_is_named():
    assert "'server.bind' must be IP:PORT" in str(find_problem({}, "nowhere"))
