"""Neighbours and degrees of one node."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.errors import InputError, NotFound, PageCursorRejected, TypeNotFound

SCHEMA = """
node Person { name: String @key
  vector: Vector(2)?
  photo: Blob? }
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge LivesIn: Person -> City
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    graph = og.init(tmp_path_factory.mktemp("near") / "g", SCHEMA, sync=False, environ={})
    people = [{"type": "Person", "data": {"name": name, "vector": [1, 2], "photo": "base64:aGVs"}} for name in "abcd"]
    knows = [
        {"edge": "Knows", "from": a, "to": b, "data": {"id": a + b, "since": at}}
        for at, (a, b) in enumerate(["ab", "ac", "ba", "aa", "da"])
    ]
    rome = {"type": "City", "data": {"name": "Rome"}}
    graph.load(
        [*people, rome, *knows, {"edge": "LivesIn", "from": "a", "to": "Rome", "data": {"id": "ar"}}], mode="merge"
    )
    return graph


def listed(page):
    return [(each.edge, each.direction, each.edge_row["id"], each.type, each.id) for each in page.neighbors]


EVERY = [
    ("Knows", "out", "ab", "Person", "b"),
    ("Knows", "out", "ac", "Person", "c"),
    ("Knows", "out", "aa", "Person", "a"),
    ("Knows", "in", "ba", "Person", "b"),
    ("Knows", "in", "aa", "Person", "a"),
    ("Knows", "in", "da", "Person", "d"),
    ("LivesIn", "out", "ar", "City", "Rome"),
]


def test_neighbours_by_edge_type_and_direction(graph):
    assert listed(graph.neighbors("Person", "a")) == EVERY
    assert listed(graph.neighbors("Person", "a", "Knows", "in")) == EVERY[3:6]
    assert listed(graph.neighbors("Person", "a", "knows")) == EVERY[:6]
    assert listed(graph.neighbors("City", "Rome")) == [("LivesIn", "in", "ar", "Person", "a")]
    assert listed(graph.neighbors("Person", "c", direction="out")) == []


def test_every_page_has_the_exact_number_of_all_pages(graph):
    assert graph.neighbors("Person", "a").total == len(EVERY)
    assert graph.neighbors("Person", "a", "Knows", "in").total == 3
    assert graph.neighbors("Person", "c", direction="out").total == 0
    first = graph.neighbors("Person", "a", limit=3)
    second = graph.neighbors("Person", "a", limit=4, after=first.next)
    assert (first.total, second.total, second.next) == (len(EVERY), len(EVERY), None)
    assert listed(first) + listed(second) == EVERY


def test_rows_are_without_vectors_and_blobs(graph):
    first = graph.neighbors("Person", "a").neighbors[0]
    assert first.row == {"id": "b", "name": "b"}
    assert first.edge_row == {"id": "ab", "src": "a", "dst": "b", "since": 0}


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 100])
def test_pages_are_the_whole_list(graph, limit):
    found, after = [], None
    while True:
        page = graph.neighbors("Person", "a", limit=limit, after=after)
        assert len(page.neighbors) <= limit
        found += listed(page)
        after = page.next
        if after is None:
            break
    assert found == EVERY


def test_degrees_are_exact(graph):
    assert [degree.to_json() for degree in graph.degrees("Person", "a")] == [
        {"edge": "Knows", "direction": "out", "type": "Person", "count": 3},
        {"edge": "Knows", "direction": "in", "type": "Person", "count": 3},
        {"edge": "LivesIn", "direction": "out", "type": "City", "count": 1},
    ]
    assert [degree.count for degree in graph.degrees("Person", "d")] == [1, 0, 0]


def test_a_cursor_continues_at_its_commit(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, sync=False, environ={})
    graph.load([{"type": "Person", "data": {"name": name}} for name in "abc"], mode="merge")
    edges = [{"edge": "Knows", "from": "a", "to": b, "data": {"id": f"a{b}"}} for b in "bc"]
    graph.load(edges, mode="append")
    first = graph.neighbors("Person", "a", limit=1)
    graph.mutate('delete Knows where to = "c"')
    second = graph.neighbors("Person", "a", limit=1, after=first.next)
    assert listed(first) + listed(second) == EVERY[:2]
    assert graph.neighbors("Person", "a").neighbors[1:] == ()
    with pytest.raises(PageCursorRejected, match="another node"):
        graph.neighbors("Person", "b", after=first.next)


POLICY = """version: 2
groups: { staff: [ana, bo], all: [cleo] }
attributes: { declare: { least: Long }, ana: { least: 1 }, bo: { least: 2 } }
rows: { default: allow }
rules:
  - { id: reads, allow: { actors: { any: true }, actions: [read] } }
  - { id: all, allow: { actors: { group: all }, actions: [row_read], types: [Knows] } }
  - id: some
    allow: { actors: { group: staff }, actions: [row_read], types: [Knows], when: 'resource.since >= principal.least' }
"""


@pytest.mark.parametrize("other", ["bo", "cleo"])
def test_a_cursor_is_rejected_if_its_caller_sees_other_rows(graph, tmp_path, other):
    (tmp_path / "policy.yaml").write_text(POLICY)
    ana, them = (og.open(graph.uri, actor=actor, policy=tmp_path / "policy.yaml") for actor in ("ana", other))
    first = ana.neighbors("Person", "a", limit=1)
    assert first.next is not None
    assert ana.neighbors("Person", "a", limit=1, after=first.next).neighbors
    with pytest.raises(PageCursorRejected, match="its caller saw other rows"):
        them.neighbors("Person", "a", limit=1, after=first.next)


def test_unknown_names_are_refused(graph):
    with pytest.raises(NotFound) as caught:
        graph.neighbors("Person", "none")
    assert caught.value.code == "entity_not_found"
    with pytest.raises(TypeNotFound, match="node type 'Persn' does not exist"):
        graph.degrees("Persn", "a")
    with pytest.raises(TypeNotFound, match="City has no edge type 'Knows'"):
        graph.neighbors("City", "Rome", "Knows")
    for arguments in ({"direction": "up"}, {"limit": 0}, {"limit": 1001}, {"edge": 3}):
        with pytest.raises(InputError):
            graph.neighbors("Person", "a", **arguments)
