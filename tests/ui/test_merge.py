"""Merge review: conflicts of every kind, preview, the reviewed heads, a moved head, choices, accessibility."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import omnigraph as og
from support.explorer import LOOKS, Explorer, ExplorerPage, exploring, require_browser, text_of
from support.server import ServerUnderTest

STATUS = 'query q($s: String) { update Project set { status: $s } where code = "harbour-watch" }'


def set_status(server: ServerUnderTest, branch: str, status: str, message: str = "") -> str:
    body = {"query": STATUS, "params": {"s": status}, "branch": branch, "message": message or f"harbour: {status}"}
    return str(server.post("/mutate", body).json["commit"]["graph_commit_id"])


@pytest.fixture
def pair(demo_server: ServerUnderTest, request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """Two branches that changed the same row: the source and the target of a merge."""
    server = demo_server
    source, target = (f"{side}/{request.node.name[5:25]}" for side in ("from", "into"))
    for name in (source, target):
        assert server.post("/branches", {"name": name}).status == 200
    set_status(server, source, "done")
    set_status(server, target, "active")
    yield source, target
    for name in (source, target):
        server.request("DELETE", f"/branches/{quote(name, safe='')}?force=true")


def place(pair: tuple[str, str], screen: str = "merge") -> str:
    source, target = (quote(name, safe="") for name in pair)
    names = f"source={source}&target={target}" if screen == "merge" else f"from={target}&to={source}"
    return f"main/{screen}?{names}"


def status_of(server: ServerUnderTest, branch: str) -> str:
    query = 'match { $p: Project { code: "harbour-watch" } } return { $p.status as s }'
    return str(server.post("/query", {"query": query, "branch": branch}).json["rows"][0]["s"])


def pick(tab: ExplorerPage, branch: str) -> None:
    tab.page.get_by_role("radio", name=f"status of {branch}").click()


def test_a_conflict_is_settled_and_merged_from_the_comparison(explorer: Explorer, pair: tuple[str, str]) -> None:
    server, (source, target) = explorer.server, pair
    heads = [
        server.get(f"/branches/{quote(name, safe='')}").json["head"]["graph_commit_id"] for name in (target, source)
    ]
    with explorer.page(place(pair, "diff")) as tab:
        tab.page.get_by_role("link", name="Merge …").click()
        conflict = tab.page.locator(".conflict")
        conflict.wait_for()
        assert "both changed it" in conflict.inner_text()
        assert "ours" not in text_of(tab)
        merge = tab.page.get_by_role("button", name="Merge", exact=True)
        assert merge.get_attribute("aria-disabled") == "true"
        pick(tab, source)
        tab.page.get_by_role("button", name="Copy as").click()
        tab.page.get_by_role("menuitem", name="Python").click()
        written = tab.page.evaluate("navigator.clipboard.readText()")
        assert 'resolve={"node:Project:harbour-watch": {"status": "done"}}' in written
        before = tab.clicks
        tab.page.get_by_role("button", name="Preview").click()
        tab.page.get_by_text("Nothing is left to settle.").wait_for()
        assert "done" in tab.page.inner_text(".settled")
        assert status_of(server, target) == "active"
        merge.click()
        tab.page.get_by_text(f"Merged {source} into {target}.").wait_for()
        # Merge …, a value, Preview, Merge; the copy is not part of the task.
        assert tab.clicks - 2 <= 4, before
    assert status_of(server, target) == "done"
    head = server.get(f"/branches/{quote(target, safe='')}").json["head"]
    assert [head["parent_commit_id"], head["merged_parent_commit_id"]] == heads


def test_a_head_that_another_tab_moves_is_explained_and_choices_are_kept(
    explorer: Explorer, pair: tuple[str, str]
) -> None:
    server, (source, target) = explorer.server, pair
    with explorer.page(place(pair)) as tab, explorer.page(f"{quote(target, safe='')}/query") as other:
        pick(tab, source)
        tab.page.get_by_role("button", name="Preview").click()
        tab.page.get_by_text("Nothing is left to settle.").wait_for()
        # Another tab writes another row of the target.
        other.page.evaluate(
            "([target]) => fetch('../mutate', {method: 'POST', headers: {'Content-Type': 'application/json',"
            " Authorization: 'Bearer ' + sessionStorage.getItem('omnigraph.token')}, body: JSON.stringify({"
            "query: 'update Project set { budget: 7.0 } where code = \"river-survey\"',"
            " branch: target, message: 'a budget'})}).then(answer => answer.ok)",
            [target],
        )
        merge = tab.page.get_by_role("button", name="Merge", exact=True)
        merge.click()
        notice = tab.page.locator(".moved")
        notice.wait_for()
        assert f"{target} has moved" in notice.inner_text()
        assert "a budget" in notice.inner_text()
        assert "1 choice was kept" in notice.inner_text()
        assert status_of(server, target) == "active"
        # Choices survive a reload, and are previewed again.
        tab.page.reload()
        tab.page.get_by_text("Nothing is left to settle.").wait_for()
        assert tab.page.get_by_role("radio", name=f"status of {source}").is_checked()
        merge.click()
        tab.page.get_by_text(f"Merged {source} into {target}.").wait_for()
    assert status_of(server, target) == "done"


def test_a_choice_is_dropped_if_its_conflict_is_another_one(explorer: Explorer, pair: tuple[str, str]) -> None:
    server, (source, target) = explorer.server, pair
    with explorer.page(place(pair)) as tab:
        pick(tab, target)
        tab.page.get_by_role("button", name="Preview").click()
        tab.page.get_by_text("Nothing is left to settle.").wait_for()
        set_status(server, source, "idea", "an idea again")
        tab.page.get_by_role("button", name="Merge", exact=True).click()
        notice = tab.page.locator(".moved", has_text="1 dropped")
        notice.wait_for()
        assert "an idea again" in notice.inner_text()
        assert not tab.page.get_by_role("radio", name=f"status of {target}").is_checked()
        # A value of one's own.
        field = tab.page.get_by_label("Result of status")
        field.fill("paused")
        field.press("Enter")
        tab.page.get_by_role("button", name="Preview").click()
        tab.page.locator(".settled", has_text="paused").wait_for()


def test_nothing_to_merge_and_no_source(explorer: Explorer) -> None:
    with explorer.page("review%2Fspring/merge?source=main&target=main") as tab:
        tab.page.get_by_text("A merge needs two different branches.").wait_for()
    with explorer.page("main/merge") as tab:
        tab.page.get_by_text("Choose the branch to merge.").wait_for()
        tab.page.get_by_role("button", name="Branch to merge").click()
        tab.page.get_by_role("menuitemradio", name="review/spring").click()
        tab.page.locator(".conflict").wait_for()


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_no_accessibility_violation(explorer: Explorer, theme: str, size: tuple[int, int]) -> None:
    with explorer.page("main/merge?source=review/spring", theme=theme, size=size, bypass_csp=True) as tab:
        tab.page.locator(".conflict").wait_for()
        tab.page.get_by_role("button", name="4 properties without conflict").click()
        pick(tab, "main")
        tab.page.get_by_role("button", name="Preview").click()
        tab.page.get_by_text("Nothing is left to settle.").wait_for()
        tab.settle()
        assert tab.axe() == []
        assert tab.overflowing == []


# -- every kind of conflict ---------------------------------------------------------------------------

SCHEMA = """
node P { name: String @key
  age: I32?
  mail: String? @unique
  note: String?
  @range(age, 0..150) }
