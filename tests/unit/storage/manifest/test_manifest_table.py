"""The manifest: one winner per version, complete history, bounded cost, and readers at any distance."""

from __future__ import annotations

import os
import shutil
from threading import Barrier, Thread

import pytest

import omnigraph as og
from omnigraph.errors import Damaged, StorageError
from omnigraph.storage.failpoints import arm
from omnigraph.storage.files.local_objects import LocalObjects
from omnigraph.storage.manifest import manifest_table as manifest_module
from omnigraph.storage.manifest.checkpoint import CheckpointConflict, CheckpointTable
from omnigraph.storage.manifest.commit_log import LOOK_AGE_S, CommitLog, entry_name
from omnigraph.storage.manifest.manifest_schema import HistoryFilter, to_row
from omnigraph.storage.manifest.manifest_table import ManifestTable, PublishConflict
from omnigraph.storage.manifest.manifest_version import Change
from support.manifests import (
    HEAD,
    all_ids,
    change,
    commit_id,
    entry_file,
    expected_ids,
    first_rows,
    head,
    head_of,
    log_files,
    manifest_at,
    new_manifest,
    step,
    steps,
)

COMMITS = HistoryFilter("graph_commit")


# -- creating and reading ------------------------------------------------------------------------------


def test_a_missing_manifest_does_not_exist(tmp_path):
    manifest = manifest_at(tmp_path)
    assert not manifest.exists()
    (tmp_path / "__manifest").mkdir()
    assert not manifest.exists()


def test_a_new_manifest_has_version_1_and_the_stamp(tmp_path):
    manifest, version = new_manifest(tmp_path)
    assert manifest.exists()
    assert (version.version, version.stamp) == (1, "1003")
    read = manifest_at(tmp_path).read()
    assert (read.version, read.id, read.stamp) == (1, version.id, "1003")
    assert all_ids(manifest, read) == expected_ids(0)
    assert log_files(tmp_path) == []


def test_the_second_creator_gets_a_conflict(tmp_path):
    manifest, _ = new_manifest(tmp_path)
    with pytest.raises(PublishConflict):
        manifest_at(tmp_path).create(first_rows(), "1003")
    assert head_of(manifest.read()) == commit_id(0)


def test_refresh_returns_the_known_version_until_a_publish(tmp_path):
    manifest, first = new_manifest(tmp_path)
    assert manifest.refresh(first) is first
    second = step(manifest, first)
    assert manifest.refresh(second) is second
    assert manifest.refresh(first).version == second.version


def test_an_unchanged_manifest_is_recognised_without_opening_a_file(tmp_path, monkeypatch):
    manifest, first = new_manifest(tmp_path)
    known = manifest.refresh(step(manifest, first))

    def refuse(*_):
        raise AssertionError

    for name in ("read", "names"):
        monkeypatch.setattr(CommitLog, name, refuse)
    monkeypatch.setattr(CheckpointTable, "open", refuse)
    assert manifest.refresh(known) is known


