"""A server, the graph that it serves, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from support.server import ServerUnderTest, serving

SCHEMA = """
node Person { name: String @key  born: Date?  seen: DateTime?  score: F64?  big: I64?  photo: Blob? }
node Place { code: I64 @key  title: String? }
edge Knows: Person -> Person { since: I32? }
edge LivesIn: Person -> Place
"""
RECORDS = [
    {
        "type": "Person",
        "data": {"name": "ana", "born": "1990-02-03", "seen": "2026-01-31T12:30:00Z", "score": 1.5, "big": 2**60},
    },
    {"type": "Person", "data": {"name": "bo/b", "photo": "base64:aGVsbG8gd29ybGQ="}},
    {"type": "Place", "data": {"code": 7, "title": "Hal"}},
    {"edge": "Knows", "from": "ana", "to": "bo/b", "data": {"id": "k1", "since": 2001}},
    {"edge": "LivesIn", "from": "ana", "to": "7", "data": {"id": "l1"}},
]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("client") / "g.omni", SCHEMA)
    graph.load(RECORDS, mode="append")
    return graph


@pytest.fixture(scope="module")
def server(local: og.Graph) -> Iterator[ServerUnderTest]:
    with serving(local.uri, flags={"unauthenticated": True}) as running:
        yield running


@pytest.fixture(scope="module")
def remote(server: ServerUnderTest) -> Iterator[og.RemoteGraph]:
    with og.connect(server.url) as graph:
        yield graph


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path
