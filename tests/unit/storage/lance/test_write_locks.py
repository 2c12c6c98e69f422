"""Locks with which the writers of a machine take turns. Two objects behave like two processes: each opens the files."""

from __future__ import annotations

import os
import sys
import tempfile
import threading

import pytest

from omnigraph.storage.files.location import Location
from omnigraph.storage.lance import write_locks
from omnigraph.storage.lance.write_locks import WriteLocks

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="flock")


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def bucket(name: str = "graph") -> WriteLocks:
    return WriteLocks(Location(f"s3://bucket/{name}", None))


def second_waits(first, second) -> bool:
    """Hold a lock while another one is acquired in a thread; return True if that one waited for the first."""
    order: list[str] = []
    entered = threading.Event()

    def run() -> None:
        entered.set()
        with second as waited:
            order.append("second")
            assert waited == (order[0] == "first")

    thread = threading.Thread(target=run)
    with first as waited:
        assert waited is False
        thread.start()
        assert entered.wait(30)
        thread.join(0.1)
        order.append("first")
    thread.join(30)
    return order == ["first", "second"]


@pytest.mark.parametrize("name", ["publish_lock", "retry_lock"])
def test_processes_take_turns_at_a_folder(tmp_path, name):
    one, other = (WriteLocks(Location(str(tmp_path), tmp_path)) for _ in range(2))
    assert second_waits(getattr(one, name)(), getattr(other, name)())
    assert [path.name for path in tmp_path.iterdir()] == [f"__{name}"]


def test_processes_take_turns_at_an_object_store(temporary):
    one, other = bucket(), bucket()
    assert second_waits(one.publish_lock(), other.publish_lock())
    assert second_waits(one.retry_lock("main"), other.retry_lock("main"))
    assert second_waits(one.table_lock("nodes/a"), other.table_lock("nodes/a"))
    (folder,) = temporary.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(list(folder.iterdir())) == 3


def test_other_graphs_branches_and_tables_do_not_wait(temporary):
    one = bucket()
    assert not second_waits(one.publish_lock(), bucket("other").publish_lock())
    assert not second_waits(one.retry_lock("main"), bucket().retry_lock("side"))
    assert not second_waits(one.table_lock("nodes/a"), bucket().table_lock("nodes/b"))
    assert not second_waits(one.publish_lock(), bucket().table_lock("nodes/a"))


def test_tables_of_a_folder_have_no_lock(tmp_path):
    with WriteLocks(Location(str(tmp_path), tmp_path)).table_lock("nodes/a") as waited:
        assert waited is False
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["shared", "file", "link"])
def test_a_folder_of_another_user_is_not_used(temporary, tmp_path_factory, kind):
    place = temporary / f"omnigraph-locks-{os.getuid()}"
    if kind == "shared":
        place.mkdir(mode=0o777)
        place.chmod(0o777)
    elif kind == "file":
        place.write_text("")
    else:
        place.symlink_to(tmp_path_factory.mktemp("elsewhere"))
    one = bucket()
    assert second_waits(one.publish_lock(), one.publish_lock()), "threads take turns nevertheless"
    assert not second_waits(one.publish_lock(), bucket().publish_lock())
    assert kind == "file" or list(place.iterdir()) == []


def test_a_writer_does_not_wait_for_ever(temporary, monkeypatch):
    monkeypatch.setattr(write_locks, "_PUBLISH_LOCK_S", 0.001)
    with bucket().publish_lock(), bucket().publish_lock() as waited:
        assert waited is True
