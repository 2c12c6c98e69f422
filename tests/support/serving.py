"""Servers for tests: a small graph, configurations, and programs as real processes on a free port."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import omnigraph as og
from support.commands import SCHEMA

WAIT_S = 60.0
"""The bound of every wait; no test depends on its value."""
POLICY = """version: 1
groups:
  team: [ana]
rules:
  - id: team-reads
    allow:
      actors: { group: team }
      actions: [read]
"""


def make_graph(path: Path, *names: str) -> Path:
    """Create a graph of persons."""
    graph = og.init(path, SCHEMA, sync=False)
    if names:
        graph.load([{"type": "Person", "data": {"name": name}} for name in names], mode="append")
    return path


def wait_for(condition: Callable[[], bool], what: str = "the condition") -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen within {WAIT_S:g} s")
        time.sleep(0.01)
