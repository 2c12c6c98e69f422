"""Hostile data: every screen shows a graph whose texts attack it, and none of them runs or breaks the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from support.explorer import NARROW, WIDE, Explorer, ExplorerPage, exploring, require_browser
from support.hostile_graph import BRANCH, COLUMNS, MARKUP, NAME, PROPERTY, WIDE_QUERY, build_hostile_graph

KEY = f"markup {MARKUP}"
ENTITY = f"entity/{NAME}/{quote(KEY, safe='')}"
ADMIN_TABS = ("overview", "access&action=change", "queries", "tables", "maintenance", "webhooks")
PLACES = [
    "home",
    "schema",
    f"schema/{NAME}?values={PROPERTY}",
    f"map?by={PROPERTY}",
    "history",
    "diff?from=%401&to=main",
    f"diff?from=main&to={quote(BRANCH, safe='')}&find={quote(MARKUP)}",
    f"merge?source={quote(BRANCH, safe='')}",
    ENTITY,
    "changes",
    *(f"admin?tab={tab}" for tab in ADMIN_TABS),
    "proposals",
    *(f"proposals/PROPOSAL?tab={tab}" for tab in ("overview", "changes", "conflicts", "comments")),
    f"search?q={quote(MARKUP)}&ab=1&not={quote(KEY, safe='')}&why={quote(f'{NAME}/{KEY}', safe='')}",
    *(f"query?name=hostile&run=1&view={view}" for view in ("", "picture", "json", "plan")),
    *(f"query?name=deep&run=1&view={view}" for view in ("", "json")),
]
"""Screens, with path and parameters, that are visited on both branches."""
DIALOGS = [
    ("home", ("key Control+k", "key ?")),
    ("query?name=hostile&run=1", ("Show the whole row", "Save")),
    (ENTITY, ("Edit",)),
    ("history?commit=COMMIT", ("Compare with …", "Branch from here", "Tag", "Revert …")),
    ("proposals/PROPOSAL", ("More actions > Edit", "More actions > Close without landing")),
]
"""Screens and the buttons and keys that open their dialogs, one after another."""
CELLS_MAX = 1_500
"""The cells of a table in a window of 1280 × 800: thirty rows, and columns of the narrowest width."""


@pytest.fixture(scope="module")
def hostile(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    require_browser()
    with exploring(build_hostile_graph(tmp_path_factory.mktemp("hostile"))) as server:
        yield Explorer(browser, server)


@pytest.mark.parametrize(
    ("ref", "place"), [*(("main", place) for place in PLACES), *((BRANCH, place) for place in PLACES[:2])]
)
def test_no_screen_runs_or_breaks_on_hostile_data(hostile: Explorer, place: str, ref: str) -> None:
    if "PROPOSAL" in place:
        place = place.replace("PROPOSAL", hostile.server.get("/proposals").json["proposals"][0]["id"])
    with hostile.page(f"{quote(ref, safe='')}/{place}") as tab:
        if "run=1" in place and "plan" not in place:
            tab.page.get_by_text("18 rows" if "deep" in place else "17 rows").first.wait_for()
        check_layout(tab)


def check_layout(tab: ExplorerPage) -> None:
    """Fail if an error is shown, the page scrolls sideways or markup of the data became an element."""
    for width, height in (WIDE, NARROW):
        tab.page.set_viewport_size({"width": width, "height": height})
        assert tab.page.locator(".problem").all_inner_texts() == []
        assert tab.overflowing == []
        # The editor itself puts images without a source beside its gaps.
        assert tab.page.locator("main img:not(.cm-widgetBuffer)").count() == 0


def test_hidden_characters_are_shown_as_marks(hostile: Explorer) -> None:
    with hostile.page() as tab:
        marks = tab.page.locator(".mark-control").all_inner_texts()
        assert "U+202E" in marks


def test_the_page_of_an_edge_shows_hostile_data(hostile: Explorer) -> None:
    with hostile.page(f"main/{ENTITY}?edge=Wrote&direction=out") as tab:
        tab.page.locator(".neighbors .edge").first.click()
        tab.page.get_by_role("heading", name="Ends").wait_for()
        tab.settle()
        check_layout(tab)


@pytest.mark.parametrize(("place", "buttons"), DIALOGS, ids=lambda value: value if isinstance(value, str) else None)
def test_no_dialog_breaks_on_hostile_data(hostile: Explorer, place: str, buttons: tuple[str, ...]) -> None:
    place = place.replace("PROPOSAL", hostile.server.get("/proposals").json["proposals"][0]["id"])
    place = place.replace("COMMIT", hostile.server.get("/commits").json["commits"][0]["graph_commit_id"])
    for button in buttons:
        with hostile.page(f"main/{place}") as tab:
            for name in button.split(" > "):
                if name.startswith("key "):
                    tab.page.keyboard.press(name.removeprefix("key "))
                else:
                    item = tab.page.get_by_role("menuitem", name=name).or_(tab.page.get_by_role("button", name=name))
                    item.first.click()
            tab.page.get_by_role("dialog").wait_for()
            tab.settle()
            check_layout(tab)
            assert tab.page.locator("dialog img").count() == 0


def test_a_replay_of_the_feed_shows_hostile_commits(hostile: Explorer) -> None:
    with hostile.page("main/changes") as tab:
        tab.page.get_by_role("button", name="Replay from …").click()
        tab.page.get_by_role("menuitem", name="The last ten commits").click()
        tab.page.get_by_text(MARKUP).first.wait_for()
        check_layout(tab)


def test_ten_thousand_columns_have_cells_only_in_view(hostile: Explorer) -> None:
    with hostile.page("main/query") as tab:
        page = tab.page
        page.wait_for_selector(".cm-content:focus")
        page.keyboard.insert_text(WIDE_QUERY)
        page.keyboard.press("Control+Enter")
        table = page.locator(".data-table")
        table.wait_for()
        assert table.get_attribute("aria-colcount") == str(COLUMNS)
        assert 0 < table.locator(".cell").count() < CELLS_MAX
        table.evaluate("each => each.scrollTo(each.scrollWidth, 0)")
        page.get_by_role("columnheader", name=f"c{COLUMNS - 1}", exact=True).wait_for()
        view = box(table)
        last = box(page.get_by_role("columnheader", name=f"c{COLUMNS - 1}", exact=True))
        assert last["x"] + last["width"] == pytest.approx(view["x"] + view["width"], abs=20)
        assert box(page.get_by_role("columnheader", name="c0", exact=True))["x"] == pytest.approx(view["x"], abs=2)
        assert table.locator(".cell").count() < CELLS_MAX
        table.evaluate("each => each.scrollTo(each.scrollWidth / 2, 0)")
        page.locator(".head [aria-colindex='5003']").wait_for()
        cell = table.locator(".window [role=row]").first.locator("[role=cell]").nth(2)
        head = page.locator(f".head [aria-colindex='{cell.get_attribute('aria-colindex')}']")
        assert box(head)["x"] == box(cell)["x"]
        check_layout(tab)


def box(element: Any) -> dict[str, float]:
    """Return the place of an element in the window."""
    found: dict[str, float] | None = element.bounding_box()
    assert found is not None
    return found
