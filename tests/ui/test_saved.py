"""Saved HTML files and the widget in a real browser: no request, no violation, nothing in the data runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.ui import STATIC
from support.explorer import NARROW, TAGS, WIDE, Explorer, axe_script
from support.hostile_graph import BRANCH, NAME, build_hostile_graph

TEXT = "match { $a: Person  $a wrote $n } return { $a, $n, $n.title } limit 12"
_WATCH = """
window.__violations = [];
addEventListener("securitypolicyviolation", event => window.__violations.push(event.violatedDirective));
"""
_MODEL = """async (address) => {
  const { default: widget } = await import(address);
  const node = (id) => ({type: "A", id, label: id, data: {name: id}});
  const shown = {version: 1, title: "t", types: ["A"], nodes: [node("one"), node("two")],
    edges: [{from: 0, to: 1, label: "e"}], table: null, notice: null, asks: ["expand", "why"]};
  window.model = {sent: [], state: {document: shown}, listeners: {},
    get(name) { return this.state[name]; }, set(name, value) { this.state[name] = value; }, save_changes() {},
    send(content) { this.sent.push(content); }, on(name, each) { this.listeners[name] = each; }, off() {}};
  const el = document.createElement("div");
  document.body.append(el);
  window.leave = widget.render({model: window.model, el});
}"""


@contextmanager
def opened(browser: Any, path: Path, *, size: tuple[int, int] = WIDE, theme: str = "light") -> Iterator[Any]:
    """Open a file; fail if it requests anything or violates its policy, or if its data runs."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=theme, offline=True)
    page = context.new_page()
    requests: list[str] = []
    faults: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    page.add_init_script(_WATCH)
    try:
        page.goto(path.as_uri())
        yield page
        assert requests == [path.as_uri()]
        assert page.evaluate("window.__violations") == []
        assert page.evaluate("window.pwned") is None
        assert faults == []
    finally:
        context.close()


def test_an_export_of_the_page_opens_without_a_server(explorer: Explorer, tmp_path: Path) -> None:
    with explorer.page(f"main/query?run=1&q={TEXT}") as tab:
        tab.page.locator(".data-table").wait_for()
        tab.page.get_by_role("button", name="Export").click()
        with tab.page.expect_download() as download:
            tab.page.get_by_role("menuitem", name="HTML page").click()
        saved = tmp_path / "page.html"
        download.value.save_as(saved)
    with opened(explorer.browser, saved) as page:
        page.wait_for_selector(".canvas[data-settled]")
        item = page.locator(".picture-list .item").first
        item.click()
        assert "title" in page.inner_text(".shown-properties")
        page.get_by_role("tab", name="Table").click()
        page.locator(".data-table").wait_for()


def test_saved_files_of_a_hostile_graph_run_nothing(browser: Any, tmp_path: Path) -> None:
    graph = og.open(build_hostile_graph(tmp_path))
    result = graph.query(f"match {{ $a: {NAME}  $a wrote $b }} return {{ $a, $b }}")
    for shown, theme, size in (
        (result, "light", WIDE),
        (graph.diff("main", BRANCH), "dark", NARROW),
        (graph.schema, "dark", WIDE),
    ):
        with opened(browser, shown.save(tmp_path / "x.html"), theme=theme, size=size) as page:
            page.wait_for_selector(".canvas[data-settled]")
            page.locator(".picture-list .item").first.click()
            page.locator(".shown-properties").wait_for()
            page.get_by_role("tab", name="Table").click()
            page.locator(".data-table").wait_for()
            assert page.evaluate("[document.documentElement.scrollWidth, innerWidth]") == [size[0]] * 2


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_widget_asks_python_and_reports_the_selection(explorer: Explorer, theme: str) -> None:
    with explorer.page("main/home", theme=theme, bypass_csp=True) as tab:
        page = tab.page
        page.evaluate(_MODEL, f"{explorer.server.url}/ui/widget.js")
        widget = page.locator(".widget")
        widget.locator(".canvas[data-settled]").wait_for()
        widget.locator(".picture-list .item", has_text="one").click()
        assert page.evaluate("window.model.state.selected") == [{"type": "A", "id": "one"}]
        widget.get_by_role("button", name="Expand").click()
        asked = page.evaluate("window.model.sent.at(-1)")
        assert (asked["ask"], asked["type"], asked["id"]) == ("expand", "A", "one")
        page.evaluate(
            """number => window.model.listeners["msg:custom"]({number, answer: {graph_commit_id: "c", neighbors: [
              {edge: "e", direction: "out", edge_id: "x", edge_data: {}, type: "A", id: "three", data: {}}]}})""",
            asked["number"],
        )
        widget.locator(".picture-list .item", has_text="three").wait_for()
        page.evaluate(axe_script())
        found = page.evaluate(
            "tags => axe.run({include: [['div', '.widget']]}, {runOnly: {type: 'tag', values: tags}})", TAGS
        )
        assert [violation["id"] for violation in found["violations"]] == []
        page.evaluate("window.leave()")
        widget.locator(".canvas").wait_for(state="detached")


def test_the_widget_is_one_module() -> None:
    text = (STATIC / "widget.js").read_text(encoding="utf-8")
    assert "export{" in text or "export default" in text
    assert re.search(r"\bimport\s*[(\"'{]\s*[\"'./]", text) is None
