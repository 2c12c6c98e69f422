"""`infer_schema` and `from_frames`: sources, keys, edges, samples, errors, edited drafts."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.errors import Hint, InputError, RecordError

ROWS = 40
PEOPLE: dict[str, list[Any]] = {
    "email": [f"p{at}@x.org" for at in range(ROWS)],
    "age": [None, *range(1, ROWS)],
    "height": [1.5 + at / 100 for at in range(ROWS)],
    "role": ["admin", "user"] * (ROWS // 2),
    "active": [True, False] * (ROWS // 2),
    "born": [date(1980, 1, 1) + timedelta(at) for at in range(ROWS)],
    "seen": [datetime(2024, 1, 1) + timedelta(hours=at) for at in range(ROWS)],
    "boss": [None, *["p0@x.org"] * 20, *["p1@x.org"] * (ROWS - 21)],
    "tags": [["a"], ["b", "c"]] * (ROWS // 2),
    "meaning": [[0.1, 0.2, 0.3]] * ROWS,
    "bio": ["a text about herons, rivers and the people who watch them, long enough to be indexed for search"] * ROWS,
}
KNOWS = {"a": PEOPLE["email"][:5], "b": PEOPLE["email"][5:10], "weight": [1.5] * 5}


def draft_of(frame: Any) -> og.SchemaDraft:
    return og.infer_schema(people=frame(PEOPLE), knows=og.edges(frame(KNOWS), "a", "b", to="people"))


DRAFT = """\
// Inferred from people (40 rows), knows (5 rows).

node People {
    email: String @key       // unique and never empty in 40 rows; also unique: born, seen
    age: I64?                // 1 empty; 1..39
    height: F64              // 1.5..1.8900000000000001
    role: enum(admin, user)  // 2 distinct values in 40 rows: an enum? String if open
    active: Bool             // true in 20 of 40 rows
    born: Date               // 1980-01-01..1980-02-09
    seen: DateTime           // 2024-01-01T00:00:00..2024-01-02T15:00:00
    boss: String?            // 1 empty; 2 distinct texts
    tags: [String]           // lists of 1..2 items
    meaning: Vector(3)       // 3 floats in every row
    bio: String @index       // 95 characters on average: indexed for search
}

edge Knows: People -> People {  // a, b: 100% found in People.email
    weight: F64  // 1.5..1.5
}

