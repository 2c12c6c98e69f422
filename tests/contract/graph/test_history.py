"""Commits, branches, tags, diffs, the change feed and histories are the same in every form of a graph."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from support.graph_variants import Body, Variants, failure


def names(graph: Any) -> Any:
    return [graph.branches(), graph.tags(), graph.branch, graph.actor, graph.newest_version]


def heads(graph: Any) -> Any:
    return [graph.head(), graph.head("draft"), graph.on("2026").head(), graph.on("2026").branch]


def commits(graph: Any) -> Any:
    listed = graph.commits()
    chosen = [
        graph.commits("draft", 2),
        graph.commits(limit=0),
        graph.commits(kind="merge"),
        graph.commits(actor="root", limit=1),
        graph.commits(actor="nobody"),
        graph.commits(after=listed[1].id, limit=2),
    ]
    return [listed, chosen, str(listed)]


def points(graph: Any) -> Any:
    first = graph.commits()[-1]
    found = [graph.commit(point) for point in (first.id, first.id[:20], "v1", "topic/a", 1, datetime.now(UTC))]
    # A text of digits is a name; an int is a version.
    return [found, graph.commit("2026"), graph.on("draft").commit(graph.commits()[0].manifest_version)]


def snapshots(graph: Any) -> Any:
    return [graph.snapshot(), graph.snapshot("draft"), graph.snapshot(at="v1"), graph.on("draft").snapshot(at=2)]


def schemas(graph: Any) -> Any:
    return [graph.schema, graph.catalog(), graph.catalog("draft", 1)]


def plans(graph: Any) -> Any:
    text = str(graph.schema)
    changed = text.replace("huge: U64?", 'vast: U64? @rename_from("huge")').replace("state: String?", "note: String?")
    return [
        graph.plan_schema(text),
        graph.plan_schema(changed + "node Town { name: String @key }\n"),
        graph.plan_schema(text.replace("ratio: F64?", ""), allow_data_loss=True, branch="draft"),
        graph.plan_schema(text.replace("ratio: F64?", "ratio: String?")),
        graph.plan_schema(text.replace("huge: U64?\n", ""), allow_data_loss=True),
    ]


def diffs(graph: Any) -> Any:
    first = graph.commits()[-1].id
    found = [
        graph.diff(first),
        graph.diff(first, "main", types=["Person"]),
        graph.diff("main", "draft", kinds=["node"], ops=["update", "delete"]),
        graph.diff("main..draft"),
        graph.diff("main...draft"),
        graph.on("draft").diff("v1"),
        graph.diff("main", "main"),
    ]
    return [list(each) for each in found]


def diffs_by_two_iterations(graph: Any) -> Any:
    found = graph.diff(1, 2)
    if not hasattr(found, "counts"):
        # An asynchronous diff is an iterator.
        found = graph.diff(1, 2)
        return [list(found), list(graph.diff(1, 2))]
    return [list(found), list(found)]


def diff_files(graph: Any, folder: Any) -> Any:
    whole, some = folder / "whole", folder / "some"
    results = [graph.export_diff("v1", "draft", whole), graph.export_diff("v1", None, some, kinds=["node"])]
    files = {path.name: path.read_text(encoding="utf-8") for path in sorted(whole.iterdir())}
    again = failure(lambda: graph.export_diff("v1", "draft", whole))
    missing = failure(lambda: graph.export_diff("nowhere", None, folder / "missing"))
    return [results, files, again, missing, (folder / "missing").exists()]


def diff_pages(graph: Any) -> Any:
    return [[change.id for change in graph.diff(1, 2, limit=count)] for count in (1, 2, 2000)]


def commit_changes(graph: Any) -> Any:
    second, merge = graph.commits()[-2], graph.commits(kind="merge")[0]
    page = graph.commit_changes(second.id, changes_max=2)
    rest = graph.commit_changes(second.id, changes_max=100, page=page.page)
    return [
        graph.commit_changes(second.id),
        graph.commit_changes(merge.id, types=["Person"], ops=["update"], kinds=["node"]),
        page,
        rest,
        graph.on("draft").commit_changes("draft"),
    ]


def feeds(graph: Any) -> Any:
    now = graph.changes()
    whole = graph.changes(start="beginning")
    after = graph.changes(start="after:v1", branch="draft", types=["City"])
    again = graph.changes(now.cursor)
    first = graph.changes(start="beginning", changes_max=2)
    pages = [first]
    while not pages[-1].caught_up:
        last = pages[-1]
        pages.append(graph.changes(last.cursor, page=last.page, changes_max=2, commits_max=1, bytes_max=10_000))
    return [now, whole, after, again, pages]


def empty_filters(graph: Any) -> Any:
    return [
        list(graph.diff(1, 2, kinds=[])),
        list(graph.diff(1, 2, types=["Nothing"], ops=[])),
        [change.id for change in graph.diff(1, 2, kinds=["node", "table"])],
        graph.commit_changes(2, types=[]),
        graph.changes(start="beginning", ops=["replace"]),
        list(graph.changes_baseline(kinds=[])),
    ]


def baselines(graph: Any) -> Any:
    whole = list(graph.changes_baseline())
    some = list(graph.changes_baseline(branch="draft", types=["City"], kinds=["node"]))
    return [whole, some]


def histories(graph: Any) -> Any:
    whole = list(graph.history("Person", "ana"))
    return [
        whole,
        list(graph.history("Person", "ana", after=whole[0].commit.id)),
        list(graph.history("Person", "cy/λ")),
        list(graph.history("Knows", "k1", branch="draft")),
        list(graph.history("Person", "ana", at="v1")),
        list(graph.history("Person", "nobody")),
    ]


def blames(graph: Any) -> Any:
    return [graph.blame("Person", "ana"), graph.blame("Person", "bo", at="v1"), graph.blame("City", "nowhere")]


def previews(graph: Any) -> Any:
    return [
        graph.merge_preview("draft"),
        graph.merge_preview("draft", resolve="theirs"),
        graph.merge_preview("draft", "2026"),
        graph.merge_preview("topic/a"),
        graph.revert_preview(graph.commits()[0].id),
        graph.revert_preview("v1"),
        [repr(graph.merge_preview("draft")), graph.merge_preview("draft").to_json()],
    ]


def missing(graph: Any) -> Any:
    return [
        failure(lambda: graph.on("nowhere")),
        failure(lambda: graph.head("nowhere")),
        failure(lambda: graph.commit("nowhere")),
        failure(lambda: graph.commit("0000")),
        failure(lambda: graph.commits("nowhere")),
        failure(lambda: graph.commits(after="nowhere")),
        failure(lambda: graph.commits(limit=-1)),
        failure(lambda: graph.snapshot(at=99)),
        failure(lambda: graph.snapshot(at=-1)),
        failure(lambda: graph.snapshot(at=datetime(2000, 1, 1, tzinfo=UTC))),
        failure(lambda: graph.snapshot(at=1.5)),
        failure(lambda: graph.snapshot(at="")),
        failure(lambda: graph.catalog(at="nowhere")),
        failure(lambda: list(graph.diff("nowhere"))),
        failure(lambda: list(graph.diff("main..draft", "main"))),
        failure(lambda: list(graph.history("Nothing", "ana"))),
        failure(lambda: list(graph.history("Persom", "ana"))),
        failure(lambda: list(graph.history("Person", "ana", after="nowhere"))),
        failure(lambda: graph.blame("Person", 1.5)),
        failure(lambda: graph.blame("Nothing", "x")),
    ]


def refused(graph: Any) -> Any:
    first = graph.commits()[-1].id
    return [
        failure(lambda: list(graph.diff(first, limit=0))),
        failure(lambda: list(graph.diff(first, after="x"))),
        failure(lambda: list(graph.diff(first, limit=1, after="x"))),
        failure(lambda: graph.commit_changes(first)),
        failure(lambda: graph.commit_changes("main", changes_max=0)),
        failure(lambda: graph.commit_changes("main", page="x")),
        failure(lambda: graph.changes("x")),
        failure(lambda: graph.changes(page="x")),
        failure(lambda: graph.changes(start="yesterday")),
        failure(lambda: graph.changes(start="after:nowhere")),
        failure(lambda: graph.changes(changes_max=10**6)),
        failure(lambda: graph.merge_preview("nowhere")),
        failure(lambda: graph.merge_preview("main")),
        failure(lambda: graph.merge_preview("draft", resolve="mine")),
        failure(lambda: graph.merge_preview("draft", resolve={"Nothing": "ours"})),
        failure(lambda: graph.merge_preview("draft", resolve={"node:Person:nobody": "ours"})),
        failure(lambda: graph.merge_preview("draft", timeout="soon")),
        failure(lambda: graph.revert_preview("draft")),
        failure(lambda: graph.plan_schema("node {")),
        failure(lambda: graph.plan_schema("node Person { name: Text @key }")),
        failure(lambda: graph.plan_schema(17)),
    ]


def denied(graph: Any) -> Any:
    text = str(graph.schema)
    return [
        failure(lambda: graph.merge("draft", "secret")),
        failure(lambda: graph.revert("main", branch="secret")),
        failure(lambda: graph.branch_create("secret")),
        failure(lambda: graph.branch_update("secret", description="x")),
        failure(lambda: graph.branch_delete("secret")),
        failure(lambda: graph.on("secret").tag_create("x")),
        failure(lambda: graph.apply_schema(text, branch="secret")),
    ]


BODIES = [
    names,
    heads,
    commits,
    points,
    snapshots,
    schemas,
    plans,
    diffs,
    diffs_by_two_iterations,
    diff_files,
    diff_pages,
    commit_changes,
    feeds,
    empty_filters,
    baselines,
    histories,
    blames,
    previews,
    missing,
    refused,
    denied,
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_every_form_gives_the_same(variants: Variants, body: Body) -> None:
    variants.check(body)
