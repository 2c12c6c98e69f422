"""The options that name a graph: exclusivity, precedence, and errors that list the known names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from omnigraph.cli.addresses import Address, GivenAddress, find_address
from omnigraph.cli.errors import UsageFault
from omnigraph.config import Config, parse_config
from omnigraph.errors import InputError
from omnigraph.operator_config import parse_operator
from support.commands import Cli, document

OPERATOR = """
servers:
  room: { url: "https://graph.example/" }
  one: { url: "https://one.example/graphs/a" }
profiles:
  lab: { store: ./bench.omni }
  late: { server: room, default_graph: loans }
  plain: { server: room }
"""
DEFAULTS = OPERATOR + "defaults: { server: room, default_graph: loans }\n"
CONFIG = "graphs: { a: { uri: ./a.omni }, far: { uri: 'https://far.example/' } }\n"


@dataclass
class FixedSettings:
    config: Config = field(default_factory=Config)
    environ: Mapping[str, str] = field(default_factory=dict)


def settings(operator: str = OPERATOR, config: str = CONFIG, **environ: str) -> FixedSettings:
    parsed = parse_config(config, Path("omnigraph.yaml"))
    return FixedSettings(replace(parsed, operator=parse_operator(operator, Path("home/config.yaml"))), environ)


def found(where: FixedSettings | None = None, fallback: str | None = None, **given: Any) -> Address | None:
    return find_address(GivenAddress(**given), where or settings(), fallback)


def uri(where: FixedSettings | None = None, fallback: str | None = None, **given: Any) -> str:
    address = found(where, fallback, **given)
    assert address is not None
    return address.uri


def test_each_form():
    assert uri(uri="./g.omni") == "./g.omni"
    assert uri(uri="https://H.example/") == "https://h.example"
    assert uri(uri_option="s3://b/p") == "s3://b/p"
    assert uri(target="far") == "https://far.example"
    assert uri(server="room") == "https://graph.example"
    assert uri(server="https://h.example/") == "https://h.example"
    assert uri(server="room", graph_id="a/b") == "https://graph.example/graphs/a%2Fb"
    assert uri(uri="https://h.example", graph_id="x") == "https://h.example/graphs/x"
    assert uri(store="s3://b/p") == "s3://b/p"
    assert uri(profile="lab") == "./bench.omni"
    assert uri(profile="late") == "https://graph.example/graphs/loans"
    assert uri(profile="late", graph_id="x") == "https://graph.example/graphs/x"


FORMS = {"uri": "./a", "uri_option": "./b", "target": "a", "server": "room", "store": "./c", "profile": "lab"}


@pytest.mark.parametrize("first", FORMS)
@pytest.mark.parametrize("second", FORMS)
def test_forms_exclude_each_other(first, second):
    if first == second:
        return
    with pytest.raises(UsageFault, match="more than one graph was given") as caught:
        found(**{first: FORMS[first], second: FORMS[second]})
    assert FORMS[first] in caught.value.message
    assert FORMS[second] in caught.value.message


def test_precedence():
    both = settings(DEFAULTS, CONFIG + "cli: { graph: a }", OMNIGRAPH_PROFILE="lab")
    assert uri(both, uri="./explicit") == "./explicit"
    assert uri(both, profile="plain") == "https://graph.example"
    assert uri(both) == "./bench.omni"
    assert uri(both, fallback="far") == "./bench.omni"
    configured = settings(DEFAULTS, CONFIG + "cli: { graph: a }")
    assert uri(configured) == "./a.omni"
    assert uri(configured, fallback="far") == "https://far.example"
    address = found(settings(DEFAULTS))
    assert address == Address("https://graph.example/graphs/loans", "home/config.yaml")
    assert uri(settings(DEFAULTS), graph_id="x") == "https://graph.example/graphs/x"
    assert uri(settings("defaults: { store: ./d.omni }")) == "./d.omni"
    assert uri(settings("defaults: { store: ~/d.omni }")) == str(Path.home() / "d.omni")
    assert found(settings()) is None
    assert found(settings(OMNIGRAPH_PROFILE="  ")) is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"graph_id": "x"}, "--graph requires a server"),
        ({"graph_id": "x", "uri": "./a"}, "'./a' is in storage; omit --graph, or give --server"),
        ({"graph_id": "x", "profile": "lab"}, "'./bench.omni' is in storage"),
        ({"store": "https://h.example"}, "give a server as --server https://h.example"),
        ({"server": "s3://b/p"}, "give a folder or bucket as --store"),
        ({"target": "https://u:secret@h.example"}, "--target must be a name, not an address"),
    ],
)
def test_options_that_cannot_be_used(given, said):
    with pytest.raises(UsageFault) as caught:
        found(**given)
    assert said in caught.value.message
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ({"server": "rom"}, "unknown_server", "defined servers: 'one', 'room'"),
        ({"profile": "x"}, "unknown_profile", "defined profiles: 'lab', 'late', 'plain'"),
        ({"target": "x"}, "unknown_target", "defined: 'a', 'far'"),
        ({"server": "one", "graph_id": "b"}, "bad_server_address", "names the graph 'a' already"),
        ({"uri": "https://u:secret@h.example"}, "bad_server_address", "contains a user name or password"),
    ],
)
def test_wrong_names_and_addresses(given, code, said):
    with pytest.raises(InputError) as caught:
        found(**given)
    assert caught.value.code == code
    assert said in caught.value.message
    assert "secret" not in caught.value.message


def test_environment_profile_must_exist():
    with pytest.raises(InputError, match="no profile named 'gone'"):
        found(settings(OMNIGRAPH_PROFILE="gone"))


def test_kinds():
    assert [Address.of(text, "").kind for text in ("./a", "file:///a", "s3://b/p", "HTTP://h")] == [
        "local storage",
        "local storage",
        "remote storage",
        "server",
    ]


# -- through the command line --------------------------------------------------------------------------


@pytest.fixture
def operator(folder: Path) -> Path:
    (folder / "home").mkdir()
    (folder / "home" / "config.yaml").write_text(OPERATOR + "  here: { store: g.omni }\n")
    return folder / "home"


def test_graph_of_a_profile_and_of_a_store(operator: Path, graph: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch):
    (graph.parent / "omnigraph.yaml").unlink()
    assert cli("branch", "list", "--profile", "here")[1] == "main\n"
    assert cli("branch", "list", "--store", "g.omni")[1] == "main\n"
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "here")
    assert cli("branch", "list")[1] == "main\n"
    assert document(cli("config", "--json"))["settings"][1] == {
        "key": "graph",
        "value": "g.omni",
        "origin": "OMNIGRAPH_PROFILE",
    }
    monkeypatch.delenv("OMNIGRAPH_PROFILE")
    code, _, errors = cli("branch", "list")
    assert code == 1
    assert all(word in errors for word in ("--uri", "--target", "--server", "--profile", "cli.graph"))


def test_commands_that_use_a_spelling_themselves(operator: Path, graph: Path, cli: Cli):
    assert cli("log", "--graph", "--store", "g.omni")[0] == 0
    code, _, errors = cli("log", "--graph-id", "x", "--store", "g.omni")
    assert (code, "is in storage" in errors) == (2, True)
    query = "match { $p: Person } return { $p.name }"
    code, out, errors = cli("explain", "-e", query, "--profile", "--profile-name", "here")
    assert code == 0, errors
    assert "ms" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["init", "s.pg", "--server", "room"], "the command works in storage"),
        (["fmt", "--profile", "lab", "q.gq"], "'omnigraph fmt' addresses no graph"),
    ],
)
def test_commands_without_a_server(folder: Path, cli: Cli, words: list[str], said: str):
    code, _, errors = cli(*words)
    assert code == 2
    assert said in errors


def test_operator_values_are_shown(operator: Path, cli: Cli):
    shown = {row["key"]: row for row in document(cli("config", "--json"))["settings"]}
    assert shown["servers.room.url"]["value"] == "https://graph.example/"
    assert shown["profiles.lab.store"]["origin"] == str(operator / "config.yaml")
    assert os.fspath(operator) not in str(shown["graph"])
