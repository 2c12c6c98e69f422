"""Batches of visible rows do not show where hidden rows are."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from omnigraph.engine.exec.filled_batches import filled_batches

ROWS = [{"n": at, "text": "x" * (at % 7 * 30), "tags": ["t"] * (at % 3), "v": None} for at in range(90)]
SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.utf8()), ("tags", pa.list_(pa.utf8())), ("v", pa.bool_())])


def cut(random: Random) -> list[pa.RecordBatch]:
    """Return the rows in batches of random sizes, of which some are empty."""
    found, start = [], 0
    while start < len(ROWS):
        stop = start + random.randrange(13)
        found.append(pa.RecordBatch.from_pylist(ROWS[start:stop], SCHEMA))
        start = stop
    return found


@pytest.mark.parametrize("rows", [1, 7, 16, 1_000])
@pytest.mark.parametrize("bytes_max", [1, 500, 10**9])
def test_batches_depend_on_their_rows_alone(rows: int, bytes_max: int) -> None:
    one = list(filled_batches([pa.RecordBatch.from_pylist(ROWS, SCHEMA)], rows, bytes_max))
    assert [row for batch in one for row in batch.to_pylist()] == ROWS
    assert all(0 < batch.num_rows <= rows for batch in one)
    if bytes_max == 10**9:
        assert {batch.num_rows for batch in one[:-1]} <= {rows}
    if bytes_max == 1:
        assert {batch.num_rows for batch in one} == {1}
    for seed in range(20):
        found = list(filled_batches(cut(Random(seed)), rows, bytes_max))
        assert [batch.num_rows for batch in found] == [batch.num_rows for batch in one]
        assert pa.Table.from_batches(found) == pa.Table.from_batches(one)


def test_no_rows_are_no_batch() -> None:
    assert list(filled_batches([pa.RecordBatch.from_pylist([], SCHEMA)] * 2, 5, 100)) == []
