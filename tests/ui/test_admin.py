"""The screen of administration: the caller, decisions, load, running and slow queries, tables, maintenance."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.policy.rules import KNOWN_ACTIONS, WITHOUT_EFFECT
from support.explorer import LOOKS, WAIT_MS, Explorer, require_browser, text_of
from support.guarded_server import SERVER_ADMIN, TOKEN, guarded

SLOW = """query ranked_chains() {
    match {
        $a: Note
        $b: Note
        $c: Note
        $d: Note
        $a.text < $b.text
        $b.text < $c.text
        $c.text < $d.text
    }
    return { $a.slug, $b.slug, $c.slug, $d.slug }
    order { replace($a.slug, $b.slug, $c.slug), replace($b.slug, $c.slug, $d.slug), $a.text, $d.slug, $b.text, $c.text }
}"""
"""It runs for long: `replace` works row by row, on 8 million rows."""
POLICY = """version: 1
groups: {team: [ana], guests: [bo]}
protected_branches: [main]
rules:
  - id: all-read
    allow: {actors: {group: team}, actions: [read, admin]}
  - id: guests-read
    allow: {actors: {group: guests}, actions: [read], branch_scope: any}
  - id: guests-change-drafts
    allow: {actors: {group: guests}, actions: [change], branch_scope: unprotected}
"""


def test_task_9_find_and_cancel_a_slow_query(explorer: Explorer) -> None:
    answers: list[Any] = []
    # On a busy machine, the default limit of a query can be shorter than the way to its button.
    longest = {"Omnigraph-Timeout-Ms": "300000"}
    running = threading.Thread(
        target=lambda: answers.append(explorer.server.post("/query", {"query": SLOW}, headers=longest))
    )
    with explorer.page() as tab:
        running.start()
        tab.page.get_by_role("link", name="Admin").click()
        tab.page.get_by_role("tab", name="Slow queries").click()
        tab.page.get_by_role("button", name="ranked_chains").click()
        tab.page.get_by_role("region", name="Plan").get_by_text("$a: Note").wait_for()
        tab.page.get_by_role("button", name="Cancel").click()
        tab.page.get_by_text("The work was asked to stop.").wait_for()
        assert tab.clicks == 4
        running.join(WAIT_MS / 1000)
        assert answers[0].json["reason"] == "cancelled"
        tab.page.get_by_text("No query runs.").wait_for()


def test_costly_plans_tables_and_figures(explorer: Explorer) -> None:
    explorer.server.post("/query", {"query": "query titles() { match { $n: Note } return { $n.title } }"})
    with explorer.page("main/admin") as tab:
        assert "Who am I" in text_of(tab)
        assert "branch_merge" in text_of(tab)
        tab.page.get_by_role("img", name=re.compile("Memory")).wait_for()
        tab.page.get_by_role("tab", name="Slow queries").click()
        tab.page.get_by_role("button", name="titles", exact=True).click()
        tab.page.get_by_role("region", name="Plan").get_by_text("$n: Note").wait_for()
        tab.page.get_by_role("tab", name="Tables").click()
        row = tab.page.get_by_role("row", name=re.compile("node:Note"))
        row.wait_for()
        assert "120" in row.inner_text()
        tab.page.get_by_role("tab", name="Webhooks").click()
        tab.page.get_by_text("No webhook is configured.").wait_for()
        tab.page.get_by_role("tab", name="Access").click()
        tab.page.get_by_role("button", name="Explain").click()
        tab.page.get_by_text("This graph has no policy").wait_for()


def test_maintenance_previews_confirms_and_reports(explorer: Explorer) -> None:
    with explorer.page("main/admin?tab=maintenance") as tab:
        tab.page.get_by_role("button", name="Verify").click()
        tab.page.get_by_text("The graph is sound.").wait_for()
        tab.page.get_by_role("button", name="Optimize").click()
        tab.page.get_by_role("status").filter(has_text=re.compile("fragments|Nothing had to be changed")).wait_for()
        assert tab.page.get_by_role("button", name="Remove these versions").is_disabled()
        tab.page.get_by_label("Keep the newest commits").fill("1")
        tab.page.get_by_role("button", name="Preview").click()
        tab.page.get_by_role("region", name="Would remove").or_(tab.page.get_by_text("nothing to remove")).wait_for()
        remove = tab.page.get_by_role("button", name="Remove these versions")
        if remove.is_enabled():
            remove.click()
            dialog = tab.page.get_by_role("dialog", name="Remove old versions")
            assert "cannot be brought back" in dialog.inner_text()
            dialog.get_by_role("button", name="Cancel").click()
        tab.page.get_by_role("tab", name="Webhooks").click()
        tab.page.get_by_role("region", name="Background work").or_(
            tab.page.locator(".item", has_text="verify")
        ).first.wait_for()


@pytest.fixture(scope="module")
def policy_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    require_browser()
    graph = og.init(tmp_path_factory.mktemp("policy") / "people.omni", "node Person { name: String @key }", sync=False)
    graph.branch_create("draft")
    with guarded(graph, POLICY, SERVER_ADMIN) as server:
        yield server


def test_decisions_name_their_rule_and_its_line(browser: Any, policy_server: Any) -> None:
    with Explorer(browser, policy_server, TOKEN).page("main/admin?tab=access&actor=bo&action=change&on=main") as tab:
        near = tab.page.get_by_role("row", name=re.compile("guests-change-drafts"))
        near.wait_for()
        line = next(at for at, text in enumerate(POLICY.splitlines(), 1) if "guests-change-drafts" in text)
        assert "nearly matches" in near.inner_text()
        assert str(line) in near.inner_text()
        assert "denied" in text_of(tab)
        tab.page.get_by_label("Branch", exact=True).fill("draft")
        tab.page.get_by_role("button", name="Explain").click()
        tab.page.get_by_text("allowed", exact=True).wait_for()


def test_a_caller_without_rights_sees_why(browser: Any, policy_server: Any) -> None:
    with Explorer(browser, policy_server, "token-of-bo").page("main/admin") as tab:
        assert "guests" in text_of(tab)
        assert "admin" in tab.page.get_by_role("alert").first.inner_text()
        tab.page.get_by_role("tab", name="Maintenance").click()
        assert tab.page.get_by_role("button", name="Optimize").is_disabled()
        assert "You need the right 'maintain'." in text_of(tab)
        tab.page.get_by_role("tab", name="Access").click()
        tab.page.get_by_role("button", name="Explain").click()
        tab.page.get_by_text("no rule allows action 'change' on branch 'main' for actor 'bo'").wait_for()


def test_the_actions_are_those_of_policies() -> None:
    text = (Path(__file__).parents[2] / "web/src/text/admin.ts").read_text("utf-8").split("ACTIONS", 1)[1]
    found = dict(re.findall(r"^  (\w+): (\"\w+\"|null),$", text, re.MULTILINE))
    scopes = {None: "null", "branch_scope": '"branch"', "target_branch_scope": '"target"'}
    assert found == {name: scopes[scope] for name, scope in KNOWN_ACTIONS.items() if name not in WITHOUT_EFFECT}


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_no_accessibility_violation(explorer: Explorer, theme: str, size: tuple[int, int]) -> None:
    with explorer.page("main/admin", theme=theme, size=size, bypass_csp=True) as tab:
        for name in ("Overview", "Access", "Slow queries", "Tables", "Maintenance", "Webhooks"):
            tab.page.get_by_role("tab", name=name).click()
            tab.page.get_by_role("tabpanel").locator(".skeleton").wait_for(state="detached")
            assert tab.axe() == [], name
            assert tab.overflowing == [], name
