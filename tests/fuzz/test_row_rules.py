"""No request, however odd, gets an answer that contains a value of a row that rules hide from its caller."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.server.auth.tokens import new_token
from support.http_fuzz import fuzz
from support.server import serving
from support.tenants import READ, SCHEMA, Tenants, make_person, short_event_streams

CANARY = "zebraword"
NUMBER = 918_273_645
POLICY = """version: 2
rows: { default: allow }
rules:
  - { id: work, allow: { actors: { any: true }, role: maintainer } }
  - { id: more, allow: { actors: { any: true }, actions: [change, schema_apply, branch_create, branch_delete, admin] } }
  - id: bad-mood
    deny: { actors: { any: true }, actions: [row_read], types: [Person],
            when: 'resource has mood && resource.mood == "bad"' }
"""
SERVER_POLICY = """version: 1
groups: {all: [root]}
rules:
  - { id: all, allow: { actors: { group: all }, actions: [graph_list, audit_read, admin] } }
"""


def make_graph(path: Path) -> og.Graph:
    graph = og.init(path, SCHEMA, sync=False)
    hidden = [make_person(f"{CANARY}-{n}", f"{CANARY}{n}") for n in range(3)]
    for person in hidden:
        person["data"] |= {"mood": "bad", "age": NUMBER, "far": NUMBER * 1_000_003}
    edges = [{"edge": "Knows", "from": "pia", "to": to, "data": {"since": 1}} for to in ("pat", f"{CANARY}-0")]
    graph.load([make_person("pia"), make_person("pat"), *hidden, *edges], mode="merge", message="first")
    for branch in ("public", "hidden"):
        graph.branch_create(branch)
        graph.on(branch).load([make_person(f"{branch}-1")], mode="merge", message=branch)
    graph.mutate(f'update Person set {{ age: {NUMBER + 1} }} where name = "{CANARY}-1"')
    graph.tag_create("shown")
    graph.tag_create("release")
    return graph


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    folder = tmp_path_factory.mktemp("fuzz")
    graph = make_graph(folder / "a.omni")
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "server.yaml").write_text(SERVER_POLICY)
    (folder / "omnigraph.yaml").write_text(
        "graphs: {a: {uri: ./a.omni}}\npolicy: {file: policy.yaml}\n"
        "server:\n  graphs: [a]\n  default_graph: a\n  policy: {file: server.yaml}\n"
        "  log: {level: error}\n"
    )
    token = new_token()
    environ = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"root": token})}
    commits = tuple(commit.id for commit in graph.commits(limit=3))
    page = graph.query(READ, page=1).next
    data = json.dumps(make_person("new"))
    mine = {"branch": "public", "commit_id": commits[0], "type": "Person", "id": "pat", "query": READ, "data": data}
    foreign: dict[str, Any] = dict.fromkeys(("commit_id", "snapshot", "at", "from", "to", "before"), commits)
    foreign |= dict.fromkeys(("after", "cursor", "page_token"), (page, *commits))
    foreign |= {"start": tuple(f"after:{commit}" for commit in commits), "id": (f"{CANARY[:5]}-1", "pia")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("omnigraph.server.exchange.MIN_COMMIT_WAIT_S", 0.0)
        with short_event_streams(), serving(config=folder / "omnigraph.yaml", environ=environ) as server:
            yield Tenants(server, folder, {"root": token}, mine, foreign)


def check(route: str, headers: Mapping[str, Any], body: bytes) -> None:
    """Check that an answer contains no hidden value."""
    shown = f"{dict(headers)}{body.decode('utf-8', 'replace')}"
    for secret in (CANARY, str(NUMBER), str(NUMBER + 1), str(NUMBER * 1_000_003)):
        assert secret not in shown, f"{route}: {shown[:2000]}"


def test_no_answer_contains_a_hidden_value(site: Tenants) -> None:
    outcome = fuzz(site, phases=("examples", "fuzzing"), examples=5, header_routes=(), inspect=check)
    assert not outcome.failures, outcome.report()
    assert outcome.total >= 300
    assert outcome.statuses[200] >= 50


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_no_answer_of_many_contains_a_hidden_value(site: Tenants, seed: int) -> None:
    outcome = fuzz(
        site, phases=("coverage", "fuzzing", "stateful"), examples=50, seed=seed, deterministic=False, inspect=check
    )
    assert not outcome.failures, outcome.report()
