"""Pages of a diff: order, cursors and their refusal."""

from __future__ import annotations

from datetime import timedelta

import pytest

import omnigraph as og
from omnigraph.errors import Cancelled, InputError, PageCursorRejected, PageGone
from omnigraph.versioning.compare import diff
from omnigraph.versioning.upkeep import maintenance
from support.writes import edge, new_graph, node

SCHEMA = """
node P { name: String @key  n: I64? }
node Q { name: String @key }
edge Knows: P -> P
"""
LONG = "x" * 400


@pytest.fixture
def graph(tmp_path) -> og.Graph:
    graph = new_graph(tmp_path, SCHEMA, *(node("P", name=f"p{at}", n=at) for at in range(9)))
    graph.branch_create("work")
    work = graph.on("work")
    work.load([node("P", name=f"p{at}", n=-at) for at in range(1, 5)], mode="merge")
    work.load([node("Q", name=LONG + name) for name in "abc"] + [edge("Knows", "p1", "p2", id_="e")], mode="append")
    work.mutate('delete P where name = "p7"')
    return graph


def pages(graph: og.Graph, limit: int, **how) -> list[list[str]]:
    found, after = [], None
    while True:
        page = graph.diff("main", "work", limit=limit, after=after, **how)
        found.append([f"{change.table_key} {change.id}" for change in page])
        after = page.next
        if after is None:
            return found


@pytest.mark.parametrize("rows_max", [200_000, 2])
def test_pages_hold_the_changes_of_the_diff_in_order(graph, monkeypatch, rows_max):
    monkeypatch.setattr(diff.split_ids, "__defaults__", (rows_max,))
    expected = [f"{change.table_key} {change.id}" for change in graph.diff("main", "work")]
    assert len(expected) == 9
    for limit in (1, 2, 4, 9, 100):
        found = pages(graph, limit)
        assert [change for page in found for change in page] == expected
        assert all(len(page) == limit for page in found[:-1])
        assert found[-1]


def test_pages_apply_the_filter(graph):
    assert pages(graph, 2, types=["P"], ops=["update"]) == [["node:P p1", "node:P p2"], ["node:P p3", "node:P p4"]]
    assert pages(graph, 5, kinds=["edge"]) == [["edge:Knows e"]]
    assert pages(graph, 5, types=["P"], ops=["insert"]) == [[]]


def test_cursor_continues_at_its_commits_after_later_writes(graph):
    first = graph.diff("main", "work", limit=4)
    rest = [change.id for change in graph.diff("main", "work")][4:]
    graph.on("work").load([node("P", name="new")], mode="merge")
    graph.mutate('delete P where name = "p8"')
    second = graph.diff("main", "work", limit=100, after=first.next)
    assert [change.id for change in second] == rest
    assert second.next is None
    assert list(second) == list(second)


def test_wrong_cursor_is_refused(graph, tmp_path):
    cursor = graph.diff("main", "work", limit=2).next
    assert cursor is not None
    for request in (
        lambda: graph.diff("work", "main", limit=2, after=cursor),
        lambda: graph.diff("main", "work", limit=2, after=cursor, types=["P"]),
        lambda: graph.diff("main", "work", limit=2, after=cursor[:-8] + "AAAAAAAA"),
        lambda: graph.diff("main", "work", limit=2, after="nonsense"),
        lambda: graph.diff("main", "work", limit=2, after=graph.changes().cursor),
        lambda: new_graph(tmp_path / "other", SCHEMA).diff("main", "work", limit=2, after=cursor),
    ):
        with pytest.raises(PageCursorRejected, match="page cursor rejected"):
            request()
    for limit in (None, 0, True, "3"):
        with pytest.raises(InputError, match="limit") as caught:
            graph.diff("main", "work", limit=limit, after=cursor)
        assert caught.value.code == "bad_page"


def test_page_of_a_removed_commit_is_gone(graph):
    graph.mutate('update P set { n: 40 } where name = "p1"')
    first, old = graph.diff("main", "work", limit=2), graph.snapshot().commit_id
    graph.mutate('update P set { n: 50 } where name = "p1"')
    maintenance.cleanup(graph._repository, keep=1, confirm=True, grace=timedelta(0))
    with pytest.raises(PageGone) as caught:
        og.open(graph.uri, environ={}).diff("main", "work", limit=2, after=first.next)
    assert caught.value.commit_id == old


def test_page_stops(graph):
    stopped = og.Cancellation()
    stopped.cancel()
    with pytest.raises(Cancelled):
        graph.diff("main", "work", limit=2, cancel=stopped)
