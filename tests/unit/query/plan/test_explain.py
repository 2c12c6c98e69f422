"""The exact text of plans."""

from __future__ import annotations

from textwrap import dedent

import pytest

from omnigraph.query.compile import compile_query
from omnigraph.query.plan.explain import explain
from support.queries import CATALOG, read_plan, steps

PLANS = {
    "a plain read": (
        """
        query friends($name: String, $min: I32?) {
            match {
                $p: Person { name: $name }
                $p knows $q
                $q.age >= $min
            }
            return { $q.name, $q.age as years, $q }
            order { years desc, $q.name }
            limit 10
        }
        """,
        """
        query friends($name: String, $min: I32?)
          scan    $p: Person where $p.name = $name
          expand  $p -Knows-> $q: Person where $q.age >= $min
          return  $q.name: String, $q.age as years: I32?, $q: Person
          order   years desc, $q.name asc
          limit   10
        """,
    ),
    "stages": (
        """
        query busy($least: I64) {
            match { $p knows $q }
            with { $p, count($q) as $n }
            having { $n >= $least }
            order { $n desc }
            limit 3
            with { $p, $n, $p.age as $age }
            match {
                $p worksAt $c
                $age > $n
                not {
                    $p knows $r
                    $r.age > $age
                }
            }
            return { $c.name, sum($n) as total }
            order { total desc }
        }
        """,
        """
        query busy($least: I64)
          stage   $p, $n, $age, from:
            stage   $p, $n, from:
              scan    $p: Person
              expand  $p -Knows-> $q: Person
              group   by $p
              having  count($q) >= $least
              with    $p: Person, count($q) as n: I64
              order   n desc
              limit   3
            with    $p: Person, $n: I64, $p.age as age: I32?
          filter  $age > $n
          expand  $p -WorksAt-> $c: Company
          without any match, for each $p, values of the stage:
            expand  $p -Knows-> $r: Person
            filter  $age < $r.age
          group   by $c.name
          return  $c.name: String, sum($n) as total: I64?
          order   total desc
        """,
    ),
    "steps of a path": (
        """
        query steps($name: String) {
            match {
                $p: Person { name: $name }
                $w: all shortest { $p knows{1,3} $q }
                $x -> $y in $w
                $p <-> $_ in $w
                $x.age > 30
                $y worksAt $c
            }
            return { nodes($w, name) as names, count($c) as companies }
        }
        """,
        """
        query steps($name: String)
          scan    $p: Person where $p.name = $name
          shortest all $w: $p -Knows{1,3}-> $q: Person
          steps   $x: Person -> $y: Person in $w where $x.age > 30
          expand  $y -WorksAt-> $c: Company
          steps   $p <-> $_: Person in $w
          group   by nodes($w, name)
          return  nodes($w, name) as names: [String], count($c) as companies: I64
        """,
    ),
    "groups": (
        """
        query crowd() {
            match { $p: Person  $p worksAt $c }
            return { $c.name, $c, count($p) as people, avg($p.age) as age }
            order { people desc, $c.name }
        }
        """,
        """
        query crowd()
          scan    $p: Person
          expand  $p -WorksAt-> $c: Company
          group   by $c.name, $c
          return  $c.name: String, $c: Company, count($p) as people: I64, avg($p.age) as age: F64?
          order   people desc, c.name asc
        """,
    ),
    "one group": (
        "query total() { match { $p: Person } return { count($p), max($p.name) as last } }",
        """
        query total()
          scan    $p: Person
          group   all rows
          return  count($p) as count: I64, max($p.name) as last: String?
        """,
    ),
    "a median": (
        "query middle() { match { $p: Person } return { median($p.age) as age, median(distinct $p.age) } }",
        """
        query middle()
          scan    $p: Person
          group   all rows
          return  median($p.age) as age: F64?, median(distinct $p.age) as median: F64?
        """,
    ),
    "a condition of an aggregate": (
        "query old() { match { $p: Person } return { count(distinct $p where $p.age > 60 or $p.age is null) as old } }",
        """
        query old()
          scan    $p: Person
          group   all rows
          return  count(distinct $p where $p.age > 60 or $p.age is null) as old: I64
        """,
    ),
    "computed from aggregates": (
        """
        query mean() {
            match { $p: Person  $p worksAt $c }
            return {
                { at: lower($c.name), people: collect({ n: $p.name }), pair: [count($p), 1] } as all,
                sum($p.age) / count($p) as mean
            }
            having { mean > 30 }
            order { mean desc, count($p) + 1 }
        }
        """,
        """
        query mean()
          scan    $p: Person
          expand  $p -WorksAt-> $c: Company
          group   by lower($c.name)
          having  sum($p.age) / count($p) > 30
          return  { at: lower($c.name), people: collect({ n: $p.name }), pair: [count($p), 1] } as all: { at: String, \
people: [{ n: String }], pair: [I64] }, sum($p.age) / count($p) as mean: F64?
          order   mean desc, count($p) + 1 asc
        """,
    ),
    "nearest": (
        """
        query like($q: Vector(3)) {
            match { $p: Person }
            return { $p.name, nearest($p.face, $q) as far }
            order { nearest($p.face, $q), $p.age desc }
            limit 5
        }
        """,
        """
        query like($q: Vector(3))
          scan    $p: Person
          rank    $p by nearest($p.face, $q), best first
          return  $p.name: String, nearest($p.face, $q) as far: F64?
          order   $p.age desc
          limit   5
        """,
    ),
    "bm25": (
        'query words() { match { $p: Person } return { bm25($p.bio, "a") as s } order { s } }',
        """
        query words()
          scan    $p: Person
          rank    $p by bm25($p.bio, "a"), best first
          return  bm25($p.bio, "a") as s: F64
        """,
    ),
    "rrf": (
        """
        query both($t: String) {
            match { $p: Person  $p knows $q }
            return { $q.name }
            order { rrf(nearest($q.face, [1, 0, 0]), bm25($q.bio, $t), 10) }
            limit 3
        }
        """,
        """
        query both($t: String)
          scan    $p: Person
          expand  $p -Knows-> $q: Person
          rank    $q by rrf(nearest($q.face, a vector of 3), bm25($q.bio, $t), 10), best first
          return  $q.name: String
          limit   3
        """,
    ),
    "repeated items": (
        "query again() { match { $p: Person } return { $p.age as n, n, n as m } order { m } }",
        """
        query again()
          scan    $p: Person
          return  $p.age as n: I32?, column 1 as n: I32?, column 1 as m: I32?
          order   m asc
        """,
    ),
    "a negation": (
        """
        query lonely() {
            match { $p: Person  not { $p knows $q  not { $q.age = 1 } } }
            return { $p.name }
        }
        """,
        """
        query lonely()
          scan    $p: Person
          without any match, for each $p:
            expand  $p -Knows-> $q: Person
            without any match, for each $q:
              filter  $q.age = 1
          return  $p.name: String
        """,
    ),
    "inserts": (
        """
        query join($n: String, $c: String) {
            insert Person { name: $n, age: 30, seen: now(), nicknames: ["a", "b"] }
            insert WorksAt { from: $n, to: $c, role: "cook" }
            insert Knows { to: "b", from: "a" }
        }
        """,
        """
        change join($n: String, $c: String)
          insert  Person { name: $n, age: 30, seen: now(), nicknames: ["a", "b"] }
          insert  WorksAt $n -> $c { role: "cook" }
          insert  Knows "a" -> "b"
        """,
    ),
    "rows back": (
        """
        query move($n: String) {
            atomic {
                upsert Person { name: $n } existing { age: 1 } as $p
                insert Company { name: "c" } as $c
                insert WorksAt { from: $p, to: $c, role: "x" } as $w
                update Person set { age: 2 } where age = 1 as $all
                delete Person where name = "x" as $gone
                delete Knows where from = $n as $edges
            }
            return { $p, $c.name as where, $w.role, now() }
        }
        """,
        """
        change move($n: String)
          upsert  Person { name: $n } new  existing { age: 1 } as $p
          insert  Company { name: "c" } as $c
          insert  WorksAt id($p) -> id($c) { role: "x" } as $w
          update  Person { age: 2 } where age = 1 as $all
          delete  Person where name = "x" as $gone, and every edge at them
          delete  Knows where src = $n as $edges
          return  $p: Person, $c.name as where: String, $w.role: String, now() as now: DateTime
        """,
    ),
    "an update": (
        "query grow($n: String) { update Person set { age: 31, bio: $n } where name = $n }",
        """
        change grow($n: String)
          update  Person { age: 31, bio: $n } where name = $n
        """,
    ),
    "deletes": (
        """
        query leave($n: String) {
            delete Person where name = $n
            delete Knows where from = $n
            delete Knows where to != $n
            delete WorksAt where role >= "m"
        }
        """,
        """
        change leave($n: String)
          delete  Person where name = $n, and every edge at them
          delete  Knows where src = $n
          delete  Knows where dst != $n
          delete  WorksAt where role >= "m"
        """,
    ),
}


