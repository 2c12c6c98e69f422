"""Lowering of match blocks to pipelines."""

from __future__ import annotations

from textwrap import dedent

import pytest

from omnigraph.query.plan.ir import AntiJoin, Expand, Filter, NodeScan
from support.queries import read_plan, steps

# id: (match block, its operations)
BLOCKS = {
    "one binding is scanned": (
        "$p: Person",
        """
        scan    $p: Person
        """,
    ),
    "the first declared binding of a component is scanned, the others wait for their hop": (
        """
        $p: Person
        $c: Company
        $t: City
        $c basedIn $t
        $p worksAt $c
        """,
        """
        scan    $p: Person
        expand  $p -WorksAt-> $c: Company
        expand  $c -BasedIn-> $t: City
        """,
    ),
    "which binding comes first decides where to start": (
        """
        $t: City
        $p: Person
        $c basedIn $t
        $p worksAt $c
        """,
        """
        scan    $t: City
        expand  $t <-BasedIn- $c: Company
        expand  $c <-WorksAt- $p: Person
        """,
    ),
    "a hop written before the binding it needs": (
        """
        $c basedIn $t
        $p worksAt $c
        $p: Person
        """,
        """
        scan    $p: Person
        expand  $p -WorksAt-> $c: Company
        expand  $c -BasedIn-> $t: City
        """,
    ),
    "a deferred binding keeps its pattern": (
        """
        $p: Person { name: $text }
        $c: Company { name: "x", founded: $day }
        $p worksAt $c
        """,
        """
        scan    $p: Person where $p.name = $text
        expand  $p -WorksAt-> $c: Company where $c.name = "x" and $c.founded = $day
        """,
    ),
    "a hop from its right end goes backwards": (
        """
        $q: Person
        $p knows{1,3} $q
        """,
        """
        scan    $q: Person
        expand  $q <-Knows{1,3}- $p: Person
        """,
    ),
    "two bound ends are only checked": (
        """
        $a knows $b
        $b knows $c
        $c knows $a
        """,
        """
        scan    $a: Person
        expand  $a -Knows-> $b: Person
        expand  $b -Knows-> $c: Person
        check   $c -Knows-> $a
        """,
    ),
    "two hops between the same ends": (
        """
        $a: Person
        $b: Person
        $a knows $b
        $b knows $a
        """,
        """
        scan    $a: Person
        expand  $a -Knows-> $b: Person
        check   $b -Knows-> $a
        """,
    ),
    "a hop to itself is checked": (
        """
        $p: Person
        $p knows $p
        """,
        """
        scan    $p: Person
        check   $p -Knows-> $p
        """,
    ),
    "a hop to itself with neither side bound": (
        "$p knows $p",
        """
        scan    $p: Person
        check   $p -Knows-> $p
        """,
    ),
    "a checked hop may bind its edge": (
        """
        $p: Person
        $q: Person
        $p $w:knows $q
        $q $v:knows $p
        $w.remark = "x"
        $v.remark = "y"
        $w.since = $v.since
        """,
        """
        scan    $p: Person
        expand  $p -$w:Knows-> $q: Person where $w.remark = "x"
        check   $q -$v:Knows-> $p where $v.remark = "y"
        filter  $v.since = $w.since
        """,
    ),
    "disconnected bindings are a product": (
        """
        $p: Person
        $c: Company
        $t: City
        """,
        """
        scan    $p: Person
        scan    $c: Company
        scan    $t: City
        """,
    ),
    "each component starts at its first binding": (
        """
        $p: Person
        $c: Company
        $q: Person
        $t: City
        $q knows $p
        $c basedIn $t
        """,
        """
        scan    $p: Person
        expand  $p <-Knows- $q: Person
        scan    $c: Company
        expand  $c -BasedIn-> $t: City
        """,
    ),
    "a hop with neither side bound scans its left end": (
        """
        $p knows $q
        $c basedIn $t
        """,
        """
        scan    $p: Person
        expand  $p -Knows-> $q: Person
        scan    $c: Company
        expand  $c -BasedIn-> $t: City
        """,
    ),
    "bindings start before hops that nothing leads to": (
        """
        $c basedIn $t
        $p: Person
        """,
        """
        scan    $p: Person
        scan    $c: Company
        expand  $c -BasedIn-> $t: City
        """,
    ),
    "anonymous ends do not connect": (
        """
        $p: Person
        $c: Company
        $p worksAt $_
        $_ worksAt $c
        """,
        """
        scan    $p: Person
        expand  $p -WorksAt-> $_: Company
        scan    $c: Company
        expand  $c <-WorksAt- $_: Person
        """,
    ),
    "two anonymous ends": (
        "$_ worksAt $_",
        """
        scan    $_#0: Person
        expand  $_#0 -WorksAt-> $_: Company
        """,
    ),
    "bounds over two types end after one hop": (
        """
        $p: Person
        $p worksAt{1,4} $c
        """,
        """
        scan    $p: Person
        expand  $p -WorksAt-> $c: Company
        """,
    ),
    "bounds over two types that begin after one hop reach nothing": (
        """
        $p: Person
        $p worksAt{2,4} $c
        """,
        """
        scan    $p: Person
        expand  $p -WorksAt (reaches nothing)-> $c: Company
        """,
    ),
    "bounds over one type stay": (
        """
        $p: Person
        $p knows{2,2} $q
        $p <knows>{1,2} $r
        """,
        """
        scan    $p: Person
        expand  $p -Knows{2,2}-> $q: Person
        expand  $p <-Knows{1,2}-> $r: Person
        """,
    ),
    "conditions on one variable move into the operation that binds it": (
        """
        $p: Person
        $p $w:knows $q
        $p.age > 30
        search($p.bio, $text)
        fuzzy($q.bio, "x")
        $w.since < $day
        30 < $q.age
        """,
        """
        scan    $p: Person where $p.age > 30 and search($p.bio, $text)
        expand  $p -$w:Knows-> $q: Person where $w.since < $day and fuzzy($q.bio, "x", 2) and $q.age > 30
        """,
    ),
    "conditions on two variables follow the last of them": (
        """
        $p: Person
        $p knows $q
        $p worksAt $c
        $p.age < $q.age
        $q.name != $c.name
        $p.bio = $p.name
        """,
        """
        scan    $p: Person where $p.bio = $p.name
        expand  $p -Knows-> $q: Person
        filter  $p.age < $q.age
        expand  $p -WorksAt-> $c: Company
        filter  $c.name != $q.name
        """,
    ),
    "a node and its edge are two variables": (
        """
        $p: Person
        $p $w:knows $q
        $w.since = $q.born
        """,
        """
        scan    $p: Person
        expand  $p -$w:Knows-> $q: Person
        filter  $q.born = $w.since
        """,
    ),
    "conditions on no variable come first": (
        """
        $p: Person
        $text = "x"
        1 < 2
        """,
        """
        filter  $text = "x"
        filter  1 < 2
        scan    $p: Person
        """,
    ),
    "a list property is matched by membership": (
        '$p: Person { nicknames: "Al", marks: $count, name: "Al" }',
        """
        scan    $p: Person where $p.nicknames contains "Al" and $p.marks contains $count and $p.name = "Al"
        """,
    ),
    "negations come last, each by itself": (
        """
        $p: Person
        not { $p knows $_ }
        $p worksAt $c
        not { $c basedIn $_ }
        """,
        """
        scan    $p: Person
        expand  $p -WorksAt-> $c: Company
        without any match, for each $p:
          expand  $p -Knows-> $_: Person
        without any match, for each $c:
          expand  $c -BasedIn-> $_: City
        """,
    ),
    "a negation starts from the outside": (
        """
        $p: Person
        not {
            $t: City
            $c basedIn $t
            $p worksAt $c
            $t.name = $text
        }
        """,
        """
        scan    $p: Person
        without any match, for each $p:
          expand  $p -WorksAt-> $c: Company
          expand  $c -BasedIn-> $t: City where $t.name = $text
        """,
    ),
    "a negation scans what nothing leads to": (
        """
        $p: Person
        not {
            $t: City { name: "x" }
            $t.name = $p.name
        }
        """,
        """
        scan    $p: Person
        without any match, for each $p:
          scan    $t: City where $t.name = "x"
          filter  $p.name = $t.name
        """,
    ),
    "two outer ends are checked in a negation": (
        """
        $p: Person
        $q: Person
        not { $p knows $q }
        """,
        """
        scan    $p: Person
        scan    $q: Person
        without any match, for each $p, $q:
          check   $p -Knows-> $q
        """,
    ),
    "a condition on the outside stays a filter of the negation": (
        """
        $p: Person
        not { $p.age = $p.age }
        """,
        """
        scan    $p: Person
        without any match, for each $p:
          filter  $p.age = $p.age
        """,
    ),
    "outer variables are named in the order they are met": (
        """
        $p: Person
        $q: Person
        $r: Person
        not { $r.age = 1  $q knows $x  $x.age = $p.age }
        """,
        """
        scan    $p: Person
        scan    $q: Person
        scan    $r: Person
        without any match, for each $q, $r, $p:
          filter  $r.age = 1
          expand  $q -Knows-> $x: Person
          filter  $p.age = $x.age
        """,
    ),
    "an edge variable of the outside": (
        """
        $p $w:knows $q
        not { $q $v:knows $p  $v.since < $w.since }
        """,
        """
        scan    $p: Person
        expand  $p -$w:Knows-> $q: Person
        without any match, for each $q, $p, $w:
          check   $q -$v:Knows-> $p
          filter  $v.since < $w.since
        """,
    ),
    "negations nest": (
        """
        $p: Person
        not {
            $p knows $q
            $q.age > 30
            not { $q worksAt $c  $c.name = $p.name }
        }
        """,
        """
        scan    $p: Person
        without any match, for each $p:
          expand  $p -Knows-> $q: Person where $q.age > 30
          without any match, for each $q, $p:
            expand  $q -WorksAt-> $c: Company
            filter  $c.name = $p.name
        """,
    ),
    "now is one instant wherever it stands": (
        """
        $p: Person { seen: now() }
        $p.seen < now()
        """,
        """
        scan    $p: Person where $p.seen = now() and $p.seen < now()
        """,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("match", "expected"), BLOCKS.values(), ids=BLOCKS)
def test_block(match, expected):
    assert dedent("\n".join(steps(match))) == dedent(expected).strip()


def test_plan_of_a_hop():
    scan, expand = read_plan("$c: Company $c $w:worksAt $p").pipeline
    assert scan == NodeScan("c", "Company")
    assert expand == Expand("c", "p", "WorksAt", "in", "Person", edge_var="w")


def test_bounds_that_reach_nothing_are_kept():
    (_, expand) = read_plan("$p: Person $p worksAt{3,4} $c").pipeline
    assert isinstance(expand, Expand)
    assert (expand.min_hops, expand.max_hops) == (3, 1)


def test_the_type_of_the_left_operand_decides_contains():
    (scan,) = read_plan('$p: Person $p.nicknames contains "a" $p.name contains "a" $p: Person { marks: 1 }').pipeline
    assert isinstance(scan, NodeScan)
    assert [condition.op for condition in scan.filters] == ["contains_item", "contains_text", "contains_item"]


def test_variable_names_are_unique_in_a_plan():
    pipeline = read_plan(
        "$p: Person not { $p knows $q } not { $p knows $q not { $q knows $_ $q worksAt $_ } }"
    ).pipeline

    def names(ops):
        for op in ops:
            if isinstance(op, NodeScan):
                yield op.var
            elif isinstance(op, Expand) and not op.dst_bound:
                yield op.dst_var
            elif isinstance(op, AntiJoin):
                yield from names(op.inner)

    found = list(names(pipeline))
    assert len(found) == len(set(found)) == 5


def test_clause_order_changes_only_the_order_of_operations():
    ordered = read_plan("$p: Person $p knows $q $p worksAt $c $q.age = 1").pipeline
    shuffled = read_plan("$p worksAt $c $p knows $q $q.age = 1 $p: Person").pipeline
    assert set(ordered) == set(shuffled)
    assert not any(isinstance(op, Filter) for op in ordered)
