"""Search and entity pages: tasks 1 and 4 with their clicks, history, blame, time travel, accessibility."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from support.explorer import LOOKS, Explorer, ExplorerPage, text_of
from support.server import ServerUnderTest


def search(tab: ExplorerPage, words: str) -> None:
    """Search by the keyboard, from any screen."""
    tab.page.keyboard.press("/")
    tab.page.keyboard.type(words)
    tab.page.keyboard.press("Enter")
    tab.page.locator(".hit").first.wait_for()


def test_task_1_find_a_thing_by_words_and_see_its_neighbours(explorer: Explorer) -> None:
    with explorer.page() as tab:
        search(tab, "night of the surge")
        assert tab.page.locator(".snippet mark").count() > 0
        tab.page.locator(".hit-name").first.click()
        tab.page.locator(".neighbors .item").first.wait_for()
        assert tab.clicks == 1
        assert "Wrote" in text_of(tab)


def test_task_4_walk_from_a_node_and_see_the_path(explorer: Explorer) -> None:
    with explorer.page() as tab:
        search(tab, "Ana Abt")
        tab.page.locator(".hit-name", has_text="Ana Abt").first.click()
        tab.page.locator(".chips .chip", has_text="WorksOn").first.click()
        tab.page.locator(".neighbors .item").first.wait_for()
        tab.page.wait_for_selector(".neighbors .item:has-text('MemberOf')", state="detached")
        tab.page.locator(".neighbors .item").first.click()
        tab.page.locator(".steps li").nth(1).wait_for()
        assert tab.clicks <= 3
        assert tab.page.locator(".steps li").count() == 2
        assert "Path from ana-abt" in text_of(tab)


@pytest.fixture(scope="module")
def own_branch(demo_server: ServerUnderTest) -> Iterator[str]:
    """A branch on which values are put back; its name in links."""
    name = "entity/work"
    demo_server.post("/branches", {"name": name})
    yield quote(name, safe="")
    demo_server.request("DELETE", f"/branches/{quote(name, safe='')}?force=true")


def test_task_6_who_set_this_value_and_put_the_old_one_back(explorer: Explorer, own_branch: str) -> None:
    with explorer.page(f"{own_branch}/home") as tab:
        search(tab, "harbour watch")
        tab.page.locator(".hit-name", has_text="Harbour watch").first.click()
        tab.page.locator(".property", has_text="status").locator(".blame").click()
        dialog = tab.page.get_by_role("dialog", name="Who set status")
        assert "maren-friis" in dialog.inner_text()
        assert "active" in dialog.inner_text()
        dialog.get_by_role("button", name="Revert that commit").click()
        tab.page.get_by_role("dialog").locator(".type-counts").wait_for()
        tab.page.get_by_role("button", name="Revert", exact=True).click()
        tab.page.locator(".property", has_text="status").get_by_text("active").wait_for()
        assert tab.clicks <= 4
        head = explorer.server.get(f"/branches/{own_branch}").json["head"]
        assert head["message"] == 'Revert "harbour: paused for the winter"'
        # The revert set the value; its own old value is put back by an update.
        tab.page.locator(".property", has_text="status").locator(".blame", has_text="local").click()
        tab.page.get_by_role("button", name="Put this value back").click()
        tab.page.get_by_role("button", name="Put back", exact=True).click()
        tab.page.locator(".property", has_text="status").get_by_text("paused").wait_for()
        assert (
            explorer.server.get(f"/branches/{own_branch}").json["head"]["message"] == "Put back status of harbour-watch"
        )


def test_the_slider_steps_through_the_versions_of_an_entity(explorer: Explorer) -> None:
    with explorer.page("review%2Fspring/entity/Project/harbour-watch") as tab:
        status = tab.page.locator(".property", has_text="status")
        assert "done" in status.inner_text()
        slider = tab.page.get_by_role("slider", name="Version")
        slider.focus()
        tab.page.keyboard.press("ArrowLeft")
        status.get_by_text("active").wait_for()
        assert "&at=" in tab.fragment or "?at=" in tab.fragment
        tab.settle()
        assert "Version 1 of 2" in text_of(tab)
        tab.page.reload()
        tab.settle()
        assert "active" in status.inner_text()
        tab.page.wait_for_selector(".canvas[data-settled]")
        tab.page.get_by_role("button", name="Now", exact=True).click()
        status.get_by_text("done").wait_for()
        assert "at=" not in tab.fragment
    with explorer.page("review%2Fspring/entity/Person/yuna-meents") as tab:
        tab.page.get_by_text("was deleted").wait_for()
        tab.page.get_by_role("button", name="Older version").click()
        tab.page.locator(".property", has_text="Yuna Meents").wait_for()
        tab.page.locator(".neighbors .item").first.wait_for()


def test_an_entity_tells_who_set_a_value_and_how_it_was(explorer: Explorer) -> None:
    with explorer.page("main/entity/Project/harbour-watch") as tab:
        assert "paused" in tab.page.inner_text(".properties")
        assert "active" in tab.page.inner_text(".changed")
        status = tab.page.locator(".property", has_text="status")
        status.locator(".blame").click()
        dialog = tab.page.get_by_role("dialog", name="Who set status")
        assert "harbour: paused for the winter" in dialog.inner_text()
        tab.page.keyboard.press("Escape")
        tab.page.locator(".item", has_text="created").get_by_role("link").click()
        tab.page.locator(".properties", has_text="active").wait_for()
        assert "Version 1 of 2" in text_of(tab)


def test_neighbours_page_and_the_picture_lists_them(explorer: Explorer) -> None:
    largest = "match { $p memberOf $t } return { $t.name, count($p) as n } order { n desc } limit 1"
    team = explorer.server.post("/query", {"query": largest}).json["rows"][0]
    assert team["n"] > 50
    with explorer.page(f"main/entity/Team/{quote(team['t.name'])}") as tab:
        items = tab.page.locator(".neighbors .item")
        items.first.wait_for()
        first = items.count()
        assert first == 50
        tab.page.get_by_role("button", name=f"More neighbours, 50 of {team['n']} shown").click()
        items.nth(first).wait_for()
        tab.page.wait_for_selector(".canvas[data-settled]")
        assert tab.page.locator(".stage").get_attribute("aria-label") is not None


def test_a_search_narrows_by_type_and_ranker_and_says_so_in_the_link(explorer: Explorer) -> None:
    with explorer.page("main/search?q=harbour") as tab:
        tab.page.locator(".hit").first.wait_for()
        tab.page.get_by_label("Type", exact=True).select_option("Project")
        tab.page.wait_for_selector(".hit .chip:has-text('Note')", state="detached")
        tab.page.get_by_text("words", exact=True).click()
        tab.page.locator(".hit").first.wait_for()
        assert "type=Project" in tab.fragment
        assert "by=words" in tab.fragment
        tab.page.reload()
        tab.page.locator(".hit").first.wait_for()
        assert set(tab.page.locator(".hit .chip").all_inner_texts()) == {"Project"}


def test_a_search_without_hits_says_so(explorer: Explorer) -> None:
    with explorer.page("main/search?q=zzyzx&by=words") as tab:
        tab.page.get_by_text("Nothing matches").wait_for()


def test_an_unknown_entity_is_a_problem(explorer: Explorer) -> None:
    with explorer.page("main/entity/Project/no-such-project") as tab:
        assert "no-such-project" in tab.page.get_by_role("alert").inner_text()


def test_an_edit_is_a_commit_on_the_branch_or_on_a_new_one(explorer: Explorer) -> None:
    assert explorer.server.post("/branches", {"name": "ui-edit"}).status in (200, 201)
    with explorer.page("ui-edit/entity/Project/harbour-watch") as tab:
        page = tab.page
        page.get_by_role("button", name="Edit", exact=True).click()
        dialog = page.get_by_role("dialog")
        assert dialog.get_by_role("button", name="Save").is_disabled()
        dialog.get_by_label("budget").fill("many")
        dialog.get_by_text("A number is needed.").wait_for()
        dialog.get_by_label("budget").fill("1250.5")
        dialog.get_by_label("status").select_option("idea")
        dialog.get_by_label("Commit message").fill("smaller")
        dialog.get_by_role("button", name="Save").click()
        page.locator(".properties", has_text="1250.5").wait_for()
        head = explorer.server.get("/branches/ui-edit").json["head"]
        assert head["message"] == "smaller"
        page.get_by_role("button", name="Edit", exact=True).click()
        dialog.get_by_label("title").fill("Harbour, watched")
        dialog.get_by_label("on a new branch").check()
        dialog.get_by_label("Name of the new branch").fill("ui-edit-2")
        dialog.get_by_role("button", name="Save").click()
        page.get_by_role("heading", name="Harbour, watched").wait_for()
        assert "/ui-edit-2/entity/" in tab.fragment
    kept = explorer.server.get("/entities/Project/harbour-watch", params={"branch": "ui-edit-2"}).json["data"]
    assert (kept["status"], kept["budget"], kept["title"]) == ("idea", 1250.5, "Harbour, watched")


def test_an_edge_has_a_page_with_its_ends_and_is_edited_there(explorer: Explorer) -> None:
    assert explorer.server.post("/branches", {"name": "ui-edge"}).status in (200, 201)
    with explorer.page("ui-edge/entity/Person/ana-abt?edge=WorksOn&direction=out") as tab:
        page = tab.page
        page.locator(".neighbors .edge").first.click()
        page.get_by_role("heading", name="Ends").wait_for()
        assert "Ana Abt" in page.inner_text(".neighbors")
        page.wait_for_selector(".canvas[data-settled]")
        page.get_by_role("button", name="Edit", exact=True).click()
        page.get_by_role("dialog").get_by_label("share").fill("0.125")
        page.get_by_role("dialog").get_by_role("button", name="Save").click()
        page.locator(".properties", has_text="0.125").wait_for()
        page.locator(".item", has_text="edit WorksOn").wait_for()
        assert tab.overflowing == []


def test_a_node_with_a_vector_shows_similar_nodes(explorer: Explorer) -> None:
    with explorer.page("main/entity/Note/note-0000") as tab:
        similar = tab.page.locator(".similar .item")
        similar.first.wait_for()
        assert similar.count() == 5
        assert "note-0000" not in tab.page.inner_text(".similar")
        similar.first.click()
        tab.page.wait_for_function("() => !location.hash.includes('note-0000')")


@pytest.mark.parametrize(("size", "theme"), LOOKS)
@pytest.mark.parametrize("place", ["search?q=harbour", "entity/Project/harbour-watch"], ids=["search", "entity"])
def test_no_accessibility_violation(explorer: Explorer, place: str, theme: str, size: tuple[int, int]) -> None:
    with explorer.page(f"main/{place}", theme=theme, size=size, bypass_csp=True) as tab:
        tab.page.locator(".hit, .neighbors .item").first.wait_for()
        assert tab.axe() == []
        assert tab.overflowing == []
