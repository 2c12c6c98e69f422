"""The home page and the refs of the bar in a real browser: branches, tags and points of time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import omnigraph as og
from support.explorer import LOOKS, Explorer, ExplorerPage, exploring, text_of

BRANCH = "home/own"
TAG = "2026-01-31"
"""A tag whose name reads like a time."""


@pytest.fixture
def own_refs(explorer: Explorer) -> Iterator[str]:
    """A branch with one commit of its own and a tag at the head of main; returns the commit of main."""
    server = explorer.server
    assert server.post("/branches", {"name": BRANCH}).status == 200
    record = '{"type": "Topic", "data": {"name": "own-topic"}}'
    assert server.post("/load", {"data": record, "branch": BRANCH, "mode": "merge"}).status == 200
    head = server.get("/branches/main").json["head"]["graph_commit_id"]
    assert server.post("/tags", {"name": TAG, "at": head, "message": "the last of January"}).status == 200
    yield head
    server.request("DELETE", f"/branches/{quote(BRANCH, safe='')}?force=true")
    server.request("DELETE", f"/tags/{TAG}")


def row_of(tab: ExplorerPage, name: str) -> Any:
    return tab.page.get_by_role("listitem").filter(has=tab.page.get_by_role("link", name=name))


def names(explorer: Explorer, route: str) -> list[str]:
    listed = explorer.server.get(f"/{route}").json[route]
    return [each if isinstance(each, str) else each["name"] for each in listed]


def test_all_branches_are_one_request(explorer: Explorer, own_refs: str) -> None:
    with explorer.page(None) as tab:
        asked: list[str] = []
        tab.page.on("request", lambda request: asked.append(request.url))
        tab.open("main/home")
        assert "1 ahead" in text_of(tab)
        assert len([url for url in asked if "/branches" in url]) == 1


def test_a_branch_row_leads_to_its_comparison_and_to_a_proposal(explorer: Explorer, own_refs: str) -> None:
    with explorer.page() as tab:
        tab.page.get_by_role("link", name=f"Compare {BRANCH}").click()
        tab.settle()
        assert tab.fragment == f"#/g/station/main/diff?from=main&to={quote(BRANCH, safe='')}"
        assert "own-topic" in text_of(tab)
        tab.page.go_back()
        tab.page.get_by_role("link", name=f"Propose {BRANCH}").click()
        tab.settle()
        assert f"source={quote(BRANCH, safe='')}" in tab.fragment


def test_an_unmerged_branch_is_deleted_after_its_name_was_typed(explorer: Explorer, own_refs: str) -> None:
    with explorer.page(f"{quote(BRANCH, safe='')}/home") as tab:
        tab.page.get_by_role("button", name=f"More about {BRANCH}").click()
        tab.page.get_by_role("menuitem", name="Delete …").click()
        delete = tab.page.get_by_role("dialog").get_by_role("button", name="Delete branch")
        assert delete.is_disabled()
        tab.page.get_by_label(f"Type {BRANCH} to delete it").fill(BRANCH)
        delete.click()
        tab.page.get_by_role("dialog").wait_for(state="detached")
        tab.settle()
        assert tab.fragment == "#/g/station/main/home"
        assert BRANCH not in text_of(tab)
    assert BRANCH not in names(explorer, "branches")


def test_a_branch_is_created_from_a_row(explorer: Explorer) -> None:
    with explorer.page() as tab:
        tab.page.get_by_role("button", name="More about main").click()
        assert tab.page.get_by_role("menuitem", name="Delete …").count() == 0
        tab.page.get_by_role("menuitem", name="New branch from here …").click()
        tab.page.get_by_label("Name").fill(BRANCH)
        tab.page.get_by_role("button", name="Create branch").click()
        tab.page.get_by_role("dialog").wait_for(state="detached")
        tab.settle()
        assert tab.fragment == f"#/g/station/{quote(BRANCH, safe='')}/home"
        tab.page.get_by_role("button", name=f"More about {BRANCH}").click()
        tab.page.get_by_role("menuitem", name="Delete …").click()
        tab.page.get_by_role("button", name="Delete branch").click()
        tab.page.get_by_role("dialog").wait_for(state="detached")
    assert BRANCH not in names(explorer, "branches")


def test_a_tag_is_shown_read_and_deleted(explorer: Explorer, own_refs: str) -> None:
    with explorer.page() as tab:
        tab.page.get_by_role("button", name="Branch main").click()
        tab.page.get_by_role("menuitemradio", name=TAG).click()
        tab.settle()
        assert tab.fragment == f"#/g/station/%40name%3A{TAG}/home"
        assert tab.page.get_by_text("A pinned commit.").is_visible()
        tab.page.get_by_role("button", name=f"Delete tag {TAG}").click()
        tab.page.get_by_role("dialog").get_by_role("button", name="Delete tag").click()
        tab.page.get_by_role("dialog").wait_for(state="detached")
    assert TAG not in names(explorer, "tags")


def test_a_time_shows_the_commit_before_it_and_now_returns(explorer: Explorer) -> None:
    commits = explorer.server.get("/commits?branch=review/spring").json["commits"]
    newest, older = commits[0], commits[1]
    with explorer.page("review%2Fspring/home") as tab:
        tab.page.get_by_role("button", name="Time now").click()
        tab.page.get_by_role("menuitem", name="A week ago").click()
        tab.page.get_by_text("review/spring has no commit before").wait_for()
        tab.page.get_by_role("button", name="Time now").click()
        tab.page.get_by_role("menuitem", name="Choose a time …").click()
        # The field has whole seconds in the zone of the browser, which is UTC here.
        between = tab.page.evaluate(
            "at => new Date(Math.ceil(at / 1e6) * 1000).toISOString().slice(0, 19)", older["created_at"]
        )
        expected = newest if newest["created_at"] <= -(-older["created_at"] // 10**6) * 10**6 else older
        tab.page.get_by_label("Time, in your time zone").fill(between)
        tab.page.get_by_role("button", name="Show", exact=True).click()
        tab.settle()
        assert tab.fragment == f"#/g/station/%40{expected['graph_commit_id']}/home"
        tab.page.get_by_role("button", name="Time ", exact=False).click()
        tab.page.get_by_role("menuitemradio", name="Now, on review/spring").click()
        tab.settle()
        assert tab.fragment == "#/g/station/review%2Fspring/home"


def test_requests_after_a_write_name_its_commit(explorer: Explorer, own_refs: str) -> None:
    """Another process of a server may be behind: `Omnigraph-Min-Commit` makes it wait."""
    with explorer.page("main/home") as tab:
        sent: list[tuple[str, str | None]] = []
        tab.page.on("request", lambda request: sent.append((request.url, request.headers.get("omnigraph-min-commit"))))
        tab.page.evaluate("location.hash = '#/g/station/main/history'")
        tab.settle()
        assert sent
        assert {commit for _, commit in sent} == {None}
        tab.page.evaluate(f"location.hash = '#/g/station/{quote(BRANCH, safe='')}/query'")
        tab.settle()
        change = 'query own() { update Project set { status: "done" } where code = "harbour-watch" }'
        tab.page.get_by_role("textbox", name="Query text").click()
        tab.page.keyboard.insert_text(change)
        tab.page.get_by_role("button", name="Apply change").click()
        tab.page.get_by_text("Changed 1 node").wait_for()
        sent.clear()
        tab.page.evaluate("location.hash = '#/g/station/main/home'")
        tab.settle()
        written = explorer.server.get(f"/branches/{quote(BRANCH, safe='')}").json["head"]["graph_commit_id"]
        assert {commit for url, commit in sent if "/ui/" not in url} == {written}
        tab.page.get_by_role("button", name=f"Delete tag {TAG}").click()
        tab.page.get_by_role("dialog").get_by_role("button", name="Delete tag").click()
        tab.page.get_by_role("dialog").wait_for(state="detached")
        sent.clear()
        tab.page.evaluate("location.hash = '#/g/station/main/history'")
        tab.settle()
        assert {commit for _, commit in sent} == {None}


def test_loading_is_shown_with_names_of_the_schema(explorer: Explorer) -> None:
    with explorer.page("review%2Fspring/home") as tab:
        tab.page.get_by_role("button", name="Load data").click()
        shown = tab.page.get_by_role("dialog").locator("pre").inner_text()
        assert '"type":"Note"' in shown
        assert shown.endswith("omnigraph load records.jsonl --mode append --branch 'review/spring'")


def test_the_index_line_counts_rows_that_no_index_covers(browser: Any, tmp_path: Path) -> None:
    with og.init(tmp_path / "plain.omni", "node Town { name: String @key }") as graph:
        graph.load([{"type": "Town", "data": {"name": "Lund"}}], mode="append")
    with exploring(tmp_path / "plain.omni") as server, Explorer(browser, server).page("main/home") as tab:
        assert "Indexes: 0 of 1 table covered, 1 row without" in text_of(tab)


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_open_menus_have_no_accessibility_violation(
    explorer: Explorer, own_refs: str, theme: str, size: tuple[int, int]
) -> None:
    with explorer.page(theme=theme, size=size, bypass_csp=True) as tab:
        for name in ("Branch main", f"More about {BRANCH}"):
            tab.page.get_by_role("button", name=name).click()
            tab.page.get_by_role("menu").wait_for()
            assert tab.axe() == []
            tab.page.keyboard.press("Escape")
        assert tab.overflowing == []
