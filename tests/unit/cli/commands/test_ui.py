"""`omnigraph ui`: a server of one user, its address and its token."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from omnigraph.cli.commands.serve.ui import screen_link
from omnigraph.cli.main import run
from support.serving import WAIT_S, environment, make_graph, request

LINE = re.compile(r"(\S+) on http://(127\.0\.0\.1:\d+)/ui/#(\S+)")


@contextmanager
def running(folder: Path, *arguments: str, **variables: str) -> Iterator[str]:
    """Run `omnigraph ui` until it has printed its address, and yield the line."""
    with (folder / "stderr.txt").open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "omnigraph", "ui", *arguments],
            cwd=folder,
            env=environment(**variables),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    try:
        yield process.stdout.readline()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(WAIT_S)
        process.stdout.close()
    assert process.returncode == 0


def test_the_printed_address_carries_the_token_in_its_fragment(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "people.omni", "Ada")
    arguments = (str(graph), "--read-only", "--branch", "main", "--query", "who")
    # Settings of servers do not apply to a process of one user.
    with running(tmp_path, *arguments, OMNIGRAPH_ACTOR="ana", OMNIGRAPH_SERVER_BIND="0.0.0.0:1") as line:
        found = LINE.match(line)
        assert found is not None, (tmp_path / "stderr.txt").read_text(encoding="utf-8")
        members = parse_qs(found[3])
        assert members["to"] == ["main/query?name=who"]
        ours = {"Authorization": f"Bearer {members['token'][0]}"}
        assert len(members["token"][0]) > 40
        assert request(found[2], "/me").status == 401
        me = request(found[2], "/me", headers=ours).document
        assert me["actor_id"] == "ana"
        assert [each["graph_id"] for each in me["graphs"]] == ["people"]
        assert request(found[2], "/ui/config.json").document["read_only"] is True
        change = b'{"query": "query add() { insert Person { name: \\"Ben\\" } }"}'
        headers = {**ours, "Content-Type": "application/json"}
        refused = request(found[2], "/mutate", method="POST", body=change, headers=headers)
        assert refused.status >= 400
        assert "read-only" in refused.document["error"]


@pytest.mark.parametrize(
    ("options", "link"),
    [
        ({}, ""),
        ({"query": "a b"}, "main/query?name=a%20b"),
        ({"merge": "review/spring"}, "main/merge?source=review%2Fspring"),
    ],
)
def test_options_open_a_screen(options: dict[str, str], link: str) -> None:
    assert screen_link("main", **options) == link


def test_a_branch_is_one_part_of_the_link() -> None:
    assert screen_link("review/spring") == "review%2Fspring"


def test_without_a_graph_the_hint_names_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["ui"]) != 0
    assert "omnigraph demo" in capsys.readouterr().err


def test_a_server_has_its_own_explorer(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ui", "http://127.0.0.1:9/"]) != 0
    assert "/ui/" in capsys.readouterr().err


def test_two_screens_at_once_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ui", str(tmp_path), "--query", "a", "--merge", "b"]) == 2
    assert "--query and --merge" in capsys.readouterr().err
