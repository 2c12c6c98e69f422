"""The merge benchmark runs and reports its ratios; their values are not tested."""

from __future__ import annotations

from bench import merge


def test_benchmark_reports_its_ratios():
    found = merge.figures(merge.Sizes(large=1_000, changed=40, many=100, rounds=1))
    assert {"diff_growth_ratio", "merge_growth_ratio", "merge_memory_mib", "rows_per_s"} <= set(found)
    assert all(value > 0 for value in found.values())
