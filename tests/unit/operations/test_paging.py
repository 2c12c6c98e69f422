"""Pages of reads: one result at one commit despite concurrent writes, and cursors bound to their query."""

from __future__ import annotations

from datetime import timedelta
from itertools import chain

import pytest

from omnigraph.errors import CommitNotFound, InputError, NotFound, PageCursorRejected, PageGone
from omnigraph.versioning.feed.cursors import write_token
from omnigraph.versioning.upkeep import maintenance
from support.writes import new_graph, node, reopened

SCHEMA = "node P { k: I64 @key  text: String? @index  g: I32?  v: Vector(2)? }\nedge E: P -> P"
WORDS = ("river", "stone river", "stone", None)
PLAIN = "query q() { match { $p: P } return { $p.k, $p.g } order { $p.g desc } }"
FORGED = {"commit": ["x"], "offset": -1, "now": "soon", "digest": None}
QUERIES = {
    "ties": PLAIN,
    "its own cut": "query q() { match { $p: P } return { $p.k } order { $p.g } skip 3 limit 17 }",
    "parameters for skip and limit": """query q($n: I64?, $s: I64) { match { $p: P } return { $p.k }
        order { $p.g } skip $s limit $n }""",
    "groups": """query q() { match { $p: P } return { $p.g, count($p) as n, collect($p.k) as ks }
        order { n, $p.g desc } }""",
    "distinct": "query q() { match { $p: P } return distinct { $p.g, $p.text } order { $p.text } }",
    "hops": "query q() { match { $p: P  $p e $q } return { $p.k, $q.k as to } order { $q.g } }",
    "nearest": "query q() { match { $p: P } return { $p.k } order { nearest($p.v, [1, 0.5]) } skip 2 limit 23 }",
    "bm25": 'query q() { match { $p: P } return { $p.k, bm25($p.text, "river") as s } order { s, $p.g } }',
    "rrf": """query q() { match { $p: P } return { $p.k, rrf(nearest($p.v, [1, 0.5]), bm25($p.text, "stone")) as s }
        order { s } skip 1 limit 12 }""",
    "rrf with hops": """query q() { match { $p: P  $p e $q } return { $p.k, $q.k as to }
        order { rrf(bm25($p.text, "stone"), nearest($p.v, [0, 1])) } limit 30 }""",
    "nothing": "query q() { match { $p: P { k: 99 } } return { $p.k } order { $p.k } }",
}  # fmt: skip


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    people = [node("P", k=k, text=WORDS[k % 4], g=k % 5, v=[1.0, k / 7] if k % 6 else None) for k in range(40)]
    edges = [{"edge": "E", "from": str(k), "to": str((k * 7 + j) % 40)} for k in range(40) for j in range(k % 3)]
    return new_graph(tmp_path_factory.mktemp("pages"), SCHEMA, *people, *edges)


@pytest.mark.parametrize("size", [1, 4, 7, 1000])
@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_concatenated_pages_equal_the_result(graph, text, size):
    params = {name: value for name, value in {"n": 11, "s": 2}.items() if f"${name}" in text}
    whole = graph.query(text, params=params).to_pylist()
    pages = [page.to_pylist() for page in graph.pages(text, params=params, page=size)]
    assert list(chain(*pages)) == whole
    assert [len(page) for page in pages[:-1]] == [size] * (len(pages) - 1)
    assert pages[-1] or not whole, "only the sole page can be empty"


def test_pages_stay_at_their_commit(tmp_path):
    graph = new_graph(tmp_path, SCHEMA, *(node("P", k=k, g=1) for k in range(9)))
    query = "query q() { match { $p: P } return { $p.k, now() as at } order { $p.k } }"
    seen, instants, commits = [], set(), set()
    for page in graph.pages(query, page=2):
        seen += [row["p.k"] for row in page]
        instants |= {row["at"] for row in page}
        commits.add(page.commit_id)
        graph.mutate("query d($k: I64) { delete P where k >= $k }", params={"k": 9 - len(seen)})
        graph.mutate("query i($k: I64) { insert P { k: $k } }", params={"k": -len(seen)})
    assert seen == list(range(9))
    assert len(instants) == len(commits) == 1


def test_cursor_works_in_another_process_and_with_another_page_size(graph):
    first = graph.query(PLAIN, page=3)
    assert first.next is not None
    assert first.next.replace("-", "a").replace("_", "a").rstrip("=").isalnum()
    laid_out_otherwise = PLAIN.replace("{", "{\n")
    rest = reopened(graph).query(laid_out_otherwise, page=100, after=first.next)
    assert first.to_pylist() + rest.to_pylist() == graph.query(PLAIN).to_pylist()
    assert rest.next is None
    assert graph.query(PLAIN).next is None


