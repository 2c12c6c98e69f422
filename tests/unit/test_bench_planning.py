"""The patterns of `bench.planning` are planned and counted by their hops."""

from __future__ import annotations

import pytest
from bench import planning
from bench.orders import make_graph


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return make_graph(tmp_path_factory.mktemp("planning") / "g", 1, nodes=40, degree=3)


@pytest.mark.parametrize("name", planning.PATTERNS)
def test_plan_has_every_hop(graph, name):
    hops = planning.PATTERNS[name]
    assert len(hops) == int(name.split("_")[1])
    physical = planning._planner(graph, hops)()
    assert len(physical.plan.pipeline) == 1 + len(hops)
