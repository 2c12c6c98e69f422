"""GraphML: files of networkx, yEd, Gephi and Neo4j, elements without a counterpart, and hostile files."""

from __future__ import annotations

import gzip

import networkx
import pytest

import omnigraph as og
from omnigraph.errors import InputError, RecordError
from support.writes import new_graph, rows_of

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
PEOPLE = """
node Person { name: String?  age: I64?  ok: Bool?  w: F64?  label: String? }
edge Knows: Person -> Person { w: F64? }
"""


def load(tmp_path, text, schema=PEOPLE, name="x.graphml", **options):
    graph = new_graph(tmp_path, schema)
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return graph, graph.load(tmp_path / name, mode="append", **options)


def test_files_of_networkx(tmp_path):
    network = networkx.MultiDiGraph()
    network.add_node("ana", name="Añá <&> \n x", age=2**40, ok=True, w=0.1)
    network.add_node("bo", name="", age=-1, ok=False)
    network.add_edge("ana", "bo", w=0.5)
    network.add_edge("ana", "bo", w=2.5)
    networkx.write_graphml(network, tmp_path / "n.graphml")
    graph = new_graph(tmp_path, PEOPLE)
    result = graph.load(tmp_path / "n.graphml", mode="append")
    assert dict(result.tables) == {"node:Person": 2, "edge:Knows": 2}
    assert rows_of(graph, "Person") == {
        "ana": {"name": "Añá <&> \n x", "age": 2**40, "ok": True, "w": 0.1, "label": None},
        "bo": {"name": "", "age": -1, "ok": False, "w": None, "label": None},
    }
    assert sorted(row["w"] for row in rows_of(graph, "Knows").values()) == [0.5, 2.5]


def test_undirected_edges_go_from_source_to_target(tmp_path):
    networkx.write_graphml(networkx.path_graph(3), tmp_path / "p.graphml")
    graph = new_graph(tmp_path, "node N { n: I64 @key }\nedge Next: N -> N")
    result = graph.load(tmp_path / "p.graphml", mode="append")
    ends = {(record["from"], record["to"]) for record in graph.export(types=["Next"])}
    assert ends == {("0", "1"), ("1", "2")}
    assert result.notes == (f"{tmp_path / 'p.graphml'}: 2 undirected edges were loaded from source to target",)


def test_types_are_attributes(tmp_path):
    schema = "node A { x: I64? }\nnode B { type: String? }\nedge R: A -> B\nedge SAB: A -> B\nedge SBA: B -> A"
    text = f"""{HEAD}
    <key id="t" for="all" attr.name="type" attr.type="string"/><key id="l" for="edge" attr.name="label"/>
    <key id="x" for="node" attr.name="x" attr.type="long"/>
    <graph edgedefault="directed">
      <node id="1"><data key="t">A</data><data key="x"> 7 </data></node>
      <node id="2" labels=":B:Other"><data key="labels">:B:Other</data></node>
      <edge source="1" target="2"><data key="t">R</data></edge>
      <edge source="1" target="2"><data key="l">S</data></edge>
      <edge source="2" target="1" label="S"><data key="label">S</data></edge>
    </graph></graphml>"""
    graph, result = load(tmp_path, text, schema)
    assert dict(result.tables) == {"node:A": 1, "node:B": 1, "edge:R": 1, "edge:SAB": 1, "edge:SBA": 1}
    assert rows_of(graph, "A") == {"1": {"x": 7}}
    assert any("the label 'Other' of 'B' is not stored" in note for note in result.notes)


def test_defaults_apply_to_types_that_have_the_property(tmp_path):
    text = f"""{HEAD}
    <key id="a" for="node" attr.name="age" attr.type="int"><default>18</default></key>
    <key id="c" for="node" attr.name="colour" attr.type="string"><default>red</default></key>
    <key id="w" for="edge" attr.name="w" attr.type="double"><default>1.5</default></key>
    <graph edgedefault="directed"><node id="1"/><node id="2"><data key="a">3</data></node>
    <edge source="1" target="2"/></graph></graphml>"""
    graph, _ = load(tmp_path, text)
    assert {id_: row["age"] for id_, row in rows_of(graph, "Person").items()} == {"1": 18, "2": 3}
    assert [row["w"] for row in rows_of(graph, "Knows").values()] == [1.5]


