"""The change feed over HTTP: polls, events and the baseline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.server.messages import responses
from support.event_streams import stream
from support.guarded_server import READS_MAIN, TOKEN, guarded
from support.server import ServerUnderTest
from support.waiting import wait_for

ADD = "query add($name: String) { insert Person { name: $name } }"


HOSTILE = [
    ("cursor=a&start=now", 400),
    ("start=later", 400),
    ("start=after:01UNKNOWN", 400),
    ("cursor=" + "A" * 4097, 400),
    ("cursor=AAAA", 400),
    ("limit=0", 400),
    ("limit=8193", 413),
    ("branch=none", 404),
    ("branch=..%2F..", 404),
    ("since=1", 400),
]


def add(graph: og.Graph, name: str) -> None:
    graph.mutate(ADD, params={"name": name})


def names(event: dict[str, str]) -> list[str]:
    document = json.loads(event["data"])
    return [change["id"] for block in document["blocks"] for change in block["changes"]]


def is_idle(server: ServerUnderTest) -> bool:
    parts = server.app.server
    return not (parts.execution.lanes["streams"].running or parts.execution.in_flight_reads or parts.admission.actors)


def test_a_feed_continues_after_its_cursor(server: ServerUnderTest, graph: og.Graph) -> None:
    start = server.get("/changes").json
    assert (start["blocks"], start["caught_up"]) == ([], True)
    add(graph, "cy")
    page = server.get("/changes", params={"cursor": start["cursor"]}).json
    (block,) = page["blocks"]
    assert block["cause"]["authored_branch"] == "main"
    assert block["changes"][0]["after"] == {"properties": {"name": "cy", "age": None, "photo": None}}
    assert server.get("/changes", params={"cursor": page["cursor"]}).json["blocks"] == []


def test_a_split_commit_has_a_page_token_and_no_cursor(server: ServerUnderTest) -> None:
    start = server.get("/changes", params={"start": "beginning", "limit": 2}).json
    page = server.get("/changes", params={"cursor": start["cursor"], "limit": 2}).json
    pages = [page]
    assert "next_page_token" in page
    while "next_page_token" in page:
        assert "cursor" not in page
        page = server.get("/changes", params={"page_token": page["next_page_token"], "limit": 2}).json
        pages.append(page)
    assert "cursor" in page
    assert sum(len(block["changes"]) for each in pages for block in each["blocks"]) == 3


def test_the_feed_as_json_lines(server: ServerUnderTest) -> None:
    lines = server.get("/changes?start=beginning", headers={"Accept": "application/x-ndjson"}).lines
    assert (lines[0]["content"], lines[-1]["rows"], lines[-1]["caught_up"]) == ("changes", len(lines) - 2, True)
    assert server.get("/changes", params={"cursor": lines[-1]["cursor"]}).json["blocks"] == []


def test_hostile_parameters(server: ServerUnderTest) -> None:
    for path in ("/changes", "/changes/stream"):
        for query, status in HOSTILE:
            reply = server.get(f"{path}?{query}", headers={"Accept": "*/*"})
            assert reply.status == status, (path, query, reply.body)
            if query == "cursor=AAAA":
                assert reply.json["error"].startswith("change cursor rejected: ")
    wait_for(lambda: is_idle(server), "the release of the slots")


def test_events_arrive_and_a_stream_resumes_after_the_last_one(server: ServerUnderTest, graph: og.Graph) -> None:
    with stream(server) as events:
        blocks = events.blocks()
        opened = next(blocks)
        assert set(opened) == {"id"}
        add(graph, "cy")
        event = next(blocks)
        assert (event["event"], names(event)) == ("changes", ["cy"])
    add(graph, "di")
    with stream(server, "?start=beginning", Last_Event_ID=event["id"]) as events:
        assert names(next(events.blocks())) == ["di"]
    with stream(server, "?start=now", Last_Event_ID=opened["id"]) as events:
        assert names(next(events.blocks())) == ["cy", "di"]
    wait_for(lambda: is_idle(server), "the release of the slots")


def test_a_part_of_a_commit_has_no_id(server: ServerUnderTest) -> None:
    with stream(server, "?start=beginning&limit=2") as events:
        blocks = events.blocks()
        found: list[dict[str, Any]] = []
        while sum(len(names(block)) for block in found) < 3:
            found.append(next(blocks))
    assert ["id" in block for block in found][-2:] == [False, True]


def test_an_idle_stream_sends_comments(server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "HEARTBEAT_S", 0.0)
    with stream(server) as events:
        blocks = events.blocks()
        next(blocks)
        assert next(blocks) == {"comment": ""}


def test_an_unknown_last_event_is_refused(server: ServerUnderTest) -> None:
    with stream(server, Last_Event_ID="nonsense") as events:
        assert events.status == 400
    wait_for(lambda: is_idle(server), "the release of the slots")


def test_a_reload_of_the_policy_ends_a_stream(graph: og.Graph) -> None:
    with guarded(graph, READS_MAIN) as server:
        with stream(server) as events:
            blocks = events.blocks()
            next(blocks)
            changed = READS_MAIN.replace("[ana]", "[ana, bo]")
            Path(graph.uri).with_name("policy.yaml").write_text(changed, encoding="utf-8")
            assert server.holder.reload("a test").ok
            assert next(blocks, None) is None
        wait_for(lambda: is_idle(server), "the release of the slots")


def test_the_shutdown_of_the_server_ends_a_stream(server: ServerUnderTest) -> None:
    with stream(server) as events:
        blocks = events.blocks()
        next(blocks)
        server.holder.phase = "draining"
        assert next(blocks, None) is None
    wait_for(lambda: is_idle(server), "the release of the slots")


def test_a_baseline_ends_with_its_cursor(server: ServerUnderTest, graph: og.Graph) -> None:
    reply = server.post("/changes/baseline")
    assert reply.headers["content-type"].startswith("application/x-ndjson")
    assert [line.get("type", line.get("edge")) for line in reply.lines[:-1]] == ["Knows", "Person", "Person"]
    baseline = reply.lines[-1]["baseline"]
    assert baseline["snapshot_commit_id"] == graph.commits(limit=1)[0].id
    add(graph, "cy")
    page = server.get("/changes", params={"cursor": baseline["resume_cursor"]}).json
    assert [change["id"] for block in page["blocks"] for change in block["changes"]] == ["cy"]
    assert len(server.post("/changes/baseline", {"kind": ["edge"]}).lines) == 2
    assert server.post("/changes/baseline", {"branch": "none"}).status == 404


def test_the_feed_of_another_branch_and_a_baseline_are_denied(graph: og.Graph) -> None:
    graph.branch_create("draft")
    with guarded(graph, READS_MAIN) as server:
        assert server.get("/changes").status == 200
        assert server.get("/changes", params={"branch": "draft"}).status == 403
        with stream(server, "?branch=draft") as events:
            assert events.status == 403
        denied = server.post("/changes/baseline", token=TOKEN)
        assert (denied.status, denied.json["code"]) == (403, "forbidden")
