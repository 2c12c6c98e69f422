"""Entries of the disk cache: verified, trusted, and verified again after a change."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from omnigraph.engine.cache import disk_cache

SUBJECT = ("kind", "table", "1")
LARGE = np.arange(1000, dtype=np.int64)
SMALL = np.arange(3, dtype=np.int32)


@pytest.fixture(autouse=True)
def large_arrays(tune):
    tune(disk_cache_large_bytes=1000)


def save(folder: Path, **arrays: np.ndarray) -> Path:
    disk_cache.save(folder, SUBJECT, {"note": 1}, arrays)
    (path,) = folder.iterdir()
    return path


def load(folder: Path) -> disk_cache.CacheEntry | None:
    return disk_cache.load(folder, SUBJECT, lambda entry: entry, discard=True)


def test_an_unchanged_entry_is_trusted(tmp_path):
    save(tmp_path / "cache", large=LARGE, small=SMALL)
    entry = load(tmp_path / "cache")
    assert entry is not None
    assert entry.trusted
    assert entry.arrays["large"].tolist() == LARGE.tolist()


def test_an_entry_of_small_arrays_is_verified_every_time(tmp_path):
    path = save(tmp_path / "cache", small=SMALL)
    entry = load(tmp_path / "cache")
    assert entry is not None
    assert not entry.trusted
    times = (path / "small").stat()
    (path / "small").write_bytes(bytes(SMALL.nbytes))
    os.utime(path / "small", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert load(tmp_path / "cache") is None


def test_a_trusted_entry_is_opened_without_reading_its_large_arrays(tmp_path, monkeypatch):
    save(tmp_path / "cache", large=LARGE, small=SMALL)
    verified = []
    monkeypatch.setattr(disk_cache, "_verify", lambda name, *_: verified.append(name))
    load(tmp_path / "cache")
    assert verified == ["small"]


def test_a_copy_is_verified_once(tmp_path, monkeypatch):
    save(tmp_path / "cache", large=LARGE)
    shutil.copytree(tmp_path / "cache", tmp_path / "copy", copy_function=shutil.copyfile)
    for file in (tmp_path / "copy").rglob("large"):
        os.utime(file, ns=(1, 1))
    first = load(tmp_path / "copy")
    assert first is not None
    assert not first.trusted
    again = load(tmp_path / "copy")
    assert again is not None
    assert again.trusted
    assert not disk_cache.find_damaged(tmp_path / "copy")


def test_a_changed_large_array_is_found(tmp_path, caplog):
    path = save(tmp_path / "cache", large=LARGE)
    (path / "large").write_bytes(bytes(LARGE.nbytes))
    os.utime(path / "large", ns=(1, 1))
    assert disk_cache.find_damaged(tmp_path / "cache") == [(path.name, "'large' has a wrong checksum")]
    assert load(tmp_path / "cache") is None
    assert "damaged" in caplog.text


def test_damage_with_an_unchanged_time_is_found_by_verification(tmp_path):
    path = save(tmp_path / "cache", large=LARGE)
    times = (path / "large").stat()
    (path / "large").write_bytes(bytes(LARGE.nbytes))
    os.utime(path / "large", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert disk_cache.find_damaged(tmp_path / "cache") == [(path.name, "'large' has a wrong checksum")]


def test_a_read_only_copy_is_verified_every_time(tmp_path):
    save(tmp_path / "cache", large=LARGE)
    for file in (tmp_path / "cache").rglob("large"):
        os.utime(file, ns=(1, 1))
    for _ in range(2):
        entry = disk_cache.load(tmp_path / "cache", SUBJECT, lambda entry: entry, discard=False)
        assert entry is not None
        assert not entry.trusted


def test_a_write_removes_entries_of_an_earlier_format(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    current = disk_cache.GENERATION
    monkeypatch.setattr(disk_cache, "GENERATION", current - 1)
    disk_cache.save(folder, ("earlier kind", "table", "1"), {}, {"small": SMALL})
    monkeypatch.setattr(disk_cache, "GENERATION", current + 1)
    disk_cache.save(tmp_path / "later", ("later kind", "table", "1"), {}, {"small": SMALL})
    (later,) = (tmp_path / "later").iterdir()
    later.rename(folder / later.name)
    monkeypatch.setattr(disk_cache, "GENERATION", current)
    disk_cache.save(folder, SUBJECT, {}, {"small": SMALL})
    assert len(list(folder.iterdir())) == 2
    assert (folder / later.name).exists()
    assert load(folder) is not None


def test_arrays_are_streamed_and_intermediate_files_removed(tmp_path):
    with disk_cache.writing_entry(tmp_path / "cache", SUBJECT, {}) as writer:
        (writer.scratch() / "file").write_bytes(b"...")
        with writer.streams({"large": LARGE.dtype, "small": SMALL.dtype}) as files:
            for part in np.array_split(LARGE, 3):
                files["large"].write(part.tobytes())
    entry = load(tmp_path / "cache")
    assert entry is not None
    assert {name: array.tolist() for name, array in entry.arrays.items()} == {"large": LARGE.tolist(), "small": []}
    (path,) = (tmp_path / "cache").iterdir()
    assert sorted(file.name for file in path.iterdir()) == ["about.json", "large", "small"]
