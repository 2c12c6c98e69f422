"""Schemas inferred from Neo4j admin CSV and GraphML, and graphs made from them."""

from __future__ import annotations

import networkx
import pytest

import omnigraph as og
from omnigraph.errors import InputError
from omnigraph.graph_frames import load_draft
from omnigraph.schema.check import compile_schema
from support.writes import edge, new_graph, node, rows_of
from unit.engine.graph_files.test_neo4j import FILES, write

DRAFT = """\
// Inferred from 5 files of IN (neo4j: 5 nodes, 3 edges).

interface Work {}

node Movie implements Work {  // 1 with the label 'Movie'; all of them have the labels 'Work'
    movieId: String @key  // 'movieId:ID'
    title: String         // 'title'
    year: I32             // 'year:int'
    genres: [String]      // 'genres:string[]'
    scores: [F64]         // 'scores:double[]'
}

node Series implements Work {  // 1 with the label 'Series'; all of them have the labels 'Work'
    movieId: String @key  // 'movieId:ID'
    title: String         // 'title'
}

node Person {  // 3 with the label 'Person'
    personId: String @key  // 'personId:ID'
    name: String?          // 'name'; 1 without a value
    born: I32?             // 'born:int'; 1 without a value
    labels: [String]       // further labels: 'Actor'
}

edge Knows: Person -> Person {  // 1 of the type 'KNOWS'
    since: Date  // 'since:date'
}

edge ActedInPersonMovie: Person -> Movie {  // 1 of the type 'ACTED_IN', which joins 2 pairs of types
    roles: [String]  // 'roles:string[]'
}

edge ActedInPersonSeries: Person -> Series {  // 1 of the type 'ACTED_IN', which joins 2 pairs of types
    roles: [String]  // 'roles:string[]'
}
"""


def create(tmp_path, draft, name="made"):
    graph = og.init(tmp_path / name, draft, sync=False, environ={})
    load_draft(graph, draft)
    return graph


def test_draft_of_neo4j_and_its_load(tmp_path):
    folder = write(tmp_path / "in", FILES)
    draft = og.infer_schema(f"neo4j:{folder}")
    assert str(draft).replace(str(folder), "IN") == DRAFT
    graph = create(tmp_path, draft)
    assert len(list(graph.export())) == 8
    assert rows_of(graph, "Person")["keanu"]["labels"] == ["Actor"]


def test_export_to_neo4j_is_inferred_with_its_keys_and_types(tmp_path):
    schema = """
    node Person { name: String @key  age: I32?  far: I64  f: F32?  d: F64  ok: Bool  day: Date  at: DateTime?
        ss: [String] }
    node Number { n: I64 @key  note: String? }
    node Free { x: String? }
    edge Likes: Person -> Number { w: F64 }
    edge Same: Free -> Free
    """
    data = {"far": 2**62, "d": 0.1, "ok": True, "day": "2026-01-31", "ss": ["a"]}
    full = {"age": 1, "f": 0.5, "at": "2026-01-31T00:00:00Z"}
    graph = new_graph(
        tmp_path,
        schema,
        *[node("Person", name="a", **data, **full), node("Person", name="b", **data), node("Number", n=7)],
        *[node("Number", n=8, note="x"), node("Free", id_="1"), node("Free", id_="2", x="")],
        *[edge("Likes", "a", "7", id_="l", w=1.5), edge("Same", "1", "2", id_="s")],
    )
    graph.export(tmp_path / "out", format="neo4j")
    draft = og.infer_schema(f"neo4j:{tmp_path / 'out'}")
    assert compile_schema(str(draft)) == compile_schema(schema)
    made = create(tmp_path, draft)
    assert list(made.export()) == list(graph.export())


