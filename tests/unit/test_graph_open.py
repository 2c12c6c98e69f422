"""`og.open` with a policy: the decision table of the specification, files, actors and handles."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BranchNotFound, Denied, InputError, PolicyInvalid
from omnigraph.policy import Policy, parse_rules
from support.policies import EXAMPLE
from support.writes import SHELVES, new_graph, shelf

ALL = "match { $s: Shelf } return { $s.code }"


@pytest.fixture
def uri(tmp_path: Path) -> str:
    graph = new_graph(tmp_path, SHELVES, shelf("a"))
    for branch in ("intake/x", "scratch"):
        graph.branch_create(branch)
        graph.load([shelf(branch[0])], mode="merge", branch=branch)
    return graph.uri


CHANGE = 'delete Shelf where code = "none"'
TABLE = [
    ("act-visitor", lambda g: g.query(ALL), "everyone-reads"),
    ("act-visitor", lambda g: g.export(), None),
    ("act-maren", lambda g: g.mutate(CHANGE, branch="main"), None),
    ("act-maren", lambda g: g.mutate(CHANGE, branch="intake/x"), "curators-edit-drafts"),
    ("act-maren", lambda g: g.merge("intake/x", "main"), None),
    ("act-idris", lambda g: g.merge("intake/x", "main"), "registrar-publishes"),
    ("act-idris", lambda g: g.merge("intake/x", "scratch"), None),
    ("act-idris", lambda g: g.branches(), "curators-read"),
    ("act-nobody", lambda g: g.query(ALL), None),
]


def test_decision_table_of_the_specification(uri):
    policy = Policy(parse_rules(EXAMPLE))
    for actor, call, rule in TABLE:
        graph = og.open(uri, policy=policy, actor=actor)
        access = graph._context.access
        assert access is not None
        if rule is None:
            with pytest.raises(Denied) as caught:
                call(graph)
            assert ("unknown to the policy" in caught.value.message) == (actor == "act-nobody")
        else:
            call(graph)
        assert access.decisions[-1].matched_rule == rule


def test_a_policy_is_a_file_or_compiled(uri, tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(EXAMPLE)
    for policy in (path, str(path), Policy(parse_rules(EXAMPLE))):
        graph = og.open(uri, policy=policy, actor="act-visitor")
        assert len(graph.query(ALL)) == 1
        with pytest.raises(Denied):
            graph.mutate(CHANGE)


def test_an_invalid_policy_opens_nothing(uri, tmp_path):
    (tmp_path / "policy.yaml").write_text("version: 3")
    with pytest.raises(PolicyInvalid):
        og.open(uri, policy=tmp_path / "policy.yaml", actor="act-visitor")
    with pytest.raises(InputError, match="there is no file"):
        og.open(uri, policy=tmp_path / "missing.yaml", actor="act-visitor")


def test_without_an_actor_every_call_is_denied(uri):
    graph = og.open(uri, policy=Policy(parse_rules(EXAMPLE)))
    with pytest.raises(Denied, match="no actor was given"):
        graph.query(ALL)
    with pytest.raises(Denied):
        graph.mutate(CHANGE, branch="scratch", actor="act-maren")


def test_opening_a_branch_shows_its_absence_only_to_readers(uri):
    policy = Policy(parse_rules(EXAMPLE))
    with pytest.raises(BranchNotFound):
        og.open(uri, policy=policy, actor="act-visitor", branch="missing")
    for branch in ("missing", "main"):
        with pytest.raises(Denied):
            og.open(uri, policy=policy, actor="act-nobody", branch=branch).query(ALL)


def test_the_asynchronous_graph_enforces_the_policy(uri):
    async def run() -> None:
        policy = Policy(parse_rules(EXAMPLE))
        async with await og.aopen(uri, policy=policy, actor="act-visitor") as graph:
            assert len(await graph.query(ALL)) == 1
            with pytest.raises(Denied):
                await graph.mutate(CHANGE)
            with pytest.raises(Denied):
                async for _ in graph.changes_baseline():
                    pass
            other = await graph.on("scratch")
            assert other.actor == "act-visitor"
            with pytest.raises(Denied):
                await other.mutate(CHANGE)

    asyncio.run(run())
