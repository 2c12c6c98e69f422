"""Proposals: task 5 with its clicks and by the keyboard, discussion, reviews of a source that moves, the whole life."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.demo.build import build_demo
from support.explorer import LOOKS, Explorer, exploring, require_browser, text_of

TEXT = "Closes the *harbour* watch.\n\n- one `status`\n- <b>no html</b>\n\nSee [x](javascript:pwned=1)."


class Station:
    """A demo graph with its conflict between main and review/spring; actors write to it beside the page."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def as_(self, actor: str) -> og.Graph:
        return og.open(self.path, actor=actor)

    def conflicting(self, name: str, actor: str = "ana-abt") -> str:
        """Return a proposal whose branch and main set one value differently."""
        graph = self.as_(actor)
        code = f'where code = "{name}"'
        graph.mutate(f'update Project set {{ status: "active" }} {code}')
        graph.branch_create(name)
        graph.mutate(f'update Project set {{ status: "done" }} {code}', branch=name, message="done")
        self.as_("maren-friis").mutate(f'update Project set {{ status: "idea" }} {code}', message="an idea")
        return graph.propose(name, "main", title=f"Finish {name}", body=TEXT, labels=["spring"]).id


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Station:
    require_browser()
    station = Station(Path(str(build_demo(tmp_path_factory.mktemp("station"), notes=5).graph.uri)))
    rule = 'query ideas() @check(no_more_than_before) { match { $p: Project { status: "idea" } } return { $p } }'
    station.as_("ana-abt").store_query(rule, message="a check")
    return station


@pytest.fixture(scope="module")
def proposing(browser: Any, station: Station) -> Iterator[Explorer]:
    with exploring(station.path, environ={"OMNIGRAPH_EMBED_PROVIDER": "local"}) as server:
        yield Explorer(browser, server)


def status_of(station: Station, code: str) -> str:
    query = f'match {{ $p: Project {{ code: "{code}" }} }} return {{ $p.status as status }}'
    return str(station.as_("ana-abt").query(query).to_pylist()[0]["status"])


def test_task_5_settle_one_conflict_and_land(proposing: Explorer, station: Station) -> None:
    station.conflicting("river-atlas")
    with proposing.page() as tab:
        assert "Proposals 1" in " ".join(tab.page.locator(".nav").inner_text().split())
        tab.page.locator(".home .item", has_text="Finish river-atlas").click()
        tab.page.get_by_role("tab", name="Conflicts 1").click()
        tab.page.get_by_role("radio", name="status").nth(1).click()
        tab.page.get_by_role("button", name="Preview").click()
        tab.page.get_by_text("✓ Nothing is missing.").wait_for()
        tab.page.get_by_role("button", name="Land", exact=True).click()
        tab.page.locator(".decision", has_text="Landed as").wait_for()
        assert tab.clicks <= 5
        assert status_of(station, "river-atlas") == "done"
        tab.page.wait_for_selector(".nav .badge", state="detached")


def test_task_5_by_the_keyboard_alone(proposing: Explorer, station: Station) -> None:
    station.conflicting("river-watch")
    with proposing.page() as tab:
        keys = tab.page.keyboard

        tab.reach('.home a.item[href*="/proposals/"]')
        keys.press("Enter")
        tab.page.get_by_role("tab", name="Conflicts 1").wait_for()
        tab.reach('.proposal-tabs [role="tab"]')
        keys.press("ArrowRight")
        keys.press("ArrowRight")
        tab.page.locator(".conflict").wait_for()
        tab.reach('.conflict input[type="radio"]')
        keys.press("ArrowRight")
        tab.reach("button:enabled", "Shift+Tab", "Preview")
        keys.press("Enter")
        tab.page.get_by_text("✓ Nothing is missing.").wait_for()
        tab.reach("button", "Shift+Tab", "Land")
        keys.press("Enter")
        tab.page.locator(".decision", has_text="Landed as").wait_for()
        assert tab.clicks == 0
        assert status_of(station, "river-watch") == "done"


