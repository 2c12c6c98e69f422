"""Execution of plans: semantics of a match, limits, and one snapshot per query."""

from __future__ import annotations

import re
from typing import Any

import pytest

from omnigraph.engine.exec.context import Limits
from omnigraph.errors import LimitReached
from omnigraph.graph import Graph
from support.writes import edge, new_graph, node

SCHEMA = """
node P { name: String @key  n: I64?  x: F64?  small: F32?  tags: [String]?  shares: [F32]?  at: DateTime?
         ats: [DateTime]?  vec: Vector(2)? }
node Q { name: String @key  n: I64? }
edge Knows: P -> P { since: I64? }
edge Has: P -> Q
"""


@pytest.fixture
def graph(tmp_path):
    """a → b → c, c ↔ d, a loop at b, two edges from a to b; a has x and y, b has y."""
    knows = ["ab", "ab", "bc", "cd", "dc", "bb"]
    return new_graph(
        tmp_path,
        SCHEMA,
        *(node("P", name=name, n=at) for at, name in enumerate("abcd")),
        *(node("Q", name=name, n=at) for at, name in enumerate("xyza")),
        *(edge("Knows", *ends, id_=f"k{at}", since=at) for at, ends in enumerate(knows)),
        *(edge("Has", *ends) for ends in ("ax", "ay", "by")),
    )


def ask(graph: Graph, match: str, give: str, then: str = "", params: str = "", **values: Any) -> list[tuple[Any, ...]]:
    result = graph.query(f"query q({params}) {{ match {{ {match} }} return {{ {give} }} {then} }}", params=values)
    return [tuple(row.values()) for row in result.to_rows()]


def pairs(graph: Graph, match: str) -> str:
    """Return the pairs (a, b) of a match, sorted, as a line."""
    return " ".join(sorted(a + b for a, b in ask(graph, match, "$a.name as a, $b.name as b")))


# -- hops --------------------------------------------------------------------------------------------

HOPS = {
    "$a: P $a knows $b": "ab bb bc cd dc",
    "$b: P $a knows $b": "ab bb bc cd dc",
    "$a knows $b": "ab bb bc cd dc",
    "$a: P $b: P $a knows $b": "ab bb bc cd dc",
    "$a: P $a <knows> $b": "ab ba bb bc cb cd dc",
    "$a: P $a knows{1,2} $b": "ab ac bb bc bd cd dc",
    "$a: P $a knows{2,2} $b": "ab ac bd",  # to b through its loop
    "$a: P $a knows{2,3} $b": "ab ac ad bd",
    "$a: P $a knows{1,9} $b": "ab ac ad bb bc bd cd dc",
    "$a: P $a <knows>{2,2} $b": "ab ac bd ca cb db",
    "$a: P $a $e:knows $b": "ab ab bb bc cd dc",
    "$a: P $a $_:knows $b": "ab bb bc cd dc",
    "$a: P $a $e:<knows> $b": "ab ab ba ba bb bc cb cd cd dc dc",
    "$a: P $a knows $b $b knows $a": "bb cd dc",
    "$a: P $a knows $_ $b knows $a": "ba ba bb bb cb cd dc",  # once for each node that a knows
    "$a: P $a has $b": "ax ay by",
    "$b: Q $b has $a": "ax ay by",
    "$a has $b": "ax ay by",
    "$a: P $a has{1,5} $b": "ax ay by",
    "$a: P $a has{2,5} $b": "",
    "$a: P $a has $b not { $c has $b $c.n != $a.n }": "ax",
    "$a: P $a knows $a $b: Q $b.n = 0": "bx",
}


@pytest.mark.parametrize(("match", "expected"), HOPS.items(), ids=HOPS)
def test_hops(graph, match, expected):
    assert pairs(graph, match) == expected


