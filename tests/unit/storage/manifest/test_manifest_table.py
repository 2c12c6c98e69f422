"""The manifest: one winner per version, complete history, bounded cost."""

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
from omnigraph.storage.manifest import manifest_table as manifest_module
from omnigraph.storage.manifest.manifest_table import SCHEMA, STAMP_KEY, ManifestTable, PublishConflict
from omnigraph.versioning.write.branches import create_branch
from support.graphs import KNOWS, PERSON, add_people, change, knows, new_repository, people


def rows(*found):
    """Return manifest rows from (id, type) pairs."""
    return pa.Table.from_pylist([{"object_id": i, "object_type": t, "table_key": ""} for i, t in found], schema=SCHEMA)


def head(value):
    one = {"object_id": "graph_head:main", "object_type": "graph_head", "table_key": "", "metadata": value}
    return pa.Table.from_pylist([one], schema=SCHEMA)


def commit(number):
    return rows((f"commit-{number:05}", "graph_commit"))


def new_manifest(root, sync=False):
    manifest = ManifestTable(Location(str(root), root), sync=sync)
    version = manifest.create(pa.concat_tables([head("0"), commit(0)]), "1001")
    return manifest, version


def step(manifest, version, number):
    state = head(str(number)).cast(version.state.schema)
    return manifest.publish(version, state, commit(number).cast(version.state.schema))


def all_ids(version):
    return version.dataset.to_table(columns=["object_id"])["object_id"].to_pylist()


def fragments(version):
    return sorted(fragment.count_rows() for fragment in version.dataset.get_fragments())


# -- creating and reading ------------------------------------------------------------------------------


def test_a_missing_manifest_does_not_exist(tmp_path):
    manifest = ManifestTable(Location(str(tmp_path), tmp_path), sync=False)
    assert not manifest.exists()
    (tmp_path / "__manifest").mkdir()
    assert not manifest.exists()


def test_a_new_manifest_has_version_1_and_the_stamp(tmp_path):
    manifest, version = new_manifest(tmp_path)
    assert manifest.exists()
    assert version.version == 1
    assert version.stamp == "1001"
    read = manifest.read()
    assert (read.version, read.stamp) == (1, "1001")
    assert read.state["object_id"].to_pylist() == ["graph_head:main"]
    assert read.tail.num_rows == 0
    assert sorted(all_ids(read)) == ["commit-00000", "graph_head:main"]
    assert fragments(read) == [1, 1], "the first rows are the anchor, a fragment that stays"


def test_the_second_creator_gets_a_conflict(tmp_path):
    manifest, _ = new_manifest(tmp_path)
    with pytest.raises(PublishConflict):
        manifest.create(pa.concat_tables([head("other"), commit(0)]), "1001")
    assert manifest.read().state["metadata"].to_pylist() == ["0"]


def test_refresh_returns_the_known_version_until_a_publish(tmp_path):
    manifest, first = new_manifest(tmp_path)
    assert manifest.refresh(first) is first
    second = step(manifest, first, 1)
    assert manifest.refresh(first).version == second.version
    assert manifest.refresh(second) is second


@pytest.mark.parametrize("others", [1, 2, 63, 64, 65, 130])
def test_publishes_of_others_are_seen_even_after_trimming(tmp_path, others):
    """A reader checks only two files of the folder; other processes publish through their own handles."""
    reader, known = new_manifest(tmp_path)
    writer = ManifestTable(Location(str(tmp_path), tmp_path), sync=False)
    for _ in range(3):
        assert reader.refresh(known) is known
    version = writer.read()
    for number in range(1, others + 1):
        version = step(writer, version, number)
        if number in (1, others):
            assert reader.refresh(known).version == version.version
    newest = reader.refresh(known)
    for _ in range(3):
        assert reader.refresh(newest) is newest


# -- publishing ----------------------------------------------------------------------------------------


def test_a_publish_replaces_the_state_and_adds_history(tmp_path):
    manifest, first = new_manifest(tmp_path)
    second = step(manifest, first, 1)
    for version in (second, manifest.read()):
        assert version.version == 2
        assert version.stamp == "1001"
        assert version.state["metadata"].to_pylist() == ["1"]
        assert version.tail["object_id"].to_pylist() == ["commit-00001"]
        assert sorted(all_ids(version)) == ["commit-00000", "commit-00001", "graph_head:main"]


