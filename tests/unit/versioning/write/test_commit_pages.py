"""Listing commits in pages, with filters, without reading the whole history."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.errors import PageCursorRejected
from omnigraph.versioning.write import repository
from support.writes import new_graph, node

SCHEMA = "node P { name: String @key  n: I64? }"


@pytest.fixture
def graph(tmp_path) -> og.Graph:
    graph = new_graph(tmp_path, SCHEMA)
    for at in range(6):
        graph.load([node("P", name=f"p{at}")], mode="merge", actor=f"a{at % 2}")
    graph.branch_create("work")
    graph.on("work").mutate('insert P { name: "w" }', actor="a1")
    graph.load([node("P", name="m")], mode="merge")
    graph.merge("work")
    return graph


def reopened(graph: og.Graph) -> og.Graph:
    return og.open(graph.uri, sync=False, environ={})


def test_pages_hold_all_commits_in_order(graph, monkeypatch):
    every = [commit.id for commit in graph.commits()]
    assert len(every) == 10
    assert [commit.manifest_version for commit in graph.commits()] == sorted(
        (commit.manifest_version for commit in graph.commits()), reverse=True
    )
    monkeypatch.setattr(repository, "_COMMITS_AT_ONCE", 1)
    for one in (graph, reopened(graph)):
        for limit in (1, 3, 10, 20):
            found: list[str] = []
            while page := one.commits(limit=limit, after=found[-1] if found else None):
                assert len(page) <= limit
                found += [commit.id for commit in page]
            assert found == every
    assert [commit.id for commit in reopened(graph).commits("work", limit=2)] == [
        commit.id for commit in graph.commits("work")[:2]
    ]
    assert reopened(graph).commits(limit=0) == []


def test_few_commits_are_read_without_the_rest(graph, monkeypatch):
    monkeypatch.setattr(repository, "_COMMITS_AT_ONCE", 2)
    read: list[tuple[int, int]] = []
    between = repository.Repository.commits_between

    def noting(self, state, low, high):
        read.append((low, high))
        return between(self, state, low, high)

    monkeypatch.setattr(repository.Repository, "commits_between", noting)
    one = reopened(graph)
    newest = one.snapshot().commit.manifest_version
    assert len(one.commits(limit=1)) == 1
    assert read == [(newest - 2, newest)]


def test_filters_select_commits_before_the_limit(graph):
    for one in (graph, reopened(graph)):
        assert [commit.kind for commit in one.commits(kind="merge")] == ["merge"]
        assert {commit.actor for commit in one.commits(actor="a1")} == {"a1"}
        assert len(one.commits(actor="a1")) == 4
        assert len(one.commits(actor="a1", kind="load", limit=2)) == 2
        first = one.commits(actor="a1", limit=1)
        rest = one.commits(actor="a1", after=first[0].id)
        assert [*first, *rest] == one.commits(actor="a1")
        assert one.commits(kind="nothing") == []


def test_commit_of_another_history_is_refused(graph):
    graph.on("work").mutate('insert P { name: "later" }')
    other = graph.snapshot("work").commit_id
    for after in (other, "01ARZ3NDEKTSV4RRFFQ69G5FAV", ""):
        with pytest.raises(PageCursorRejected, match="is not in the history of branch 'main'"):
            graph.commits(after=after)
    with pytest.raises(PageCursorRejected, match="is not in the history of P 'p1'"):
        list(graph.history("P", "p1", after=other))


def test_history_continues_after_a_commit(graph):
    for n in range(3):
        graph.mutate(f'update P set {{ n: {n} }} where name = "p1"')
    every = list(graph.history("P", "p1"))
    assert len(every) == 4
    for at, change in enumerate(every):
        assert list(graph.history("P", "p1", after=change.commit.id)) == every[at + 1 :]
