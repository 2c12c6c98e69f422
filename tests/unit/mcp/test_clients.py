"""Configuration of clients."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from omnigraph.cli.main import run
from omnigraph.errors import InputError, NotFound
from omnigraph.mcp.clients import CLIENTS, find_client, with_entry


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_every_client_has_a_file(name, platform):
    path = find_client(name).path(platform, Path("/home/ana"), {"APPDATA": "/data"})
    assert path.suffix == ".json"
    assert "~" not in str(path)
    assert "%" not in str(path)


def test_an_unknown_client():
    with pytest.raises(NotFound, match="no MCP client 'cursr'") as caught:
        find_client("cursr")
    assert caught.value.hint == "did you mean 'cursor'?"


@pytest.mark.parametrize("name", CLIENTS)
def test_other_entries_are_kept(name):
    client = find_client(name)
    before = json.dumps({"theme": "dark", client.member: {"other": {"command": "x"}}})
    after = json.loads(with_entry(before, client, "graph", client.entry("og", ["mcp"]), Path("f")))
    assert after["theme"] == "dark"
    assert after[client.member]["other"] == {"command": "x"}
    assert after[client.member]["graph"]["args"] == ["mcp"]


@pytest.mark.parametrize("text", ["{ // comment\n}", "[]", '{"mcpServers": []}', "{"])
def test_other_files_are_refused(text):
    client = find_client("cursor")
    with pytest.raises(InputError) as caught:
        with_entry(text, client, "g", client.entry("og", []), Path("f"))
    assert caught.value.code == "bad_config"


def install(graph, path, *more):
    return run(["mcp", "install", "--client", "cursor", "--file", str(path), *more, graph.uri])


def test_install_shows_asks_and_writes(graph, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    path = tmp_path / "folder" / "client.json"
    assert install(graph, path) == 1
    assert not path.exists()
    printed = capsys.readouterr()
    assert '+    "omnigraph": {' in printed.out
    assert "was not changed" in printed.err
    assert install(graph, path, "--yes", "--write") == 0
    entry = json.loads(path.read_text(encoding="utf-8"))["mcpServers"]["omnigraph"]
    assert entry["args"][-4:] == ["mcp", "serve", graph.uri, "--write"]
    assert install(graph, path, "--yes", "--write") == 0
    assert "has this entry already" in capsys.readouterr().out
    assert [each.name for each in path.parent.iterdir()] == ["client.json"]


def test_installed_options_are_those_of_serve(graph, tmp_path):
    path = tmp_path / "client.json"
    options = ["--write", "--branches", "mcp/*", "--branches", "team/*", "--result-tokens", "2000"]
    assert install(graph, path, "--yes", *options) == 0
    entry = json.loads(path.read_text(encoding="utf-8"))["mcpServers"]["omnigraph"]
    assert entry["args"][-8:] == [graph.uri, *options]


def test_install_replaces_a_file_that_has_other_entries(graph, tmp_path):
    path = tmp_path / "client.json"
    path.write_text('{"mcpServers": {"other": {"command": "x"}}}', encoding="utf-8")
    path.chmod(0o600)
    assert install(graph, path, "--yes", "--name", "people", "--as", "zoe") == 0
    servers = json.loads(path.read_text(encoding="utf-8"))["mcpServers"]
    assert list(servers) == ["other", "people"]
    assert servers["people"]["args"][-2:] == ["--as", "zoe"]
    assert path.stat().st_mode & 0o777 == 0o600
