"""Mixed traffic against a server for a long time, and the memory of its process by owner."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

import omnigraph as og
from support.serving import WAIT_S, Program, program

SCHEMA = """node Person {
    name: String @key
    age: I32?
    text: String? @index
}

edge Knows: Person -> Person {
    since: I32?
}
"""
PERSONS = 2_000
"""Nodes of the graph; every write changes them or adds a node that a later write removes."""
ROUNDS_MIN = 8
"""Rounds of each client, also if they take longer than the run: every kind of request is in them."""
SAMPLES_MAX = 100_000
OWNERS = "omnigraph_memory_bytes"


@dataclass(frozen=True)
class Sample:
    """The memory of a server at a moment."""

    seconds: float
    rss: int
    commits: int
    owners: dict[str, int]
    """The bytes of each owner, as `/metrics` shows them."""


@dataclass
class Soak:
    """The traffic of a run and the samples of the server's memory."""

    requests: int = 0
    failures: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    def quarters(self) -> list[int]:
        """Return the median resident memory of each quarter of the run."""
        end = self.samples[-1].seconds
        parts: list[list[int]] = [[], [], [], []]
        for sample in self.samples:
            parts[min(int(sample.seconds / end * 4), 3)].append(sample.rss)
        return [int(median(part)) for part in parts]

    def report(self) -> str:
        """Return the memory by quarter and, of the last sample, by owner."""
        last = self.samples[-1]
        owners = ", ".join(f"{name} {size >> 10:,} KiB" for name, size in sorted(last.owners.items()))
        quarters = ", ".join(f"{size >> 20:,}" for size in self.quarters())
        return (
            f"{last.seconds:,.0f} s, {self.requests:,} requests, {last.commits:,} commits; "
            f"MiB by quarter: {quarters}; owners at the end: {owners}"
        )


class _Client:
    """A connection that sends the requests of one actor."""

    def __init__(self, address: str) -> None:
        self.connection = http.client.HTTPConnection(address, timeout=WAIT_S)

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        headers = {"content-type": "application/json"}
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read()


def _query(text: str, **params: Any) -> dict[str, Any]:
    return {"query": text, "params": params}


def _name(chance: random.Random) -> str:
    return f"p{chance.randrange(PERSONS)}"


def _write(client: _Client, chance: random.Random, number: int) -> Iterator[tuple[int, bytes]]:
    """Change rows, or work on a branch and merge it."""
    name = _name(chance)
    if number % 8:
        text = "query q($n: String, $a: I32) { update Person set { age: $a } where name = $n }"
        yield client.send("POST", "/change", _query(text, n=name, a=number % 90))
        return
    branch = f"b{number}"
    yield client.send("POST", "/branches", {"name": branch})
    text = "query q($n: String) { insert Person { name: $n, age: 1, text: 'a new person' } }".replace("'", '"')
    yield client.send("POST", "/change", {**_query(text, n=f"new{number}"), "branch": branch})
    yield client.send("GET", f"/diff?from=main&to={branch}")
    yield client.send("POST", "/branches/merge", {"source": branch})
    yield client.send("DELETE", f"/branches/{branch}")
    text = "query q($n: String) { delete Person where name = $n }"
    yield client.send("POST", "/change", _query(text, n=f"new{number}"))


def _read(client: _Client, chance: random.Random, number: int) -> Iterator[tuple[int, bytes]]:
    """Read with parameters, with constants in the text, along edges and in the history."""
    name = _name(chance)
    match number % 8:
        case 0:
            text = "query q($n: String) { match { $p: Person { name: $n } $p knows $q } return { $q.name, $q.age } }"
            yield client.send("POST", "/query", _query(text, n=name))
        case 1:
            text = f'query q() {{ match {{ $p: Person {{ name: "{name}" }} }} return {{ $p.age, {number} as n }} }}'
            yield client.send("POST", "/query", _query(text))
        case 2:
            text = "query q() { match { $p: Person $p knows $q } return { $p.age, count($q) as n } order { n desc } }"
            yield client.send("POST", "/query", _query(text))
        case 3:
            text = (
                "query q($n: String) { match { $p: Person { name: $n } $p knows{1,3} $q } return { count($q) as n } }"
            )
            yield client.send("POST", "/query", _query(text, n=name))
        case 4:
            yield client.send("GET", "/commits?limit=20")
        case 5:
            yield client.send("GET", "/schema")
        case 6:
            text = "query q() { match { $p: Person } return { $p.name, $p.age, $p.text } }"
            yield client.send("POST", "/query", _query(text))
        case _:
            yield client.send("GET", f"/commits?limit=5&offset={number % 7}")


def soak(folder: Path, *, seconds: float, pause_s: float, interval_s: float, workers: int = 2) -> Soak:
    """Serve a graph for some seconds with one writer and readers that pause between requests."""
    graph = og.init(folder / "graph", SCHEMA, sync=False)
    chance = random.Random(1)
    nodes = [{"type": "Person", "data": {"name": f"p{n}", "age": n % 90, "text": "text " * 40}} for n in range(PERSONS)]
    edges = [{"edge": "Knows", "from": _name(chance), "to": _name(chance)} for _ in range(PERSONS * 5)]
    graph.load([*nodes, *edges], mode="append")
    done = Soak()
    stop = threading.Event()
    with program(folder, str(graph.uri), OMNIGRAPH_SERVER_METRICS_ENABLED="true") as served:
        started = time.monotonic()

        def work(seed: int, requests: Callable[..., Iterator[tuple[int, bytes]]]) -> None:
            client, chance = _Client(served.address), random.Random(seed)
            number = 0
            try:
                while number < ROUNDS_MIN or not (stop.is_set() or time.monotonic() - started >= seconds):
                    number += 1
                    for status, body in requests(client, chance, number):
                        done.requests += 1
                        if status >= 300:
                            done.failures.append(f"{status} {body[:300]!r}")
                    stop.wait(pause_s)
            except (OSError, http.client.HTTPException) as error:
                done.failures.append(repr(error))
            finally:
                client.connection.close()

        threads = [threading.Thread(target=work, args=(0, _write), daemon=True)]
        threads += [threading.Thread(target=work, args=(n, _read), daemon=True) for n in range(1, workers)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(SAMPLES_MAX):
                done.samples.append(_sample(served, time.monotonic() - started))
                if done.samples[-1].seconds >= seconds:
                    break
                stop.wait(min(interval_s, max(seconds - done.samples[-1].seconds, 0.1)))
        finally:
            stop.set()
            for thread in threads:
                thread.join(WAIT_S)
        done.samples.append(_sample(served, time.monotonic() - started))
    return done


def _sample(served: Program, seconds: float) -> Sample:
    status = Path(f"/proc/{served.process.pid}/status").read_text(encoding="ascii")
    rss = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))
    owners: dict[str, int] = {}
    commits = 0
    for family in text_string_to_metric_families(served.get("/metrics").body.decode()):
        for sample in family.samples:
            if sample.name == OWNERS:
                owners[sample.labels["owner"]] = int(sample.value)
            elif sample.name == "omnigraph_commits_total":
                commits += int(sample.value)
    return Sample(seconds, rss, commits, owners)
