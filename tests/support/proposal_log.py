"""Processes that write events of proposals, and a model of the log: a fold over its files, without the product."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import omnigraph as og
from omnigraph.errors import Conflict
from omnigraph.graph_proposals import Proposal
from support.store import Worker, repository_of

Say = Callable[..., None]
KINDS = ("title", "labels", "comment", "edit", "resolve", "approve", "request", "retract", "close", "reopen")


def operate(uri: str, actor: str, proposals: list[str], seed: int, count: int, say: Say) -> None:
    """Make random changes of proposals, each with a mark of its own; say each one after it is acknowledged."""
    graph, choose, own = og.open(uri, actor=actor), random.Random(seed), dict[str, str]()
    for number in range(count):
        proposal, mark = graph.proposal(choose.choice(proposals)), f"{actor}-{number}"
        kind = choose.choice(KINDS)
        try:
            _change(proposal, kind, mark, own)
        except Conflict as error:
            if error.code != "proposal_closed":
                raise
            say(refused=mark, proposal=proposal.id, kind=kind)
        else:
            say(done=mark, proposal=proposal.id, kind=kind)


def _change(proposal: Proposal, kind: str, mark: str, own: dict[str, str]) -> None:
    match kind:
        case "title":
            proposal.edit(title=mark)
        case "labels":
            proposal.edit(labels=[mark])
        case "edit" if proposal.id in own:
            proposal.edit_comment(own[proposal.id], mark)
        case "resolve" if proposal.id in own:
            proposal.edit_comment(own[proposal.id], mark, resolved=True)
        case "comment" | "edit" | "resolve":
            own[proposal.id] = proposal.comment(mark).id
        case "approve":
            proposal.approve(mark)
        case "request":
            proposal.request_changes(mark)
        case "retract":
            proposal.retract(mark)
        case "close":
            proposal.close(mark)
        case "reopen":
            proposal.reopen()
        case _:
            raise AssertionError(kind)


@dataclass
class Model:
    """A proposal as the simplest fold of its log has it."""

    title: str = ""
    labels: list[str] = field(default_factory=list)
    closed: bool = False
    comments: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """Comment → its text, and True if it is resolved."""
    reviews: dict[str, str] = field(default_factory=dict)
    marks: list[str] = field(default_factory=list)
    """The marks of all events, in order."""

    def apply(self, event: Mapping[str, Any]) -> None:
        """Apply an event; it must be one that this state permits."""
        kind, data = event["kind"], event["data"]
        if kind in ("edited", "review"):
            assert not self.closed, f"{kind} on a closed proposal: {event}"
        match kind:
            case "opened" | "edited":
                self.title = data.get("title", self.title)
                self.labels = data.get("labels", self.labels)
                self.marks += [data.get("title"), *data.get("labels", [])] if kind == "edited" else []
            case "comment":
                resolved = self.comments.get(data["id"], ("", False))[1]
                assert ("replaces" in data) == (data["id"] in self.comments), event
                self.comments[data["id"]] = (data["text"], resolved)
                self.marks.append(data["text"])
            case "resolved":
                self.comments[data["comment"]] = (self.comments[data["comment"]][0], data["resolved"])
            case "review":
                self.reviews[event["actor_id"]] = data["verdict"]
                self.marks.append(data["text"])
            case "closed":
                assert not self.closed, "a proposal is closed once"
                self.closed = True
                self.marks.append(data["why"])
            case "reopened":
                assert self.closed, "an open proposal is not opened again"
                self.closed = False
            case _:
                raise AssertionError(f"no process writes {kind}")


def check_logs(uri: str, proposals: Iterable[str], workers: Iterable[Worker], killed: set[str]) -> None:
    """Compare the logs with the model, the model with the product, and all with what the processes acknowledged.

    `killed` has the names of the processes that died; each of them has at most one event that it did not acknowledge.
    """
    graph = og.open(uri)
    objects = repository_of(graph).objects
    models: dict[str, Model] = {}
    for proposal in proposals:
        names = sorted(objects.list(f"__proposals/{proposal}"))
        events = [json.loads(objects.read(name) or b"") for name in names]
        assert [event["number"] for event in events] == list(range(1, len(events) + 1)), "no number is left out"
        models[proposal] = model = Model()
        for event in events:
            model.apply(event)
        _check_product(graph, proposal, model)
    written = Counter(mark for model in models.values() for mark in model.marks if mark is not None)
    assert set(written.values()) <= {1}, "each change is written once"
    for worker in workers:
        said = worker.said()
        done = [line for line in said if "done" in line and line["kind"] != "reopen"]
        repeated = [line["done"] for line in done if line["done"] not in written]
        assert {line["kind"] for line in done if line["done"] in repeated} <= {"close"}, "only a close finds it closed"
        for proposal, model in models.items():
            order = [line["done"] for line in done if line["proposal"] == proposal and line["done"] in written]
            place = {mark: number for number, mark in enumerate(model.marks)}
            assert [place[mark] for mark in order] == sorted(place[mark] for mark in order), "in the order of the calls"
        said_marks = {line.get("done", line.get("refused")) for line in said}
        unsaid = [mark for mark in written if mark.startswith(f"{worker.name}-") and mark not in said_marks]
        assert len(unsaid) <= (worker.name in killed), f"{worker.name} acknowledged everything but its last change"
        refused = {line["refused"] for line in said if "refused" in line}
        assert not refused & set(written), "what is refused is not written"


def _check_product(graph: og.Graph, proposal: str, model: Model) -> None:
    found = graph.proposal(proposal)
    assert (found.title, list(found.info.labels)) == (model.title, model.labels)
    assert (found.state == "closed") is model.closed
    assert {one.id: (one.text, one.resolved) for one in found.comments().comments} == model.comments
    standing = {actor: verdict for actor, verdict in model.reviews.items() if verdict != "retract"}
    assert {one.actor: one.verdict for one in found.info.reviews if one.verdict != "retract"} == standing
    listed = {one.id: one.title for one in graph.proposals("closed" if model.closed else "open", limit=1000)}
    assert listed.get(proposal) == model.title, "the list agrees with the log"
    assert proposal not in {one.id for one in graph.proposals("open" if model.closed else "closed", limit=1000)}
