"""One actor floods a server while another asks a small question at intervals.

The flood sends requests of one kind over many connections and repeats a refused request at once. The figure of each
kind is the 99th percentile of the other actor during the flood, divided by the same percentile without it (target: 3).
The flood is a process of low priority, so that the figure shows the server and not the competition for processors.
`--full` asks once a second for 200 seconds.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

import omnigraph as og
from bench.http import Client, resident_mb, serving

PEOPLE, DEGREE = 20_000, 10
CONNECTIONS = 300
INTERVAL_S, QUESTIONS = 0.05, 200
LOOKUP = "query one($name: String) { match { $p: Person { name: $name } } return { $p.name, $p.age } }"
HOPS = """query hops() {
    match { $a: Person $a knows $b $b knows $c $c.age > 10 }
    return { $a.age as age, count($c) as n }
    order { n desc }
    limit 5
}"""
ADD = "query add($name: String) { insert Person { name: $name, age: 1 } }"
SCHEMA = "node Person { name: String @key age: I64? bio: String? }\nedge Knows: Person -> Person"
TOKENS = {"flood": "flood-token", "calm": "calm-token"}
POLICY = """version: 1
groups: { all: [flood, calm] }
rules:
  - id: everything
    allow: { actors: { group: all }, actions: [read, export, change], branch_scope: any }
"""


def request(token: str, method: str, path: str, body: object = None, accept: str = "application/json") -> bytes:
    """Return a request."""
    data = b"" if body is None else json.dumps(body).encode()
    head = [
        f"{method} {path} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {token}",
        f"Accept: {accept}",
        "Content-Type: application/json",
        f"Content-Length: {len(data)}",
    ]
    return "\r\n".join([*head, "", ""]).encode() + data


def flood_requests(kind: str, number: int) -> bytes:
    """Return the request of one connection of a flood."""
    token = TOKENS["flood"]
    kind = ("lookups", "traversals", "exports", "writes")[number % 4] if kind == "mixed" else kind
    if kind == "lookups":
        return request(token, "POST", "/query", {"query": LOOKUP, "params": {"name": f"p{number}"}})
    if kind == "traversals":
        return request(token, "POST", "/query", {"query": HOPS})
    if kind == "exports":
        return request(token, "GET", "/tables/Person", accept="application/x-ndjson")
    return request(token, "POST", "/mutate", {"query": ADD, "params": {"name": f"new-{number}"}})


# -- processes ---------------------------------------------------------------------------------------


async def _hammer(port: int, sent: bytes, counts: dict[str, int]) -> None:
    """Send a request again and again over one connection."""
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            while True:
                writer.write(sent)
                head = await reader.readuntil(b"\r\n\r\n")
                status = head[9:12].decode()
                counts[status] = counts.get(status, 0) + 1
                await _read_body(reader, head.lower())
        except (OSError, asyncio.IncompleteReadError):
            await asyncio.sleep(0.05)


async def _read_body(reader: asyncio.StreamReader, head: bytes) -> None:
    if b"transfer-encoding: chunked" not in head:
        length = int(head.split(b"content-length: ", 1)[1].split(b"\r\n", 1)[0])
        await reader.readexactly(length)
        return
    while size := int(await reader.readline(), 16):
        await reader.readexactly(size + 2)
    await reader.readline()


async def _flood(port: int, kind: str) -> None:
    counts: dict[str, int] = {}
    tasks = [asyncio.ensure_future(_hammer(port, flood_requests(kind, n), counts)) for n in range(CONNECTIONS)]
    # The parent closes the pipe when it has measured enough.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for task in tasks:
        task.cancel()
    print(json.dumps(counts))


def ask(port: int, count: int, interval_s: float) -> list[float]:
    """Ask at intervals; return the seconds of each answer."""
    client, taken = Client(port), []
    for number in range(count + 10):
        sent = request(
            TOKENS["calm"], "POST", "/query", {"query": LOOKUP, "params": {"name": f"p{number * 7 % PEOPLE}"}}
        )
        started = time.perf_counter()
        client.send(sent)
        taken.append(time.perf_counter() - started)
        time.sleep(interval_s)
    client.close()
    return taken[10:]


def p99_ms(taken: list[float]) -> float:
    """Return the 99th percentile in milliseconds."""
    return sorted(taken)[int(len(taken) * 0.99)] * 1000


def flooded(port: int, kind: str, count: int, interval_s: float) -> tuple[float, dict[str, int]]:
    """Return the 99th percentile during a flood, and the number of answers of the flood by status."""
    command = ["nice", "-n", "10", sys.executable, "-m", "bench.fairness", "flood", str(port), kind]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    time.sleep(1.5)
    try:
        taken = ask(port, count, interval_s)
    finally:
        counts, _ = process.communicate("", timeout=60)
    return p99_ms(taken), json.loads(counts)


# -- the measurement ---------------------------------------------------------------------------------


def build(folder: Path) -> og.Graph:
    """Create the graph."""
    graph = og.init(folder / "g.omni", SCHEMA)
    names = pa.array([f"p{n}" for n in range(PEOPLE)])
    people = pa.table(
        {"name": names, "age": pa.array(range(PEOPLE), pa.int64()), "bio": pa.array(["x" * 100] * PEOPLE)}
    )
    ends = [(n, (n * 31 + k * 977 + 1) % PEOPLE) for n in range(PEOPLE) for k in range(DEGREE)]
    edges = pa.table({"from": [f"p{a}" for a, _ in ends], "to": [f"p{b}" for _, b in ends]})
    graph.load({"Person": people, "Knows": edges}, mode="append")
    return graph


def options(folder: Path) -> list[str]:
    """Write the files of a server with two actors; return its options."""
    (folder / "tokens.json").write_text(json.dumps(TOKENS))
    (folder / "policy.yaml").write_text(POLICY)
    config = folder / "omnigraph.yaml"
    config.write_text("policy:\n  file: policy.yaml\nserver:\n  auth:\n    tokens:\n      file: tokens.json\n")
    return ["--config", str(config)]


KINDS = ("lookups", "traversals", "exports", "writes", "mixed")


def figures(
    kinds: tuple[str, ...] = KINDS, *, count: int = QUESTIONS, interval_s: float = INTERVAL_S
) -> dict[str, float]:
    """Return the percentile alone, and for each kind of flood the percentile and its ratio."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        graph = build(folder)
        for kind in kinds:
            with serving(graph.uri, *options(folder)) as (port, pid, _):
                ask(port, 20, 0.01)
                alone = p99_ms(ask(port, count, interval_s))
                during, counts = flooded(port, kind, count, interval_s)
                found[f"{kind}: alone, p99 ms"] = alone
                found[f"{kind}: during the flood, p99 ms"] = during
                found[f"{kind}: ratio"] = during / alone
                found[f"{kind}: answers of the flood"] = float(counts.get("200", 0))
                found[f"{kind}: refusals of the flood"] = float(sum(counts.values()) - counts.get("200", 0))
                found[f"{kind}: memory, MB"] = resident_mb(pid)
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["flood"]:
        asyncio.run(_flood(int(sys.argv[2]), sys.argv[3]))
    else:
        chosen = tuple(kind for kind in KINDS if kind in sys.argv) or KINDS
        full = {"count": 200, "interval_s": 1.0} if "--full" in sys.argv else {}
        for one in chosen:
            for figure, value in figures((one,), **full).items():
                print(f"{figure:<60} {value:12,.3f}", flush=True)
