"""Streams: order, repetition with growing waits, dropping, ownership. The clock is that of the test."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from omnigraph.graph import Graph
from omnigraph.server.webhooks import stream as streams
from omnigraph.server.webhooks.dispatcher import progress_of
from omnigraph.server.webhooks.events import Event, EventSource, GraphSource, PolicySource
from omnigraph.server.webhooks.sending import Outcome, send
from omnigraph.server.webhooks.stream import BACKOFF_S, DROP_AFTER_S, WebhookStream
from omnigraph.server.webhooks.targets import Webhook
from omnigraph.webhooks import verify_signature
from support.receiver import SECRET, receiving
from support.writes import new_graph, shelf

WEBHOOK = Webhook("erp", "https://example.org/path-of-the-receiver", (SECRET,))
START = 1_900_000_000.0


@dataclass
class Setup:
    """A stream, its clock, and what it sent."""

    graph: Graph
    now: float = START
    sent: list[tuple[Event, Any]] = field(default_factory=list)
    outcome: Outcome = field(default_factory=Outcome)
    counts: list[str] = field(default_factory=list)
    digests: tuple[str | None, str | None] = (None, None)

    def stream(self, webhook: Webhook = WEBHOOK, *, hides_changes: bool = False) -> WebhookStream:
        """Return a stream, as a process makes one."""
        sources: dict[str, EventSource] = {
            "graph": GraphSource("kb", self.graph, hides_changes=hides_changes),
            "policy": PolicySource(lambda: self.digests, self.clock),
        }
        return WebhookStream(webhook, "kb", progress_of(self.graph, "erp"), sources, self.send, self, self.clock)

    def clock(self) -> float:
        return self.now

    def send(self, _: Webhook, event: Event, body: bytes) -> Outcome:
        self.sent.append((event, json.loads(body)))
        return self.outcome

    def commit(self, key: str, **options: Any) -> str:
        """Commit a row; return the id of the commit."""
        commit_id = self.graph.load([shelf(key)], mode="append", **options).commit_id
        assert commit_id is not None
        return commit_id

    @property
    def ids(self) -> list[str]:
        """The ids of the sent events."""
        return [event.id for event, _ in self.sent]

    # -- the report of deliveries

    def delivered(self, *_: Any) -> None:
        self.counts.append("delivered")

    def failed(self, *_: Any, refused: bool) -> None:
        self.counts.append("refused" if refused else "failed")

    def dropped(self, *_: Any) -> None:
        self.counts.append("dropped")


@pytest.fixture
def setup(tmp_path, monkeypatch) -> Setup:
    monkeypatch.setattr(streams, "_varied", lambda: 1.0)
    return Setup(new_graph(tmp_path))


def test_events_are_delivered_in_order_from_the_first_step_on(setup):
    setup.commit("before")
    stream = setup.stream()
    assert stream.step() == START + streams.POLL_S
    made = [setup.commit("a", actor="ana")]
    setup.graph.branch_create("side", actor="bo")
    made.append(setup.commit("b", branch="side"))
    setup.graph.tag_create("v1")
    setup.graph.branch_delete("side", force=True)
    stream.step()
    bodies = [body for _, body in setup.sent]
    assert [body["kind"] for body in bodies] == ["commit", "branch.created", "commit", "tag.created", "branch.deleted"]
    assert [bodies[0]["facts"]["graph_commit_id"], bodies[2]["facts"]["graph_commit_id"]] == made
    assert bodies[0] == {
        "event_id": made[0],
        "kind": "commit",
        "graph_id": "kb",
        "actor_id": "ana",
        "created_at": bodies[0]["created_at"],
        "facts": {
            "branch": "main",
            "graph_commit_id": made[0],
            "parent_commit_id": bodies[0]["facts"]["parent_commit_id"],
            "merged_parent_commit_id": None,
            "commit_kind": "load",
            "changed": ["node:Shelf"],
        },
    }
    assert (bodies[1]["actor_id"], bodies[1]["facts"]) == ("bo", {"branch": "side", "graph_commit_id": made[0]})
    stream.step()
    assert len(setup.sent) == 5


def test_a_summary_of_changes_is_included_on_demand(setup):
    stream = setup.stream(replace(WEBHOOK, with_diff_summary=True, events=("commit",)))
    stream.step()
    setup.commit("a")
    stream.step()
    assert setup.sent[0][1]["facts"]["diff_summary"] == {"node:Shelf": {"insert": 1, "update": 0, "delete": 0}}


def test_with_rules_for_rows_nothing_that_depends_on_rows_is_sent(setup):
    stream = setup.stream(replace(WEBHOOK, with_diff_summary=True), hides_changes=True)
    stream.step()
    setup.commit("a", message="about a")
    stream.step()
    facts = setup.sent[0][1]["facts"]
    assert facts.pop("diff_summary") is None
    assert set(facts) == {"branch", "graph_commit_id", "parent_commit_id", "merged_parent_commit_id", "commit_kind"}


def test_filtered_events_are_passed_over(setup):
    stream = setup.stream(replace(WEBHOOK, events=("tag.*",)))
    stream.step()
    setup.commit("a")
    setup.graph.tag_create("v1")
    stream.step()
    assert [event.kind for event, _ in setup.sent] == ["tag.created"]


def test_a_failed_event_is_repeated_with_growing_waits_and_later_ones_wait(setup):
    stream = setup.stream()
    stream.step()
    first, second = setup.commit("a"), setup.commit("b")
    setup.outcome = Outcome("status 500")
    while len(setup.sent) < 14:
        setup.now = stream.step()
    assert setup.ids == [first] * 14
    setup.outcome = Outcome()
    while len(setup.sent) < 16:
        setup.now = stream.step()
    assert setup.ids[14:] == [first, second]
    assert stream.document.read()["failure"] is None


def test_waits_double_up_to_an_hour(setup):
    stream = setup.stream()
    stream.step()
    setup.commit("a")
    setup.outcome = Outcome("status 500")
    waits = []
    for _ in range(12):
        stream.step()
        next_at = stream.document.read()["failure"]["next_at"]
        waits.append(next_at - setup.now)
        setup.now = next_at
    assert waits == [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]


def test_the_ownership_is_renewed_while_a_receiver_is_down(setup):
    stream = setup.stream()
    stream.step()
    setup.commit("a")
    setup.outcome = Outcome("status 500")
    for _ in range(8):
        setup.now = stream.step()
    assert stream.step() - setup.now <= streams.RENEW_S
    assert stream.document.is_owned


def fail_until(setup: Setup, stream: WebhookStream, done: Callable[[], bool]) -> None:
    for _ in range(200_000):
        if done():
            return
        failure = stream.document.read()["failure"]
        setup.now = max(setup.now, failure["next_at"]) if failure else setup.now
        setup.now = max(stream.step(), setup.now)
    raise AssertionError("it does not happen")


def test_events_are_dropped_after_three_days_of_failures(setup, caplog):
    setup.now = began = setup.graph.commits()[0].created_us / 1_000_000
    stream = setup.stream()
    stream.step()
    first, second = setup.commit("a"), setup.commit("b")
    setup.outcome = Outcome("status 500")
    with caplog.at_level(logging.ERROR):
        fail_until(setup, stream, lambda: "dropped" in setup.counts)
    assert setup.now - began >= DROP_AFTER_S
    assert [first in caplog.text, second in caplog.text] == [True, True]
    assert set(setup.ids) == {first}, "later events waited for the first"
    setup.outcome = Outcome()
    third = setup.commit("c")
    fail_until(setup, stream, lambda: "delivered" in setup.counts)
    assert setup.ids[-1] == third
    assert (stream.document.read()["dropped"], stream.document.read()["delivered"]) == (2, 1)


def test_old_events_are_tried_before_they_are_dropped(setup):
    """A server that was down for days delivers what a receiver that is up can take."""
    setup.now = setup.graph.commits()[0].created_us / 1_000_000
    stream = setup.stream()
    stream.step()
    setup.commit("a")
    setup.outcome = Outcome("status 500")
    stream.step()
    stream.release()
    setup.now += 10 * DROP_AFTER_S
    setup.outcome = Outcome()
    setup.stream().step()
    assert setup.counts == ["failed", "delivered"]


def test_a_successor_continues_after_the_last_recorded_event(setup):
    stream = setup.stream()
    stream.step()
    setup.commit("a")
    stream.step()
    second = setup.commit("b")
    stream.release()
    successor = setup.stream()
    successor.step()
    assert setup.ids[1:] == [second]


def test_a_successor_keeps_the_wait_of_its_predecessor(setup):
    stream = setup.stream()
    stream.step()
    setup.commit("a")
    setup.outcome = Outcome("status 500")
    stream.step()
    stream.release()
    successor = setup.stream()
    due = successor.step()
    assert (len(setup.sent), due) == (1, setup.now + BACKOFF_S)


def test_a_delivery_whose_record_was_lost_is_repeated_with_its_id(setup):
    """The process dies after the receiver answered and before it recorded that."""
    stream = setup.stream()
    stream.step()
    made = setup.commit("a")
    recorded = stream.document.read()
    stream.step()
    other = progress_of(setup.graph, "erp")
    other._number = stream.document._number
    other.release(recorded)
    setup.stream().step()
    assert setup.ids == [made, made]


def test_one_of_two_processes_sends(setup):
    one, other = setup.stream(), setup.stream()
    one.step()
    assert other.step() == setup.now + streams.RENEW_S
    setup.commit("a")
    other.step()
    one.step()
    other.step()
    assert len(setup.sent) == 1


def test_a_process_that_lost_the_ownership_stops(setup):
    one, other = setup.stream(), setup.stream()
    one.step()
    other.document._number = one.document._number
    other.document.write(one.document.read())
    setup.commit("a")
    one.step()
    assert not one.document.is_owned
    sent = len(setup.sent)
    one.step()
    assert len(setup.sent) == sent <= 1, "at most the event that was under way is sent twice"


def test_a_changed_policy_is_announced_once_and_with_one_id(setup):
    setup.digests = ("p1", None)
    stream = setup.stream()
    stream.step()
    setup.digests = ("p2", "s1")
    setup.outcome = Outcome("status 500")
    stream.step()
    stream.release()
    setup.outcome = Outcome()
    setup.now += BACKOFF_S
    successor = setup.stream()
    successor.step()
    successor.step()
    assert len(set(setup.ids)) == 1
    assert len(setup.ids) == 2
    event, body = setup.sent[-1]
    assert event.kind == "policy.reloaded"
    assert body["facts"] == {"changed": ["graph", "server"], "policy_digest": "p2", "server_policy_digest": "s1"}


def test_a_graph_that_was_replaced_is_continued_at_its_head(setup, caplog):
    stream = setup.stream()
    stream.step()
    lost = stream.document.read()
    lost["positions"]["graph"]["graph"] = "another"
    stream.document.release(lost)
    setup.commit("a")
    successor = setup.stream()
    with caplog.at_level(logging.WARNING):
        successor.step()
    assert "was replaced" in caplog.text
    made = setup.commit("b")
    successor.step()
    assert setup.ids == [made]


def test_an_event_reaches_a_receiver_signed(setup):
    with receiving() as receiver:
        webhook = replace(WEBHOOK, url=receiver.url, allow_private=True, secrets=(SECRET, "the previous secret"))
        stream = setup.stream(webhook)
        stream._send = send
        stream.step()
        receiver.script = [(302, {"Location": receiver.url})]
        setup.commit("a")
        stream.step()
        failure = stream.document.read()["failure"]
        assert failure["error"] == "the receiver answered with status 302, a redirect, which is not followed"
        setup.now = failure["next_at"]
        stream.step()
    first, second = receiver.received
    assert first.body == second.body, "a repetition has the same body"
    assert second.headers["omnigraph-event-id"] == second.event["event_id"]
    assert second.headers["omnigraph-event"] == "commit"
    for secret in (SECRET, "the previous secret"):
        verify_signature(second.body, second.headers["omnigraph-signature"], secret)
    assert setup.counts == ["failed", "delivered"]


def test_an_address_that_is_not_permitted_gets_no_request(setup, caplog):
    with receiving() as receiver:
        stream = setup.stream(replace(WEBHOOK, url=receiver.url))
        stream._send = send
        stream.step()
        setup.commit("a")
        with caplog.at_level(logging.WARNING):
            stream.step()
        assert receiver.received == []
    assert setup.counts == ["refused"]
    assert "not permitted" in caplog.text
    assert "/hook" not in caplog.text
    assert SECRET not in caplog.text