@pytest.mark.parametrize(("text", "expected"), PLANS.values(), ids=PLANS)
def test_plan(text, expected):
    assert explain(compile_query(CATALOG, text)) == dedent(expected).lstrip()


# literal: its text in a plan
CONSTANTS = {
    '"a"': '"a"',
    r'"say \"hi\"\n\t\\"': r'"say \"hi\"\n\t\\"',
    '"é"': '"é"',
    "1": "1",
    "18446744073709551615": "18446744073709551615",
    "1.0": "1.0",
    "0.0": "0.0",
    "0.1": "0.1",
    "100000000000000000000000.0": "100000000000000000000000.0",
    "true": "true",
    "false": "false",
    'date("2020-01-02")': 'date("2020-01-02")',
    'datetime("2020-01-02T03:04:05+01:00")': 'datetime("2020-01-02T02:04:05.000Z")',
    "[]": "[]",
    "[1, 2]": "[1, 2]",
    "[1, 2.5]": "[1.0, 2.5]",
    '["a", "b"]': '["a", "b"]',
    '[date("2020-01-02")]': '[date("2020-01-02")]',
    "now()": "now()",
}


@pytest.mark.parametrize(("literal", "spelt"), CONSTANTS.items(), ids=CONSTANTS)
def test_constant(literal, spelt):
    shown = explain(read_plan("$p: Person", f"{literal} as c")).splitlines()[-1]
    assert shown.startswith(f"  return  {spelt} as c: ")


