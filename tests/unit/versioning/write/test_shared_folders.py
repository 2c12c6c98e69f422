"""Graphs in folders that are shared by several users or are on file systems without locks."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import tempfile
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from omnigraph.errors import OmniGraphError
from omnigraph.versioning.upkeep.maintenance import cleanup
from omnigraph.versioning.upkeep.verify import verify
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


_NOBODY = 65_534


@pytest.fixture
def shared_folder():
    """A folder that an unprivileged user can reach; the folders above `tmp_path` are private to their owner."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def unprivileged(root):
    """Act as the owner of a folder and everything below it, without the rights of root."""
    if os.geteuid() != 0:
        yield
        return
    for path in (root, *root.rglob("*")):
        os.chown(path, _NOBODY, _NOBODY)
    os.setegid(_NOBODY)
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def clean(root):
    """Return the errors of a cleanup: that of the whole, or those of tables."""
    try:
        done = cleanup(open_repository(root), keep=0, confirm=True, grace=timedelta(0))
    except OmniGraphError as error:
        return [f"{error.code}: {error.message}; {error.hint}"]
    return [table.error for table in done if table.error]


def test_a_cleanup_names_the_folder_that_it_may_not_use(shared_folder):
    root = shared_folder / "g"
    repository = new_repository(root)
    for id_ in "abc":
        add_people(repository, id_)
    table = max(root.glob("nodes/*"))
    with unprivileged(root):
        for closed in (root, root / "nodes", table / "_versions"):
            before = closed.stat().st_mode
            closed.chmod(0o666)
            errors = clean(root)
            closed.chmod(before)
            assert len(errors) == 1
            assert "no_access" in errors[0]
            assert str(root) in errors[0]
        assert clean(root) == []
    assert verify(open_repository(root)) == []
