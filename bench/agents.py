"""Many agents on one graph: each writes on its own branch, proposes it, and lands it.

    python -m bench.agents                  (200 agents in one process, then 200 clients of a server)
    python -m bench.agents --agents 50 --writes 3 --threads 8 --only server

Every branch first gets commits of its agent, so that all branches differ from `main` and each other. Then writes are
timed beside those on a graph with ten such branches; the graphs take turns, so other load affects both. Last, all
agents write once more, propose and land at the same time. Afterwards everything that an agent wrote must be on `main`
exactly once, every proposal landed, and `verify()` must find nothing. On a server each agent has its own token.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import omnigraph as og
from bench.http import serving
from bench.measure import medians_us

SCHEMA = """
node Agent { name: String @key }
node Fact { slug: String @key  text: String }
edge Knows: Agent -> Fact { @unique(src, dst) }
"""
POLICY = "version: 2\nrules: [{ id: all, allow: { actors: { any: true }, role: owner } }]\n"
CONFIG = "policy: { file: policy.yaml }\nserver: { auth: { tokens: { file: tokens.json } } }\n"
OWNER, ALONE = "owner", "work/alone"
FEW, AGENTS, AGENTS_SHORT = 10, 200, 40
WRITES, THREADS = 5, 16
ROUNDS = 40

Opener = Callable[[str], Any]
"""Returns the handle of an actor."""
Host = Callable[[Path, list[str]], Any]
"""Creates a graph for actors in a folder: a context manager of an `Opener`."""


@dataclass(frozen=True)
class Outcome:
    """Times of landings, the facts on `main`, and the states of the proposals."""

    land_s: list[float]
    facts: list[str]
    states: dict[str, int]


@dataclass(frozen=True)
class Team:
    """Agents that work on one graph; `writes` facts each, by `threads` of them at a time."""

    open_graph: Opener
    agents: int
    writes: int
    threads: int

    @property
    def names(self) -> list[str]:
        """The names of the agents."""
        return agent_names(self.agents)

    def diverge(self) -> None:
        """Create all branches; then the agents write all their facts but one."""
        with self.open_graph(OWNER) as owner:
            owner.load([{"type": "Agent", "data": {"name": name}} for name in self.names], mode="append")
            for branch in [ALONE, *(f"work/{name}" for name in self.names)]:
                owner.branch_create(branch)
        self._all(self._prepare)

    def land(self) -> Outcome:
        """Let every agent write its last fact, propose its branch and land it; return what is on `main`."""
        land_s = self._all(self._finish)
        with self.open_graph(OWNER) as owner:
            states = [proposal.state for proposal in owner.proposals("all", limit=self.agents + 1)]
            rows = owner.query("match { $a knows $f } return { $f.slug as slug } order { slug }").to_pylist()
        return Outcome(land_s, [row["slug"] for row in rows], {state: states.count(state) for state in set(states)})

    def check(self, outcome: Outcome) -> list[str]:
        """Return what was lost, doubled or not landed; empty if nothing."""
        wanted = sorted(slug(name, number) for name in self.names for number in range(self.writes))
        problems = []
        if outcome.facts != wanted:
            problems.append(f"{len(wanted)} facts were written, {len(outcome.facts)} are on main")
        if outcome.states != {"landed": self.agents}:
            problems.append(f"the states of the proposals are {outcome.states}")
        return problems

    def _all(self, work: Callable[[str], Any]) -> list[Any]:
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(work, self.names))

    def _prepare(self, name: str) -> None:
        with self.open_graph(name) as graph:
            for number in range(self.writes - 1):
                write(graph.on(f"work/{name}"), name, number)

    def _finish(self, name: str) -> float:
        with self.open_graph(name) as graph:
            write(graph.on(f"work/{name}"), name, self.writes - 1)
            proposal = graph.propose(f"work/{name}", "main", title=f"facts of {name}")
            start = time.perf_counter()
            proposal.land()
            return time.perf_counter() - start


def agent_names(agents: int) -> list[str]:
    """Return the names of agents."""
    return [f"agent{number:04}" for number in range(agents)]


def slug(name: str, number: int) -> str:
    """Return the key of a fact."""
    return f"{name}-{number}"


def write(graph: Any, name: str, number: int) -> None:
    """Store one fact of an agent as one commit."""
    key = slug(name, number)
    fact = {"type": "Fact", "data": {"slug": key, "text": f"fact {number} of {name}"}}
    graph.load([fact, {"edge": "Knows", "from": name, "to": key}], mode="append")


# -- graphs ------------------------------------------------------------------------------------------


@contextmanager
def embedded(folder: Path, _actors: list[str]) -> Iterator[Opener]:
    """A graph whose agents are threads of this process."""
    path = folder / "agents.omni"
    og.init(path, SCHEMA)
    yield lambda actor: og.open(path, actor=actor)


@contextmanager
def served(folder: Path, actors: list[str]) -> Iterator[Opener]:
    """A graph on a server of its own process, whose agents are clients with tokens."""
    path = folder / "agents.omni"
    og.init(path, SCHEMA)
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "tokens.json").write_text(json.dumps({actor: f"token-of-{actor}" for actor in [OWNER, *actors]}))
    config = folder / "omnigraph.yaml"
    config.write_text(CONFIG)
    with serving(str(path), "--config", str(config)) as (port, _, _):
        yield lambda actor: og.connect(f"http://127.0.0.1:{port}", token=f"token-of-{actor}")


HOSTS: dict[str, Host] = {"embedded": embedded, "server": served}


@dataclass(frozen=True)
class Figures:
    """Milliseconds of a write among few and many branches, and of a landing; and what went wrong."""

    few_ms: float
    many_ms: float
    land_ms: list[float]
    problems: list[str]


def measure(host: Host, folder: Path, agents: int, writes: int, threads: int, rounds: int = ROUNDS) -> Figures:
    """Compare writes among ten branches and among those of all agents; then let the agents land."""
    folders = [folder / "few", folder / "many"]
    sizes = [min(FEW, agents), agents]
    with ExitStack() as stack:
        teams = []
        for each, size in zip(folders, sizes, strict=True):
            each.mkdir()
            opener = stack.enter_context(host(each, agent_names(size)))
            teams.append(Team(opener, size, writes, min(threads, size)))
        calls = {}
        for team in teams:
            team.diverge()
            owner = stack.enter_context(team.open_graph(OWNER))
            calls[str(len(calls))] = _writer(owner.on(ALONE), team.names[0])
        few_us, many_us = medians_us(calls, rounds=rounds, calls=1).values()
        outcomes = [team.land() for team in teams]
        problems = [problem for team, outcome in zip(teams, outcomes, strict=True) for problem in team.check(outcome)]
    for each in folders:
        with og.open(each / "agents.omni", read_only=True) as graph:
            problems += [str(found) for found in graph.verify()]
    return Figures(few_us / 1e3, many_us / 1e3, [1e3 * each for each in outcomes[1].land_s], problems)


def _writer(graph: Any, name: str) -> Callable[[], None]:
    numbers = count(1_000_000)
    return lambda: write(graph, name, next(numbers))


def figures() -> dict[str, float]:
    """Writes among 40 branches beside writes among ten, and landings of 40 agents at the same time."""
    found = {}
    for name, host in HOSTS.items():
        with tempfile.TemporaryDirectory() as folder:
            measured = measure(host, Path(folder), AGENTS_SHORT, WRITES, THREADS)
        if measured.problems:
            raise RuntimeError("; ".join(measured.problems))
        found[f"{name}: write among {AGENTS_SHORT} branches, ms"] = measured.many_ms
        found[f"{name}: ratio to {FEW} branches"] = measured.many_ms / measured.few_ms
        found[f"{name}: landing, ms"] = median(measured.land_ms)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, default=AGENTS)
    parser.add_argument("--writes", type=int, default=WRITES)
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--only", choices=HOSTS)
    given = parser.parse_args()
    failed = False
    for name in [given.only] if given.only else HOSTS:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(HOSTS[name], Path(folder), given.agents, given.writes, given.threads)
        ratio = found.many_ms / found.few_ms
        print(f"{name}: a write takes {found.few_ms:.1f} ms among {FEW} branches", end="")
        print(f" and {found.many_ms:.1f} ms among {given.agents}: ratio {ratio:.2f}")
        print(f"  landing: median {median(found.land_ms):.0f} ms, at most {max(found.land_ms):.0f} ms")
        print("  " + ("\n  ".join(found.problems) or f"{given.agents} proposals landed, nothing lost, verified"))
        failed |= bool(found.problems)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
