"""History: lanes, filters, the opened commit, and what can be done with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.explorer import LOOKS, Explorer, ExplorerPage
from support.server import ServerUnderTest

WORK = "history/work"
STATUS = 'query set($s: String) { update Project set { status: $s } where code = "harbour-watch" }'


@pytest.fixture(scope="module")
def work(demo_server: ServerUnderTest) -> Iterator[dict[str, str]]:
    """A branch with two commits of one row; its name and the ids of its commits."""
    server = demo_server
    assert server.post("/branches", {"name": WORK}).status == 200
    ids = {}
    for status in ("active", "done"):
        body = {"query": STATUS, "params": {"s": status}, "branch": WORK, "message": f"harbour: {status} again"}
        ids[status] = server.post("/mutate", body).json["commit"]["graph_commit_id"]
    yield ids
    server.request("DELETE", f"/branches/{WORK.replace('/', '%2F')}?force=true")


def messages(tab: ExplorerPage) -> list[str]:
    tab.page.locator(".commit-message").first.wait_for()
    return [str(each) for each in tab.page.locator(".commit-message").all_inner_texts()]


def open_commit(tab: ExplorerPage, message: str) -> None:
    tab.page.locator(".commit-button", has_text=message).click()
    tab.page.locator(".commit-detail").wait_for()
    tab.settle()


def test_lanes_names_and_filters_that_the_link_keeps(explorer: Explorer, work: dict[str, str]) -> None:
    with explorer.page("main/history") as tab:
        shown = messages(tab)
        assert shown[:2] == ["harbour: done again", "harbour: active again"]
        assert "Yuna moves away" in shown
        lanes = tab.page.locator(".commit-line .lanes path")
        assert lanes.count() > len(shown)
        heads = set(tab.page.locator(".chip.ref").all_inner_texts())
        assert {"main", "review/spring", WORK} <= {head.strip() for head in heads}
        tab.page.get_by_label("Message contains").fill("HARBOUR")
        tab.page.locator(".commit-message", has_text="Yuna").wait_for(state="detached")
        tab.page.get_by_role("combobox", name="Branch").select_option("main")
        tab.page.locator(".commit-message", has_text="again").first.wait_for(state="detached")
        assert messages(tab) == ["harbour: paused for the winter"]
        assert "text=HARBOUR" in tab.fragment
        tab.page.reload()
        assert messages(tab) == ["harbour: paused for the winter"]
        tab.page.get_by_label("From").fill("2199-01-01")
        tab.page.get_by_text("No commit matches.").wait_for()
        tab.page.get_by_role("button", name="Clear").click()
        tab.page.get_by_role("combobox", name="Type").select_option("MemberOf")
        tab.page.locator(".commit-message", has_text="harbour").first.wait_for(state="detached")
        assert "Yuna moves away" in messages(tab)


def test_an_opened_commit_shows_its_changes_and_leads_on(explorer: Explorer, work: dict[str, str]) -> None:
    with explorer.page("main/history") as tab:
        messages(tab)
        open_commit(tab, "Yuna moves away")
        counts = tab.page.locator(".type-counts li").all_inner_texts()
        assert any("Person" in each and "1" in each for each in counts)
        tab.page.get_by_role("button", name="Copy id").click()
        commit = tab.page.evaluate("navigator.clipboard.readText()")
        assert f"commit={commit}" in tab.fragment
        tab.page.get_by_role("link", name="Show changes").click()
        tab.settle()
        assert "/diff?" in tab.fragment
        assert commit in tab.fragment
        tab.page.go_back()
        tab.page.get_by_role("button", name="Compare with …").click()
        tab.page.get_by_role("dialog").get_by_role("button", name="main", exact=True).click()
        tab.page.wait_for_url("**/diff?from=main&to=*")
        tab.page.go_back()
        tab.page.get_by_role("link", name="See the graph as of here").click()
        tab.settle()
        assert tab.fragment == f"#/g/station/%40{commit}/home"


def test_a_commit_outside_the_list_is_shown_by_its_link(explorer: Explorer, work: dict[str, str]) -> None:
    with explorer.page(f"main/history?text=nothing-like-it&commit={work['done']}") as tab:
        tab.page.get_by_text("No commit matches.").wait_for()
    with explorer.page(f"main/history?branch=main&commit={work['done']}") as tab:
        tab.page.locator(".linked-commit").get_by_text(WORK).wait_for()


def test_a_commit_becomes_a_branch_and_a_tag_and_is_reverted(explorer: Explorer, work: dict[str, str]) -> None:
    ref = WORK.replace("/", "%2F")
    with explorer.page(f"{ref}/history?branch={ref}") as tab:
        messages(tab)
        open_commit(tab, "harbour: active again")
        tab.page.get_by_role("button", name="Tag", exact=True).click()
        tab.page.get_by_role("dialog").get_by_label("Name").fill("before-done")
        tab.page.keyboard.press("Enter")
        tab.page.get_by_text("Created tag before-done").wait_for()
        assert any(tag["name"] == "before-done" for tag in explorer.server.get("/tags").json["tags"])
        # A later commit changed the same value: the preview has a conflict, and nothing is written before a choice.
        tab.page.get_by_role("button", name="Revert …").click()
        dialog = tab.page.get_by_role("dialog")
        dialog.get_by_text("changed again later").wait_for()
        assert dialog.get_by_role("button", name="Revert", exact=True).is_disabled()
        dialog.get_by_text("those before the commit").click()
        dialog.locator(".type-counts").wait_for()
        dialog.get_by_role("button", name="Revert", exact=True).click()
        tab.page.locator(".commit-message", has_text='Revert "harbour: active again"').wait_for()
        node = explorer.server.get(f"/entities/Project/harbour-watch?branch={ref}").json["data"]
        assert node["status"] == "paused"
        tab.page.get_by_role("button", name="Branch from here").click()
        tab.page.get_by_role("dialog").get_by_label("Name").fill("history/other")
        tab.page.get_by_role("button", name="Create branch").click()
        tab.page.wait_for_url("**/history%2Fother/**")
        tab.settle()
        head = explorer.server.get("/branches/history%2Fother").json["head"]
        assert head["graph_commit_id"] == work["active"]
    for path in ("/branches/history%2Fother?force=true", "/tags/before-done"):
        assert explorer.server.request("DELETE", path).status == 200


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_no_accessibility_violation(explorer: Explorer, theme: str, size: tuple[int, int]) -> None:
    with explorer.page("main/history", theme=theme, size=size, bypass_csp=True) as tab:
        messages(tab)
        open_commit(tab, "harbour: paused for the winter")
        tab.page.evaluate("scrollTo(0, 0)")  # The header covers a part of a scrolled page.
        assert tab.axe() == []
        assert tab.overflowing == []
        tab.page.get_by_role("button", name="Revert …").click()
        tab.page.get_by_text("What the new commit changes").wait_for()
        assert tab.axe() == []
