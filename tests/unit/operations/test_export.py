"""Exports: the exact form of every value, and round trips."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import TypeNotFound
from omnigraph.operations import export
from omnigraph.storage.lance.tables import Table
from omnigraph.storage.lance.version_diff import EVERYTHING, StoredRows
from support.writes import edge, ids_of, new_graph, node, rows_of

SCHEMA = """
node All {
    k: String @key
    b: Bool?  i: I32?  l: I64?  u: U32?  w: U64?  f: F32?  d: F64?  day: Date?  at: DateTime?
    mood: enum(a, b)?  vec: Vector(3)?  blob: Blob?
    bs: [Bool]?  is: [I64]?  us: [U64]?  fs: [F32]?  ds: [F64]?  ss: [String]?  days: [Date]?  times: [DateTime]?
}
node Bed { ward: String  no: I32  @key(ward, no) }
node Free { note: String? }
node Link { z: I32? }
edge Link: All -> Free { since: Date?  raw: Blob?  vec: Vector(2)? }
edge Self: Free -> Free
"""
NULLS = dict.fromkeys(
    (
        "b",
        "i",
        "l",
        "u",
        "w",
        "f",
        "d",
        "day",
        "at",
        "mood",
        "vec",
        "blob",
        "bs",
        "is",
        "us",
        "fs",
        "ds",
        "ss",
        "days",
        "times",
    )
)
FULL = {
    "k": "full é\n\"'`😀",
    "b": True,
    "i": -(2**31),
    "l": -(2**63),
    "u": 2**32 - 1,
    "w": 2**64 - 1,
    "f": 0.10000000149011612,
    "d": 5e-324,
    "day": -719_162,
    "at": 253_402_300_799_999,
    "mood": "b",
    "vec": [1.0, -0.0, 3.4028234663852886e38],
    "blob": "base64:AAECAwT/",
    "bs": [True, False],
    "is": [2**53 + 1, -(2**63)],
    "us": [2**64 - 1],
    "fs": [0.5],
    "ds": [0.1, 1e308],
    "ss": ["", "x"],
    "days": [19_723, -1],
    "times": [1, -1, 1_704_067_200_001],
}
EMPTY = {
    **NULLS,
    "k": "",
    "blob": "base64:",
    "bs": [],
    "is": [],
    "us": [],
    "fs": [],
    "ds": [],
    "ss": [],
    "days": [],
    "times": [],
}
RECORDS = [
    node("All", **FULL),
    node("All", **EMPTY),
    node("All", **NULLS | {"k": "null"}),
    node("Bed", ward="n", no=7),
    node("Free", id_="f1", note="x"),
    node("Free", id_="f2", note=None),
    node("Link", id_="l", z=1),
    edge("Link", "", "f1", id_="e1", since=0, raw=None, vec=[1.0, 2.0]),
    edge("Link", FULL["k"], "f2", id_="e0", since=None, raw="base64:", vec=None),
    edge("Self", "f1", "f1", id_="s"),
]


@pytest.fixture
def graph(tmp_path):
    return new_graph(tmp_path, SCHEMA, *RECORDS)


def test_order_of_records_and_properties(graph):
    found = list(graph.export())
    assert [(record.get("edge") or record["type"], record["data"]["id"]) for record in found] == [
        ("Link", "e0"),
        ("Link", "e1"),
        ("Self", "s"),
        ("All", ""),
        ("All", FULL["k"]),
        ("All", "null"),
        ("Bed", '["7","n"]'),
        ("Free", "f1"),
        ("Free", "f2"),
        ("Link", "l"),
    ]
    assert list(found[0]) == ["edge", "from", "to", "data"]
    assert list(found[0]["data"]) == ["id", "raw", "since", "vec"]
    assert list(found[3]) == ["type", "data"]
    assert list(found[3]["data"]) == ["id", *sorted([*NULLS, "k"])]


def test_exact_form_of_every_value(graph):
    rows = rows_of(graph, "All")
    assert rows[FULL["k"]] == FULL
    assert str(rows[FULL["k"]]["vec"][1]) == "-0.0"
    assert rows[""] == EMPTY
    assert rows["null"] == {**NULLS, "k": "null"}
    assert rows_of(graph, "Self") == {"s": {"from": "f1", "to": "f1"}}


def test_export_loads_back_to_the_same_graph(graph, tmp_path):
    path = tmp_path / "all.jsonl"
    assert graph.export(path) == len(RECORDS)
    again = og.init(tmp_path / "again", SCHEMA, sync=False, environ={})
    again.load(path, mode="overwrite")
    assert list(again.export()) == list(graph.export())
    # The file has the yielded records, one per line.
    assert [json.loads(line) for line in path.read_text().splitlines()] == list(graph.export())
    assert again.verify() == []
    # Loading it into its own graph changes nothing.
    graph.load(path, mode="merge")
    assert list(graph.export()) == list(again.export())


def test_arrow_tables_load_back(graph, tmp_path):
    again = og.init(tmp_path / "again", SCHEMA, sync=False, environ={})
    tables = {name: graph.to_arrow(name) for name in ("All", "Bed", "Free", "Link", "Self")}
    again.load(tables, mode="overwrite")
    for name in ("All", "Bed", "Free", "Self"):
        assert rows_of(again, name) == rows_of(graph, name)


def test_random_rows_round_trip(tmp_path):
    random = Random(11)
    types = "l: I64?  w: U64?  f: F32?  d: F64?  day: Date?  at: DateTime?  v: Vector(4)?  b: Blob?  t: [String]?"
    schema = f"node R {{ k: String @key  {types} }}"

    def some(value: Any) -> Any:
        return None if random.random() < 0.3 else value

    records = [
        node(
            "R",
            k="".join(random.choices("aä日😀'\"\\`\n ", k=6)) + str(number),
            l=some(random.randrange(-(2**63), 2**63)),
            w=some(random.randrange(2**64)),
            f=some(random.uniform(-1e30, 1e30)),
            d=some(random.uniform(-1e300, 1e300)),
            day=some(random.randrange(-719_162, 2_932_897)),
            at=some(random.randrange(-62_135_596_800_000, 253_402_300_800_000)),
            v=some([random.gauss(0, 1) for _ in range(4)]),
            b=some("base64:" + random.choice(("", "AA==", "//8="))),
            t=some(random.choices(("", "a", "日"), k=random.randrange(3))),
        )
        for number in range(300)
    ]
    one = new_graph(tmp_path / "1", schema, *records)
    two = new_graph(tmp_path / "2", schema, *one.export())
    assert list(one.export()) == list(two.export())
    stored = rows_of(one, "R")
    for record in records:
        for name, value in record["data"].items():
            if name not in ("f", "v"):
                assert stored[record["data"]["k"]][name] == value


def test_name_of_both_kinds_selects_both_types(graph):
    assert [record["data"]["id"] for record in graph.export(types=["Link"])] == ["e0", "e1", "l"]
    assert [record["data"]["id"] for record in graph.export(types=["Free", "Bed"])] == ['["7","n"]', "f1", "f2"]
    assert list(graph.export(types=[])) == []


def test_unknown_type_is_refused_before_a_file_is_written(graph, tmp_path):
    path = tmp_path / "keep.jsonl"
    path.write_text("precious")
    for out in (None, path):
        with pytest.raises(TypeNotFound, match="there is no node or edge type 'Fre'") as caught:
            graph.export(out, types=["Free", "Fre"])
        assert caught.value.hint == "did you mean 'Free'?"
    assert path.read_text() == "precious"
    with pytest.raises(TypeNotFound):
        graph.export(types=["free"])


def test_export_of_an_old_commit_and_of_a_branch(graph):
    old = graph.commits()[0]
    graph.branch_create("side")
    graph.load([node("Free", id_="f3")], mode="append", branch="side")
    graph.mutate('query q() { delete Free where note = "x" }')
    graph.apply_schema(SCHEMA.replace("note: String?", 'text: String? @rename_from("note")'))
    assert ids_of(graph, "Free") == ["f2"]
    assert ids_of(graph, "Free", branch="side") == ["f1", "f2", "f3"]
    assert rows_of(graph, "Free", at=old.id) == {"f1": {"note": "x"}, "f2": {"note": None}}
    assert rows_of(graph, "Free", at=old.manifest_version) == rows_of(graph, "Free", at=old.id)


def test_export_reads_one_snapshot(graph):
    """A write during the export is not visible."""
    records = graph.export(types=["All", "Free"])
    first = next(iter(records))
    graph.mutate('query q() { delete Free where note != "" }')
    graph.load([node("Free", id_="late")], mode="append")
    ids = [first["data"]["id"], *(record["data"]["id"] for record in records)]
    assert ids == ["", FULL["k"], "null", "f1", "f2"]


def test_empty_graph(tmp_path):
    graph = new_graph(tmp_path, SCHEMA)
    path = tmp_path / "none.jsonl"
    assert graph.export(path) == 0
    assert path.read_bytes() == b""


def test_large_tables_are_exported_in_ranges_of_ids(tmp_path, monkeypatch):
    records = [node("All", k=f"k{Random(at).randrange(10**6)}-{at}", blob="base64:AAEC") for at in range(300)]
    records += [node("Free", id_=f"f{at % 7}-{at}", note=f"n{at}") for at in range(300)]
    graph = new_graph(tmp_path, SCHEMA, *records[:200], *records[300:450])
    graph.load(records[200:300] + records[450:], mode="append")
    graph.mutate('delete Free where note = "n9"')
    expected = list(graph.export())
    for name, value in (("_ROWS_MIN", 20), ("_ROWS_MAX", 20), ("_SAMPLE_STEP", 3)):
        monkeypatch.setattr(export, name, value)
    assert list(graph.export()) == expected
    assert [record["data"]["id"] for record in expected if record["type"] == "Free"] == sorted(
        record["data"]["id"] for record in expected if record["type"] == "Free"
    )


def test_few_large_rows_are_exported_by_their_numbers(tmp_path, monkeypatch):
    schema = "node P { name: String @key  text: String? }\n"
    graph = new_graph(tmp_path, schema, *(node("P", name=name) for name in "cab"))
    graph.mutate('query q() { delete P where name = "b" }')
    graph.load([node("P", name="aa", text="x" * 5_000)], mode="append")
    expected = list(graph.export())
    monkeypatch.setattr(export, "_BYTES_MAX", 1)
    monkeypatch.setattr(Table, "batch_rows", lambda *_: 2)
    assert list(graph.export()) == expected
    assert [record["data"]["name"] for record in expected] == ["a", "aa", "c"]


def test_export_reads_rows_when_they_are_fetched(tmp_path, monkeypatch):
    graph = new_graph(tmp_path, SCHEMA, *(node("Free", id_=f"f{at:03}") for at in range(200)))
    for name, value in (("_ROWS_MIN", 20), ("_ROWS_MAX", 20), ("_SAMPLE_STEP", 1)):
        monkeypatch.setattr(export, name, value)
    read, held = StoredRows.read, []

    def counting(self: StoredRows, columns: Any = None, within: Any = EVERYTHING) -> Any:
        rows = read(self, columns, within)
        held.append(rows.num_rows)
        return rows

    monkeypatch.setattr(StoredRows, "read", counting)
    records = graph.export(types=["Free"])
    assert held == []
    assert next(records)["data"]["id"] == "f000"
    assert len(held) == 1
    assert len(list(records)) == 199
    assert max(held) <= 40
