"""Graph documents as nodes and edges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_omnigraph import OmniGraph

import omnigraph as og
from omnigraph.errors import InputError

SCHEMA = """
node Person { name: String @key  born: I32? }
node Company { name: String @key }
node Page { id_: String @key  text: String  source: String? }
edge WorksAt: Person -> Company { since: I32?  @unique(src, dst) }
edge MentionsPerson: Page -> Person { @unique(src, dst) }
"""


@dataclass
class Node:
    """As `langchain_community.graphs.graph_document.Node`."""

    id: str
    type: str = "Node"
    properties: dict[str, Any] = field(default_factory=dict)


@dataclass
class Relationship:
    source: Node
    target: Node
    type: str
    properties: dict[str, Any] = field(default_factory=dict)


@dataclass
class GraphDocument:
    nodes: list[Node]
    relationships: list[Relationship]
    source: Document | None = None


ANA, ACME = Node("Ana", "Person", {"born": 1980}), Node("ACME", "COMPANY")


@pytest.fixture
def graph(tmp_path):
    return og.init(tmp_path / "people.omni", SCHEMA, sync=False)


def test_labels_are_declared_types(graph):
    store = OmniGraph(graph)
    document = GraphDocument([ANA], [Relationship(ANA, ACME, "WORKS_AT", {"since": 2001})])
    commit = store.add_graph_documents([document, document])
    assert commit == graph.commits()[0].id
    assert graph.commits()[0].message == "add 2 graph documents"
    rows = store.query(
        "match { $p: Person { name: $who } $p $w:worksAt $c } return { $c.name as at, $w.since as since }",
        {"who": "Ana"},
    )
    assert rows == [{"at": "ACME", "since": 2001}]
    assert store.add_graph_documents([document]) is not None
    assert graph.to_arrow("WorksAt").num_rows == 1
    assert store.add_graph_documents([]) is None
    assert "node Person" in store.get_schema


def test_what_the_schema_does_not_declare_is_refused_by_name(graph):
    store = OmniGraph(graph)
    for document, message in [
        (GraphDocument([Node("x", "Robot")], []), "no node type 'Robot'"),
        (GraphDocument([Node("x", "Person", {"shoe": 43})], []), "'Person' has no property 'shoe'"),
        (
            GraphDocument([], [Relationship(ACME, ANA, "WORKS_AT")]),
            "no edge type 'WORKS_AT' from 'Company' to 'Person'",
        ),
        (GraphDocument([], [Relationship(ANA, ACME, "WORKS_AT", {"x": 1})]), "'WorksAt' has no property 'x'"),
    ]:
        with pytest.raises(InputError, match=message):
            store.add_graph_documents([document])
    assert len(graph.commits()) == 1


def test_sources_mention_nodes(graph):
    store = OmniGraph(graph, source_type="Page", mentions=["MentionsPerson"])
    page = Document(id="p1", page_content="Ana was here.", metadata={"source": "a.txt"})
    store.add_graph_documents([GraphDocument([ANA], [], page)], include_source=True)
    assert store.query("match { $p: Page $p mentionsPerson $x } return { $p.source as s, $x.name as n }") == [
        {"s": "a.txt", "n": "Ana"}
    ]
    with pytest.raises(InputError, match="leads from 'Page' to 'Company'"):
        store.add_graph_documents([GraphDocument([ACME], [], page)], include_source=True)
    with pytest.raises(InputError, match="type of source documents is not known"):
        OmniGraph(graph).add_graph_documents([GraphDocument([ANA], [], page)], include_source=True)


def test_queries_only_read(graph):
    with pytest.raises(InputError):
        OmniGraph(graph).query('insert Company { name: "X" }')
