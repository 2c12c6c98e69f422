"""Exports for other graph programs: their text, networkx as a reader, round trips, failures, and constant memory."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import networkx
import pytest

import omnigraph as og
from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.errors import Cancelled, Denied, InputError, TypeNotFound
from omnigraph.operations import export as export_module
from omnigraph.operations.formats.neo4j_writer import list_cell
from support.writes import edge, new_graph, node
from unit.operations.test_export import FULL, RECORDS, SCHEMA

ROOT = Path(__file__).parents[4]
EXAMPLES = {"literature": "data.jsonl", "platform": "data.jsonl", "team": "team.jsonl"}
SMALL = """
interface Named { name: String }
node Person implements Named { name: String @key  age: I32?  tags: [String]?  born: Date? }
node Note { text: String?  type: String? }
edge Knows: Person -> Person { since: DateTime? }
edge Wrote: Person -> Note
"""
PEOPLE = [
    node("Person", name="ana", age=31, tags=["x", "y"], born="1990-02-03"),
    node("Person", name='b"o,', tags=[]),
    node("Note", id_="n1", text="a\r\n<b> & \x01", type=""),
    edge("Knows", "ana", 'b"o,', id_="k1", since="2026-01-31T12:30:00Z"),
    edge("Wrote", "ana", "n1", id_="w1"),
]
GRAPHML = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xmlns:og="urn:omnigraph:graphml:1" xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns \
http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd" og:ids="typed">
<key id="nt" for="node" attr.name="type_" attr.type="string" og:role="type"/>
<key id="n0" for="node" attr.name="text" attr.type="string" og:type="String"/>
<key id="n1" for="node" attr.name="type" attr.type="string" og:type="String"/>
<key id="n2" for="node" attr.name="age" attr.type="int" og:type="I32"/>
<key id="n3" for="node" attr.name="born" attr.type="string" og:type="Date"/>
<key id="n4" for="node" attr.name="name" attr.type="string" og:type="String"/>
<key id="n5" for="node" attr.name="tags" attr.type="string" og:type="[String]"/>
<key id="et" for="edge" attr.name="type" attr.type="string" og:role="type"/>
<key id="e0" for="edge" attr.name="since" attr.type="string" og:type="DateTime"/>
<graph id="G" edgedefault="directed">
<node id="Note:n1"><data key="nt">Note</data><data key="n0" og:encoding="json">"a\\r\\n&lt;b&gt; &amp; \\u0001"</data>\
<data key="n1"></data></node>
<node id="Person:ana"><data key="nt">Person</data><data key="n2">31</data><data key="n3">1990-02-03</data>\
<data key="n4">ana</data><data key="n5">["x", "y"]</data></node>
<node id="Person:b&quot;o,"><data key="nt">Person</data><data key="n4">b"o,</data><data key="n5">[]</data></node>
<edge id="Knows:k1" source="Person:ana" target="Person:b&quot;o,"><data key="et">Knows</data>\
<data key="e0">2026-01-31T12:30:00.000Z</data></edge>
<edge id="Wrote:w1" source="Person:ana" target="Note:n1"><data key="et">Wrote</data></edge>
</graph>
</graphml>
"""
NEO4J = {
    "Person-header.csv": "name:ID(Person),age:int,born:date,tags:string[],:LABEL\n",
    "Person.csv": 'ana,31,1990-02-03,x;y,Person;Named\n"b""o,",,,"",Person;Named\n',
    "Note-header.csv": "id:ID(Note),text:string,type:string,:LABEL\n",
    "Note.csv": 'n1,"a\r\n<b> & \x01","",Note\n',
    "Knows-header.csv": ":START_ID(Person),:END_ID(Person),id:string,since:datetime,:TYPE\n",
    "Knows.csv": 'ana,"b""o,",k1,2026-01-31T12:30:00.000Z,Knows\n',
    "Wrote-header.csv": ":START_ID(Person),:END_ID(Note),id:string,:TYPE\n",
    "Wrote.csv": "ana,n1,w1,Wrote\n",
}


@pytest.fixture
def small(tmp_path):
    return new_graph(tmp_path, SMALL, *PEOPLE)


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_bytes().decode() for path in folder.iterdir()}


