"""Output on a terminal: colours, the pager, the width of the screen."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cli.io.colours import Colours, colours
from omnigraph.cli.io.terminal_text import drawing, visible
from omnigraph.cli.main import _Stdout, run
from support.scripted_server import answer, scripted

SCHEMA = "node Person {\n    name: String @key\n    age: I32?\n}\n"


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clean_environment: None) -> og.Graph:
    monkeypatch.chdir(tmp_path)
    graph = og.init("g.omni", SCHEMA, actor="ana")
    graph.load(
        [{"type": "Person", "data": {"name": f"p{n:03}", "age": n}} for n in range(100)], mode="merge", message="all"
    )
    graph.branch_create("side")
    graph.on("side").mutate('query q() { update Person set { age: 7 } where name = "p001" }', message="seven")
    graph.tag_create("v1")
    return graph


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environ", "terminal", "enabled"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_colours_only_on_terminals(environ, terminal, enabled):
    assert colours(Terminal() if terminal else io.StringIO(), environ).enabled is enabled


def test_diagnostic_colours_keep_the_text():
    text = "error: type error: T7: wrong\n  --> a.gq:5:9\n   5 | x\n     | ^^^\nhint: write y"
    painted = Colours(enabled=True).diagnostic(text)
    assert re.sub(r"\x1b\[[\d;]*m", "", painted) == text
    assert painted.startswith("\x1b[1;31merror:\x1b[0m")
    assert "| \x1b[31m^^^\x1b[0m" in painted
    assert Colours().diagnostic(text) == text


def on_terminal(command: list[str], *, columns: int = 60, **environ: str) -> str:
    """Output of a command on a terminal of 20 lines."""
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    size = {"COLUMNS": str(columns), "LINES": "20", "TERM": "xterm"}
    # The pseudo-terminal only makes isatty true; the size comes from the environment.
    process = subprocess.Popen(
        [sys.executable, "-m", "omnigraph", *command], stdin=slave, stdout=slave, stderr=slave,
        env={**os.environ, **size, **environ}, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    output = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ready, _, _ = select.select([master], [], [], 0.2)
        if ready:
            try:
                found = os.read(master, 65536)
            except OSError:
                break
            output += found
        elif process.poll() is not None:
            break
    process.kill()
    process.wait()
    os.close(master)
    return output.decode().replace("\r\n", "\n")


def test_table_on_terminal_has_colours_and_fits(graph):
    query = 'query q() { match { $p: Person } return { $p.name, $p.age, "' + "long " * 30 + '" as text } limit 3 }'
    shown = on_terminal(["read", "-e", query, "g.omni"], columns=60)
    assert "\x1b[1mp.name" in shown
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert max(map(len, plain.splitlines()[1:])) == 60


def test_long_output_goes_through_the_pager(graph, tmp_path):
    pager = tmp_path / "pager.py"
    pager.write_text("import sys\nprint('PAGED', len(sys.stdin.read().splitlines()))\n")
    query = "query q() { match { $p: Person } return { $p.name } limit %d }"
    command = f"{sys.executable} {pager}"
    assert "PAGED 103" in on_terminal(["read", "-e", query % 100, "g.omni"], PAGER=command)
    assert "PAGED" not in on_terminal(["read", "-e", query % 5, "g.omni"], PAGER=command), "five rows fit the screen"
    unpaged = on_terminal(["read", "-e", query % 100, "g.omni"], PAGER=command, OMNIGRAPH_PAGER="", NO_COLOR="1")
    assert "p099" in unpaged
    assert "\x1b" not in unpaged


def test_pager_may_quit_early(graph, tmp_path):
    pager = tmp_path / "pager.py"
    pager.write_text("import sys\nsys.stdin.readline()\nprint('ENOUGH')\n")
    query = "query q() { match { $p: Person, $q: Person } return { $p.name, $q.name } limit 10000 }"
    query = query.replace(", $q", "\n$q", 1)
    shown = on_terminal(["read", "-e", query, "g.omni"], PAGER=f"{sys.executable} {pager}")
    assert "ENOUGH" in shown
    assert "error" not in shown


def test_diff_on_terminal_has_colours(graph):
    shown = on_terminal(["diff", "main", "side", "g.omni"])
    assert "\x1b[33mupdate node Person p001\x1b[0m" in shown
    assert "age: \x1b[31m1\x1b[0m -> \x1b[32m7\x1b[0m" in shown


def test_log_and_status(graph, capsys):
    assert run(["log", "--graph", "--all", "g.omni"]) == 0
    lines = capsys.readouterr().out.splitlines()
    shapes = [re.sub(r"[0-9A-Z]{26}  \S+", "‹›", line) for line in lines]
    assert shapes == ["* ‹›  (side)  ana  seven", "* ‹›  (main, tag: v1)  ana  all", "* ‹›  ana  init"]
    assert run(["log", "-n", "1", "g.omni"]) == 0
    assert capsys.readouterr().out.endswith("(main, tag: v1)  ana  all\n")
    assert run(["status", "g.omni"]) == 0
    text = capsys.readouterr().out
    assert "on branch main, 2 commits" in text
    assert "node | Person |  100" in text
    assert "side  1 ahead, 0 behind" in text
    assert "tags: v1" in text


@pytest.mark.parametrize(
    ("conditions", "messages"),
    [
        (["--text", "SEV"], ["seven"]),
        (["--type", "Person", "--actor", "ana"], ["seven", "all"]),
        (["--type", "Person", "--actor", "ben"], []),
        (["--since", "2000-01-01", "--type", "Person", "-n", "1"], ["seven"]),
        (["--until", "2000-01-01"], []),
    ],
)
def test_log_selects_commits(graph, capsys, conditions, messages):
    assert run(["log", "--all", *conditions, "--json", "g.omni"]) == 0
    found = json.loads(capsys.readouterr().out)["commits"]
    assert [commit["message"] for commit in found] == messages


def test_help_is_not_truncated(capsys):
    assert run(["--help"]) == 0
    text = capsys.readouterr().out
    assert "..." not in text.replace("[ARGS]...", "")


EVIL = "a\x1b]0;title\x07\x1b[2J\x9b1A\rb\u202ec\x7f"
SHOWN = r"a\x1b]0;title\x07\x1b[2J\x9b1A\rb\u202ec\x7f"


def test_control_characters_have_no_effect_on_a_terminal(monkeypatch):
    assert visible(EVIL) == SHOWN
    assert visible("\x1b[31mred\x1b[0m\tä\n") == "\x1b[31mred\x1b[0m\tä\n"
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        print(EVIL, file=_Stdout(stream))
    assert (terminal.getvalue(), pipe.getvalue()) == (f"{SHOWN}\n", f"{EVIL}\n")
    screen = _Stdout(Terminal())
    monkeypatch.setattr(sys, "stdout", screen)
    with drawing():
        sys.stdout.write("\x1b[2J")
    sys.stdout.write("\x1b[2J")
    assert screen.getvalue() == "\x1b[2J" + r"\x1b[2J"


@pytest.mark.parametrize("status", [400, 500])
def test_errors_of_a_server(status, capsys, clean_environment):
    """The text of an error comes from the server."""
    body = {"error": EVIL, "code": "bad_request", "reason": "x", "hint": EVIL} if status == 400 else EVIL.encode()
    with scripted(lambda _: answer(status, body)) as server:
        assert run(["branch", "list", "--server", server.url]) == 1
    printed = capsys.readouterr().err
    assert SHOWN in printed
    assert "\x1b" not in printed


def test_names_of_a_server(capsys, clean_environment, monkeypatch):
    with scripted(lambda _: answer(200, {"branches": [EVIL]})) as server:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        assert run(["branch", "list", "--server", server.url]) == 0
    printed = capsys.readouterr().out
    assert SHOWN in printed
    assert "\x1b]" not in printed
