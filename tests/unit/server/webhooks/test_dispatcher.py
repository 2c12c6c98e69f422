"""Webhooks of a running server: delivery, reload, status, metrics, and takeover of a killed process."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.server.observability import log
from omnigraph.webhooks import verify_signature
from support.guarded_server import READS_MAIN
from support.receiver import SECRET, WAIT_S, Receiver, receiving, within
from support.server import ServerUnderTest, serving
from support.writes import SHELVES, shelf

ROW_RULES = """version: 2
groups: {team: [default]}
rows: {default: allow}
rules:
  - id: team
    allow: {actors: {group: team}, role: viewer}
  - id: sealed
    deny: {actors: {any: true}, actions: [row_read], types: [Shelf], when: 'resource.cap > 3'}
"""
NEW_SECRET = "the-next-secret-of-the-receiver"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "kb.omni", SHELVES, sync=False)


def configure(graph: og.Graph, receiver: Receiver, extra: str = "", secret: str = SECRET, **server: str) -> Path:
    """Write a configuration with one webhook; its secret is in a file of variables, which a reload reads again."""
    folder = Path(graph.uri).parent
    (folder / "env").write_text(f"HOOK={secret}\nOLD={SECRET}\n", encoding="utf-8")
    config = folder / "omnigraph.yaml"
    entry = f'name: erp, url: "{receiver.url}", secret: "${{HOOK}}", allow_private: true{extra}'
    keys = "".join(f"  {name}: {value}\n" for name, value in server.items())
    config.write_text(
        f"auth: {{env_file: env}}\ngraphs: {{kb: {{uri: {graph.uri}}}}}\n"
        f"server:\n{keys}  webhooks:\n    - {{{entry}}}\n",
        encoding="utf-8",
    )
    return config


def started(server: ServerUnderTest) -> None:
    """Wait until the webhook has its first position."""
    ends = time.monotonic() + WAIT_S
    while server.get("/webhooks").json["webhooks"][0]["state"] == "starting":
        within(ends)
        time.sleep(0.02)


def test_commits_of_requests_are_delivered_and_shown(graph: og.Graph, receiver: Receiver) -> None:
    config = configure(graph, receiver, metrics="{enabled: true}")
    with serving(config=config) as server:
        started(server)
        body = {"query": 'query add() { insert Shelf { code: "a" } }'}
        commit = server.post("/change", body).json["commit"]["graph_commit_id"]
        (received,) = receiver.wait_for(1)
        verify_signature(received.body, received.headers["omnigraph-signature"], SECRET)
        assert (received.event["graph_id"], received.event["facts"]["graph_commit_id"]) == ("kb", commit)
        ends = time.monotonic() + WAIT_S
        while server.get("/webhooks").json["webhooks"][0]["delivered"] == 0:
            within(ends)
        (status,) = server.get("/webhooks").json["webhooks"]
        assert status.pop("last_delivered_at") > 0
        assert status == {
            "name": "erp",
            "graph_id": "kb",
            "origin": f"http://127.0.0.1:{receiver.port}",
            "state": "ready",
            "delivered": 1,
            "dropped": 0,
            "last_event_id": commit,
        }
        text = server.get("/metrics").body.decode()
        assert 'omnigraph_webhook_tries_total{graph="kb",result="delivered",webhook="erp"} 1.0' in text


def test_a_failure_is_shown_and_logged_without_secrets(graph: og.Graph, receiver: Receiver) -> None:
    receiver.script = [503] * 50
    lines = io.StringIO()
    log.configure("debug", stream=lines)
    try:
        with serving(config=configure(graph, receiver)) as server:
            started(server)
            graph.load([shelf("a")], mode="append")
            receiver.wait_for(1)
            ends = time.monotonic() + WAIT_S
            while server.get("/webhooks").json["webhooks"][0]["state"] != "retrying":
                within(ends)
            (status,) = server.get("/webhooks").json["webhooks"]
            assert status["failure"]["error"] == "the receiver answered with status 503"
            assert status["failure"]["next_try_at"] > status["failure"]["since"]
        log.flush(10)
    finally:
        log.configure("info")
        logging.getLogger("omnigraph").setLevel(logging.NOTSET)
    assert "webhook 'erp', graph 'kb'" in lines.getvalue()
    assert SECRET not in lines.getvalue()
    assert "/hook" not in lines.getvalue()
    progress = next((Path(graph.uri) / "__webhooks" / "erp").iterdir()).read_text(encoding="utf-8")
    assert SECRET not in progress


def test_a_reload_changes_secrets_policies_and_webhooks(graph: og.Graph, receiver: Receiver) -> None:
    config = configure(graph, receiver)
    with serving(config=config) as server:
        started(server)
        graph.load([shelf("a")], mode="append")
        receiver.wait_for(1)
        configure(graph, receiver, ', previous_secret: "${OLD}"', NEW_SECRET)
        assert server.post("/admin/reload").status == 200
        graph.load([shelf("b")], mode="append")
        second = receiver.wait_for(2)[1]
        for secret in (SECRET, NEW_SECRET):
            verify_signature(second.body, second.headers["omnigraph-signature"], secret)
        bad = config.read_text(encoding="utf-8").replace("${HOOK}", "${LOST}")
        config.write_text(bad, encoding="utf-8")
        assert server.post("/admin/reload").status == 409, "the running webhooks stay"
        graph.load([shelf("c")], mode="append")
        receiver.wait_for(3)
        config.write_text(f"graphs: {{kb: {{uri: {graph.uri}}}}}\n", encoding="utf-8")
        assert server.post("/admin/reload").status == 200
        assert server.get("/webhooks").json == {"webhooks": []}


def test_a_reloaded_policy_is_an_event(graph: og.Graph, receiver: Receiver) -> None:
    folder = Path(graph.uri).parent
    (folder / "policy.yaml").write_text(READS_MAIN, encoding="utf-8")
    config = configure(graph, receiver, ", events: [policy.reloaded]")
    text = config.read_text(encoding="utf-8")
    config.write_text(text + "policy: {file: policy.yaml}\n", encoding="utf-8")
    with serving(config=config, environ={"OMNIGRAPH_SERVER_BEARER_TOKEN": "t"}, token="t") as server:
        ends = time.monotonic() + WAIT_S
        while not (Path(graph.uri) / "__webhooks" / "erp").is_dir():
            within(ends)
            time.sleep(0.02)
        (folder / "policy.yaml").write_text(READS_MAIN + "# changed\n", encoding="utf-8")
        assert server.holder.reload("test").ok
        (received,) = receiver.wait_for(1)
        digest = server.holder.current.policies.graphs["kb"].digest
    assert received.event["kind"] == "policy.reloaded"
    assert received.event["facts"] == {"changed": ["graph"], "policy_digest": digest, "server_policy_digest": None}


def test_events_of_a_graph_with_rules_for_rows_show_nothing_of_rows(graph: og.Graph, receiver: Receiver) -> None:
    folder = Path(graph.uri).parent
    (folder / "policy.yaml").write_text(ROW_RULES, encoding="utf-8")
    config = configure(graph, receiver, ", include: [diff_summary]")
    config.write_text(config.read_text(encoding="utf-8") + "policy: {file: policy.yaml}\n", encoding="utf-8")
    with serving(config=config, environ={"OMNIGRAPH_SERVER_BEARER_TOKEN": "t"}):
        ends = time.monotonic() + WAIT_S
        while not (Path(graph.uri) / "__webhooks" / "erp").is_dir():
            within(ends)
            time.sleep(0.02)
        graph.load([shelf(f"hidden-{number}") for number in range(4711)], mode="append", message="hidden-message")
        (received,) = receiver.wait_for(1)
    for hidden in ("hidden", "Shelf", "4711", "changed"):
        assert hidden not in received.body.decode()
    assert received.event["facts"]["diff_summary"] is None


def test_webhooks_are_for_administrators(graph: og.Graph, receiver: Receiver) -> None:
    environ = {"OMNIGRAPH_SERVER_BEARER_TOKEN": "t"}
    with serving(config=configure(graph, receiver), environ=environ, token="t") as server:
        assert server.get("/webhooks").status == 403


def test_a_read_only_graph_sends_nothing(graph: og.Graph, receiver: Receiver) -> None:
    config = configure(graph, receiver)
    text = config.read_text(encoding="utf-8").replace(f"uri: {graph.uri}", f"uri: {graph.uri}, read_only: true")
    config.write_text(text, encoding="utf-8")
    with serving(config=config) as server:
        assert server.get("/webhooks").json == {"webhooks": []}
    assert not (Path(graph.uri) / "__webhooks").exists()


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from support.server import serving
with serving(config=Path(sys.argv[1])) as server:
    print(server.port, flush=True)
    sys.stdin.read()
"""


def test_the_webhook_of_a_killed_process_is_taken_over(
    graph: og.Graph, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.server.webhooks.stream.RENEW_S", 0.2)
    config = configure(graph, receiver)
    command = [sys.executable, "-c", PROGRAM, str(config), str(Path(__file__).parents[3])]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert process.stdout.readline()
        first = graph.load([shelf("a")], mode="append").commit_id
        ends = time.monotonic() + WAIT_S
        while not receiver.received and time.monotonic() < ends:
            # The other process may have taken its first position after this commit.
            first = graph.load([shelf(f"x{time.monotonic_ns()}")], mode="append").commit_id
            time.sleep(0.5)
        receiver.wait_for(1)
        with serving(config=config):
            process.kill()
            process.wait(30)
            last = graph.load([shelf("b")], mode="append").commit_id
            while last not in (each.event["event_id"] for each in receiver.received):
                within(ends)
                time.sleep(0.05)
    finally:
        process.kill()
        process.communicate()
    ids = [each.event["event_id"] for each in receiver.received]
    assert first in ids
    assert list(dict.fromkeys(ids)) == sorted(set(ids)), "each event follows those before it"
    assert json.loads(receiver.received[-1].body)["event_id"] == last
