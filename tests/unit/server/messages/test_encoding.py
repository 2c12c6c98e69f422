"""Answers whose row values keep their types."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from support.server import ServerUnderTest, serving

SCHEMA = "node Thing {\n    name: String @key\n    day: Date?\n    large: I64?\n    data: Blob?\n}\n"
RECORD = {"name": "a", "day": "2026-01-31", "large": 2**60, "data": "base64:aGk="}
TYPED = {"id": "a", "name": "a", "day": {"$date": "2026-01-31"}, "large": {"$int": str(2**60)}}
JSON = {"Accept": "application/json;values=typed"}
LINES = {"Accept": "application/x-ndjson; values=typed"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    path: Path = tmp_path_factory.mktemp("typed") / "things.omni"
    graph = og.init(path, SCHEMA)
    graph.load([{"type": "Thing", "data": {"name": "a"}}], mode="merge")
    graph.branch_create("draft")
    graph.load([{"type": "Thing", "data": RECORD}], mode="merge")
    graph.load([{"type": "Thing", "data": {"name": "a", "large": 1}}], mode="merge", branch="draft")
    with serving(graph.uri) as running:
        yield running


def values(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "data"}


def test_rows_of_documents_keep_their_types(server: ServerUnderTest) -> None:
    reply = server.get("/entities/Thing/a", headers=JSON)
    assert reply.headers["content-type"] == "application/json; charset=utf-8; values=typed"
    assert {"id": "a", **values(reply.json["data"])} == TYPED
    assert values(server.get("/entities/Thing/a/history", headers=JSON).json["changes"][0]["after"]) == TYPED
    blame = server.get("/entities/Thing/a/blame", headers=JSON).json["properties"]
    assert {each["property"]: each["value"] for each in blame}["day"] == TYPED["day"]
    assert server.get("/entities/Thing/a").json["data"]["large"] == str(2**60)


def test_lines_keep_their_types(server: ServerUnderTest) -> None:
    reply = server.get("/diff", params={"from": "draft", "to": "main"}, headers=LINES)
    assert reply.headers["content-type"] == "application/x-ndjson; charset=utf-8; values=typed"
    assert values(reply.lines[1]["after"]) == TYPED
    assert reply.lines[0]["from_commit_id"] != reply.lines[0]["to_commit_id"]
    block = server.get("/changes", params={"start": "beginning"}, headers=LINES).lines[-2]
    assert block["changes"][0]["after"]["properties"]["day"] == TYPED["day"]


def test_rows_of_errors_keep_their_types(server: ServerUnderTest) -> None:
    reply = server.post("/branches/merge", {"source": "draft"}, headers=JSON)
    assert (reply.status, reply.headers["content-type"]) == (409, "application/json; charset=utf-8; values=typed")
    (conflict,) = reply.json["merge_conflicts"]
    assert conflict["ours"]["large"] == TYPED["large"]
    (shown,) = server.post("/branches/merge", {"source": "draft"}).json["merge_conflicts"]
    assert shown["ours"]["large"] == str(2**60)


def test_the_tags_of_both_forms_differ(server: ServerUnderTest) -> None:
    tags = {server.get("/entities/Thing/a", headers=headers).headers["etag"] for headers in ({}, JSON)}
    assert len(tags) == 2


def test_another_form_of_values_is_refused(server: ServerUnderTest) -> None:
    reply = server.get("/entities/Thing/a", headers={"Accept": "application/json;values=raw"})
    assert (reply.status, reply.json["reason"]) == (406, "not_acceptable")
