"""Arrays that several processes write: values and checksums are those of an array that one process writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from omnigraph.engine.cache import disk_cache, entry_checks
from omnigraph.engine.cache.disk_cache import CacheEntry
from omnigraph.engine.cache.entry_checks import checksum
from omnigraph.engine.cache.shared_arrays import SharedArray

KINDS = [np.dtype(np.int32), np.dtype(np.int64)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [0, 1, 7, 8, 31, 32, 33, 200])
def test_ranges_in_any_order(tmp_path, monkeypatch, kind, length):
    monkeypatch.setattr(entry_checks, "BLOCK_BYTES", 64)
    random = np.random.default_rng(length)
    values = random.integers(0, 2**31, length).astype(kind)
    array = SharedArray.allocate(tmp_path / "values", kind, length)
    ranges = list(array.ranges(20))
    assert [at for some in ranges for at in some] == list(range(length))
    done = {}
    for number in random.permutation(len(ranges)).tolist():
        some = ranges[number]
        parts = [values[at : min(at + array.block, some.stop)] for at in range(some.start, some.stop, array.block)]
        done[number] = array.write(parts, some.start)
    assert (tmp_path / "values").read_bytes() == values.tobytes()
    assert array.checksum(done[number] for number in range(len(ranges))) == checksum(values)


def test_checksums_of_stored_entries_stay():
    assert checksum(np.arange(300_001, dtype=np.int32)) == 1694255279


def test_entry_with_a_shared_array(tmp_path):
    values = np.arange(5, dtype=np.int64)
    with disk_cache.writing_entry(tmp_path, ("kind", "table"), {}) as writer:
        array = writer.share("values", values.dtype, len(values))
        writer.finish(array, [array.write([values], 0)])
    found = disk_cache.load(tmp_path, ("kind", "table"), _values, discard=False)
    assert found == values.tolist()
    assert disk_cache.find_damaged(tmp_path) == []


def test_unwritten_range_is_damage(tmp_path):
    with disk_cache.writing_entry(tmp_path, ("kind", "table"), {}) as writer:
        array = writer.share("values", np.dtype(np.int64), 5)
        sums = array.write([np.arange(5)], 0)
        array.path.write_bytes(bytes(40))
        writer.finish(array, [sums])
    assert [reason for _, reason in disk_cache.find_damaged(tmp_path)] == ["'values' has a wrong checksum"]


def test_array_beyond_the_disk_is_refused(tmp_path: Path):
    with pytest.raises(OSError, match=r"No space left on device|File too large"):
        SharedArray.allocate(tmp_path / "values", np.dtype(np.int64), 2**56)


def _values(entry: CacheEntry) -> list[int]:
    found: list[int] = entry.arrays["values"].tolist()
    return found
