"""Requests over HTTP against the embedded graph and against a bare web application.

The server is a process of its own (`omnigraph serve`); the client speaks over kept-alive sockets. The bare application
answers a constant under the same ASGI server, so the ratio of throughputs is the share of the framework that remains.
`--full` streams ten million rows.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pyarrow as pa

import omnigraph as og

SCHEMA = "node Person { name: String @key age: I64? bio: String? }\nedge Knows: Person -> Person"
LOOKUP = "query one($name: String) { match { $p: Person { name: $name } } return { $p.name, $p.age } }"
EVERYONE = "query all() { match { $p: Person } return { $p.name, $p.age } }"
PAIRS = "query pairs() { match { $a: Person $b: Person $c: Person } return { count($a) as n } }"
SMALL, ROWS, ROWS_FULL = 10_000, 1_000_000, 10_000_000
CALLS = 3_000
HELLO = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

async def hello(request):
    await request.body()
    return JSONResponse({"hello": "world"})

uvicorn.run(Starlette(routes=[Route("/query", hello, methods=["POST"])]), port=int(sys.argv[1]), log_level="error")
"""
WRK = 'wrk.method = "POST"; wrk.headers["Content-Type"] = "application/json"; wrk.body = [==[%s]==]'


class Client:
    """One kept-alive connection that sends prepared requests."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._left = b""

    def send(self, request: bytes) -> bytes:
        """Send a request; return the body of its response, which has a Content-Length."""
        self._socket.sendall(request)
        data = self._left
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._receive()
        length = int(re.search(rb"content-length: (\d+)", data[:end]).group(1))
        while len(data) < end + 4 + length:
            data += self._receive()
        self._left = data[end + 4 + length :]
        if not data.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(data[:500].decode())
        return data[end + 4 : end + 4 + length]

    def _receive(self) -> bytes:
        data = self._socket.recv(1 << 16)
        if not data:
            raise ConnectionError("the server closed the connection")
        return data

    def close(self) -> None:
        self._socket.close()


def request(body: object, path: str = "/query") -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


@contextlib.contextmanager
def serving(uri: str, *options: str, log: str = "error") -> Iterator[tuple[int, int, float]]:
    """Serve a graph in a process; yields port, process id and the seconds until it was ready."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "omnigraph", "serve", uri, "--bind", "127.0.0.1:0", *options]
    environ = {**os.environ, "OMNIGRAPH_LOG": log, "OMNIGRAPH_SERVER_LIMITS_ROWS_MAX": str(10 * ROWS_FULL)}
    errors = subprocess.DEVNULL if log == "info" else None
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environ)
    try:
        port = next(int(line.rsplit(":", 1)[1]) for line in process.stdout if line.startswith("OMNIGRAPH_LISTEN_ADDR"))
        yield port, process.pid, time.perf_counter() - started
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        process.stdout.close()