edge Boss: People -> People {  // People.boss: 100% found in People.email; 1 row without it
    @unique(src, dst)
}
"""


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_frames_give_the_same_draft(frame, tmp_path):
    draft = draft_of(frame)
    assert str(draft) == DRAFT
    tables = {"people": frame(PEOPLE), "edges": {"knows": (frame(KNOWS), "a", "b")}}
    graph = og.from_frames(tmp_path / "g", schema=draft, environ={}, **tables)
    asked = "match { $p: People  $p boss $q } return { $q.email, count($p) as n } order { n desc }"
    assert graph.query(asked).to_rows() == [{"q.email": "p0@x.org", "n": 20}, {"q.email": "p1@x.org", "n": 19}]


def test_another_pandas_gives_the_same_draft():
    """pandas 3 in a folder of its own, because Spark needs pandas 2; CI creates it with `make build/pandas3`."""
    folder = Path(__file__).parents[4] / "build" / "pandas3"
    if not folder.exists():
        missing = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        missing("pandas 3 is not installed: make build/pandas3")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); sys.path.append(sys.argv[2])\n"
        "import pandas as pd, test_infer; assert pd.__version__ >= '3'\n"
        "assert str(test_infer.draft_of(pd.DataFrame)) == test_infer.DRAFT"
    )
    subprocess.run([sys.executable, "-c", script, str(folder), str(Path(__file__).parent)], check=True, timeout=120)


def test_parquet_of_pandas_and_patterns(tmp_path):
    frame = pd.DataFrame({"code": ["a", "b", "c"], "n": [1, None, 3]})
    frame.to_parquet(tmp_path / "rows-1.parquet", index=False)
    frame.assign(code=["d", "e", "f"]).to_parquet(tmp_path / "rows-2.parquet", index=False)
    draft = og.infer_schema(rows=1_000_000, parts=str(tmp_path / "rows-*.parquet"))
    assert "code: String @key  // unique and never empty in 6 rows" in draft
    assert "n: I64?            // 2 empty; 1..3" in draft
    graph = og.from_frames(tmp_path / "g", parts=[tmp_path / "rows-1.parquet", tmp_path / "rows-2.parquet"])
    assert graph.to_arrow("Parts").num_rows == 6


def test_columns_without_values_have_the_type_of_the_frame(tmp_path):
    types = {
        "tags": pa.list_(pa.string()),
        "sizes": pa.list_(pa.int64()),
        "file": pa.binary(),
        "odd": pa.map_(pa.string(), pa.string()),
    }
    table = pa.table({"name": ["a", "b"], **{name: pa.array([None, None], type_) for name, type_ in types.items()}})
    draft = og.infer_schema(things=table)
    for line in ("tags: [String]?", "sizes: [I64]?", "file: Blob?", "odd: String?"):
        assert line in str(draft)
    graph = og.from_frames(tmp_path / "g", schema=draft, things=table, environ={})
    assert graph.to_arrow("Things").num_rows == 2


def test_sample_is_stated_and_later_rows_are_rejects(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("name,age\nana,1\nbo,2\ncleo,old\n")
    draft = og.infer_schema(path, rows=2)
    assert draft.startswith("// Inferred from the first 2 rows of people.csv.\n// Rows that were not read may not fit")
    rejects: list[Any] = []
    with pytest.raises(RecordError, match="line 4"):
        og.from_frames(tmp_path / "g", schema=draft, people=path)
    graph = og.from_frames(tmp_path / "h", schema=draft, people=path, rejects=rejects)
    assert [(one.line, one.column) for one in rejects] == [(4, "age")]
    assert graph.to_arrow("People").num_rows == 2


def test_edited_schema_leaves_out_what_is_gone(tmp_path):
    frame = pl.DataFrame({"id": [1, 2], "Full Name": ["a", "b"], "x": [1.5, 2.5], "boss_id": [None, 1]})
    draft = og.infer_schema(staff=frame)
    assert "edge Boss: Staff -> Staff" in draft
    text = "node Staff { staff_id: I64 @key  full_name: String }"
    graph = og.from_frames(tmp_path / "g", schema=text, staff=frame)
    assert graph.query("match { $s: Staff } return { $s.staff_id, $s.full_name } order { $s.staff_id }").to_rows() == [
        {"s.staff_id": 1, "s.full_name": "a"},
        {"s.staff_id": 2, "s.full_name": "b"},
    ]


def test_edges_without_properties_are_loaded_once(tmp_path):
    nodes = pl.DataFrame({"id": ["a", "b", "c"], "boss_id": [None, "a", "b"]})
    links = pl.DataFrame({"x": ["a", "b"], "y": ["b", "c"]})
    tables = {"nodes": nodes, "edges": {"links": (links, "x", "y")}}
    draft = og.infer_schema(nodes=nodes, links=og.edges(links, "x", "y"))
    assert draft.count("@unique(src, dst)") == 2
    graph = og.from_frames(tmp_path / "g", schema=draft, **tables)
    again = [{"edge": name, "from": src, "to": dst} for name, src, dst in (("Links", "a", "b"), ("Boss", "b", "a"))]
    graph.load(again, mode="merge")
    assert (graph.to_arrow("Links").num_rows, graph.to_arrow("Boss").num_rows) == (2, 2)

    doubled = pl.concat([links, links])
    draft = og.infer_schema(nodes=nodes, links=og.edges(doubled, "x", "y"))
    assert "edge Links: Nodes -> Nodes  // x, y: 100% found in Nodes.nodes_id\n" in draft
    graph = og.from_frames(tmp_path / "h", nodes=nodes, edges={"links": (doubled, "x", "y")})
    assert graph.to_arrow("Links").num_rows == 4


def test_foreign_columns_by_inclusion():
    planes = pa.table(
        {"tail": [f"N{at}" for at in range(300)], "maker": ["boeing", "airbus"] * 150, "seats": [1, 2] * 150}
    )
    makers = pa.table({"name": ["boeing", "airbus"], "country": ["us", "eu"]})
    assert "edge Maker: Planes -> Makers {  // Planes.maker: 100% found in Makers.name" in og.infer_schema(
        planes=planes, makers=makers
    )
    # Two of 300 rows (99.3 %) are enough, four (98.7 %) are not.
    for wrong, expected in ((2, True), (4, False)):
        column = [*["other"] * wrong, *planes["maker"].to_pylist()[wrong:]]
        draft = og.infer_schema(planes=planes.set_column(1, "maker", [column]), makers=makers)
        assert ("edge Maker" in draft) is expected
    # Integers need a name as well: seats are no makers.
    numbered = pa.table({"maker_id": [1, 2], "country": ["us", "eu"]})
    named = planes.append_column("maker_id", [[1, 2] * 150])
    draft = og.infer_schema(planes=named, makers=numbered)
    assert "edge Maker: Planes -> Makers {  // Planes.maker_id: 100%" in draft
    assert "Planes.seats:" not in draft


def test_ends_that_are_not_found():
    nodes, links = pa.table({"code": ["a", "b"]}), pa.table({"x": ["a", "c"], "y": ["a", "b"]})
    with pytest.raises(InputError, match=r"'x' are not the keys of a table; 50\.0% are found in Nodes\.code") as caught:
        og.infer_schema(nodes=nodes, links=og.edges(links, "x", "y"))
    assert caught.value.hint == "name the table; other rows are rejects: edges(…, from_='nodes')"
    with pytest.raises(InputError, match="'x' are not the keys") as caught:
        og.infer_schema(nodes=nodes, links=og.edges(links, "y", "x"))
    assert isinstance(caught.value.hint, Hint)
    assert caught.value.hint.cli == "name the table; other rows are rejects: --from 'FILE:y->nodes.x'"
    draft = og.infer_schema(nodes=nodes, links=og.edges(links, "x", "y", from_="nodes"))
    assert "x: 50.0% found in Nodes.code, y: 100% found in Nodes.code" in draft
    with pytest.raises(InputError, match="refer to 'nods'") as raised:
        og.infer_schema(nodes=nodes, links=og.edges(links, "x", "y", from_="nodes", to="nods"))
    assert raised.value.hint == "did you mean 'nodes'?"
    with pytest.raises(InputError, match="no table has a key"):
        og.infer_schema(links=og.edges(links, "x", "y"))
    with pytest.raises(InputError, match="has no column 'z'"):
        og.infer_schema(nodes=nodes, links=og.edges(links, "x", "z"))
    with pytest.raises(InputError, match="not both 'x'"):
        og.infer_schema(nodes=nodes, links=og.edges(links, "x", "x"))


NAMES = ["Ana", "Bo", "Cleo", "Dan", "Eve", "Flo"]
ISBNS = ["978-3-16-148410-0", "9780306406157", "978-0-14-044913-6", "9781861972712", "9780131103627", "9780201633610"]


@pytest.mark.parametrize(
    ("column", "values", "reason"),
    [
        ("number", ["A-1", "A-2", "B-7", "B-8", "C-1", "C-2"], "; its values are codes"),
        ("country", ["DE", "FR", "IT", "ES", "PT", "PL"], "; its values are codes"),
        ("book", ISBNS, "; its values are ISBNs"),
        ("contact", [f"{name}@x.org" for name in NAMES], "; its values are email addresses"),
        ("page", [f"https://x.org/{name}" for name in NAMES], "; its values are URLs"),
        ("sku", NAMES, ""),
        ("first_name", NAMES, None),
        ("title", ["The ferry", "At night", "Pears", "2 rivers", "Herons", "A boat"], None),
        ("zip", ["01234", "99999", "00501", "10115", "20001", "30002"], None),
        ("day", [date(2020, 1, at + 1) for at in range(6)], None),
        ("rank", [1, 2, 3, 4, 5, 6], None),
    ],
)
def test_a_key_needs_evidence(column, values, reason):
    draft = og.infer_schema(rows_=pa.table({column: values, "size": [1.5, 2.5, 2.5, 1.5, 1.5, 1.5]}))
    if reason is None:
        assert "@key  //" not in draft
        assert f"// no key: {column} is unique in 6 rows, but without the name or form of a key; '@key' behind" in draft
    else:
        assert f"@key  // unique and never empty in 6 rows{reason}\n" in draft


def test_a_column_that_others_refer_to_is_a_key():
    people = pa.table({"name": NAMES, "nick": [name[::-1] for name in NAMES]})
    posts = pa.table({"author": [*NAMES[:3], "Ana"], "text": ["a", "b", "c", "d"]})
    draft = og.infer_schema(people=people, posts=posts)
    assert (
        "name: String @key  // unique and never empty in 6 rows; Posts.author refers to it; also unique: nick" in draft
    )
    key = "name: String @key  // unique and never empty in 6 rows"
    links = pa.table({"a": NAMES[:2], "b": NAMES[2:4]})
    draft = og.infer_schema(people=people, links=og.edges(links, "a", "b"))
    assert f"{key}; Links.a refers to it" in draft
    # The same unique texts in another table are no reference.
    assert "@key " not in og.infer_schema(people=people, guests=pa.table({"name": NAMES[:4]}))


def test_unkeyed_table_names_its_references():
    airports = pa.table({"faa": ["a", "b", "c"]})
    flights = pa.table({"origin": ["a", "b", "a"], "dest": ["b", "c", "b"], "hour": [1, 1, 1]})
    assert "Edges? Give its ends, such as origin->dest" in og.infer_schema(airports=airports, flights=flights)
    weather = flights.drop_columns(["dest"])
    assert "origin holds keys of Airports" in og.infer_schema(airports=airports, weather=weather)


def test_columns_without_a_property_type_are_left_out(tmp_path):
    frame = pa.table({"k": ["a", "b"], "s": [{"x": 1}, {"x": 2}], "n": [[1, None], [2, 3]]})
    draft = og.infer_schema(rows_=frame)
    assert "// column 's' is left out: no property type holds struct<x: int64>" in draft
    assert "// column 'n' is left out: a list may not hold null" in draft
    assert og.from_frames(tmp_path / "g", rows_=frame).to_arrow("Rows").column_names == ["id", "k"]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({}, "no table was given"),
        ({"a_b": pa.table({"x": [1]}), "aB": pa.table({"x": [1]})}, "would both be the type"),
        ({"t": pd.DataFrame({"x": [1, "a"]})}, "column 'x' of 't' has values of several types: int, str"),
        ({"t": [1, 2]}, "cannot load a list"),
        ({"t": pa.table({})}, "has no columns"),
        ({"t": pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"])}, "has two columns 'x'"),
    ],
)
def test_wrong_tables_are_refused(tables, message):
    with pytest.raises(InputError, match=message):
        og.infer_schema(**tables)


def test_wrong_files_are_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match="a schema is inferred from tables"):
        og.infer_schema(tmp_path / "a.jsonl")
    with pytest.raises(InputError, match="there is no file"):
        og.infer_schema(tmp_path / "none.csv")
    with pytest.raises(InputError, match="a table without a name is the path of a file, not Table"):
        og.infer_schema(pa.table({"x": [1]}))
    (tmp_path / "b1.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b2.csv").write_text("x,z\n1,2\n")
    with pytest.raises(InputError, match="has other columns than"):
        og.infer_schema(b=str(tmp_path / "b*.csv"))
    pq.write_table(pa.table({"x": [1]}), tmp_path / "b3.parquet")
    with pytest.raises(InputError, match="several formats"):
        og.infer_schema(b=[tmp_path / "b1.csv", tmp_path / "b3.parquet"])