@pytest.mark.parametrize("word", ["knows{2,2}", "knows{2,3}", "knows{1,2}", "<knows>{2,2}", "<knows>{2,3}"])
def test_result_does_not_depend_on_the_end_that_is_bound_first(graph, word):
    hop = f"$a {word} $b"
    forms = (f"$a: P {hop}", f"$b: P {hop}", f"$a: P $b: P {hop}", f"$b: P $a: P {hop}", f"{hop} $b: P", hop)
    assert len({pairs(graph, form) for form in forms}) == 1
    by_name = [f'$a: P {{ name: "{name}" }} {hop}' for name in "abcd"]
    assert " ".join(filter(None, (pairs(graph, form) for form in by_name))) == pairs(graph, forms[0])
    to_name = [f'$b: P {{ name: "{name}" }} {hop}' for name in "abcd"]
    found = sorted(" ".join(pairs(graph, form) for form in to_name).split())
    assert " ".join(found) == pairs(graph, forms[0])


def test_id_shared_by_two_types_is_not_a_loop(graph):
    graph.load([edge("Has", "a", "a")], mode="append")
    assert pairs(graph, '$a: P { name: "a" } $a has $b') == "aa ax ay"
    assert ask(graph, "$a: P not { $a has $_ }", "$a.name", "order { $a.name }") == [("c",), ("d",)]


# -- counting without materialising rows -------------------------------------------------------------

COUNTED = [
    "$a: P $b: Q",
    "$a: P $b: Q $c: P",
    "$a: P $a knows $b",
    "$a: P $a knows $b $b knows $c",
    "$a: P $a knows $b $b knows $c $b has $d",
    "$a: P $a $e:knows $b $b knows $c",
    "$a: P $a <knows> $b $b <knows> $c",
    "$a: P $a knows{1,2} $b $b has $c",
    "$a: P $a knows $_ $b: Q $_ has $b",
    "$a: P $b: Q not { $a has $b }",
    "$a: P $a knows $b not { $b has $_ } $c: Q",
    "$a: P $b: P $a knows $b $c: Q",
    "$a: P { n: 77 } $b: Q",
    '$a: Q $b: P { name: "a" } $b knows $c $c knows $d',
]


@pytest.mark.parametrize("match", COUNTED)
def test_count_equals_the_number_of_rows(graph, match):
    names = sorted(set(re.findall(r"\$([a-d])\b", match)))
    rows = ask(graph, match, ", ".join(f"${name}" for name in names))
    for name in names:
        assert ask(graph, match, f"count(${name})") == [(len(rows),)]
        assert ask(graph, match, f"count(${name}.n), sum(${name}.n)") == [
            (len(rows), sum(row[names.index(name)]["n"] for row in rows) if rows else None)
        ]
        by_key = ask(graph, match, f"${name}.name, count($a)")
        keys = [row[names.index(name)]["name"] for row in rows]
        assert sorted(by_key) == sorted((key, keys.count(key)) for key in set(keys))


# -- values ------------------------------------------------------------------------------------------


def test_negative_zero_equals_zero(graph):
    graph.load([node("P", name="a", x=-0.0), node("P", name="b", x=0.0), node("P", name="c", x=-1.0)], mode="merge")
    assert [name for (name,) in ask(graph, "$a: P", "$a.name", "order { $a.x desc }")] == ["a", "b", "c", "d"]
    assert ask(graph, "$a: P", "$a.x, count($a) as n", "order { n desc }") == [(0, 2), (None, 1), (-1, 1)]
    assert ask(graph, "$a: P $v contains $a.x", "$a.name", "order { $a.name }", "$v: [F64]", v=[0.0]) == [
        ("a",),
        ("b",),
    ]


def test_numbers_are_compared_by_value(graph):
    records = [node("P", name="a", small=0.1, shares=[0.1], n=2**53 + 1), node("P", name="b", small=16777216)]
    graph.load(records, mode="merge")
    found = {
        "$a.small = 0.1": "a",
        "[0.1] contains $a.small": "a",
        "[16777217, 3] contains $a.small": "b",
        "$a.shares contains 0.1": "a",
        "$a.shares contains $a.small": "a",
        "$a.n = 9007199254740993": "a",
        "[9007199254740992.0] contains $a.n": "",
        "[9223372036854775808, 9007199254740993] contains $a.n": "a",
    }
    for condition, names in found.items():
        rows = ask(graph, f"$a: P {condition}", "$a.name", "order { $a.name }")
        assert "".join(name for (name,) in rows) == names, condition
    assert ask(graph, "$a: P { x: 9007199254740993 }", "$a.name") == []
    graph.load([node("P", name="a", x=2.0**53)], mode="merge")
    assert ask(graph, "$a: P { x: 9007199254740993 }", "$a.name") == []
    assert ask(graph, "$a: P { x: 9007199254740992 }", "$a.name") == [("a",)]


