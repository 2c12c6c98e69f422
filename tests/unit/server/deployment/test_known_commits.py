"""Commits that a process has seen."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.server.deployment import known_commits
from support.guarded_server import TOKEN, guarded
from support.server import serving

MERGES = """version: 1
groups: {team: [ana]}
protected_branches: [main]
rules:
  - id: team-merges
    allow: {actors: {group: team}, actions: [branch_merge], target_branch_scope: protected}
  - id: team-drafts
    allow: {actors: {group: team}, actions: [read, change], branch_scope: unprotected}
"""


@pytest.fixture
def graph(tmp_path):
    return og.init(tmp_path / "g.omni", "node Person { name: String @key }")


def test_a_commit_is_looked_up_once(graph, monkeypatch):
    monkeypatch.setattr(known_commits, "COMMITS_MAX", 2)
    with serving(graph.uri, flags={"unauthenticated": True}) as running:
        commits = [graph.mutate(f'insert Person {{ name: "{n}" }}').commit_id for n in range(3)]
        for commit_id in commits:
            for _ in range(2):
                reply = running.get("/snapshot", headers={"Omnigraph-Min-Commit": commit_id})
                assert reply.status == 200
        assert len(running.app.server.known_commits._branches) == 2


def test_an_actor_that_may_only_merge_sees_its_commit(graph):
    graph.branch_create("draft")
    graph.mutate('insert Person { name: "a" }', branch="draft")
    with guarded(graph, MERGES) as running, og.connect(running.url, token=TOKEN, branch="draft") as remote:
        merged = remote.merge("draft", "main")
        assert remote._loop.session.min_commit == merged.commit_id
        assert len(remote.query("match { $p: Person } return { $p.name }")) == 1
