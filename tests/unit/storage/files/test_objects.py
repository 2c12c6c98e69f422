"""Small objects on a local disk that fails. The contract of object stores is tested in `tests/contract`."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest

from omnigraph.errors import InputError, StorageError
from omnigraph.storage.files.local_objects import LocalObjects
from omnigraph.storage.files.object_errors import object_store_error
from support.writes import new_graph


def refusing(number):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    return refuse


REFUSALS = [
    (errno.EACCES, "no_access", "permissions"),
    (errno.EROFS, "no_access", "read_only=True"),
    (errno.ENOSPC, "disk_full", "free some space"),
    (errno.EDQUOT, "disk_full", "free some space"),
    (errno.EIO, "io_error", None),
]


@pytest.mark.parametrize(("number", "code", "hint"), REFUSALS, ids=[errno.errorcode[n] for n, _, _ in REFUSALS])
@pytest.mark.parametrize("method", ["write", "write_if_absent"])
def test_a_failed_write_names_the_file_and_has_a_hint(tmp_path, monkeypatch, method, number, code, hint):
    store = LocalObjects(tmp_path)
    monkeypatch.setattr(os, "open", refusing(number))
    with pytest.raises(StorageError) as caught:
        getattr(store, method)("__recovery/one.json", b"{}")
    assert caught.value.code == code
    assert str(tmp_path / "__recovery" / "one.json") in caught.value.message
    assert os.strerror(number) in caught.value.message
    assert hint is None or hint in caught.value.hint


def test_a_disk_that_fills_up_keeps_the_old_object(tmp_path, monkeypatch):
    store = LocalObjects(tmp_path)
    store.write("folder/one", b"old")
    monkeypatch.setattr(os, "fsync", refusing(errno.ENOSPC))
    with pytest.raises(StorageError, match="No space left") as caught:
        store.write("folder/one", b"new")
    assert caught.value.code == "disk_full"
    assert store.read("folder/one") == b"old"
    assert store.list("folder") == ["folder/one"]


@pytest.mark.parametrize("method", ["write", "write_if_absent"])
def test_a_failed_write_leaves_no_temporary_file(tmp_path, monkeypatch, method):
    store = LocalObjects(tmp_path)
    monkeypatch.setattr(os, "fsync", refusing(errno.ENOSPC))
    with pytest.raises(StorageError):
        getattr(store, method)("folder/one", b"new")
    assert list((tmp_path / "folder").iterdir()) == []


def test_an_unreadable_object_is_an_error_and_not_absent(tmp_path):
    store = LocalObjects(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match="directory"):
        store.read("folder")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="Not a directory"):
        store.list("file")


def test_exactly_one_writer_wins_without_hard_links(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", refusing(errno.EPERM))
    store = LocalObjects(tmp_path)
    assert store.write_if_absent("claim", b"first")
    assert not store.write_if_absent("claim", b"second")
    assert store.read("claim") == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["claim"]


def test_a_write_that_fails_without_hard_links_leaves_no_file(tmp_path, monkeypatch):
    calls = []

    def fsync(_):
        calls.append(1)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "link", refusing(errno.EPERM))
    monkeypatch.setattr(os, "fsync", fsync)
    store = LocalObjects(tmp_path)
    with pytest.raises(StorageError, match="full"):
        store.write_if_absent("claim", b"first")
    assert list(tmp_path.iterdir()) == []
    assert store.write_if_absent("claim", b"second")


def test_unfinished_files_are_not_listed(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / ".writing-abc").write_bytes(b"half")
    (tmp_path / "folder" / "deeper").mkdir()
    assert LocalObjects(tmp_path).list("folder") == []


def test_old_unfinished_files_are_removed(tmp_path):
    names = ["nodes/t/data/x.lance#1", "nodes/t/_indices/i/page.lance#12", "__manifest/data/y.lance#1", "a/.writing-x"]
    kept = ["nodes/t/data/x.lance", "__cache/a/b/c#1"]
    for name in (*names, *kept):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")
    objects = LocalObjects(tmp_path)
    objects.remove_unfinished(objects.now() - timedelta(hours=1))
    assert len(objects.sizes()) == len(names) + len(kept)
    objects.remove_unfinished(objects.now() + timedelta(hours=1))
    assert set(objects.sizes()) == set(kept)


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ("The operation lacked valid credentials", StorageError, "no_access"),
        ("<Code>AccessDenied</Code>", StorageError, "no_access"),
        ("error sending request for url (http://169.254.169.254/latest)", StorageError, "no_access"),
        ("<Code>NoSuchBucket</Code>", InputError, "no_such_bucket"),
        ("<Code>ExpiredToken</Code><Message>It has expired.</Message>", StorageError, "credentials_expired"),
        ("<Code>RequestTimeTooSkewed</Code>", StorageError, "clock_skew"),
        ("connection refused", StorageError, "unreachable"),
        ("", StorageError, "unreachable"),
    ],
)
def test_failed_requests_are_classified(text, kind, code):
    error = object_store_error(RuntimeError(text), "s3://bucket/graph")
    assert type(error) is kind
    assert error.code == code
    assert "s3://bucket/graph" in error.message


@pytest.mark.parametrize(("mask", "mode"), [(0o002, 0o664), (0o027, 0o640), (0o077, 0o600)])
@pytest.mark.parametrize("method", ["write", "write_if_absent"])
def test_new_files_follow_the_umask(tmp_path, method, mask, mode):
    before = os.umask(mask)
    try:
        getattr(LocalObjects(tmp_path), method)("__recovery/one.json", b"{}")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "__recovery" / "one.json").stat().st_mode) == mode


def test_an_exclusive_create_follows_the_umask(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", refusing(errno.EPERM))
    before = os.umask(0o002)
    try:
        assert LocalObjects(tmp_path).write_if_absent("one.json", b"{}")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "one.json").stat().st_mode) == 0o664


def test_a_failed_request_shows_no_secret_of_its_url():
    text = "error performing GET http://user:hush-1@host:1/b?X-Amz-Signature=hush-2: <Code>SlowDown</Code>"
    for shown in (text, text.partition(": <")[0]):
        error = object_store_error(RuntimeError(shown), "s3://bucket/graph")
        assert "hush" not in error.message


READ_WITHOUT_PERMISSION = """
import os, pathlib, sys
import omnigraph as og
from omnigraph.errors import StorageError
og.open(sys.argv[1], read_only=True).to_arrow("Shelf")
for file in pathlib.Path(sys.argv[1]).rglob("*.lance"):
    if file.is_file():
        file.chmod(0)