def test_a_settled_manifest_is_recognised_by_its_folder_alone(tmp_path, monkeypatch):
    writer, first = new_manifest(tmp_path)
    version = step(writer, first)
    reader = manifest_at(tmp_path)
    known = reader.read()
    clock = [manifest_module.time.monotonic()]
    monkeypatch.setattr(manifest_module.time, "monotonic", lambda: clock[0])
    asked: list[str] = []
    has = CommitLog.has
    monkeypatch.setattr(CommitLog, "has", lambda self, name: (asked.append(name), has(self, name))[1])
    for _ in range(3):
        assert reader.refresh(known) is known
    assert len(asked) == 3, "the folder changed a moment ago: its times need not show the next change"
    clock[0] += 10
    for _ in range(3):
        assert reader.refresh(known) is known
    assert len(asked) == 4
    for number in range(3):
        version = step(writer, version)
        known = reader.refresh(known)
        assert known.id == version.id, number
    # A graph that is put in place of another one has another folder.
    clock[0] += 10
    assert reader.refresh(known) is known
    shutil.move(tmp_path / "__log", tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", tmp_path / "__log")
    asked.clear()
    assert reader.refresh(known).id == version.id
    assert reader._look is not None
    assert not reader._look.is_settled


@pytest.mark.parametrize("others", [1, 2, 63, 64, 65, 130, 1_000])
def test_publishes_of_others_are_seen_even_after_trimming(tmp_path, others):
    reader, known = new_manifest(tmp_path)
    writer = manifest_at(tmp_path)
    for _ in range(3):
        assert reader.refresh(known) is known
    version = step(writer, writer.read())
    one_behind = manifest_at(tmp_path)
    seen = one_behind.read()
    assert reader.refresh(known).version == 2
    version = steps(writer, version, others)
    for manifest, before in ((reader, known), (one_behind, seen)):
        newest = manifest.refresh(before)
        assert (newest.version, newest.id, newest.epoch) == (version.version, version.id, before.epoch)
        assert head_of(newest) == commit_id(others + 1)
        found = manifest.find(newest, commit_id(0), commit_id(others))
        assert sorted(row["object_id"] for row in found) == [commit_id(0), commit_id(others)]
        assert len(manifest.scan(newest, COMMITS, ["object_id"])) == others + 2
        for _ in range(3):
            assert manifest.refresh(newest) is newest


def test_a_reader_that_sees_every_version_keeps_a_bounded_overlay(tmp_path):
    writer, version = new_manifest(tmp_path)
    reader = manifest_at(tmp_path)
    known = reader.read()
    most = 0
    for _ in range(600):
        version = step(writer, version)
        known = reader.refresh(known)
        assert (known.version, known.id) == (version.version, version.id)
        most = max(most, len(known.added))
        assert len(known.lines) <= 64
    assert most <= 300
    assert all_ids(reader, known) == expected_ids(600)


def test_a_publisher_that_takes_turns_with_another_keeps_a_bounded_overlay(tmp_path):
    one, version = new_manifest(tmp_path)
    other = manifest_at(tmp_path)
    mine, theirs = version, other.read()
    for _ in range(300):
        theirs = step(other, other.refresh(theirs))
        mine = step(one, one.refresh(mine))
        assert max(len(mine.added), len(theirs.added)) <= 300
    assert all_ids(one, mine) == expected_ids(600)
    assert manifest_at(tmp_path).read().id == mine.id


# -- publishing ----------------------------------------------------------------------------------------


def test_a_publish_replaces_the_state_and_adds_history(tmp_path):
    manifest, first = new_manifest(tmp_path)
    second = step(manifest, first)
    for version in (second, manifest.read(), manifest_at(tmp_path).read()):
        assert (version.version, version.id, version.stamp) == (2, second.id, "1003")
        assert head_of(version) == commit_id(1)
        assert list(version.added) == [commit_id(1)]
        assert all_ids(manifest, version) == expected_ids(1)
    assert log_files(tmp_path) == ["00000000000000000002.log"]


def test_a_state_row_is_removed_and_returns(tmp_path):
    manifest, version = new_manifest(tmp_path)
    tag = to_row("graph_tag:t", "graph_tag", metadata="{}")
    for _ in range(2):
        version = manifest.publish(version, Change(put=[tag]))
        assert (version.ids_of("graph_tag"), version.has_row("graph_tag:t")) == (["graph_tag:t"], True)
        assert version.row("graph_tag:t") == {**dict.fromkeys(version.row(HEAD)), **tag}
        version = manifest.checkpoint(version)
        assert not version.is_changed("graph_tag")
        assert version.ids_of("graph_tag") == ["graph_tag:t"]
        version = manifest.publish(version, Change(drop=["graph_tag:t"]))
        assert (version.ids_of("graph_tag"), version.has_row("graph_tag:t")) == ([], False)
        assert version.is_changed("graph_tag")
        assert manifest.find(version, "graph_tag:t") == []
        assert manifest.checkpoint(version).row("graph_tag:t") is None


def test_several_changes_in_one_publish_are_several_versions(tmp_path):
    manifest, first = new_manifest(tmp_path)
    last = manifest.publish(first, *map(change, range(1, 11)))
    assert last.version == 11
    for version in (last, manifest_at(tmp_path).read()):
        assert (version.version, version.id, head_of(version)) == (11, last.id, commit_id(10))
        assert all_ids(manifest, version) == expected_ids(10)
    assert log_files(tmp_path) == ["00000000000000000002.log"]
    assert step(manifest, last).version == 12
    assert log_files(tmp_path) == ["00000000000000000002.log", "00000000000000000012.log"]


def test_a_publisher_inside_a_group_of_versions_loses(tmp_path):
    """A handle that is behind, whose next number lies inside an entry of several versions, gets a conflict."""
    manifest, first = new_manifest(tmp_path)
    other = manifest_at(tmp_path)
    theirs = other.read()
    second = step(manifest, first)
    known = other.refresh(theirs)
    assert known.version == 2
    last = manifest.publish(second, *map(change, range(2, 6)))
    with pytest.raises(PublishConflict):
        step(other, known, 99)
    assert other.refresh(known).id == last.id


@pytest.mark.parametrize("size", [63, 64, 65, 130])
def test_groups_of_changes_are_checkpointed_and_trimmed(tmp_path, size):
    manifest, version = new_manifest(tmp_path)
    number = 0
    for _ in range(4):
        version = manifest.publish(version, *map(change, range(number + 1, number + size + 1)))
        number += size
        reader = manifest_at(tmp_path).read()
        assert (reader.version, reader.id) == (version.version, version.id)
        assert all_ids(manifest, reader) == expected_ids(number)
    assert len(log_files(tmp_path)) <= 3


def test_only_one_of_two_publishes_on_one_version_lands(tmp_path):
    manifest, first = new_manifest(tmp_path)
    winner = step(manifest, first, 1)
    with pytest.raises(PublishConflict):
        step(manifest, first, 2)
    assert manifest.read().id == winner.id
    assert all_ids(manifest, manifest.read()) == expected_ids(1)


@pytest.mark.parametrize("behind", [1, 5, 63, 64, 65, 70, 128, 200])
@pytest.mark.parametrize("before", [0, 1, 64], ids=["the first version", "an entry", "a checkpoint"])
def test_a_publish_on_an_old_version_never_lands(tmp_path, behind, before):
    """Even if the entries after it were removed, so that its name is unused."""
    manifest, first = new_manifest(tmp_path)
    old = steps(manifest, first, before)
    version = steps(manifest, old, behind)
    with pytest.raises((PublishConflict, StorageError)):
        step(manifest, old, 9_999)
    for found in (manifest.read(), manifest_at(tmp_path).read()):
        assert (found.version, found.id) == (version.version, version.id)
        assert commit_id(9_999) not in all_ids(manifest, found)
    assert step(manifest, manifest.refresh(version)).version == version.version + 1


@pytest.mark.parametrize("before", [0, 1], ids=["the first version", "an entry"])
def test_a_publish_at_the_number_of_a_removed_entry_is_an_error(tmp_path, monkeypatch, before):
    """A publisher may stop between its last check and the creation of its entry while many others succeed."""
    manifest, first = new_manifest(tmp_path)
    old = steps(manifest, first, before)
    append = CommitLog.append

    def hang(log, name, data):
        monkeypatch.setattr(CommitLog, "append", append)
        others = manifest_at(tmp_path)
        steps(others, others.read(), 130)
        assert not entry_file(tmp_path, old.version + 1).exists()
        return append(log, name, data)

    monkeypatch.setattr(CommitLog, "append", hang)
    with pytest.raises(StorageError, match="overtaken"):
        step(manifest, old, 9_999)
    assert entry_file(tmp_path, old.version + 1).exists(), "a stray entry"
    newest = manifest_at(tmp_path).read()
    assert newest.version == old.version + 130
    assert commit_id(9_999) not in all_ids(manifest, newest)
    assert manifest.refresh(old).id == newest.id
    # A later trim removes it.
    steps(manifest, manifest.refresh(old), 130)
    assert not entry_file(tmp_path, old.version + 1).exists()
    assert commit_id(9_999) not in all_ids(manifest, manifest.read())


def test_a_stray_entry_is_not_mistaken_for_the_base(tmp_path, monkeypatch):
    """One stalled publisher leaves a stray entry at the name of the base of another stalled publisher."""
    manifest, first = new_manifest(tmp_path)
    base = step(manifest, first)
    stray = entry_file(tmp_path, 2).read_bytes()
    append = CommitLog.append

    def hang(log, name, data):
        monkeypatch.setattr(CommitLog, "append", append)
        others = manifest_at(tmp_path)
        steps(others, others.read(), 130)
        entry_file(tmp_path, 2).write_bytes(stray)
        return append(log, name, data)

    monkeypatch.setattr(CommitLog, "append", hang)
    with pytest.raises(StorageError, match="overtaken"):
        step(manifest, base, 9_999)


def test_two_handles_conflict_like_two_processes(tmp_path):
    manifest, _ = new_manifest(tmp_path)
    other = manifest_at(tmp_path)
    mine, theirs = manifest.read(), other.read()
    step(other, theirs)
    with pytest.raises(PublishConflict):
        step(manifest, mine)
    step(manifest, manifest.refresh(mine))
    assert head_of(manifest.read()) == commit_id(2)


def test_racing_handles_lose_nothing(tmp_path):
    new_manifest(tmp_path)
    count, size = 4, 60
    wrote: list[list[str]] = [[] for _ in range(count)]
    start = Barrier(count)

    def write(writer):
        manifest = manifest_at(tmp_path)
        known = manifest.read()
        start.wait(60)
        for number in range(size):
            name = f"commit-{writer}-{number}"
            for _ in range(10_000):
                known = manifest.refresh(known)
                row = to_row(name, "graph_commit", table_version=known.version + 1)
                try:
                    known = manifest.publish(known, Change(put=[head(number)], add=[row]))
                except PublishConflict:
                    continue
                wrote[writer].append(name)
                break

    threads = [Thread(target=write, args=(writer,)) for writer in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    read = manifest_at(tmp_path).read()
    assert read.version == 1 + count * size
    found = manifest_at(tmp_path).scan(read, COMMITS)
    assert sorted(row["object_id"] for row in found) == sorted([commit_id(0), *(name for one in wrote for name in one)])
    assert len({row["table_version"] for row in found}) == len(found), "one commit per version"


@pytest.mark.parametrize("point", ["publish.before_commit", "publish.after_commit"])
def test_a_publisher_that_stops_publishes_or_changes_nothing(tmp_path, point):
    manifest, first = new_manifest(tmp_path)
    with pytest.raises(Exception, match="failpoint"), arm(point):
        step(manifest, first, 1)
    landed = point == "publish.after_commit"
    found = manifest.refresh(first)
    assert found.version == 1 + landed
    assert landed or found is first
    assert step(manifest, found).version == 2 + landed
    assert all_ids(manifest, manifest.read()) == expected_ids(1 + landed)


# -- checkpoints ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["checkpoint.before_commit", "checkpoint.after_commit"])
def test_a_publisher_that_stops_at_its_checkpoint_has_published(tmp_path, point):
    manifest, first = new_manifest(tmp_path)
    version = steps(manifest, first, 63)
    with pytest.raises(Exception, match="failpoint"), arm(point):
        step(manifest, version)
    for handle in (manifest, manifest_at(tmp_path)):
        found = handle.read()
        assert found.version == 65
        assert found.checkpoint.version == (65 if point == "checkpoint.after_commit" else 1)
        assert all_ids(handle, found) == expected_ids(64)
    later = steps(manifest, manifest.read(), 16)
    assert len(later.lines) <= 16, "one of the next publishers wrote the checkpoint"
    assert all_ids(manifest, later) == expected_ids(80)


def test_a_checkpoint_that_fails_does_not_fail_the_publish(tmp_path, monkeypatch):
    write = CheckpointTable.write

    def fail(*_):
        raise StorageError("no space", code="disk_full")

    monkeypatch.setattr(CheckpointTable, "write", fail)
    manifest, first = new_manifest(tmp_path)
    version = steps(manifest, first, 70)
    assert (version.version, version.checkpoint.version) == (71, 1)
    monkeypatch.setattr(manifest_module, "_RECORDS_MAX", 70)
    with pytest.raises(StorageError, match="no space"):
        step(manifest, version)
    monkeypatch.setattr(CheckpointTable, "write", write)
    version = step(manifest, version)
    assert (version.version, version.checkpoint.version) == (72, 71)
    assert all_ids(manifest, manifest_at(tmp_path).read()) == expected_ids(71)


@pytest.mark.parametrize("error", [OSError("LanceError: connection reset"), ValueError("LanceError: broken")])
def test_a_lost_checkpoint_race_followed_by_a_failed_read_does_not_fail_the_publish(tmp_path, monkeypatch, error):
    manifest, first = new_manifest(tmp_path)
    version = steps(manifest, first, 63)

    def lose(*_):
        raise CheckpointConflict

    def fail(*_):
        raise error

    monkeypatch.setattr(CheckpointTable, "write", lose)
    monkeypatch.setattr(CheckpointTable, "read", fail)
    assert step(manifest, version).version == 65


def test_the_loser_of_a_checkpoint_race_continues_on_the_checkpoint_of_the_winner(tmp_path, monkeypatch):
    manifest, first = new_manifest(tmp_path)
    version = steps(manifest, first, 63)
    write = CheckpointTable.write

    def overtaken(table, *arguments):
        monkeypatch.setattr(CheckpointTable, "write", write)
        other = manifest_at(tmp_path)
        other.checkpoint(other.read())
        return write(table, *arguments)

    monkeypatch.setattr(CheckpointTable, "write", overtaken)
    published = step(manifest, version)
    assert (published.version, published.checkpoint.version, published.lines) == (65, 65, ())
    assert step(manifest, published).version == 66


def test_large_records_are_checkpointed_earlier(tmp_path):
    manifest, version = new_manifest(tmp_path)
    for number in range(8):
        row = to_row(f"schema:{number}", "schema", metadata=os.urandom(100_000).hex())
        version = manifest.publish(version, Change(add=[row]))
        assert sum(map(len, version.lines)) < 1 << 20
    assert version.checkpoint.version > 1
    assert sorted(row["object_id"] for row in manifest.scan(version, HistoryFilter("schema"))) == [
        f"schema:{number}" for number in range(8)
    ]


def test_a_checkpoint_stores_state_rows_in_their_stored_form(tmp_path):
    manifest, version = new_manifest(tmp_path)
    manifest._stored_form = lambda version, rows: [{**row, "location": f"at {version.version}"} for row in rows]
    version = manifest.checkpoint(step(manifest, version))
    assert version.row(HEAD)["location"] == "at 2"
    assert manifest_at(tmp_path).read().row(HEAD)["location"] == "at 2"


def test_six_hundred_publishes(tmp_path):
    manifest, version = new_manifest(tmp_path)
    for number in range(1, 601):
        version = step(manifest, version)
        assert version.version == number + 1
        assert len(version.lines) < 64
    read = manifest_at(tmp_path).read()
    assert all_ids(manifest, read) == expected_ids(600)
    assert len(log_files(tmp_path)) <= 3 * 64
    assert len(manifest.scan(read, COMMITS, ["object_id"])) == 601
    for number in range(0, 601, 50):
        assert len(manifest.find(read, commit_id(number))) == 1
    assert manifest.find(read, HEAD)[0]["object_type"] == "graph_head"
    assert manifest.find(read, "o'brien") == []
    assert manifest.duplicates(read) == []


def test_a_filter_selects_the_same_rows_in_the_log_and_in_a_checkpoint(tmp_path):
    manifest, version = new_manifest(tmp_path)
    for number, branch in enumerate((None, "a", "b'", None, "a"), 1):
        row = to_row(commit_id(number), "graph_commit", table_version=number + 1, table_branch=branch)
        version = manifest.publish(version, Change(add=[row, to_row(f"schema:{number}", "schema")]))
    stored = manifest.checkpoint(version)
    filters = (
        COMMITS,
        HistoryFilter("schema"),
        HistoryFilter("schema", above=0),
        HistoryFilter("graph_commit", above=2),
        HistoryFilter("graph_commit", up_to=4),
        HistoryFilter("graph_commit", branches=(None,)),
        HistoryFilter("graph_commit", branches=("b'", None)),
        HistoryFilter("graph_commit", id_below=commit_id(3)),
        HistoryFilter("graph_commit", above=1, up_to=5, branches=("a",), id_below=commit_id(9)),
    )
    for wanted in filters:
        ids = [sorted(row["object_id"] for row in manifest.scan(at, wanted)) for at in (version, stored)]
        assert ids[0] == ids[1]


def test_a_reader_of_a_dropped_checkpoint_reads_the_same_history(tmp_path):
    manifest, first = new_manifest(tmp_path)
    steps(manifest, first, 64 * 6)
    assert not (tmp_path / "__manifest" / "_versions" / f"{2**64 - 2:020}.manifest").exists()
    late = manifest_at(tmp_path)
    found = late.scan(first, HistoryFilter("graph_commit", up_to=1))
    assert [row["object_id"] for row in found] == [commit_id(0)]
    assert len(late.find(first, commit_id(0))) == 1


# -- damage and replaced folders -----------------------------------------------------------------------


def test_a_reader_of_an_erased_checkpoint_reads_the_same_history(tmp_path):
    manifest, first = new_manifest(tmp_path)
    version = steps(manifest, first, 3)
    other = manifest_at(tmp_path)
    manifest.checkpoint(version)
    known = other.read()
    manifest.erase_past()
    assert other.duplicates(known) == []
    assert len(other.scan(known, COMMITS)) == 4


@pytest.mark.parametrize("content", [b"", b"OGLOG1\n", b"\0" * 300, None], ids=["empty", "magic only", "zeros", "half"])
def test_a_damaged_newest_entry_is_a_typed_error(tmp_path, content):
    manifest, first = new_manifest(tmp_path)
    version = steps(manifest, first, 3)
    file = entry_file(tmp_path, 4)
    data = file.read_bytes()
    file.write_bytes(content if content is not None else data[: len(data) // 2])
    for read in (manifest_at(tmp_path).read, lambda: manifest.refresh(version)):
        with pytest.raises(Damaged, match=r"0004\.log") as caught:
            read()
        assert caught.value.code == "damaged_manifest"
    with pytest.raises(PublishConflict):
        step(manifest, version)
    file.write_bytes(data)
    assert manifest.refresh(version).id == version.id


def test_a_damaged_older_entry_does_no_harm(tmp_path):
    manifest, first = new_manifest(tmp_path)
    version = steps(manifest, first, 3)
    entry_file(tmp_path, 3).write_bytes(b"")
    assert manifest_at(tmp_path).read().id == version.id


def test_an_entry_that_does_not_continue_the_checkpoint_is_damage(tmp_path, monkeypatch):
    """The manifest was copied before the log, and a checkpoint was written in between."""
    monkeypatch.setattr(manifest_module, "_READ_TRIES", 2)
    manifest, first = new_manifest(tmp_path / "g")
    shutil.copytree(tmp_path / "g" / "__manifest", tmp_path / "copy" / "__manifest")
    steps(manifest, first, 66)
    shutil.copytree(tmp_path / "g" / "__log", tmp_path / "copy" / "__log")
    with pytest.raises(Damaged, match="does not continue") as caught:
        manifest_at(tmp_path / "copy").read()
    assert "__log first" in caught.value.hint


def test_the_log_of_another_graph_is_damage(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest_module, "_READ_TRIES", 2)
    manifest, first = new_manifest(tmp_path / "g")
    other, theirs = new_manifest(tmp_path / "other")
    step(manifest, first)
    step(other, theirs)
    shutil.rmtree(tmp_path / "g" / "__log")
    shutil.copytree(tmp_path / "other" / "__log", tmp_path / "g" / "__log")
    with pytest.raises(Damaged, match="does not continue"):
        manifest_at(tmp_path / "g").read()


@pytest.mark.parametrize("commits", [1, 3, 64, 70])
def test_a_log_that_is_older_than_the_checkpoint_is_ignored(tmp_path, commits):
    """The log was copied before the manifest, and versions were published in between."""
    manifest, first = new_manifest(tmp_path / "g")
    version = steps(manifest, first, 2)
    shutil.copytree(tmp_path / "g" / "__log", tmp_path / "copy" / "__log")
    version = manifest.checkpoint(steps(manifest, version, commits))
    shutil.copytree(tmp_path / "g" / "__manifest", tmp_path / "copy" / "__manifest")
    copy = manifest_at(tmp_path / "copy")
    found = copy.read()
    assert found.id == version.id
    assert step(copy, found).version == version.version + 1
    assert all_ids(copy, copy.read()) == expected_ids(2 + commits + 1)


def test_a_missing_log_is_the_checkpoint(tmp_path):
    manifest, first = new_manifest(tmp_path, sync=True)
    version = manifest.checkpoint(steps(manifest, first, 3))
    shutil.rmtree(tmp_path / "__log")
    handle = manifest_at(tmp_path, sync=True)
    found = handle.read()
    assert found.id == version.id
    assert handle.refresh(found) is found
    assert step(handle, found).version == 5
    assert log_files(tmp_path) == ["00000000000000000005.log"]


@pytest.mark.parametrize("lost", [1, 2, 63, 64, 65, 200])
@pytest.mark.parametrize("again", [0, 1, 2, 63, 64, 65, 200, 260])
def test_a_replaced_folder_is_noticed(tmp_path, lost, again):
    root, copy = tmp_path / "g", tmp_path / "copy"
    manifest, first = new_manifest(root)
    before = steps(manifest, first, 2)
    shutil.copytree(root, copy)
    known = steps(manifest, before, lost)
    assert manifest.refresh(known) is known
    shutil.rmtree(root)
    copy.rename(root)
    other = manifest_at(root)
    version = other.read()
    for number in range(again):
        version = step(other, version, 10_000 + number)
    with pytest.raises((PublishConflict, StorageError)):
        step(manifest, known, 99_999)
    found = manifest.refresh(known)
    assert (found.version, found.id, found.epoch) == (version.version, version.id, known.epoch + 1)
    assert head_of(found) == commit_id(10_000 + again - 1 if again else 2)
    assert manifest.refresh(found) is found
    made = step(manifest, found, 77_777)
    assert all_ids(manifest, manifest_at(root).read()) == sorted(
        [*expected_ids(2), *(commit_id(10_000 + number) for number in range(again)), commit_id(77_777)]
    )
    assert made.epoch == found.epoch


def test_a_copied_entry_is_the_same_version(tmp_path):
    manifest, first = new_manifest(tmp_path)
    known = steps(manifest, first, 2)
    file = entry_file(tmp_path, 3)
    data = file.read_bytes()
    file.unlink()
    file.write_bytes(data)
    found = manifest.refresh(known)
    assert (found.version, found.id, found.epoch) == (known.version, known.id, known.epoch)
    assert step(manifest, found).version == 4


def test_a_link_to_the_newest_entry_costs_a_publisher_one_repetition(tmp_path):
    """A backup by hard links changes the time of the file."""
    manifest, first = new_manifest(tmp_path)
    known = step(manifest, first)
    os.link(entry_file(tmp_path, 2), tmp_path / "link")
    with pytest.raises(PublishConflict):
        step(manifest, known)
    assert step(manifest, manifest.refresh(known)).version == 3


# -- an object store -----------------------------------------------------------------------------------


@pytest.fixture
def as_bucket(monkeypatch):
    """Let handles treat their folder as an object store: names are checked by age, not by files."""

    def make(manifest):
        monkeypatch.setattr(manifest._log, "_folder", None)
        manifest.location = manifest.location.__class__(manifest.location.uri, None)
        return manifest

    return make


def test_a_stalled_publisher_of_a_bucket_checks_the_checkpoint(tmp_path, as_bucket, monkeypatch):
    """Another thread of the process has looked at the store since; that says nothing about the base of this one."""
    manifest, first = new_manifest(tmp_path)
    as_bucket(manifest)
    base = manifest.refresh(step(manifest, first))
    append = CommitLog.append

    def hang(log, name, data):
        monkeypatch.setattr(CommitLog, "append", append)
        others = manifest_at(tmp_path)
        steps(others, others.read(), 130)
        monkeypatch.setattr(manifest_module, "_now", lambda: (now[0] + LOOK_AGE_S, now[1] + LOOK_AGE_S))
        assert manifest.refresh(base).version == 132
        return append(log, name, data)

    now = manifest_module._now()
    monkeypatch.setattr(CommitLog, "append", hang)
    with pytest.raises(StorageError, match="overtaken"):
        step(manifest, base, 9_999)
    assert commit_id(9_999) not in all_ids(manifest, manifest_at(tmp_path).read())


def test_an_idle_reader_of_a_bucket_lists_the_entries(tmp_path, as_bucket, monkeypatch):
    """The entry after the known one may have been removed, so its absence says nothing."""
    manifest, first = new_manifest(tmp_path)
    as_bucket(manifest)
    known = manifest.refresh(step(manifest, first))
    others = manifest_at(tmp_path)
    steps(others, others.read(), 130)
    assert not entry_file(tmp_path, 3).exists()
    now = manifest_module._now()
    for later in ((LOOK_AGE_S, 0.0), (0.0, LOOK_AGE_S), (0.0, -1.0)):
        monkeypatch.setattr(manifest_module, "_now", lambda later=later: (now[0] + later[0], now[1] + later[1]))
        assert manifest.refresh(known).version == 132


def test_a_busy_reader_of_a_bucket_notices_a_replaced_graph(tmp_path, as_bucket, monkeypatch):
    """Looks at the next entry alone would never find out."""
    manifest, first = new_manifest(tmp_path / "g")
    as_bucket(manifest)
    known = manifest.refresh(steps(manifest, first, 5))
    other, version = new_manifest(tmp_path / "other")
    steps(other, version, 3)
    shutil.rmtree(tmp_path / "g")
    (tmp_path / "other").rename(tmp_path / "g")
    start = manifest_module._now()
    for seconds in range(0, 60, 5):
        monkeypatch.setattr(manifest_module, "_now", lambda s=seconds: (start[0] + s, start[1] + s))
        known = manifest.refresh(known)
    assert (known.version, known.epoch) == (4, 1)


def test_a_warm_read_of_a_bucket_is_one_request(tmp_path, as_bucket, monkeypatch):
    manifest, first = new_manifest(tmp_path)
    as_bucket(manifest)
    known = manifest.refresh(step(manifest, first))
    requests = []
    for name in ("read", "list", "list_times", "write_if_absent"):
        do = getattr(LocalObjects, name)
        monkeypatch.setattr(LocalObjects, name, lambda *a, do=do, name=name: (requests.append(name), do(*a))[1])
    assert manifest.refresh(known) is known
    assert requests == ["read"]
    requests.clear()
    monkeypatch.setattr(CheckpointTable, "open", lambda *_: pytest.fail("the checkpoint was opened"))
    step(manifest, known)
    assert "list" not in requests


def test_an_entry_whose_response_was_lost_is_own(tmp_path, as_bucket, monkeypatch):
    """A client that repeats a conditional put after a broken connection finds the object that it wrote itself."""
    manifest, first = new_manifest(tmp_path)
    as_bucket(manifest)
    known = manifest.refresh(step(manifest, first))
    append = CommitLog.append

    def repeat(log, name, data):
        assert append(log, name, data)
        return append(log, name, data)

    monkeypatch.setattr(CommitLog, "append", repeat)
    assert step(manifest, known).version == 3
    assert all_ids(manifest, manifest_at(tmp_path).read()) == expected_ids(2)


def test_names_are_those_of_the_first_new_version(tmp_path):
    _, first = new_manifest(tmp_path)
    assert first.next_entry == entry_name(2)


def test_a_folder_that_is_replaced_during_a_read_is_read_again(tmp_path, monkeypatch):
    graph = og.init(tmp_path / "graph", "node Item { name: String @key }")
    graph.load([{"type": "Item", "data": {"name": "a"}}], mode="append")
    log, away = tmp_path / "graph" / "__log", tmp_path / "away"
    log.rename(away)
    newest = ManifestTable._newest

    def replaced(table: ManifestTable, epoch: int) -> object:
        found = newest(table, epoch)
        if away.exists():
            away.rename(log)
        return found

    monkeypatch.setattr(ManifestTable, "_newest", replaced)
    seen: list[int] = []
    read = ManifestTable.read

    def reading(table: ManifestTable) -> object:
        found = read(table)
        seen.append(found.version)
        return found

    monkeypatch.setattr(ManifestTable, "read", reading)
    og.open(tmp_path / "graph")
    first = seen[0]
    og.open(tmp_path / "graph")
    assert first == seen[-1]
