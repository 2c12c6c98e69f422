"""The server as a process: start, address, single-user mode, TLS, workers, signals, reload, container entry."""

from __future__ import annotations

import json
import os
import shlex
import signal
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.version import STORAGE_FORMAT
from support.serving import POLICY, WAIT_S, environment, make_graph, program, request
from support.tls import write_certificate
from support.waiting import wait_for

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and Unix sockets")
BIND = ("--bind", "127.0.0.1:0")
SERVER_PROGRAM = "omnigraph.cli.commands.serve.server_program"


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return make_graph(tmp_path / "kb.omni", "Ana", "Bo")


def bearer(token: str) -> dict[str, dict[str, str]]:
    return {"headers": {"Authorization": f"Bearer {token}"}}


def test_a_server_serves_until_a_signal(graph, tmp_path):
    variables = {
        "OMNIGRAPH_TARGET_URI": "kb.omni",
        "OMNIGRAPH_BIND": "0.0.0.0:0",
        "OMNIGRAPH_UNAUTHENTICATED": "1",
        "OMNIGRAPH_LOG_FORMAT": "json",
    }
    with program(tmp_path, module=SERVER_PROGRAM, **variables) as server:
        host, port = server.address.split(":")
        assert (host, port != "0") == ("0.0.0.0", True)
        assert request(f"127.0.0.1:{port}", "/readyz").document["status"] == "ready"
        tables = request(f"127.0.0.1:{port}", "/snapshot").document["tables"]
        assert {table["table_key"]: table["row_count"] for table in tables} == {"edge:Knows": 0, "node:Person": 2}
        assert server.stop() == 0
        events = [json.loads(line) for line in server.log.splitlines()]
    start = next(event for event in events if event["event"] == "start")
    assert (start["mode"], start["tokens"], start["actors"]) == ("open", "none", 0)
    assert start["version"] == og.__version__
    lines = {event["event"]: event for event in events}
    assert (lines["graph"]["head"], lines["graph"]["storage_stamp"]) == (
        og.open(graph).snapshot().commit_id,
        str(STORAGE_FORMAT),
    )
    assert lines["graph"]["policy"] is None
    assert lines["limits"]["body_bytes"] == 1 << 20
    assert lines["listen"]["address"] == server.address
    assert {event["route"] for event in events if event["event"] == "request"} == {"/snapshot"}
    warning = next(event for event in events if event["event"] == "warning")
    assert "EVERYBODY WHO REACHES 0.0.0.0:0 MAY READ AND CHANGE ALL SERVED GRAPHS" in warning["message"]


@pytest.mark.parametrize("workers", [1, 2])
def test_no_log_line_is_lost_at_the_end(graph, tmp_path, workers):
    variables = {"OMNIGRAPH_LOG_FORMAT": "json"}
    with program(tmp_path, "kb.omni", "--workers", str(workers), **variables) as server:
        for _ in range(50):
            assert server.get("/snapshot").status == 200
        assert server.stop() == 0
        lines = [json.loads(line) for line in server.log.splitlines()]
    assert sum(line["event"] == "request" and line["route"] == "/snapshot" for line in lines) == 50


def test_single_user_mode_prints_a_token_and_a_command(graph, tmp_path):
    path = tmp_path / "og.sock"
    with program(tmp_path, "kb.omni", "--local", "--bind", f"unix:{path}", lines=3) as server:
        assert server.address == f"unix:{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        token = server.lines[1].removeprefix("token: ")
        assert server.get("/snapshot").status == 401
        assert server.get("/snapshot", **bearer(token)).status == 200
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
    with program(tmp_path, "kb.omni", *BIND, "--drain-s", "600", **variables) as server:
        assert server.get("/snapshot", **bearer("first")).status == 200
        tokens.write_text('{"ana": "second"}')
        server.send(signal.SIGHUP)
        wait_for(lambda: server.get("/snapshot", **bearer("second")).status == 200, "the reload of tokens")
        assert server.get("/snapshot", **bearer("first")).status == 401
        policy.write_text("version: 1\nrules: nonsense\n")
        server.send(signal.SIGHUP)
        wait_for(lambda: "the previous state stays in force" in server.log, "the refusal of a broken policy")
        assert server.get("/snapshot", **bearer("second")).status == 200
        policy.write_text(POLICY.replace("ana", "bo"))
        wait_for(lambda: server.get("/snapshot", **bearer("second")).status == 403, "the reload of a changed file")
        server.send(signal.SIGTERM)
        wait_for(lambda: server.get("/readyz").status == 503)
        assert server.get("/readyz").document["reasons"] == ["shutting_down"]
        assert server.get("/snapshot", **bearer("second")).status == 403, "requests are answered during the drain"
        assert server.stop() == 1, "a second signal ends the process at once"


def common_name(address: str) -> str:
    """The name in the certificate that a server presents now."""
    host, port = address.split(":")
    pem = ssl.get_server_certificate((host, int(port)), timeout=WAIT_S)
    command = ["openssl", "x509", "-noout", "-subject"]
    return subprocess.run(command, input=pem, check=True, capture_output=True, text=True, timeout=WAIT_S).stdout


def test_tls_with_client_certificates_and_renewal(graph, tmp_path):
    write_certificate(tmp_path, "first")
    files = ("--tls-cert", "cert.pem", "--tls-key", "key.pem")
    with program(tmp_path, "kb.omni", *BIND, *files, "--tls-client-ca", "cert.pem") as server:
        context = ssl.create_default_context(cafile=tmp_path / "cert.pem")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            server.get("/readyz", context=context)
        context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
        assert server.get("/readyz", context=context).status == 200
        assert "first" in common_name(server.address)
        write_certificate(tmp_path, "second")
        server.send(signal.SIGHUP)
        wait_for(lambda: "second" in common_name(server.address), "the renewal")
        (tmp_path / "cert.pem").write_text("broken")
        server.send(signal.SIGHUP)
        wait_for(lambda: "cannot be loaded" in server.log, "the refusal of a broken certificate")
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


def test_a_container_without_a_graph_exits_with_64(tmp_path):
    found = subprocess.run(
        [sys.executable, "-m", SERVER_PROGRAM],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert (found.returncode, found.stdout) == (64, "")
    assert "OMNIGRAPH_TARGET_URI" in found.stderr
