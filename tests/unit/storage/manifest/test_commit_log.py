"""Log entries: their encoding, damage, one creator per name, trimming in ascending order."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from omnigraph.errors import Damaged, OmniGraphError, StorageError
from omnigraph.storage.files.local_objects import LocalObjects
from omnigraph.storage.files.location import Location
from omnigraph.storage.manifest.commit_log import (
    TRIM_AGE_S,
    CommitLog,
    decode_entry,
    encode_entry,
    encode_record,
    entry_name,
    first_version_of,
    new_record,
)
from omnigraph.storage.manifest.manifest_schema import to_row

NAME = entry_name(6)


@pytest.fixture
def log(tmp_path):
    log = CommitLog(Location(str(tmp_path), tmp_path), sync=False)
    log.create()
    return log


def entry(*versions, base=4):
    """The encoded entry of some versions, one row each."""
    rows = [to_row(f"o'b\nrien-{version}", "graph_commit", table_version=2**64 - 1) for version in versions]
    records = [new_record(version, [], [f"gone-{version}"], [row]) for version, row in zip(versions, rows, strict=True)]
    return encode_entry(base, "base-id", "1003", [encode_record(record) for record in records])


# -- encoding ------------------------------------------------------------------------------------------


def test_an_entry_is_read_as_it_was_written():
    read = decode_entry(NAME, entry(5, 6, 7))
    assert (read.base, read.base_id, read.stamp, read.version) == (4, "base-id", "1003", 7)
    assert [record.version for record in read.records] == [5, 6, 7]
    assert read.records[0].add[0]["object_id"] == "o'b\nrien-5"
    assert read.records[0].add[0]["table_version"] == 2**64 - 1
    assert read.records[0].drop == ["gone-5"]
    assert len({record.id for record in read.records}) == 3
    again = decode_entry(NAME, encode_entry(read.base, read.base_id, read.stamp, read.lines))
    assert again == read


def test_an_entry_names_its_versions_and_its_base():
    read = decode_entry(NAME, entry(5, 6))
    assert read.id_of(4) == "base-id"
    assert read.id_of(6) == read.records[1].id
    assert read.id_of(3) is None
    assert read.id_of(7) is None


def test_similar_records_take_little_space():
    assert len(entry(*range(5, 69))) < 64 * 60


def test_names_sort_by_version_and_are_valid_on_every_system():
    assert entry_name(1) == "__log/00000000000000000001.log"
    assert sorted([entry_name(10), entry_name(9), entry_name(2**64 - 1)]) == [
        entry_name(9),
        entry_name(10),
        entry_name(2**64 - 1),
    ]
    assert first_version_of(entry_name(12)) == 12


@pytest.mark.parametrize(
    "name", ["__log/1.log", "__log/.writing-x", "__log/0000000000000000001x.log", "__log/" + "1" * 20]
)
def test_other_files_are_no_entries(name):
    assert first_version_of(name) is None


# -- damage --------------------------------------------------------------------------------------------


def test_every_truncation_is_damage():
    data = entry(5, 6)
    for size in range(len(data)):
        with pytest.raises(Damaged, match=NAME) as caught:
            decode_entry(NAME, data[:size])
        assert caught.value.code == "damaged_manifest"


def test_no_changed_byte_changes_the_content():
    """A few bits of the compressed form have no meaning."""
    data = entry(5, 6)
    read = decode_entry(NAME, data)
    unnoticed = 0
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 0x20
        with suppress(Damaged):
            assert decode_entry(NAME, bytes(changed)) == read
            unnoticed += 1
    assert unnoticed < 3


@pytest.mark.parametrize("data", [b"", b"\0" * 4_096, b"{}", b"OGLOG1\n" + b"\xff" * 40])
def test_other_content_is_damage(data):
    with pytest.raises(Damaged, match="damaged"):
        decode_entry(NAME, data)


@pytest.mark.parametrize("versions", [(), (5, 7), (6, 7), (5, 5), (6, 5)])
def test_versions_that_do_not_follow_the_base_are_damage(versions):
    with pytest.raises(Damaged, match=r"versions|records"):
        decode_entry(NAME, entry(*versions))


def test_a_record_without_its_fields_is_damage():
    with pytest.raises(Damaged, match="damaged"):
        decode_entry(NAME, encode_entry(4, "base-id", None, [b'{"version":5}']))


# -- creating ------------------------------------------------------------------------------------------


def test_an_entry_is_created_once(log):
    assert log.append(NAME, entry(5, 6))
    assert not log.append(NAME, entry(5, 6, 7))
    assert log.read(NAME).version == 6
    assert log.names() == [NAME]
    assert log.read(entry_name(7)) is None


@pytest.mark.parametrize("sync", [False, True])
def test_an_entry_appears_whole_and_leaves_no_other_file(tmp_path, monkeypatch, sync):
    log = CommitLog(Location(str(tmp_path), tmp_path), sync=sync)
    log.create()
    link = os.link
    sizes = []

    def look(source, target):
        sizes.append(source.stat().st_size)
        assert log.names() == [], "a file in preparation is no entry"
        link(source, target)

    monkeypatch.setattr(os, "link", look)
    data = entry(5, 6)
    assert log.append(NAME, data)
    assert sizes == [len(data)]
    assert [path.name for path in (tmp_path / "__log").iterdir()] == ["00000000000000000006.log"]


def test_without_hard_links_nothing_is_created(log, tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(StorageError):
        log.append(NAME, entry(5, 6))
    assert list((tmp_path / "__log").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="modes")
def test_entries_follow_the_umask(log, tmp_path):
    before = os.umask(0o002)
    try:
        log.append(NAME, entry(5, 6))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o664


def test_unfinished_files_are_no_entries_and_are_removed(log, tmp_path):
    (tmp_path / "__log" / ".writing-0123").write_bytes(b"half")
    assert log.names() == []
    objects = LocalObjects(tmp_path, sync=False)
    objects.remove_unfinished(datetime.now(UTC) - timedelta(hours=1))
    assert (tmp_path / "__log" / ".writing-0123").exists()
    objects.remove_unfinished(datetime.now(UTC) + timedelta(hours=1))
    assert list((tmp_path / "__log").iterdir()) == []


def test_a_log_that_cannot_be_created_is_a_typed_error(tmp_path):
    log = CommitLog(Location(str(tmp_path / "gone"), tmp_path / "gone"), sync=True)
    with pytest.raises(OmniGraphError, match="the log of the graph cannot be created"):
        log.create()


# -- trimming ------------------------------------------------------------------------------------------


def numbers(log):
    return [first_version_of(name) for name in log.names()]


def fill(log, *versions):
    for version in versions:
        log.append(entry_name(version), entry(5))


def test_a_trim_keeps_newer_entries_and_always_the_newest(log):
    fill(log, 2, 3, 4, 9, 10)
    log.trim(4)
    assert numbers(log) == [9, 10]
    log.trim(100)
    assert numbers(log) == [10]
    log.trim(100)
    assert numbers(log) == [10]


def test_a_trim_of_an_empty_log_does_nothing(log, tmp_path):
    log.trim(100)
    (tmp_path / "__log").rmdir()
    log.trim(100)
    assert log.names() == []


def test_a_trim_in_a_folder_stops_at_an_entry_that_cannot_be_removed(log, monkeypatch):
    """A publisher relies on it: while the entry of its base exists, no later one was removed."""
    fill(log, 2, 3, 4, 5)
    delete = LocalObjects.delete

    def refuse(self, name):
        if name == entry_name(3):
            raise StorageError("no access")
        delete(self, name)

    monkeypatch.setattr(LocalObjects, "delete", refuse)
    log.trim(100)
    assert numbers(log) == [3, 4, 5]


def test_on_an_object_store_only_aged_entries_are_removed(log, monkeypatch):
    fill(log, 2, 3, 4, 5)
    monkeypatch.setattr(log, "_folder", None)
    now = datetime.now(UTC)
    ages = {2: TRIM_AGE_S * 2, 3: TRIM_AGE_S, 4: TRIM_AGE_S - 1, 5: 0}
    listed = [(entry_name(version), now - timedelta(seconds=age)) for version, age in ages.items()]
    monkeypatch.setattr(LocalObjects, "list_times", lambda *_: listed)
    log.trim(100)
    assert numbers(log) == [4, 5]


def test_trimming_ignores_other_files(log, tmp_path):
    fill(log, 2, 3)
    (tmp_path / "__log" / "README").write_text("x")
    log.trim(100)
    assert numbers(log) == [3]
    assert (tmp_path / "__log" / "README").exists()
