"""The frame of the explorer in a real browser: sign-in, links, themes, keys, accessibility."""

from __future__ import annotations

import pytest

from support.explorer import LOOKS, TOKEN, Explorer, text_of


def test_the_token_leaves_the_address_and_stays_in_the_tab(explorer: Explorer) -> None:
    with explorer.page() as tab:
        assert tab.fragment == "#/g/station/main/home"
        assert tab.page.evaluate("sessionStorage.getItem('omnigraph.token')") == TOKEN
        assert tab.page.evaluate("document.cookie") == ""
        tab.page.reload()
        tab.settle()
        assert "harbour: paused for the winter" in text_of(tab)


def test_a_missing_token_is_asked_for_and_the_request_repeated(explorer: Explorer) -> None:
    with explorer.page(None) as tab:
        tab.page.goto(f"{explorer.server.url}/ui/#/g/station/review%2Fspring/home")
        tab.page.get_by_label("Token", exact=True).fill("og_wrong")
        tab.page.get_by_role("button", name="Use this token").click()
        tab.page.get_by_text("The server refused the token.").wait_for()
        tab.page.get_by_label("Token", exact=True).fill(TOKEN)
        tab.page.get_by_role("button", name="Use this token").click()
        tab.settle()
        assert "Yuna moves away" in text_of(tab)


def test_home_shows_types_branches_commits_and_queries(explorer: Explorer) -> None:
    with explorer.page() as tab:
        shown = text_of(tab)
        for part in ("Person 325", "review/spring", "3 ahead", "Recent commits", "recall", "WorksOn"):
            assert part in shown


def test_another_ref_keeps_the_screen(explorer: Explorer) -> None:
    with explorer.page() as tab:
        tab.page.get_by_role("button", name="Branch main").click()
        tab.page.get_by_role("menuitemradio", name="review/spring").click()
        tab.settle()
        assert tab.fragment == "#/g/station/review%2Fspring/home"
        tab.page.get_by_role("button", name="Branch review/spring").click()
        tab.page.get_by_role("menuitem", name="Pin this commit").click()
        tab.settle()
        assert tab.fragment.startswith("#/g/station/%40")
        assert tab.page.get_by_text("A pinned commit.").is_visible()


def test_unknown_parts_of_a_link_are_named_and_ignored(explorer: Explorer) -> None:
    with explorer.page("main/nonesuch?x=%25E0%25A4%25A") as tab:
        assert tab.page.get_by_text("Parts of the link were ignored").is_visible()
        assert "Recent commits" in text_of(tab)


def test_an_unknown_branch_is_a_problem_with_its_code(explorer: Explorer) -> None:
    with explorer.page(None) as tab:
        tab.page.goto(f"{explorer.server.url}/ui/#token={TOKEN}&to=no-such-branch%2Fhome")
        box = tab.page.get_by_role("alert")
        box.wait_for()
        assert "no-such-branch" in box.inner_text()
        box.get_by_role("button", name="Copy for a bug report").click()
        report = tab.page.evaluate("navigator.clipboard.readText()")
        assert "status: 404" in report
        assert "no-such-branch" not in report


def test_the_theme_follows_the_system_and_the_switch(explorer: Explorer) -> None:
    with explorer.page(theme="dark") as tab:
        assert tab.page.evaluate("document.documentElement.dataset.theme") == "dark"
        tab.page.get_by_role("button", name="Theme").click()
        tab.page.get_by_role("menuitemradio", name="Light").click()
        assert tab.page.evaluate("document.documentElement.dataset.theme") == "light"
        tab.page.reload()
        tab.settle()
        assert tab.page.evaluate("document.documentElement.dataset.theme") == "light"


def test_keys_open_the_palette_and_the_list_of_keys(explorer: Explorer) -> None:
    with explorer.page() as tab:
        tab.page.keyboard.press("?")
        tab.page.get_by_role("dialog", name="Keyboard shortcuts").wait_for()
        tab.page.keyboard.press("Escape")
        tab.page.keyboard.press("Control+k")
        tab.page.keyboard.type("spring")
        tab.page.get_by_role("option", name="review/spring").wait_for()
        tab.page.keyboard.press("Enter")
        tab.settle()
        assert tab.fragment == "#/g/station/review%2Fspring/home"
        assert tab.clicks == 0


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_home_has_no_accessibility_violation(explorer: Explorer, theme: str, size: tuple[int, int]) -> None:
    with explorer.page(theme=theme, size=size, bypass_csp=True) as tab:
        assert tab.axe() == []
        assert tab.overflowing == []