def test_text_of_graphml(small, tmp_path):
    assert small.export(tmp_path / "x.graphml", format="graphml") == 5
    assert (tmp_path / "x.graphml").read_bytes().decode() == GRAPHML
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g", "x.graphml"]


def test_text_of_neo4j(small, tmp_path):
    assert small.export(tmp_path / "out", format="neo4j") == 5
    found = texts(tmp_path / "out")
    script = found.pop("import.sh")
    assert found == NEO4J
    assert "--nodes='Person-header.csv,Person.csv' \\\n" in script
    assert "--relationships='Knows-header.csv,Knows.csv' \\\n" in script
    assert "--multiline-fields=true" in script


def test_lists_whose_items_cannot_be_separated_are_json():
    assert [list_cell(items) for items in ([], ["a", "b"], ["", ""], [""], ["a;b"], ["[x"], ["x["])] == [
        "",
        "a;b",
        ";",
        '[""]',
        '["a;b"]',
        '["[x"]',
        "x[",
    ]


@pytest.mark.parametrize("format", ["neo4j", "graphml"])
def test_every_type_loads_back(tmp_path, format):
    graph = new_graph(tmp_path, SCHEMA, *RECORDS)
    assert graph.export(tmp_path / "out", format=format) == len(RECORDS)
    copy = og.init(tmp_path / "copy", SCHEMA, sync=False)
    copy.load(tmp_path / "out", mode="append", format=format)
    assert repr(list(copy.export())) == repr(list(graph.export()))
    assert copy.load(tmp_path / "out", mode="merge", format=format).commit_id is not None
    assert repr(list(copy.export())) == repr(list(graph.export()))


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_load_back(name, tmp_path):
    folder = ROOT / "examples" / name
    schema = next(folder.glob("team.pg" if name == "team" else "schema.pg"))
    graph = og.init(tmp_path / "g", schema, sync=False, environ={})
    graph.load(folder / EXAMPLES[name], mode="append", embed=False)
    expected = list(graph.export())
    for format in ("neo4j", "graphml"):
        assert graph.export(tmp_path / format, format=format) == len(expected)
        copy = og.init(tmp_path / f"copy-{format}", schema, sync=False, environ={})
        copy.load(tmp_path / format, mode="append", format=format)
        assert list(copy.export()) == expected


def test_networkx_reads_graphml_and_gexf(tmp_path):
    records = [
        node("All", **FULL),
        node("All", k="second", i=3, b=False, d=-0.5, ss=["a"], mood="a"),
        node("Free", id_="f1", note=""),
        node("Free", id_="f2"),
        edge("Link", "second", "f1", id_="e1", since="2026-01-31", vec=[1, 2]),
        edge("Self", "f1", "f1", id_="s1"),
        edge("Self", "f1", "f1", id_="s2"),
    ]
    graph = new_graph(tmp_path, SCHEMA, *records)
    kinds = {"b": bool, "i": int, "l": int, "u": int, "f": float, "d": float, "k": str, "mood": str, "note": str}
    for format, read in (("graphml", networkx.read_graphml), ("gexf", networkx.read_gexf)):
        out = tmp_path / f"x.{format}"
        assert graph.export(out, format=format) == len(records)
        found = read(out)
        assert (found.number_of_nodes(), found.number_of_edges()) == (4, 3)
        assert found.is_directed()
        assert {data["type"] for _, _, data in found.edges(data=True)} == {"Link", "Self"}
        for record in graph.export(types=["All", "Free"]):
            if "edge" in record:
                continue
            data = {name: value for name, value in record["data"].items() if value is not None}
            own: dict[str, Any] = found.nodes[f"{record['type']}:{data.pop('id')}"]
            assert own["type"] == record["type"]
            assert set(own) - {"type", "label"} == set(data)
            for name, value in data.items():
                if name in kinds:
                    assert (type(own[name]), own[name]) == (kinds[name], value)
        first = found.nodes[f"All:{FULL['k']}"]
        assert (first["day"], first["w"]) == ("0001-01-01", str(2**64 - 1))
        assert json.loads(first["vec"]) == FULL["vec"]
        assert json.loads(first["us"]) == FULL["us"]


