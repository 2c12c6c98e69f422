"""The demonstration is reproducible and complete."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

import pytest

from omnigraph.cli.main import run
from omnigraph.demo.build import BRANCH, CONTESTED, build_demo
from omnigraph.demo.records import make_records
from omnigraph.errors import Conflict, MergeConflict


def test_equal_seeds_give_equal_records():
    first, again, other = ([*make_records(notes=200, seed=seed)] for seed in (1, 1, 2))
    assert first == again != other
    digest = hashlib.sha256("\n".join(json.dumps(record) for record in make_records()).encode()).hexdigest()
    assert digest == "287b9614524cdf3429993ea575028e9f35e68781c8270c870f6d8dff4ec8ea43"


def test_records_have_distinct_texts():
    records = [*make_records()]
    kinds = Counter("edge" if "edge" in record else record["type"] for record in records)
    assert kinds["Note"] == 3000
    texts = {record["data"]["text"] for record in records if record.get("type") == "Note"}
    assert len(texts) > 2000


def test_branch_is_ahead_with_one_conflict(tmp_path):
    said: list[str] = []
    demo = build_demo(tmp_path / "demo", notes=60, environ={}, progress=said.append)
    graph = demo.graph
    assert len(said) == 3
    assert graph.branches() == ["main", BRANCH]
    assert {change.op for change in graph.diff("main", BRANCH)} == {"insert", "update", "delete"}
    with pytest.raises(MergeConflict) as caught:
        graph.merge(BRANCH)
    assert [(c.table_key, c.row_id) for c in caught.value.conflicts] == [("node:Project", CONTESTED)]
    found = graph.query(tmp_path / "demo/station.gq", "recall", {"question": "a storm"})
    assert len(found) == 5
    assert graph.verify() == []
    with pytest.raises(Conflict, match="is not empty"):
        build_demo(tmp_path / "demo", notes=60, environ={})


def test_program_off_the_path_prints_export_line(tmp_path, monkeypatch, capsys):
    program = tmp_path / "bin" / "omnigraph"
    program.parent.mkdir()
    program.write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(program)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert run(["demo", "there", "--notes", "5", "--quiet"]) == 0
    assert f"try:\n  export PATH={program.parent}:$PATH\n  cd there\n" in capsys.readouterr().out


def test_demo_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "there", "--notes", "20", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["branches"] == ["main", BRANCH]
    assert document["conflict"] == f"node:Project:{CONTESTED}"
    assert run(["demo", "there"]) == 1
    assert "is not empty" in capsys.readouterr().err


def test_graph_is_built_at_another_address(tmp_path, capsys):
    graph = tmp_path / "elsewhere.omni"
    assert run(["demo", str(tmp_path / "demo"), "--notes", "5", "--uri", str(graph), "--quiet"]) == 0
    assert not (tmp_path / "demo" / "station.omni").exists()
    assert run(["--config", str(tmp_path / "demo/omnigraph.yaml"), "snapshot"]) == 0
    assert "node:Note" in capsys.readouterr().out
