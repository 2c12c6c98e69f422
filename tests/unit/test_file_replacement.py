"""A file is replaced by a complete one, or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from omnigraph.file_replacement import keep_permissions, output, replace_file, replacement


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"before")
    return path


def test_a_file_is_replaced_and_then_its_folder_is_flushed(target, monkeypatch):
    flushed: list[tuple[Path, bytes]] = []
    real = os.fsync

    def fsync(handle):
        flushed.append((Path(f"/proc/self/fd/{handle}").readlink(), target.read_bytes()))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    replace_file(target, b"after")
    (file, before), (folder, after) = flushed
    assert file.parent == folder == target.parent
    assert (before, after) == (b"before", b"after")
    assert list(target.parent.iterdir()) == [target]


def write(target, then):
    with replacement(target) as file:
        file.write(b"after")
        file.flush()
        then(file)


def fill_disk(_):
    raise OSError(errno.ENOSPC, "full")


def test_a_block_that_fails_changes_nothing(target):
    with pytest.raises(OSError, match="full"):
        write(target, fill_disk)
    assert target.read_bytes() == b"before"
    assert list(target.parent.iterdir()) == [target]


def test_a_file_without_its_end_replaces_nothing(target):
    with pytest.raises(OSError, match="missing"):
        write(target, lambda file: os.truncate(file.fileno(), 3))
    assert target.read_bytes() == b"before"
    assert list(target.parent.iterdir()) == [target]


def test_permissions(target):
    target.chmod(0o640)
    with replacement(target) as file:
        keep_permissions(target, file)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    replace_file(target, b"secret", mode=0o600)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_device_is_written_and_not_replaced():
    with output(Path(os.devnull)) as file:
        file.write(b"nothing")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_a_link_is_followed(target):
    link = target.with_name("link")
    link.symlink_to(target)
    with output(link) as file:
        file.write(b"after")
    assert link.is_symlink()
    assert target.read_bytes() == b"after"
