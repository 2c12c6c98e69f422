"""Clients work through servers that are stopped and killed in turn: nothing acknowledged is lost or happens twice.

`OMNIGRAPH_KILLS_S` sets the duration of the long forms in seconds (600 by default), `OMNIGRAPH_KILLS_CLIENTS` the
number of their clients (64).
"""

from __future__ import annotations

import os

import pytest

from support.rolling_kills.run import Plan, run

LONG = Plan(
    clients=int(os.environ.get("OMNIGRAPH_KILLS_CLIENTS", "64")),
    seconds=float(os.environ.get("OMNIGRAPH_KILLS_S", "600")),
    every_s=5.0,
)
S3 = Plan(LONG.clients, LONG.seconds, LONG.every_s, monotonic=False)
"""On S3 a read may use a look at the branches that is 100 ms old."""


def test_rolling_kills(tmp_path):
    figures = run(tmp_path, str(tmp_path / "graph.omni"), Plan(clients=6, seconds=5.0, every_s=1.5, servers=2))
    assert figures.ends.total() >= 5
    assert figures.reads > 0


@pytest.mark.long
def test_rolling_kills_on_disk_long(tmp_path, record_property):
    figures = run(tmp_path, str(tmp_path / "graph.omni"), LONG)
    record_property("figures", str(figures))
    print(figures)  # noqa: T201 (shown with -s)


@pytest.mark.long
def test_rolling_kills_on_s3_long(tmp_path, s3, record_property):
    figures = run(tmp_path, s3.new_place(), S3, s3.environ)
    record_property("figures", str(figures))
    print(figures)  # noqa: T201 (shown with -s)
