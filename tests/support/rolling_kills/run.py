"""One run: servers, balancer and clients for a time; then every claim of the logs is checked against the graph."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import omnigraph as og
from support.rolling_kills.balancer import Balancer, balancing
from support.rolling_kills.checks import check
from support.rolling_kills.client import SCHEMA, SETTLE_S, Request
from support.rolling_kills.own_log import Entry, Read, entries_of
from support.rolling_kills.servers import HOST, servers_of

THREADS = 16
"""Clients of one process."""
_TESTS = Path(__file__).parents[2]


@dataclass(frozen=True)
class Plan:
    """The size of a run."""

    clients: int
    seconds: float
    every_s: float
    servers: int = 3
    monotonic: bool = True
    """False if servers answer from a state that may be a little old; own writes are seen in any case."""


@dataclass
class Figures:
    """What happened."""

    seconds: float
    writes: Counter[str] = field(default_factory=Counter)
    """Writes by kind and outcome."""
    refusals: Counter[str] = field(default_factory=Counter)
    """Refused writes by kind and code."""
    reads: int = 0
    failed_reads: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    """Writes that were repeated by the test after an unknown outcome."""
    ends: Counter[str] = field(default_factory=Counter)
    """Ends of servers by signal and exit code."""
    cut: int = 0
    """Connections that the balancer cut."""
    commits: int = 0
    check_s: float = 0.0


def run(folder: Path, uri: str, plan: Plan, environ: Mapping[str, str] | None = None) -> Figures:
    """Run and check; returns the figures."""
    clients = [f"c{number}" for number in range(plan.clients)]
    actors = [f"actor-{number % max(1, plan.clients // 8)}" for number in range(plan.clients)]
    shared = [f"shared-{number}" for number in range(max(1, plan.clients // 8))]
    new_graph(uri, clients, shared, environ)
    began = time.monotonic()
    with ExitStack() as stack:
        servers = stack.enter_context(servers_of(folder, uri, sorted(set(actors)), plan.servers, environ))
        ports = [slot.port for slot in servers.slots]
        balancer = Balancer(ports)
        ports = [stack.enter_context(balancing(balancer)), *ports]
        urls = [f"http://{HOST}:{port}" for port in ports]
        requests = [
            Request(
                *(urls, names, acting, shared, str(folder / f"clients-{number}.jsonl"), plan.monotonic),
                optimizes=number == 0,
            )
            for number, (names, acting) in enumerate(zip(parts(clients), parts(actors), strict=True))
        ]
        with clients_of(requests):
            servers.roll(plan.seconds, plan.every_s)
        assert not servers.failures, servers.failures
        servers.stop()
        seconds = time.monotonic() - began
        entries = [entry for request in requests for entry in entries_of(Path(request.log))]
        figures = figures_of(entries, seconds)
        figures.ends, figures.cut = servers.kills, balancer.cut
        began = time.monotonic()
        figures.commits = check(uri, entries, servers, environ, monotonic=plan.monotonic)
        figures.check_s = time.monotonic() - began
    return figures


def new_graph(uri: str, clients: Sequence[str], shared: Sequence[str], environ: Mapping[str, str] | None) -> None:
    """A graph with the counters, and with the branches of the shared counters."""
    graph = og.init(uri, SCHEMA, environ=environ)
    names = [*clients, *shared]
    records = [{"type": "Counter", "data": {"name": name, "count": 0}} for name in names]
    graph.load(
        [*records, *({"type": "Item", "data": {"name": name, "owner": name}} for name in clients)], mode="append"
    )
    for name in shared:
        graph.branch_create(name)


def parts(names: Sequence[str]) -> list[Sequence[str]]:
    """The clients of each process."""
    return [names[start : start + THREADS] for start in range(0, len(names), THREADS)]


@contextmanager
def clients_of(requests: Sequence[Request]) -> Iterator[None]:
    """Run client processes; the end of the block ends them, after they have settled their last writes."""
    path = os.pathsep.join(filter(None, [str(_TESTS), os.environ.get("PYTHONPATH")]))
    processes: list[subprocess.Popen[str]] = []
    try:
        for request in requests:
            command = [sys.executable, "-m", "support.rolling_kills.client", json.dumps(asdict(request))]
            with Path(request.log).with_suffix(".err").open("wb") as errors:
                processes.append(
                    subprocess.Popen(
                        command,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=errors,
                        text=True,
                        cwd=_TESTS,
                        env={**os.environ, "PYTHONPATH": path},
                    )
                )
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", trouble(requests)
        yield
        for process in processes:
            assert process.stdin is not None
            process.stdin.close()
        codes = [process.wait(SETTLE_S + 60) for process in processes]
        assert codes == [0] * len(codes), trouble(requests)
        assert not trouble(requests), trouble(requests)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                stream.close()


def trouble(requests: Sequence[Request]) -> str:
    """The error output of the clients."""
    return "".join(Path(request.log).with_suffix(".err").read_text(errors="replace")[-3000:] for request in requests)


def figures_of(entries: Sequence[Entry | Read], seconds: float) -> Figures:
    """Count what the logs say."""
    figures = Figures(seconds)
    for entry in entries:
        if isinstance(entry, Read):
            figures.reads += 1
            if entry.code is not None:
                figures.failed_reads[entry.code] += 1
            continue
        figures.writes[f"{entry.kind} {entry.outcome}"] += 1
        figures.repeated += entry.tries > 1
        if entry.outcome == "refused":
            figures.refusals[f"{entry.kind} {entry.code}"] += 1
    return figures