def test_labels_of_yed_and_attributes_of_gephi(tmp_path):
    text = f"""{HEAD.replace("<graphml", '<graphml xmlns:y="http://www.yworks.com/xml/graphml"')}
    <key for="node" id="d6" yfiles.type="nodegraphics"/><key for="edge" id="d9" yfiles.type="edgegraphics"/>
    <key id="r" for="node" attr.name="r" attr.type="int"/>
    <graph edgedefault="directed" id="G">
      <node id="n0"><data key="d6"><y:ShapeNode><y:Geometry x="1"/><y:NodeLabel> Ana <y:Model/></y:NodeLabel>
        <y:Shape type="rectangle"/></y:ShapeNode></data></node>
      <node id="n1"><data key="d6"><y:ShapeNode/></data><data key="r">255</data></node>
      <edge id="e0" source="n0" target="n1"><data key="d9"><y:PolyLineEdge><y:EdgeLabel>knows</y:EdgeLabel>
        </y:PolyLineEdge></data></edge>
    </graph></graphml>"""
    graph, _ = load(tmp_path, text, columns={"r": None})
    assert {id_: row["label"] for id_, row in rows_of(graph, "Person").items()} == {"n0": "Ana", "n1": None}
    with pytest.raises(RecordError, match="line 9: node type 'Person' has no property 'r'"):
        graph.load(tmp_path / "x.graphml", mode="merge")


def test_elements_without_a_counterpart_are_reported(tmp_path):
    text = f"""{HEAD}<graph edgedefault="directed">
<node id="1"/>
<node id="2"><port name="North"/></node>
<node id="3"><data key="name">x</data><graph id="3:"><node id="3::4"/><edge source="1" target="1"/></graph></node>
<hyperedge id="h"><endpoint node="1"/><endpoint node="2"/></hyperedge>
<edge source="1" target="1" sourceport="North"/>
<edge source="1" target="9"/>
<edge source="1"/>
</graph></graphml>"""
    rejects: list = []
    _, result = load(tmp_path, text, rejects=rejects)
    assert [(one.line, one.rule) for one in rejects] == [
        (5, "graphml"),
        (6, "graphml"),
        (7, "graphml"),
        (8, "graphml"),
        (9, "endpoint"),
        (10, "endpoint"),
    ]
    assert rejects[1].reason == "the node '3' has a nested <graph>, which is not supported"
    assert "a <hyperedge> joins any number of nodes" in rejects[2].reason
    assert dict(result.tables) == {"node:Person": 1, "edge:Knows": 0}


def test_keys_of_nodes(tmp_path):
    schema = "node Person { name: String @key  age: I64? }\nedge Knows: Person -> Person"
    text = f"""{HEAD}<key id="n" for="node" attr.name="name"/><graph edgedefault="directed">
    <edge source="n0" target="bo"/><node id="n0"><data key="n">ana</data></node><node id="bo"/></graph></graphml>"""
    graph, _ = load(tmp_path, text, schema)
    assert list(rows_of(graph, "Person")) == ["ana", "bo"]
    assert [(record["from"], record["to"]) for record in graph.export(types=["Knows"])] == [("ana", "bo")]


def test_types_that_are_not_clear(tmp_path):
    schema = "node A { x: I64? }\nnode B {}\nedge R: A -> A\nedge S: A -> A"
    text = f'{HEAD}<graph edgedefault="directed"><node id="1"/></graph></graphml>'
    with pytest.raises(RecordError, match="the node has no label"):
        load(tmp_path, text, schema)
    graph = og.open(tmp_path / "g")
    typed = text.replace("/></graph>", ' labels=":A"/><edge source="1" target="1"/></graph>')
    (tmp_path / "x.graphml").write_text(typed)
    with pytest.raises(RecordError, match="the type of the edge from A to A is not clear"):
        graph.load(tmp_path / "x.graphml", mode="append")
    (tmp_path / "x.graphml").write_text(text)
    graph.load({"B": tmp_path / "x.graphml"}, mode="append")
    assert list(rows_of(graph, "B")) == ["1"]


