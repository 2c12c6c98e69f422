"""Exports to files and analyses for a handle that sees a part of a graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import Denied, InputError, TypeNotFound
from omnigraph.graph import Graph
from omnigraph.graph_open import init
from omnigraph.pipeline import export
from omnigraph.query.visibility import Visibility
from unit.test_graph_visibility import ACME, CANARY, CANARY_NUMBER, OTHER, SCHEMA, equals, note, seen


@pytest.fixture
def graph(tmp_path):
    graph = init(tmp_path / "graph", SCHEMA, sync=False, environ={})
    graph.load(
        [
            note("x", "other", CANARY, CANARY_NUMBER),
            note("a", "acme", "red", 10),
            note("c", "acme", "green", CANARY_NUMBER),
            note("b", "acme", "blue", CANARY_NUMBER),
            {"type": "Sealed", "data": {"name": CANARY}},
            *(
                {"edge": "Cites", "from": a, "to": b, "data": {"id": f"{a}{b}", "weight": CANARY_NUMBER}}
                for a, b in ("ab", "bx", "xc", "ax")
            ),
            {"edge": "Holds", "from": CANARY, "to": "a"},
        ],
        mode="merge",
    )
    return graph


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("format", ["jsonl", "parquet", "csv", "arrow"])
def test_export_to_files_contains_what_is_visible(graph, tmp_path, format):
    out = tmp_path / "out"
    assert seen(graph).export(out, format=format, partitioned=True) == 4
    found = files_in(out)
    assert found.keys() == {"_export.json", f"Cites.00000.{format}", f"Note.00000.{format}"}
    for content in found.values():
        assert CANARY.encode() not in content
        assert str(CANARY_NUMBER).encode() not in content
    summary = json.loads(found["_export.json"])
    assert summary["tables"] == [{"table_key": "edge:Cites", "rows": 1}, {"table_key": "node:Note", "rows": 3}]
    if format == "parquet":
        rows = pq.read_table(out / "Note.00000.parquet")
        assert rows["id"].to_pylist() == ["a", "b", "c"]
        assert rows["pay"].to_pylist() == [10, None, None]
        assert pq.read_table(out / "Cites.00000.parquet").column_names == ["id", "from", "to"]


@pytest.mark.parametrize("format", ["neo4j", "graphml", "gexf"])
def test_exports_for_other_programs_contain_what_is_visible(graph, tmp_path, format):
    out = tmp_path / "out"
    assert seen(graph).export(out, format=format) == 4
    found = files_in(out) if out.is_dir() else {"file": out.read_bytes()}
    for name, content in found.items():
        assert CANARY.encode() not in content, name
        assert str(CANARY_NUMBER).encode() not in content, name
        assert b"Sealed" not in content
        assert b"weight" not in content
    assert any(b"blue" in content for content in found.values())
    with pytest.raises(TypeNotFound):
        seen(graph).export(tmp_path / "sealed", format=format, types=["Sealed"])
    assert not (tmp_path / "sealed").exists()


def test_exported_files_load_into_the_visible_graph(graph, tmp_path):
    seen(graph).export(tmp_path / "out", format="parquet", partitioned=True)
    copy = init(tmp_path / "copy", seen(graph).schema, sync=False, environ={})
    copy.load(tmp_path / "out", mode="append")
    assert list(copy.export()) == list(seen(graph).export())


def test_files_do_not_depend_on_hidden_rows(graph, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "_PART_ROWS", 2)
    seen(graph).export(tmp_path / "one", format="csv", partitioned=True)
    graph.load([note(f"z{at}", "other", CANARY, 1) for at in range(9)], mode="append")
    seen(graph).export(tmp_path / "two", format="csv", partitioned=True)
    one, two = files_in(tmp_path / "one"), files_in(tmp_path / "two")
    assert [*one] == ["Cites.00000.csv", "Note.00000.csv", "Note.00001.csv", "_export.json"]
    assert {name: content for name, content in one.items() if name != "_export.json"} == {
        name: content for name, content in two.items() if name != "_export.json"
    }


def test_one_file_per_type(graph, tmp_path):
    seen(graph).export(tmp_path / "out", format="arrow", partitioned=False)
    assert {"Note.arrow", "Cites.arrow"} < files_in(tmp_path / "out").keys()
    with pa.ipc.open_file(tmp_path / "out" / "Note.arrow") as file:
        assert file.read_all()["id"].to_pylist() == ["a", "b", "c"]


def test_empty_type_has_a_file(graph, tmp_path):
    nobody = Visibility({"node:Note": equals("tenant", "nobody")})
    seen(graph, nobody).export(tmp_path / "out", format="parquet", partitioned=True, types=["Note"])
    assert pq.read_table(tmp_path / "out" / "Note.00000.parquet").num_rows == 0


def test_failed_export_leaves_no_file(graph, tmp_path, monkeypatch):
    def fails(*_: Any) -> bytes:
        raise RuntimeError("full")

    monkeypatch.setattr(export, "_WRITERS", {"csv": fails})
    with pytest.raises(RuntimeError):
        seen(graph).export(tmp_path / "out", format="csv", partitioned=True)
    assert not (tmp_path / "out").exists() or files_in(tmp_path / "out") == {}


def test_exports_refuse_hidden_types_and_full_folders(graph, tmp_path):
    with pytest.raises(TypeNotFound):
        seen(graph).export(tmp_path / "out", format="csv", types=["Sealed"])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    for call in (
        lambda: seen(graph).export(tmp_path / "full", format="csv"),
        lambda: diff_to(graph, tmp_path / "full"),
    ):
        with pytest.raises(InputError, match="not empty"):
            call()


def diff_to(graph: Graph, out: Path, visibility: Visibility = ACME) -> Any:
    first = graph.commits()[-1].id
    return seen(graph, visibility).export_diff(first, "main", out)


def test_diff_to_files_contains_what_is_visible(graph, tmp_path):
    result = diff_to(graph, tmp_path / "out")
    assert result.tables == {
        "edge:Cites": {"insert": 1, "update": 0, "delete": 0},
        "node:Note": {"insert": 3, "update": 0, "delete": 0},
    }
    found = files_in(tmp_path / "out")
    assert [*found] == ["_diff.json", *result.files]
    first = graph.commits()[-1].id
    lines = [json.loads(line) for name in result.files for line in found[name].decode().splitlines()]
    assert lines == [change.to_json() for change in seen(graph).diff(first)]
    assert CANARY.encode() not in b"".join(found.values())
    assert str(CANARY_NUMBER).encode() not in b"".join(found.values())


def test_diff_and_export_on_spark_are_refused(graph, tmp_path):
    for call in (
        lambda: seen(graph).export(tmp_path / "out", format="parquet", engine="spark"),
        lambda: seen(graph).export_diff(graph.commits()[-1].id, "main", tmp_path / "out", engine="spark"),
    ):
        with pytest.raises(Denied, match="rules"):
            call()


def test_analysis_runs_on_the_visible_graph(graph):
    degrees = seen(graph).analyze("degrees")
    assert {row["id"]: row["degree"] for row in degrees.tables["Note"].to_pylist()} == {"a": 1, "b": 1, "c": 0}
    assert degrees.stats == {"nodes": 3, "edges": 1, "largest_degree": 1}
    components = seen(graph).analyze("components")
    assert components.stats["components"] == 2
    found = {row["id"]: row["component"] for row in components.tables["Note"].to_pylist()}
    assert found["a"] == found["b"] != found["c"]
    ranks = {row["id"]: row["pagerank"] for row in seen(graph).analyze("pagerank").tables["Note"].to_pylist()}
    assert ranks.keys() == {"a", "b", "c"}
    assert ranks["b"] > ranks["a"] == ranks["c"]
    assert [*degrees.tables] == ["Note"]
    assert graph.analyze("degrees").stats["nodes"] == 5


def test_masked_weights_are_null(graph):
    masked = Visibility({}, {("edge:Cites", "weight"): equals("id", "ab")})
    ranks = seen(graph, masked).analyze("pagerank", nodes=["Note"], weight="weight").tables["Note"].to_pylist()
    rank = {row["id"]: row["pagerank"] for row in ranks}
    assert rank["b"] > rank["x"] == rank["a"]
    with pytest.raises(InputError, match="no property 'weight'"):
        seen(graph).analyze("pagerank", nodes=["Note"], weight="weight")
    with pytest.raises(TypeNotFound):
        seen(graph).analyze("degrees", nodes=["Sealed"])
    assert seen(graph, OTHER).analyze("degrees", nodes=["Note"]).stats["nodes"] == 1
