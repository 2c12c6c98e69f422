"""The benchmark of merges runs and gives its ratios; what they are is not a test's business."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.chdir(ROOT)
    from bench import merge  # noqa: PLC0415

    yield merge
    for name in [name for name in sys.modules if name == "bench" or name.startswith("bench.")]:
        del sys.modules[name]


def test_it_gives_its_ratios(bench):
    found = bench.figures(bench.Sizes(large=1_000, changed=40, many=100, rounds=1))
    assert {"diff_growth_ratio", "merge_growth_ratio", "merge_memory_mib", "rows_per_s"} <= set(found)
    assert all(value > 0 for value in found.values())
