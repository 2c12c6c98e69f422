"""One graph with every type of value, in four forms."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import omnigraph as og
from support.graph_variants import SECRET, Variants, variants_of

SCHEMA = """
interface Named { name: String }
node Person implements Named {
    name: String @key
    age: I64?
    huge: U64?
    small: F32?
    ratio: F64?
    born: Date?
    seen: DateTime?
    active: Bool?
    tags: [String]?
    days: [Date]?
    photo: Blob?
    vector: Vector(3)?
    state: String?
    @index(age)
}
node City { name: String @key }
edge Knows: Person -> Person { since: Date? }
edge LivesIn: Person -> City @card(0..1)
"""
RECORDS = [
    {
        "type": "Person",
        "data": {
            "name": "ana",
            "age": 2**60 + 1,
            "huge": 2**64 - 1,
            "small": 0.1,
            "ratio": -0.0,
            "born": "2001-02-03",
            "seen": "2026-01-31T12:30:00.5Z",
            "active": True,
            "tags": ["a", "$date"],
            "days": ["2026-01-31"],
            "photo": "base64:aGVsbG8gd29ybGQ=",
            "vector": [1, 0.5, -0.25],
            "state": "on",
        },
    },
    {"type": "Person", "data": {"name": "bo", "age": 41}},
    {"type": "Person", "data": {"name": "cy/λ", "age": -7}},
    {"type": "City", "data": {"name": "Rome"}},
    {"edge": "Knows", "from": "ana", "to": "bo", "data": {"id": "k1", "since": "2020-01-01"}},
    {"edge": "LivesIn", "from": "ana", "to": "Rome", "data": {"id": "l1"}},
]


def make_graph(path: Path) -> None:
    """A graph with a history: two loads, a merged branch, a tag, and a branch that conflicts with main."""
    graph = og.init(path, SCHEMA, actor="root", sync=False)
    graph.load(RECORDS, mode="merge", message="first people")
    graph.tag_create("v1", message="the first state")
    graph.branch_create("2026", description="named like a number")
    graph.branch_create("topic/a", description="a topic")
    topic = graph.on("topic/a")
    topic.mutate('query q() { update Person set { age: 31 } where name = "bo" }', message="bo is 31")
    graph.merge("topic/a")
    graph.branch_create("draft")
    graph.on("draft").mutate('query q() { update Person set { born: date("1990-01-01") } where name = "ana" }')
    graph.on("draft").mutate('query q() { insert City { name: "Oslo" } }')
    graph.mutate('query q() { update Person set { born: date("1991-01-01") } where name = "ana" }')
    graph.mutate('query q() { delete Person where name = "cy/λ" }')
    graph.branch_create(SECRET)
    graph.on(SECRET).mutate('query q() { insert City { name: "Zion" } }')


@pytest.fixture(scope="session")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The graph that is copied."""
    path = tmp_path_factory.mktemp("origin") / "origin.omni"
    make_graph(path)
    return path


@pytest.fixture(scope="session")
def variants(origin: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Variants]:
    """The forms of a graph that tests read."""
    with variants_of(partial(shutil.copytree, origin), tmp_path_factory.mktemp("variants")) as made:
        yield made


@pytest.fixture
def written(origin: Path, tmp_path: Path) -> Iterator[Variants]:
    """The forms of a graph that one test writes."""
    with variants_of(partial(shutil.copytree, origin), tmp_path) as made:
        yield made