def test_a_32_bit_constant_has_the_shortest_text():
    assert "$p.height = 0.1" in explain(read_plan("$p: Person { height: 0.1 }"))


def test_blobs_and_vectors_are_abbreviated():
    text = 'query q() { insert Person { name: "a", photo: "base64:aGk=", face: [1, 2, 3] } }'
    assert explain(compile_query(CATALOG, text)).splitlines()[1] == (
        '  insert  Person { name: "a", photo: a blob of 2 bytes, face: a vector of 3 }'
    )
    elsewhere = 'query q() { insert Person { name: "a", photo: "s3://b" } }'
    assert 'photo: "s3://b"' in explain(compile_query(CATALOG, elsewhere))


def test_conditions_have_the_necessary_parentheses():
    condition = "($p.age + 1) * 2 > 3 and ($p.active or not ($p.age in [1, -2] or $p.bio is not null))"
    (scan,) = steps(f"$p: Person {condition}")
    assert scan.split(" where ")[1] == (
        "($p.age + 1) * 2 > 3 and ($p.active or not ([1, -2] contains $p.age or $p.bio is not null))"
    )


def test_layout_does_not_change_the_plan():
    assert steps("$p: Person $p.age > 1 and $p.active") == steps("$p: Person $p.age > 1 $p.active")
