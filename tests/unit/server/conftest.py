"""A small graph and a server on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from support.server import ServerUnderTest, serving

SCHEMA = """
node Person {
    name: String @key
    age: I64?
    photo: Blob?
}
edge Knows: Person -> Person { since: I64? }
"""
RECORDS = [
    {"type": "Person", "data": {"name": "ana", "age": 30}},
    {"type": "Person", "data": {"name": "bo", "age": 41}},
    {"edge": "Knows", "from": "ana", "to": "bo", "data": {"since": 2020}},
]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "people.omni", SCHEMA)
    graph.load(RECORDS, mode="merge", message="first people")
    return graph


@pytest.fixture
def server(graph: og.Graph) -> Iterator[ServerUnderTest]:
    with serving(graph.uri) as running:
        yield running
