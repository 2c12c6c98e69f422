"""An MCP exchange over HTTP beside the plain route: the same point lookup as a call of a tool and as `POST /query`.

    python -m bench.mcp_exchange

The difference is the cost of the protocol: the handlers of the SDK, an event loop per exchange, an answer in two forms.
"""

from __future__ import annotations

import os
import tempfile
from itertools import count
from pathlib import Path

import pyarrow as pa

import omnigraph as og
from bench.http import LOOKUP, SCHEMA, SMALL, Client, latencies, request, serving

CALLS = 500
STORED = LOOKUP.replace("query one", "query find_one")
_numbers = count(1)


def message(method: str, params: object) -> bytes:
    """Return the request of one exchange."""
    body = {"jsonrpc": "2.0", "id": next(_numbers), "method": method, "params": params}
    return request(body, "/mcp")


def call(name: str, arguments: object) -> bytes:
    """Return the request that calls a tool."""
    return message("tools/call", {"name": name, "arguments": arguments})


def figures(calls: int = CALLS) -> dict[str, float]:
    """Times of an exchange without work, of a lookup by a tool, and of the same lookup by the plain routes."""
    with tempfile.TemporaryDirectory() as folder:
        graph = og.init(Path(folder) / "people.omni", SCHEMA)
        names = [f"p{number}" for number in range(SMALL)]
        graph.load({"Person": pa.table({"name": names, "age": list(range(SMALL))})}, mode="append")
        graph.store_query(STORED)
        with serving(graph.uri) as (port, pid, _):
            return _measure(Client(port), pid, calls)


def _measure(client: Client, pid: int, calls: int) -> dict[str, float]:
    def params(number: int) -> dict[str, str]:
        return {"name": f"p{number % SMALL}"}

    sent = {
        "ping over MCP": lambda _: message("ping", {}),
        "list of tools over MCP": lambda _: message("tools/list", {}),
        "lookup by POST /query": lambda number: request({"query": LOOKUP, "params": params(number)}),
        "lookup by the tool 'query'": lambda number: call("query", {"query": LOOKUP, "params": params(number)}),
        "lookup by POST /queries/find_one": lambda number: request({"params": params(number)}, "/queries/find_one"),
        "lookup by the tool 'find_one'": lambda number: call("find_one", params(number)),
    }
    found = {}
    for name, make in sent.items():
        answer = client.send(make(0))
        if b'"error"' in answer or b'"isError":true' in answer:
            raise RuntimeError(answer.decode())
        before = processor_ms(pid)
        found[f"{name}, ms"] = latencies(lambda number, make=make: client.send(make(number)), calls)[0]
        found[f"{name}, processor ms"] = (processor_ms(pid) - before) / (calls + calls // 10)
    client.close()
    return found


def processor_ms(pid: int) -> float:
    """Return the processor time that a process has used."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return 1000 * (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    for figure, value in figures().items():
        print(f"{figure:<50} {value:12,.2f}")
