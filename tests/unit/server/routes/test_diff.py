"""Differences over HTTP."""

from __future__ import annotations

import pytest

import omnigraph as og
from support.guarded_server import READS_MAIN, guarded
from support.server import ServerUnderTest

HOSTILE = [
    ("from=nowhere", 404),
    ("from=..%2F..%2Fetc", 404),
    ("from=main&to=%00", 404),
    ("after=x", 400),
    ("limit=0", 400),
    ("limit=5000", 400),
    ("kind=table", 400),
    ("form=main", 400),
]


@pytest.fixture
def points(graph: og.Graph) -> tuple[str, str]:
    graph.branch_create("draft")
    graph.load(
        [
            {"type": "Person", "data": {"name": "ana", "age": 31}},
            *({"type": "Person", "data": {"name": f"p{number}"}} for number in range(5)),
            {"edge": "Knows", "from": "bo", "to": "ana", "data": {"since": 2021}},
        ],
        mode="merge",
        branch="draft",
    )
    return "main", "draft"


def test_a_diff_has_values_before_and_after(server: ServerUnderTest, points: tuple[str, str]) -> None:
    reply = server.get("/diff", params={"from": "main", "to": "draft", "type": "Person", "op": "update"})
    (change,) = reply.json["changes"]
    assert (change["id"], change["op"], change["before"]["age"], change["after"]["age"]) == ("ana", "update", 30, 31)
    assert (reply.json["from"], reply.json["to"], reply.json["schema_steps"]) == ("main", "draft", [])
    assert "truncated" not in reply.json
    assert server.get("/diff").json["changes"] == []


def test_pages_and_json_lines_have_the_same_changes(
    server: ServerUnderTest, graph: og.Graph, points: tuple[str, str]
) -> None:
    named = {"from": "main", "to": "draft"}
    whole = server.get("/diff", params=named).json["changes"]
    assert len(whole) == 7
    lines = server.get("/diff", params=named, headers={"Accept": "application/x-ndjson"}).lines
    assert (lines[0]["content"], lines[1:-1], lines[-1]["rows"]) == ("diff", whole, 7)
    paged, after = [], {}
    while True:
        page = server.get("/diff", params={**named, "limit": 2, **after}).json
        paged += page["changes"]
        assert page["truncated"] == ("next" in page)
        if "next" not in page:
            break
        after = {"after": page["next"]}
        # A later commit does not change the pages that follow.
        graph.load([{"type": "Person", "data": {"name": f"late{len(paged)}"}}], mode="merge", branch="draft")
    assert paged == whole


def test_hostile_parameters(server: ServerUnderTest) -> None:
    for query, status in HOSTILE:
        assert server.get(f"/diff?{query}").status == status, query


def test_a_cursor_belongs_to_its_request(server: ServerUnderTest, points: tuple[str, str]) -> None:
    page = server.get("/diff", params={"from": "main", "to": "draft", "limit": 1}).json
    reply = server.get("/diff", params={"from": "draft", "to": "main", "after": page["next"]})
    assert (reply.status, reply.json["reason"]) == (400, "page_cursor_rejected")


def test_both_points_are_judged(graph: og.Graph, points: tuple[str, str]) -> None:
    with guarded(graph, READS_MAIN) as server:
        assert server.get("/diff", params={"from": "main"}).status == 200
        for named in ({"from": "draft"}, {"to": "draft"}, {"from": graph.snapshot("draft").commit_id}):
            assert server.get("/diff", params=named).status == 403