def test_only_one_of_two_publishes_on_one_version_lands(tmp_path):
    manifest, first = new_manifest(tmp_path)
    winner = step(manifest, first, 1)
    with pytest.raises(PublishConflict):
        step(manifest, first, 2)
    assert manifest.read().version == winner.version
    assert sorted(all_ids(manifest.read())) == ["commit-00000", "commit-00001", "graph_head:main"]


@pytest.mark.parametrize("behind", [1, 5, 70, 200])
def test_a_publish_on_an_old_version_never_lands(tmp_path, behind):
    manifest, first = new_manifest(tmp_path)
    version = first
    for number in range(1, behind + 1):
        version = step(manifest, version, number)
    # Lance detects a conflict from the transactions of newer versions, most of which were dropped by now.
    with pytest.raises(PublishConflict):
        step(manifest, first, 9_999)
    assert manifest.read().version == version.version
    assert "commit-09999" not in all_ids(manifest.read())


def test_a_publish_at_the_number_of_a_dropped_version_is_an_error(tmp_path, monkeypatch):
    """A request that hangs while a hundred others succeed may write to the number of a dropped version, which is never
    read.
    """
    manifest, first = new_manifest(tmp_path)
    real = lance.LanceDataset.commit
    slot = tmp_path / "__manifest" / "_versions" / f"{2**64 - 1 - 2:020}.manifest"

    def hang(*arguments, **settings):
        monkeypatch.setattr(lance.LanceDataset, "commit", real)
        dataset = real(*arguments, **settings)
        ours = slot.read_bytes()
        slot.unlink()
        others = ManifestTable(manifest.location, sync=False)
        version = others.read()
        for number in range(1, 131):
            version = step(others, version, number)
        assert not slot.exists()
        slot.write_bytes(ours)
        return dataset

    monkeypatch.setattr(lance.LanceDataset, "commit", hang)
    with pytest.raises(StorageError, match="overtaken"):
        step(manifest, first, 9_999)
    newest = ManifestTable(manifest.location, sync=False).read()
    assert newest.version == 131
    assert "commit-09999" not in all_ids(newest)


def test_two_handles_conflict_like_two_processes(tmp_path):
    manifest, _ = new_manifest(tmp_path)
    other = ManifestTable(manifest.location, sync=False)
    mine, theirs = manifest.read(), other.read()
    step(other, theirs, 1)
    with pytest.raises(PublishConflict):
        step(manifest, mine, 2)
    step(manifest, manifest.refresh(mine), 2)
    assert manifest.read().state["metadata"].to_pylist() == ["2"]


def test_a_publish_that_seals_conflicts_too(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest_module, "_SEAL_ROWS", 2)
    manifest, first = new_manifest(tmp_path)
    step(manifest, first, 1)
    with pytest.raises(PublishConflict):
        step(manifest, first, 2)


def test_a_publish_that_stops_before_its_commit_changes_nothing(tmp_path):
    manifest, first = new_manifest(tmp_path)
    with pytest.raises(Exception, match="failpoint"), arm("publish.before_commit"):
        step(manifest, first, 1)
    assert manifest.refresh(first) is first
    assert step(manifest, first, 2).version == 2


# -- a long history ------------------------------------------------------------------------------------


def test_six_hundred_publishes(tmp_path):
    manifest, version = new_manifest(tmp_path)
    most = 0
    for number in range(1, 601):
        version = step(manifest, version, number)
        most = max(most, len(version.dataset.get_fragments()))
        assert version.version == number + 1
    assert most <= log2(600) + 2
    read = manifest.read()
    assert read.tail.num_rows < 64, "a reader never loads more than the newest of it"
    assert sorted(all_ids(read)) == [*(f"commit-{n:05}" for n in range(601)), "graph_head:main"]
    assert fragments(read) == fragments(version)
    # Old versions were dropped along the way, and no history with them.
    kept = len(list((tmp_path / "__manifest" / "_versions").glob("*.manifest")))
    assert kept <= 32 + 64
    assert len(list((tmp_path / "__manifest" / "data").iterdir())) <= 2 * kept + most
    found = manifest.scan(read, "object_type = 'graph_commit'", ["object_id"])
    assert found.num_rows == 601


