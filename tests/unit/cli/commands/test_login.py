"""`omnigraph login`, `logout` and `profile`."""

from __future__ import annotations

import io
import stat
from pathlib import Path

import pytest

from support.commands import Cli, document

OPERATOR = """
servers: { room: { url: "https://graph.example/" } }
profiles:
  lab: { store: ./bench.omni }
  late: { server: room, default_graph: loans }
"""


@pytest.fixture
def home(folder: Path) -> Path:
    (folder / "home").mkdir()
    (folder / "home" / "config.yaml").write_text(OPERATOR)
    return folder / "home"


def test_token_from_stdin(home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("og_secret\nmore\n"))
    answer = cli("login", "room", "--json")
    path = home / "credentials"
    assert document(answer) == {"server": "room", "credentials_path": str(path), "declared": True}
    assert "og_secret" not in answer[1] + answer[2]
    assert "token = og_secret\n" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert document(cli("logout", "room", "--json"))["declared"] is True
    assert "og_secret" not in path.read_text()
    assert cli("logout", "room")[:2] == (0, f"there is no token of room in {path}\n")


def test_token_as_an_option_for_an_unknown_server(home: Path, cli: Cli):
    code, out, errors = cli("login", "elsewhere", "--token", "og_secret")
    assert (code, out) == (0, f"token of elsewhere stored in {home / 'credentials'}\n")
    assert "names no server 'elsewhere'" in errors
    assert "og_secret" not in out + errors
    assert document(cli("logout", "elsewhere", "--json"))["declared"] is False


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["login", "https://graph.example", "--token", "og_secret"], "bad_server_name"),
        (["login", "a/b", "--token", "og_secret"], "bad_server_name"),
        (["login", "room", "--token", "og secret"], "bad_token"),
        (["login", "room", "--token", " "], "bad_token"),
    ],
)
def test_refused_logins(home: Path, cli: Cli, words: list[str], code: str):
    answer = cli(*words, "--json")
    assert document(answer, 1)["reason"] == code
    assert not (home / "credentials").exists()


def test_readable_credentials_are_refused(home: Path, cli: Cli):
    assert cli("login", "room", "--token", "og_secret")[0] == 0
    (home / "credentials").chmod(0o644)
    answer = cli("logout", "room", "--json")
    assert document(answer, 1)["reason"] == "insecure_credentials"
    assert "og_secret" not in answer[1] + answer[2]


def test_profiles(home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch):
    assert cli("profile", "list")[1] == "lab   ./bench.omni\nlate  https://graph.example/graphs/loans\n"
    lab, late = document(cli("profile", "list", "--json"))["profiles"]
    assert lab == {"name": "lab", "store": "./bench.omni", "server": None, "default_graph": None, "uri": "./bench.omni"}
    assert document(cli("profile", "show", "late", "--json")) == late
    assert cli("profile", "show", "lab")[1] == "name: lab\nstore: ./bench.omni\nuri: ./bench.omni\n"
    code, _, errors = cli("profile", "show")
    assert (code, "OMNIGRAPH_PROFILE is not set" in errors) == (2, True)
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "late")
    assert cli("profile", "show")[1].splitlines()[0] == "name: late"
    assert document(cli("profile", "show", "gone", "--json"), 1)["reason"] == "unknown_profile"
