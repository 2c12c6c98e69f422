"""A graph with a policy answers like one without, or denies the call as the rules define."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import Denied, OmniGraphError
from omnigraph.graph import Graph
from omnigraph.operations.authorization.access import Access
from omnigraph.policy import Policy, parse_rules
from support.policies import evaluate
from support.writes import SHELVES, beside, new_graph, shelf

ALL = "match { $s: Shelf } return { $s.code, $s.cap } order { $s.code }"
READS: dict[str, tuple[str, Callable[..., Any]]] = {
    "query": ("read", lambda g, **k: list(g.query(ALL, **k))),
    "pages": ("read", lambda g, **k: [list(page) for page in g.pages(ALL, page=1, **k)]),
    "get": ("read", lambda g, **k: g.get("Shelf", "a", **k)),
    "snapshot": ("read", lambda g, **k: g.snapshot(**k).to_json()),
    "explain": ("read", lambda g, **k: str(g.explain(ALL, **k))),
    "history": ("read", lambda g, **k: list(g.history("Shelf", "a", **k))),
    "blame": ("read", lambda g, **k: g.blame("Shelf", "a", **k)),
    "catalog": ("read", lambda g, **k: g.catalog(**k).nodes.keys()),
    "export": ("export", lambda g, **k: list(g.export(**k))),
    "to_arrow": ("export", lambda g, **k: g.to_arrow("Shelf", **k).to_pylist()),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory) -> Graph:
    graph = new_graph(tmp_path_factory.mktemp("graph"), SHELVES, shelf("a"), shelf("b"), beside("a", "b", id_="e"))
    graph.tag_create("v1")
    graph.branch_create("draft")
    graph.load([shelf("a", cap=2), shelf("c")], mode="merge", branch="draft")
    graph.tag_create("v2", "draft")
    graph.load([shelf("a", cap=3)], mode="merge")
    graph.branch_create("empty", "draft")
    return graph


def policy_with(scopes: dict[str, str | None], protected: list[str]) -> Policy:
    rules = "rules:\n" if scopes else ""
    rules += "".join(
        f"  - {{id: {action}, allow: {{actors: {{group: g}}, actions: [{action}]"
        f"{f', branch_scope: {scope}' if scope else ''}}}}}\n"
        for action, scope in scopes.items()
    )
    return Policy(parse_rules(f"version: 1\ngroups: {{g: [ana]}}\nprotected_branches: {protected}\n{rules}"))


scopes = st.dictionaries(
    st.sampled_from(["read", "export"]), st.sampled_from([None, "any", "protected", "unprotected"]), max_size=2
)
protected = st.lists(st.sampled_from(["main", "draft", "empty", "missing"]), unique=True)
branches = st.sampled_from(["main", "draft", "empty", "missing"])
points = st.one_of(
    st.none(),
    st.sampled_from(["main", "draft", "empty", "missing", "v1", "v2", "v3"]),
    st.integers(0, 3).map(lambda position: ("commit", position)),
    st.integers(-1, 12),
)


def outcome(call: Callable[[], Any]) -> tuple[str, Any]:
    try:
        value = call()
    except Denied:
        raise
    except OmniGraphError as error:
        return type(error).__name__, error.message
    assert not isinstance(value, Iterator)
    return "answer", value


def judged_branches(graph: Graph, branch: str, at: Any) -> set[str]:
    """The branches that the specification judges: the one of the commit, and the one that the caller names."""
    named = at if isinstance(at, str) else branch
    try:
        snapshot = graph.snapshot(branch, at)
    except OmniGraphError:
        return {named}
    is_branch = not isinstance(at, str) or at in graph.branches()
    return {snapshot.commit.branch, *({named} if is_branch else ())}


@given(st.sampled_from(list(READS)), scopes, protected, branches, points)
def test_allowed_reads_answer_as_without_a_policy(graph, method, scopes, protected, branch, at):
    if isinstance(at, tuple):
        commits = graph.commits("draft")
        at = commits[at[1] % len(commits)].id
    action, read = READS[method]
    policy = policy_with(scopes, protected)
    judged = judged_branches(graph, branch, at)
    allowed = all(evaluate(policy.rules, "ana", action, name, None) for name in judged)
    access = Access(policy, "ana")
    guarded = graph.with_access(access)
    if not allowed:
        with pytest.raises(Denied):
            read(guarded, branch=branch, at=at)
        assert not access.decisions[-1].allowed
        return
    expected = outcome(lambda: read(graph, branch=branch, at=at))
    assert outcome(lambda: read(guarded, branch=branch, at=at)) == expected
    assert {decision.branch for decision in access.decisions} == judged
