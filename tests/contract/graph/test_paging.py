"""Answers in several parts, streams and stopped calls give the same in every form of a graph."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.client.calls import commits as commit_calls
from omnigraph.client.calls import diffs as diff_calls
from omnigraph.client.calls import histories as history_calls
from omnigraph.engine.exec.cancellation import Cancellation
from support.graph_variants import Body, Variants, failure

PEOPLE = "query people() { match { $p: Person } return { $p.name } order { $p.name asc } }"


@pytest.fixture
def small_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a client request one or two entries at a time."""
    monkeypatch.setattr(commit_calls, "LIST_MAX", 2)
    monkeypatch.setattr(commit_calls, "CHANGES_MAX", 2)
    monkeypatch.setattr(diff_calls, "LIST_MAX", 2)
    monkeypatch.setattr(history_calls, "PAGE", 1)


def parts(graph: Any) -> Any:
    whole = list(graph.history("Person", "ana"))
    return [
        graph.commits(),
        graph.commits(limit=3),
        graph.commits(kind="mutation"),
        graph.commit_changes(2),
        list(graph.diff(1, 2, limit=5)),
        list(graph.diff(1, 2, limit=1_000)),
        whole,
        list(graph.history("Person", "ana", after=whole[-2].commit.id)),
        next(iter(graph.history("Person", "bo"))),
    ]


def streams(graph: Any) -> Any:
    graph.branch_create("st/1")
    one = graph.on("st/1")
    cities = [{"type": "City", "data": {"name": f"{'x' * 200}{number:05}"}} for number in range(3_000)]
    one.load(cities, mode="merge")
    found = one.query("match { $c: City } return { $c.name } order { $c.name asc }")
    return [
        list(one.diff("main")),
        sorted(record["data"]["name"] for record in one.changes_baseline(types=["City"]) if "type" in record),
        [len(found), found.to_pylist()[-1], found.to_pylist()[0]],
        one.to_arrow("City").num_rows,
        [sum(batch.num_rows for batch in one.to_batches("City", batch_rows=1_000)), len(list(one.export()))],
    ]


def cancelled(graph: Any) -> Any:
    stop = Cancellation()
    stop.cancel()
    calls = [
        lambda: graph.query(PEOPLE, cancel=stop),
        lambda: graph.profile(PEOPLE, cancel=stop),
        lambda: list(graph.diff("main", "draft", cancel=stop)),
        lambda: graph.commit_changes("main", cancel=stop),
        lambda: graph.changes(start="beginning", cancel=stop),
        lambda: list(graph.history("Person", "ana", cancel=stop)),
        lambda: graph.blame("Person", "ana", cancel=stop),
        lambda: graph.merge_preview("draft", cancel=stop),
        lambda: graph.to_arrow("Person", cancel=stop),
    ]
    return [type(failure(call)).__name__ for call in calls]


def cancelled_writes(graph: Any) -> Any:
    stop = Cancellation()
    stop.cancel()
    graph.branch_create("cw/1")
    one = graph.on("cw/1")
    before = one.head().commit_id
    calls = [
        lambda: one.mutate('query q() { insert City { name: "Lima" } }', cancel=stop),
        lambda: one.load([{"type": "City", "data": {"name": "Lima"}}], mode="merge", cancel=stop),
        lambda: one.merge("draft", resolve="ours", cancel=stop),
        lambda: one.revert("main", cancel=stop),
    ]
    found = [type(failure(call)).__name__ for call in calls]
    return [found, one.head().commit_id == before]


BODIES = [parts, streams, cancelled, cancelled_writes]


@pytest.mark.usefixtures("small_answers")
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_every_form_gives_the_same(variants: Variants, body: Body) -> None:
    variants.check(body)
