"""The graph picture: marks, keys, and what is drawn without WebGL2 or after its context was lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import pytest

from support.explorer import Explorer, ExplorerPage

TEXT = "match { $a: Person  $a wrote $n } return { $a, $n } limit 12"
_NO_WEBGL = """
const original = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
  return kind.startsWith("webgl") ? null : original.call(this, kind, ...rest);
};
"""
_MARK = """([nodes, edges]) => {
  const scene = document.querySelector(".stage").scene;
  const data = scene.data;
  const places = Float32Array.from(data.nodes.flatMap((_, node) => {
    const {x, y} = scene.graph.getNodeAttributes(String(node));
    return [x, y];
  }));
  const cycle = (all, values) => all.map((_, at) => values[at % values.length]);
  scene.show({...data, marks: cycle(data.marks, nodes), edgeMarks: cycle(data.edgeMarks, edges)}, places);
  return [...data.nodes.keys()].map(node => {
    const {color, second, form} = scene.graph.getNodeAttributes(String(node));
    return [color, second, form];
  });
}"""
_LOSE = """() => {
  const canvas = document.querySelector(".stage canvas.sigma-nodes");
  canvas.getContext("webgl2").getExtension("WEBGL_lose_context").loseContext();
}"""


def open_picture(tab: ExplorerPage) -> None:
    tab.open(f"main/query?view=picture&run=1&q={TEXT}")
    tab.page.wait_for_selector(".canvas[data-settled]")


@pytest.fixture
def tab(explorer: Explorer) -> Iterator[Any]:
    with explorer.page(None) as page:
        yield page


def test_marks_have_forms_and_the_colours_of_the_theme(tab: ExplorerPage) -> None:
    open_picture(tab)
    added, changed, removed = tab.page.evaluate(_MARK, [[2, 4, 3], [2, 3, 6]])[:3]
    theme = tab.page.evaluate(
        "() => ['good', 'warn', 'bad'].map(name => "
        "getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim())"
    )
    assert [added[0], changed[1], removed[1]] == theme
    assert [added[2], changed[2], removed[2]] == [3, 1, 2]


def test_a_lost_context_is_made_again_once_then_the_picture_is_svg(tab: ExplorerPage) -> None:
    open_picture(tab)
    tab.page.evaluate("window.first = document.querySelector('.stage').scene")
    tab.page.evaluate(_LOSE)
    tab.page.wait_for_function(
        "() => ![undefined, window.first].includes(document.querySelector('.canvas[data-drawn=webgl] .stage')?.scene)"
    )
    # The new scene gets its nodes with the next frame.
    tab.page.wait_for_function("() => document.querySelector('.stage').scene.data?.nodes.length > 12")
    tab.page.evaluate(_LOSE)
    tab.page.wait_for_selector(".svg-picture circle")


def test_without_webgl_the_picture_is_svg_and_takes_the_same_keys(tab: ExplorerPage) -> None:
    tab.page.add_init_script(_NO_WEBGL)
    open_picture(tab)
    picture = tab.page.locator(".svg-picture")
    assert picture.locator("text", has_text="Wrote").count() > 0
    tab.page.locator(".canvas .stage[role=group]").focus()
    whole = picture.get_attribute("viewBox")
    tab.page.keyboard.press("+")
    tab.page.wait_for_function(f"() => document.querySelector('.svg-picture').getAttribute('viewBox') !== '{whole}'")
    tab.page.keyboard.press("0")
    tab.page.wait_for_function(f"() => document.querySelector('.svg-picture').getAttribute('viewBox') === '{whole}'")
    tab.page.keyboard.press("ArrowRight")
    tab.page.locator(".picture-list [aria-pressed=true]").wait_for()
    assert tab.overflowing == []


def test_a_picture_expands_by_a_key_and_keeps_it_in_the_link(tab: ExplorerPage) -> None:
    open_picture(tab)
    before = tab.page.locator(".picture-list .item").count()
    tab.page.locator(".stage").focus()
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("e")
    tab.page.locator(".picture-list .item").nth(before).wait_for()
    ((kind, node, pages),) = json.loads(parse_qs(tab.fragment.partition("?")[2])["expand"][0])
    degrees = tab.server.get(f"/entities/{kind}/{node}?include=degrees").json["degrees"]
    total = sum(each["count"] for each in degrees)
    assert tab.page.get_by_text(f"1 node expanded: {min(total, 25 * pages)} of {total} neighbour").is_visible()
    chosen = tab.page.inner_text(".chosen")
    tab.page.reload()
    tab.page.locator(".picture-list .item").nth(before).wait_for()
    assert chosen != ""


def test_the_rows_of_a_picture_are_limited_by_the_request(tab: ExplorerPage) -> None:
    sent: list[str] = []
    tab.page.on("request", lambda each: sent.append(each.post_data or "") if each.url.endswith("/query") else None)
    every = "match { $a: Person  $b: Project } return { $a, $b }"
    tab.open(f"main/query?view=picture&run=1&q={every}")
    tab.page.get_by_text("10,001 rows, more to load").wait_for()
    assert [json.loads(body)["query"] for body in sent] == [f"{every}\nlimit 10001\n"]
    tab.page.get_by_role("tab", name="Table").click()
    tab.page.get_by_role("table").press("Control+End")
    total = tab.server.post("/query", {"query": "match { $a: Person  $b: Project } return { count($a) as n }"}).json
    tab.page.get_by_text(f"{total['rows'][0]['n']:,} rows ·").wait_for()
    assert json.loads(sent[1])["query"] == every


def test_a_large_result_is_cut_with_a_count_and_groups_into_bubbles(tab: ExplorerPage) -> None:
    tab.open("main/query?view=picture&run=1&q=match { $a: Person $a memberOf $t } return { $a, $t }")
    tab.page.get_by_text("Showing 300 of").wait_for()
    tab.page.get_by_role("button", name="Show").click()
    tab.page.get_by_text("Showing 300 of").wait_for(state="detached")
    assert "nodes=2000" in tab.fragment
    tab.page.get_by_label("Group").select_option("a.role")
    tab.page.get_by_text("4 groups by a.role").wait_for()
    labels = tab.page.locator(".picture-list .item").all_inner_texts()
    assert sum("scientist ·" in label for label in labels) == 1
    tab.page.wait_for_selector(".canvas[data-settled]")
    tab.page.get_by_label("Group").select_option("")
    tab.page.get_by_text("groups by").wait_for(state="detached")