def test_compressed_and_named_by_the_format(tmp_path):
    text = gzip.compress(f'{HEAD}<graph edgedefault="directed"><node id="1"/></graph></graphml>'.encode())
    graph, _ = load(tmp_path, text, name="x.graphml.gz")
    (tmp_path / "y.xml").write_bytes(gzip.decompress(text).replace(b'id="1"', b'id="2"'))
    graph.load(tmp_path / "y.xml", mode="append", format="graphml")
    assert list(rows_of(graph, "Person")) == ["1", "2"]


def test_job_in_parts_equals_the_load_in_memory(tmp_path, tune):
    network = networkx.gnp_random_graph(60, 0.1, seed=3, directed=True)
    for number in network.nodes:
        network.nodes[number]["age"] = "x" if number == 7 else number
    networkx.write_graphml(network, tmp_path / "r.graphml")
    rejects: list = []
    graph = new_graph(tmp_path, PEOPLE)
    graph.load(tmp_path / "r.graphml", mode="append", rejects=rejects)
    tune(memory_load_bytes_max=1, spark_cores_min=10**6, csv_batch_rows=16)
    other = og.init(tmp_path / "other", PEOPLE, sync=False)
    again: list = []
    other.load(tmp_path / "r.graphml", mode="append", rejects=again)
    assert again == rejects
    assert len(rejects) > 1
    assert rows_of(other, "Person") == rows_of(graph, "Person")


LAUGHS = """<!DOCTYPE graphml [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;">]>
<graphml><graph edgedefault="directed"><node id="&c;"/></graph></graphml>"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LAUGHS, "declares or uses the entity 'a'"),
        (
            '<!DOCTYPE graphml [<!ENTITY x SYSTEM "file:///etc/passwd">]><graphml><graph>&x;</graph></graphml>',
            "entity 'x'",
        ),
        ('<!DOCTYPE graphml [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x.dtd"> %p;]><graphml/>', "entity 'p'"),
        (
            '<!DOCTYPE graphml SYSTEM "x.dtd"><graphml><graph><node id="1">&q;</node></graph></graphml>',
            "entity 'q'",
        ),
        ("<graphml><graph><node id='&q;'/></graph></graphml>", "is not valid XML: undefined entity, line 1"),
        ("<graphml><graph><node id='1'>", "is not valid XML: no element found, line 1"),
        ("<?xml version='1.0' encoding='no-such'?><graphml/>", "is not valid XML: unknown encoding"),
        ("<?xml version='1.0' encoding='shift-jis'?><graphml/>", "is not valid XML: multi-byte encodings"),
        ("<gexf/>", "is not GraphML: its root is <gexf>"),
        ("", "is not valid XML: no element found"),
        ("<graphml>" + "<a>" * 200, "nested more than 100 deep"),
    ],
)
def test_hostile_files_are_refused(tmp_path, text, said):
    with pytest.raises(InputError, match=said) as caught:
        load(tmp_path, text)
    assert caught.value.code == "unreadable_file"


def test_document_type_of_graphml_is_accepted_without_reading_it(tmp_path):
    document_type = '<!DOCTYPE graphml SYSTEM "http://graphml.graphdrawing.org/dtds/1.0rc/graphml.dtd">'
    text = f'{document_type}<graphml><graph><node id="1"/></graph></graphml>'
    graph, _ = load(tmp_path, text)
    assert list(rows_of(graph, "Person")) == ["1"]


def test_long_values_are_refused(tmp_path, tune):
    tune(record_bytes_max=1_000)
    text = f'{HEAD}<graph><node id="1"><data key="name">{"x" * 2_000}</data></node></graph></graphml>'
    with pytest.raises(RecordError, match="larger than the limit of 1,000 bytes"):
        load(tmp_path, text)
