"""Problems in the page: denials explain themselves, lost races name the commits, an outage keeps the screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import omnigraph as og
from support.explorer import Explorer, ExplorerPage, require_browser, text_of
from support.guarded_server import guarded

BO = "token-of-bo"
POLICY = """version: 1
groups: {guests: [bo]}
protected_branches: [main]
rules:
  - id: guests-read-main
    allow: {actors: {group: guests}, actions: [read], branch_scope: protected}
"""


@pytest.fixture(scope="module")
def guests(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    require_browser()
    graph = og.init(tmp_path_factory.mktemp("guests") / "people.omni", "node Person { name: String @key }", sync=False)
    graph.branch_create("draft")
    with guarded(graph, POLICY) as server:
        yield Explorer(browser, server, BO)


def open_refused(tab: ExplorerPage) -> Any:
    tab.page.goto(f"{tab.server.url}/ui/#token={BO}&to=draft%2Fhome")
    box = tab.page.get_by_role("alert")
    box.wait_for()
    return box


def test_task_10_why_was_i_refused(guests: Explorer) -> None:
    with guests.page(None) as tab:
        box = open_refused(tab)
        box.get_by_role("button", name="Why?").click()
        reasons = tab.page.get_by_role("region", name="Why the request was denied")
        reasons.wait_for()
        assert tab.clicks == 1
        assert "guests-read-main" in reasons.inner_text()
        assert "Request 01" in box.inner_text()
    with guests.page(None) as tab:
        open_refused(tab)
        tab.page.get_by_role("link", name="Admin", exact=True).click()
        tab.page.get_by_role("tab", name="Access").click()
        tab.page.get_by_role("button", name="Explain").click()
        tab.page.get_by_text("no rule allows action 'read' on branch 'draft' for actor 'bo'").wait_for()
        assert tab.clicks == 3
        assert "denied" in text_of(tab)


def test_a_problem_of_a_lost_race_names_the_commits(explorer: Explorer) -> None:
    branch = "lost-race"
    assert explorer.server.post("/branches", {"name": branch}).status == 200
    with explorer.page(f"{branch}/query?q=insert%20Topic%20%7B%20name%3A%20%22quays%22%20%7D") as tab:
        tab.page.get_by_role("button", name="Apply change").wait_for()
        other = 'query add() { insert Topic { name: "jetties" } }'
        changed = explorer.server.post("/mutate", {"query": other, "branch": branch, "message": "jetties first"})
        assert changed.status == 200
        tab.page.get_by_role("button", name="Apply change").click()
        box = tab.page.get_by_role("alert")
        box.get_by_text("jetties first").wait_for()
        assert "local" in box.inner_text()
        assert "Commits that moved lost-race meanwhile" in box.inner_text()
        tab.page.get_by_role("button", name="Apply change").click()
        tab.page.get_by_text("Changed 1 node").wait_for()


def test_an_outage_keeps_the_screen_and_reads_are_repeated(explorer: Explorer) -> None:
    with explorer.page("main/search?q=harbour") as tab:
        tab.page.locator(".hit").first.wait_for()
        tab.page.context.set_offline(True)
        tab.page.get_by_label("Type", exact=True).select_option("Project")
        tab.page.get_by_text("The server does not answer. Trying again").wait_for()
        assert tab.page.get_by_role("searchbox", name="Search text").input_value() == "harbour"
        tab.page.context.set_offline(False)
        tab.page.locator(".hit .chip", has_text="Project").first.wait_for()
        tab.page.get_by_text("The server does not answer").wait_for(state="detached")


def test_a_refused_token_is_asked_for_and_the_read_repeated(explorer: Explorer) -> None:
    with explorer.page("main/home") as tab:
        tab.page.evaluate("sessionStorage.setItem('omnigraph.token', 'og_wrong')")
        tab.page.reload()
        dialog = tab.page.get_by_role("dialog", name="A token is needed")
        dialog.get_by_text("The server refused the token.").wait_for()
        dialog.get_by_label("Token").fill(explorer.token)
        tab.page.keyboard.press("Enter")
        tab.page.get_by_text("Recent commits").wait_for()
