"""The storage benchmark runs and reports its ratios; their values are not tested."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "bench" / "storage.py"


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("bench_storage", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_storage"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["bench_storage"]


@pytest.mark.parametrize(
    ("part", "ratios"),
    [
        ("against_bare_parts", {"commit_to_bare_synced_ratio", "commit_to_bare_unsynced_ratio"}),
        (
            "against_ones_youth",
            {"commit_long_to_short_ratio", "snapshot_long_to_short_ratio", "branch_long_to_short_ratio"},
        ),
        ("among_branches", {"crowded_to_alone_ratio"}),
    ],
)
def test_every_part_reports_its_ratios(bench, part, ratios):
    tiny = bench.Sizes(rounds=2, short=2, long=4, listed=8, branches=3)
    found = getattr(bench, part)(tiny)
    assert ratios <= set(found)
    assert all(value > 0 for value in found.values())
    assert all(name.endswith(("_ms", "_ratio")) for name in found)
