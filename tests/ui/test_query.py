"""The query workspace: tasks 2 and 3 with their clicks, parameters, changes, problems, links, accessibility."""

from __future__ import annotations

import io
import json

import pyarrow.parquet as pq
import pytest

from support.explorer import LOOKS, Explorer, ExplorerPage, text_of

TEXT = "match { $a: Person  $a wrote $n } return { $a, $n, $n.title } limit 40"


COPIES = (
    ("Python", "graph.query("),
    ("curl", "Authorization: Bearer $OMNIGRAPH_TOKEN"),
    ("Command line", "omnigraph read"),
)


def fill_editor(tab: ExplorerPage, text: str) -> None:
    """Replace the text of the editor by the keyboard; its brackets close themselves."""
    editor = tab.page.locator(".cm-content")
    editor.wait_for()
    editor.evaluate("each => each.focus()")
    tab.page.keyboard.press("Control+a")
    # Chromium itself styles a text that replaces a coloured one, which the policy of the page reports.
    tab.page.keyboard.press("Delete")
    tab.page.keyboard.insert_text(text)


def run(tab: ExplorerPage) -> None:
    tab.page.keyboard.press("Control+Enter")
    tab.page.locator(".data-table").wait_for()


def test_task_2_run_a_stored_query_and_take_the_rows_along(explorer: Explorer) -> None:
    with explorer.page() as tab:
        page = tab.page
        page.get_by_role("link", name="Query", exact=True).click()
        page.get_by_role("link", name="colleagues").click()
        page.get_by_label("handle").wait_for()
        page.wait_for_selector(".parameters .input:focus")
        page.keyboard.type("ana-abt")
        page.get_by_role("button", name="Run").click()
        page.get_by_role("columnheader", name="projects").wait_for()
        page.get_by_role("button", name="Export").click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name="Parquet").click()
        assert tab.clicks <= 5
        rows = pq.read_table(io.BytesIO(download.value.path().read_bytes())).to_pylist()
        assert download.value.suggested_filename == "colleagues.parquet"
        assert len(rows) == 10
        assert set(rows[0]) == {"other.name", "other.role", "projects"}


def test_task_3_write_a_query_see_a_picture_send_a_link(explorer: Explorer) -> None:
    with explorer.page() as tab:
        page = tab.page
        page.get_by_role("link", name="Query", exact=True).click()
        page.wait_for_selector(".cm-content:focus")
        page.keyboard.insert_text(TEXT)
        page.keyboard.press("Control+Enter")
        page.get_by_text("40 rows").first.wait_for()
        page.get_by_role("tab", name="Picture").click()
        page.wait_for_selector(".canvas[data-settled]")
        assert "40 edges" in page.inner_text(".chosen")
        page.get_by_role("button", name="Copy link").click()
        page.get_by_text("Copied").wait_for()
        assert tab.clicks <= 3
        copied = page.evaluate("navigator.clipboard.readText()")
    with explorer.page(None) as other:
        other.page.goto(copied)
        other.page.get_by_label("Token", exact=True).fill("og_token-of-the-tests")
        other.page.keyboard.press("Enter")
        other.page.wait_for_selector(".canvas[data-settled]")
        listed = other.page.locator(".picture-list .item").count()
        assert listed > 40
        assert "Wrote" not in text_of(other)


def test_a_picture_is_the_same_each_time_and_follows_the_keys(explorer: Explorer) -> None:
    exported = []
    for _ in range(2):
        with explorer.page() as tab:
            page = tab.page
            page.goto(f"{explorer.server.url}/ui/#/g/station/main/query?view=picture&run=1&q={TEXT}")
            page.wait_for_selector(".canvas[data-settled]")
            page.get_by_role("button", name="Export").click()
            with page.expect_download() as download:
                page.get_by_role("menuitem", name="Picture as SVG").click()
            exported.append(download.value.path().read_text(encoding="utf-8"))
            page.locator(".stage").focus()
            page.keyboard.press("ArrowRight")
            page.locator(".picture-list [aria-pressed=true]").wait_for()
            chosen = page.inner_text(".chosen")
            page.keyboard.press("+")
            page.keyboard.press("0")
            assert chosen != ""
    assert exported[0] == exported[1]
    assert exported[0].startswith("<svg")


