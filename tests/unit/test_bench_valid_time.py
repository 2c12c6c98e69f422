"""The benchmark of valid time measures every workload with one period and with several."""

from __future__ import annotations

from bench import valid_time


def test_figures_of_a_small_graph():
    found = valid_time.figures(people=50, periods=3, turns=1)
    assert found.keys() == valid_time.WORKLOADS.keys()
    assert all(one > 0 and many > 0 for one, many in found.values())
