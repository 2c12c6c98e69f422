"""The commit log in a bucket: one creator per name, trimming by the times of the store."""

from __future__ import annotations

from threading import Barrier, Thread

import omnigraph as og
from omnigraph.storage.files.location import locate
from omnigraph.storage.manifest import commit_log
from omnigraph.storage.manifest.commit_log import (
    CommitLog,
    encode_entry,
    encode_record,
    entry_name,
    first_version_of,
    new_record,
)
from support.commands import SCHEMA
from support.s3 import S3
from support.store import repository_of


def entry(version: int) -> bytes:
    return encode_entry(version - 1, "base", "1003", [encode_record(new_record(version, [], [], []))])


def test_one_of_several_publishers_creates_an_entry(s3: S3):
    place = locate(s3.new_place(), s3.environ)
    created: list[bool] = []
    start = Barrier(6)

    def create() -> None:
        log = CommitLog(place, sync=True)
        start.wait(60)
        created.append(log.append(entry_name(5), entry(5)))

    threads = [Thread(target=create) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(created) == [False] * 5 + [True]
    log = CommitLog(place, sync=True)
    assert log.names() == [entry_name(5)]
    found = log.read(entry_name(5))
    assert found is not None
    assert found.version == 5
    assert log.read(entry_name(6)) is None


def test_covered_entries_are_removed_once_they_are_old(s3: S3, monkeypatch):
    log = CommitLog(locate(s3.new_place(), s3.environ), sync=True)
    log.trim(100)
    for version in range(2, 8):
        log.append(entry_name(version), entry(version))
    log.trim(100)
    assert len(log.names()) == 6
    monkeypatch.setattr(commit_log, "TRIM_AGE_S", 0.0)
    log.trim(4)
    assert log.names() == [entry_name(5), entry_name(6), entry_name(7)]
    log.trim(100)
    assert log.names() == [entry_name(7)]


def test_checkpoints_trim_a_bucket(s3: S3, monkeypatch):
    monkeypatch.setattr(commit_log, "TRIM_AGE_S", 0.0)
    uri = s3.new_place()
    graph = og.init(uri, SCHEMA, environ=s3.environ)
    reader = og.open(uri, read_only=True, environ=s3.environ)
    for number in range(140):
        graph.branch_create(f"b{number}")
    assert len(repository_of(graph).objects.list("__log")) < 140
    for handle in (graph, reader, og.open(uri, read_only=True, environ=s3.environ)):
        assert len(handle.branches()) == 141
    assert graph.verify() == []


def test_a_reader_requests_several_entries_while_others_publish(s3: S3, monkeypatch):
    uri = s3.new_place()
    writer = og.init(uri, SCHEMA, environ=s3.environ)
    reader = og.open(uri, environ=s3.environ)
    asked: list[str] = []
    log = repository_of(reader).manifest._log
    read = log.read
    monkeypatch.setattr(log, "read", lambda name: (asked.append(name), read(name))[1])

    def look() -> list[int]:
        """Return the versions whose entries a look requests, relative to the known version."""
        known = repository_of(reader).state().version
        asked.clear()
        publish()
        assert repository_of(reader).state().version == repository_of(writer).state().version
        return sorted(version - known for version in map(first_version_of, asked) if version is not None)

    made: list[str] = []
    several = 1

    def publish() -> None:
        for _ in range(several):
            made.append(f"b{len(made)}")
            writer.branch_create(made[-1])

    look()
    several = 0
    assert [len(look()) for _ in range(4)][-1] == 1
    several = 1
    assert look() == [1, 2], "one after the other"
    assert look() == [1, 2, 3, 4], "together"
    several = 6
    assert look() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert set(made) <= set(reader.branches())
    several = 0
    assert [len(look()) for _ in range(4)][-1] == 1, "there are no other publishers"
