"""Secrets in settings and addresses appear in no output, message, log or `repr`."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cli.invocation import Address, Invocation
from omnigraph.cli.main import run
from omnigraph.config import parse_config
from omnigraph.embedding.config import PROVIDERS, find_config
from omnigraph.errors import OmniGraphError
from omnigraph.operations.graph_context import GraphContext
from omnigraph.redaction import redact, redact_uri
from omnigraph.spark.session import SessionOptions
from omnigraph.storage.files.location import locate
from support.writes import new_graph, shelf

SENTINEL = "sentinel-7f3a"
SETTINGS = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    *("GEMINI_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "ANY_OTHER_TOKEN"),
)
SECRETS = {name: f"{SENTINEL}-{name.lower()}" for name in SETTINGS}
ENDPOINT = f"http://ada:{SENTINEL}@127.0.0.1:1"
SERVER = f"https://ada:{SENTINEL}@graph.example/x?token={SENTINEL}#{SENTINEL}"
SCHEMA = "node Shelf { code: String @key }"


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("https://ada:hush@host:8080/a/b?token=hush#hush", "https://host:8080/a/b"),
        ("https://ada:hu/sh@host/a", "https://host/a"),
        ("https://ada:hu?sh@host/a", "https://host/a"),
        ("https://host:8080/a@b", "https://host:8080/a@b"),
        ("sc://host:15002/;token=hush", "sc://host:15002/"),
        ("s3://ada:hush@bucket/a", "s3://bucket/a"),
        ("s3://bucket/a@b#1", "s3://bucket/a@b#1"),
        ("file:///data/a@b?c", "file:///data/a@b?c"),
        ("./people.omni", "./people.omni"),
    ],
)
def test_uri_is_shown_without_secrets(uri, shown):
    assert redact_uri(uri) == shown
    assert redact(f"no answer from '{uri}', twice") == f"no answer from '{shown}', twice"


@pytest.fixture
def _settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, clean_environment: None) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)


def test_no_repr_contains_a_secret(tmp_path):
    graph = new_graph(tmp_path, SCHEMA, environ=SECRETS)
    context: GraphContext = graph._context
    config = parse_config(f"graphs:\n  lab:\n    uri: {SERVER}\ncli:\n  graph: lab\n", tmp_path / "omnigraph.yaml")
    objects: list[object] = [graph, og.AsyncGraph(graph), *vars(graph).values(), context, *vars(context).values()]
    objects += [context.repository, vars(context.repository), locate("s3://b/g", SECRETS)]
    objects += [find_config({**SECRETS, "OMNIGRAPH_EMBED_PROVIDER": provider}) for provider in PROVIDERS]
    objects += [config, Address(SERVER, "--uri"), Invocation("load", uri=SERVER, uri_option=SERVER)]
    objects += [SessionOptions(remote=f"sc://h/;token={SENTINEL}", config={"spark.token": SENTINEL})]
    shown = [value for value in objects if value is not context.environ]
    assert [value for value in shown if SENTINEL in repr(value)] == []


COMMANDS = [
    ["config", SERVER],
    ["config", "--json", "--uri", SERVER],
    ["config", "--target", SERVER],
    ["config", "--uri", SERVER, SERVER],
    ["optimize", SERVER],
    ["read", "-e", "match { $s: Shelf } return { $s.code }", SERVER],
    ["load", "-d", "rows.jsonl", "--mode", "merge", SERVER],
    ["cleanup", "--keep", "1", "--confirm", f"s3://ada:{SENTINEL}@bucket/g"],
    ["verify", f"s3://ada:{SENTINEL}@bucket/g"],
    ["verify", f"s3://bucket/g?token={SENTINEL}"],
    ["verify", f"file://ada:{SENTINEL}@host/g"],
    ["config", "--config", "named.yaml"],
    ["config", "--config", "named.yaml", "--json", "--target", "lab"],
    ["config", "--config", "wrong.yaml"],
    ["load", "-d", f"https://ada:{SENTINEL}@host/rows.jsonl", "--mode", "merge", "g"],
]


@pytest.mark.usefixtures("_settings")
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: re.sub(r"[^a-z]+", " ", " ".join(words))[:60])
def test_no_command_prints_a_secret(words, tmp_path, capsys, caplog):
    new_graph(tmp_path, SCHEMA)
    Path("named.yaml").write_text(f"graphs:\n  lab:\n    uri: {SERVER}\ncli:\n  graph: lab\n")
    Path("wrong.yaml").write_text(f"cli:\n  output_format: {SERVER}\n")
    with caplog.at_level(logging.DEBUG):
        run(words)
    captured = capsys.readouterr()
    assert captured.out + captured.err
    assert SENTINEL not in captured.out + captured.err + caplog.text


@pytest.mark.parametrize(
    "attempt",
    [
        lambda environ, _: og.open("s3://bucket/g", environ={**environ, "AWS_ENDPOINT_URL_S3": ENDPOINT}),
        lambda environ, _: og.init("s3://bucket/g", SCHEMA, environ={**environ, "AWS_ENDPOINT_URL": ENDPOINT}),
        lambda environ, _: og.open("s3://bucket/g", environ={**environ, "AWS_SESSION_TOKEN": f"{SENTINEL}\n"}),
        lambda environ, _: og.open(SERVER, environ=environ),
        lambda environ, root: new_graph(root, SCHEMA, environ=environ).load(
            f"https://ada:{SENTINEL}@host/rows.jsonl", mode="merge"
        ),
        lambda environ, root: new_graph(root, SCHEMA, environ=environ).load([shelf("a"), shelf("a")], mode="append"),
    ],
)
def test_no_error_contains_a_secret(attempt: Callable[[dict[str, str], Path], object], tmp_path, caplog):
    with caplog.at_level(logging.DEBUG), pytest.raises(OmniGraphError) as caught:
        attempt(SECRETS, tmp_path)
    error: BaseException | None = caught.value
    while error is not None:
        assert SENTINEL not in f"{error!r} {error} {vars(error)} {getattr(error, 'hint', None)}"
        error = error.__cause__ or error.__context__
    assert SENTINEL not in caplog.text
