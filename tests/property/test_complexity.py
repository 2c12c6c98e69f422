"""Compilation, planning and migration take calls in proportion to the length of their text, up to a logarithm.

Calls of functions are counted at a length and at four times the length, so the result does not depend on the machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from cProfile import Profile
from typing import Any

import pytest

import omnigraph as og
from omnigraph.engine import tuning
from omnigraph.errors import CompileError, SchemaChangeError
from omnigraph.query.compile import compile_query
from omnigraph.schema.check import INHERITED_MAX, compile_schema
from omnigraph.schema.migrate import plan_between

SMALL, TIMES = 40, 4
GROWTH_MAX = TIMES * math.log(SMALL * TIMES) / math.log(SMALL)
CALLS_MIN = 500
"""Allowance for calls that do not depend on the length of the text."""
BASE = "node Person { name: String @key\n age: I64? }\nedge Knows: Person -> Person { since: I64? }\n"

Text = Callable[[int], str]


def lines(line: str, count: int) -> str:
    """The lines for the numbers below `count`; `#` stands for the number and `%` for the next one."""
    return "\n".join(line.replace("#", str(n)).replace("%", str(n + 1)) for n in range(count))


def items(item: str, count: int) -> str:
    return ", ".join(lines(item, count).split("\n"))


def count_calls(work: Callable[[], Any]) -> int:
    """Count the Python and C calls of some work."""
    profile = Profile()
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats())


def check_growth(work: Callable[[int], Callable[[], Any]]) -> None:
    small, large = count_calls(work(SMALL)), count_calls(work(SMALL * TIMES))
    assert large <= GROWTH_MAX * (small + CALLS_MIN), f"{small:,} calls, and {large:,} for {TIMES} times the text"


# -- schemas -------------------------------------------------------------------------------------------


def types(count: int, name: str = "T") -> str:
    return BASE + lines(f"node {name}# {{ name: String @key }}", count)


def interfaces(count: int) -> str:
    """As many pairs of types and interfaces."""
    side = math.isqrt(count)
    implemented = items("I#", side)
    nodes = lines(f"node T# implements {implemented} {{ name: String @key }}", side)
    return f"{lines('interface I# { p#: String }', side)}\n{nodes}"


def members(line: str, count: int) -> str:
    """A type with lines for the numbers below `count`."""
    return "node T { name: String @key\n" + lines(line, count) + " }"


def inherited(line: str, count: int) -> str:
    """The same lines in an interface, and a type that implements it."""
    return "interface I { " + lines(line, count) + " }\nnode T implements I { name: String @key }"


RENAMED = 'q#: I64? @rename_from("p#")'
RENAMED_TYPE = 'node U# @rename_from("T#") { name: String @key }'
SCHEMAS: dict[str, Text] = {
    "types": types,
    "pairs of types and interfaces": interfaces,
    "interfaces with one property": lambda n: (
        f"{lines('interface I# { p: String }', n)}\nnode T implements {items('I#', n)} {{ name: String @key }}"
    ),
    "properties": lambda n: members("p#: I64? @unique", n),
    "constraints": lambda n: members("p#: I64 @unique(p#, name) @range(p#, 1..5)", n),
    "edges": lambda n: BASE + lines("edge E#: Person -> Person", n),
    "members of an enum": lambda n: f"node T {{ name: String @key e: enum({items('m#', n)}) }}",
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas(name: str) -> None:
    """A schema is compiled and planned as the first one of a graph with other types."""

    def work(count: int) -> Callable[[], Any]:
        text, base = SCHEMAS[name](count), compile_schema("node Other { name: String @key }")
        return lambda: plan_between(base, compile_schema(text))

    check_growth(work)


CHANGES: dict[str, tuple[Text, Text]] = {
    "new types": (lambda _: BASE, types),
    "replaced types": (types, lambda n: types(n, "U")),
    "renamed types": (types, lambda n: BASE + lines(RENAMED_TYPE, n)),
    "replaced properties": (lambda n: members("p#: I64?", n), lambda n: members("q#: I64?", n)),
    "renamed properties": (lambda n: members("p#: I64?", n), lambda n: members(RENAMED, n)),
    "renamed properties of an interface": (lambda n: inherited("p#: I64?", n), lambda n: inherited(RENAMED, n)),
    "removed constraints": (lambda n: members("p#: I64? @unique", n), lambda n: members("p#: I64?", n)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_schema_changes(name: str) -> None:
    before, after = CHANGES[name]

    def work(count: int) -> Callable[[], Any]:
        old, new = compile_schema(before(count)), compile_schema(after(count))
        return lambda: plan_between(old, new)

    check_growth(work)


def test_inherited_properties_are_bounded() -> None:
    side = math.isqrt(INHERITED_MAX) + 1
    text = f"interface I {{ {lines('p#: I64?', side)} }}\n{lines('node T# implements I { name: String @key }', side)}"
    with pytest.raises(CompileError, match="at most 20,000 properties"):
        compile_schema(text)


def test_wrong_hint_is_one_error() -> None:
    """A wrong rename ends the plan: the names are compared once."""

    def work(count: int) -> Callable[[], Any]:
        old = compile_schema(types(count))
        new = compile_schema(types(count) + lines('\nnode U# @rename_from("X#") { name: String @key }', count))

        def plan() -> None:
            with pytest.raises(SchemaChangeError):
                plan_between(old, new)

        return plan

    check_growth(work)


# -- queries -------------------------------------------------------------------------------------------


def read(match: str, returned: str = "$a.name", head: str = "", order: str = "") -> str:
    text = f"query q({head}) {{ match {{ $a: Person\n{match} }} return {{ {returned} }}"
    return text + (f" order {{ {order} }} }}" if order else " }")


QUERIES: dict[str, Text] = {
    "variables": lambda n: read(lines("$v#: Person", n)),
    "chain": lambda n: read("$a knows $v0\n" + lines("$v# knows $v%", n)),
    "star": lambda n: read(lines("$a knows $v#", n)),
    "edge variables": lambda n: read(lines("$a $e#: knows $v#", n)),
    "parts without a connection": lambda n: read(lines("$v# knows $w#", n)),
    "conditions": lambda n: read(lines("$a.age > #", n)),
    "conditions on two variables": lambda n: read("$a knows $b\n" + lines("$a.age > $b.age + #", n)),
    "not blocks": lambda n: read(lines("not { $a knows $v# $v#.age > # }", n)),
    "optional blocks": lambda n: read(lines("optional { $a knows $v# }", n)),
    "alternatives": lambda n: read(" or ".join(lines("$a.age > #", n).split("\n"))),
    "constants": lambda n: read(f"$a.age in [{items('#', n)}]"),
    "parameters": lambda n: read(lines("$a.age > $p#", n), head=items("$p#: I64", n)),
    "columns": lambda n: read("", items("$a.age + # as c#", n)),
    "aggregates": lambda n: read("$a knows $b", f"$a.name, {items('sum($b.age + #) as c#', n)}"),
    "columns of columns": lambda n: read("", f"$a.age as c0, {items('c# as c%', n)}"),
    "sort keys": lambda n: read("", items("$a.age + # as c#", n), order=items("c# desc", n)),
    "sort keys of groups": lambda n: read(
        "$a knows $b", items("sum($b.age + #) as c#", n), order=items("sum($b.age + #)", n)
    ),
    "statements": lambda n: "query q() { " + lines('update Person set { age: # } where name = "x#"', n) + " }",
    "inserts": lambda n: "query q() { " + lines('insert Person { name: "x#", age: # } as $v#', n) + " }",
}


@pytest.mark.parametrize("name", QUERIES)
def test_queries(name: str) -> None:
    catalog = compile_schema(BASE)

    def work(count: int) -> Callable[[], Any]:
        text = QUERIES[name](count)
        return lambda: compile_query(catalog, text)

    check_growth(work)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[og.Graph]:
    with og.init(tmp_path_factory.mktemp("complexity") / "g", BASE, sync=False) as graph:
        people = [{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(30)]
        edges = [{"edge": "Knows", "from": f"p{n}", "to": f"p{n * 7 % 30}"} for n in range(30)]
        graph.load([*people, *edges], mode="append")
        yield graph


@pytest.mark.parametrize("name", QUERIES)
def test_plans(graph: og.Graph, name: str) -> None:
    """A match of more parts than are searched keeps the order of its text."""

    def work(count: int) -> Callable[[], Any]:
        text = QUERIES[name](count)
        return lambda: graph.explain(text)

    with tuning.replaced(pattern_parts_max=16):
        check_growth(work)


@pytest.mark.parametrize("word", ["not", "optional"])
def test_nested_blocks(graph: og.Graph, word: str) -> None:
    """The two forms of a block are not compared at every level, which would double the work with each."""

    def text(depth: int) -> str:
        blocks = lines(f"{word} {{ $v# knows $v%", depth)
        return read(f"$a knows $v0\n{blocks}{'}' * depth}")

    shallow, deep = (count_calls(lambda depth=depth: graph.explain(text(depth))) for depth in (10, 40))
    assert deep <= 16 * shallow  # names are compared at every level


def test_long_matches_return_the_same_rows(graph: og.Graph) -> None:
    """The order of the text and the chosen order have the same rows."""
    matches = [
        "$a knows $b $b knows $c $c.age > 3 not { $c knows $a }",
        '$a.age > 20 $b: Person { name: "p3" } $b knows $c $a knows $c',
        "$a knows $b optional { $b knows $c $c.age > 9 } $b.age < $a.age",
    ]
    for match in matches:
        text = read(match, "$a.name, $b.name as other")
        chosen = graph.query(text)
        with tuning.replaced(pattern_parts_max=1):
            in_order = graph.query(f"{text}\n")
        assert sorted(map(repr, in_order)) == sorted(map(repr, chosen))


def test_hops_from_no_row_bind_their_variables_once(graph: og.Graph) -> None:
    def work(count: int) -> Callable[[], Any]:
        text = read(f'$v0: Person {{ name: "none" }}\n{lines("$v# knows $v%", count)}', "$v0.name")
        assert graph.query(text).to_rows() == []
        return lambda: graph.query(text)

    check_growth(work)


def test_stages_are_bounded(graph: og.Graph) -> None:
    text = "query q() { match { $a: Person } " + "with { $a } " * 1_000 + "return { $a.name } }"
    with pytest.raises(CompileError, match="at most 64 parts"):
        graph.query(text)
