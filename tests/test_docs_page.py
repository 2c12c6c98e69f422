"""The page `/docs` in a real browser: it lists the routes and sends requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.server.route_table import ROUTES
from support.browser import Browser, find_browser
from support.commands import SCHEMA
from support.guarded_server import TOKEN, guarded
from support.server import ServerUnderTest

PROGRAM = find_browser()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")
POLICY = """version: 1
groups: {team: [ana]}
rules:
  - id: team-works
    allow: {actors: {group: team}, actions: [read, change]}
  - id: team-manages-branches
    allow: {actors: {group: team}, actions: [branch_create, branch_merge]}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerUnderTest]:
    graph = og.init(tmp_path / "people.omni", SCHEMA, sync=False)
    graph.load([{"type": "Person", "data": {"name": name}} for name in ("Ada", "Ben")], mode="append")
    with guarded(graph, POLICY) as running:
        yield running


@pytest.fixture
def page(server: ServerUnderTest, tmp_path: Path) -> Iterator[Browser]:
    assert PROGRAM is not None
    with Browser(PROGRAM, tmp_path / "browser") as browser:
        browser.open(f"{server.url}/docs")
        browser.wait_for("document.querySelector('details.operation') !== null")
        yield browser


def send(page: Browser, operation: str, body: Any = None) -> tuple[str, Any]:
    """Fill the form of an operation, press its button, and return the shown status and document."""
    form = f"document.getElementById('{operation}')"
    page.run(f"{form}.open = true")
    if body is not None:
        page.run(f"{form}.querySelector('textarea').value = {json.dumps(json.dumps(body))}")
    page.run(f"{form}.querySelector('[aria-live]').replaceChildren()")
    page.run(f"{form}.querySelector('button').click()")
    page.wait_for(f"{form}.querySelector('.status') !== null")
    status = page.run(f"{form}.querySelector('.status').textContent")
    return status, json.loads(page.run(f"{form}.querySelector('[aria-live] pre').textContent"))


def test_the_page_lists_every_route(page: Browser) -> None:
    shown = page.run("[...document.querySelectorAll('details.operation')].map(operation => operation.id)")
    assert sorted(shown) == sorted(route.name for route in ROUTES)
    page.run("document.getElementById('filter').value = 'snapshot'")
    page.run("document.getElementById('filter').dispatchEvent(new Event('input'))")
    left = page.run("[...document.querySelectorAll('details.operation:not([hidden])')].map(operation => operation.id)")
    assert "getSnapshot" in left
    assert "mutate" not in left


def test_the_page_reads_changes_and_merges(page: Browser, tmp_path: Path) -> None:
    status, document = send(page, "query")
    assert status.startswith("401")
    assert document["reason"] == "missing_token"
    page.run(f"document.getElementById('token').value = '{TOKEN}'")
    status, document = send(page, "query")
    assert status.startswith("200")
    assert document["rows"] == [{"p.name": "Ada"}, {"p.name": "Ben"}]
    assert send(page, "createBranch", {"name": "draft"})[0].startswith("20")
    add = {"query": 'query add() { insert Person { name: "Cleo" } }', "branch": "draft"}
    assert send(page, "mutate", add)[1]["affected_nodes"] == 1
    assert send(page, "mergeBranches", {"source": "draft"})[1]["outcome"] == "fast_forward"
    assert send(page, "query")[1]["row_count"] == 3
    assert [row["name"] for row in og.open(tmp_path / "people.omni").to_arrow("Person").to_pylist()][-1] == "Cleo"


def test_the_page_shows_events_until_they_are_stopped(page: Browser) -> None:
    form = "document.getElementById('streamChanges')"
    page.run(f"document.getElementById('token').value = '{TOKEN}'")
    page.run(f"{form}.open = true")
    page.run(f"{form}.querySelector('button').click()")
    page.wait_for(f"/^id: /m.test(({form}.querySelector('[aria-live] pre') || document.body).textContent)")
    page.run(f"{form}.querySelector('[aria-live] button').click()")
    page.wait_for(f"{form}.querySelector('[aria-live] button') === null")
    assert page.run(f"{form}.querySelector('.status.bad')") is None
