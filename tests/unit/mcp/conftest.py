"""A small graph with stored queries, and endpoints on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.engine.exec.context import Limits
from omnigraph.mcp.endpoint import Endpoint
from omnigraph.mcp.session import McpSettings, Session

SCHEMA = """
node Person {
    name: String @key
    age: I64?
    bio: String? @index
    meaning: Vector(3)?
}
node Company {
    slug: String @key
    title: String
    founded: Date?
}
edge Knows: Person -> Person { since: I64? }
edge WorksAt: Person -> Company @card(0..1)
"""
RECORDS = [
    {"type": "Person", "data": {"name": "ana", "age": 30, "bio": "Paints ships.", "meaning": [1, 0, 0]}},
    {"type": "Person", "data": {"name": "bo", "age": 41}},
    {"type": "Company", "data": {"slug": "acme", "title": "Acme", "founded": "1990-05-01"}},
    {"edge": "Knows", "from": "ana", "to": "bo", "data": {"since": 2020}},
    {"edge": "WorksAt", "from": "ana", "to": "acme"},
]
QUERIES = """
query adults($age: I64) @description("People of at least an age.") @instruction("Use it for ages.") {
    match {
        $p: Person
        $p.age >= $age
    }
    return { $p.name as name, $p.age as age }
    order { $p.age }
}

query everyone() @tool_name("all_people") { match { $p: Person } return { $p.name } }

query hidden() @expose(false) { match { $p: Person } return { $p.name } }

query add_person($name: String, $age: I64?) { insert Person { name: $name, age: $age } }
"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "people.omni", SCHEMA, actor="ana")
    graph.load(RECORDS, mode="merge", message="first people")
    graph.store_query(QUERIES)
    return graph


MakeEndpoint = Callable[..., Endpoint]


@pytest.fixture
def endpoint(graph: og.Graph) -> MakeEndpoint:
    """Returns an endpoint with settings."""

    def make(on: og.Graph = graph, **settings: Any) -> Endpoint:
        return Endpoint(Session.of(on, McpSettings(**settings), Limits(timeout_s=30)))

    return make
