"""`omnigraph serve` and `omnigraph-server`: options, usage errors, container variables, and what is imported."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from omnigraph.cli.commands.serve.server_program import container_arguments
from omnigraph.config_keys import SERVER_SETTINGS


@pytest.fixture(autouse=True)
def logging_of_the_test(folder) -> Iterator[None]:
    """Restore the log after a server has configured it."""
    root = logging.getLogger()
    handlers, level, own = root.handlers[:], root.level, logging.getLogger("omnigraph").level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("omnigraph").setLevel(own)
    logging.captureWarnings(False)


def test_help_lists_every_option(cli):
    code, output, _ = cli("serve", "--help")
    assert code == 0
    for setting in SERVER_SETTINGS:
        if setting.flag is not None:
            assert f"  {setting.flag}" in output


def test_a_uri_and_a_target_are_a_usage_error(cli):
    code, _, errors = cli("serve", "x.omni", "--target", "kb")
    assert code == 2
    assert "more than one graph was given: the URI 'x.omni', --target 'kb'" in errors


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["https://example.org"], "is a server; a server serves storage"),
        ([], "no graph was given to serve"),
        (["x.omni", "--bind", "nowhere"], "'server.bind' must be IP:PORT or unix:PATH, not 'nowhere'"),
        (["x.omni", "--bind", "0.0.0.0:0"], "can be reached from other machines"),
        (["x.omni", "--local", "--bind", "0.0.0.0:0"], "--local serves one user of this machine"),
        (["x.omni", "--tls-cert", "c.pem"], "must be given together"),
        (["x.omni", "--cors-origin", "*"], "'server.cors.origins' must name origins, not '*'"),
        (["x.omni", "--bind", "127.0.0.1:0"], "graph 'default' cannot be opened"),
    ],
)
def test_a_server_that_cannot_start_exits_with_1(cli, arguments: list[str], said: str):
    code, output, errors = cli("serve", *arguments)
    assert (code, output) == (1, "")
    assert said in errors


def test_a_busy_address_is_one_clear_error(cli, graph):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        address = f"127.0.0.1:{busy.getsockname()[1]}"
        code, output, errors = cli("serve", str(graph), "--bind", address, "--log-level", "error")
    assert (code, output) == (1, "")
    assert errors.splitlines()[0].endswith(f"cannot listen on '{address}': Address already in use")
    assert len(errors.splitlines()) == 2, errors


def test_the_socket_of_another_server_stays(cli, graph):
    path = graph.parent / "og.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as busy:
        busy.bind(str(path))
        busy.listen()
        code, _, errors = cli("serve", str(graph), "--bind", f"unix:{path}")
    assert (code, path.exists()) == (1, True)
    assert "cannot listen on 'unix:" in errors


@pytest.mark.parametrize(
    ("environ", "arguments"),
    [
        ({}, None),
        ({"OMNIGRAPH_TARGET_URI": "  "}, None),
        ({"OMNIGRAPH_TARGET_URI": "s3://b/g"}, ["s3://b/g", "--bind", "0.0.0.0:8080"]),
        ({"OMNIGRAPH_TARGET_URI": "g", "OMNIGRAPH_BIND": "1.2.3.4:5"}, ["g", "--bind", "1.2.3.4:5"]),
        ({"OMNIGRAPH_CONFIG": "og.yaml"}, ["--config", "og.yaml", "--bind", "0.0.0.0:8080"]),
        (
            {"OMNIGRAPH_CONFIG": "og.yaml", "OMNIGRAPH_TARGET": "kb"},
            ["--config", "og.yaml", "--target", "kb", "--bind", "0.0.0.0:8080"],
        ),
    ],
)
def test_variables_of_a_container(environ: dict[str, str], arguments: list[str] | None):
    assert container_arguments(environ) == arguments


def test_help_imports_no_server_code():
    script = (
        "import sys, omnigraph, omnigraph.cli.main\n"
        "print([name for name in sys.modules if name.startswith(('omnigraph.server', 'starlette', 'uvicorn'))])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.strip() == "[]"
