"""Writes, their results, their repetition and their errors are the same in every form of a graph.

Every body writes to branches of its own.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from support.graph_variants import Body, Variants, failure

BORN = 'query q() { update Person set { born: date("1980-01-01") } where name = "ana" }'


def branches(graph: Any) -> Any:
    made = graph.branch_create("b/1", description="first", message="made by a test")
    later = graph.branch_create("b/2", "draft", expires_in=timedelta(days=1, microseconds=5))
    at = graph.branch_create("b/3", at="v1")
    renewed = graph.branch_update("b/1", description="second", expires_at=datetime(2999, 1, 1, tzinfo=UTC))
    never = graph.branch_update("b/1", description="", expires_at="never", if_commit=made.commit_id)
    seen = [graph.head(name) for name in ("b/1", "b/3")]
    graph.branch_delete("b/1")
    graph.branch_delete("b/2", message="not needed", if_commit=later.commit_id)
    graph.branch_delete("b/3", force=True)
    expiry = later.expires_us - later.created_us
    return [made, at, renewed, never, seen, expiry // 10**7, "b/1" in graph.branches()]


def repeated_branches(graph: Any) -> Any:
    first = graph.branch_create("r/1", idempotency_key="key-of-r1")
    again = graph.branch_create("r/1", idempotency_key="key-of-r1")
    reused = failure(lambda: graph.branch_create("r/2", idempotency_key="key-of-r1"))
    exists = failure(lambda: graph.branch_create("r/1"))
    graph.branch_delete("r/1", idempotency_key="key-of-delete")
    graph.branch_delete("r/1", idempotency_key="key-of-delete")
    return [first == again, first, reused, exists]


def wrong_branches(graph: Any) -> Any:
    return [
        failure(lambda: graph.branch_create("main")),
        failure(lambda: graph.branch_create("a b")),
        failure(lambda: graph.branch_create("")),
        failure(lambda: graph.branch_create("__x")),
        failure(lambda: graph.branch_create("x" * 201)),
        failure(lambda: graph.branch_create(7)),
        failure(lambda: graph.branch_create("w/1", "nowhere")),
        failure(lambda: graph.branch_create("w/1", at="nowhere")),
        failure(lambda: graph.branch_create("w/1", expires_in=timedelta(0))),
        failure(lambda: graph.branch_update("nowhere", description="x")),
        failure(lambda: graph.branch_update("main", expires_at=datetime(2999, 1, 1, tzinfo=UTC))),
        failure(lambda: graph.branch_update("draft", description="x", if_commit="other")),
        failure(lambda: graph.branch_delete("nowhere")),
        failure(lambda: graph.branch_delete("main")),
        failure(lambda: graph.branch_delete("draft")),
        failure(lambda: graph.branch_delete("draft", force=True, if_commit="other")),
    ]


def tags(graph: Any) -> Any:
    made = graph.tag_create("t/1", message="a tag")
    draft = graph.on("draft").tag_create("t/2", at=graph.on("draft").head().manifest_version)
    again = [graph.tag_create("t/3", "v1", idempotency_key="key-of-t3") for _ in range(2)]
    found = graph.tags()
    errors = [
        failure(lambda: graph.tag_create("t/1")),
        failure(lambda: graph.tag_create("main")),
        failure(lambda: graph.tag_create("a b")),
        failure(lambda: graph.tag_create("t/4", at="nowhere")),
        failure(lambda: graph.tag_delete("nowhere")),
    ]
    for name in ("t/1", "t/2", "t/3"):
        graph.tag_delete(name, message="not needed", idempotency_key=f"key-of-{name}-deleted")
    graph.tag_delete("t/1", idempotency_key="key-of-t/1-deleted")
    return [made, draft, again, found, errors, [tag.name for tag in graph.tags()]]


def merges(graph: Any) -> Any:
    graph.branch_create("m/source", "draft")
    graph.branch_create("m/target")
    target = graph.on("m/target")
    conflicts = failure(lambda: target.merge("m/source"))
    assert conflicts.conflicts[0].id == "node:Person:ana"
    merged = target.merge(
        "m/source", resolve={"node:Person:ana": {"born": "1970-01-01", "tags": ["x"]}}, message="merged", if_commit=None
    )
    again = target.merge("m/source", delete_branch=True)
    found = [change.after for change in target.history("Person", "ana")][:1]
    return [conflicts, merged, again, target.commits(limit=1), found, "m/source" in graph.branches()]


def repeated_merges(graph: Any) -> Any:
    graph.branch_create("rm/source", "draft")
    graph.branch_create("rm/target")
    results = [graph.merge("rm/source", "rm/target", resolve="theirs", idempotency_key="key-of-rm") for _ in range(2)]
    reused = failure(lambda: graph.merge("rm/source", "rm/target", resolve="ours", idempotency_key="key-of-rm"))
    return [results, results[0] == results[1], reused]


def wrong_merges(graph: Any) -> Any:
    return [
        failure(lambda: graph.merge("nowhere")),
        failure(lambda: graph.merge("draft", "nowhere")),
        failure(lambda: graph.merge("main", "main")),
        failure(lambda: graph.merge("draft", resolve="mine")),
        failure(lambda: graph.merge("draft", resolve={"Person.born": "columns"})),
        failure(lambda: graph.merge("draft", resolve={"node:Person:ana": {"name": "other"}})),
        failure(lambda: graph.merge("draft", if_commit="other")),
        failure(lambda: graph.merge("draft", engine="fast")),
    ]


def reverts(graph: Any) -> Any:
    graph.branch_create("v/1")
    graph.branch_create("v/2", "draft")
    one, two = graph.on("v/1"), graph.on("v/2")
    undone = one.revert(one.commits()[0].id, message="undo")
    shown = one.commits(limit=1)
    nothing = one.revert(one.commits(limit=2)[1].id, idempotency_key="key-of-v1")
    conflict = failure(lambda: graph.revert("v1", branch="v/2"))
    solved = two.revert(two.commits()[1].id, resolve="theirs")
    errors = [
        failure(lambda: graph.revert("nowhere")),
        failure(lambda: graph.revert("draft", branch="v/1")),
        failure(lambda: graph.revert(graph.commits()[-1].id)),
        failure(lambda: one.revert("main", if_commit="other")),
    ]
    return [undone, shown, nothing, conflict, solved, errors]


def schemas(graph: Any) -> Any:
    graph.branch_create("s/1")
    one = graph.on("s/1")
    text = str(one.schema)
    changed = text.replace("ratio: F64?", "share: F64?").rstrip() + "\nnode Town { name: String @key }"
    applied = one.apply_schema(changed, allow_data_loss=True, message="towns", idempotency_key="key-of-s1")
    again = one.apply_schema(changed, allow_data_loss=True, idempotency_key="key-of-s1")
    nothing = one.apply_schema(changed)
    dropped = one.apply_schema(changed.replace("state: String?", ""), allow_data_loss=True)
    errors = [
        failure(lambda: one.apply_schema("node {")),
        failure(lambda: one.apply_schema("interface I {}")),
        failure(lambda: one.apply_schema(changed.replace("small: F32?", ""))),
        failure(lambda: one.apply_schema(text.replace("small: F32?", "small: String?"))),
        failure(lambda: one.apply_schema(text, if_commit="other")),
        failure(lambda: one.apply_schema(text, branch="nowhere")),
        failure(lambda: one.commit_changes(applied.commit_id)),
    ]
    return [
        applied,
        again,
        nothing,
        dropped,
        errors,
        one.schema == changed,
        list(one.diff("main")),
        one.commits(limit=2),
    ]


def schema_files(graph: Any, folder: Any) -> Any:
    path = folder / "schema.pg"
    path.write_text("node {", encoding="utf-8")
    wrong = failure(lambda: graph.plan_schema(path))
    path.write_text(str(graph.schema), encoding="utf-8")
    return [wrong, graph.plan_schema(path), graph.plan_schema(str(path)), failure(lambda: graph.plan_schema("no.pg"))]


def actors(graph: Any) -> Any:
    kept = graph.branch_create("a/1", actor="ana")
    graph.branch_delete("a/1")
    return [kept]


def unified(graph: Any) -> Any:
    graph.branch_create("u/1")
    one = graph.on("u/1")
    first, second = [row["name"] for row in one.to_arrow("Person").to_pylist()][:2]
    tried = one.unify("Person", keep=first, drop=second, dry_run=True)
    done = one.unify("Person", keep=first, drop=second, message="one", idempotency_key="key-of-u1")
    again = one.unify("Person", keep=first, drop=second, idempotency_key="key-of-u1")
    errors = [
        failure(lambda: one.unify("Person", keep=first, drop="nobody")),
        failure(lambda: one.unify("Person", keep=first, drop=second, rules={"name": "ours"})),
        failure(lambda: one.unify("Person", keep=first)),
        failure(lambda: one.unify("Persson", keep=first, drop=second)),
        failure(lambda: one.mutate(f'insert Person {{ name: "{second}" }}')),
    ]
    return [
        tried.to_json(), done.unified, done.affected_nodes, again.to_json() == done.to_json(), errors,
        one.get("Person", second), len(list(one.diff("main", limit=5))),
    ]  # fmt: skip


BODIES = [
    branches,
    repeated_branches,
    wrong_branches,
    tags,
    merges,
    repeated_merges,
    wrong_merges,
    reverts,
    schemas,
    schema_files,
    actors,
    unified,
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_every_form_does_the_same(written: Variants, body: Body) -> None:
    written.check(body)
