"""Server processes on fixed ports, stopped and killed in turn and started again."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.serving import environment

HOST = "127.0.0.1"
PROGRAM = "omnigraph.cli.commands.serve.server_program"
START_S = 120.0
STOP_S = 60.0
"""Longer than the time that writes get at shutdown."""
POLICY = """version: 1
groups:
  team: [{actors}]
rules:
  - id: team-works
    allow:
      actors: {{ group: team }}
      actions: [read, export, change, maintain, branch_create, branch_delete, branch_merge]
"""


def token_of(actor: str) -> str:
    """The token of an actor."""
    return f"token-of-{actor}"


class Slot:
    """A port and the process that listens on it."""

    def __init__(self, folder: Path, uri: str, name: str, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._uri = uri
        self._environ = environ
        self.log = folder / f"{name}.log"
        self.port = _free_port()
        self.exits: Counter[str] = Counter()
        """The number of ends, by signal and exit code."""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start a process and wait until it serves."""
        command = [sys.executable, "-m", PROGRAM, self._uri, "--bind", f"{HOST}:{self.port}"]
        with self.log.open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                command, cwd=self._folder, env=self._environ, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("OMNIGRAPH_LISTEN_ADDR="), self.log.read_text(encoding="utf-8")[-3000:]

    def end(self, number: signal.Signals) -> None:
        """Send a signal and wait for the end of the process."""
        process = self._process
        assert process is not None
        assert process.poll() is None, f"the server on port {self.port} ended by itself with {process.returncode}"
        process.send_signal(number)
        try:
            code = process.wait(STOP_S)
        finally:
            self.kill()
        self.exits[f"{number.name} {code}"] += 1

    def kill(self) -> None:
        """Kill the process if it runs."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        self._process = None


class Servers:
    """Some servers of one graph."""

    def __init__(self, folder: Path, uri: str, actors: Sequence[str], count: int, environ: Mapping[str, str]) -> None:
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        tokens = folder / "tokens.json"
        tokens.write_text(json.dumps({actor: token_of(actor) for actor in actors}))
        (folder / "policy.yaml").write_text(POLICY.format(actors=", ".join(actors)))
        (folder / "omnigraph.yaml").write_text("policy: {file: policy.yaml}\n")
        variables = {
            "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(tokens),
            "OMNIGRAPH_LOG": "warn",
            "TMPDIR": str(self.temporary),
        }
        own = environment(**environ, **variables)
        self.slots = [Slot(folder, uri, f"server-{number}", own) for number in range(count)]
        self.failures: list[BaseException] = []

    @property
    def kills(self) -> Counter[str]:
        """The number of ends, by signal and exit code."""
        return sum((slot.exits for slot in self.slots), Counter[str]())

    def roll(self, seconds: float, every_s: float) -> None:
        """Stop and kill the servers in turn, and start each one again, until the time is over."""
        threads: dict[int, threading.Thread] = {}
        begin = time.monotonic()
        turn = 0
        while (left := begin + seconds - time.monotonic()) > 0 and not self.failures:
            time.sleep(min(every_s, left))
            slot = turn % len(self.slots)
            if slot in threads:
                threads[slot].join(START_S + STOP_S)
            number = signal.SIGTERM if turn % 2 else signal.SIGKILL
            threads[slot] = threading.Thread(target=self._restart, args=(self.slots[slot], number))
            threads[slot].start()
            turn += 1
        for thread in threads.values():
            thread.join(START_S + STOP_S)

    def start(self) -> None:
        """Start all servers at once."""
        starts = [threading.Thread(target=self._start, args=(slot,)) for slot in self.slots]
        for start in starts:
            start.start()
        for start in starts:
            start.join(START_S)
        assert not self.failures, self.failures

    def _start(self, slot: Slot) -> None:
        try:
            slot.start()
        except BaseException as error:
            self.failures.append(error)

    def _restart(self, slot: Slot, number: signal.Signals) -> None:
        try:
            slot.end(number)
        except BaseException as error:
            self.failures.append(error)
        else:
            self._start(slot)

    def stop(self) -> None:
        """Stop all servers."""
        for slot in self.slots:
            slot.end(signal.SIGTERM)


@contextmanager
def servers_of(
    folder: Path, uri: str, actors: Sequence[str], count: int = 3, environ: Mapping[str, str] | None = None
) -> Iterator[Servers]:
    """Start servers; those that are left at the end of the block are killed."""
    servers = Servers(folder, uri, actors, count, environ or {})
    try:
        servers.start()
        yield servers
    finally:
        for slot in servers.slots:
            slot.kill()


def _free_port() -> int:
    """Return a port below those of outgoing connections, which would take it while its server restarts."""
    while True:
        port = random.randrange(12_000, 32_000)
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind((HOST, port))
            return port
