"""The map of vectors in a real browser: points, colours, selection by a line, and a search."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from support.explorer import LOOKS, Explorer, ExplorerPage, text_of

QUESTION = "night herons at the weir"


def place_of(tab: ExplorerPage, node: str) -> tuple[float, float]:
    """Return the place of a node on the screen."""
    x, y = tab.page.evaluate("id => document.querySelector('main canvas').placeOf(id)", node)
    box = tab.page.locator("main canvas").bounding_box()
    return box["x"] + x, box["y"] + y


def projected(explorer: Explorer) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = explorer.server.get("/projection?type=Note&property=meaning").json["rows"]
    return rows


def listed(tab: ExplorerPage) -> list[str]:
    links = tab.page.get_by_role("list", name="Nodes of the map").get_by_role("link").all()
    return [link.get_attribute("href").rsplit("/", 1)[1] for link in links]


def test_points_are_where_the_server_projects_them(explorer: Explorer) -> None:
    rows = projected(explorer)
    with explorer.page("main/home") as tab:
        tab.page.get_by_role("navigation").get_by_role("link", name="Map").click()
        tab.settle()
        assert f"{len(rows)} points" in text_of(tab)
        shown = np.array([place_of(tab, row["id"]) for row in rows[:20]])
        given = np.array([[row["x"], -row["y"]] for row in rows[:20]])
        steps, expected = shown - shown[0], given - given[0]
        scale = np.linalg.norm(steps) / np.linalg.norm(expected)
        assert np.allclose(steps, expected * scale, atol=0.01)


def test_a_line_around_points_lists_them_and_a_click_opens_one(explorer: Explorer) -> None:
    rows = sorted(projected(explorer), key=lambda row: row["x"])
    with explorer.page("main/map") as tab:
        mouse = tab.page.mouse
        inside = [row["id"] for row in rows[:7]]
        edge = (place_of(tab, rows[6]["id"])[0] + place_of(tab, rows[7]["id"])[0]) / 2
        box = tab.page.locator("main canvas").bounding_box()
        left, top, bottom = box["x"] + 2, box["y"] + 50, box["y"] + box["height"] - 4
        mouse.move(left, top)
        mouse.down()
        for x, y in ((edge, top), (edge, bottom), (left, bottom)):
            mouse.move(x, y)
        mouse.up()
        tab.page.get_by_text("7 selected").wait_for()
        assert sorted(listed(tab)) == sorted(inside)
        tab.page.get_by_role("button", name="Copy ids").click()
        assert sorted(tab.page.evaluate("navigator.clipboard.readText()").split("\n")) == sorted(inside)
        mouse.click(*place_of(tab, rows[0]["id"]))
        tab.page.get_by_text("1 selected").wait_for()
        assert listed(tab) == [rows[0]["id"]]
        tab.page.get_by_role("list", name="Nodes of the map").get_by_role("link").click()
        tab.settle()
        assert tab.fragment == f"#/g/station/main/entity/Note/{rows[0]['id']}"


def test_the_pointer_names_a_point_and_the_view_moves(explorer: Explorer) -> None:
    rows = sorted(projected(explorer), key=lambda row: row["x"])
    node = rows[0]["id"]
    title = explorer.server.get(f"/entities/Note/{node}").json["data"]["title"]
    with explorer.page("main/map") as tab:
        tab.page.mouse.move(*place_of(tab, node))
        assert tab.page.locator(".map-tip").inner_text() == title
        before = place_of(tab, node)
        tab.page.get_by_role("button", name="Move", exact=True).click()
        tab.page.mouse.move(500, 500)
        tab.page.mouse.down()
        tab.page.mouse.move(530, 480)
        tab.page.mouse.up()
        assert place_of(tab, node) == pytest.approx((before[0] + 30, before[1] - 20))
        assert tab.page.get_by_text("selected").count() == 0
        tab.page.mouse.move(*place_of(tab, node))
        tab.page.mouse.wheel(0, -100)
        tab.page.wait_for_timeout(100)
        assert place_of(tab, node) == pytest.approx((before[0] + 30, before[1] - 20), abs=1)
        tab.page.get_by_role("img", name="Map of Note").focus()
        tab.page.keyboard.press("0")
        tab.page.wait_for_timeout(100)
        assert place_of(tab, node) == pytest.approx(before)


def test_colours_group_points_and_a_group_is_selected_without_dragging(explorer: Explorer) -> None:
    with explorer.page("main/map") as tab:
        tab.page.get_by_label("Colour by").select_option("written")
        tab.settle()
        assert "by=written" in tab.fragment
        groups = tab.page.get_by_role("group", name="Groups").get_by_role("button")
        assert groups.count() == 5
        groups.first.click()
        tab.page.get_by_text(f"{len(projected(explorer)) // 5} selected").wait_for()
        assert groups.first.get_attribute("aria-pressed") == "true"


def test_a_search_is_marked_by_a_cross_and_its_hits_are_listed(explorer: Explorer) -> None:
    body = {"text": QUESTION, "types": ["Note"], "by": "meaning", "limit": 10}
    hits = [hit["id"] for hit in explorer.server.post("/search", body).json["hits"]]
    with explorer.page("main/map") as tab:
        field = tab.page.get_by_role("searchbox", name="Find on the map")
        field.fill(QUESTION)
        field.press("Enter")
        tab.page.get_by_text("The cross is the middle of the 10 nearest nodes").wait_for()
        assert sorted(listed(tab)) == sorted(hits)
        assert f"q={quote(QUESTION)}" in tab.fragment


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_the_map_has_no_accessibility_violation(explorer: Explorer, theme: str, size: tuple[int, int]) -> None:
    with explorer.page(f"main/map?by=written&q={quote(QUESTION)}", theme=theme, size=size, bypass_csp=True) as tab:
        assert tab.axe() == []
        assert tab.overflowing == []