@contextlib.contextmanager
def hello() -> Iterator[int]:
    """Serve a constant in a process; yields the port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", HELLO, str(port)])
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(60)


def latencies(call, count: int = CALLS) -> tuple[float, float]:
    """Milliseconds per call: median and 99th percentile."""
    for n in range(count // 10):
        call(n)
    taken = []
    for n in range(count):
        started = time.perf_counter()
        call(n)
        taken.append(time.perf_counter() - started)
    taken.sort()
    return median(taken) * 1000, taken[int(len(taken) * 0.99)] * 1000


def throughput(port: int, body: object, seconds: float = 4.0, connections: int = 8) -> float:
    """Requests per second over some connections: by `wrk` where it is installed, else by threads."""
    if shutil.which("wrk"):
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
            script.write(WRK % json.dumps(body))
            script.flush()
            command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:.0f}s", "-s", script.name]
            done = subprocess.run(
                [*command, f"http://127.0.0.1:{port}/query"], capture_output=True, text=True, check=True
            )
        if "Non-2xx" in done.stdout:
            raise RuntimeError(done.stdout)
        return float(re.search(r"Requests/sec:\s+([\d.]+)", done.stdout).group(1))
    prepared, stop, counts = request(body), time.perf_counter() + seconds, []

    def work() -> None:
        client, count = Client(port), 0
        while time.perf_counter() < stop:
            client.send(prepared)
            count += 1
        client.close()
        counts.append(count)

    threads = [threading.Thread(target=work) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


def resident_mb(pid: int) -> float:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Stream:
    """The body of a chunked response, as a file."""

    def __init__(self, port: int, sent: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=300)
        self.socket.sendall(sent)
        self.file = self.socket.makefile("rb", 1 << 20)
        while (line := self.file.readline()) not in (b"\r\n", b""):
            if line.startswith(b"HTTP/1.1") and b" 200 " not in line:
                raise RuntimeError(line.decode() + self.file.read1().decode())
        self._left = 0
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        parts, wanted = [], size if size >= 0 else 1 << 62
        while wanted:
            if not self._left:
                line = self.file.readline()
                self._left = int(line or b"0", 16)
                if not self._left:
                    break
            data = self.file.read(min(wanted, self._left))
            parts.append(data)
            wanted -= len(data)
            self._left -= len(data)
            if not self._left:
                self.file.readline()
        return b"".join(parts)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.socket.close()
        self.closed = True


def build(folder: Path, rows: int) -> og.Graph:
    graph = og.init(folder, SCHEMA)
    step = 1_000_000
    for start in range(0, rows, step):
        count = min(step, rows - start)
        names = pa.array([f"p{n}" for n in range(start, start + count)])
        table = pa.table({"name": names, "age": pa.array(range(start, start + count), pa.int64())})
        graph.load({"Person": table}, mode="append")
    return graph


def streams(folder: Path, rows: int) -> dict[str, float]:
    """Arrow streams of a table and the first line of a result, against the embedded graph."""
    graph = build(folder / "large.omni", rows)
    started = time.perf_counter()
    for _ in graph.to_batches("Person"):
        pass
    embedded = time.perf_counter() - started
    graph.query(EVERYONE).to_arrow().slice(0, 1)
    started = time.perf_counter()
    next(iter(graph.query(EVERYONE).batches(8192)))
    first_embedded = time.perf_counter() - started
    with serving(graph.uri) as (port, pid, _):
        idle, peak, done = resident_mb(pid), [0.0], threading.Event()

        def watch() -> None:
            while not done.wait(0.02):
                peak[0] = max(peak[0], resident_mb(pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        head = "GET /tables/Person HTTP/1.1\r\nHost: localhost\r\nAccept: application/vnd.apache.arrow.stream\r\n\r\n"
        started, count = time.perf_counter(), 0
        source = Stream(port, head.encode())
        for batch in pa.ipc.open_stream(source):
            count += batch.num_rows
        taken = time.perf_counter() - started
        source.close()
        done.set()
        watcher.join()
        assert count == rows, count
        by_client, client_peak = client_stream(port, rows)
        asked = request({"query": EVERYONE}).replace(b"\r\n\r\n", b"\r\nAccept: application/x-ndjson\r\n\r\n", 1)
        first = []
        for _ in range(3):
            started = time.perf_counter()
            source = Stream(port, asked)
            source.read(1)
            first.append(time.perf_counter() - started)
            source.close()
            time.sleep(0.5)
    return {
        f"Arrow stream of {rows:,} rows, to the embedded rate": embedded / taken,
        "server memory above idle during it, MB": peak[0] - idle,
        f"RemoteGraph.to_batches of {rows:,} rows, to the embedded rate": embedded / by_client,
        "client memory above idle during it, MB": client_peak,
        "first byte of NDJSON to first embedded batch": median(first) / first_embedded,
    }


CLIENT = """
import sys, threading, time, omnigraph as og
from pathlib import Path
import os

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

