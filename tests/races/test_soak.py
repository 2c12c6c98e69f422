"""The memory of a server under mixed traffic: it reaches its bounds and stays there."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.soak import ROUNDS_MIN, soak

GROWTH_MAX = 1.1
"""The last quarter beside the second one, in which the caches fill."""


def test_traffic_of_some_seconds(tmp_path: Path) -> None:
    """Every request succeeds, and every owner of memory is shown."""
    done = soak(tmp_path, seconds=3, pause_s=0.05, interval_s=1)
    assert not done.failures
    assert done.samples[-1].commits > ROUNDS_MIN
    assert {"tables", "plans", "versions", "history", "lance", "arrow", "free"} == set(done.samples[-1].owners)


@pytest.mark.long
def test_memory_stays_within_its_bounds(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    minutes: float = request.config.getoption("--soak-minutes")
    done = soak(tmp_path, seconds=minutes * 60, pause_s=0.15, interval_s=15, workers=3)
    assert not done.failures
    quarters = done.quarters()
    assert quarters[3] <= GROWTH_MAX * quarters[1], done.report()
