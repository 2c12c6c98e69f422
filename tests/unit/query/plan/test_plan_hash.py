"""Hashes of plans: equal for plans that differ only in constants."""

from __future__ import annotations

import pytest

from omnigraph.query.compile import compile_query
from omnigraph.query.plan.plan_hash import plan_hash
from support.queries import CATALOG

FRIENDS = """
query friends($name: String) {
    match { $p: Person { name: $name } $p knows $q $q.age >= 30 not { $q knows $r $r.age in [1, 2] } }
    return { $q.name, $q.age + 1 as next }
    order { $q.name }
    skip 5
    limit 10
}
"""


def _hash(text: str) -> str:
    return plan_hash(compile_query(CATALOG, text, None, source_name="<query>"))


@pytest.mark.parametrize(
    ("old", "new"), [("30", "31"), ("+ 1", "+ 2"), ("[1, 2]", "[3, 4]"), ("limit 10", "limit 11"), ("skip 5", "skip 6")]
)
def test_constants_do_not_count(old: str, new: str) -> None:
    assert _hash(FRIENDS) == _hash(FRIENDS.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [(">= 30", "> 30"), ("age + 1", "age * 1"), ("    skip 5\n", ""), ("{ $q.name }", "{ next }")],
)
def test_structure_counts(old: str, new: str) -> None:
    assert old in FRIENDS
    assert _hash(FRIENDS) != _hash(FRIENDS.replace(old, new))


def test_the_constants_of_a_mutation_do_not_count() -> None:
    text = 'query add() { insert Person { name: "ana", age: 1 } }'
    assert _hash(text) == _hash(text.replace("ana", "bo"))
    assert _hash(text) != _hash(text.replace(", age: 1", ""))


STAGED = """
query staged() {
    match { $p knows $q }
    with { $p, count($q) as $n }
    having { $n > 3 }
    order { $n }
    limit 10
    match { $p worksAt $c }
    return { $c.name, $n }
}
"""


@pytest.mark.parametrize(("old", "new"), [("limit 10", "limit 11"), ("> 3", "> 4")])
def test_constants_of_stages_do_not_count(old: str, new: str) -> None:
    assert _hash(STAGED) == _hash(STAGED.replace(old, new))


@pytest.mark.parametrize(("old", "new"), [("count($q)", "count(distinct $q)"), ("limit 10\n", ""), ("> 3", "< 3")])
def test_stages_count(old: str, new: str) -> None:
    assert _hash(STAGED) != _hash(STAGED.replace(old, new))