def test_selected_types_include_the_nodes_of_their_edges(small, tmp_path):
    assert small.export(tmp_path / "a.gexf", format="gexf", types=["Person", "Knows"]) == 3
    with pytest.raises(InputError, match="the edges 'Wrote' are exported without their nodes 'Note'") as caught:
        small.export(tmp_path / "b.gexf", format="gexf", types=["Person", "Wrote"])
    assert "export the type 'Note' as well" in (caught.value.hint or "")
    with pytest.raises(TypeNotFound):
        small.export(tmp_path / "b.gexf", format="gexf", types=["Persn"])
    assert not (tmp_path / "b.gexf").exists()


def test_refused_destinations_and_options(small, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    with pytest.raises(InputError, match="is not empty") as caught:
        small.export(tmp_path / "full", format="neo4j")
    assert caught.value.code == "not_empty"
    with pytest.raises(InputError, match="is a folder"):
        small.export(tmp_path / "full", format="graphml")
    with pytest.raises(InputError, match="is not a file of this machine"):
        small.export("s3://bucket/x.graphml", format="graphml")
    with pytest.raises(InputError, match="an export to gexf is not partitioned"):
        small.export(tmp_path / "x", format="gexf", partitioned=True)
    with pytest.raises(InputError, match="an export to neo4j is written in this process"):
        small.export(tmp_path / "x", format="neo4j", engine="spark")
    with pytest.raises(InputError, match="there is no format 'gml'") as caught:
        small.export(tmp_path / "x", format="gml")
    assert caught.value.hint == "the formats are jsonl, parquet, csv, arrow, duckdb, neo4j, graphml, gexf"
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written") as caught:
        small.export(tmp_path / "file" / "x.graphml", format="graphml")
    assert caught.value.code == "unwritable_file"


@pytest.mark.parametrize("format", ["neo4j", "graphml", "gexf"])
def test_stopped_export_leaves_the_earlier_state(small, tmp_path, format):
    out = tmp_path / "out"
    if format != "neo4j":
        out.write_text("earlier")
    stopped = Cancellation()
    stopped.cancel()
    with pytest.raises(Cancelled):
        small.export(out, format=format, cancel=stopped)
    assert sorted(path.name for path in tmp_path.iterdir()) == (["g"] if format == "neo4j" else ["g", "out"])
    if format != "neo4j":
        assert out.read_text() == "earlier"


@pytest.mark.parametrize("format", ["neo4j", "graphml", "gexf"])
def test_export_holds_one_batch_of_rows(tmp_path, format, monkeypatch):
    graph = new_graph(tmp_path, "node N { k: I64 @key }\nedge E: N -> N")
    graph.load([node("N", k=number) for number in range(3_000)], mode="append")
    graph.load([edge("E", str(number), "0", id_=f"{number:05}") for number in range(3_000)], mode="append")
    monkeypatch.setattr(export_module, "_ROWS_MAX", 500)
    monkeypatch.setattr(export_module, "_ROWS_MIN", 1)
    sizes: list[int] = []
    whole = export_module.records_of

    def counted(type_, table):
        sizes.append(table.num_rows)
        return whole(type_, table)

    monkeypatch.setattr(export_module, "records_of", counted)
    assert graph.export(tmp_path / "out", format=format) == 6_000
    assert sum(sizes) == 6_000
    # Ranges of ids come from a sample, so that a range can exceed the aim.
    assert max(sizes) <= 1_000
    assert len(sizes) >= 8


def test_policy_is_asked(small, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "version: 1\ngroups:\n  team: [ana]\nrules:\n  - id: read\n    allow:\n      actors: {group: team}\n"
        "      actions: [read]\n      branch_scope: any\n",
    )
    graph = og.open(small.uri, policy=policy, actor="ana")
    for format in ("neo4j", "graphml", "gexf"):
        with pytest.raises(Denied):
            graph.export(tmp_path / f"out.{format}", format=format)
        assert not (tmp_path / f"out.{format}").exists()


def test_an_export_that_cannot_be_flushed_leaves_the_earlier_file(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    graph = new_graph(tmp_path, SMALL, *PEOPLE)
    out = tmp_path / "a.gexf"
    out.write_text("earlier")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        graph.export(out, format="gexf")
    assert out.read_text() == "earlier"
