"""Exit codes and messages of commands that fail."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import document, jsonl
from support.waiting import wait_for


def test_usage_errors_have_hints(folder, cli):
    code, out, err = cli("load", "--data", "x.jsonl")
    assert (code, out) == (2, "")
    assert err == (
        "error: --mode is required: merge (add or update), append (add only) or overwrite\n"
        "usage: omnigraph load [OPTIONS] [FILE]... [URI]\nhint: run 'omnigraph load --help' for the options\n"
    )
    assert cli("load", "--mode", "merge")[2].startswith("error: no file was given; write: omnigraph load FILE [URI]")
    assert "did you mean 'branch'?" in cli("brnch", "list")[2]


def test_unexpected_exception_is_reported_without_traceback(graph, cli, monkeypatch):
    monkeypatch.setattr("omnigraph.graph.Graph.branches", lambda _: 1 / 0)
    code, out, err = cli("branch", "list", "--json")
    assert code == 1
    assert json.loads(out)["code"] == "internal"
    assert err.startswith("error: internal error: ZeroDivisionError: division by zero\nhint: ")
    monkeypatch.setenv("OMNIGRAPH_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        cli("branch", "list")


@pytest.mark.parametrize(
    "words",
    [["export"], ["read", "-e", "match { $p: Person } return { $p.name }", "-f", "csv"], ["diff", "1", "main"]],
    ids=lambda words: words[0],
)
def test_closed_output_exits_with_141(graph, cli, words):
    Path("many.jsonl").write_text(jsonl(*({"type": "Person", "data": {"name": f"person {n}"}} for n in range(20_000))))
    assert cli("load", "-d", "many.jsonl", "--mode", "merge")[0] == 0
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-m", "omnigraph", *words], stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 141


def reads_stdin(pid: int) -> bool:
    """True if a process is blocked in a read of its input. An interrupt just before the system call has no effect."""
    number, *arguments = Path(f"/proc/{pid}/syscall").read_text().split()
    return number in READ and arguments[:1] == ["0x0"]


READ = {"0", "63"}
"""The number of the system call `read` on x86-64 and on 64-bit ARM."""


@pytest.mark.parametrize(
    "reading",
    [False, pytest.param(True, marks=pytest.mark.skipif(sys.platform != "linux", reason="system calls of Linux"))],
    ids=["imports the engine", "waits for records"],
)
def test_interrupt_exits_with_130_and_changes_nothing(graph, cli, reading):
    command = [sys.executable, "-m", "omnigraph", "load", "-d", "-", "--mode", "merge"]
    with Path("omnigraph.yaml").open("a") as config:
        config.write("unknown: {}\n")  # its warning shows that the command has started
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stderr.readline().startswith(b"warning: unknown key")
        if reading:
            wait_for(lambda: reads_stdin(process.pid), "the read of records")
        process.send_signal(signal.SIGINT)
        code, said = process.wait(timeout=60), process.stderr.read().decode()
        assert (code, said, process.stdout.read()) == (130, "interrupted: nothing was written\n", b"")
    assert len(document(cli("commit", "list", "--json"))["commits"]) == 2