def test_datetimes_in_a_list_differ_within_a_day(graph):
    ten, eleven = "2024-01-01T10:00Z", "2024-01-01T11:00Z"
    graph.load([node("P", name="a", at=ten, ats=[ten]), node("P", name="b", at=eleven)], mode="merge")
    assert ask(graph, "$a: P $b: P $a.ats contains $b.at", "$a.name, $b.name") == [("a", "a")]
    assert ask(graph, "$a: P $v contains $a.at", "$a.name", "", "$v: [DateTime]", v=[eleven]) == [("b",)]


def test_groups_by_lists_and_vectors(graph):
    rows = [("a", ["x"], [1, 2]), ("b", ["x"], [1, 2]), ("c", [], [0, 1]), ("d", None, None)]
    graph.load([node("P", name=name, tags=tags, vec=vec) for name, tags, vec in rows], mode="merge")
    assert ask(graph, "$a: P", "$a.tags, count($a) as n", "order { n }") == [(None, 1), ([], 1), (["x"], 2)]
    assert ask(graph, "$a: P", "count($a) as n, $a.vec", "order { n desc }") == [(2, [1, 2]), (1, None), (1, [0, 1])]


def test_parameter_shadows_a_variable(graph):
    assert ask(graph, '$a: P { name: "c" }', "$a, $a.n", "", "$a: I64", a=7) == [(7, 2)]
    assert ask(graph, "$a: P", "count($a)", "", "$a: I64?", a=None) == [(0,)]


def test_integer_is_compared_with_a_fraction_by_value(tmp_path):
    numbers = new_graph(
        tmp_path, "node T { k: String @key  n: I64 }", *(node("T", k=str(n), n=n) for n in range(-2, 3))
    )
    found = {
        "$t.n < 0.1": [-2, -1, 0],
        "$t.n <= 0.1": [-2, -1, 0],
        "$t.n > 0.1": [1, 2],
        "$t.n >= 0.1": [1, 2],
        "0.1 > $t.n": [-2, -1, 0],
        "$t.n = 0.5": [],
        "$t.n != 0.5": [-2, -1, 0, 1, 2],
        "$t.n >= 1.0": [1, 2],
    }
    for condition, expected in found.items():
        assert ask(numbers, f"$t: T {condition}", "$t.n", "order { $t.n }") == [(n,) for n in expected], condition


# -- limits ------------------------------------------------------------------------------------------

CROSS = "query q() { match { $a: P $b: P $c: P } return { $a.name } }"


def test_match_with_too_many_rows_is_refused(graph):
    with pytest.raises(LimitReached) as caught:
        graph.query(CROSS, limits=Limits(rows_max=63))
    assert caught.value.message == "the match would hold 64 rows; the limit is 63"
    assert caught.value.code == "limit_reached"
    assert "rows_max" in caught.value.hint
    assert "narrows" in caught.value.hint
    assert len(graph.query(CROSS, limits=Limits(rows_max=64))) == 64


@pytest.mark.parametrize(
    "match", ["$a: P $a knows $b", "$a: P $a knows{1,3} $b", "$a: P $a $e:knows $b", "$a: P not { $a knows $b $c: P }"]
)
def test_row_limit_covers_every_operator(graph, match):
    query = f"query q() {{ match {{ {match} }} return {{ $a.name }} }}"
    graph.query(query)
    with pytest.raises(LimitReached, match="rows; the limit is 4"):
        graph.query(query, limits=Limits(rows_max=4))


@pytest.mark.parametrize("match", ["$a: P", '$a: P $a.name != "x"'])
def test_row_limit_covers_a_scan(graph, match):
    query = f"query q() {{ match {{ {match} }} return {{ $a.name }} }}"
    with pytest.raises(LimitReached, match="rows; the limit is 3"):
        graph.query(query, limits=Limits(rows_max=3))
    assert len(graph.query(query[:-1] + "limit 3 }", limits=Limits(rows_max=3))) == 3
    counted = query.replace("$a.name }", "count($a) as n }")
    assert graph.query(counted, limits=Limits(rows_max=3)).to_pylist() == [{"n": 4}]


