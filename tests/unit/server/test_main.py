"""The server as a process: start, address, single-user mode, TLS, workers, signals, reload, container entry."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from support.serving import POLICY, WAIT_S, environment, make_graph, program, request, wait_for

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and Unix sockets")
BIND = ("--bind", "127.0.0.1:0")
SERVER_PROGRAM = "omnigraph.cli.commands.serve.server_program"


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return make_graph(tmp_path / "kb.omni", "Ana", "Bo")


def test_a_server_serves_until_a_signal(graph, tmp_path):
    with program(tmp_path, "kb.omni", *BIND, OMNIGRAPH_LOG_FORMAT="json") as server:
        host, port = server.address.split(":")
        assert (host, port != "0") == ("127.0.0.1", True)
        assert server.get("/readyz").document == {"status": "ready"}
        assert server.stop() == 0
        events = [json.loads(line) for line in server.log.splitlines()]
    start = next(event for event in events if event["event"] == "start")
    assert (start["mode"], start["tokens"], start["actors"]) == ("open", "none", 0)
    assert any("no token is set" in str(event.get("message")) for event in events)


def test_single_user_mode_prints_a_token_and_a_command(graph, tmp_path):
    path = tmp_path / "og.sock"
    with program(tmp_path, "kb.omni", "--local", "--bind", f"unix:{path}", lines=3) as server:
        assert server.address == f"unix:{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        token = server.lines[1].removeprefix("token: ")
        assert server.get("/readyz").status == 200
        assert token in server.lines[2]
        assert shlex.split(server.lines[2])[-1] == "http://localhost/snapshot"
        assert token not in server.log
        assert server.stop(signal.SIGINT) == 0
    assert not path.exists()


def test_a_signal_reloads_and_a_broken_file_changes_nothing(graph, tmp_path):
    tokens, policy = tmp_path / "tokens.json", tmp_path / "policy.yaml"
    tokens.write_text('{"ana": "first"}')
    policy.write_text(POLICY)
    (tmp_path / "omnigraph.yaml").write_text("policy: {file: policy.yaml}\n")
    variables = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(tokens)}
    with program(tmp_path, "kb.omni", *BIND, **variables) as server:
        tokens.write_text('{"ana": "second"}')
        server.send(signal.SIGHUP)
        wait_for(lambda: "): tokens" in server.log, "the reload of tokens")
        policy.write_text("version: 1\nrules: nonsense\n")
        server.send(signal.SIGHUP)
        wait_for(lambda: "the previous state stays in force" in server.log, "the refusal of a broken policy")
        policy.write_text(POLICY.replace("ana", "bo"))
        wait_for(lambda: "policy.yaml' changed): policies" in server.log, "the reload of a changed file")
        assert server.get("/readyz").status == 200
        assert server.stop() == 0


def certificate(folder: Path, name: str) -> None:
    """Write a self-signed certificate for localhost and its key."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
               "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
               "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=WAIT_S)


def common_name(address: str) -> str:
    """The name in the certificate that a server presents now."""
    host, port = address.split(":")
    pem = ssl.get_server_certificate((host, int(port)), timeout=WAIT_S)
    command = ["openssl", "x509", "-noout", "-subject"]
    return subprocess.run(command, input=pem, check=True, capture_output=True, text=True, timeout=WAIT_S).stdout


def test_tls_with_client_certificates_and_renewal(graph, tmp_path):
    certificate(tmp_path, "first")
    files = ("--tls-cert", "cert.pem", "--tls-key", "key.pem")
    with program(tmp_path, "kb.omni", *BIND, *files, "--tls-client-ca", "cert.pem") as server:
        context = ssl.create_default_context(cafile=tmp_path / "cert.pem")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            server.get("/readyz", context=context)
        context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
        assert server.get("/readyz", context=context).status == 200
        assert server.stop() == 0
    with program(tmp_path, "kb.omni", *BIND, *files) as server:
        assert "CN" in common_name(server.address)
        assert "first" in common_name(server.address)
        certificate(tmp_path, "second")
        server.send(signal.SIGHUP)
        wait_for(lambda: "second" in common_name(server.address))
        (tmp_path / "cert.pem").write_text("broken")
        server.send(signal.SIGHUP)
        wait_for(lambda: "cannot be loaded" in server.log)
        assert "second" in common_name(server.address)
        assert server.stop() == 0


def test_workers_share_one_socket_and_are_replaced(graph, tmp_path):
    with program(tmp_path, "kb.omni", *BIND, "--workers", "2") as server:
        assert server.get("/readyz").status == 200

        def workers() -> set[int]:
            listed = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
            return {int(pid) for pid in listed if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()}

        if not Path("/proc/self/task").exists():
            pytest.skip("the workers are found in /proc")
        wait_for(lambda: len(workers()) == 2)
        before = workers()
        os.kill(before.pop(), signal.SIGKILL)
        wait_for(lambda: len(workers()) == 2 and workers() != before)
        assert server.get("/readyz").status == 200
        (tmp_path / "omnigraph.yaml").write_text("server: {hide_uri: true}\n")
        server.send(signal.SIGHUP)
        wait_for(lambda: "reload (SIGHUP)" in server.log)
        assert server.stop() == 0


def test_the_error_of_a_worker_is_that_of_the_program(graph, tmp_path):
    code, _, errors = run(tmp_path, "none.omni", *BIND, "--workers", "2")
    assert code == 1
    assert "graph 'default' cannot be opened" in errors


def run(folder: Path, *arguments: str, module: str = "omnigraph", **variables: str) -> tuple[int, str, str]:
    """Run a server that does not start."""
    words = ["serve", *arguments] if module == "omnigraph" else list(arguments)
    found = subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=folder, env=environment(**variables), capture_output=True, text=True, timeout=WAIT_S,
    )  # fmt: skip
    return found.returncode, found.stdout, found.stderr


def test_a_busy_address_is_one_clear_error(graph, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        address = f"127.0.0.1:{busy.getsockname()[1]}"
        code, output, errors = run(tmp_path, "kb.omni", "--bind", address, "--log-level", "error")
    assert (code, output) == (1, "")
    assert f"cannot listen on '{address}'" in errors
    assert len(errors.splitlines()) == 2, errors


def test_a_container_names_its_graph_by_variables(graph, tmp_path):
    variables = {"OMNIGRAPH_TARGET_URI": "kb.omni", "OMNIGRAPH_BIND": "0.0.0.0:0", "OMNIGRAPH_UNAUTHENTICATED": "1"}
    with program(tmp_path, module=SERVER_PROGRAM, **variables) as server:
        port = server.address.removeprefix("0.0.0.0:")
        assert request(f"127.0.0.1:{port}", "/healthz").document["status"] == "ok"
        assert "EVERYBODY WHO REACHES 0.0.0.0:0 MAY READ AND CHANGE ALL SERVED GRAPHS" in server.log
        assert server.stop() == 0


def test_a_container_without_a_graph_exits_with_64(tmp_path):
    code, output, errors = run(tmp_path, module=SERVER_PROGRAM)
    assert (code, output) == (64, "")
    assert "OMNIGRAPH_TARGET_URI" in errors
