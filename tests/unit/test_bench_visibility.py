"""The visibility benchmark measures every workload with and without a visibility."""

from __future__ import annotations

from bench import visibility


def test_figures_of_a_small_graph():
    found = visibility.figures(people=2_000)
    for name in visibility.WORKLOADS:
        assert found[f"{name} ms"] > 0
        assert found[f"{name}, seen ms"] > 0
    assert found["memory of a digest bytes per row"] > 0
