"""Progress is shown only on a terminal, on stderr, and not with `--quiet` or `--json`."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.cli.main import run

SCHEMA = "node Person {\n    name: String @key\n}\n"


def on_a_terminal(words: list[str]) -> tuple[int, str, str]:
    """Run a command with a terminal as stderr; return exit code, stdout and terminal output."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "omnigraph", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, check=False, timeout=120)
    os.close(theirs)
    seen = b""
    try:
        while piece := os.read(ours, 65_536):
            seen += piece
    except OSError:
        pass  # the other end of the terminal was closed after all output was read
    os.close(ours)
    return done.returncode, done.stdout.decode(), seen.decode()


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clean_environment: None) -> list[str]:
    monkeypatch.chdir(tmp_path)
    Path("s.pg").write_text(SCHEMA)
    Path("p.jsonl").write_text('{"type": "Person", "data": {"name": "Ana"}}\n')
    assert run(["init", "--schema", "s.pg", "g.omni"]) == 0
    return ["load", "-d", "p.jsonl", "--mode", "merge"]


def test_progress_is_shown_on_a_terminal(words):
    code, out, seen = on_a_terminal(words)
    assert (code, out) == (0, "load g.omni branch=main mode=merge: 1 node in 1 type, 0 edges in 0 types\n")
    assert "loading onto main" in seen


@pytest.mark.parametrize("flag", ["--quiet", "--json"])
def test_quiet_and_json_suppress_progress(words, flag):
    code, out, seen = on_a_terminal([*words, flag])
    assert code == 0
    assert out
    assert "loading onto main" not in seen
