"""Hostile paths, names and values at every entry point give a result or an `OmniGraphError`, and no call hangs."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.cli.main import run
from omnigraph.errors import InputError, OmniGraphError
from omnigraph.graph import Graph

SCHEMA = "node T { k: String @key  n: I32?  b: Blob? }\nedge E: T -> T\n"
READ = "query q($k: String) { match { $t: T { k: $k } } return { $t.k } }"
WRITE = "query m($k: String) { update T set { n: 1 } where k = $k }"
RECORD = [{"type": "T", "data": {"k": "z"}}]
HOSTILE = {
    "a null character": "a\0b",
    "an unpaired surrogate": "a\ud800b",
    "a long name": "x" * 5000,
    "a long path": "/".join(["y" * 200] * 30),
    "nothing": "",
    "two dots": "../..",
    "control characters": "a\x1b[2J\r\n",
}
INTERNAL = (".lance", "_transactions", "_versions", "/data/")


@pytest.fixture(scope="module")
def graph(tmp_path_factory) -> Iterator[Graph]:
    folder = tmp_path_factory.mktemp("hostile") / "inner" / "deeper"
    folder.mkdir(parents=True)
    before = Path.cwd()
    os.chdir(folder)
    graph = og.init(folder / "g", SCHEMA, sync=False, environ={})
    graph.load([*RECORD, {"type": "T", "data": {"k": "a"}}], mode="append")
    yield graph
    os.chdir(before)


CALLS: dict[str, Callable[[Graph, str], Any]] = {
    "open": lambda _, text: og.open(text, environ={}),
    "init": lambda _, text: og.init(text, SCHEMA, environ={}) if text != "../.." else None,
    "schema text": lambda _, text: og.init("other", text, environ={}),
    "blob sources": lambda _, text: og.open("g", environ={}, blob_sources=[text]),
    "load path": lambda graph, text: graph.load(text + "/none", mode="merge"),
    "load paths": lambda graph, text: graph.load([text + "/none.csv"], mode="merge"),
    "load pattern": lambda graph, text: graph.load(text + "/*.jsonl", mode="merge"),
    "load mode": lambda graph, text: graph.load(RECORD, mode=text),
    "load value": lambda graph, text: graph.load([{"type": "T", "data": {"k": "z", "b": text}}], mode="merge"),
    "load type": lambda graph, text: graph.load([{"type": text, "data": {"k": "z"}}], mode="merge"),
    "load property": lambda graph, text: graph.load([{"type": "T", "data": {text: "z"}}], mode="merge"),
    "load id": lambda graph, text: graph.load([{"type": "T", "data": {"id": text, "k": "b"}}], mode="merge"),
    "load end": lambda graph, text: graph.load([{"edge": "E", "from": text, "to": "a"}], mode="merge"),
    "load edge": lambda graph, text: graph.load([{"edge": text, "from": "a", "to": "a"}], mode="merge"),
    "load table": lambda graph, text: graph.load({text: []}, mode="merge"),
    "load branch": lambda graph, text: graph.load(RECORD, mode="merge", branch=text or "none"),
    "load actor": lambda graph, text: graph.load(RECORD, mode="merge", actor=text),
    "load message": lambda graph, text: graph.load(RECORD, mode="merge", message=text),
    "load job": lambda graph, text: graph.load(RECORD, mode="merge", job_id=text),
    "load delimiter": lambda graph, text: graph.load(RECORD, mode="merge", delimiter=text),
    "load engine": lambda graph, text: graph.load(RECORD, mode="merge", engine=text),
    "export": lambda graph, text: graph.export(text + "/none/x"),
    "export csv": lambda graph, text: graph.export(text + "/g", format="csv"),
    "export format": lambda graph, text: graph.export("out", format=text),
    "export types": lambda graph, text: list(graph.export(types=[text])),
    "export at": lambda graph, text: list(graph.export(at=text)),
    "query text": lambda graph, text: graph.query(text),
    "query file": lambda graph, text: graph.query(Path(text)),
    "parameter": lambda graph, text: graph.query(READ, params={"k": text}).to_pylist(),
    "parameter name": lambda graph, text: graph.query(READ, params={text: "a"}),
    "query branch": lambda graph, text: graph.query(READ, params={"k": "a"}, branch=text),
    "query at": lambda graph, text: graph.query(READ, params={"k": "a"}, at=text),
    "mutate": lambda graph, text: graph.mutate(WRITE, params={"k": text}),
    "mutate actor": lambda graph, text: graph.mutate(WRITE, params={"k": "none"}, actor=text),
    "branch": lambda graph, text: graph.branch_create(text),
    "branch delete": lambda graph, text: graph.branch_delete(text),
    "tag": lambda graph, text: graph.tag_create(text),
    "merge": lambda graph, text: graph.merge(text),
    "diff": lambda graph, text: list(graph.diff(text, "main")),
    "history": lambda graph, text: list(graph.history("T", text)),
    "history type": lambda graph, text: list(graph.history(text, "a")),
    "entity": lambda graph, text: graph.entity_at("T", text, graph.commits()[0].id),
    "commit": lambda graph, text: graph.commit(text),
    "feed": lambda graph, text: graph.changes(text),
    "feed start": lambda graph, text: graph.changes(start=text),
    "schema file": lambda graph, text: graph.plan_schema(Path(text)),
    "table": lambda graph, text: graph.to_arrow(text),
    "column": lambda graph, text: graph.to_arrow("T", columns=[text]),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_calls_raise_only_omnigraph_errors(graph, case):
    raw: dict[str, str] = {}
    for name, call in CALLS.items():
        try:
            call(graph, HOSTILE[case])
        except OmniGraphError as error:
            error.message.encode()
            if any(word in error.message for word in INTERNAL):
                raw[name] = error.message
        except Exception as error:
            raw[name] = f"{type(error).__name__}: {error}"[:200]
    assert raw == {}


@pytest.mark.parametrize("case", ["an unpaired surrogate", "a long name", "a long path"])
def test_commands_raise_only_omnigraph_errors(graph, case, capsys):
    text = HOSTILE[case]
    for words in (
        ["read", "-e", READ, "-p", f"k={text}", "g"],
        ["read", "-q", f"{text}/none", "g"],
        ["load", "--data", f"{text}/none", "--mode", "merge", "--quiet", "g"],
        ["export", "--out", f"{text}/none/x", "g"],
        ["history", "T", text, "g"],
        ["snapshot", f"{text}/none"],
    ):
        assert run(words) in (0, 1, 2)
        assert "Traceback" not in capsys.readouterr().err


@pytest.fixture(scope="module")
def special(graph) -> Iterator[Path]:
    """A folder with files that are not regular."""
    folder = Path("special").absolute()
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "link").symlink_to(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(folder)
        listening.bind("socket")
        os.chdir(folder.parent)
        yield folder


@pytest.mark.parametrize("name", ["pipe", "link", "socket", "folder"])
def test_blob_source_must_be_a_regular_file(graph, special, name):
    reader = og.open("g", environ={}, blob_sources=[special])
    record = {"type": "T", "data": {"k": "z", "b": f"file://{special}/{name}"}}
    with pytest.raises(InputError, match="cannot be followed: it is not a regular file"):
        reader.load([record], mode="merge")


def test_device_is_rejected_as_blob(graph):
    reader = og.open("g", environ={}, blob_sources=["/dev"])
    with pytest.raises(InputError, match="it is not a regular file"):
        reader.load([{"type": "T", "data": {"k": "z", "b": "file:///dev/zero"}}], mode="merge")


@pytest.mark.parametrize("name", ["pipe", "link", "socket"])
def test_input_must_be_a_regular_file(graph, special, name):
    with pytest.raises(InputError) as caught:
        graph.load(special / name, mode="merge")
    assert caught.value.code == "no_such_file"