def test_cursor_is_bound_to_query_parameters_and_commit(graph, tmp_path):
    query = "query q($g: I32) { match { $p: P } return { $p.k } order { $p.k } }"
    cursor = graph.query(query, params={"g": 1}, page=3).next
    assert len(graph.query(query, params={"g": 1}, page=3, after=cursor)) == 3
    assert len(graph.query(query, params={"g": 1}, page=3, after=cursor, at=graph.commits()[0].id)) == 3
    other = new_graph(tmp_path / "other", SCHEMA)
    flipped = cursor[:-6] + ("A" if cursor[-6] != "A" else "B") + cursor[-5:]
    for asked, why in (
        (lambda: graph.query(query, params={"g": 2}, page=3, after=cursor), "another query, or to other parameters"),
        (lambda: graph.query(PLAIN, page=3, after=cursor), "another query, or to other parameters"),
        (lambda: graph.query(query, params={"g": 1}, page=3, after=flipped), "it is damaged"),
        (lambda: graph.query(query, params={"g": 1}, page=3, after="abc"), "not a valid token"),
        (
            lambda: graph.query(query, params={"g": 1}, page=3, after=graph.changes(start="now").cursor),
            "not a query-page",
        ),
        (
            lambda: graph.query(query, params={"g": 1}, page=3, after=cursor, at=graph.commits()[-1].id),
            "that of 'at'",
        ),
        (lambda: other.query(query, params={"g": 1}, page=3, after=cursor), "is not one of this graph"),
    ):
        with pytest.raises(PageCursorRejected, match=why) as caught:
            asked()
        assert caught.value.code == "page_cursor_rejected"
        assert caught.value.hint == "start again with the first page"


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"page": 0}, "bad_page"),
        ({"page": -1}, "bad_page"),
        ({"after": "x"}, "bad_page"),
        ({"page": "5"}, "bad_page"),
        ({"page": 5.0}, "bad_page"),
        ({"page": True}, "bad_page"),
        ({"page": 5, "after": 7}, "page_cursor_rejected"),
        ({"page": 5, "after": b"abc"}, "page_cursor_rejected"),
        ({"page": 5, "after": write_token("query-page", 0, {"branch": "main"})}, "page_cursor_rejected"),
        ({"page": 5, "after": write_token("query-page", 0, {"branch": "main", **FORGED})}, "page_cursor_rejected"),
    ],
)
def test_invalid_page_arguments_are_rejected(graph, how, code):
    with pytest.raises(InputError) as caught:
        graph.query(PLAIN, **how)
    assert caught.value.code == code


def test_cursor_is_bound_to_its_branch(tmp_path):
    graph = new_graph(tmp_path, SCHEMA, *(node("P", k=number, g=1) for number in range(6)))
    graph.branch_create("other")
    cursor = graph.query(PLAIN, page=2).next
    with pytest.raises(PageCursorRejected, match="another branch"):
        graph.query(PLAIN, page=2, after=cursor, branch="other")
    with pytest.raises(PageCursorRejected, match="another branch"):
        graph.on("other").query(PLAIN, page=2, after=cursor)
    assert len(graph.on("other").query(PLAIN, page=2, after=cursor, branch="main")) == 2
    assert sum(len(page) for page in graph.pages(PLAIN, page=2, branch="other")) == 6


def test_pages_require_an_order(graph):
    with pytest.raises(InputError, match="query 'q' has no order, so it has no pages") as caught:
        graph.query("query q() { match { $p: P } return { $p.k } }", page=5)
    assert caught.value.code == "page_without_order"


def test_pages_of_a_removed_commit_raise_page_gone(tmp_path):
    graph = new_graph(tmp_path, SCHEMA, *(node("P", k=k) for k in range(9)))
    cursor = graph.query(PLAIN, page=2).next
    commit = graph.commits()[0].id
    for number in range(3):
        graph.mutate("query u($n: I32) { update P set { g: $n } where true }", params={"n": number})
    fresh = reopened(graph)
    maintenance.cleanup(fresh._repository, keep=1, confirm=True, grace=timedelta(0))
    with pytest.raises(PageGone, match=f"the pages are of commit {commit}, which a cleanup has removed") as caught:
        reopened(graph).query(PLAIN, page=2, after=cursor)
    assert isinstance(caught.value, NotFound)
    assert not isinstance(caught.value, CommitNotFound)
