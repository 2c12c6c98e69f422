"""The configuration file: discovery, validation, warnings and relative paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.config import Config, find_config, parse_config, read_env_file
from omnigraph.errors import InputError

FULL = """
project: { name: museum }
graphs:
  bench: { uri: ./data/museum.omni }
  archive: { uri: "s3://museum/graphs" }
  far: { uri: /abs/far.omni, bearer_token_env: MUSEUM_TOKEN }
cli: { graph: bench, branch: intake, output_format: kv, table_max_column_width: 48, table_cell_layout: wrap }
query: { roots: [gq, shared/gq] }
aliases:
  object: { command: read, query: objects.gq, name: by_number, args: [number], graph: archive, format: kv }
  move: { command: mutate, query: moves.gq, args: [number, room], branch: intake }
"""


def parse(text: str, path: str = "conf/omnigraph.yaml") -> Config:
    return parse_config(text, Path(path))


def test_complete_file():
    config = parse(FULL)
    assert config.warnings == ()
    assert config.get_graph("bench") == "conf/data/museum.omni"
    assert config.get_graph("archive") == "s3://museum/graphs"
    assert config.get_graph("far") == "/abs/far.omni"
    assert (config.get("cli.branch"), config.origin("cli.branch")) == ("intake", "conf/omnigraph.yaml")
    alias = config.get_alias("object")
    assert (alias.changes, alias.query, alias.query_name, alias.args) == (False, "objects.gq", "by_number", ("number",))
    assert (alias.graph, alias.format, alias.command) == ("archive", "kv", "read")
    assert config.get_alias("move").command == "change"


def test_defaults_without_a_file():
    config = Config()
    assert (config.get("cli.branch"), config.origin("cli.branch")) == ("main", "built in")
    assert config.get("cli.graph") is None
    with pytest.raises(InputError, match="defined: none"):
        config.get_graph("x")


def test_relative_graph_address_is_unchanged():
    assert parse(FULL, "omnigraph.yaml").get_graph("bench") == "./data/museum.omni"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cli: {output_format: xml}", "'cli.output_format' must be one of table, kv, csv, json, jsonl, not 'xml'"),
        ("cli: {table_max_column_width: 0}", "'cli.table_max_column_width' must be an integer of at least 1, not 0"),
        ("cli: {table_max_column_width: true}", "must be an integer"),
        ("cli: nothing", "'cli' must contain keys and values, not 'nothing'"),
        ("query: {roots: here}", "'query.roots' must be a list of strings, not 'here'"),
        ("graphs: {a: {}}", "'graphs.a.uri' is missing"),
        ("graphs: {a.b: {uri: x}}", "'a.b' under 'graphs' contains a dot"),
        ("aliases: {a: {command: read}}", "'aliases.a.query' is missing"),
        ("aliases: {a: {command: delete, query: q.gq}}", "one of read, change, query, mutate"),
        ("targets: {a: {uri: x}}", "the key 'targets' is now called 'graphs'"),
        ("- a\n- b", "must contain keys and values"),
        ("cli: {graph: [", ", line 1 is not YAML"),
        ("a: " + "[" * 3000 + "]" * 3000, "is nested too deeply"),
        ("a: " + "{b: " * 3000 + "}" * 3000, "is nested too deeply"),
        ("a: 2001-99-99", "is not YAML"),
    ],
)
def test_invalid_values_are_reported(text, said):
    with pytest.raises(InputError) as caught:
        parse(text)
    assert "conf/omnigraph.yaml" in caught.value.message
    assert said in caught.value.message
    assert caught.value.code == "bad_config"


def test_unknown_keys_cause_warnings():
    config = parse("cli: {grahp: x, graph: y}\nclii: {a: 1}\nserver: {policy: {file: p.yaml}}")
    assert config.warnings == (
        "unknown key 'cli.grahp' in conf/omnigraph.yaml (did you mean 'graph'?)",
        "unknown key 'clii' in conf/omnigraph.yaml (did you mean 'cli'?)",
    )
    assert config.get("cli.graph") == "y"


def test_an_entry_without_its_address_names_the_unknown_key():
    with pytest.raises(InputError) as caught:
        parse("graphs: {c: {url: ./c.omni}}")
    assert caught.value.message.endswith("'graphs.c.uri' is missing")
    assert caught.value.hint == "the entry has the unknown key 'graphs.c.url' (did you mean 'uri'?)"


def test_unknown_keys_have_lines():
    text = "x: &x { polcy: 1 }\nserver:\n  auth:\n    token: { file: t.json }\ngraphs: { a: { uri: x, <<: *x } }\n"
    found = {".".join(key.parts): key.line for key in parse(text).unknown}
    assert found == {"x": 1, "server.auth.token": 4, "graphs.a.polcy": None}


def test_empty_file_and_empty_sections():
    assert parse("").values == {}
    assert parse("cli:\ngraphs:\n").values == {}


def test_unknown_names_list_known_names():
    config = parse(FULL)
    with pytest.raises(InputError, match="defined: 'archive', 'bench', 'far'") as caught:
        config.get_graph("bensh")
    assert caught.value.hint == "did you mean 'bench'?"
    with pytest.raises(InputError, match="defined: 'move', 'object'"):
        config.get_alias("nothing_like_it")


def test_discovery(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_config(None, {}).path is None
    (tmp_path / "omnigraph.yaml").write_text("project: {name: here}")
    (tmp_path / "other.yaml").write_text("project: {name: other}")
    assert find_config(None, {}).get("project.name") == "here"
    assert find_config(None, {"OMNIGRAPH_CONFIG": " other.yaml "}).get("project.name") == "other"
    assert find_config("omnigraph.yaml", {"OMNIGRAPH_CONFIG": "other.yaml"}).get("project.name") == "here"
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert find_config(None, {}).path is None, "parent folders are not searched"
    with pytest.raises(InputError, match=r"there is no file 'none\.yaml'"):
        find_config("none.yaml", {})
    with pytest.raises(InputError, match="is a folder"):
        find_config("..", {})
    (tmp_path / "cluster.yaml").touch()
    with pytest.raises(InputError, match="is the folder of a cluster"):
        find_config(str(tmp_path), {})


def test_query_file_search_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("conf", "conf/gq", "conf/shared/gq"):
        (tmp_path / folder).mkdir(parents=True)
    config = parse(FULL)
    with pytest.raises(InputError, match=r"looked in 'conf', 'conf/gq', 'conf/shared/gq', '\.'"):
        config.find_query("q.gq")
    for place in (".", "conf/shared/gq", "conf/gq", "conf"):
        (tmp_path / place / "q.gq").write_text("")
        assert config.find_query("q.gq") == Path(place) / "q.gq"
    assert config.find_query("/abs/q.gq") == Path("/abs/q.gq")


def test_env_file(tmp_path):
    path = tmp_path / ".env"
    path.write_text("# no\n\nexport A = one two \nB='x # y'\nC=\"\nD\n=e\nF=\"a'b\"\nG=a=b\n")
    assert read_env_file(path) == {"A": "one two", "B": "x # y", "C": '"', "F": "a'b", "G": "a=b"}
    assert read_env_file(tmp_path / "none") == {}
