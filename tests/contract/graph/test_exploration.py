"""Searches, neighbours and degrees are the same in every form of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from support.graph_variants import GUEST, SECRET, Body, Variants, failure, variants_of

SCHEMA = """
node Note {
    slug: String @key
    text: String
    written: Date?
    big: I64?
    vector: Vector(2)?
}
node Person { name: String @key }
edge Wrote: Person -> Note { day: Date? }
edge Cites: Note -> Note
"""


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Variants]:
    with variants_of(make_graph, tmp_path_factory.mktemp("exploration")) as made:
        yield made


def make_graph(path: Path) -> None:
    graph = og.init(path, SCHEMA, actor="root", sync=False, environ={})
    notes = [
        {"slug": f"n/{at}", "text": f"heron {'weir ' * at}", "written": f"2026-01-0{at + 1}", "big": 2**60 + at}
        for at in range(5)
    ]
    records = [{"type": "Note", "data": note} for note in notes]
    records += [{"type": "Person", "data": {"name": "heron"}}]
    records += [
        {"edge": "Wrote", "from": "heron", "to": f"n/{at}", "data": {"id": f"w{at}", "day": "2026-02-03"}}
        for at in range(5)
    ]
    records += [{"edge": "Cites", "from": "n/0", "to": "n/1", "data": {"id": "c"}}]
    graph.load(records, mode="merge")
    graph.branch_create(SECRET)


def searches(graph: Any) -> Any:
    first = graph.search("heron weir", limit=2, rank_of="n/3")
    return [
        first,
        graph.search("heron weir", limit=2, after=first.next),
        graph.search("weir", ["Note"], by="words", filters={"written": {">=": date(2026, 1, 4)}, "big": {">": 2**60}}),
        graph.search("weir", by="words", filters={"written": {"in": [date(2026, 1, 2)]}}, rank_of="n/4", why=False),
        graph.search("weir", by="words", rank_of="none", at=graph.commits(limit=1)[0].id),
        [hit.row for hit in graph.search("heron", ["Note"], by="words").hits],
    ]


def wrong_searches(graph: Any) -> Any:
    return [
        failure(lambda: graph.search("weir", by="meaning")),
        failure(lambda: graph.search(" ")),
        failure(lambda: graph.search("weir", ["None"])),
        failure(lambda: graph.search("weir", filters={"none": 1})),
        failure(lambda: graph.search("weir", filters={"big": "many"})),
        failure(lambda: graph.search("weir", by="guess")),
        failure(lambda: graph.search("weir", limit=0)),
        failure(lambda: graph.search("weir", branch="none")),
        failure(lambda: graph.search("weir", after="none")),
    ]


def neighbours(graph: Any) -> Any:
    first = graph.neighbors("Person", "heron", limit=3)
    return [
        first,
        graph.neighbors("Person", "heron", limit=3, after=first.next),
        graph.neighbors("Note", "n/1"),
        graph.neighbors("Note", "n/1", "Cites", "in"),
        [each.edge_row for each in first.neighbors],
        graph.degrees("Note", "n/1"),
        graph.degrees("Person", "heron", at=graph.commits(limit=1)[0].id),
    ]


def wrong_neighbours(graph: Any) -> Any:
    return [
        failure(lambda: graph.neighbors("Note", "none")),
        failure(lambda: graph.neighbors("Noet", "n/1")),
        failure(lambda: graph.neighbors("Note", "n/1", "None")),
        failure(lambda: graph.neighbors("Note", "n/1", direction="up")),
        failure(lambda: graph.neighbors("Note", "n/1", limit=0)),
        failure(lambda: graph.neighbors("Note", "n/1", after="none")),
        failure(lambda: graph.degrees("Note", "none")),
        failure(lambda: graph.degrees("Wrote", "w1")),
        failure(lambda: graph.degrees("Note", 1.5)),
    ]


def editors(graph: Any) -> Any:
    text = "match { $n: Note $n.wr"
    found = graph.query("match { $p: Person $p wrote $n } return { $p, $n, $n.text as text } order { $n.slug }")
    return [
        graph.complete(text, len(text)),
        graph.complete("node A { a: Str", 15, language="pg"),
        graph.hover("match { $n: Note }", 13),
        graph.hover("match { $n: Note }", 0),
        failure(lambda: graph.complete(text, 99)),
        failure(lambda: graph.hover(text, 1, language="sql")),
        failure(lambda: graph.complete(text, 1, branch="none")),
        [finding.code for finding in graph.lint("node A { a: Strin }", language="pg").findings],
        graph.explain("match { $n: Note } return { $n.text }").tree,
        found.shape.to_json(),
    ]


def differences(graph: Any) -> Any:
    graph.branch_create("d/1")
    one = graph.on("d/1")
    added = 'insert Note { slug: "new", text: "x" } insert Cites { from: "new", to: "n/1" }'
    text = f'atomic {{ {added} delete Note where slug = "n/4" }}'
    before = len(one.commits())
    tried = one.mutate(text, dry_run=True, idempotency_key="tried")
    made = one.mutate(text, message="three changes")
    graph.on("main").mutate('update Note set { text: "y" } where slug = "n/2"')
    shown = graph.diff_graph("main...d/1")
    return [
        before,
        [tried.affected_nodes, tried.affected_edges, tried.commit_id, tried.tables],
        made.tables,
        failure(lambda: one.mutate('insert Note { slug: "new", text: "x" }', dry_run=True)),
        failure(lambda: one.mutate(text, dry_run=True, if_commit="none")),
        graph.diff_summary("main...d/1").tables,
        graph.diff_summary("main", "d/1", kinds=["node"]).tables,
        [[node.type, node.id if node.op is None else "", node.op, node.row.get("text")] for node in shown.nodes],
        [[edge.type, edge.op, edge.source, edge.target] for edge in shown.edges],
        [shown.changes_omitted, shown.neighbors_omitted, shown.summary.tables],
        graph.diff_graph("main", "d/1", limit=1).changes_omitted,
        failure(lambda: graph.diff_graph("main", "d/1", limit=0)),
        failure(lambda: graph.diff_summary("main", "none")),
        [[each.name, each.ahead, each.behind, each.base, each.commit.message] for each in graph.branch_status()],
        [[each.name, each.ahead, each.behind] for each in graph.branch_status("d/1")],
        failure(lambda: graph.branch_status("none")),
        [[commit.branch, commit.message] for commit in graph.commits("*")],
        len(graph.commits("*", limit=2)),
        *selections(graph),
    ]


def selections(graph: Any) -> Any:
    """Return the messages of selected commits."""
    newest = graph.commits("*", limit=1)[0]
    made = datetime.fromtimestamp(newest.created_us / 1_000_000, UTC)
    conditions: list[dict[str, Any]] = [
        {"types": ["Cites"]},
        {"types": ["Note", "Cites"]},
        {"types": ["None"]},
        {"text": "LOAD"},
        {"text": "no such message"},
        {"since": made + timedelta(days=1)},
        {"until": made - timedelta(days=1)},
        {"since": (made - timedelta(days=1)).replace(tzinfo=None), "until": made + timedelta(days=1)},
    ]
    return [[commit.message for commit in graph.commits("*", **each)] for each in conditions]


def merges(graph: Any) -> Any:
    for name in ("m/1", "m/2"):
        graph.branch_create(name)
    one = graph.on("m/1")
    two = graph.on("m/2")
    one.mutate('update Note set { text: "one" } where slug = "n/3"')
    two.mutate('atomic { update Note set { text: "two" } where slug = "n/3" insert Cites { from: "n/0", to: "n/2" } }')
    one.mutate('delete Note where slug = "n/2"')
    head = two.commits(limit=1)[0].id
    moved = failure(lambda: one.merge("m/2", source_commit=one.commits(limit=1)[0].id))
    how = {"node:Note:n/3": "theirs", "node:Note:n/2": "theirs"}
    preview = one.merge_preview("m/2", resolve=how, source_commit=head)
    merged = one.merge("m/2", resolve=how, source_commit=head)
    return [
        moved.code,
        failure(lambda: one.merge_preview("m/2", source_commit="none")).code,
        [[row.id, row.row] for row in preview.settled],
        preview.conflicts,
        merged.outcome,
        one.get("Note", "n/2")["text"],
        one.get("Note", "n/3")["text"],
    ]


def projections(graph: Any) -> Any:
    graph.branch_create("p/1")
    one = graph.on("p/1")
    text = "query set_vector($slug: String, $v: Vector(2)) { update Note set { vector: $v } where slug = $slug }"
    for at, name in enumerate(("n/0", "n/1", "n/2")):
        one.mutate(text, {"slug": name, "v": [float(at), 2.0 * at]})
    return [
        one.projection("Note", "vector"),
        graph.projection("Note", "vector").num_rows,
        failure(lambda: one.projection("Note", "text")),
        failure(lambda: one.projection("None", "vector")),
    ]


BODIES = [searches, wrong_searches, neighbours, wrong_neighbours, editors, differences, selections, merges, projections]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_every_form_of_a_graph_agrees(variants: Variants, body: Body) -> None:
    variants.check(body)


def denied(handle: Any) -> Any:
    """Calls of an actor who may not read the branch."""
    return [
        failure(lambda: handle.search("heron")),
        failure(lambda: handle.neighbors("Note", "n/1")),
        failure(lambda: handle.degrees("Note", "n/1")),
        failure(lambda: handle.complete("", 0)),
        failure(lambda: handle.hover("", 0)),
        failure(lambda: handle.diff_summary("main", "main")),
        failure(lambda: handle.diff_graph("main", "main")),
        failure(lambda: handle.branch_status()),
    ]


def test_denials_agree(variants: Variants) -> None:
    variants.check(denied, GUEST)
