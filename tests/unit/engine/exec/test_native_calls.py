"""Native calls in parts."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.engine import kernels
from omnigraph.engine.exec import native_calls
from omnigraph.engine.exec.native_calls import in_parts
from omnigraph.engine.search.vector_codes import VectorQuery
from omnigraph.engine.search.vector_scan import _matrix, _measured


@pytest.fixture(autouse=True)
def three_cores(monkeypatch):
    monkeypatch.setattr(native_calls.os, "cpu_count", lambda: 3)


@pytest.mark.parametrize(("count", "rows_min", "parts"), [(0, 1, 1), (2, 1, 2), (9, 1, 3), (9, 4, 2), (9, 10, 1)])
def test_parts_cover_all_rows_in_order(count, rows_min, parts):
    found = in_parts(lambda start, stop: [*range(start, stop)], count, rows_min)
    assert len(found) == parts
    assert [row for part in found for row in part] == [*range(count)]


def test_the_last_part_runs_in_the_calling_thread():
    threads = in_parts(lambda _start, _stop: threading.current_thread(), 30, 1)
    assert threads[-1] is threading.current_thread()
    assert len(set(threads)) == 3


@pytest.mark.parametrize("failing", [0, 10, 20])
def test_an_error_of_a_part_is_raised(failing):
    def call(start: int, stop: int) -> int:
        if start == failing:
            raise ValueError("of a part")
        return stop

    with pytest.raises(ValueError, match="of a part"):
        in_parts(call, 30, 1)


@pytest.mark.parametrize("some", [False, True])
def test_a_scan_of_vectors_in_parts_finds_the_nearest(tune, some):
    random = np.random.default_rng(3)
    vectors = random.normal(size=(4_000, 8)).astype(np.float32)
    vectors[1_000:1_020] = vectors[7]  # ties in different parts
    block = _measured(*_matrix(pa.array(list(vectors), pa.list_(pa.float32(), 8)), 8))
    query = VectorQuery.of(vectors[7].astype(np.float64))
    rows = np.arange(0, 4_000, 3) if some else None
    assert kernels.load()
    whole = block.candidates(query, rows, 5)
    tune(vector_part_elements=1)
    parts = block.candidates(query, rows, 5)
    assert set(whole) <= set(parts)
    assert (np.diff(parts) > 0).all()
    chosen = parts if rows is None else rows[parts]
    expected = [7, *range(1_000, 1_020)]
    assert set(chosen) >= {row for row in expected if rows is None or row % 3 == 0}
