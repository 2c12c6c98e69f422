"""A graph in a process that is made by fork: each process has its own connections.

The scenarios fork a process of their own, in which no other test has loaded libraries that do not survive a fork.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import RemoteError
from support.scripted_server import WAIT_S, answer, scripted

CALLS = 10


def in_child(work: Callable[[], object]) -> int:
    """Start a process that does some work; return its id. Its exit code is 0 if the work succeeds.

    Another exit code comes with a traceback on standard error.
    """
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def exit_code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def echo(request: Any) -> bytes:
    return answer(200, {"text": json.loads(request.body)["query"], "plan_hash": "x"})


def ask(graph: og.RemoteGraph, name: str) -> None:
    for number in range(CALLS):
        assert str(graph.explain(f"{name}{number}")) == f"{name}{number}"


def processes_do_not_share_connections() -> None:
    barrier = threading.Barrier(2)

    def script(request: Any) -> bytes:
        # Two requests are always under way: with a shared connection, each process would read the other's answer.
        barrier.wait(WAIT_S)
        return echo(request)

    with (
        scripted(script) as server,
        og.connect(server.url) as graph,
        scripted(echo) as first,
        og.connect(first.url) as other,
    ):
        ask(other, "before")
        child = in_child(lambda: (ask(graph, "child"), ask(other, "child")))
        ask(graph, "parent")
        ask(other, "parent")
        # Both servers run until the child ends.
        assert exit_code(child) == 0


def an_asynchronous_graph() -> None:
    async def use(graph: og.AsyncRemoteGraph) -> None:
        for number in range(CALLS):
            assert str(await graph.explain(f"q{number}")) == f"q{number}"

    async def scenario(url: str) -> int:
        async with await og.aconnect(url) as graph:
            await use(graph)
            code = await asyncio.to_thread(lambda: exit_code(in_child(lambda: asyncio.run(use(graph)))))
            await use(graph)
            return code

    with scripted(echo) as server:
        assert asyncio.run(scenario(server.url)) == 0


def a_result_is_read_by_the_process_that_requested_it() -> None:
    sink = pa.BufferOutputStream()
    schema = pa.schema([("n", pa.int64())], metadata={"graph_commit_id": "01A", "row_count": "100000"})
    with pa.ipc.new_stream(sink, schema) as writer:
        for _ in range(10):
            writer.write_batch(pa.record_batch([pa.array(range(10_000))], schema=schema))
    body = sink.getvalue().to_pybytes()
    with scripted(lambda _: answer(200, body)) as server, og.connect(server.url) as graph:
        result = graph.query("query q() { match { $p: P } return { $p.n } }")

        def read() -> None:
            with pytest.raises(RemoteError, match="process"):
                result.to_arrow()
            assert len(result.to_arrow()) == 100_000

        assert exit_code(in_child(read)) == 0
        assert len(result.to_arrow()) == 100_000


SCENARIOS: dict[str, Callable[[], None]] = {
    scenario.__name__: scenario
    for scenario in (
        processes_do_not_share_connections,
        an_asynchronous_graph,
        a_result_is_read_by_the_process_that_requested_it,
    )
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_forked_processes(scenario: str) -> None:
    tests = str(Path(__file__).parents[3])
    paths = os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, __file__, scenario]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    SCENARIOS[sys.argv[1]]()
