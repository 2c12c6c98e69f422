"""Compare: task 7 with its clicks, one selection for three panes, filters, marks, links and accessibility."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from support.explorer import LOOKS, Explorer, ExplorerPage
from support.server import ServerUnderTest

AGENT = "agent/7"
SPRING = "main/diff?from=main&to=" + quote("review/spring", safe="")
CHANGES = [
    ('query q($t: String) { update Note set { text: $t } where slug = "note-0003" }', "a clearer text"),
    (
        'query q($t: String) { update Project set { status: "done", budget: 151000.0 } where code = "harbour-watch" }',
        "done",
    ),
    ('query q($t: String) { delete Person where handle = "yuna-meents" }', "Yuna moves away"),
]


@pytest.fixture(scope="module")
def agent(demo_server: ServerUnderTest) -> Iterator[str]:
    """A branch with three commits: a text with its vector, a number, and a deleted node with its edges."""
    server = demo_server
    assert server.post("/branches", {"name": AGENT}).status == 200
    read = {"query": 'match { $n: Note { slug: "note-0003" } } return { $n.text as text }'}
    text = server.post("/query", read).json["rows"][0]["text"]
    after = text.replace(".", " on Tuesday.", 1)
    for query, message in CHANGES:
        reply = server.post("/mutate", {"query": query, "params": {"t": after}, "branch": AGENT, "message": message})
        assert reply.status == 200, reply.body
    yield text
    server.request("DELETE", f"/branches/{quote(AGENT, safe='')}?force=true")


def rows(tab: ExplorerPage) -> list[str]:
    tab.page.locator(".change").first.wait_for()
    found: list[str] = tab.page.evaluate("[...document.querySelectorAll('.change')].map(each => each.dataset.row)")
    return found


def wait_rows(tab: ExplorerPage, count: int) -> list[str]:
    tab.page.wait_for_selector(f".changes > .change:nth-child({count}):last-child")
    return rows(tab)


def test_task_7_what_an_agent_changed_on_its_branch(explorer: Explorer, agent: str) -> None:
    with explorer.page() as tab:
        branch = tab.page.locator(".branch-row", has_text=AGENT)
        branch.get_by_role("link", name="3 ahead").click()
        row = tab.page.locator('.change[data-row="node:Note:note-0003"]')
        row.locator(".change-name").click()
        tab.page.locator(".picture-list .chosen a").wait_for()
        assert tab.clicks <= 2
        # Changed words of the text are marked; the vector has a distance.
        assert row.locator(".words ins").all_inner_texts() == [" on Tuesday"]
        assert row.locator(".words del").count() == 0
        assert re.search(r"distance 0\.\d", row.inner_text())
        # One selection: the row, the type, the picture, the link.
        assert row.get_attribute("aria-current") == "true"
        assert tab.page.locator(".type-item[data-held]").inner_text().startswith("Note")
        assert "row=node%3ANote%3Anote-0003" in tab.fragment
        tab.page.reload()
        tab.page.locator('.change[aria-current][data-row="node:Note:note-0003"]').wait_for()
        numbers = tab.page.locator('.change[data-row="node:Project:harbour-watch"]')
        assert "+1,500" in numbers.inner_text()


def test_counts_rows_and_picture_show_the_same_changes(explorer: Explorer) -> None:
    with explorer.page(SPRING) as tab:
        shown = wait_rows(tab, 9)
        assert shown[:3] == ["node:Person:yuna-meents", "node:Project:ferry-timetable", "node:Project:harbour-watch"]
        assert "9 changes" in tab.page.inner_text(".diff-head")
        status = tab.page.locator('.change[data-row="node:Project:harbour-watch"]')
        assert status.locator("del").inner_text() == "active"
        assert status.locator("ins").inner_text() == "done"
        gone = tab.page.locator(".edges-gone")
        gone.locator("summary").click()
        assert gone.locator("li").count() == 5
        # The picture has the changed nodes with their signs, and a sentence.
        tab.page.wait_for_selector(".canvas[data-settled]")
        marks = tab.page.evaluate(
            "[...document.querySelectorAll('.picture-list .item .grow')].map(each => each.textContent.trim())"
        )
        assert {mark for mark in marks if mark[:2] in ("+ ", "~ ", "− ")} == {
            "+ Ferry timetable",
            "~ Harbour watch",
            "− Yuna Meents",
        }
        assert "3 nodes and 6 edges" in (tab.page.locator(".stage").get_attribute("aria-label") or "")
        # Keys move the selection; "v" marks a row as viewed, which folds it and stays after a reload.
        tab.page.keyboard.press("j")
        tab.page.locator('.change[aria-current][data-row="node:Person:yuna-meents"]').wait_for()
        tab.page.keyboard.press("v")
        tab.page.keyboard.press("j")
        tab.page.get_by_text("1 of 9 viewed").wait_for()
        assert tab.page.locator('.change[data-row="node:Person:yuna-meents"] .change-body').count() == 0
        tab.page.reload()
        tab.page.get_by_text("1 of 9 viewed").wait_for()


def test_filters_are_in_the_link(explorer: Explorer, agent: str) -> None:
    place = f"main/diff?from=main&to={quote(AGENT, safe='')}"
    with explorer.page(place) as tab:
        everything = len(rows(tab))
        tab.page.get_by_text("Hide edges of deleted nodes").click()
        assert wait_rows(tab, 3) == ["node:Note:note-0003", "node:Person:yuna-meents", "node:Project:harbour-watch"]
        tab.page.get_by_role("combobox", name="Property").select_option("budget")
        assert wait_rows(tab, 1) == ["node:Project:harbour-watch"]
        tab.page.get_by_role("button", name="Clear filters").click()
        tab.page.get_by_label("Find in changes").fill("tuesDAY")
        assert wait_rows(tab, 1) == ["node:Note:note-0003"]
        assert "find=tuesDAY" in tab.fragment
        assert "edges=hide" in tab.fragment
        tab.page.reload()
        assert wait_rows(tab, 1) == ["node:Note:note-0003"]
        tab.page.get_by_role("button", name="Clear filters").click()
        tab.page.get_by_text("Hide edges of deleted nodes").click()
        wait_rows(tab, everything)
        tab.page.locator(".type-item", has_text="WorksOn").click()
        tab.page.locator('.change:not([data-row^="edge:WorksOn"])').first.wait_for(state="detached")
        tab.page.get_by_role("radio", name="Added").check()
        tab.page.get_by_text("No difference.").first.wait_for()


def test_both_sides_include_the_changes_of_the_other_branch(explorer: Explorer) -> None:
    with explorer.page(SPRING) as tab:
        wait_rows(tab, 9)
        tab.page.get_by_role("button", name="Which changes").click()
        tab.page.get_by_role("menuitemradio", name="Both sides").click()
        row = tab.page.locator('.change[data-row="node:Project:harbour-watch"] del', has_text="paused")
        row.wait_for()
        assert "since=both" in tab.fragment
        tab.page.get_by_role("button", name="Swap the two sides").click()
        tab.page.locator('.change[data-row="node:Person:yuna-meents"][data-op="insert"]').wait_for()
        tab.page.get_by_role("button", name="Copy as").click()
        tab.page.get_by_role("menuitem", name="Python").click()
        assert tab.page.evaluate("navigator.clipboard.readText()") == 'graph.diff("review/spring..main")'


def test_equal_refs_have_no_difference_and_unknown_ones_are_a_problem(explorer: Explorer) -> None:
    with explorer.page("main/diff?from=main&to=main") as tab:
        tab.page.get_by_text("No difference.").first.wait_for()
        assert tab.page.get_by_role("button", name="Merge …").get_attribute("aria-disabled") == "true"
    with explorer.page("main/diff?from=main&to=no-such-branch") as tab:
        assert "no-such-branch" in tab.page.get_by_role("alert").inner_text()


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_no_accessibility_violation(explorer: Explorer, theme: str, size: tuple[int, int]) -> None:
    with explorer.page(SPRING, theme=theme, size=size, bypass_csp=True) as tab:
        wait_rows(tab, 9)
        tab.page.locator(".change-name").first.click()
        assert tab.axe() == []
        assert tab.overflowing == []
        if size[0] < 900:
            tab.page.get_by_role("tab", name="Picture").click()
            tab.page.wait_for_selector(".canvas[data-settled]")
            assert tab.axe() == []
            tab.page.get_by_role("tab", name="Types").click()
            assert tab.axe() == []
            assert tab.overflowing == []
