"""The command line on a bucket: URIs, intents, and confirmation before remote data is destroyed."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from omnigraph.cli.main import run

SCHEMA = "node Person {\n    name: String @key\n}\n"


@pytest.fixture
def uri(s3, tmp_path, monkeypatch, clean_environment):
    monkeypatch.chdir(tmp_path)
    for name, value in s3.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    Path("s.pg").write_text(SCHEMA)
    Path("p.jsonl").write_text('{"type": "Person", "data": {"name": "Ana"}}\n')
    return s3.new_place()


def test_commands_on_a_graph_in_a_bucket(uri, capsys):
    assert run(["init", "--schema", "s.pg", uri]) == 0
    assert f"uri: {uri}" in Path("omnigraph.yaml").read_text(), "the configuration goes to the working directory"
    assert run(["load", "-d", "p.jsonl", "--mode", "merge"]) == 0
    assert f"note: load writes to {uri} (remote storage)" in capsys.readouterr().err
    assert run(["read", "-e", "match { $p: Person } return { $p.name }", "-f", "csv"]) == 0
    assert capsys.readouterr().out == "p.name\nAna\n"
    assert run(["verify"]) == 0


def test_destructive_commands_require_confirmation(uri, capsys):
    assert run(["init", "--schema", "s.pg", uri]) == 0
    assert run(["branch", "create", "x"]) == 0
    for words in (
        ["branch", "delete", "x"],
        ["load", "-d", "p.jsonl", "--mode", "overwrite"],
        ["cleanup", "--keep", "1", "--confirm"],
    ):
        capsys.readouterr()
        assert run([*words, "--json"]) == 1
        printed = capsys.readouterr()
        assert json.loads(printed.out)["reason"] == "not_confirmed"
        assert uri in printed.err
        assert run(["--yes", *words]) == 0, words
