"""Graph algorithms: a read without `write`, a write with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from support.server import ServerUnderTest, serving

SCHEMA = """
node Page {
    name: String @key
    rank: F64?
    hits: I64?
    links: I64?
}
edge Cites: Page -> Page { weight: F64? }
"""


@pytest.fixture
def pages(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "pages.omni", SCHEMA)
    nodes = [{"type": "Page", "data": {"name": name}} for name in "abc"]
    edges = [{"edge": "Cites", "from": src, "to": dst} for src, dst in ("ab", "cb")]
    graph.load([*nodes, *edges], mode="merge")
    return graph


@pytest.fixture
def site(pages: og.Graph) -> Iterator[ServerUnderTest]:
    with serving(pages.uri) as running:
        yield running


def test_values_are_computed_and_nothing_is_written(site: ServerUnderTest, pages: og.Graph) -> None:
    reply = site.post("/analyze", {"algorithm": "pagerank", "top": 1})
    assert reply.status == 200, reply.body
    assert reply.json["nodes"] == {"Page": 3}
    assert [row["id"] for row in reply.json["top"]["Page"]] == ["b"]
    assert "commit" not in reply.json
    assert reply.json["commit_id"] == reply.headers["omnigraph-commit"] == pages.commits(limit=1)[0].id
    first = pages.commits()[-1].id
    assert site.post("/analyze", {"algorithm": "components", "at": first}).json["nodes"] == {"Page": 0}


def test_values_are_written_as_one_commit(site: ServerUnderTest, pages: og.Graph) -> None:
    body = {"algorithm": "degrees", "write": {"in_degree": "hits", "out_degree": "links"}, "message": "degrees"}
    head = pages.commits(limit=1)[0].id
    headers = {"Idempotency-Key": "a-1", "If-Match": f'"{head}"'}
    reply = site.post("/analyze", body, headers=headers)
    assert reply.status == 200, reply.body
    assert (reply.json["rows_written"], reply.json["commit"]["message"]) == (3, "degrees")
    assert reply.headers["omnigraph-commit"] == reply.json["commit"]["graph_commit_id"]
    assert pages.get("Page", "b")["hits"] == 2
    assert site.post("/analyze", body, headers={"Idempotency-Key": "a-1"}).json["commit"] == reply.json["commit"]
    stale = {"algorithm": "pagerank", "write": "rank"}
    assert site.post("/analyze", stale, headers={"If-Match": f'"{head}"'}).status == 412
    assert len(pages.commits()) == 3


def test_wrong_requests_are_refused(site: ServerUnderTest, pages: og.Graph) -> None:
    for body, status in (
        ({}, 400),
        ({"algorithm": "magic"}, 400),
        ({"algorithm": "pagerank", "nodes": ["Nothing"]}, 404),
        ({"algorithm": "pagerank", "nodes": "Page"}, 400),
        ({"algorithm": "pagerank", "damping": 2}, 400),
        ({"algorithm": "pagerank", "damping": 1}, 400),
        ({"algorithm": "pagerank", "weight": "nothing"}, 400),
        ({"algorithm": "pagerank", "write": 1}, 400),
        ({"algorithm": "pagerank", "write": "nothing"}, 400),
        ({"algorithm": "pagerank", "write": "rank", "at": "main"}, 400),
        ({"algorithm": "pagerank", "top": 0}, 400),
        ({"algorithm": "pagerank", "engine": "spark"}, 400),
        ({"algorithm": "pagerank", "branch": "none"}, 404),
    ):
        reply = site.post("/analyze", body)
        assert reply.status == status, (body, reply.body)
    assert len(pages.commits()) == 2


def test_only_a_write_requires_change(pages: og.Graph) -> None:
    tokens = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"ana": "t"})}
    with serving(pages.uri, environ=tokens, token="t") as reading:
        assert reading.post("/analyze", {"algorithm": "pagerank"}).status == 200
        assert reading.post("/analyze", {"algorithm": "pagerank", "write": "rank"}).status == 403
    assert len(pages.commits()) == 2
