"""The folder of a diff."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.client.diff_files import DiffFiles
from omnigraph.errors import InputError, RemoteError
from omnigraph.table_key import TableKey
from omnigraph.versioning.compare.diff import RowChange
from support.server import ServerUnderTest, serving

INSERTED = RowChange("node:Person", "ana", None, {"id": "ana"})
DELETED = RowChange("edge:Knows", "k1", {"id": "k1", "src": "ana", "dst": "bo"}, None)


def files_in(folder: Path) -> DiffFiles:
    return DiffFiles(str(folder), ("01A", "01B"), changes=None)  # type: ignore[arg-type]


def test_each_table_has_a_file_and_the_summary_comes_last(tmp_path: Path) -> None:
    with files_in(tmp_path / "new" / "diff") as files:
        for change in (DELETED, INSERTED):
            files.add(change)
        result = files.finish()
    assert result.files == ("edge-Knows.00000.jsonl", "node-Person.00001.jsonl")
    assert result.changes == 2
    summary = json.loads((tmp_path / "new" / "diff" / "_diff.json").read_text(encoding="utf-8"))
    assert (summary["from"], summary["to"], summary["files"]) == ("01A", "01B", list(result.files))


def test_a_failed_diff_leaves_nothing(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for folder in (empty, tmp_path / "new"):
        files = files_in(folder).__enter__()
        files.add(INSERTED)
        files.__exit__(ValueError, ValueError("it failed"), None)
    assert list(empty.iterdir()) == []
    assert not (tmp_path / "new").exists()


def test_a_folder_with_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("", encoding="utf-8")
    for path in (tmp_path, tmp_path / "other"):
        with pytest.raises(InputError, match="is not empty"):
            files_in(path).__enter__()
    with pytest.raises(InputError, match="cannot be written"):
        files_in(tmp_path / "other" / "below").__enter__()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerUnderTest]:
    graph = og.init(tmp_path / "graph.omni", "node Person { name: String @key }\n", sync=False)
    graph.load([{"type": "Person", "data": {"name": "ana"}}], mode="merge")
    with serving(graph.uri) as running:
        yield running


def test_a_diff_is_written_on_this_machine_only(server: ServerUnderTest, tmp_path: Path) -> None:
    with og.connect(server.url) as graph:
        assert graph.export_diff(1, None, tmp_path / "diff").tables == {
            "node:Person": {"insert": 1, "update": 0, "delete": 0}
        }
        with pytest.raises(InputError) as caught:
            graph.export_diff(1, None, "s3://bucket/diff")
    assert caught.value.code == "not_remote"


@pytest.mark.parametrize("key", ["../evil", "{}/evil", "node:../evil", "node:a/../../evil", "node:", "node:a\0b"])
def test_a_server_does_not_choose_the_folder(tmp_path: Path, key: str) -> None:
    folder = tmp_path / "deep" / "out"
    with pytest.raises(RemoteError, match="table"), files_in(folder) as files:
        files.add(RowChange(TableKey(key.format(tmp_path)), "x", None, {}))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