def test_export_to_graphml_is_inferred_with_its_types(tmp_path):
    schema = "node A { v: Vector(2)  b: Blob  u: U64  m: enum(x, y)  d: [Date]  t: Uuid? }\nedge R: A -> A { w: F32 }"
    uuid = "0b8a3c1e-5f5c-4f7e-9a57-1f5d7c3f9c11"
    values = {"v": [1, 2], "b": "base64:AA==", "u": 2**64 - 1, "m": "x", "d": ["2026-01-31"]}
    records = [node("A", id_="1", **values), node("A", id_="2", **values, t=uuid), edge("R", "1", "2", id_="r", w=0.5)]
    graph = new_graph(tmp_path, schema, *records)
    graph.export(tmp_path / "out.graphml", format="graphml")
    draft = og.infer_schema(tmp_path / "out.graphml")
    assert compile_schema(str(draft)) == compile_schema(schema)
    assert list(create(tmp_path, draft).export()) == list(graph.export())


def test_draft_of_a_file_of_networkx(tmp_path):
    network = networkx.karate_club_graph()
    networkx.write_graphml(network, tmp_path / "karate.txt")
    draft = og.infer_schema(f"graphml:{tmp_path / 'karate.txt'}")
    assert str(draft) == (
        "// Inferred from karate.txt (graphml: 34 nodes, 78 edges).\n\n"
        "node Node {  // 34 with the label 'Node'\n    club: String  // type string\n}\n\n"
        "edge Edge: Node -> Node {  // 78 of the type 'Edge'\n    weight: I64  // type long\n}\n"
    )
    graph = create(tmp_path, draft)
    assert (graph.to_arrow("Node").num_rows, graph.to_arrow("Edge").num_rows) == (34, 78)
    club = {f"{number}": data["club"] for number, data in network.nodes(data=True)}
    assert {id_: row["club"] for id_, row in rows_of(graph, "Node").items()} == club


def test_awkward_names_are_renamed_and_loaded(tmp_path):
    files = {
        "x.csv": ':ID,id:int,First Name,src,1st,:LABEL\n1,5,ana,s,x,"movie star"\n2,6,,,,movie star\n',
        "e.csv": ":START_ID,:END_ID,id,to,:TYPE\n1,2,edge-1,z,is-a FRIEND_of\n",
    }
    draft = og.infer_schema(f"neo4j:{write(tmp_path / 'in', files)}")
    graph = create(tmp_path, draft)
    assert rows_of(graph, "MovieStar") == {
        "1": {"moviestar_id": 5, "first_name": "ana", "src": "s", "c_1st": "x"},
        "2": {"moviestar_id": 6, "first_name": None, "src": None, "c_1st": None},
    }
    assert rows_of(graph, "IsAFriendOf") == {"edge-1": {"from": "1", "to": "2", "isafriendof_to": "z"}}


def test_types_that_declarations_disagree_on_are_texts(tmp_path):
    files = {"a.csv": ":ID,x:int,:LABEL\n1,5,A\n", "b.csv": ":ID,x:duration,:LABEL\n2,P1D,A\n3,,B\n"}
    draft = og.infer_schema(f"neo4j:{write(tmp_path / 'in', files)}")
    assert "x: String  // declared with several types" in draft
    assert "node B {}  // 1 with the label 'B'" in draft
    assert rows_of(create(tmp_path, draft), "A") == {"1": {"x": "5"}, "2": {"x": "P1D"}}


def test_refused_inputs(tmp_path):
    folder = write(tmp_path / "in", {"x.csv": ":ID,:LABEL\n"})
    with pytest.raises(InputError, match="has no nodes"):
        og.infer_schema(f"neo4j:{folder}")
    with pytest.raises(InputError, match="inferred alone, in one format"):
        og.infer_schema(f"neo4j:{folder}", "people.csv")
    with pytest.raises(InputError, match="inferred alone, in one format"):
        og.infer_schema(f"neo4j:{folder}", "x.graphml")
    with pytest.raises(InputError, match="are not inferred together"):
        og.infer_schema(f"neo4j:{folder}", people="people.csv")
    with pytest.raises(InputError, match="there is no file"):
        og.infer_schema("graphml:nothing.graphml")
