"""Exports as jobs load back to the same graph, in every format and with any number of files."""

from __future__ import annotations

import json

import pytest

import omnigraph as og
from omnigraph.errors import InputError, OmniGraphError, TypeNotFound
from omnigraph.pipeline.export import FORMATS, SUMMARY, ExportRequest, export_files
from omnigraph.pipeline.runner import InlineRunner
from support.writes import edge, new_graph, node

SCHEMA = """
node Item {
    code: String @key
    i: I32?  u: U64?  f: F32?  d: F64?  ok: Bool?  day: Date?  at: DateTime?  blob: Blob?
    words: [String]?  days: [Date]?  times: [DateTime]?  vec: Vector(2)?
}
node Likes { text: String? }
edge Likes: Item -> Item { weight: F32? }
edge Near: Item -> Likes
"""
RECORDS = [
    node(
        "Item",
        code='a,"b"\nc',
        i=-5,
        u=2**64 - 1,
        f=0.1,
        d=1e-7,
        ok=False,
        day="1960-02-29",
        at="1969-12-31T23:59:59.999Z",
        blob="base64:AAEC",
        words=["x", "é", ""],
        days=["2024-01-01"],
        times=["2024-01-01T00:00:00Z"],
        vec=[0.1, -2.5],
    ),
    node("Item", code="b", ok=True),
    node("Likes", id_="l1", text=""),
    edge("Likes", "b", "b", id_="e1", weight=0.3),
    edge("Near", "b", "l1", id_="e2"),
]


@pytest.fixture
def graph(tmp_path):
    graph = new_graph(tmp_path, SCHEMA, *RECORDS)
    graph.load([node("Item", code=f"more-{n}", i=n) for n in range(5)], mode="append")
    return graph


def exported(graph, out, format="jsonl", **more):
    snapshot = graph.snapshot(at=more.pop("at", None))
    request = ExportRequest(str(out), format, **more)
    return export_files(graph._repository, InlineRunner(), snapshot, graph.catalog(), request, {})


@pytest.mark.parametrize("partitioned", [True, False])
@pytest.mark.parametrize("format", FORMATS)
def test_round_trip(graph, tmp_path, format, partitioned):
    result = exported(graph, tmp_path / "out", format, partitioned=partitioned)
    assert result.rows == 10
    assert len(result.files) == (5 if partitioned else 4)
    again = og.init(tmp_path / "again", SCHEMA, sync=False, environ={})
    again.load(tmp_path / "out", mode="append")
    assert list(again.export()) == list(graph.export())


def test_older_commit_and_selected_types(graph, tmp_path):
    older = graph.commits()[1].id
    result = exported(graph, tmp_path / "out", at=older, types=["Item"])
    assert result.tables == (("node:Item", 2),)
    summary = json.loads((tmp_path / "out" / SUMMARY).read_text())
    assert summary["commit_id"] == older
    with pytest.raises(TypeNotFound):
        exported(graph, tmp_path / "none", types=["Nobody"])


def test_folder_that_is_not_empty_is_refused(graph, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x").touch()
    with pytest.raises(InputError) as caught:
        exported(graph, tmp_path / "out")
    assert caught.value.code == "not_empty"


def test_failed_export_leaves_no_file(graph, tmp_path):
    class Failing(InlineRunner):
        def run(self, step, task, job, work, **more):
            yield next(super().run(step, task, job, work, **more))
            raise OmniGraphError("no more")

    request = ExportRequest(str(tmp_path / "out"), "csv")
    with pytest.raises(OmniGraphError, match="no more"):
        export_files(graph._repository, Failing(), graph.snapshot(), graph.catalog(), request, {})
    assert list((tmp_path / "out").iterdir()) == []


def test_unknown_format_is_refused(graph, tmp_path):
    with pytest.raises(InputError, match="there is no format 'xml'"):
        exported(graph, tmp_path / "out", "xml")