def test_sealed_fragments_hold_history_only_and_the_last_holds_the_state(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest_module, "_SEAL_ROWS", 4)
    manifest, version = new_manifest(tmp_path)
    for number in range(1, 42):
        version = step(manifest, version, number)
        anchor, *sealed, live = sorted(version.dataset.get_fragments(), key=lambda fragment: fragment.fragment_id)
        assert anchor.to_table()["object_id"].to_pylist() == ["commit-00000"]
        types = {kind for fragment in sealed for kind in fragment.to_table()["object_type"].to_pylist()}
        assert types <= {"graph_commit"}
        assert "graph_head:main" in live.to_table()["object_id"].to_pylist()
        sizes = [fragment.count_rows() for fragment in sealed]
        assert sizes == sorted(sizes, reverse=True), "older fragments are the larger ones"


def test_every_row_is_found_sealed_or_not(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest_module, "_SEAL_ROWS", 8)
    manifest, version = new_manifest(tmp_path)
    for number in range(1, 41):
        version = step(manifest, version, number)
    for number in range(41):
        assert manifest.find(version, f"commit-{number:05}").num_rows == 1
    assert manifest.find(version, "graph_head:main").num_rows == 1
    assert manifest.find(version, "o'brien").num_rows == 0


def test_a_reader_of_a_trimmed_version_reads_the_same_history(tmp_path):
    manifest, first = new_manifest(tmp_path)
    version = first
    for number in range(1, 130):
        version = step(manifest, version, number)
    assert not (tmp_path / "__manifest" / "_versions" / f"{2**64 - 2:020}.manifest").exists()
    late = ManifestTable(manifest.location, sync=False)
    assert late.scan(first, "object_id = 'commit-00000'").num_rows == 1


# -- external view -------------------------------------------------------------------------------------


def test_a_plain_lance_reader_sees_the_specified_columns_and_rows(tmp_path):
    root = tmp_path / "g"
    repository = new_repository(root)
    first = add_people(repository, "a")
    changes = {PERSON: TableWrite(append=people("b")), KNOWS: TableWrite(append=knows(("a", "b")))}
    second = change(repository, changes, actor="ada", message="both")
    create_branch(repository, "side")
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
    assert dataset.schema.metadata[STAMP_KEY.encode()] == b"1002"
    assert dataset.schema.field("object_id").metadata == {b"lance-schema:unenforced-primary-key": b"true"}
    found = {row["object_id"]: row for row in dataset.to_table().to_pylist()}
    assert len(found) == dataset.count_rows()
    kinds = Counter(row["object_type"] for row in found.values())
    specified = {"graph_commit": 3, "graph_head": 2, "table": 2, "table_version": 2 + 1 + 2}
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
    assert found["graph_head:side"]["table_branch"] == "side"
    assert all(row["base_objects"] is None for row in found.values())


def test_settings_of_the_manifest_dataset(tmp_path):
    new_manifest(tmp_path)
    dataset = lance.dataset(str(tmp_path / "__manifest"))
    assert dataset.data_storage_version == "2.2"
    assert dataset.has_stable_row_ids
    assert not any("auto_cleanup" in key for key in dataset.config())


# -- damage --------------------------------------------------------------------------------------------


def test_a_missing_data_file_is_reported_and_not_an_empty_graph(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest_module, "_READ_TRIES", 2)
    manifest, _ = new_manifest(tmp_path)
    shutil.rmtree(tmp_path / "__manifest" / "data")
    with pytest.raises(Damaged, match="graph manifest") as caught:
        ManifestTable(manifest.location, sync=False).read()
    assert caught.value.code == "missing_file"


def test_unknown_columns_are_refused(tmp_path):
    table = pa.table({"object_id": ["a"], "object_type": ["graph_head"]})
    lance.write_dataset(table, str(tmp_path / "__manifest"))
    with pytest.raises(Damaged, match="unknown to this release") as caught:
        ManifestTable(Location(str(tmp_path), tmp_path), sync=False).read()
    assert "release" in caught.value.hint


def test_an_empty_manifest_is_damage(tmp_path):
    lance.write_dataset(SCHEMA.empty_table(), str(tmp_path / "__manifest"), schema=SCHEMA)
    with pytest.raises(Damaged, match="empty"):
        ManifestTable(Location(str(tmp_path), tmp_path), sync=False).read()


def test_a_truncated_manifest_version_is_a_typed_error(tmp_path):
    manifest, version = new_manifest(tmp_path)
    step(manifest, version, 1)
    newest = tmp_path / "__manifest" / "_versions" / f"{2**64 - 3:020}.manifest"
    newest.write_bytes(newest.read_bytes()[:40])
    with pytest.raises((StorageError, Damaged), match="graph manifest"):
        ManifestTable(manifest.location, sync=False).read()
