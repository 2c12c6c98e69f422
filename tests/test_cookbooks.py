"""The cookbooks in `examples/`: every stored query returns its rows, every change has its effect, every policy holds.

A case of `cases.jsonl` is a call of a stored query. A read has `rows`; a change has the numbers of changed nodes and
edges, and `then`, a read on the same branch.
"""

from __future__ import annotations

import json
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.cli.main import run
from omnigraph.graph import Graph
from omnigraph.schema.check import compile_schema

EXAMPLES = Path(__file__).parents[1] / "examples"
COOKBOOKS = ("literature", "platform")


@cache
def cases(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (EXAMPLES / name / "cases.jsonl").read_text(encoding="utf-8").splitlines()]


CALLS = [pytest.param(name, case, id=f"{name}-{case['query']}") for name in COOKBOOKS for case in cases(name)]


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Graph]:
    """Both graphs, with their data and their stored queries."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OMNIGRAPH_EMBED_PROVIDER", "local")
        environment.setenv("OMNIGRAPH_EMBED_MODEL", "local-hashed-ngrams-v1")
        return {name: build(tmp_path_factory.mktemp(name), EXAMPLES / name) for name in COOKBOOKS}


def build(folder: Path, source: Path) -> Graph:
    graph = og.init(folder / "graph.omni", (source / "schema.pg").read_text(encoding="utf-8"))
    graph.load(source / "data.jsonl", mode="merge")
    graph.store_query((source / "queries.gq").read_text(encoding="utf-8"))
    return graph


@pytest.fixture(autouse=True)
def local_embeddings(monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "local")
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "local-hashed-ngrams-v1")


@pytest.mark.parametrize(("name", "case"), CALLS)
def test_call(graphs, name, case):
    graph = graphs[name]
    if "then" not in case:
        assert graph.invoke(case["query"], case["params"]).to_rows() == case["rows"]
        return
    branch = f"try/{case['query']}"
    graph.branch_create(branch)
    changed, then = graph.on(branch).invoke(case["query"], case["params"]), case["then"]
    assert (changed.affected_nodes, changed.affected_edges) == (case["nodes"], case["edges"])
    assert graph.on(branch).invoke(then["query"], then["params"]).to_rows() == then["rows"]
    assert graph.invoke(then["query"], then["params"]).to_rows() != then["rows"]


@pytest.mark.parametrize("name", COOKBOOKS)
def test_every_query_has_a_case(graphs, name):
    stored = [query.name for query in graphs[name].queries()]
    assert sorted(case["query"] for case in cases(name)) == sorted(stored)
    assert len(stored) >= 40
    assert all(query.description for query in graphs[name].queries())


@pytest.mark.parametrize("name", COOKBOOKS)
def test_every_type_has_rows(graphs, name):
    catalog = compile_schema((EXAMPLES / name / "schema.pg").read_text(encoding="utf-8"))
    assert len(catalog.nodes) >= 12
    assert not [key for key, table in graphs[name].snapshot().tables.items() if table.pin.row_count == 0]


@pytest.mark.parametrize("name", COOKBOOKS)
def test_policy(name, monkeypatch, capsys):
    monkeypatch.chdir(EXAMPLES / name)
    assert run(["policy", "test", "--file", "policy.yaml", "--schema", "schema.pg"]) == 0
    assert "failed" not in capsys.readouterr().out


def test_agent_memory(capsys):
    """The example prints what its guide shows."""
    runpy.run_path(str(EXAMPLES / "agent_memory" / "memory.py"), run_name="__main__")
    guide = (EXAMPLES.parent / "docs" / "guides" / "agent-memory.md").read_text(encoding="utf-8")
    shown = guide.split("```text\n")[1].split("```")[0]
    assert capsys.readouterr().out == shown


def test_a_fact_without_a_source_does_not_land(tmp_path):
    memory = runpy.run_path(str(EXAMPLES / "agent_memory" / "memory.py"))["Memory"].create(tmp_path / "m.omni", "scout")
    draft = memory.revising("rumour")
    fact = {"slug": "x", "text": "Rumour.", "confidence": 0.1, "learned": "2026-01-01T00:00:00Z", "retracted": False}
    draft.graph.load([{"type": "Fact", "data": fact}], mode="merge")
    proposal = draft.propose("A rumour")
    with pytest.raises(og.errors.OmniGraphError, match="without_source"):
        proposal.land()
    assert memory.graph.invoke("recall", {"question": "rumour", "most": 1}).to_rows() == []


def test_policy_masks_phones(graphs):
    graph = og.open(graphs["platform"].uri, policy=EXAMPLES / "platform" / "policy.yaml", actor="help-desk")
    assert {row["p"] for row in graph.query("match { $e: Engineer } return { $e.phone as p }").to_rows()} == {None}
    plans = graph.query("match { $c: Customer } return distinct { $c.plan as plan } order { plan }").to_rows()
    assert [row["plan"] for row in plans] == ["enterprise", "team"]


def test_policy_hides_referees(graphs):
    graph = og.open(graphs["literature"].uri, policy=EXAMPLES / "literature" / "policy.yaml", actor="hanne")
    assert graph.query("match { $v: Review } return { count($v) as n }").to_rows() == [{"n": 3}]
    assert graph.query("match { $r refereed $v } return { $r.name }").to_rows() == []
