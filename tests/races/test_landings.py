"""Processes open, approve and land proposals while the target moves: each lands once, exactly as it was checked."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import omnigraph as og
from support.landings import CHECK, check_landings, kill_between, land_until, open_proposal
from support.racing import race
from support.store import add_pair, new_graph, repository_of

STEPS = [
    *(f"proposal.event={passes}:kill" for passes in range(5)),
    "proposal.trial=0:kill",
    "proposal.checked=0:kill",
    "proposal.queued=0:kill",
    "land.before_publish=0:kill",
    "land.after_publish=0:kill",
]
"""Failpoints of one proposal from its opening to its landing."""


def landings(folder: Path, proposals: int, processes: int, *, timeout_s: float = 240) -> None:
    graph = new_graph(folder / "graph", 1)
    graph.store_query(CHECK)
    branches = [f"branch-{number}" for number in range(proposals)]
    requests = [{"do": "landings", "branches": branches[n::processes], "moves": True} for n in range(processes)]
    workers = race(folder, graph.uri, *requests, timeout_s=timeout_s)
    said = [line for worker in workers for line in worker.said()]
    acknowledged = {line["landed"]: line["commit"] for line in said if "landed" in line}
    check_all(graph, branches, acknowledged)


def check_all(graph: og.Graph, branches: list[str], acknowledged: Mapping[str, str | None]) -> None:
    assert check_landings(graph) == acknowledged
    assert len(acknowledged) == len(branches)
    items = set(graph.to_arrow("Item")["id"].to_pylist())
    assert items == {"seed-0"} | {f"{branch}-{what}" for branch in branches for what in ("pair", "move")}
    assert graph._repository.state().head_names() == ["main", *sorted(branches)], "no trial is left"
    assert graph.verify() == []


def test_eight_writers_on_a_moving_target(tmp_path):
    """The short form: threads, each with an opened graph of its own."""
    graph = new_graph(tmp_path / "graph", 1)
    graph.store_query(CHECK)
    branches = [f"branch-{number}" for number in range(8)]

    def write(branch: str) -> tuple[str, str | None]:
        proposal = open_proposal(graph.uri, branch)
        reviewer = og.open(graph.uri, actor="rae").proposal(proposal.id).approve()
        add_pair(repository_of(og.open(graph.uri)), f"{branch}-move")
        return proposal.id, land_until(reviewer)

    with ThreadPoolExecutor(8) as pool:
        acknowledged = dict(pool.map(write, branches))
    check_all(graph, branches, acknowledged)


@pytest.mark.long
def test_eight_writers_on_a_moving_target_long(tmp_path):
    landings(tmp_path, 80, 8, timeout_s=1500)


def kill_landings(folder: Path, proposals: int, steps: list[str]) -> None:
    graph = new_graph(folder / "graph", 1)
    graph.store_query(CHECK)
    kill_between(folder, graph.uri, [f"branch-{number}" for number in range(proposals)], steps)


@pytest.mark.parametrize("step", ["proposal.checked=0:kill", "land.before_publish=0:kill", "land.after_publish=0:kill"])
def test_kill_between_two_steps(step, tmp_path):
    """The short form: after the checks, between the approval and the landing, and after the publish."""
    kill_landings(tmp_path, 1, [step])


@pytest.mark.long
def test_kill_between_every_two_steps_long(tmp_path):
    kill_landings(tmp_path, 20, [step for step in STEPS for _ in range(4)])
