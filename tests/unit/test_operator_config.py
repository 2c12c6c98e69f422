"""The operator file: keys, names, contradictions, and its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.config import find_config
from omnigraph.errors import InputError
from omnigraph.operator_config import OperatorConfig, home, parse_operator, read_operator, token_variable

FULL = """
operator: { actor: act-maren }
servers:
  reading-room: { url: "https://Graph.Museum.example/" }
  night: { url: "http://127.0.0.1:8080/base" }
clusters:
  museum: { root: "s3://museum-archive/clusters/main" }
defaults: { output: kv, table_max_column_width: 60, table_cell_layout: wrap, server: night, default_graph: loans }
profiles:
  lab: { store: ./bench.omni }
  late: { server: night, default_graph: loans }
aliases:
  loans: { server: reading-room, graph: loans, query: open_loans, args: [since], params: { limit: 20 }, format: table }
  local: { server: night, file: loans.gq, name: open_loans }
"""


def parse(text: str) -> OperatorConfig:
    return parse_operator(text, Path("home/config.yaml"))


def test_complete_file():
    operator = parse(FULL)
    assert operator.warnings == ()
    assert operator.servers == {
        "reading-room": "https://graph.museum.example",
        "night": "http://127.0.0.1:8080/base",
    }
    assert operator.get_server("night") == "http://127.0.0.1:8080/base"
    assert operator.get_server("https://other.example/") == "https://other.example"
    assert operator.get_profile("lab").store == "./bench.omni"
    assert (operator.get_profile("late").server, operator.get_profile("late").default_graph) == ("night", "loans")
    alias = operator.get_alias("loans")
    assert (alias.server, alias.graph, alias.query, alias.args) == ("reading-room", "loans", "open_loans", ("since",))
    assert (alias.params, alias.format) == ({"limit": 20}, "table")
    local = operator.get_alias("local")
    assert (local.query, local.file, local.query_name) == (None, "loans.gq", "open_loans")
    assert operator.resolve("loans.gq") == Path("home/loans.gq")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("servers: {a: {}}", "'servers.a.url' is missing"),
        ("servers: {a: {url: 'ftp://x'}}", "'servers.a.url': 'ftp://x' is not an http or https address"),
        ("servers: {a: {url: 'https://u:p@x'}}", "contains a user name or password"),
        ("servers: {a b: {url: 'https://x'}}", "the server name 'a b' contains a character"),
        ("servers: {a-b: {url: 'https://x'}, a_b: {url: 'https://y'}}", "share the variable OMNIGRAPH_TOKEN_A_B"),
        ("servers: {a.b: {url: 'https://x'}}", "'a.b' under 'servers' contains a dot"),
        ("clusters: {a: {}}", "'clusters.a.root' is missing"),
        ("profiles: {a: {}}", "'profiles.a.store' or 'profiles.a.server' is missing"),
        ("profiles: {a: {store: x, server: 'https://y'}}", "'profiles.a.store' and 'profiles.a.server' exclude"),
        ("profiles: {a: {store: x, default_graph: y}}", "'profiles.a.store' and 'profiles.a.default_graph' exclude"),
        ("profiles: {a: {store: 'https://y'}}", "write it as 'profiles.a.server'"),
        ("profiles: {a: {server: b}}", "'profiles.a.server' names no server 'b'; defined servers: none"),
        ("defaults: {store: x, server: 'https://y'}", "'defaults.store' and 'defaults.server' exclude each other"),
        ("defaults: {store: x, default_graph: y}", "'defaults.store' and 'defaults.default_graph' exclude each other"),
        ("aliases: {a: {query: q}}", "'aliases.a.server' is missing"),
        ("aliases: {a: {server: 'https://y'}}", "'aliases.a.query' or 'aliases.a.file' is missing"),
        ("aliases: {a: {server: 'https://y', query: q, file: f}}", "'aliases.a.query' and 'aliases.a.file' exclude"),
        ("aliases: {a: {server: 'https://y', query: q, name: f}}", "'aliases.a.name' requires 'aliases.a.file'"),
        ("aliases: {a: {server: 'https://y', query: q, params: [1]}}", "'aliases.a.params' must be a map, not a list"),
        ("defaults: {output: xml}", "'defaults.output' must be one of table, kv, csv, json, jsonl, not 'xml'"),
    ],
)
def test_contradictions_are_errors(text, said):
    with pytest.raises(InputError) as caught:
        parse(text)
    assert caught.value.code == "bad_config"
    assert said in caught.value.message
    assert "home/config.yaml" in caught.value.message


def test_unknown_keys_warn_and_a_token_has_its_place():
    operator = parse("server: {}\nservers: {a: {url: 'https://x', token: s3cret}}")
    assert operator.warnings == (
        "unknown key 'server' in home/config.yaml (did you mean 'servers'?)",
        "unknown key 'servers.a.token' in home/config.yaml "
        "(the file holds no tokens; 'omnigraph login NAME' stores one)",
    )
    assert "s3cret" not in repr(operator)


def test_unknown_names_list_known_names():
    operator = parse(FULL)
    with pytest.raises(InputError, match="no server named 'nihgt'; defined servers: 'night', 'reading-room'") as caught:
        operator.get_server("nihgt")
    assert (caught.value.code, caught.value.hint) == ("unknown_server", "did you mean 'night'?")
    with pytest.raises(InputError, match="no profile named 'x'; defined profiles: 'lab', 'late'") as caught:
        operator.get_profile("x")
    assert caught.value.hint == "define it under 'profiles:' in home/config.yaml"
    with pytest.raises(InputError, match="no alias named 'x'; defined aliases: 'loans', 'local'"):
        operator.get_alias("x")


def test_folder_and_missing_file(tmp_path):
    assert home({}) == Path.home() / ".omnigraph"
    assert home({"OMNIGRAPH_HOME": f" {tmp_path} "}) == tmp_path
    environ = {"OMNIGRAPH_HOME": str(tmp_path)}
    assert read_operator(environ).values == {}
    (tmp_path / "config.yaml").write_text(FULL)
    assert read_operator(environ).get_profile("lab").store == "./bench.omni"
    config = find_config(None, environ)
    assert config.get("cli.actor") == "act-maren"
    assert config.get("cli.output_format") == "kv"
    assert config.origin("cli.actor") == str(tmp_path / "config.yaml")


def test_user_without_a_home(monkeypatch):
    def unknown() -> Path:
        raise RuntimeError("could not determine home directory")

    monkeypatch.setattr(Path, "home", unknown)
    assert read_operator({}).values == {}
    with pytest.raises(InputError, match="home folder") as caught:
        home({})
    assert caught.value.code == "no_home"
    assert read_operator({"OMNIGRAPH_HOME": "/dev/null/nowhere"}).values == {}


def test_folder_of_another_user(monkeypatch):
    def denied(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_file", denied)
    assert read_operator({"OMNIGRAPH_HOME": "/root/.omnigraph"}).values == {}


def test_variable_of_a_token():
    assert token_variable("reading-room") == "OMNIGRAPH_TOKEN_READING_ROOM"
