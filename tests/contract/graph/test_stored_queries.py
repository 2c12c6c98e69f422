"""Stored queries, their results and their errors are the same in every form of a graph.

Every body writes to branches of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.engine.exec.context import Limits
from support.graph_variants import ACTOR, GUEST, SECRET, Body, Variants, failure, variants_of

POLICY = f"""version: 2
groups: {{team: [{ACTOR}], guests: [{GUEST}]}}
rules:
  - id: team
    allow: {{actors: {{group: team}}, role: owner}}
  - id: guests
    allow: {{actors: {{group: guests}}, actions: [read], branches: [{SECRET}]}}
"""

SCHEMA = """
node Person {
    name: String @key
    age: I64?
    born: Date?
}
node City { name: String @key }
"""
OLDER = """
// People above an age.
query older($age: I64) @description("People above an age.") @rows_max(1000) {
    match { $p: Person $p.age > $age } return { $p.name as name, $p.born as born } order { $p.name }
}
"""
ADD = 'query add_city($name: String) @instruction("New cities.") { insert City { name: $name } as $c return { $c } }'
RENAME = "query set_born($name: String, $born: Date) { update Person set { born: $born } where name = $name }"
BROKEN = "query broken() { match { $p: Perso } return { $p.name } }"


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Variants]:
    with variants_of(make_graph, tmp_path_factory.mktemp("stored"), POLICY) as made:
        yield made


def make_graph(path: Path) -> None:
    graph = og.init(path, SCHEMA, actor="root", sync=False)
    people = [{"name": "ana", "age": 31, "born": "2001-02-03"}, {"name": "bo", "age": 41}, {"name": "cleo", "age": -7}]
    graph.load([{"type": "Person", "data": person} for person in people], mode="merge")
    graph.branch_create(SECRET)


def stored(graph: Any, folder: Any) -> Any:
    graph.branch_create("q/1")
    one = graph.on("q/1")
    file = folder / "more.gq"
    file.write_text(RENAME, encoding="utf-8")
    first = one.store_query(OLDER, ADD, message="two queries")
    again = one.store_query(OLDER, file)
    nothing = one.store_query(OLDER)
    found = [[query.name, query.source, query.actor, query.to_json()] for query in one.queries()]
    found += [one.validate_queries(), one.validate_queries("node Other { name: String @key }")]
    before = [query.name for query in graph.queries("q/1", at=first.commit_id)]
    gone = one.delete_query("add_city", "set_born", message="not needed")
    commits = [[commit.kind, commit.message, commit.actor] for commit in one.commits(limit=3)]
    undone = one.revert_preview(gone.commit_id).to_json()["query_changes"]
    return [first, again, nothing, found, before, gone, [query.name for query in one.queries()], commits, undone]


def repeated(graph: Any) -> Any:
    graph.branch_create("q/2")
    one = graph.on("q/2")
    results = [one.store_query(ADD, idempotency_key="key-of-q2") for _ in range(2)]
    reused = failure(lambda: one.store_query(OLDER, idempotency_key="key-of-q2"))
    gone = [one.delete_query("add_city", idempotency_key="key-of-q2-delete") for _ in range(2)]
    return [results, reused, gone]


def calls(graph: Any) -> Any:
    graph.branch_create("q/3")
    one = graph.on("q/3")
    made = one.store_query(OLDER, ADD, RENAME)
    read = one.invoke("older", {"age": -100})
    pages = [one.invoke("older", {"age": -100}, page=2)]
    pages.append(one.invoke("older", {"age": -100}, page=2, after=pages[0].next))
    added = [one.invoke("add_city", {"name": "Oslo"}, idempotency_key="key-of-oslo", message="m") for _ in range(2)]
    born = one.invoke("set_born", {"name": "bo", "born": date(1990, 1, 2)}, expect_mutation=True)
    changed = one.invoke("older", {"age": 0}, expect_mutation=False)
    past = one.invoke("older", {"age": 0}, at=made.commit_id)
    graph.on("q/3").delete_query("older")
    older = graph.invoke("older", {"age": 0}, branch="q/3", at=made.commit_id)
    return [read, pages, added, born, changed, past, older, one.commits(limit=1)[0].kind]


def wrong_calls(graph: Any) -> Any:
    graph.branch_create("q/4")
    one = graph.on("q/4")
    one.store_query(OLDER, ADD)
    head = one.head().commit_id
    return [
        failure(lambda: one.invoke("none")),
        failure(lambda: one.invoke("older/x")),
        failure(lambda: one.invoke(7)),
        failure(lambda: graph.invoke("older", {"age": 1})),
        failure(lambda: one.invoke("older")),
        failure(lambda: one.invoke("older", {"age": "x"})),
        failure(lambda: one.invoke("older", {"age": 1, "more": 2})),
        failure(lambda: one.invoke("older", {"age": 1}, expect_mutation=True)),
        failure(lambda: one.invoke("older", {"age": 1}, if_commit=head)),
        failure(lambda: one.invoke("older", {"age": 1}, after="x")),
        failure(lambda: one.invoke("older", {"age": -100}, limits=Limits(rows_max=1))),
        failure(lambda: one.invoke("older", {"age": 1}, branch="nowhere")),
        failure(lambda: one.invoke("older", {"age": 1}, at="nowhere")),
        failure(lambda: one.invoke("add_city", {"name": "x"}, expect_mutation=False)),
        failure(lambda: one.invoke("add_city", {"name": "x"}, if_commit="other")),
        failure(lambda: one.invoke("add_city", {"name": "x"}, at=head)),
        failure(lambda: one.invoke("add_city", {"name": "x"}, page=2)),
    ]


def wrong_texts(graph: Any, folder: Any) -> Any:
    graph.branch_create("q/5")
    one = graph.on("q/5")
    file = folder / "broken.gq"
    file.write_text("query broken( {", encoding="utf-8")
    return [
        failure(lambda: one.store_query()),
        failure(lambda: one.store_query("")),
        failure(lambda: one.store_query(file)),
        failure(lambda: one.store_query(BROKEN)),
        failure(lambda: one.store_query("match { $p: Person } return { $p.name }")),
        failure(lambda: one.store_query(OLDER, OLDER)),
        failure(lambda: one.store_query(OLDER, if_commit="other")),
        failure(lambda: one.store_query(OLDER, branch="nowhere")),
        failure(lambda: one.delete_query()),
        failure(lambda: one.delete_query("none")),
        failure(lambda: one.queries("nowhere")),
        one.queries(),
    ]


def breakage(graph: Any) -> Any:
    graph.branch_create("q/6")
    graph.branch_create("q/7")
    one, two = graph.on("q/6"), graph.on("q/7")
    one.store_query(OLDER)
    schema = graph.schema.replace("    age: I64?\n", "")
    refused = failure(lambda: one.apply_schema(schema, allow_data_loss=True))
    two.apply_schema(schema, allow_data_loss=True)
    merged = failure(lambda: two.merge("q/6"))
    done = two.merge("q/6", allow_query_breakage=True)
    applied = one.apply_schema(schema, allow_data_loss=True, allow_query_breakage=True)
    return [refused, merged, done.outcome, applied.applied, failure(lambda: two.invoke("older", {"age": 1}))]


def conflicts(graph: Any) -> Any:
    graph.branch_create("q/8")
    one = graph.on("q/8")
    one.store_query(OLDER)
    graph.branch_create("q/9", "q/8")
    two = graph.on("q/9")
    one.store_query(OLDER.replace("above", "beyond"))
    two.store_query(OLDER.replace("above", "over"))
    refused = failure(lambda: one.merge("q/9"))
    preview = one.merge_preview("q/9")
    merged = one.merge("q/9", resolve={"query:older": "theirs"})
    return [refused, preview, merged.outcome, one.queries()[0].source]


BODIES = [stored, repeated, calls, wrong_calls, wrong_texts, breakage, conflicts]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_every_form_of_a_graph_agrees(variants: Variants, body: Body) -> None:
    variants.check(body)


def denied(handle: Any) -> Any:
    """Calls of an actor who may neither store nor call queries."""
    errors = [
        failure(lambda: handle.on("secret").queries()),
        failure(lambda: handle.invoke("older", {"age": 1}, branch="secret")),
        failure(lambda: handle.on("secret").store_query(OLDER)),
        failure(lambda: handle.on("secret").delete_query("older")),
    ]
    return [error if isinstance(error, list) else [type(error).__name__, error.code] for error in errors]


def test_denials_agree(variants: Variants) -> None:
    variants.check(denied, GUEST)
