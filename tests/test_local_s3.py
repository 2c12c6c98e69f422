"""scripts/local-s3.py, run for real, and the server of the compose file on its store."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.deployment import ROOT, read_compose
from support.serving import WAIT_S, environment, program, request

SCRIPT = ROOT / "scripts" / "local-s3.py"
ENTRY = "omnigraph.cli.commands.serve.server_program"
TOKEN = "a-token-of-this-test"
CHANGE = '{"query": "query close() { delete Project where code = \\"harbour-watch\\" }"}'

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


@contextmanager
def script(folder: Path, **variables: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Run the script until its server listens; yields the process and the variables that it printed."""
    given = {"WORKDIR": str(folder / "store"), "BIND": "127.0.0.1:0", **variables}
    with (folder / "errors").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT)],
            env=environment(**given),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    timer = threading.Timer(2 * WAIT_S, process.terminate)
    timer.start()
    printed: dict[str, str] = {}
    try:
        for line in process.stdout:
            name, _, value = line.strip().removeprefix("export ").partition("=")
            printed[name] = value
            if name == "OMNIGRAPH_LISTEN_ADDR":
                break
        assert "OMNIGRAPH_LISTEN_ADDR" in printed, (folder / "errors").read_text()
        yield process, printed
    finally:
        timer.cancel()
        if process.poll() is None:
            process.terminate()
        process.wait(2 * WAIT_S)
        process.stdout.close()


def rows(address: str, table: str) -> int:
    """Return the number of rows of a table."""
    tables = request(address, "/snapshot").document["tables"]
    return {found["table_key"]: found["row_count"] for found in tables}[table]


def refuses_connections(endpoint: str) -> bool:
    host, _, port = endpoint.removeprefix("http://").partition(":")
    try:
        socket.create_connection((host, int(port)), WAIT_S).close()
    except ConnectionRefusedError:
        return True
    return False


def test_script_serves_the_demonstration_and_stops(tmp_path):
    with script(tmp_path) as (process, printed):
        projects = rows(printed["OMNIGRAPH_LISTEN_ADDR"], "node:Project")
        assert projects > 1
        serve_as_compose(tmp_path, {name: value for name, value in printed.items() if name.startswith("AWS_")})
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0
    assert refuses_connections(printed["AWS_ENDPOINT_URL_S3"]), "the store has ended"
    with script(tmp_path) as (process, printed):
        assert rows(printed["OMNIGRAPH_LISTEN_ADDR"], "node:Project") == projects - 1, "the data is kept"
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0


def serve_as_compose(folder: Path, store: dict[str, str]) -> None:
    """Run the `server` service of the compose file as a process, on the store of the script."""
    compose = read_compose({"OMNIGRAPH_TOKEN": TOKEN})
    for name in ("omnigraph.yaml", "policy.yaml"):
        (folder / name).write_text(compose["configs"][name]["content"], encoding="utf-8")
    service = compose["services"]["server"]["environment"]
    variables = {**service, **store, "OMNIGRAPH_CONFIG": str(folder / "omnigraph.yaml"), "OMNIGRAPH_BIND": "0.0.0.0:0"}
    with program(folder, module=ENTRY, **variables) as server:
        address = server.address.replace("0.0.0.0", "127.0.0.1")
        assert request(address, "/snapshot").status == 401
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        changed = request(address, "/mutate", method="POST", headers=headers, body=CHANGE)
        assert changed.status == 200, changed.body
        assert server.stop() == 0


def test_script_refuses_a_folder_of_others(tmp_path):
    (tmp_path / "thesis.txt").write_text("kept")
    found = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env={**os.environ, "WORKDIR": str(tmp_path), "RESET": "1"},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert found.returncode == 1
    assert "was not created by this script" in found.stderr
    assert (tmp_path / "thesis.txt").read_text() == "kept"
