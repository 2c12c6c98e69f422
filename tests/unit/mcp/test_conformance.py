"""The conformance runner of the protocol against a running server; it needs npm and takes its packages from there.

The other scenarios of the runner call tools of a test server: images, audio, sampling, elicitation, logging and
subscriptions, which this server does not offer.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from support.server import ServerUnderTest, serving

PACKAGES = ("@modelcontextprotocol/conformance@0.1.16", "node@22")
SCENARIOS = (
    "server-initialize",
    "ping",
    "completion-complete",
    "tools-list",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
)


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the installed packages."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("npm")
    subprocess.run([npm, "install", "--prefix", folder, "--no-audit", *PACKAGES], check=True, capture_output=True)
    return folder / "node_modules"


@pytest.fixture
def server(graph: og.Graph) -> Iterator[ServerUnderTest]:
    with serving(graph.uri) as running:
        yield running


@pytest.mark.long
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(modules, server, tmp_path, scenario):
    runner = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    done = subprocess.run(
        [modules / "node" / "bin" / "node", runner, "server", "--url", f"{server.url}/mcp", "--scenario", scenario],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 failed" in done.stdout
