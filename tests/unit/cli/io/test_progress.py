"""Progress: only on a terminal, only on stderr, and never when it was not wanted."""

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
    """Exit code, stdout, and what a terminal on stderr got."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "omnigraph", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, check=False, timeout=120)
    os.close(theirs)
    seen = b""
    try:
        while piece := os.read(ours, 65_536):
            seen += piece
    except OSError:
        pass  # the terminal was closed at the other end: all of it was read
    os.close(ours)
    return done.returncode, done.stdout.decode(), seen.decode()


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clean_environment: None) -> list[str]:
    monkeypatch.chdir(tmp_path)
    Path("s.pg").write_text(SCHEMA)
    Path("p.jsonl").write_text('{"type": "Person", "data": {"name": "Ana"}}\n')
    assert run(["init", "--schema", "s.pg", "g.omni"]) == 0
    return ["load", "-d", "p.jsonl", "--mode", "merge"]


def test_a_terminal_sees_what_is_going_on(words):
    code, out, seen = on_a_terminal(words)
    assert (code, out) == (0, "load g.omni branch=main mode=merge: 1 node in 1 type, 0 edges in 0 types\n")
    assert "loading onto main" in seen


@pytest.mark.parametrize("flag", ["--quiet", "--json"])
def test_not_when_it_is_not_wanted(words, flag):
    code, out, seen = on_a_terminal([*words, flag])
    assert code == 0
    assert out
    assert "loading onto main" not in seen
