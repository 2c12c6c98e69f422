"""Redaction of texts in messages, descriptions and proposals."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import InputError
from omnigraph.storage.failpoints import FailpointError, arm
from omnigraph.versioning.purge import redact

SCHEMA = "node Person {\n  name: String @key\n  age: I32?\n}\n"
SECRET = "ana.bell@example.org"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    """A graph with the secret in every free text."""
    graph = og.init(tmp_path / "graph", SCHEMA, sync=False)
    person = {"type": "Person", "data": {"name": "bob", "age": 1}}
    graph.load([person], mode="append", message=f"from {SECRET}, as asked by {SECRET}")
    marked = graph.with_metadata({"ticket": {"from": [f"mail of {SECRET}"]}})
    marked.mutate('query q() { update Person set { age: 2 } where name = "bob" }')
    graph.branch_create("draft", message=f"for {SECRET}")
    graph.branch_update("draft", description=f"owned by {SECRET}")
    graph.tag_create("v1", message=f"seen by {SECRET}")
    graph.on("draft").mutate('query q() { update Person set { age: 3 } where name = "bob" }')
    proposal = graph.propose("draft", title=f"Change {SECRET}", body=f"ünïcode {SECRET}")
    proposal.comment(f"ask {SECRET}")
    return graph


def described(graph: og.Graph) -> list[tuple[object, ...]]:
    return [(c.id, c.parents, c.actor, c.created_us, c.kind, c.changed) for c in graph.commits()]


def check(root: Path, before: list[tuple[object, ...]]) -> None:
    graph = og.open(root)
    assert graph.purge_verify([SECRET]).findings == ()
    assert described(graph) == before
    assert [c.message for c in graph.commits() if c.message] == ["from [redacted], as asked by [redacted]"]
    assert [c.metadata["ticket"] for c in graph.commits() if "ticket" in c.metadata] == [
        {"from": ["mail of [redacted]"]}
    ]
    assert graph.head("draft").description == "owned by [redacted]"
    assert [tag.message for tag in graph.tags()] == ["seen by [redacted]"]
    [listed] = graph.proposals()
    assert listed.title == "Change [redacted]"
    proposal = graph.proposal(listed.id)
    assert proposal.info.body == "ünïcode [redacted]"
    assert [event.data["text"] for event in proposal.events() if event.kind == "comment"] == ["ask [redacted]"]
    assert graph.get("Person", "bob")["age"] == 2
    assert graph.get("Person", "bob", branch="draft")["age"] == 3
    assert graph.verify(deep=True) == []
    graph.mutate('query q() { update Person set { age: 5 } where name = "bob" }')


def test_texts_are_redacted_everywhere(graph, tmp_path):
    before = described(graph)
    other = og.open(tmp_path / "graph")
    [seen] = other.proposals()
    assert SECRET in seen.title
    preview = graph.purge_redact([SECRET])
    assert not preview.confirmed
    assert (preview.commits, preview.events) == (2, 2)
    assert preview.refs >= 3
    assert graph.purge_verify([SECRET]).findings
    done = graph.purge_redact([SECRET], confirm=True)
    assert (done.commits, done.refs, done.events) == (preview.commits, preview.refs, preview.events)
    assert described(graph) == before
    assert [c.message for c in other.commits() if c.message] == ["from [redacted], as asked by [redacted]"]
    assert other.proposals()[0].title == "Change [redacted]"
    check(tmp_path / "graph", before)
    again = og.open(tmp_path / "graph").purge_redact([SECRET], confirm=True)
    assert (again.commits, again.refs, again.events) == (0, 0, 0)


@pytest.mark.parametrize("place", ["redact.proposals", "redact.published", "purge.checkpoint"])
def test_an_interrupted_redaction_is_run_again(graph, tmp_path, place):
    before = described(graph)
    with arm(place), pytest.raises(FailpointError):
        graph.purge_redact([SECRET], confirm=True)
    og.open(tmp_path / "graph").purge_redact([SECRET], confirm=True)
    check(tmp_path / "graph", before)


def test_a_writer_that_is_faster_is_not_lost(graph, tmp_path):
    before = described(graph)
    writer = og.open(tmp_path / "graph")
    wrote = []

    def write() -> None:
        if not wrote:
            wrote.append(writer.mutate('query q() { insert Person { name: "late" } }', message=f"of {SECRET}"))

    with arm("redact.proposals", write):
        graph.purge_redact([SECRET], confirm=True)
    assert described(og.open(tmp_path / "graph"))[1:] == before
    assert og.open(tmp_path / "graph").purge_verify([SECRET]).findings == ()
    assert og.open(tmp_path / "graph").get("Person", "late") is not None


def test_the_reason_of_a_purge_is_redacted(graph):
    graph.purge("Person", ["bob"], reason=f"as {SECRET} asked")
    graph.purge_redact([SECRET], confirm=True)
    assert [record.reason for record in graph.purges()] == ["as [redacted] asked"]
    assert graph.purge_verify([SECRET]).findings == ()


def test_texts_are_checked(graph):
    for texts in ([], ["abc"], ["redacted"], [b"bytes"]):
        with pytest.raises(InputError) as raised:
            graph.purge_redact(texts)
        assert raised.value.code == "bad_purge_value"
    with pytest.raises(InputError, match="read-only"):
        og.open(graph.uri, read_only=True).purge_redact([SECRET], confirm=True)


def test_longer_texts_are_replaced_first():
    redactor = redact.Redactor(["anna", "anna bell"])
    assert redactor.value({"anna": ["anna bell and anna", 1, None]}) == {"anna": ["[redacted] and [redacted]", 1, None]}
