"""Long operations are logged on a terminal only."""

from __future__ import annotations

import io
import logging

import pytest

from omnigraph.cli.io import progress_log
from support.writes import edge, new_graph, node


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def log():
    """The logger, restored after the test."""
    log = logging.getLogger(progress_log._LOGGER)
    before, level = list(log.handlers), log.level
    yield log
    log.handlers[:], log.level = before, level


@pytest.mark.parametrize(
    ("stream", "quiet", "lines"), [(Terminal, False, 4), (Terminal, True, 0), (io.StringIO, False, 0)]
)
def test_adjacency_build_is_logged_on_a_terminal(tmp_path, monkeypatch, tune, log, stream, quiet, lines):
    shown = stream()
    monkeypatch.setattr("sys.stderr", shown)
    tune(adjacency_log_edges_min=2)
    progress_log.log_long_operations(quiet=quiet)
    progress_log.log_long_operations(quiet=quiet)
    schema = "node P { name: String @key }\nedge Knows: P -> P\n"
    graph = new_graph(
        tmp_path, schema, *(node("P", name=n) for n in "ab"), edge("Knows", "a", "b"), edge("Knows", "b", "a")
    )
    graph.query("query q() { match { $a: P $a knows $b } return { $a.name } }").to_rows()
    told_lines = shown.getvalue().splitlines()
    assert len(told_lines) == lines
    if lines:
        assert "resolving the ends of 2 edges …" in told_lines[0]
        assert "building the CSR of 2 edges: " in told_lines[-1]
