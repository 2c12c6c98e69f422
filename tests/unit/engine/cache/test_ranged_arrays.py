"""Arrays of the disk cache that are read by range, with a folder in place of a bucket."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import numpy as np
import pytest

from omnigraph.engine.cache import disk_cache, entry_checks, ranged_arrays
from omnigraph.engine.cache.ranged_arrays import RangedArray, StructureLost
from omnigraph.engine.cache.remote_cache import RemoteCache
from omnigraph.storage.files.location import locate
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.storage.files.objects import object_store

SUBJECT = ("numbers", "folder")
BLOCK = 64
COUNT = 1_003
PER_BLOCK = BLOCK // 8


class CountedStore:
    """The requests of a store."""

    def __init__(self, objects: ObjectStore) -> None:
        self.objects = objects
        self.ranges: list[tuple[str, int, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.objects, name)

    def read_range(self, name: str, start: int, end: int) -> bytes:
        self.ranges.append((name.rpartition("/")[2], start, end))
        return self.objects.read_range(name, start, end)

    def bytes_of(self, name: str) -> int:
        return sum(end - start for one, start, end in self.ranges if one == name)


class Bucket:
    """A bucket with one entry, and machines that read it."""

    def __init__(self, folder: Path, **arrays: Any) -> None:
        self.folder = folder
        self.uri = str(folder / "graph")
        (folder / "graph").mkdir()
        self.objects = object_store(locate(self.uri, {}))
        local = folder / "writer"
        local.mkdir()
        disk_cache.save(local, SUBJECT, {"rows": 1}, arrays)
        RemoteCache(self.objects, local, read_only=False).upload(lambda _: True)

    def read(self, machine: str, *ranged: str) -> tuple[disk_cache.CacheEntry, CountedStore]:
        folder = self.folder / machine
        folder.mkdir(exist_ok=True)
        store = CountedStore(self.objects)
        remote = RemoteCache(store, folder, read_only=False)  # type: ignore[arg-type]
        remote.fetch([SUBJECT], lambda _: True, ranged or ("a", "b"))
        entry = disk_cache.load(folder, SUBJECT, lambda entry: entry, discard=True, source=remote)
        assert entry is not None
        return entry, store

    def path(self, machine: str) -> Path:
        (path,) = [path for path in (self.folder / machine).iterdir() if not path.name.startswith(".")]
        return path

    def remote_path(self, name: str) -> Path:
        (path,) = (self.folder / "graph").glob(f"__cache/*/*/{name}")
        return path


@pytest.fixture(autouse=True)
def low_thresholds(tune) -> None:
    tune(remote_block_bytes=BLOCK, remote_ranged_bytes_min=1, disk_cache_large_bytes=512, remote_cache_list_s=0.0)


@pytest.fixture
def values() -> np.ndarray[Any, Any]:
    random = np.random.default_rng(7)
    return np.sort(random.integers(0, 1 << 62, COUNT).astype(np.uint64) * 4)


@pytest.fixture
def bucket(tmp_path, values) -> Bucket:
    return Bucket(tmp_path, a=values, b=np.arange(COUNT, dtype=np.int64), small=np.arange(5, dtype=np.int64))


def test_positions_and_ranges_read_their_blocks(bucket, values):
    entry, store = bucket.read("second")
    assert set(entry.arrays) == {"small"}
    array = entry.ranged["a"]
    assert (len(array), array.dtype, array.shape) == (COUNT, np.uint64, (COUNT,))
    assert array[500] == values[500]
    assert store.bytes_of("a") == BLOCK
    assert array[-1] == values[-1]
    assert array[np.array([499, 500, 3], np.int32)].tolist() == values[[499, 500, 3]].tolist()
    before = store.bytes_of("a")
    assert before == 2 * BLOCK + COUNT * 8 % BLOCK, "the last block is short"
    assert array[496:504].tolist() == values[496:504].tolist()
    assert store.bytes_of("a") == before, "no block is fetched twice"
    assert store.bytes_of("b") == 0
    with pytest.raises(IndexError):
        array[np.array([COUNT])]
    with pytest.raises(IndexError):
        array[COUNT]


@pytest.mark.parametrize("width", [1, 24, 64, 100])
def test_rows_of_a_matrix_read_their_blocks(tmp_path, width):
    random = np.random.default_rng(width)
    matrix = random.integers(-128, 128, (COUNT, width)).astype(np.int8)
    bucket = Bucket(tmp_path, a=matrix)
    entry, store = bucket.read("second")
    array = entry.ranged["a"]
    assert (array.ndim, array.shape, len(array), array.nbytes) == (2, matrix.shape, COUNT, matrix.nbytes)
    assert np.array_equal(array[500], matrix[500])
    first, last = 500 * width // BLOCK, (501 * width - 1) // BLOCK
    assert store.bytes_of("a") == (last - first + 1) * BLOCK
    rows = np.sort(random.choice(COUNT, 4, replace=False)).astype(np.int32)
    for some in (rows, rows[::-1], rows[:1], rows[:0]):
        assert np.array_equal(array[some], matrix[some])
    assert np.array_equal(array[900:903], matrix[900:903])
    blocks = {block for row in rows for block in range(row * width // BLOCK, ((row + 1) * width - 1) // BLOCK + 1)}
    assert array.blocks_of(rows).tolist() == sorted(blocks)
    assert not array.is_complete
    assert np.array_equal(np.asarray(array), matrix)
    assert array.is_complete


def test_several_arrays_are_requested_at_the_same_time(bucket, values, monkeypatch):
    entry, _ = bucket.read("second")
    rounds: list[int] = []
    monkeypatch.setattr(
        ranged_arrays, "each_request", lambda fetch, parts: rounds.append(len(parts)) or list(map(fetch, parts))
    )
    rows = np.array([3, 700])
    small = np.arange(1_000)
    found = ranged_arrays.fetch_rows((entry.ranged["a"], small, entry.ranged["b"]), rows)
    assert rounds == [4]
    assert [array[rows].tolist() for array in found] == [values[rows].tolist(), [3, 700], [3, 700]]
    assert found[1] is small
    ranged_arrays.fetch_rows((entry.ranged["a"], entry.ranged["b"]), None)
    assert len(rounds) == 2
    assert entry.ranged["a"].is_complete


def test_adjacent_blocks_are_one_request(bucket):
    entry, store = bucket.read("second")
    array = entry.ranged["a"]
    array.entry.ensure([(array, array.blocks_of_ranges([0, 80, 300], [30, 120, 300]))])
    assert sorted(part for part in store.ranges if part[0] == "a") == [("a", 0, 256), ("a", 640, 960)]


def test_an_array_of_which_half_is_there_is_completed(bucket, values):
    entry, store = bucket.read("second")
    array = entry.ranged["a"]
    array.read(0, 60 * PER_BLOCK)
    assert not array.is_complete
    array.read(60 * PER_BLOCK, 65 * PER_BLOCK)
    assert array.is_complete
    assert store.bytes_of("a") == values.nbytes
    assert np.array_equal(np.asarray(array), values)


def test_a_complete_entry_is_an_ordinary_one(bucket, values):
    entry, _ = bucket.read("second")
    assert np.array_equal(entry.ranged["a"].whole(), values)
    assert disk_cache.is_incomplete(json.loads((bucket.path("second") / "about.json").read_text())["entry"])
    entry.ranged["b"].whole()
    again, store = bucket.read("second")
    assert not again.ranged
    assert again.arrays["a"].tolist() == values.tolist()
    assert store.ranges == []
    third, _ = bucket.read("second")
    assert third.trusted, "it was verified once"
    assert [entry["what"] for _, entry in disk_cache.descriptions(bucket.folder / "second")] == [list(SUBJECT)]


def test_an_incomplete_entry_is_not_uploaded(bucket):
    bucket.read("second")
    assert not list(disk_cache.descriptions(bucket.folder / "second"))
    assert disk_cache.find_damaged(bucket.folder / "second") == []


@pytest.mark.parametrize("kind", ["even", "skewed", "equal", "large"])
def test_a_search_finds_the_position_of_numpy(tmp_path, kind):
    random = np.random.default_rng(3)
    numbers = random.integers(0, 1 << 64, 3_000, dtype=np.uint64)
    shift = {"even": 0, "skewed": 50, "equal": 60, "large": 0}[kind]
    values = np.sort(numbers >> np.uint64(shift))
    if kind == "large":
        values = np.sort(~(numbers >> np.uint64(40)))
    bucket = Bucket(tmp_path, a=values)
    wanted = [*values[::97].tolist(), *(values[5::211] + np.uint64(1)).tolist(), 0, 1, (1 << 64) - 1]
    for number, value in enumerate(wanted):
        if number % 20 == 0:
            entry, _ = bucket.read(f"machine{number}")
        assert entry.ranged["a"].searchsorted(np.uint64(value)) == values.searchsorted(np.uint64(value))


def test_a_search_of_evenly_spread_values_reads_few_blocks(bucket, values):
    entry, store = bucket.read("second")
    assert entry.ranged["a"].searchsorted(values[700]) == 700
    assert len([part for part in store.ranges if part[0] == "a"]) <= 6


def test_random_reads_give_the_values(bucket, values):
    random = Random(5)
    for machine in range(4):
        for _ in range(3):
            entry, _ = bucket.read(f"m{machine}")
            for _ in range(12):
                start, stop = sorted((random.randrange(COUNT + 1), random.randrange(COUNT + 1)))
                stop = min(stop, start + 60)
                array = entry.ranged.get("a")
                if array is None:
                    continue
                assert array[start:stop].tolist() == values[start:stop].tolist()
                some = np.array([random.randrange(COUNT) for _ in range(random.randrange(4))], np.int64)
                assert array[some].tolist() == values[some].tolist()
    assert not disk_cache.find_damaged(bucket.folder / "m0")


@pytest.mark.parametrize("harm", ["flip", "truncate", "truncate marks", "all marks", "no marks", "sums", "no sums"])
def test_damaged_files_are_read_again(bucket, values, caplog, harm):
    entry, _ = bucket.read("second")
    assert entry.ranged["a"][100] == values[100]
    path = bucket.path("second")
    array, marks, sums = path / "a", ranged_arrays.marks_path(path, "a"), ranged_arrays.sums_path(path, "a")
    match harm:
        case "flip":
            data = bytearray(array.read_bytes())
            data[800] ^= 1
            array.write_bytes(data)
        case "truncate":
            os.truncate(array, 801)
        case "truncate marks":
            os.truncate(marks, 3)
        case "all marks":
            marks.write_bytes(b"\x01" * marks.stat().st_size)
        case "no marks":
            marks.unlink()
        case "sums":
            sums.write_bytes(bytes(sums.stat().st_size))
        case _:
            sums.unlink()
    with caplog.at_level(logging.WARNING, "omnigraph"):
        again, store = bucket.read("second") if "sums" not in harm else (None, None)
        if again is None:
            # The entry is discarded, and the next process fetches it anew.
            folder = bucket.folder / "second"
            assert disk_cache.load(folder, SUBJECT, lambda entry: entry, discard=True) is None
            again, store = bucket.read("second")
        assert again.ranged["a"][100] == values[100]
        assert again.ranged["a"][900] == values[900]
    # With marks of more than half, the array is completed.
    assert store.bytes_of("a") == (values.nbytes - BLOCK if harm == "all marks" else 2 * BLOCK)
    assert ("damaged" in caplog.text) == (harm in ("flip", "truncate", "all marks", "sums", "no sums"))
    assert np.array_equal(again.ranged["a"].whole(), values)


@pytest.mark.parametrize("harm", ["flip", "shorten", "empty", "remove", "remove folder"])
def test_a_damaged_bucket_is_reported(bucket, values, caplog, harm):
    entry, _ = bucket.read("second")
    array = entry.ranged["a"]
    assert array[100] == values[100]
    remote = bucket.remote_path("a")
    data = bytearray(remote.read_bytes())
    match harm:
        case "flip":
            data[-1] ^= 1
            remote.write_bytes(data)
        case "shorten":
            remote.write_bytes(data[:-1])
        case "empty":
            remote.write_bytes(b"")
        case "remove":
            remote.unlink()
        case _:
            bucket.objects.delete_folder(f"__cache/{disk_cache.GENERATION}/{remote.parent.name}")
    with caplog.at_level(logging.WARNING, "omnigraph"), pytest.raises(StructureLost):
        array[COUNT - 1]
    assert array[100] == values[100], "what is there stays usable"
    assert not list((bucket.folder / "second").glob("[!.]*")), "the local entry is removed"
    described = list((bucket.folder / "graph" / "__cache" / str(disk_cache.GENERATION)).glob("*.json"))
    gone = harm.startswith("remove")
    assert bool(described) == gone, "the description of a damaged upload is removed"
    assert ("is damaged and is built again" in caplog.text) == (not gone)


def test_values_are_checked_block_by_block(tmp_path):
    numbers = np.arange(COUNT, dtype=np.int64)
    numbers[900] = 1 << 40
    bucket = Bucket(tmp_path, a=numbers, b=np.sort(np.abs(numbers))[::-1].copy())
    entry, _ = bucket.read("second")
    entry_checks.check_within(entry.ranged["a"], COUNT, "a")
    entry_checks.check_offsets(entry.ranged["b"], COUNT - 1, int(numbers.max()), "b")
    assert entry.ranged["a"][100] == 100
    with pytest.raises(StructureLost, match="'a' has a number out of range"):
        entry.ranged["a"][901]
    with pytest.raises(StructureLost, match="'b'"):
        entry.ranged["b"][500]


@pytest.mark.parametrize(
    "blocks",
    [
        {"bytes": 7},
        {"bytes": 0},
        {"bytes": 1 << 40},
        {"arrays": ["a", "missing"]},
        {"sha256": "0" * 64},
        {"bytes": 128},
    ],
)
def test_a_forged_description_of_blocks_is_refused(bucket, caplog, blocks):
    (path,) = (bucket.folder / "graph" / "__cache" / str(disk_cache.GENERATION)).glob("*.json")
    entry = json.loads(path.read_text())["entry"]
    path.write_text(disk_cache.portable({**entry, "blocks": {**entry["blocks"], **blocks}}))
    folder = bucket.folder / "second"
    folder.mkdir()
    remote = RemoteCache(bucket.objects, folder, read_only=False)
    with caplog.at_level(logging.WARNING, "omnigraph"):
        assert not remote.fetch([SUBJECT], lambda _: True, ("a", "b"))
    assert "is damaged and is built again" in caplog.text
    assert not list(folder.iterdir())


def test_an_upload_without_checksums_of_blocks_is_downloaded(bucket, values):
    (path,) = (bucket.folder / "graph" / "__cache" / str(disk_cache.GENERATION)).glob("*.json")
    entry = json.loads(path.read_text())["entry"]
    path.write_text(disk_cache.portable({key: value for key, value in entry.items() if key != "blocks"}))
    entry, _ = bucket.read("second")
    assert not entry.ranged
    assert np.array_equal(entry.arrays["a"], values)


def test_small_entries_and_other_arrays_are_downloaded(bucket, values, tune):
    entry, _ = bucket.read("second", "b")
    assert set(entry.ranged) == {"b"}
    assert np.array_equal(entry.arrays["a"], values)
    tune(remote_ranged_bytes_min=1 << 20)
    entry, _ = bucket.read("third")
    assert not entry.ranged


@pytest.mark.parametrize("at_place", [True, False], ids=["pwrite", "seek"])
def test_threads_share_the_blocks(bucket, values, monkeypatch, at_place):
    if not at_place:  # as on Windows
        monkeypatch.delattr(os, "pwrite", raising=False)
    entry, store = bucket.read("second")
    array = entry.ranged["a"]
    wrong: list[int] = []

    def run(seed: int) -> None:
        random = Random(seed)
        for _ in range(30):
            at = random.randrange(0, 400)
            if array[at : at + 9].tolist() != values[at : at + 9].tolist():
                wrong.append(at)

    threads = [Thread(target=run, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert store.bytes_of("a") <= 51 * BLOCK


PROCESS = """
import os, sys
from pathlib import Path
from random import Random
import numpy as np
from omnigraph.engine import tuning
from omnigraph.engine.cache import disk_cache, ranged_arrays
from omnigraph.engine.cache.remote_cache import RemoteCache
from omnigraph.storage.files.location import locate
from omnigraph.storage.files.objects import object_store

