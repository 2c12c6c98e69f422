"""The change feed: every commit once, in order, with any limits; tokens are bound to their feed; gaps are reported."""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import timedelta

import pytest

import omnigraph as og
from omnigraph.versioning.upkeep import maintenance

SCHEMA = "node Person {\n    name: String @key\n    age: I32?\n    note: String?\n}\n\nedge Knows: Person -> Person\n"


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, sync=False, actor="ana")
    add(graph, "Alice", "Bob", "Carol")
    return graph


def add(graph, *names, **data):
    return graph.load([{"type": "Person", "data": {"name": name, **data}} for name in names], mode="append").commit_id


def summary(page):
    return [(block.commit.id, [(change.op, change.id) for change in block]) for block in page]


def drain(graph, **options):
    """Return every block of a feed from its beginning, with the pages of a commit joined, and the last cursor."""
    found: dict[str, list[tuple[str, str]]] = {}
    page = graph.changes(start="beginning", **options)
    for _ in range(200):
        for commit_id, changes in summary(page):
            found.setdefault(commit_id, []).extend(changes)
        if page.page is not None:
            assert page.cursor is None
            assert not page.caught_up
            page = graph.changes(page=page.page, **options)
        elif page.caught_up:
            return found, page.cursor
        else:
            page = graph.changes(page.cursor, **options)
    raise AssertionError("the feed does not end")


def test_a_feed_from_now_returns_later_commits(graph):
    first = graph.changes()
    assert (summary(first), first.caught_up, first.page) == ([], True, None)
    assert graph.changes(first.cursor).cursor == first.cursor
    one = add(graph, "Dan")
    two = graph.mutate('query q() { delete Person where name = "Alice" }').commit_id
    page = graph.changes(first.cursor)
    assert summary(page) == [(one, [("insert", "Dan")]), (two, [("delete", "Alice")])]
    assert (page.caught_up, page.cut) == (True, two)
    assert summary(graph.changes(first.cursor)) == summary(page), "at least once"
    assert summary(graph.changes(page.cursor)) == []


def test_a_feed_from_the_beginning_includes_inherited_history(graph):
    graph.branch_create("side")
    made = add(graph.on("side"), "Dan")
    page = graph.on("side").changes(start="beginning")
    assert [block.commit.kind for block in page] == ["init", "load", "load"]
    assert summary(page)[-1] == (made, [("insert", "Dan")])
    assert len(summary(graph.changes(start="beginning"))) == 2


def test_a_feed_after_a_commit(graph):
    loaded = graph.snapshot().commit_id
    one = add(graph, "Dan")
    assert summary(graph.changes(start=f"after:{loaded}")) == [(one, [("insert", "Dan")])]
    assert summary(graph.changes(start=f"after:{one}")) == []
    graph.branch_create("side")
    other = add(graph.on("side"), "Eve")
    with pytest.raises(og.errors.ChangeCursorRejected, match="not on the first-parent line of branch 'main'"):
        graph.changes(start=f"after:{other}")
    with pytest.raises(og.errors.InputError, match="cannot start at 'then'"):
        graph.changes(start="then")


def test_a_merge_is_one_block_against_its_first_parent(graph):
    cursor = graph.changes().cursor
    graph.branch_create("side")
    add(graph.on("side"), "Dan")
    add(graph.on("side"), "Eve")
    mine = add(graph, "Fay")
    merged = graph.merge("side").commit_id
    assert summary(graph.changes(cursor)) == [
        (mine, [("insert", "Fay")]),
        (merged, [("insert", "Dan"), ("insert", "Eve")]),
    ]


