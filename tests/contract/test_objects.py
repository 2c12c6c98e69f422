"""One suite for every object store: the guarantees the engine needs, on disk and in a bucket."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from omnigraph.storage.files import layout
from omnigraph.storage.files.local_objects import LocalObjects
from omnigraph.storage.files.location import Location, locate
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.storage.files.objects import object_store
from omnigraph.storage.files.s3_objects import S3Objects

NewStore = Callable[[], ObjectStore]
LATER = timedelta(minutes=1)


@pytest.fixture(params=["disk", "bucket"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    if request.param == "disk":
        return locate(tmp_path / "graph", {})
    s3 = request.getfixturevalue("s3")
    return locate(s3.new_place(), s3.environ)


@pytest.fixture
def store(location: Location) -> ObjectStore:
    return object_store(location)


def in_a_minute() -> datetime:
    return datetime.now(UTC) + LATER


def test_location_selects_the_store(location, store):
    assert type(store) is (LocalObjects if location.is_local else S3Objects)


def test_read_of_a_missing_object_returns_none(store):
    assert store.read("a.json") is None
    assert store.read("folder/a.json") is None


@pytest.mark.parametrize("data", [b"", b"one", bytes(range(256)) * 5000], ids=["empty", "small", "1.3 MB"])
@pytest.mark.parametrize("name", ["a.json", "folder/a.json", "folder/deep/a b+ü.json"])
def test_read_returns_written_data(store, name, data):
    store.write(name, data)
    assert store.read(name) == data


def test_write_replaces(store):
    store.write("a.json", b"first, and longer")
    store.write("a.json", b"second")
    assert store.read("a.json") == b"second"


def test_conditional_write_succeeds_once(store):
    assert store.write_if_absent("claim", b"first") is True
    assert store.write_if_absent("claim", b"second") is False
    assert store.read("claim") == b"first"


def test_conditional_write_fails_after_a_plain_write(store):
    store.write("claim", b"plain")
    assert store.write_if_absent("claim", b"second") is False
    assert store.read("claim") == b"plain"


def test_conditional_write_succeeds_after_a_delete(store):
    store.write_if_absent("claim", b"first")
    store.delete("claim")
    assert store.read("claim") is None
    assert store.write_if_absent("claim", b"second") is True


def test_exactly_one_concurrent_conditional_write_succeeds(location):
    def claim(number: int) -> bool:
        return object_store(location).write_if_absent("claim", str(number).encode())

    for _ in range(3):
        with ThreadPoolExecutor(6) as pool:
            outcomes = list(pool.map(claim, range(6)))
        assert outcomes.count(True) == 1
        assert object_store(location).read("claim") == str(outcomes.index(True)).encode()
        object_store(location).delete("claim")


def test_delete_of_a_missing_object_succeeds(store):
    store.delete("nothing.json")
    store.delete("folder/nothing.json")


def test_list_returns_the_objects_directly_in_a_folder(store):
    assert store.list("folder") == []
    for name in ("folder/b.json", "folder/a.json", "folder/deeper/c.json", "folder-2/d.json", "e.json"):
        store.write(name, b"x")
    assert store.list("folder") == ["folder/a.json", "folder/b.json"]
    store.delete("folder/a.json")
    assert store.list("folder") == ["folder/b.json"]
    store.delete("folder/b.json")
    store.delete("folder/deeper/c.json")
    assert store.list("folder") == [], "a folder that was in use is no object"


def test_list_is_complete_beyond_one_page(store):
    names = [f"folder/{number:04}.json" for number in range(1_030)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: store.write(name, b""), names))
    assert store.list("folder") == names


def test_is_empty_considers_everything_below_the_root(store):
    assert store.is_empty()
    store.write("folder/deep/a.json", b"x")
    assert not store.is_empty()
    store.write("folder/b.json", b"x")
    store.delete_folder("folder")
    assert store.is_empty()


def test_folders_report_the_time_of_the_newest_object(store):
    assert store.folders("nodes") == {}
    for name in ("nodes/a/data/1", "nodes/a/2", "nodes/b/3", "nodes/file", "edges/c/4"):
        store.write(name, b"x")
    found = store.folders("nodes")
    assert sorted(found) == ["nodes/a", "nodes/b"]
    now = datetime.now(UTC)
    assert all(now - LATER < written_at < now + LATER for written_at in found.values())


def test_delete_folder_removes_everything_below(store):
    for name in ("nodes/a/data/1", "nodes/a/2", "nodes/ab/3"):
        store.write(name, b"x")
    store.delete_folder("nodes/a")
    store.delete_folder("nodes/never")
    assert sorted(store.folders("nodes")) == ["nodes/ab"]
    assert store.read("nodes/a/2") is None
    assert store.read("nodes/ab/3") == b"x"


def test_probe_of_conditional_writes_passes_and_is_removed(store):
    store.prove_conditional_writes("token")
    assert store.is_empty()


def test_old_probes_are_removed_and_recent_ones_kept(store):
    probe = f"{layout.PROBE}left"
    for name in (probe, "kept.json", f"folder/{layout.PROBE}kept"):
        store.write(name, b"1")
    store.remove_unfinished(datetime.now(UTC) - LATER)
    assert store.read(probe) == b"1"
    store.remove_unfinished(in_a_minute())
    assert store.read(probe) is None
    assert store.read("kept.json") == b"1"
    assert store.read(f"folder/{layout.PROBE}kept") == b"1"
