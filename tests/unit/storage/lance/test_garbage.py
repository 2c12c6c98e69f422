"""Unpinned versions are removed with their files; pinned versions stay complete."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta

import pytest

from omnigraph.errors import Damaged, OmniGraphError
from omnigraph.storage.failpoints import arm
from omnigraph.storage.lance.garbage import (
    list_versions,
    remove,
    remove_unfinished,
    remove_versions,
    unknown_folders,
    versions_of_commit,
)
from omnigraph.storage.lance.staging import TableWrite, stage
from support.graphs import Line, files_below, new_line, people

LATER = timedelta(hours=1)


@pytest.fixture
def line(tmp_path):
    line = new_line(tmp_path)
    for id_ in "abc":
        line.write(TableWrite(append=people(id_)))
    return line


def now():
    return datetime.now(UTC)


def data_files(line):
    return {name for name in files_below(line.store.location.path) if "/data/" in name}


# -- versions ------------------------------------------------------------------------------------------


def test_versions_are_listed_with_their_write_time(line):
    found = list_versions(line.store, line.folder)
    assert [one.version for one in found] == [1, 2, 3, 4]
    assert all(now() - timedelta(minutes=5) < one.written_at <= now() for one in found)


def test_detached_versions_are_not_listed(line):
    with pytest.raises(OmniGraphError), arm("table.detached"):
        Line(line.store, line.folder, 3).write(TableWrite(append=people("d")))
    assert [one.version for one in list_versions(line.store, line.folder)] == [1, 2, 3, 4]


def test_listing_a_missing_table_is_a_typed_error(line):
    shutil.rmtree(line.store.location.path / line.folder)
    with pytest.raises(Damaged, match="nodes/a"):
        list_versions(line.store, line.folder)


def test_removed_versions_are_gone_and_the_others_complete(line):
    removed = remove(line.store, line.folder, [2, 3])
    assert removed.versions == (2, 3)
    assert removed.bytes > 0
    assert [one.version for one in list_versions(line.store, line.folder)] == [1, 4]
    with pytest.raises(Damaged) as caught:
        line.store.open(line.folder, 2)
    assert caught.value.code == "version_reclaimed"
    assert [row["id"] for row in line.rows()] == ["a", "b", "c"]


def test_files_are_removed_with_the_last_version_that_uses_them(line):
    line.write(TableWrite(overwrite=people("x")))
    before = data_files(line)
    remove(line.store, line.folder, [2, 3])
    assert data_files(line) == before, "version 4 still needs them"
    remove(line.store, line.folder, [4])
    assert len(data_files(line)) == 1
    assert [row["id"] for row in line.rows()] == ["x"]


def test_the_newest_version_is_never_removed(line):
    assert remove(line.store, line.folder, [4]).versions == ()
    assert remove_versions(line.store, line.folder, [3, 4]) == [3]
    assert [row["id"] for row in line.rows()] == ["a", "b", "c"]


def test_missing_versions_are_skipped(line):
    assert remove(line.store, line.folder, [77]) == remove(line.store, line.folder, [])
    assert remove_versions(line.store, line.folder, [2, 2, 77]) == [2]
    assert remove_versions(line.store, line.folder, [2]) == []


def test_a_staged_change_survives_a_concurrent_removal(line):
    staged = stage(line.table, TableWrite(append=people("new")), {})
    remove(line.store, line.folder, [2, 3])
    table, _ = staged.promote()
    assert sorted(table.read()["id"].to_pylist()) == ["a", "b", "c", "new"]


def test_versions_of_a_branching_table_are_independent(line):
    other = Line(line.store, line.folder, 2)
    other.write(TableWrite(append=people("other")))
    remove(line.store, line.folder, [1, 2, 3])
    assert [row["id"] for row in line.rows()] == ["a", "b", "c"]
    assert [row["id"] for row in other.rows()] == ["a", "other"]


# -- versions of one commit ----------------------------------------------------------------------------


def test_versions_of_a_commit_are_found_by_their_transaction(line):
    for commit in ("one", "two", "one"):
        table, _ = stage(line.table, TableWrite(append=people(commit)), {"commit": commit}).promote()
    assert table.version == 7
    assert versions_of_commit(line.store, line.folder, 4, "commit", "one") == [5, 7]
    assert versions_of_commit(line.store, line.folder, 5, "commit", "one") == [7]
    assert versions_of_commit(line.store, line.folder, 4, "commit", "three") == []


def test_a_table_that_was_never_created_has_no_versions(line):
    assert versions_of_commit(line.store, "nodes/none", 0, "commit", "one") == []


# -- leftovers -----------------------------------------------------------------------------------------


def test_old_detached_manifests_are_removed(line):
    for id_ in "xy":
        with pytest.raises(OmniGraphError), arm("table.detached"):
            Line(line.store, line.folder, 3).write(TableWrite(append=people(id_)))
    assert remove_unfinished(line.store, line.folder, now() - LATER) == 0
    assert remove_unfinished(line.store, line.folder, now() + LATER) == 2
    assert remove_unfinished(line.store, line.folder, now() + LATER) == 0
    assert [row["id"] for row in line.rows()] == ["a", "b", "c"]


def test_old_temporary_files_are_removed(line):
    half = line.store.location.path / line.folder / "_versions" / ".tmp_half"
    half.write_bytes(b"")
    assert remove_unfinished(line.store, line.folder, now() - LATER) == 0
    assert remove_unfinished(line.store, line.folder, now() + LATER) == 1
    assert not half.exists()


def test_staged_files_are_removed_at_once_only_without_writers(line):
    before = data_files(line)
    stage(line.table, TableWrite(append=people("new")), {})
    remove(line.store, line.folder, [1])
    assert len(data_files(line)) == len(before) + 1
    remove(line.store, line.folder, [], no_writers=True)
    assert data_files(line) == before
    assert [row["id"] for row in line.rows()] == ["a", "b", "c"]


STRANGE = "0123456789abcdef"


def test_unknown_folders_are_those_not_in_the_manifest(tmp_path, line):
    unknown = [f"edges/{STRANGE}", f"nodes/{STRANGE}"]
    for folder in unknown:
        line.store.create(folder, line.table.schema)
    (tmp_path / "nodes" / "note.txt").write_text("mine")
    (tmp_path / "nodes" / "mine").mkdir()
    (tmp_path / "other").mkdir()
    assert sorted(unknown_folders(line.store, {"nodes/a"})) == unknown
    assert unknown_folders(line.store, {"nodes/a", *unknown}) == {}


def test_an_unknown_folder_is_as_old_as_its_newest_file(tmp_path, line):
    folder = f"nodes/{STRANGE}"
    line.store.create(folder, line.table.schema)
    old = (now() - 2 * LATER).timestamp()
    files = [path for path in (tmp_path / folder).rglob("*") if path.is_file()]
    for path in files[1:]:
        os.utime(path, (old, old))
    assert unknown_folders(line.store, {"nodes/a"})[folder] > now() - LATER


def test_an_empty_unknown_folder_has_its_own_age(tmp_path, line):
    folder = f"nodes/{STRANGE}"
    (tmp_path / folder).mkdir()
    assert unknown_folders(line.store, {"nodes/a"})[folder] > now() - LATER