uri, folder, seed, kill = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
count = 1_003
with tuning.replaced(remote_block_bytes=64, remote_ranged_bytes_min=1, disk_cache_large_bytes=512):
    remote = RemoteCache(object_store(locate(uri, {})), folder, read_only=False)
    subject = ("numbers", "folder")
    remote.fetch([subject], lambda _: True, ("a", "b"))
    entry = disk_cache.load(folder, subject, lambda entry: entry, discard=True, source=remote)
    write, done = ranged_arrays._write_at, 0

    def write_at(file, data, place):
        global done
        done += 1
        if kill and done == kill:
            # Half of the bytes are written, and no mark.
            os.pwrite(file, data[: len(data) // 2], place)
            os._exit(9)
        write(file, data, place)

    ranged_arrays._write_at = write_at
    random, array, total = Random(seed), entry.get("b"), 0
    for _ in range(60):
        at = random.randrange(0, count - 20)
        part = array[at : at + 20].tolist()
        assert part == list(range(at, at + 20)), (at, part)
    print("read")
"""


def processes(bucket: Bucket, kill: int, count: int) -> Iterator[tuple[int, str]]:
    (bucket.folder / "second").mkdir(exist_ok=True)
    command = [sys.executable, "-c", PROCESS, bucket.uri, str(bucket.folder / "second")]
    started = [
        subprocess.Popen([*command, str(seed), str(kill)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for seed in range(count)
    ]
    for process in started:
        out, error = process.communicate(timeout=120)
        yield process.returncode, out + error


def test_a_killed_process_leaves_a_valid_cache(bucket):
    for kill in (1, 7):
        assert [code for code, _ in processes(bucket, kill, 1)] == [9]
        marked = np.fromfile(ranged_arrays.marks_path(bucket.path("second"), "b"), np.uint8)
        assert int(marked.sum()) >= kill - 1
        assert disk_cache.find_damaged(bucket.folder / "second") == []
    entry, _ = bucket.read("second")
    assert entry.ranged["b"].whole().tolist() == list(range(COUNT))


def test_processes_share_a_cache_folder(bucket):
    assert [*processes(bucket, 0, 3)] == [(0, "read\n")] * 3
    assert disk_cache.find_damaged(bucket.folder / "second") == []
    entry, store = bucket.read("second")
    array = entry.get("b")
    assert np.asarray(array).tolist() == list(range(COUNT))
    assert store.bytes_of("b") < COUNT * 8, "blocks of other processes are used"


def test_a_full_disk_is_reported(bucket, monkeypatch):
    from omnigraph.errors import StorageError  # noqa: PLC0415

    entry, _ = bucket.read("second")
    array = entry.ranged["a"]
    assert isinstance(array, RangedArray)

    def fail(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", fail)
    with pytest.raises(StorageError, match="the cache folder cannot be written: No space left on device"):
        array[3]
    monkeypatch.undo()
    assert array[3] is not None
