"""The schema screen: picture and list, one type in detail, a change with its plan, and a comparison of two refs."""

from __future__ import annotations

import pytest

from support.explorer import LOOKS, Explorer, ExplorerPage, text_of
from support.server import ServerUnderTest

BRANCH = "schema/next"


@pytest.fixture(scope="module")
def changed_branch(demo_server: ServerUnderTest) -> str:
    """A branch whose schema renames a type, adds one and drops an edge type."""
    text = demo_server.get("/schema").json["schema_source"]
    for old, new in (
        ("node Team {", 'node Crew @rename_from("Team") {\n    area: String?'),
        ("-> Team", "-> Crew"),
        ("edge Cites: Note -> Note\n", ""),
        ("node Topic {", "node Place {\n    code: String @key\n}\n\nnode Topic {"),
    ):
        assert old in text
        text = text.replace(old, new)
    assert demo_server.post("/branches", {"name": BRANCH, "from": "main"}).status == 200
    body = {"schema_source": text, "branch": BRANCH, "allow_query_breakage": True, "allow_data_loss": True}
    assert demo_server.post("/schema/apply", body).status == 200
    return BRANCH


def boxes(tab: ExplorerPage) -> list[str]:
    tab.page.wait_for_selector(".schema-picture svg[data-placed]")
    return [" ".join(each.split()) for each in tab.page.locator(".schema-picture .box").all_text_contents()]


def test_a_type_is_opened_from_the_picture_and_leads_to_a_query(explorer: Explorer) -> None:
    with explorer.page("main/schema") as tab:
        assert any(each.startswith("Person") and "325" in each for each in boxes(tab))
        assert "MemberOf 1..1" in tab.page.locator(".schema-picture .label").all_text_contents()
        assert "node Project implements Titled" in tab.page.inner_text(".schema-text")
        tab.page.locator(".schema-picture .box", has_text="Project").click()
        panel = tab.page.get_by_role("region", name="Project")
        panel.get_by_text("@range(budget, 0..)").wait_for()
        nulls = panel.locator("tr", has_text="budget").first.locator("td").nth(3)
        tab.page.wait_for_function("each => each.textContent.endsWith('%')", arg=nulls.element_handle())
        assert nulls.inner_text() != "0%"
        panel.get_by_role("button", name="Show values of status").click()
        panel.locator(".value-counts li").nth(1).wait_for()
        assert "active" in panel.locator(".value-counts").inner_text()
        assert panel.locator(".row-table tbody tr").count() == 10
        assert "schema/Project" in tab.fragment
        assert "values=status" in tab.fragment
        panel.get_by_role("link", name="Query this type").click()
        tab.page.get_by_text("$x: Project", exact=False).or_(
            tab.page.locator(".cm-content", has_text="Project")
        ).first.wait_for()


def test_a_change_is_planned_and_applied_on_a_new_branch(explorer: Explorer) -> None:
    with explorer.page("main/schema") as tab:
        tab.page.get_by_role("button", name="Change", exact=True).click()
        tab.page.get_by_role("textbox", name="New schema text").wait_for()
        text = explorer.server.get("/schema").json["schema_source"]
        wrong = text.replace("mission: String\n", "")
        fill(tab, wrong)
        tab.page.get_by_role("button", name="Plan").click()
        plan = tab.page.locator(".plan-view")
        plan.get_by_text("data loss").wait_for()
        assert "Team.mission" in plan.inner_text()
        assert plan.get_by_role("button", name="Apply").count() == 0
        plan.get_by_label("Permit the losses").check()
        plan.get_by_role("button", name="Apply").wait_for()
        tab.page.reload()
        tab.settle()
        assert "mission" not in tab.page.locator(".schema-text .cm-content").inner_text()
        fill(tab, text + "\nnode Buoy {\n    code: String @key\n}\n")
        tab.page.get_by_role("button", name="Plan").click()
        plan.get_by_text("add node type Buoy").wait_for()
        plan.get_by_label("on a new branch").check()
        plan.get_by_label("Name of the new branch").fill("schema/buoys")
        plan.get_by_label("Message of the commit").fill("buoys")
        plan.get_by_role("button", name="Apply").click()
        tab.page.locator(".schema-picture .box", has_text="Buoy").wait_for()
        assert "/schema%2Fbuoys/schema" in tab.fragment
        head = explorer.server.get("/branches/schema%2Fbuoys").json["head"]
        assert head["message"] == "buoys"
        assert "Buoy" not in explorer.server.get("/schema").json["schema_source"]


def fill(tab: ExplorerPage, text: str) -> None:
    """Paste a text over that of the editor."""
    tab.page.evaluate("text => navigator.clipboard.writeText(text)", text)
    tab.page.locator(".schema-text .cm-content").click()
    tab.page.keyboard.press("Control+a")
    tab.page.keyboard.press("Control+v")


def test_a_comparison_marks_renamed_added_and_removed_types(explorer: Explorer, changed_branch: str) -> None:
    with explorer.page(f"{changed_branch.replace('/', '%2F')}/schema") as tab:
        tab.page.get_by_label("Compare with").fill("main")
        tab.page.keyboard.press("Enter")
        tab.page.get_by_text("types differ from main").wait_for()
        assert {"~ Crew 6", "+ Place 0"} <= set(boxes(tab))
        rows = text_of(tab)
        assert "~ renamed (was Team)" in rows
        assert "Cites − removed" in rows
        tab.page.locator(".schema-types a", has_text="Crew").click()
        tab.page.locator(".type-panel tr", has_text="area").get_by_text("+ added").wait_for()
        assert "with=main" in tab.fragment


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_no_accessibility_violation(explorer: Explorer, changed_branch: str, theme: str, size: tuple[int, int]) -> None:
    place = f"{changed_branch.replace('/', '%2F')}/schema"
    with explorer.page(f"{place}?with=main", theme=theme, size=size, bypass_csp=True) as tab:
        boxes(tab)
        assert tab.axe() == []
        assert tab.overflowing == []
        tab.page.locator(".schema-types a", has_text="Project").click()
        tab.page.get_by_role("button", name="Show values of status").click()
        tab.page.locator(".value-counts li").first.wait_for()
        assert tab.axe() == []
        assert tab.overflowing == []
