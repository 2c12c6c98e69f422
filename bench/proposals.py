"""List, open and publish on a graph with many proposals beside a graph with few.

    python -m bench.proposals
    python -m bench.proposals --closed 10000 --open 500 --turns 9

Each figure is the least time of all turns, in milliseconds; the graphs take turns. `list` and `list closed` are a list
of 500 open proposals, or a page of 100 closed ones, by a handle that knows nothing yet. `list again` uses the same
handle. `open` opens the graph, `publish` is one insert.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import omnigraph as og
from omnigraph.graph import Graph
from omnigraph.graph_handle import context_of
from omnigraph.operations.proposals.event_log import NewEvent
from omnigraph.operations.proposals.proposals import logs_of
from omnigraph.versioning.model.ids import new_ulid

SCHEMA = "node Person { name: String @key  age: I64? }"
FEW = 5
SHARED = 8
"""Branches from which the proposals come."""

Figures = dict[str, float]


def build(folder: Path, opened: int, closed: int) -> Graph:
    """Make a graph with proposals: real events of real branches, and a trial for each branch."""
    graph = og.init(folder / f"{opened}-{closed}.omni", SCHEMA, sync=False)
    for number in range(SHARED):
        graph.branch_create(f"b{number}")
        graph.mutate("insert Person { name: $n }", {"n": f"p{number}"}, branch=f"b{number}")
    model = graph.propose("b0", title="The first proposal")
    repository = context_of(graph).repository
    logs = logs_of(repository)
    trial = next(event for event in model.events() if event.kind == "trial")
    for number in range(opened - 1 + closed):
        proposal_id = new_ulid(repository.clock())
        data = {"source": f"b{number % SHARED}", "target": "main", "title": f"Proposal {number}", "labels": ["bench"]}
        logs.create(proposal_id, data, "ana", None)
        events = [NewEvent("trial", {**trial.data, "commit": None, "outcome": "already_up_to_date"})]
        events += [NewEvent("comment", {"id": new_ulid(0), "text": "A comment on this proposal.", "on": None})]
        events += [NewEvent("review", {"verdict": "approve", "commit": trial.data["source_head"], "text": None})]
        if number >= opened - 1:
            events.append(NewEvent("closed", {"why": "a benchmark"}))
        for event in events:
            logs.append(proposal_id, _always(event), "bo")
    return graph


def _always(event: NewEvent) -> Callable[[object], NewEvent]:
    return lambda _: replace(event)


def calls(graph: Graph) -> dict[str, Callable[[], object]]:
    """Return the measured calls; those that list are made by a handle that is opened before."""
    fresh = og.open(graph.uri, sync=False)
    known = og.open(graph.uri, sync=False)
    known.proposals(limit=1000)
    numbers = iter(range(1_000_000))
    return {
        "list": lambda: fresh.proposals(limit=1000),
        "list again": lambda: known.proposals(limit=1000),
        "list closed": lambda: known.proposals("closed", limit=100),
        "open": lambda: og.open(graph.uri, sync=False),
        "publish": lambda: known.mutate("insert Person { name: $n }", {"n": f"x{id(known)}-{next(numbers)}"}),
    }


def measure(graphs: list[Graph], turns: int) -> list[Figures]:
    """Return the least time of each call on each graph."""
    figures: list[Figures] = [{} for _ in graphs]
    for _ in range(turns):
        for graph, found in zip(graphs, figures, strict=True):
            for name, call in calls(graph).items():
                started = time.perf_counter()
                call()
                ms = (time.perf_counter() - started) * 1000
                found[name] = min(found.get(name, ms), ms)
    return figures


def main() -> None:
    """Print the figures and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--open", type=int, default=500)
    parser.add_argument("--closed", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=9)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        graphs = [build(Path(folder), *counts) for counts in ((FEW, FEW), (given.open, given.closed))]
        few, many = measure(graphs, given.turns)
    print(f"{'ms':<16} {f'{FEW} open':>10} {f'{given.open} open':>10} {'ratio':>8}")
    for name, least in few.items():
        print(f"{name:<16} {least:>10.2f} {many[name]:>10.2f} {many[name] / least:>8.2f}")


if __name__ == "__main__":
    main()
