"""Neo4j admin CSV: headers, groups of files, labels, id spaces, arrays, quotes, and rejected rows."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.engine.graph_files.neo4j_header import parse_header
from omnigraph.errors import InputError, RecordError
from support.writes import new_graph, rows_of

MOVIES = """
interface Work { title: String }
node Person { personId: String @key  name: String?  born: I32?  labels: [String]? }
node Movie implements Work { title: String  year: I32?  genres: [String]?  scores: [F64]? }
node Series implements Work { title: String }
edge ActedInPersonMovie: Person -> Movie { roles: [String]? }
edge ActedInPersonSeries: Person -> Series { roles: [String]? }
edge Knows: Person -> Person { since: Date? }
"""
FILES = {
    "people-header.csv": "personId:ID,name,born:int,:IGNORE,:LABEL\n",
    "people-part1.csv": 'keanu,"Keanu ""K"" Reeves",1964,x,Person;Actor\n',
    "people-part2.csv": "carrie,Carrie-Anne Moss,1967,,Person\nlana,,,,Person\n",
    "movies.csv": (
        "movieId:ID,title,year:int,genres:string[],scores:double[],:LABEL\n"
        'tt1,"The\nMatrix",1999,"Action;Sci-Fi","8.7;9",Movie;Work\n'
        'tt2,"",,,,Series;Work\n'
    ),
    "roles.csv": ":START_ID,roles:string[],:END_ID,:TYPE\nkeanu,Neo,tt1,ACTED_IN\ncarrie,Trinity;T,tt2,ACTED_IN\n",
    "knows.csv": ":START_ID,:END_ID,since:date,:TYPE\nkeanu,carrie,1998-05-01,KNOWS\n",
}


def write(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir()
    for name, text in files.items():
        data = text.encode()
        (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


@pytest.fixture
def graph(tmp_path):
    return new_graph(tmp_path, MOVIES)


def test_folder_is_one_commit(graph, tmp_path):
    before = graph.snapshot().commit_id
    result = graph.load(write(tmp_path / "in", FILES), mode="append", format="neo4j")
    assert [commit.id for commit in graph.commits()][:2] == [result.commit_id, before]
    assert rows_of(graph, "Person") == {
        "keanu": {"personId": "keanu", "name": 'Keanu "K" Reeves', "born": 1964, "labels": ["Actor"]},
        "carrie": {"personId": "carrie", "name": "Carrie-Anne Moss", "born": 1967, "labels": []},
        "lana": {"personId": "lana", "name": None, "born": None, "labels": []},
    }
    assert rows_of(graph, "Movie") == {
        "tt1": {"title": "The\nMatrix", "year": 1999, "genres": ["Action", "Sci-Fi"], "scores": [8.7, 9.0]}
    }
    assert rows_of(graph, "Series") == {"tt2": {"title": ""}}
    ends = [(record["edge"], record["from"], record["to"]) for record in graph.export() if "edge" in record]
    assert ends == [
        ("ActedInPersonMovie", "keanu", "tt1"),
        ("ActedInPersonSeries", "carrie", "tt2"),
        ("Knows", "keanu", "carrie"),
    ]
    roles = [record["data"]["roles"] for record in graph.export() if record.get("edge", "").startswith("Acted")]
    assert roles == [["Neo"], ["Trinity", "T"]]


def test_job_in_parts_equals_the_load_in_memory(graph, tmp_path, tune):
    folder = write(tmp_path / "in", {**FILES, "people-part3.csv": "bad,,x,,Person\nlate,,1,,Person\n"})
    rejects: list = []
    graph.load(folder, mode="append", format="neo4j", rejects=rejects)
    other = og.init(tmp_path / "other", MOVIES, sync=False)
    tune(memory_load_bytes_max=1, spark_cores_min=10**6)
    again: list = []
    other.load(folder, mode="append", format="neo4j", rejects=again)
    assert again == rejects
    assert [reject.line for reject in rejects] == [1]
    assert rows_of(other, "Person") == rows_of(graph, "Person")
    assert rows_of(other, "Movie") == rows_of(graph, "Movie")


def test_rejects_name_file_line_and_field(graph, tmp_path):
    files = {
        "people.csv": (
            'personId:ID,name,born:int,colour,:LABEL\na,"x\ny",old,,Person\nb,,,red,Person\nc,,,,Robot\nd,,,,Person\ne,f\n'
        ),
        "knows.csv": ":START_ID,:END_ID,:TYPE\nd,zz,KNOWS\nd,,KNOWS\nd,d,HATES\nd,d,KNOWS\n",
    }
    rejects: list = []
    folder = write(tmp_path / "in", files)
    result = graph.load(folder, mode="append", format="neo4j", rejects=rejects)
    found = [(Path(one.source).name, one.line, one.property, one.rule) for one in rejects]
    assert found == [
        ("knows.csv", 2, "dst", "endpoint"),
        ("knows.csv", 3, None, "endpoint"),
        ("knows.csv", 4, None, "type"),
        ("people.csv", 2, "born", "value"),
        ("people.csv", 4, "colour", "unknown_property"),
        ("people.csv", 5, None, "type"),
        ("people.csv", 7, None, "csv"),
    ]
    assert rejects[3].record == {
        "type": "Person",
        "data": {"personId": "a", "name": "x\ny", "born": "old", "labels": []},
    }
    assert dict(result.tables) == {"node:Person": 1, "edge:Knows": 1}
    with pytest.raises(RecordError, match=r"people\.csv, line 4: node type 'Person' has no property 'colour'"):
        graph.load(folder / "people.csv", mode="append", format="neo4j")
    left_out = {"colour": None}
    graph.load(folder / "people.csv", mode="merge", format="neo4j", columns=left_out, rejects=(later := []))
    assert [one.line for one in later] == [2, 5, 7]


def test_id_spaces_keep_equal_ids_apart(tmp_path):
    graph = new_graph(tmp_path, "node A { n: String? }\nnode B { n: String? }\nedge Of: A -> B\nedge OfBA: B -> A")
    files = {
        "A.csv": ":ID(a),n\n1,first\n",
        "B.csv": ":ID(b),n\n1,second\n",
        "of.csv": ":START_ID(a),:END_ID(b),:TYPE\n1,1,OF\n",
        "back.csv": ":START_ID(b),:END_ID(a),:TYPE\n1,1,OfBA\n",
    }
    graph.load(write(tmp_path / "in", files), mode="append", format="neo4j")
    assert rows_of(graph, "A") == {"1": {"n": "first"}}
    assert rows_of(graph, "B") == {"1": {"n": "second"}}
    assert {record["edge"] for record in graph.export() if "edge" in record} == {"Of", "OfBA"}


def test_other_keys_are_found_by_an_index_of_the_nodes(tmp_path):
    schema = """
    node Person { name: String @key  n: I64? }
    node Bed { ward: String  no: I32  @key(ward, no) }
    node Number { n: I64 @key }
    edge In: Person -> Bed
    edge Has: Person -> Number
    """
    graph = new_graph(tmp_path, schema)
    files = {
        "nodes.csv": ":ID,name,ward,no:int,n:long,:LABEL\n17,ana,,,5,Person\n18,,north,7,,Bed\n",
        "Number.csv": "n:ID\n0042\n",
        "In.csv": ":START_ID,:END_ID\n17,18\n",
        "Has.csv": ":START_ID,:END_ID\n17,42\n17,0042\n",
    }
    graph.load(write(tmp_path / "in", files), mode="append", format="neo4j")
    ends = [(record["edge"], record["from"], record["to"]) for record in graph.export() if "edge" in record]
    assert sorted(ends) == [("Has", "ana", "42"), ("Has", "ana", "42"), ("In", "ana", '["7","north"]')]
    # An id that stands for the key of a type without a column for it.
    plain = og.init(tmp_path / "plain", "node Person { name: String @key }\nedge Knows: Person -> Person", sync=False)
    files = {"Person.csv": ":ID\nana\nbo\n", "Knows.csv": ":START_ID,:END_ID\nana,bo\n"}
    plain.load(write(tmp_path / "plain-in", files), mode="append", format="neo4j")
    assert [record["from"] for record in plain.export(types=["Knows"])] == ["ana"]


def test_delimiters_and_compressed_files(tmp_path):
    graph = new_graph(tmp_path, "node P { tags: [String]? }\nedge E: P -> P { w: F64? }")
    files = {
        "P-header.csv.gz": ":ID|tags:string[]|:LABEL\n",
        "P_0.csv.gz": '1|a,b|P\n2|"[""x"", ""y|z""]"|P\n',
        "E.tsv": ":START_ID\t:END_ID\tw:double\n1\t2\t0.5\n",
    }
    folder = write(tmp_path / "in", files)
    graph.load(folder, mode="append", format="neo4j", array_delimiter=",")
    assert rows_of(graph, "P") == {"1": {"tags": ["a", "b"]}, "2": {"tags": ["x", "y|z"]}}
    with pytest.raises(InputError, match="the array delimiter must be one character"):
        graph.load(folder, mode="append", format="neo4j", array_delimiter=";;")


def test_further_labels_without_a_place_are_noted(tmp_path):
    graph = new_graph(tmp_path, "interface Being {}\nnode Person implements Being { name: String? }")
    files = {"x.csv": ":ID,:LABEL\n1,Person;Actor;Being\n2,Being;Person\n"}
    result = graph.load(write(tmp_path / "in", files), mode="append", format="neo4j")
    assert [note for note in result.notes if "label" in note] == [
        f"{tmp_path / 'in' / 'x.csv'}: the label 'Actor' of 'Person' is not stored: the type has no list property "
        "'labels' and no interface 'Actor'"
    ]


def test_types_of_files_without_labels(tmp_path):
    graph = new_graph(tmp_path, "node Person { name: String? }\nedge Knows: Person -> Person")
    folder = write(tmp_path / "in", {"a.csv": ":ID,name\n1,x\n", "b.csv": ":START_ID,:END_ID\n1,1\n"})
    graph.load({"Person": folder / "a.csv", "Knows": folder / "b.csv"}, mode="append", format="neo4j")
    assert len(list(graph.export())) == 2


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("name,age", "the header is not one of Neo4j admin CSV"),
        (":START_ID,name", "needs both ':START_ID' and ':END_ID'"),
        (":ID,:START_ID,:END_ID", "neither of nodes nor of relationships"),
        (":ID,x:ID", "several columns ':ID'"),
        (":ID,a,a:int", "several columns 'a'"),
        (":ID,:int", "the column ':int' has no name"),
    ],
)
def test_wrong_headers(header, said):
    with pytest.raises(RecordError, match=said):
        parse_header(header.split(","), "x.csv")


def test_columns_of_headers():
    header = parse_header(
        [
            "a:b : ID (my space) { id-type : long }",
            "born : INT [ ]",
            "p:point{crs:WGS-84}",
            ":LABEL",
            " x ",
            "y:IGNORE",
        ],
        "x.csv",
    )
    assert [(one.name, one.role, one.type, one.is_list, one.space) for one in header.columns] == [
        ("a:b", "ID", "long", False, "my space"),
        ("born", "property", "int", True, ""),
        ("p", "property", "point", False, ""),
        ("", "LABEL", "string", False, ""),
        ("x", "property", "string", False, ""),
        ("y", "IGNORE", "string", False, ""),
    ]


def test_refused_inputs(graph, tmp_path):
    folder = write(tmp_path / "in", {"people-header.csv": "personId:ID,:LABEL\n"})
    with pytest.raises(InputError, match="is a header without a data file"):
        graph.load(folder, mode="append", format="neo4j")
    (folder / "people.csv").write_text("")
    (folder / "empty.csv").write_text("")
    with pytest.raises(InputError, match=r"empty\.csv' is empty"):
        graph.load(folder, mode="append", format="neo4j")
    with pytest.raises(InputError, match="there is no format 'cypher' of files to load"):
        graph.load(folder, mode="append", format="cypher")
    with pytest.raises(InputError, match="the format neo4j is one of files"):
        graph.load([], mode="append", format="neo4j")