def test_table_json_and_plan_show_one_result(explorer: Explorer) -> None:
    with explorer.page("main/query") as tab:
        fill_editor(tab, 'match { $p: Project { code: "harbour-watch" } } return { $p.code, $p.budget, $p.started }')
        run(tab)
        assert "149500" in tab.page.inner_text(".data-table")
        tab.page.get_by_role("tab", name="JSON").click()
        rows = json.loads(tab.page.inner_text(".json pre"))
        assert rows == [{"p.code": "harbour-watch", "p.budget": 149500, "p.started": "2023-09-18"}]
        tab.page.get_by_role("button", name="Profile").click()
        tab.page.locator(".plan table").wait_for()
        assert "scan" in tab.page.inner_text(".plan")
        assert "ms" in tab.page.inner_text(".plan thead")


def test_the_editor_completes_and_marks_mistakes_behind_an_emoji(explorer: Explorer) -> None:
    with explorer.page("main/query") as tab:
        fill_editor(tab, "// 😀😀\nmatch { $a: Persn } return { $a }")
        mark = tab.page.locator(".cm-lintRange-error")
        mark.wait_for()
        assert mark.inner_text() == "Persn"
        fill_editor(tab, "match { $a: Per")
        tab.page.keyboard.press("Control+ ")
        tab.page.locator(".cm-tooltip-autocomplete li").first.wait_for()
        assert "Person" in tab.page.inner_text(".cm-tooltip-autocomplete")


def test_a_problem_keeps_the_screen_and_names_its_place(explorer: Explorer) -> None:
    with explorer.page("main/query") as tab:
        fill_editor(tab, "match { $a: Nobody } return { $a }")
        tab.page.keyboard.press("Control+Enter")
        box = tab.page.get_by_role("alert")
        box.wait_for()
        assert "Nobody" in box.inner_text()
        assert tab.page.locator(".cm-content").is_visible()


def test_a_change_names_its_branch_and_is_a_commit_there(explorer: Explorer) -> None:
    assert explorer.server.post("/branches", {"name": "ui-change"}).status in (200, 201)
    with explorer.page("ui-change/query") as tab:
        fill_editor(tab, 'query add() { insert Topic { name: "ui-test" } }')
        tab.page.get_by_text("This changes ui-change.").wait_for()
        tab.page.locator(".touched", has_text="+1 Topic").wait_for()
        tab.page.get_by_label("Commit message").fill("from the page")
        tab.page.get_by_role("button", name="Apply change").click()
        tab.page.get_by_text("Changed 1 node and 0 edges.").wait_for()
    head = explorer.server.get("/branches/ui-change").json["head"]
    assert head["message"] == "from the page"


def test_a_query_is_stored_and_the_history_remembers_it(explorer: Explorer) -> None:
    assert explorer.server.post("/branches", {"name": "ui-store"}).status in (200, 201)
    with explorer.page("ui-store/query") as tab:
        fill_editor(tab, "match { $t: Topic } return { $t.name } order { $t.name } limit 3")
        run(tab)
        tab.page.get_by_role("button", name="Save").click()
        tab.page.get_by_label("Name").fill("topics_of_test")
        tab.page.get_by_label("Description").fill("Three topics")
        tab.page.get_by_role("dialog").get_by_role("button", name="Save").click()
        tab.page.get_by_role("link", name="topics_of_test").wait_for()
        tab.page.get_by_role("tab", name="History").click()
        assert tab.page.locator(".side .item").count() >= 1
    stored = explorer.server.get("/queries/topics_of_test", params={"branch": "ui-store"}).json
    assert stored["description"] == "Three topics"


def test_copies_run_elsewhere(explorer: Explorer) -> None:
    with explorer.page("main/query?name=busiest") as tab:
        tab.page.locator(".cm-content").get_by_text("busiest").wait_for()
        for name, part in (
            ("Python", "graph.query("),
            ("curl", "Authorization: Bearer $OMNIGRAPH_TOKEN"),
            ("Command line", "omnigraph read"),
        ):
            tab.page.get_by_role("button", name="Copy as").click()
            tab.page.get_by_role("menuitem", name=name).click()
            tab.page.get_by_text("Copied").first.wait_for()
            assert part in tab.page.evaluate("navigator.clipboard.readText()")


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_the_workspace_has_no_accessibility_violation(explorer: Explorer, theme: str, size: tuple[int, int]) -> None:
    with explorer.page(f"main/query?run=1&q={TEXT}", theme=theme, size=size, bypass_csp=True) as tab:
        tab.page.locator(".data-table").wait_for()
        tab.page.locator(".cm-content").wait_for()
        assert tab.axe() == []
        tab.page.get_by_role("tab", name="Picture").click()
        tab.page.wait_for_selector(".canvas[data-settled]")
        assert tab.axe() == []
        assert tab.overflowing == []