def test_a_proposal_is_made_discussed_edited_closed_and_reopened(proposing: Explorer, station: Station) -> None:
    graph = station.as_("ana-abt")
    graph.branch_create("ideas/one")
    graph.mutate('update Project set { status: "idea" } where code = "river-survey"', branch="ideas/one", message="one")
    with proposing.page("main/proposals") as tab:
        page = tab.page
        page.get_by_role("link", name="New proposal").click()
        page.get_by_label("Branch to land").select_option("ideas/one")
        page.get_by_label("Title").fill("One idea")
        page.get_by_label("Description").fill(TEXT)
        page.get_by_label("Reviewers").fill("maren-friis, local")
        page.get_by_role("button", name="Propose").click()
        decision = page.get_by_role("region", name="Decision")
        decision.get_by_text("the check 'ideas' failed").or_(decision.get_by_text("✓ Nothing is missing.")).wait_for()
        assert page.locator(".markdown em").inner_text() == "harbour"
        assert "<b>no html</b>" in page.inner_text(".markdown")
        assert page.locator(".markdown a").count() == 0
        page.get_by_role("button", name="Show rows of ideas").click()
        page.locator(".row-table a", has_text="Project").first.wait_for()

        page.get_by_role("tab", name="Changes").click()
        page.locator(".diff").get_by_role("button", name="Comment on this row").first.click()
        page.locator(".comment-form").get_by_label("Property").select_option("status")
        page.get_by_label("On Project river-survey").fill("Why an **idea**?")
        page.get_by_role("button", name="Comment", exact=True).click()
        page.locator(".thread strong", has_text="idea").wait_for()
        page.get_by_role("tab", name="Comments 1").click()
        page.get_by_role("link", name="On Project river-survey · status").wait_for()
        page.get_by_role("button", name="Reply").click()
        page.get_by_label("Reply").fill("Because.")
        page.locator(".thread").get_by_role("button", name="Comment", exact=True).click()
        page.get_by_text("Because.").wait_for()
        page.get_by_role("button", name="Resolve").click()
        page.get_by_role("button", name="Open again").wait_for()

        page.get_by_role("button", name="More actions").click()
        page.get_by_role("menuitem", name="Edit").click()
        page.get_by_label("Labels").fill("ideas")
        page.get_by_role("button", name="Save").click()
        page.get_by_role("tab", name="Overview").click()
        page.locator(".overview .chip", has_text="ideas").wait_for()
        page.get_by_role("button", name="More actions").click()
        page.get_by_role("menuitem", name="Close without landing").click()
        page.get_by_label("Reason").fill("later")
        page.get_by_role("button", name="Close", exact=True).click()
        page.get_by_text("Closed by local: later").wait_for()
        page.locator(".overview .chip", has_text="ideas").click()
        row = page.locator(".proposal-row", has_text="One idea")
        row.get_by_text("closed").wait_for()
        assert "label=ideas" in tab.fragment
        row.click()
        page.get_by_role("button", name="More actions").click()
        page.get_by_role("menuitem", name="Reopen").click()
        page.get_by_role("button", name="Land", exact=True).wait_for()


def test_a_review_is_of_the_commit_that_was_looked_at(proposing: Explorer, station: Station) -> None:
    ana = station.as_("ana-abt")
    ana.branch_create("notes/two")
    ana.mutate('update Project set { budget: 1.0 } where code = "river-survey"', branch="notes/two", message="first")
    proposal = ana.propose("notes/two", "main", title="Two notes")
    with proposing.page(f"main/proposals/{proposal.id}?tab=changes") as tab:
        page = tab.page
        page.locator(".diff", has_text="river-survey").wait_for()
        ana.mutate(
            'update Project set { budget: 2.0 } where code = "river-census"', branch="notes/two", message="second"
        )
        page.get_by_role("button", name="Approve").click()
        page.get_by_role("button", name="Send the review").click()
        page.get_by_text("Look at the new changes first.").first.wait_for()
        page.keyboard.press("Escape")
        page.get_by_text("notes/two moved since you looked at it: 1 new commit").wait_for()
        page.get_by_role("button", name="Show only the new changes").click()
        page.locator(".diff", has_text="river-census").wait_for()
        assert "river-survey" not in page.inner_text(".diff")
        page.get_by_role("button", name="Review the new commit").click()
        page.get_by_role("button", name="Approve").click()
        page.get_by_role("button", name="Send the review").click()
        page.get_by_role("tab", name="Overview").click()
        page.locator(".review-row", has_text="approved").wait_for()
        # Events of others arrive without a reload.
        station.as_("maren-friis").proposal(proposal.id).request_changes("Not **yet**.")
        page.locator(".review-row", has_text="maren-friis").get_by_text("requested changes").wait_for()
        page.get_by_role("region", name="Decision").get_by_text("'maren-friis' requested changes").wait_for()
        assert page.get_by_role("button", name="Land", exact=True).get_attribute("aria-disabled") == "true"


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_no_accessibility_violation(proposing: Explorer, station: Station, theme: str, size: tuple[int, int]) -> None:
    found = next((each.id for each in station.as_("ana-abt").proposals() if each.title == "Finish river-logbook"), None)
    found = found or station.conflicting("river-logbook")
    for place in (
        "proposals",
        "proposals?new=1",
        *(f"proposals/{found}?tab={tab}" for tab in ("overview", "changes", "conflicts", "comments")),
    ):
        with proposing.page(f"main/{place}", theme=theme, size=size, bypass_csp=True) as tab:
            assert tab.axe() == [], place
            assert tab.overflowing == [], place
            assert "undefined" not in text_of(tab)
