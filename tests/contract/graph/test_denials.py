"""An actor that may read one branch sees and learns the same in every form of a graph."""

from __future__ import annotations

from typing import Any

import pytest

from support.graph_variants import GUEST, SECRET, Body, Variants, failure

PEOPLE = "query people() { match { $p: Person } return { $p.name } order { $p.name asc } }"
CITY = 'query q() { insert City { name: "x" } }'


def reads(graph: Any) -> Any:
    one = graph.on(SECRET)
    return [
        graph.actor,
        one.branch,
        one.head(),
        one.query(PEOPLE),
        one.get("Person", "ana"),
        failure(lambda: graph.branches()),
        failure(lambda: graph.tags()),
        failure(lambda: graph.schema),
        failure(lambda: graph.head()),
        failure(lambda: graph.query(PEOPLE)),
        failure(lambda: graph.query(PEOPLE, at="v1")),
        failure(lambda: graph.query(PEOPLE, branch="nowhere")),
        failure(lambda: graph.get("Person", "ana")),
        failure(lambda: graph.get("Person", "ana", at="draft")),
        failure(lambda: graph.explain(PEOPLE)),
        failure(lambda: graph.lint(PEOPLE)),
        failure(lambda: graph.analyze("degrees")),
        failure(lambda: graph.to_arrow("Person")),
        failure(lambda: one.to_arrow("Person")),
        failure(lambda: list(one.export())),
        failure(lambda: graph.blob("Person", "ana", "photo")),
    ]


def history(graph: Any) -> Any:
    one = graph.on(SECRET)
    return [
        failure(lambda: graph.commits()),
        failure(lambda: graph.commits("nowhere")),
        graph.commit(SECRET),
        graph.commit_changes(SECRET),
        [list(graph.diff(SECRET, SECRET)), list(graph.diff(f"{SECRET}..{SECRET}"))],
        failure(lambda: graph.commit(1)),
        failure(lambda: list(graph.diff(f"{SECRET}.."))),
        failure(lambda: graph.commit("main")),
        failure(lambda: graph.commit("nowhere")),
        failure(lambda: graph.commit_changes("main")),
        failure(lambda: graph.commit_changes("nowhere")),
        failure(lambda: graph.snapshot()),
        failure(lambda: one.snapshot(at="v1")),
        failure(lambda: one.snapshot(at=2)),
        failure(lambda: list(graph.diff("main", "draft"))),
        failure(lambda: list(one.diff("main"))),
        failure(lambda: list(graph.changes_baseline())),
        failure(lambda: graph.changes(start="beginning")),
        failure(lambda: list(graph.history("Person", "ana"))),
        failure(lambda: graph.blame("Person", "ana", at="v1")),
        failure(lambda: graph.merge_preview("draft")),
        failure(lambda: graph.revert_preview("main")),
        failure(lambda: graph.plan_schema("node A { n: String @key }")),
    ]


def writes(graph: Any) -> Any:
    one = graph.on(SECRET)
    return [
        failure(lambda: graph.mutate(CITY)),
        failure(lambda: one.mutate(CITY)),
        failure(lambda: one.load([{"type": "City", "data": {"name": "x"}}], mode="merge")),
        failure(lambda: graph.ingest([], branch="g/1")),
        failure(lambda: graph.branch_create("g/1")),
        failure(lambda: graph.branch_create("g/1", SECRET)),
        failure(lambda: graph.branch_update(SECRET, description="x")),
        failure(lambda: graph.branch_delete("draft")),
        failure(lambda: graph.branch_delete("nowhere")),
        failure(lambda: graph.merge("draft", SECRET)),
        failure(lambda: graph.revert("main", branch=SECRET)),
        failure(lambda: one.tag_create("g")),
        failure(lambda: one.apply_schema("node A { n: String @key }")),
        failure(lambda: one.optimize()),
        failure(lambda: graph.ensure_indices()),
        failure(lambda: graph.cleanup(keep=1)),
        failure(lambda: graph.recover()),
        failure(lambda: graph.verify()),
        failure(lambda: one.embed()),
    ]


def writes_at_points(graph: Any) -> Any:
    one = graph.on(SECRET)
    # A server asks first whether the actor may perform the action at all; the message of the denial states that.
    errors = [
        failure(lambda: graph.branch_create("g/1", at="v1")),
        failure(lambda: one.tag_create("g", "v1")),
        failure(lambda: graph.tag_delete("v1")),
        failure(lambda: graph.tag_delete("nowhere")),
    ]
    return [[type(error).__name__, error.code] for error in errors]


BODIES = [reads, history, writes, writes_at_points]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_every_form_denies_the_same(variants: Variants, body: Body) -> None:
    variants.check(body, GUEST)
