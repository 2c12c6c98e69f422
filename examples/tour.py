"""A tour of OmniGraph, from the schema of a graph to a server with tokens and a policy.

The data are those of `omnigraph demo`: a field station with people, projects and some thousand notes, generated from a
seed. Each step prints its purpose and its run time. Some steps must fail, which their description states. The load runs
on Spark, like a large load; `--engine memory` avoids the start of Spark. The server listens on a free port of this
machine and ends with the tour.
"""

from __future__ import annotations

import argparse
import http.client
import importlib.util
import itertools
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from omnigraph.cli.main import run
from omnigraph.demo.build import write_files

CHANGE = "change -q station.gq"
FERRY = "-p handle=ana-abt -p code=ferry-timetable -p title='Ferry timetable'"
STEPS: list[tuple[str, str, int]] = [
    ("A schema declares node and edge types. Check it.", "schema check station.pg", 0),
    ("A graph is a folder, created from a schema.", "init --schema station.pg station.omni --as maren-friis", 0),
    (
        "Load 3,400 nodes and 13,000 edges in one commit; embeddings of the notes are computed locally.",
        "load --data station.jsonl --mode merge --engine ENGINE --message 'the notes so far' --as maren-friis",
        0,
    ),
    ("Compact tables and build indexes, as one commit.", "optimize", 0),
    ("Check queries without running them.", "lint --query station.gq", 0),
    (
        "An error has a position and a hint (must fail).",
        "read -e 'query q() { match { $p: Persn } return { $p.name } }'",
        1,
    ),
    (
        "Search the notes: vector and text search are ranked separately, then fused.",
        'read --alias recall "flooding in the harbour"',
        0,
    ),
    ("Colleagues on the same projects: two hops and an aggregate.", "read --alias colleagues ana-abt", 0),
    ("Active projects without notes this year: a negation.", "read -q station.gq -n silent", 0),
    ("Show the plan of a query.", "explain -q station.gq -n recall", 0),
    ("Create a branch for changes; it copies no data.", "branch create review/spring", 0),
    ("Insert a project on the branch.", f"{CHANGE} -n start -b review/spring {FERRY} --as ana-abt", 0),
    (
        "Update another project on the branch.",
        f"{CHANGE} -n set_status -b review/spring -p code=harbour-watch -p status=done",
        0,
    ),
    ("Show the changes of the branch.", "diff main review/spring", 0),
    ("Update the same project on main.", f"{CHANGE} -n set_status -p code=harbour-watch -p status=paused", 0),
    (
        "A merge with conflicts reports them and writes nothing (must fail).",
        "branch merge review/spring",
        1,
    ),
    ("Preview the merge.", "branch merge review/spring --preview", 0),
    (
        "Resolve the conflict; the merge is one commit with two parents.",
        "branch merge review/spring --resolve theirs --delete-branch --message 'spring, as reviewed'",
        0,
    ),
    ("Read the merged project.", "read --alias project harbour-watch", 0),
    ("Read it as of the first load: every commit is readable.", "read --alias project harbour-watch --at 2", 0),
    ("List the commits.", "commit list", 0),
    (
        "A change that violates a constraint is rejected (must fail).",
        'change -e \'query q() { insert Wrote { from: "nobody", to: "note-0001" } }\'',
        1,
    ),
    ("Check every invariant of the stored graph.", "verify", 0),
]


POLICY = """\
version: 1
groups:
  staff: [ana-abt]
protected_branches: [main]
rules:
  - id: staff-read
    allow: { actors: { group: staff }, actions: [read], branch_scope: any }
  - id: staff-change-drafts
    allow: { actors: { group: staff }, actions: [change], branch_scope: unprotected }
"""
SETTINGS = """
policy: { file: policy.yaml }
server: { auth: { tokens: { file: tokens.json } } }
"""
TITLE = "query title($code: String) { match { $p: Project { code: $code } } return { $p.title, $p.status } }"
PAUSE = 'query pause($code: String) { update Project set { status: "paused" } where code = $code }'
WAIT_S = 60.0


class TourError(Exception):
    """A step that did not end as it must."""


