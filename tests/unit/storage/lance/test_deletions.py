"""Deletion files as Lance writes them: arrays and every kind of roaring container."""

from __future__ import annotations

import random
import struct

import lance
import numpy as np
import pyarrow as pa
import pytest

from omnigraph.errors import Damaged
from omnigraph.storage.lance.deletions import DeletionCache, parse_deletions, parse_roaring

ROWS = 300_000
PATTERNS = {
    "few": [0, 7, ROWS - 1],
    "an array container": [*range(0, 60_000, 9)],
    "a bitmap container": [i for i in range(65_536) if i % 3],
    "a run": [*range(1_000, 250_000)],
    "mixed containers": [*range(5, 5_000), *range(70_000, 131_000, 2), *range(140_000, 290_000), ROWS - 2],
    "most": [i for i in range(ROWS) if i % 1000],
}


@pytest.mark.parametrize("name", PATTERNS)
def test_parsed_offsets_equal_the_deleted_rows(tmp_path, name):
    data = lance.write_dataset(pa.table({"v": np.arange(ROWS)}), tmp_path / "t", enable_stable_row_ids=True)
    gone = PATTERNS[name]
    (fragment,) = data.get_fragments()
    operation = lance.LanceOperation.Delete([fragment.delete_rows(gone)], [], "true")
    data = lance.LanceDataset.commit(data, operation, read_version=data.version)
    metadata = data.get_fragments()[0].metadata
    file = metadata.deletion_file
    read = parse_deletions((tmp_path / "t" / file.path(metadata.id)).read_bytes(), file)
    assert read.tolist() == gone
    assert set(range(ROWS)) - set(read.tolist()) == set(data.to_table()["v"].to_pylist())


def roaring_runs(runs):
    """Return a bitmap with one run container of (start, additional numbers) pairs."""
    head = struct.pack("<IB2H", 12347, 1, 0, sum(more + 1 for _, more in runs) - 1)
    return head + struct.pack("<H", len(runs)) + b"".join(struct.pack("<2H", *run) for run in runs)


def test_run_containers_are_parsed():
    assert parse_roaring(roaring_runs([(3, 0), (10, 4)])).tolist() == [3, 10, 11, 12, 13, 14]


def test_an_empty_bitmap():
    assert parse_roaring(struct.pack("<II", 12346, 0)).tolist() == []


def test_other_content_is_refused():
    with pytest.raises(Damaged, match="no roaring bitmap"):
        parse_roaring(random.Random(3).randbytes(40))


def test_a_file_with_too_few_offsets_is_refused(tmp_path):
    data = lance.write_dataset(pa.table({"v": np.arange(ROWS)}), tmp_path / "t")
    (fragment,) = data.get_fragments()
    file = fragment.delete_rows(list(range(6_000))).deletion_file
    with pytest.raises(Damaged, match="lists 0 rows, its manifest counts 6000"):
        parse_deletions(struct.pack("<II", 12346, 0), file)


def test_the_cache_is_bounded_and_evicts_the_oldest():
    cache, read = DeletionCache(bytes_max=160), []

    def look(name):
        return cache.get(name, lambda: read.append(name) or np.arange(8))

    for name in ("a", "b", "a", "c", "a", "b"):
        assert look(name).tolist() == list(range(8))
    assert read == ["a", "b", "c", "b"], "two fit, and the one not used for longest goes"
    cache.get("large", lambda: np.arange(1_000))
    assert look("a").tolist() == list(range(8))
    assert read[-1] == "a", "what is larger than the cache empties it"
