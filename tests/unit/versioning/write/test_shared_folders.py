"""Graphs in folders that are shared by several users or are on file systems without locks."""

from __future__ import annotations

import errno
import fcntl
import os
import stat

import pytest

from support.graphs import add_people, ids_of, new_repository, open_repository

NO_LOCKS = [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EIO, errno.EBADF]


@pytest.mark.parametrize("number", NO_LOCKS, ids=[errno.errorcode[number] for number in NO_LOCKS])
def test_writes_work_without_file_locks(tmp_path, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    repository = new_repository(tmp_path / "g")
    add_people(repository, "a")
    with repository.manifest.locks.retry_lock():
        add_people(open_repository(tmp_path / "g"), "b")
    assert ids_of(repository.snapshot()) == ["a", "b"]


def test_the_files_of_a_graph_follow_the_umask(tmp_path):
    before = os.umask(0o002)
    try:
        repository = new_repository(tmp_path / "g")
        add_people(repository, "a")
    finally:
        os.umask(before)
    modes = {
        str(path.relative_to(tmp_path)): oct(stat.S_IMODE(path.stat().st_mode))
        for path in (tmp_path / "g").rglob("*")
        if path.is_file()
    }
    assert "g/_schema.pg" in modes
    assert {name: mode for name, mode in modes.items() if mode != "0o664"} == {}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write every file")
def test_a_lock_file_of_another_user_does_not_prevent_writes(tmp_path):
    repository = new_repository(tmp_path / "g")
    add_people(repository, "a")
    (tmp_path / "g" / "__publish_lock").chmod(0o444)
    add_people(repository, "b")
    assert ids_of(repository.snapshot()) == ["a", "b"]