if os.getuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
try:
    og.open(sys.argv[1], read_only=True).to_arrow("Shelf")
except StorageError as error:
    print(error.code, "|", error.message, "|", error.hint)
"""


def test_a_missing_read_permission_is_reported():
    # Not below `tmp_path`: another test session removes the permissions of the common parent folder.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        graph = new_graph(Path(folder), "node Shelf { code: String @key }")
        graph.load([{"type": "Shelf", "data": {"code": "a"}}], mode="append")
        done = subprocess.run(
            [sys.executable, "-c", READ_WITHOUT_PERMISSION, graph.uri],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.stdout.count("|") == 2, done.stderr
    code, message, hint = (part.strip() for part in done.stdout.split("|"))
    assert code == "no_access", done.stderr
    assert "no permission to read" in message
    assert "read permission" in hint
    assert "write" not in message + hint


def test_missing_credentials_are_reported_without_the_text_of_the_client():
    text = (
        "LanceError(IO): Generic N/A error: LanceError(IO): Failed to get AWS credentials: CredentialsNotLoaded("
        'CredentialsNotLoaded { source: Some("no providers in chain provided credentials") }), '
        "/src/lance-io/src/object_store/providers/aws.rs:630:30"
    )
    error = object_store_error(RuntimeError(text), "s3://bucket/graph")
    assert str(error) == "no access to 's3://bucket/graph': no credentials were found"
    other = object_store_error(RuntimeError("connection refused, /src/lance-io/src/client.rs:3:1"), "s3://bucket/graph")
    assert str(other) == "'s3://bucket/graph' cannot be reached: connection refused"
