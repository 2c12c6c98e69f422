"""Agents on branches of their own write, propose and land at the same time: nothing is lost or doubled.

The long form is 200 agents; `python -m bench.agents` also measures the cost of a write.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.agents import HOSTS, Host, Outcome, Team, agent_names, measure

import omnigraph as og


def problems(host: Host, folder: Path, agents: int, writes: int, threads: int) -> list[str]:
    """Let the agents work; return what is wrong with the graph afterwards."""
    with host(folder, agent_names(agents)) as open_graph:
        team = Team(open_graph, agents, writes, threads)
        team.diverge()
        found = team.check(team.land())
    return found + [str(each) for each in og.open(folder / "agents.omni", read_only=True).verify()]


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_agents_land_concurrently(tmp_path, host):
    assert problems(host, tmp_path, 4, 2, 4) == []


@pytest.mark.long
@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_two_hundred_agents(tmp_path, host):
    assert problems(host, tmp_path, 200, 5, 16) == []


def test_losses_are_found(tmp_path):
    team = Team(lambda _: None, 1, 2, 1)
    whole = Outcome([], ["agent0000-0", "agent0000-1"], {"landed": 1})
    assert team.check(whole) == []
    assert team.check(Outcome([], whole.facts[:1], whole.states)) == ["2 facts were written, 1 are on main"]
    assert team.check(Outcome([], [*whole.facts, whole.facts[1]], whole.states)) != []
    assert team.check(Outcome([], whole.facts, {"open": 1})) != []


def test_writes_are_compared_among_few_and_many_branches(tmp_path):
    found = measure(HOSTS["embedded"], tmp_path, 2, 2, 2, rounds=1)
    assert found.problems == []
    assert min(found.few_ms, found.many_ms, *found.land_ms) > 0
    assert len(found.land_ms) == 2
