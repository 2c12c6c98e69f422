"""The change feed on the page: live commits, filters, pause, replay, bursts, a gap, copied code."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import omnigraph as og
from omnigraph.versioning.upkeep.maintenance import cleanup
from omnigraph.versioning.write.repository import Repository
from support.explorer import LOOKS, TOKEN, Explorer, ExplorerPage, exploring
from support.server import ServerUnderTest

BRANCH = "feed/work"
REF = quote(BRANCH, safe="")
STATUS = 'query set($s: String) { update Project set { status: $s } where code = "harbour-watch" }'


@pytest.fixture(scope="module", autouse=True)
def branch(demo_server: ServerUnderTest) -> Iterator[None]:
    demo_server.post("/branches", {"name": BRANCH})
    yield
    demo_server.request("DELETE", f"/branches/{REF}?force=true")


def commit(explorer: Explorer, status: str) -> None:
    body = {"query": STATUS, "params": {"s": status}, "branch": BRANCH, "message": f"now {status}"}
    assert explorer.server.post("/mutate", body).status == 200


def open_feed(tab: ExplorerPage, place: str) -> None:
    """Open the screen, whose stream never ends."""
    tab.page.goto(f"{tab.server.url}/ui/#token={TOKEN}&to={quote(place, safe='')}")
    tab.page.locator(".feed-state[data-state=live]").wait_for()


def titles(tab: ExplorerPage) -> list[str]:
    return [str(each) for each in tab.page.locator(".feed-card header strong").all_inner_texts()]


def test_commits_appear_pause_keeps_them_and_the_filter_selects(explorer: Explorer) -> None:
    with explorer.page(None) as tab:
        open_feed(tab, f"{REF}/changes")
        tab.page.get_by_text(f"Waiting for commits on {BRANCH}.").wait_for()
        commit(explorer, "active")
        tab.page.locator(".feed-card", has_text="now active").wait_for()
        assert "status" in tab.page.locator(".feed-changes").inner_text()
        tab.page.locator("[aria-live=polite]", has_text="1 new commit").wait_for(state="attached")
        tab.page.get_by_role("button", name="Pause").click()
        commit(explorer, "done")
        commit(explorer, "paused")
        tab.page.locator(".feed-state[data-state=paused]").wait_for()
        assert titles(tab) == ["now active"]
        tab.page.get_by_role("button", name="Resume").click()
        tab.page.locator(".feed-card", has_text="now paused").wait_for()
        assert titles(tab) == ["now paused", "now done", "now active"]
        tab.page.get_by_role("button", name="Copy consumer code").click()
        tab.page.get_by_role("menuitem", name="Python").click()
        code = tab.page.evaluate("navigator.clipboard.readText()")
        compile(code, "consumer.py", "exec")
        assert f'branch="{BRANCH}"' in code
        tab.page.get_by_role("button", name="Replay from …").click()
        tab.page.get_by_role("menuitem", name="The last ten commits").click()
        tab.page.locator(".feed-card", has_text="the station's notes").wait_for()
        assert "start=" in tab.fragment
        tab.page.get_by_text("deleted", exact=True).click()
        tab.page.get_by_text(f"Waiting for commits on {BRANCH}.").wait_for()
        tab.page.get_by_text("added", exact=True).click()
        tab.page.get_by_role("combobox", name="Type").select_option("Team")
        tab.page.locator(".feed-card", has_text="the station's notes").wait_for()
        assert titles(tab) == ["the station's notes"]
        assert set(tab.page.locator(".feed-changes li > .muted:nth-of-type(3)").all_inner_texts()) == {"Team"}


def test_a_start_that_does_not_exist_is_a_problem(explorer: Explorer) -> None:
    with explorer.page(None) as tab:
        open_feed(tab, f"{REF}/changes")
        tab.page.get_by_role("button", name="Replay from …").click()
        tab.page.get_by_role("menuitem", name="After a commit …").click()
        tab.page.get_by_label("Commit id").fill("nonsense")
        tab.page.keyboard.press("Enter")
        tab.page.get_by_role("alert").get_by_text("nonsense").wait_for()
        tab.page.locator(".feed-state[data-state=stopped]").wait_for()


def test_a_gap_says_what_to_do(browser: Any, tmp_path: Path) -> None:
    graph = og.init(tmp_path / "gap.omni", "node Person {\n    name: String @key\n}\n")
    for name in ("Ada", "Ben", "Cy"):
        graph.mutate("query add($name: String) { insert Person { name: $name } }", params={"name": name})
    cleanup(Repository.open(graph.uri), keep=1, confirm=True, grace=timedelta(seconds=-3600))
    with exploring(Path(str(graph.uri))) as server, Explorer(browser, server).page(None) as tab:
        open_feed(tab, "main/changes")
        tab.page.get_by_role("button", name="Replay from …").click()
        tab.page.get_by_role("menuitemradio", name="The first commit").click()
        tab.page.get_by_text("omnigraph changes baseline").wait_for()
        tab.page.get_by_role("button", name="Go on from now").click()
        tab.page.locator(".feed-state[data-state=live]").wait_for()


def test_a_pinned_place_has_no_feed(explorer: Explorer) -> None:
    head = explorer.server.get("/branches/main").json["head"]["graph_commit_id"]
    with explorer.page(f"%40{head}/changes") as tab:
        tab.page.get_by_text("The feed follows a branch.").wait_for()


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_no_accessibility_violation(explorer: Explorer, theme: str, size: tuple[int, int]) -> None:
    with explorer.page(None, theme=theme, size=size, bypass_csp=True) as tab:
        open_feed(tab, f"{REF}/changes?start=beginning")
        tab.page.locator(".feed-card").first.wait_for()
        assert tab.axe() == []
        assert tab.overflowing == []