with og.connect(sys.argv[1]) as graph:
    graph.query("match { $p: Person } return { count($p) as n }").to_rows()
    idle, peak, count = resident(), 0.0, 0
    started = time.perf_counter()
    for batch in graph.to_batches("Person"):
        count += batch.num_rows
        peak = max(peak, resident())
    taken = time.perf_counter() - started
    assert count == int(sys.argv[2]), count
    print(taken, peak - idle)
"""


def client_stream(port: int, rows: int) -> tuple[float, float]:
    """Seconds and megabytes that a client, a process of its own, takes to read a table in batches."""
    command = [sys.executable, "-c", CLIENT, f"http://127.0.0.1:{port}", str(rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, memory = done.stdout.split()
    return float(seconds), float(memory)


def disconnect(graph: og.Graph) -> float:
    """Seconds from the disconnect of a client to the end of its query."""
    with serving(graph.uri, "--config", os.devnull) as (port, _, _):
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(request({"query": PAIRS}))
        time.sleep(0.5)
        client.close()
        started = time.perf_counter()
        probe = Client(port)
        while b'"reads","running":0' not in probe.send(b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            time.sleep(0.005)
        return time.perf_counter() - started


def observation(graph: og.Graph, sent: list[bytes]) -> float:
    """Microseconds that the log of requests and the metrics add to a lookup; both servers take turns."""
    times: tuple[list[float], list[float]] = ([], [])
    options = ("--metrics-bind", "127.0.0.1:0")
    with serving(graph.uri) as plain, serving(graph.uri, *options, log="info") as observed:
        clients = Client(plain[0]), Client(observed[0])
        for number, prepared in enumerate(sent):
            for client, taken in zip(clients, times, strict=True):
                started = time.perf_counter()
                client.send(prepared)
                if number >= len(sent) // 10:
                    taken.append(time.perf_counter() - started)
    return (median(times[1]) - median(times[0])) * 1e6


def figures(*, rows: int = ROWS) -> dict[str, float]:
    """Run everything; ratios compare with the embedded graph or the bare application in the same run."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        graph = build(folder / "small.omni", SMALL)
        params = [{"name": f"p{n % SMALL}"} for n in range(CALLS)]
        embedded = latencies(lambda n: graph.query(LOOKUP, params=params[n]).to_rows())
        found["embedded lookup, p50 ms"], found["embedded lookup, p99 ms"] = embedded
        sent = [request({"query": LOOKUP, "params": each}) for each in params]
        one = {"query": LOOKUP, "params": {"name": "p7"}}
        with hello() as bare:
            probe = Client(bare)
            found["bare application, p50 ms"] = latencies(lambda n: probe.send(sent[n]))[0]
            found["bare application, requests/s"] = throughput(bare, one)
        found["log and metrics of a lookup, us"] = observation(graph, sent)
        with serving(graph.uri) as (port, _, ready_s):
            found["start to ready, s"] = ready_s
            client = Client(port)
            over = latencies(lambda n: client.send(sent[n]))
            found["HTTP minus embedded, p50 ms"] = over[0] - embedded[0]
            found["HTTP minus embedded, p99 ms"] = over[1] - embedded[1]
            with og.connect(f"http://127.0.0.1:{port}") as remote:
                by_client = latencies(lambda n: remote.query(LOOKUP, params=params[n]).to_rows())
            found["RemoteGraph lookup minus embedded, p50 ms"] = by_client[0] - embedded[0]
            found["RemoteGraph lookup minus embedded, p99 ms"] = by_client[1] - embedded[1]
            found["HTTP, requests/s"] = throughput(port, one)
            found["HTTP to bare application, ratio"] = found["HTTP, requests/s"] / found["bare application, requests/s"]
        found |= streams(folder, rows)
    return found


if __name__ == "__main__":
    for figure, value in figures(rows=ROWS_FULL if "--full" in sys.argv else ROWS).items():
        print(f"{figure:<60} {value:12,.3f}")
