"""Tasks 1 to 4 by the keyboard alone; `test_proposals.py` has task 5."""

from __future__ import annotations

import io

import pyarrow.parquet as pq

from support.explorer import Explorer, ExplorerPage, text_of

TEXT = "match { $a: Person  $a wrote $n } return { $a, $n, $n.title } limit 40"


def search(tab: ExplorerPage, words: str) -> None:
    """Search from any screen and open the first hit."""
    tab.page.keyboard.press("/")
    tab.page.keyboard.type(words)
    tab.page.keyboard.press("Enter")
    tab.page.locator(".hit").first.wait_for()
    tab.reach(".hit-name")
    tab.page.keyboard.press("Enter")
    tab.page.locator(".neighbors .item").first.wait_for()


def open_query(tab: ExplorerPage) -> None:
    tab.page.keyboard.press("g")
    tab.page.keyboard.press("q")
    tab.page.wait_for_selector(".cm-content:focus")


def test_task_1_find_a_thing_by_words_and_see_its_neighbours(explorer: Explorer) -> None:
    with explorer.page() as tab:
        search(tab, "night of the surge")
        assert "Wrote" in text_of(tab)
        assert tab.clicks == 0


def test_task_2_run_a_stored_query_and_take_the_rows_along(explorer: Explorer) -> None:
    with explorer.page() as tab:
        keys = tab.page.keyboard
        keys.press("Control+k")
        keys.type("colleagues")
        tab.page.get_by_role("option", name="colleagues").first.wait_for()
        keys.press("Enter")
        tab.page.wait_for_selector(".parameters .input:focus")
        keys.type("ana-abt")
        keys.press("Control+Enter")
        tab.page.get_by_role("columnheader", name="projects").wait_for()
        tab.reach(".result button", name="Export")
        keys.press("Enter")
        tab.page.get_by_role("menuitem", name="Parquet").wait_for()
        tab.reach('[role="menuitem"]', "ArrowDown", name="Parquet")
        with tab.page.expect_download() as download:
            keys.press("Enter")
        assert len(pq.read_table(io.BytesIO(download.value.path().read_bytes()))) == 10
        assert tab.clicks == 0


def test_task_3_write_a_query_see_a_picture_send_a_link(explorer: Explorer) -> None:
    with explorer.page() as tab:
        keys = tab.page.keyboard
        open_query(tab)
        keys.insert_text(TEXT)
        keys.press("Control+Enter")
        tab.page.get_by_text("40 rows").first.wait_for()
        # The first Escape may close a tooltip; after it, Tab leaves the editor.
        keys.press("Escape")
        keys.press("Escape")
        tab.reach('.result [role="tab"]')
        keys.press("ArrowRight")
        tab.page.wait_for_selector(".canvas[data-settled]")
        tab.reach(".result button", name="Copy link")
        keys.press("Enter")
        tab.page.get_by_text("Copied").wait_for()
        assert "view=picture" in tab.page.evaluate("navigator.clipboard.readText()")
        assert tab.clicks == 0


def test_task_4_walk_from_a_node_and_see_the_path(explorer: Explorer) -> None:
    with explorer.page() as tab:
        keys = tab.page.keyboard
        search(tab, "Ana Abt")
        tab.page.locator(".chips .chip", has_text="WorksOn").first.wait_for()
        tab.reach(".chips .chip", name="WorksOn")
        keys.press("Enter")
        tab.page.wait_for_selector(".neighbors .item:has-text('MemberOf')", state="detached")
        tab.page.locator(".neighbors .item").first.wait_for()
        tab.reach(".neighbors .item")
        keys.press("Enter")
        tab.page.locator(".steps li").nth(1).wait_for()
        assert "Path from ana-abt" in text_of(tab)
        assert tab.clicks == 0
