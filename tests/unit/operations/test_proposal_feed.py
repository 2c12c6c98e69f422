"""The feed of the events of proposals: a cursor continues after an event and skips no other."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import InputError
from omnigraph.graph_handle import context_of
from omnigraph.graph_proposals import proposal_feed
from omnigraph.operations.authorization.access import Access
from omnigraph.operations.proposals import event_feed
from omnigraph.operations.proposals.event_feed import ProposalFeed, StreamedEvent
from omnigraph.operations.proposals.proposals import logs_of
from omnigraph.policy.decide import Policy
from omnigraph.policy.load import parse_policy_text


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.init(tmp_path / "g.omni", "node Person { name: String @key }", sync=False)
    for name in ("a", "b"):
        made.branch_create(name)
        made.mutate(f'insert Person {{ name: "{name}" }}', branch=name)
    return made


def started(graph: og.Graph, cursor: str | None = None) -> ProposalFeed:
    feed = proposal_feed(graph)
    feed.start(cursor)
    return feed


def numbers(events: list[StreamedEvent]) -> list[tuple[str, int]]:
    return [(one.record.source, one.event.number) for one in events]


def set_clock(graph: og.Graph, at_us: int) -> None:
    """Let all further events have one time, as those of several machines can."""
    logs_of(context_of(graph).repository)._clock = lambda: at_us


def test_every_cursor_continues_with_the_other_events_of_its_time(graph):
    first, second = (graph.propose(name, title=name, draft=True) for name in ("a", "b"))
    feed = started(graph)
    assert list(feed.poll()) == []
    set_clock(graph, max(first.info.updated_us, second.info.updated_us) + 1)
    for number in range(3):
        for one in (first, second):
            one.edit(labels=[f"l{number}"])
    events = list(feed.poll())
    assert sorted(numbers(events)) == [("a", 2), ("a", 3), ("a", 4), ("b", 2), ("b", 3), ("b", 4)]
    assert len({one.event.at_us for one in events}) == 1
    for place, found in enumerate(events):
        assert numbers(list(started(graph, found.cursor).poll())) == numbers(events[place + 1 :]), found.cursor


def test_a_late_event_with_an_earlier_time_is_not_skipped(graph):
    first, second = (graph.propose(name, title=name, draft=True) for name in ("a", "b"))
    feed = started(graph)
    first.edit(labels=["x"])
    (found,) = feed.poll()
    set_clock(graph, found.event.at_us - 1_000_000)
    second.edit(labels=["late"])
    first.edit(labels=["late"])
    later = list(started(graph, found.cursor).poll())
    assert numbers(later) == [("a", 3), ("b", 2)] or numbers(later) == [("b", 2), ("a", 3)]
    second.close()
    assert sorted(numbers(list(started(graph, later[-1].cursor).poll()))) == [("b", 3)]


def test_old_proposals_are_continued_by_their_times(graph, monkeypatch):
    monkeypatch.setattr(event_feed, "_MARGIN_US", 1_000)
    first, second = (graph.propose(name, title=name, draft=True) for name in ("a", "b"))
    set_clock(graph, second.info.updated_us + 1_000_000)
    feed = started(graph)
    first.edit(labels=["x"])
    (found,) = feed.poll()
    assert second.id not in found.cursor
    assert list(started(graph, found.cursor).poll()) == []
    second.edit(labels=["x"])
    assert numbers(list(started(graph, found.cursor).poll())) == [("b", 2)]


def test_a_cursor_names_no_hidden_proposal(graph):
    graph.branch_create("secret")
    text = """
version: 2
groups: { staff: [bo] }
rules:
  - { id: r, allow: { actors: { group: staff }, actions: [read], branches: [main] } }
"""
    hidden = graph.propose("b", into="secret", title="b", draft=True)
    seen = graph.propose("a", title="a", draft=True)
    feed = started(graph.with_access(Access(Policy(parse_policy_text(text)), "bo")))
    for one in (hidden, seen):
        one.edit(labels=["x"])
    (found,) = feed.poll()
    assert found.record.id == seen.id
    assert hidden.id not in found.cursor


@pytest.mark.parametrize(
    "cursor", ["", "x", "1~", "1~short.1", "9" * 17, "1~" + "A" * 26 + ".1,", "1~" + "a" * 26 + ".1"]
)
def test_wrong_cursors(graph, cursor):
    with pytest.raises(InputError, match="cursor"):
        started(graph, cursor)
