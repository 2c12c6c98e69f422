"""Fixtures of the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.cli.main import run
from support.commands import QUERIES, RECORDS, SCHEMA, Cli, jsonl


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "s.pg").write_text(SCHEMA)
    (tmp_path / "q.gq").write_text(QUERIES)
    (tmp_path / "people.jsonl").write_text(jsonl(*RECORDS))
    monkeypatch.chdir(tmp_path)
    for variable in ("OMNIGRAPH_CONFIG", "OMNIGRAPH_ACTOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command line; returns exit code, stdout and stderr."""

    def run_cli(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(list(words))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run_cli


@pytest.fixture
def graph(folder: Path, cli: Cli) -> Path:
    """A loaded graph, and an omnigraph.yaml that names it."""
    assert cli("init", "--schema", "s.pg", "g.omni")[0] == 0
    assert cli("load", "-d", "people.jsonl", "--mode", "merge")[0] == 0
    return folder / "g.omni"