class Tour:
    """Numbers the steps and prints their purpose, their output and their run time."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    @contextmanager
    def step(self, why: str) -> Iterator[None]:
        """Print the purpose of a step, and at its end its run time."""
        print(f"\n── {next(self._numbers)}. {why}", flush=True)
        start = time.perf_counter()
        yield
        print(f"({time.perf_counter() - start:.2f} s)", flush=True)

    def command(self, why: str, words: str, expected: int = 0) -> None:
        """Run one command of the program."""
        with self.step(why):
            print(f"$ omnigraph {words}", flush=True)
            code = run(["--quiet", *shlex.split(words)])
            sys.stdout.flush()
            if code != expected:
                raise TourError(f"'omnigraph {words}' exited with {code}, not {expected}")


def configure_server(tour: Tour) -> str:
    """Write a policy and the settings of the server, and return a new token."""
    with tour.step("A policy allows staff to read every branch, and to change all but main."):
        Path("policy.yaml").write_text(POLICY, encoding="utf-8")
        with Path("omnigraph.yaml").open("a", encoding="utf-8") as file:
            file.write(SETTINGS)
        print(f"$ cat policy.yaml\n{POLICY}$ tail -2 omnigraph.yaml{SETTINGS}", end="")
    tour.command("Check the policy.", "policy validate")
    with tour.step("Create a token for one person; the file contains only its hash."):
        words = "token create --actor ana-abt --name laptop tokens.json"
        printed = StringIO()
        with redirect_stdout(printed):
            code = run(["--quiet", *words.split()])
        token = printed.getvalue().strip()
        print(f"$ omnigraph {words}\n{token[:9]}…")
        if code or not token:
            raise TourError(f"no token was created (exit code {code})")
    return token


@contextmanager
def serving(tour: Tour) -> Iterator[str]:
    """Run `omnigraph serve` as a process and yield its address; the process ends in every case."""
    words = ["serve", "--bind", "127.0.0.1:0"]
    command = [sys.executable, "-m", "omnigraph", *words]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log, ExitStack() as stack:
        with tour.step("Serve the graph over HTTP on a free port of this machine."):
            print(f"$ omnigraph {' '.join(words)} &", flush=True)
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)  # noqa: S603
            stack.enter_context(process)
            stack.callback(process.kill)
            line = first_line(process)
            print(line)
        if not line:
            log.seek(0)
            raise TourError(f"the server did not start:\n{log.read()}")
        yield line.partition("=")[2]
        with tour.step("Stop the server; requests in progress would be finished."):
            print(f"$ kill {process.pid}")
            process.terminate()
            print(f"exit code {process.wait(WAIT_S)}")


def first_line(process: subprocess.Popen[str]) -> str:
    """Return the first line of output, or nothing if the process ends or does not print within a minute."""
    assert process.stdout is not None
    timer = threading.Timer(WAIT_S, process.kill)
    timer.start()
    try:
        return process.stdout.readline().strip()
    finally:
        timer.cancel()


def send(address: str, path: str, token: str, body: dict[str, Any], expected: int) -> None:
    """Send one request with a token, and print it with its answer."""
    text = json.dumps(body, indent=1)
    print(f"POST {path} HTTP/1.1\nAuthorization: Bearer {token[:9]}…\n\n{text}\n", flush=True)
    connection = http.client.HTTPConnection(address, timeout=WAIT_S)
    try:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request("POST", path, text, headers)
        answer = connection.getresponse()
        document = json.loads(answer.read())
    finally:
        connection.close()
    print(f"HTTP/1.1 {answer.status} {answer.reason}\n\n{json.dumps(document, indent=1)}")
    if answer.status != expected:
        raise TourError(f"POST {path} answered {answer.status}, not {expected}")


def serve(tour: Tour) -> None:
    """Serve the graph, query it, and show a request that the policy denies."""
    if importlib.util.find_spec("cedarpy") is None:
        print("\nThe server with a policy is left out: it needs pip install 'omnigraph[server]'.")
        return
    token = configure_server(tour)
    harbour = {"code": "harbour-watch"}
    with serving(tour) as address:
        with tour.step("Query the graph over HTTP."):
            send(address, "/query", token, {"query": TITLE, "params": harbour}, 200)
        with tour.step("The policy denies a change of main (must fail)."):
            send(address, "/mutate", token, {"query": PAUSE, "params": harbour}, 403)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="A tour of OmniGraph.")
    parser.add_argument("--engine", choices=("spark", "memory"), default="spark", help="the engine of the load")
    engine = parser.parse_args(arguments).engine
    started = time.perf_counter()
    here = Path.cwd()
    tour = Tour()
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        os.chdir(folder)
        try:
            for why, words, expected in STEPS:
                tour.command(why, words.replace("ENGINE", engine), expected)
            serve(tour)
        except TourError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        finally:
            os.chdir(here)
    print(f"\nDone in {time.perf_counter() - started:.1f} s. To continue on your own, and in the web explorer:")
    print("  .venv/bin/omnigraph demo\n  cd omnigraph-demo && ../.venv/bin/omnigraph ui station.omni")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