edge K: P -> P
edge Boss: P -> P @card(0..1)
"""


def build(folder: Path) -> Path:
    """Create a graph whose branches `x` and `main` have a conflict of every kind that can be settled."""
    path = folder / "kinds.omni"
    graph = og.init(path, SCHEMA, sync=False, environ={}, actor="ana")
    people = [{"type": "P", "data": {"name": name, "age": 1, "note": f"the note of {name}"}} for name in "abcdefgh"]
    graph.load(people, mode="append")
    graph.branch_create("x")
    there = graph.on("x")
    graph.mutate('update P set { age: 2, note: "on main" } where name = "a"')
    there.mutate('update P set { age: 3 } where name = "a"')
    graph.mutate('insert P { name: "new", age: 1 }')
    there.mutate('insert P { name: "new", age: 9 }')
    graph.mutate('delete P where name = "b"')
    there.mutate('update P set { age: 5 } where name = "b"', actor="bo")
    graph.mutate('delete P where name = "c"')
    there.load([{"edge": "K", "from": "d", "to": "c", "data": {"id": "k"}}], mode="append")
    graph.mutate('update P set { mail: "m" } where name = "e"')
    there.mutate('update P set { mail: "m" } where name = "f"')
    graph.load([{"edge": "Boss", "from": "g", "to": "d", "data": {"id": "one"}}], mode="append")
    there.load([{"edge": "Boss", "from": "g", "to": "h", "data": {"id": "two"}}], mode="append")
    graph.store_query("query adults() { match { $p: P } return { $p.name } }")
    there.store_query("query adults() { match { $p: P } return { $p.age } }")
    return path


@pytest.fixture(scope="module")
def kinds(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    require_browser()
    with exploring(build(tmp_path_factory.mktemp("kinds"))) as server:
        yield Explorer(browser, server)


def test_changes_are_filtered_by_actor(kinds: Explorer) -> None:
    with kinds.page("main/diff?from=main&to=x") as tab:
        tab.page.get_by_role("combobox", name="Actor").select_option("bo")
        tab.page.wait_for_selector(".changes > .change:nth-child(1):last-child")
        assert tab.page.locator(".change").get_attribute("data-row") == "node:P:b"
        assert "actor=bo" in tab.fragment


def test_every_kind_of_conflict_can_be_settled(kinds: Explorer) -> None:
    with kinds.page("main/merge?source=x") as tab:
        page = tab.page
        preview = page.get_by_role("button", name="Preview")

        def card(words: str) -> Any:
            return page.locator(".conflict", has_text=words)

        card("both changed the stored query").wait_for()
        assert page.locator(".conflict").count() == 4
        card("both changed the stored query").get_by_role("radio").nth(1).check()
        page.get_by_role("radio", name="age of x").first.check()
        card("both added it").get_by_label("Result of age").fill("200")
        card("both added it").get_by_label("Result of age").press("Enter")
        card("one side deleted it").get_by_role("button", name="Keep the row of x").click()
        preview.click()
        # Rules are checked after the rows are settled: their conflicts come with the preview.
        card("an edge without its node").wait_for()
        assert page.locator(".conflict").count() == 8
        card("an edge without its node").get_by_role("button", name="Keep c, as x has it").click()
        card("two rows with the same unique value").get_by_label("Result of f mail").fill("other")
        card("two rows with the same unique value").get_by_label("Result of f mail").press("Enter")
        card("too many or too few edges").get_by_role("button", name="Delete the edge").first.click()
        field = card("a value that a rule forbids").get_by_label("Result of new age")
        field.fill("20")
        field.press("Enter")
        page.reload()
        card("a value that a rule forbids").wait_for()
        preview.click()
        page.get_by_text("Nothing is left to settle.").wait_for()
        page.get_by_role("button", name="Merge", exact=True).click()
        page.get_by_text("Merged x into main.").wait_for()

    def row(type_: str, id_: str) -> Any:
        return kinds.server.get(f"/entities/{type_}/{id_}").json.get("data")

    assert [row("P", name)["age"] for name in ("a", "b", "new")] == [3, 5, 20]
    assert row("P", "a")["note"] == "on main"
    assert [row("P", name)["mail"] for name in "ef"] == ["m", "other"]
    assert row("K", "k") is not None
    assert row("P", "c") is not None
    assert [row("Boss", id_) is None for id_ in ("one", "two")].count(True) == 1
    assert "age" in json.dumps(kinds.server.get("/queries/adults").json)
