"""Checkpoints: one winner, complete history, few fragments, a plain Lance table."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from math import log2

import lance
import pyarrow as pa
import pytest

from omnigraph.errors import Damaged, StorageError
from omnigraph.storage.failpoints import arm
from omnigraph.storage.files.location import Location
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.storage.manifest import checkpoint as checkpoint_module
from omnigraph.storage.manifest import manifest_table as manifest_module
from omnigraph.storage.manifest.checkpoint import CheckpointConflict, CheckpointTable
from omnigraph.storage.manifest.manifest_schema import SCHEMA, STAMP_KEY, to_row, to_rows
from omnigraph.versioning.write.branches import create_branch
from support.graphs import KNOWS, PERSON, add_people, change, knows, new_repository, people
from support.manifests import commit, commit_id, first_rows, head, manifest_at, new_manifest


def table_at(root):
    return CheckpointTable(Location(str(root), root), sync=False)


def new_table(root):
    table = table_at(root)
    table.create(first_rows(), "1003")
    return table, table.read()


def write(table, base, version, *, added=None):
    rows = to_rows([commit(number) for number in (added or [version - 1])])
    return table.write(base, to_rows([head(version - 1)]), rows, version, f"id-{version}")


def stored(at):
    return sorted(at.dataset.to_table(columns=["object_id"])["object_id"].to_pylist())


def fragments(at):
    return sorted(at.dataset.get_fragments(), key=lambda fragment: fragment.fragment_id)


# -- creating and reading ------------------------------------------------------------------------------


def test_a_missing_table_does_not_exist(tmp_path):
    table = table_at(tmp_path)
    assert not table.exists()
    (tmp_path / "__manifest").mkdir()
    assert not table.exists()


def test_a_new_table_is_version_1(tmp_path):
    table, first = new_table(tmp_path)
    assert table.exists()
    assert (first.version, first.stamp, first.witness) == (1, "1003", commit_id(0))
    assert first.state["object_id"].to_pylist() == ["graph_head:main", "log_position"]
    assert stored(first) == ["commit-00000", "graph_head:main", "log_position"]
    assert [fragment.count_rows() for fragment in fragments(first)] == [1, 2], "the anchor, and the state"


def test_the_second_creator_gets_a_conflict(tmp_path):
    table, _ = new_table(tmp_path)
    with pytest.raises(CheckpointConflict):
        table.create(to_rows([head(7), commit(0)]), "1003")
    assert table.read().witness == commit_id(0)


def test_settings_of_the_dataset(tmp_path):
    new_table(tmp_path)
    dataset = lance.dataset(str(tmp_path / "__manifest"))
    assert dataset.data_storage_version == "2.2"
    assert dataset.has_stable_row_ids
    assert not any("auto_cleanup" in key for key in dataset.config())


# -- writing -------------------------------------------------------------------------------------------


def test_a_checkpoint_names_the_version_that_it_represents(tmp_path):
    table, first = new_table(tmp_path)
    made = write(table, first, 65, added=range(1, 65))
    for found in (made, table.read()):
        assert (found.version, found.id, found.witness) == (65, "id-65", commit_id(64))
        assert stored(found) == [*map(commit_id, range(65)), "graph_head:main", "log_position"]
    later = write(table, made, 66)
    assert later.state["object_id"].to_pylist().count("log_position") == 1
    assert table.is_newest(later)
    assert not table.is_newest(made)


@pytest.mark.parametrize("behind", [1, 5, 40])
def test_a_checkpoint_on_an_old_one_never_lands(tmp_path, behind):
    """Lance detects a conflict from the transactions of newer versions, most of which were dropped by now."""
    table, first = new_table(tmp_path)
    made = first
    for number in range(behind):
        made = write(table, made, 2 + number)
    with pytest.raises(CheckpointConflict):
        write(table, first, 9_999)
    newest = table.read()
    assert newest.version == made.version
    assert commit_id(9_998) not in stored(newest)


def test_two_handles_conflict_like_two_processes(tmp_path):
    table, first = new_table(tmp_path)
    other = table_at(tmp_path)
    write(other, other.read(), 2)
    with pytest.raises(CheckpointConflict):
        write(table, first, 2)


def test_the_stamp_is_raised_on_exactly_the_base(tmp_path):
    table, first = new_table(tmp_path)
    table.raise_stamp(first, "1004")
    raised = table.read()
    assert (raised.stamp, raised.version, raised.id) == ("1004", first.version, first.id)
    with pytest.raises(CheckpointConflict):
        table.raise_stamp(first, "1005")
    write(table, first, 2)
    assert (table.read().stamp, table.read().version) == ("1004", 2), "a checkpoint keeps the stamp of another process"


@pytest.mark.parametrize("point", ["checkpoint.before_commit", "checkpoint.after_commit"])
def test_a_writer_that_stops_leaves_the_old_checkpoint_or_the_new_one(tmp_path, point):
    table, first = new_table(tmp_path)
    with pytest.raises(Exception, match="failpoint"), arm(point):
        write(table, first, 2)
    found = table_at(tmp_path).read()
    landed = point == "checkpoint.after_commit"
    assert found.version == 1 + landed
    assert write(table, found, 3, added=[7]).version == 3


# -- a long history ------------------------------------------------------------------------------------


def test_the_number_of_fragments_and_files_is_bounded(tmp_path):
    table, at = new_table(tmp_path)
    most = 0
    for number in range(2, 62):
        at = write(table, at, number)
        most = max(most, len(fragments(at)))
        anchor, *sealed, live = fragments(at)
        assert anchor.to_table()["object_id"].to_pylist() == [commit_id(0)]
        assert {kind for one in sealed for kind in one.to_table()["object_type"].to_pylist()} == {"graph_commit"}
        assert sorted(live.to_table()["object_id"].to_pylist()) == ["graph_head:main", "log_position"]
        sizes = [fragment.count_rows() for fragment in sealed]
        assert sizes == sorted(sizes, reverse=True), "older fragments are the larger ones"
    assert most <= log2(60) + 3
    assert stored(table.read()) == [*map(commit_id, range(61)), "graph_head:main", "log_position"]
    kept = len(list((tmp_path / "__manifest" / "_versions").glob("*.manifest")))
    assert kept <= checkpoint_module._KEEP_VERSIONS
    assert len(list((tmp_path / "__manifest" / "data").iterdir())) <= 2 * kept + most


def test_every_history_row_is_found(tmp_path):
    table, at = new_table(tmp_path)
    for number in range(2, 20):
        at = write(table, at, number)
    for again in range(2):
        for number in range(19):
            assert [row["object_id"] for row in table.find(at, [commit_id(number)])] == [commit_id(number)], again
    assert table.find(at, ["o'brien", "graph_head:main", "\ud800"]) == [], "state is not looked up here"
    assert len(table.find(at, [commit_id(3), commit_id(17), "none"])) == 2


def test_lookups_are_remembered_up_to_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_module, "_FOUND_MAX", 3)
    table, at = new_table(tmp_path)
    for number in range(9):
        table.find(at, [f"none-{number}"])
    assert list(at._found) == ["none-6", "none-7", "none-8"]


def test_a_state_row_that_occurs_twice_is_damage(tmp_path):
    table, first = new_table(tmp_path)
    made = table.write(first, to_rows([head(0), head(1)]), to_rows([]), 2, "id-2")
    with pytest.raises(Damaged, match="twice"):
        made.row("graph_head:main")


# -- damage --------------------------------------------------------------------------------------------


def test_a_missing_data_file_is_reported_and_not_an_empty_graph(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest_module, "_READ_TRIES", 2)
    new_manifest(tmp_path)
    shutil.rmtree(tmp_path / "__manifest" / "data")
    with pytest.raises(Damaged, match="graph manifest") as caught:
        manifest_at(tmp_path).read()
    assert caught.value.code == "missing_file"


def test_unknown_columns_are_refused(tmp_path):
    table = pa.table({"object_id": ["a"], "object_type": ["graph_head"]})
    lance.write_dataset(table, str(tmp_path / "__manifest"))
    with pytest.raises(Damaged, match="unknown to this release") as caught:
        manifest_at(tmp_path).read()
    assert "release" in caught.value.hint


def test_an_empty_manifest_is_damage(tmp_path):
    lance.write_dataset(SCHEMA.empty_table(), str(tmp_path / "__manifest"), schema=SCHEMA)
    with pytest.raises(Damaged, match="empty"):
        manifest_at(tmp_path).read()


def test_a_truncated_manifest_version_is_a_typed_error(tmp_path):
    table, first = new_table(tmp_path)
    made = write(table, first, 2)
    newest = tmp_path / "__manifest" / "_versions" / f"{2**64 - 1 - made.dataset.version:020}.manifest"
    newest.write_bytes(newest.read_bytes()[:40])
    with pytest.raises((StorageError, Damaged), match="graph manifest"):
        manifest_at(tmp_path).read()


@pytest.mark.parametrize("metadata", ["{", "{}", "[]", None])
def test_a_damaged_position_is_a_typed_error(tmp_path, metadata):
    first = new_table(tmp_path)[1]
    rows = to_rows([head(0), to_row("log_position", "log_position", metadata=metadata, table_version=2)])
    lance.write_dataset(rows.cast(first.dataset.schema), str(tmp_path / "__manifest"), mode="append")
    with pytest.raises(Damaged, match="log_position"):
        table_at(tmp_path).read()


# -- external view -------------------------------------------------------------------------------------


def test_a_plain_lance_reader_sees_the_specified_columns_and_rows(tmp_path):
    root = tmp_path / "g"
    repository = new_repository(root)
    first = add_people(repository, "a")
    changes = {PERSON: TableWrite(append=people("b")), KNOWS: TableWrite(append=knows(("a", "b")))}
    second = change(repository, changes, actor="ada", message="both")
    create_branch(repository, "side")
    repository.manifest.checkpoint(repository.state().manifest)
    dataset = lance.dataset(str(root / "__manifest"))
    assert dataset.schema.names == [
        "object_id",
        "object_type",
        "location",
        "metadata",
        "base_objects",
        "table_key",
        "stable_table_id",
        "table_incarnation_id",
        "table_version",
        "table_branch",
        "row_count",
    ]
    assert dataset.schema.metadata[STAMP_KEY.encode()] == b"1003"
    assert dataset.schema.field("object_id").metadata == {b"lance-schema:unenforced-primary-key": b"true"}
    found = {row["object_id"]: row for row in dataset.to_table().to_pylist()}
    assert len(found) == dataset.count_rows()
    kinds = Counter(row["object_type"] for row in found.values())
    specified = {"graph_commit": 3, "graph_head": 2, "table": 2, "table_version": 2 + 1 + 2, "log_position": 1}
    assert {kind: kinds[kind] for kind in specified} == specified
    assert set(kinds) - set(specified) == {"schema", "graph_identity", "ref_change"}
    table = found["table:0000000000000001:0000000000000001"]
    assert (table["table_key"], table["location"]) == (PERSON, "nodes/40d76f1f51639ec0")
    version = found[f"table_version:{1:016x}:{1:016x}:{second.manifest_version:020}"]
    assert (version["table_key"], version["table_version"], version["row_count"]) == (PERSON, 3, 2)
    assert version["table_branch"] is None
    row = found[second.id]
    assert (row["table_version"], row["table_key"], row["table_branch"]) == (3, "", None)
    data = json.loads(row["metadata"])
    assert data["parent_commit_id"] == first.id
    assert data["merged_parent_commit_id"] is None
    assert (data["actor_id"], data["message"]) == ("ada", "both")
    assert data["created_at"] == second.created_us
    main = json.loads(found["graph_head:main"]["metadata"])
    assert (main["head_commit_id"], main["parent_commit_id"]) == (second.id, first.id)
    assert main["pins"] == data["pins"], "main has no fork point and contains all its pins"
    side = json.loads(found["graph_head:side"]["metadata"])
    assert found["graph_head:side"]["table_branch"] == "side"
    assert (side["pins_of"], side["pins"], side["dropped"]) == (second.id, [], [])
    position = found["log_position"]
    assert position["table_version"] == 4
    assert all(row["base_objects"] is None for row in found.values())
