"""The search page: explained ranks, compared settings, tests of a search, filters, nodes that are not found."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from support.explorer import LOOKS, Explorer, text_of

TEXT = "night of the surge"


def on_branch(explorer: Explorer, name: str) -> str:
    assert explorer.server.post("/branches", {"name": name}).status == 200
    return name


def test_task_8_explain_compare_and_save_as_test(explorer: Explorer) -> None:
    branch = on_branch(explorer, "search-tests")
    with explorer.page(f"{branch}/home") as tab:
        tab.page.get_by_role("navigation").get_by_role("link", name="Search").click()
        tab.page.get_by_role("searchbox", name="Search text").focus()
        tab.page.keyboard.type(TEXT)
        tab.page.keyboard.press("Enter")
        tab.page.locator(".hit").first.get_by_role("button", name="Why").click()
        why = tab.page.locator(".why")
        why.get_by_text("relevance of").wait_for()
        assert "surge" in why.locator(".terms").first.inner_text()
        assert "distance of meaning" in why.inner_text()
        why.get_by_text("Wrote").wait_for()
        tab.page.get_by_role("button", name="Compare settings").click()
        tab.page.get_by_role("region", name="Settings B").locator(".hit").first.wait_for()
        assert tab.page.locator(".move").count() > 0
        assert tab.page.get_by_text("not in B").count() > 0
        tab.page.get_by_role("button", name="Save as test").click()
        dialog = tab.page.get_by_role("dialog", name="Save as test")
        dialog.get_by_text("Passes on this commit").wait_for()
        tab.page.keyboard.press("Enter")
        tab.page.get_by_text("Stored finds_night_of_the_surge").wait_for()
        assert tab.clicks == 4
    stored = explorer.server.get(f"/queries/finds_night_of_the_surge?branch={branch}").json
    assert "@check(empty, required)" in stored["source"]
    rows = explorer.server.post("/query", {"query": stored["source"], "branch": branch}).json
    assert rows["row_count"] == 0


def test_a_proposal_runs_the_saved_test(explorer: Explorer) -> None:
    branch = on_branch(explorer, "search-runs")
    with explorer.page(f"{branch}/search?q={quote(TEXT)}") as tab:
        tab.page.locator(".hit").first.wait_for()
        tab.page.get_by_role("button", name="Save as test").click()
        dialog = tab.page.get_by_role("dialog", name="Save as test")
        dialog.get_by_text("Passes on this commit").wait_for()
        dialog.get_by_label("Name").fill("finds_the_surge")
        dialog.get_by_role("button", name="Save").click()
        tab.page.get_by_text("Stored finds_the_surge").wait_for()
    proposal = explorer.server.post("/proposals", {"source": branch, "title": "a test"}).json
    checked = explorer.server.get(f"/proposals/{proposal['id']}").json
    found = [check for check in checked["checks"] if "finds_the_surge" in json.dumps(check)]
    assert [check["state"] for check in found] == ["pass"]


def test_a_comparison_shows_moves(explorer: Explorer) -> None:
    with explorer.page("main/search?q=boats%20on%20the%20water&ab=1&b_by=words&type=Note&b_type=Note") as tab:
        tab.page.locator(".move").first.wait_for()
        moves = " ".join(tab.page.locator(".move").all_inner_texts())
        assert "▲" in moves
        assert "higher than with A" in moves
        tab.page.get_by_role("button", name="End comparison").click()
        tab.page.wait_for_selector(".move", state="detached")
        assert "b_by" not in tab.fragment


def test_filters_compared_settings_and_missing_nodes_are_in_the_link(explorer: Explorer) -> None:
    with explorer.page(f"main/search?q={quote(TEXT)}&type=Project&by=words") as tab:
        tab.page.get_by_role("button", name="Add filter").click()
        tab.page.get_by_label("Property").select_option("status")
        tab.page.get_by_label("Value").fill("paused")
        tab.page.get_by_label("Value").press("Enter")
        tab.page.wait_for_function("location.hash.includes('paused')")
        tab.page.reload()
        tab.settle()
        assert tab.page.get_by_label("Value").input_value() == "paused"
        tab.page.get_by_label("Id of a node").fill("no-such-node")
        tab.page.get_by_label("Id of a node").press("Enter")
        tab.page.locator(".why-not").get_by_text("not found", exact=True).wait_for()
    with explorer.page(
        "main/search?q=harbour&type=Project&by=words&not=harbour-watch&where=" + quote('[["status","=","done"]]')
    ) as tab:
        assert 'does not satisfy status = "done"' in text_of(tab)


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_no_accessibility_violation(explorer: Explorer, theme: str, size: tuple[int, int]) -> None:
    hit = explorer.server.post("/search", {"text": TEXT, "limit": 1}).json["hits"][0]
    why = quote(f"{hit['type']}/{hit['id']}", safe="")
    place = f"main/search?q={quote(TEXT)}&ab=1&b_by=words&why={why}&not=harbour-watch"
    with explorer.page(place, theme=theme, size=size, bypass_csp=True) as tab:
        tab.page.locator(".why").first.wait_for()
        tab.settle()
        assert tab.axe() == []
        assert tab.overflowing == []
        tab.page.get_by_role("button", name="Save as test").click()
        tab.page.get_by_text("on this commit").wait_for()
        assert tab.axe() == []
