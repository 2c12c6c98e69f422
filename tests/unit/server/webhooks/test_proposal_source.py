"""Events of proposals."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.graph_proposals import Proposal
from omnigraph.operations.proposals.proposals import logs_of
from omnigraph.server.webhooks import proposal_source
from omnigraph.server.webhooks.events import Event, Position
from omnigraph.server.webhooks.proposal_source import PROBE_S, ProposalSource
from support.store import repository_of
from support.writes import SHELVES, shelf

CANARY = "a text of a person"


class Reader:
    """Reads a source to its end, and keeps the position, as a stream does."""

    def __init__(self, graph: og.Graph, position: Position | None = None) -> None:
        self.now = 1000.0
        self.source = ProposalSource(logs_of(repository_of(graph)), lambda: self.now)
        self.position = self.source.start() if position is None else position

    def events(self) -> list[Event]:
        found: list[Event] = []
        for _ in range(100):
            batch = self.source.read(self.position)
            found += batch.events
            after = batch.events[-1].after if batch.events else batch.after
            if after == self.position and not batch.events:
                return found
            self.position = after
        raise AssertionError("the source does not end")

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events()]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "g.omni", SHELVES, sync=False, actor="ana")
    graph.branch_create("side")
    graph.load([shelf("a")], mode="append", branch="side")
    return graph


def propose(graph: og.Graph) -> Proposal:
    return graph.propose("side", title=CANARY, body=CANARY, labels=[CANARY])


def test_the_life_of_a_proposal(graph: og.Graph) -> None:
    reader = Reader(graph)
    proposal = propose(graph)
    opened = reader.events()
    assert opened[0].kind == "proposal.opened"
    assert "proposal.trial" in [event.kind for event in opened]
    proposal.comment(CANARY)
    assert reader.kinds() == ["proposal.comment"]
    proposal.land()
    landed = reader.events()
    assert landed[-1].kind == "proposal.landed"
    assert landed[-1].facts["commit"] == graph.snapshot().commit_id
    assert reader.events() == []
    numbers = [event.facts["number"] for event in (*opened, *landed)]
    assert numbers == sorted(numbers)
    assert reader.position == {"open": {}, "ended": {proposal.id: landed[-1].facts["number"]}}


def test_events_have_ids_and_states_and_no_texts(graph: og.Graph) -> None:
    reader = Reader(graph)
    proposal = propose(graph)
    proposal.comment(CANARY, on={"table_key": "node:Shelf", "row_id": "a"})
    events = reader.events()
    for event in events:
        assert (event.facts["proposal_id"], event.facts["target"], event.branch) == (proposal.id, "main", "main")
        body = event.body("kb").decode()
        assert CANARY not in body
        assert "row_id" not in body
    assert len({event.id for event in events}) == len(events)
    again = Reader(graph, {"open": {}, "ended": {}})
    assert [event.id for event in again.events()] == [event.id for event in events], "ids are the same every time"


def test_a_webhook_begins_after_the_known_events(graph: og.Graph) -> None:
    proposal = propose(graph)
    reader = Reader(graph)
    assert reader.kinds() == []
    proposal.comment("one")
    assert reader.kinds() == ["proposal.comment"]


def test_a_successor_continues_after_the_last_event(graph: og.Graph) -> None:
    reader = Reader(graph)
    proposal = propose(graph)
    first = reader.source.read(reader.position).events[0]
    successor = Reader(graph, first.after)
    numbers = [event.facts["number"] for event in successor.events()]
    assert numbers == list(range(2, len(list(proposal.events())) + 1))


def test_a_proposal_that_is_opened_again_continues(graph: og.Graph) -> None:
    reader = Reader(graph)
    proposal = propose(graph)
    reader.events()
    proposal.close(CANARY)
    assert reader.kinds() == ["proposal.closed"]
    assert reader.position["open"] == {}
    proposal.reopen()
    assert reader.kinds()[0] == "proposal.reopened"
    assert reader.events() == []


def test_one_that_was_forgotten_continues_with_its_last_opening(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proposal_source, "ENDED_MAX", 1)
    reader = Reader(graph)
    first, second = propose(graph), propose(graph)
    reader.events()
    first.close()
    reader.events()
    second.close()
    reader.events()
    assert list(reader.position["ended"]) == [second.id]
    first.reopen()
    assert reader.kinds()[0] == "proposal.reopened"


def test_logs_are_read_only_if_their_marker_changed(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(graph)
    proposals = [propose(graph) for _ in range(3)]
    reader.events()
    asked: list[str] = []
    logs = reader.source._logs
    read = logs.events
    monkeypatch.setattr(logs, "events", lambda found, after=0: asked.append(found) or read(found, after))
    assert reader.events() == []
    assert asked == []
    proposals[1].comment("one")
    assert len(reader.events()) == 1
    assert set(asked) == {proposals[1].id}
    asked.clear()
    reader.now += PROBE_S
    assert reader.events() == []
    assert set(asked) == {proposal.id for proposal in proposals}, "a marker is a hint"


def test_a_marker_without_a_log_is_no_proposal(graph: og.Graph) -> None:
    reader = Reader(graph)
    logs_of(repository_of(graph)).list_open("01J00000000000000000000000")
    assert reader.events() == []
    assert reader.position == {"open": {}, "ended": {}}
