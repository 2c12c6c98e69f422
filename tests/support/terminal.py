"""A terminal for the sessions of pages that serve a graph. Beside the commands of `sessions.py` it plays:

    omnigraph serve … &          a server as a process, on a free port instead of the port in the text
    curl …                       the program `curl`, through a shell
    NAME=$(omnigraph …)          a variable; messages on stderr are printed
    kill %1                      stops the last server and waits for its end
    kill -HUP %1                 reloads the last server and waits for the reload
    cp, mkdir, mv …              programs for files, through a shell

Servers that still run at the end of the session are stopped.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from support import sessions

WAIT_S = 60.0
BIND = "127.0.0.1:8080"
_RELOADED = "reload (SIGHUP)"
_FILE_PROGRAMS = ("cp", "mkdir", "mv")
_SET = re.compile(r"(\w+)=\$\((omnigraph .*)\)")
_ADDRESS = re.compile(r"OMNIGRAPH_LISTEN_ADDR=(\S+)")


class Terminal:
    """Plays commands in the working directory; `addresses` maps an address in the text to the real one."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / ".server-log"
        self._servers: list[subprocess.Popen[str]] = []
        self._variables: dict[str, str] = {}
        self.addresses: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._servers:
            _stop(process)

    def play(self, command: str) -> str:
        """Return the output of one command, both streams."""
        variable = _SET.fullmatch(command.replace("\\\n", " "))
        if variable is not None:
            self._variables[variable[1]], printed = sessions.streams(variable[2])
            return printed
        words = shlex.split(command.replace("\\\n", " "), comments=True)
        if words[:2] == ["omnigraph", "serve"] and words[-1] == "&":
            return self._serve(words[2:-1])
        if words == ["kill", "%1"]:
            _stop(self._servers.pop())
            return ""
        if words == ["kill", "-HUP", "%1"]:
            self._reload(self._servers[-1])
            return ""
        if words[0] in _FILE_PROGRAMS:
            return _shell(command, dict(os.environ))
        if words[0] == "curl":
            return self._curl(command)
        return sessions.play(command)

    def _serve(self, words: list[str]) -> str:
        shown = words[words.index("--bind") + 1] if "--bind" in words else BIND
        given = ["127.0.0.1:0" if word == shown else word for word in words]
        bind = [] if "--bind" in words else ["--bind", "127.0.0.1:0"]
        with self._log.open("a", encoding="utf-8") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "omnigraph", "serve", *given, *bind],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._servers.append(process)
        text = _first_lines(process, 3 if "--local" in words else 1)
        address = _ADDRESS.match(text)
        assert address is not None, self._log.read_text(encoding="utf-8")
        self.addresses[shown] = address[1]
        return text.replace(address[1], shown)

    def _curl(self, command: str) -> str:
        if not _has_curl():
            pytest.skip("curl 7.82 or newer is not installed")
        text = _shell(self.with_addresses(command), {**os.environ, **self._variables})
        for shown, real in self.addresses.items():
            text = text.replace(real, shown)
        return text

    def with_addresses(self, text: str) -> str:
        """Return a text with the real addresses of the servers."""
        for shown, real in self.addresses.items():
            text = text.replace(shown, real)
        return text

    def _reload(self, process: subprocess.Popen[str]) -> None:
        """Send SIGHUP and wait until the log reports one more reload."""
        reloads = self._log.read_text(encoding="utf-8").count(_RELOADED)
        process.send_signal(signal.SIGHUP)
        end = time.monotonic() + WAIT_S
        while self._log.read_text(encoding="utf-8").count(_RELOADED) == reloads:
            if time.monotonic() > end:
                raise AssertionError("the server did not reload")
            time.sleep(0.01)


def _shell(command: str, environment: dict[str, str]) -> str:
    """Return the output of a command, both streams, and its exit code if it is not 0."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, env=environment, timeout=WAIT_S, check=False)
    text = (done.stdout + done.stderr).decode().replace("\r\n", "\n")
    text = text if text.endswith("\n") or not text else f"{text}\n"
    return text + (f"[{done.returncode}]\n" if done.returncode else "")


@cache
def _has_curl() -> bool:
    """Return True if the program `curl` has the option `--json`."""
    if shutil.which("curl") is None:
        return False
    return b"--json" in subprocess.run(["curl", "--help", "all"], capture_output=True, check=False).stdout


def _first_lines(process: subprocess.Popen[str], number: int) -> str:
    """Return the first lines of output; fewer if the process ends or does not print them in time."""
    assert process.stdout is not None
    timer = threading.Timer(WAIT_S, process.kill)
    timer.start()
    try:
        return "".join(process.stdout.readline() for _ in range(number))
    finally:
        timer.cancel()


def _stop(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    try:
        process.send_signal(signal.SIGTERM)
        process.wait(WAIT_S)
    finally:
        process.kill()
        process.wait(WAIT_S)
        process.stdout.close()
