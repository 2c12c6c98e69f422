"""A graph behind a real server on the loopback interface."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import omnigraph as og


@contextmanager
def served_graph(folder: Path, environ: Mapping[str, str]) -> Iterator[og.RemoteGraph]:
    """Serve a graph for one user and yield a connection to it."""
    command = [sys.executable, "-m", "omnigraph", "serve", str(folder), "--local"]
    variables = {**environ, "OMNIGRAPH_SERVER_BIND": "127.0.0.1:0", "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=variables, cwd=folder.parent, stdout=subprocess.PIPE, text=True) as server:
        timer = threading.Timer(60, server.kill)
        timer.start()
        try:
            assert server.stdout is not None
            address, token = (server.stdout.readline().strip() for _ in range(2))
            with og.connect(f"http://{address.partition('=')[2]}", token=token.removeprefix("token: ")) as graph:
                yield graph
        finally:
            timer.cancel()
            server.kill()