def test_maintenance_is_an_empty_block_and_a_schema_change_is_marked(graph):
    cursor = graph.changes().cursor
    add(graph, "Dan")
    graph.optimize()
    graph.apply_schema(SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")'))
    add(graph, "Eve", years=3)
    page = graph.changes(cursor)
    assert [len(block) for block in page] == [1, 0, 0, 1]
    assert [block.schema_changed for block in page] == [False, False, True, False]
    assert page.blocks[3].changes[0].after["years"] == 3


@pytest.mark.parametrize(("changes_max", "commits_max"), [(1, 512), (2, 1), (3, 2), (7, 512)])
def test_any_limit_returns_every_change_once(graph, changes_max, commits_max):
    add(graph, *[f"p{i}" for i in range(7)])
    graph.mutate('query q() { insert Knows { from: "p1", to: "p2" } insert Person { name: "Zoe" } }')
    graph.mutate('query q() { update Person set { age: 1 } where name != "Bob" }')
    graph.mutate('query q() { delete Person where name = "p1" }')
    everything, cursor = drain(graph, changes_max=8_192)
    assert [len(changes) for changes in everything.values()] == [0, 3, 7, 2, 10, 2]
    assert drain(graph, changes_max=changes_max, commits_max=commits_max) == (everything, cursor)
    assert drain(graph, bytes_max=400)[0] == everything
    assert drain(graph, bytes_max=1)[0] == everything, "a change larger than a page comes alone"


def test_a_page_ends_with_a_whole_commit_if_possible(graph):
    start = graph.changes().cursor
    small, large = add(graph, "Dan"), add(graph, "p1", "p2", "p3", "p4")
    page = graph.changes(start, changes_max=3)
    assert summary(page) == [(small, [("insert", "Dan")])]
    assert (page.page, page.caught_up) == (None, False)
    page = graph.changes(page.cursor, changes_max=3)
    assert summary(page) == [(large, [("insert", "p1"), ("insert", "p2"), ("insert", "p3")])]
    assert page.cursor is None
    later = add(graph, "late")
    rest = graph.changes(page=page.page, changes_max=3)
    assert summary(rest) == [(large, [("insert", "p4")])], "a page goes no further than the head of its poll"
    assert rest.caught_up
    assert summary(graph.changes(rest.cursor)) == [(later, [("insert", "late")])]


def test_filters_select_changes_and_keep_blocks(graph):
    graph.mutate('query q() { insert Knows { from: "Bob", to: "Alice" } insert Person { name: "Zoe" } }')
    graph.mutate('query q() { update Person set { age: 1 } where name = "Zoe" }')

    def kept(**options):
        return [
            [change.kind + ":" + change.op for change in block] for block in graph.changes(start="beginning", **options)
        ][2:]

    assert kept(kinds=["edge"]) == [["edge:insert"], []]
    assert kept(types=["Person"], ops=["update"]) == [[], ["node:update"]]
    assert kept(types=["Knows", "Person"], ops=["insert"]) == [["node:insert", "edge:insert"], []]


def test_ids_longer_than_a_token(graph):
    names = ["x" * 5_000 + end for end in "abc"] + ["ä" * 300]
    cursor = graph.changes().cursor
    commit = add(graph, *names)
    found = []
    page = graph.changes(cursor, changes_max=1)
    for _ in range(10):
        found += [change.id for block in page for change in block]
        if page.page is None:
            break
        assert len(page.page) <= 4_096
        page = graph.changes(page=page.page, changes_max=1)
    assert found == sorted(names)
    assert graph.changes(page.cursor).caught_up
    assert graph.commit(commit).id == page.cut


# -- tokens ----------------------------------------------------------------------------------------------


def decoded(token):
    data = base64.urlsafe_b64decode(token)
    return json.loads(data[:-32])


def encoded(fields):
    text = json.dumps(fields).encode()
    return base64.urlsafe_b64encode(text + hashlib.sha256(text).digest()).decode()


def test_the_form_of_a_token(graph):
    token = graph.changes().cursor
    data = base64.urlsafe_b64decode(token)
    assert hashlib.sha256(data[:-32]).digest() == data[-32:]
    fields = decoded(token)
    assert (fields["v"], fields["k"], fields["after"]) == (1, "feed-cursor", graph.snapshot().commit_id)
    assert fields["graph"] == graph.commits()[-1].id


BAD = {
    "not base64": "%%%".format,
    "not ascii": "ä".format,
    "empty": "".format,
    "cut short": lambda token: token[: len(token) // 2],
    "a byte changed": lambda token: token[:10] + ("A" if token[10] != "A" else "B") + token[11:],
    "too long": lambda token: token * 40,
    "not an object": lambda token: encoded([token]),
    "another version": lambda token: encoded({**decoded(token), "v": 2}),
    "another kind": lambda token: encoded({**decoded(token), "k": "feed-page"}),
    "another graph": lambda token: encoded({**decoded(token), "graph": "01"}),
    "an unknown commit": lambda token: encoded({**decoded(token), "after": "nothing"}),
    "no commit": lambda token: encoded({name: value for name, value in decoded(token).items() if name != "after"}),
    "a number for a commit": lambda token: encoded({**decoded(token), "after": 7}),
    "a number": lambda _: 7,
    "bytes": lambda token: token.encode(),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_token_is_rejected(graph, name):
    token = graph.changes().cursor
    add(graph, "Dan")
    with pytest.raises(og.errors.ChangeCursorRejected, match=r"^change cursor rejected: ") as caught:
        graph.changes(BAD[name](token))
    assert caught.value.code == "change_cursor_rejected"


def test_a_token_is_bound_to_branch_incarnation_and_filter(graph):
    graph.branch_create("side")
    cursor = graph.on("side").changes().cursor
    for use in (
        lambda: graph.changes(cursor),
        lambda: graph.on("side").changes(cursor, kinds=["node"]),
        lambda: graph.on("side").changes(page=cursor),
    ):
        with pytest.raises(og.errors.ChangeCursorRejected):
            use()
    assert graph.on("side").changes(cursor, kinds=None).caught_up
    graph.branch_delete("side", force=True)
    graph.branch_create("side")
    with pytest.raises(og.errors.ChangeCursorRejected, match="another incarnation"):
        graph.on("side").changes(cursor)
    filtered = graph.changes(types=["Knows", "Person"]).cursor
    assert graph.changes(filtered, types=["Person", "Knows"]).caught_up, "the order of a filter does not matter"


def test_cursors_stay_valid_when_the_graph_is_moved(graph, tmp_path):
    cursor = graph.changes().cursor
    made = add(graph, "Dan")
    (tmp_path / "g").rename(tmp_path / "elsewhere")
    assert summary(og.open(tmp_path / "elsewhere", sync=False).changes(cursor)) == [(made, [("insert", "Dan")])]


def test_limits_are_checked(graph):
    for limits in ({"changes_max": 0}, {"changes_max": 8_193}, {"bytes_max": 2**26}, {"commits_max": 513}):
        with pytest.raises(og.errors.InputError, match="a page holds 1 to"):
            graph.changes(**limits)


def test_the_pages_of_one_commit(graph):
    commit = add(graph, *[f"p{i}" for i in range(5)])
    block = graph.commit_changes(commit, changes_max=2)
    found = [change.id for change in block]
    for _ in range(2):
        block = graph.commit_changes(commit, changes_max=2, page=block.page)
        found += [change.id for change in block]
    assert found == [f"p{i}" for i in range(5)]
    assert block.page is None
    first = graph.commit_changes(commit, changes_max=2).page
    for use in (
        lambda: graph.commit_changes(add(graph, "Dan"), page=first),
        lambda: graph.commit_changes(commit, page=first, ops=["insert"]),
        lambda: graph.changes(first),
    ):
        with pytest.raises(og.errors.ChangeCursorRejected):
            use()


# -- gaps ------------------------------------------------------------------------------------------------


def test_a_gap_is_reported_and_a_baseline_continues(graph):
    cursor = graph.changes().cursor
    lost = add(graph, "Dan")
    for name in ("Eve", "Fay", "Gus"):
        last = add(graph, name)
    maintenance.cleanup(graph._repository, keep=2, confirm=True, grace=timedelta(0))
    with pytest.raises(og.errors.ChangeFeedGap) as caught:
        graph.changes(cursor)
    assert caught.value.code == "change_feed_gap"
    assert (caught.value.cursor, caught.value.first_unreadable_commit_id) == (cursor, lost)
    *records, end = graph.changes_baseline()
    assert sorted(record["data"]["name"] for record in records) == sorted(
        ["Alice", "Bob", "Carol", "Dan", "Eve", "Fay", "Gus"]
    )
    assert end["baseline"]["snapshot_commit_id"] == last
    made = add(graph, "Hal")
    assert summary(graph.changes(end["baseline"]["resume_cursor"])) == [(made, [("insert", "Hal")])]


def test_commits_before_a_gap_are_returned_first(graph):
    cursor = graph.changes(kinds=["edge"]).cursor
    readable = add(graph, "Dan")
    lost = graph.mutate('query q() { insert Knows { from: "Alice", to: "Bob" } }').commit_id
    for name in ("Carol", "Dan", "Bob"):
        graph.mutate(f'query q() {{ insert Knows {{ from: "{name}", to: "Alice" }} }}')
    maintenance.cleanup(graph._repository, keep=1, confirm=True, grace=timedelta(0))
    page = graph.changes(cursor, kinds=["edge"])
    assert (summary(page), page.caught_up) == ([(readable, [])], False)
    with pytest.raises(og.errors.ChangeFeedGap) as caught:
        graph.changes(page.cursor, kinds=["edge"])
    assert (caught.value.cursor, caught.value.first_unreadable_commit_id) == (page.cursor, lost)


def test_a_baseline_with_a_filter(graph):
    graph.mutate('query q() { insert Knows { from: "Bob", to: "Alice" } }')
    *records, end = graph.changes_baseline(kinds=["edge"])
    assert [record["edge"] for record in records] == ["Knows"]
    assert graph.changes(end["baseline"]["resume_cursor"], kinds=["edge"]).caught_up
    with pytest.raises(og.errors.ChangeCursorRejected):
        graph.changes(end["baseline"]["resume_cursor"])


def test_the_json_form(graph):
    page = graph.changes(start="beginning").to_json()
    assert set(page) == {"blocks", "cut_commit_id", "cursor", "page", "caught_up"}
    assert page["blocks"][1]["changes"][0]["after"]["name"] == "Alice"
    assert page["blocks"][0]["cause"]["parent_commit_id"] is None