def test_query_beyond_its_time_limit_is_stopped(graph):
    with pytest.raises(LimitReached, match=r"the query took longer than 0\.0 s") as caught:
        graph.query(CROSS, limits=Limits(timeout_s=0.0))
    assert caught.value.hint == "raise the timeout, or narrow the match"
    assert len(graph.query(CROSS, limits=Limits(timeout_s=600.0))) == 64


def test_profile_lists_operators_and_rows(graph):
    text = graph.profile("query q() { match { $a: P $a knows $b $b.n > 1 not { $b has $_ } } return { $a.name } }")
    steps = [re.match(r" +(\w+) .*?  +(\d+) +(?:~\d+)? +[\d.]+", line) for line in text.splitlines()]
    assert [(step[1], int(step[2])) for step in steps if step] == [
        ("scan", 2),
        ("without", 2),
        ("expand", 3),
        ("return", 3),
    ]
    assert text.splitlines()[-1].startswith("  total   3 rows in ")


# -- one snapshot ------------------------------------------------------------------------------------

NAMES = "query q() { match { $a: P } return { $a.name } order { $a.name } }"


def test_query_at_an_old_commit_reads_that_commit(graph):
    first = graph.commits()[0]
    graph.mutate('query q() { delete P where name = "b" }')
    graph.mutate('query q() { update P set { n: 50 } where name = "a" }')
    graph.optimize()
    assert [row["a.name"] for row in graph.query(NAMES)] == ["a", "c", "d"]
    for at in (first.id, graph.snapshot(at=first.id).version):
        assert [row["a.name"] for row in graph.query(NAMES, at=at)] == ["a", "b", "c", "d"]
        assert graph.query(NAMES, at=at).commit_id == first.id
        old = "query q() { match { $a: P $a knows{1,3} $b } return { $a.n, count($b) as c } order { c desc } }"
        assert graph.query(old, at=at).to_rows() == [
            {"a.n": 0, "c": 3},
            {"a.n": 1, "c": 3},
            {"a.n": 2, "c": 1},
            {"a.n": 3, "c": 1},
        ]
    assert [row["c"] for row in graph.query("query q() { match { $a knows $b } return { count($a) as c } }")] == [2]


def test_query_on_a_branch_reads_the_branch(graph):
    graph.branch_create("side")
    side = graph.on("side")
    side.mutate('query q() { delete P where name = "a" }')
    graph.mutate('query q() { delete P where name = "d" }')
    for handle, names, hops in ((side, "bcd", "bb bc cd dc"), (graph, "abc", "ab bb bc")):
        assert "".join(row["a.name"] for row in handle.query(NAMES)) == names
        assert pairs(handle, "$a knows $b") == hops
    assert "".join(row["a.name"] for row in graph.query(NAMES, branch="side")) == "bcd"


def test_old_commit_has_its_old_schema(graph):
    """A name that moves from one property to another keeps its old meaning at old commits."""
    graph.load([node("P", name="a", n=1, x=2.5)], mode="merge")
    bodies = [
        "n: I64?  x: F64?",
        'm: I64? @rename_from("n")  x: F64?',
        'm: I64?  n: F64? @rename_from("x")',
        "m: I64?  n: F64?  x: F64?",
    ]
    expected = [{"n": 1, "x": 2.5}, {"m": 1, "x": 2.5}, {"m": 1, "n": 2.5}, {"m": 1, "n": 2.5, "x": None}]
    commits = []
    for body, values in zip(bodies, expected, strict=True):
        if commits:
            graph.apply_schema(SCHEMA.replace(bodies[0], body))
        commits.append(graph.commits()[0].id)
        # Read every commit while the columns of the others are cached.
        for commit, known in zip(commits, expected, strict=False):
            items = ", ".join(f"$a.{name} as {name}" for name in known)
            query = f'query q() {{ match {{ $a: P {{ name: "a" }} }} return {{ {items} }} }}'
            assert graph.query(query, at=commit).to_rows() == [known]
        assert graph.query(query).to_rows() == [values]
