"""Rules that depend on the owner of a branch, over HTTP: the graph decides, because the gate knows no owner."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from support.server import Reply, ServerUnderTest, serving

POLICY = """\
version: 2
groups: { staff: [ana, bo] }
protected_branches: [main]
rules:
  - id: staff-reads
    allow: { actors: { group: staff }, actions: [read, branch_create] }
  - id: own-branches
    allow: { actors: { group: staff }, actions: [change, branch_delete], when: 'resource.owner == principal.id' }
"""
TOKENS = {"ana": "ana-token", "bo": "bo-token", "eve": "eve-token"}
ADD = 'query a() { insert Person { name: "Ada" } }'


@pytest.fixture
def owned(tmp_path: Path) -> Iterator[ServerUnderTest]:
    graph = og.init(tmp_path / "g.omni", "node Person { name: String @key }")
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    (tmp_path / "omnigraph.yaml").write_text("policy:\n  file: policy.yaml\n", encoding="utf-8")
    environ = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps(TOKENS)}
    with serving(graph.uri, config=tmp_path / "omnigraph.yaml", environ=environ, token=TOKENS["ana"]) as running:
        yield running


def as_actor(actor: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[actor]}"}


def change(server: ServerUnderTest, actor: str, branch: str) -> Reply:
    return server.post("/mutate", {"query": ADD, "branch": branch}, headers=as_actor(actor))


def test_only_the_owner_changes_and_deletes_a_branch(owned: ServerUnderTest) -> None:
    created = owned.post("/branches", {"name": "a"})
    assert created.status == 200, created.body
    assert change(owned, "ana", "a").status == 200
    for actor, branch in (("bo", "a"), ("ana", "main"), ("ana", "missing"), ("eve", "a")):
        assert change(owned, actor, branch).status == 403, (actor, branch)
    assert owned.request("DELETE", "/branches/a?force=true", headers=as_actor("bo")).status == 403
    assert owned.request("DELETE", "/branches/a?force=true").status == 200
