"""A diff as a job gives the changes of a diff in one process, range by range."""

from __future__ import annotations

import json

import pytest

from omnigraph.errors import InputError
from omnigraph.pipeline.diff import SUMMARY, DiffRequest, diff_files
from omnigraph.pipeline.runner import InlineRunner
from support.writes import SHELVES, beside, new_graph, shelf


@pytest.fixture
def graph(tmp_path):
    graph = new_graph(tmp_path, SHELVES, *(shelf(f"s{n:03}", cap=n) for n in range(100)))
    graph.branch_create("work")
    there = graph.on("work")
    there.load([shelf(f"s{n:03}", cap=-n) for n in range(0, 100, 3)], mode="merge")
    there.load([shelf("t"), beside("s001", "t", id_="e")], mode="append")
    there.mutate('query q() { delete Shelf where code = "s005" }')
    return graph


def written(folder):
    names = json.loads((folder / SUMMARY).read_text())["files"]
    return [json.loads(line) for name in names for line in (folder / name).read_text().splitlines()]


@pytest.mark.parametrize("rows_max", [7, 1000])
def test_changes_and_order_equal_those_of_diff(graph, tmp_path, rows_max):
    snapshots = graph.snapshot("main"), graph.snapshot("work")
    result = diff_files(
        graph._repository, InlineRunner(), DiffRequest(*snapshots, str(tmp_path / "out"), rows_max=rows_max), {}
    )
    expected = [change.to_json() for change in graph.diff("main", "work")]
    assert written(tmp_path / "out") == expected
    assert result.changes == len(expected) == 33 + 3
    assert result.tables["node:Shelf"] == {"insert": 1, "update": 33, "delete": 1}
    assert (len(result.files) > 5) == (rows_max == 7)


def test_renamed_property_is_no_change(graph, tmp_path):
    graph.apply_schema(SHELVES.replace("note: String?", 'remark: String? @rename_from("note")  wide: Bool?'))
    snapshots = graph.snapshot(at=graph.commits()[1].id), graph.snapshot()
    result = diff_files(graph._repository, InlineRunner(), DiffRequest(*snapshots, str(tmp_path / "out")), {})
    assert written(tmp_path / "out") == [change.to_json() for change in graph.diff(graph.commits()[1].id, None)]
    assert result.changes == 0


def test_a_dropped_property_whose_name_another_has_now(graph, tmp_path):
    """The name denotes the property that has it now; the values of the dropped one are shown under a marked name."""
    schema = SHELVES.replace("note: String?", "note: String?  remark: String?")
    graph.apply_schema(schema)
    graph.load([{"type": "Shelf", "data": {"code": "x", "note": "old", "remark": "kept"}}], mode="append")
    first = graph.commits()[0].id
    graph.apply_schema(SHELVES.replace("note: String?", "remark: String?"), allow_data_loss=True)
    graph.apply_schema(SHELVES.replace("note: String?", 'note: String? @rename_from("remark")'))
    changes = {change.id: change for change in graph.diff(first, "main")}
    assert (changes["x"].before["note"], changes["x"].after["note"]) == ("kept", "kept")
    assert changes["x"].before["note (dropped)"] == "old"
    assert changes["x"].properties == ["note (dropped)"]
    graph.export_diff(first, "main", tmp_path / "out")
    assert written(tmp_path / "out") == [change.to_json() for change in changes.values()]
    assert [step.op for step in graph.history("Shelf", "x")] == ["insert"]


def test_selected_tables_and_a_folder_that_is_not_empty(graph, tmp_path):
    snapshots = graph.snapshot("main"), graph.snapshot("work")
    out = str(tmp_path / "out")
    request = DiffRequest(*snapshots, out, wanted=lambda key: key == "edge:Beside")
    result = diff_files(graph._repository, InlineRunner(), request, {})
    assert result.tables == {"edge:Beside": {"insert": 1, "update": 0, "delete": 0}}
    with pytest.raises(InputError) as caught:
        diff_files(graph._repository, InlineRunner(), DiffRequest(*snapshots, out), {})
    assert caught.value.code == "not_empty"


def test_export_diff_of_a_graph(graph, tmp_path):
    result = graph.export_diff("main", "work", tmp_path / "out", types=["Beside"])
    assert result.changes == 1
    assert written(tmp_path / "out")[0]["endpoints"] == {"src": "s001", "dst": "t"}
