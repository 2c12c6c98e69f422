"""Integrity rules on handwritten deltas, and the rules over several rows compared with a slow oracle."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.engine.write.constraints import check_delta, violations
from omnigraph.engine.write.delta import Delta, TableDelta, Violation
from omnigraph.errors import ConstraintViolation
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.check import compile_schema

Rows = Sequence[Mapping[str, Any]]


class MemoryTables:
    """Committed rows in memory."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self.tables = tables
        self.reads: list[str] = []

    def ids_among(self, table_key: str, ids: pa.Array) -> pa.Array:
        return self.rows_among(table_key, "id", ids, ["id"])["id"].combine_chunks()

    def rows_among(self, table_key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        self.reads.append(table_key)
        table = self.tables[table_key]
        return table.filter(pc.is_in(table[column], value_set=values)).select(list(columns))

    def read(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        self.reads.append(f"all of {table_key}")
        return self.tables[table_key].select(list(columns))


class RuleCase:
    """A schema, committed rows, and writes on top of them."""

    def __init__(self, schema: str, **committed: Rows) -> None:
        self.catalog: Catalog = compile_schema(schema)
        self.types = {type_.name: type_ for type_ in self.catalog.tables()}
        self.stored = MemoryTables(
            {t.table_key: self.rows(name, committed.get(name, ())) for name, t in self.types.items()}
        )

    def rows(self, name: str, rows: Rows) -> pa.Table:
        """Return rows in two chunks, like those of a write with several statements."""
        schema = pa.schema([field.with_nullable(True) for field in table_schema(self.types[name])])
        filled = [{field: row.get(field) for field in schema.names} for row in rows]
        half = len(filled) // 2
        parts = [pa.Table.from_pylist(part, schema=schema) for part in (filled[:half], filled[half:])]
        return pa.concat_tables(parts)

    def delta(
        self, *, replaces: bool = False, deleted: Mapping[str, Sequence[str]] | None = None, **written: Rows
    ) -> Delta:
        deleted = deleted or {}
        tables = {
            self.types[name].table_key: TableDelta(
                self.rows(name, written.get(name, ())), pa.array(deleted.get(name, []), pa.utf8()), replaces
            )
            for name in {*written, *deleted}
        }
        return Delta(tables, self.stored)

    def found(self, **write: Any) -> list[Violation]:
        return list(violations(self.catalog, self.delta(**write)))

    def messages(self, **write: Any) -> list[str]:
        return [violation.message for violation in self.found(**write)]


def n(id_: str, **values: Any) -> dict[str, Any]:
    return {"id": id_, **values}


def e(id_: str, src: str, dst: str, **values: Any) -> dict[str, Any]:
    return {"id": id_, "src": src, "dst": dst, **values}


# -- values ------------------------------------------------------------------------------------------

RANGED = (
    "node T { i: I32? u: U64? f: F32? d: F64? @range(i, -5..10) @range(u, 2..) @range(f, ..0.5) @range(d, 0.5..1.5) }"
)


@pytest.mark.parametrize(
    ("values", "messages"),
    [
        ({"i": -5}, []),
        ({"i": 10}, []),
        ({"i": None, "u": None, "f": None, "d": None}, []),
        ({"i": -6}, ["@range violation on T.i: -6 is not in -5..10"]),
        ({"i": 11}, ["@range violation on T.i: 11 is not in -5..10"]),
        ({"u": 2}, []),
        ({"u": 2**64 - 1}, []),
        ({"u": 1}, ["@range violation on T.u: 1 is not in 2.."]),
        ({"f": 0.5}, []),
        ({"f": 0.75}, ["@range violation on T.f: 0.75 is not in ..0.5"]),
        ({"d": 0.5}, []),
        ({"d": 1.5}, []),
        ({"d": math.nextafter(1.5, 2)}, ["@range violation on T.d: 1.5000000000000002 is not in 0.5..1.5"]),
        ({"d": math.nan}, ["@range violation on T.d: nan is not in 0.5..1.5"]),
        ({"d": math.inf}, ["@range violation on T.d: inf is not in 0.5..1.5"]),
        (
            {"d": 0.4, "i": 99},
            ["@range violation on T.d: 0.4 is not in 0.5..1.5", "@range violation on T.i: 99 is not in -5..10"],
        ),
    ],
)
def test_range(values, messages):
    assert RuleCase(RANGED).messages(T=[n("a", **values)]) == messages


def test_range_is_compared_as_a_float():
    case = RuleCase("node T { i: I64? @range(i, ..9007199254740992) }")
    assert case.messages(T=[n("a", i=2**53 + 1)]) == []
    assert case.messages(T=[n("a", i=2**53 + 2)]) == [
        "@range violation on T.i: 9007199254740994 is not in ..9007199254740992"
    ]


CHECKED = 'node T { code: String? kind: enum(ab, b)? @check(code, "b+") @check(kind, "^a") }'


@pytest.mark.parametrize(
    ("values", "messages"),
    [
        ({"code": "abc"}, []),
        ({"code": None}, []),
        ({"code": "xyz"}, ["@check violation on T.code: 'xyz' does not match \"b+\""]),
        ({"code": ""}, ["@check violation on T.code: '' does not match \"b+\""]),
        ({"code": "B"}, ["@check violation on T.code: 'B' does not match \"b+\""]),
        ({"code": "日\nb本"}, []),
        ({"kind": "ab"}, []),
        ({"kind": "b"}, ["@check violation on T.kind: 'b' does not match \"^a\""]),
        ({"code": "x" * 200}, [f"@check violation on T.code: '{'x' * 119}…' does not match \"b+\""]),
    ],
)
def test_check(values, messages):
    assert RuleCase(CHECKED).messages(T=[n("a", **values)]) == messages


ENUMS = "node T { mood: enum(sad, happy)? } edge E: T -> T { role: enum(x, y-1)? }"


def test_enum_on_nodes_and_edges():
    case = RuleCase(ENUMS, T=[n("a")])
    assert case.messages(T=[n("b", mood="sad"), n("c", mood=None)], E=[e("1", "a", "a", role="y-1")]) == []
    assert case.messages(T=[n("b", mood="Sad")], E=[e("1", "a", "a", role="z")]) == [
        "invalid enum value 'Sad' for T.mood: allowed are 'happy', 'sad'",
        "invalid enum value 'z' for E.role: allowed are 'x', 'y-1'",
    ]


def test_a_violation_contains_its_row():
    case = RuleCase(RANGED)
    rows = [n("a", i=1), n("b", i=99), n("c", d=0.0), n("d", i=-99)]
    found = [(v.rule, v.table_key, v.row_id, v.property, v.position) for v in case.found(T=rows)]
    assert found == [
        ("range", "node:T", "b", "i", 1),
        ("range", "node:T", "c", "d", 2),
        ("range", "node:T", "d", "i", 3),
    ]


# -- uniqueness --------------------------------------------------------------------------------------


def test_a_repeated_key_in_one_write_is_a_violation():
    case = RuleCase("node T { k: String @key }", T=[n("a", k="a")])
    assert case.messages(T=[n("a", k="a"), n("b", k="b")]) == []
    rows = [n("a", k="a"), n("b", k="b"), n("b", k="b"), n("a", k="a")]
    found = case.found(T=rows)
    assert [v.message for v in found] == [
        "@unique violation on T.k: the key 'b' is written twice",
        "@unique violation on T.k: the key 'a' is written twice",
    ]
    assert [v.position for v in found] == [2, 3]


def test_a_repeated_composite_key_is_a_violation():
    case = RuleCase("node T { b: String a: I32 @key(b, a) }")
    rows = [n('["1","x"]', a=1, b="x")] * 2
    assert case.messages(T=rows) == ['@unique violation on T.(a, b): the key \'["1","x"]\' is written twice']


ONE = "node T { v: String? @unique }"


def test_unique_within_the_write():
    found = RuleCase(ONE).found(T=[n("a", v="x"), n("b", v="y"), n("c", v="x"), n("d", v="x")])
    assert [v.message for v in found] == [
        "@unique violation on T.v: value 'x' is held by 'a' and 'c'",
        "@unique violation on T.v: value 'x' is held by 'a' and 'd'",
    ]
    assert [(v.row_id, v.other_id, v.position) for v in found] == [("c", "a", 2), ("d", "a", 3)]


def test_unique_against_committed_rows():
    case = RuleCase(ONE, T=[n("a", v="x"), n("b", v="y"), n("c")])
    assert case.messages(T=[n("new", v="x")]) == ["@unique violation on T.v: value 'x' is held by 'a' and 'new'"]
    assert case.messages(T=[n("new", v="z")]) == []


def test_nulls_are_exempt():
    case = RuleCase("node T { v: String? @unique a: I32? b: String? @unique(a, b) }", T=[n("a"), n("b", a=1)])
    assert case.messages(T=[n("c"), n("d"), n("e", a=1), n("f", a=1), n("g", b="x"), n("h", b="x")]) == []


@pytest.mark.parametrize(
    ("write", "count"),
    [
        ({"T": [n("a", v="x")]}, 0),  # unchanged
        ({"T": [n("a", v="y"), n("b", v="x")]}, 0),  # swapped
        ({"T": [n("a", v="z"), n("new", v="x")]}, 0),  # moved to another row
        ({"T": [n("new", v="x")], "deleted": {"T": ["a"]}}, 0),  # deleted
        ({"T": [n("a", v="y")]}, 1),  # taken from another row
        ({"T": [n("a"), n("new", v="x")]}, 0),  # set to null
        ({"T": [n("new", v="x")], "replaces": True}, 0),
        ({"T": [n("new", v="x"), n("old", v="x")], "replaces": True}, 1),
    ],
)
def test_unique_applies_to_the_graph_after_the_write(write, count):
    assert len(RuleCase(ONE, T=[n("a", v="x"), n("b", v="y")]).found(**write)) == count


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (("x|y", "z"), ("x", "y|z"), False),
        (("x:1", "y"), ("x", "1:y"), False),
        (("1:a", "b"), ("1", "a:b"), False),
        (("", "ab"), ("a", "b"), False),
        (("a", ""), ("", "a"), False),
        (("é", "e"), ("é", "e"), True),
        (("a", "b"), ("a", "b"), True),
        (("a", "b"), ("b", "a"), False),
    ],
)
def test_a_composite_unique_group_compares_tuples(first, second, same):
    schema = "node T { a: String b: String @unique(b, a) }"
    one, two = (dict(zip("ab", values, strict=True)) for values in (first, second))
    expected = (
        [f"@unique violation on T.(a, b): value '({first[0]}, {first[1]})' is held by '1' and '2'"] if same else []
    )
    assert RuleCase(schema).messages(T=[n("1", **one), n("2", **two)]) == expected
    assert RuleCase(schema, T=[n("1", **one)]).messages(T=[n("2", **two)]) == expected


@pytest.mark.parametrize(
    ("type_", "one", "two", "same"),
    [
        ("F64", 0.0, -0.0, True),
        ("F32", 0.0, -0.0, True),
        ("F64", 0.1, 0.1, True),
        ("F64", 0.1, math.nextafter(0.1, 1), False),
        ("F32", 16777216.0, 16777217.0, True),
        ("F64", 1e22, 1e23, False),
        ("I64", 2**53, 2**53 + 1, False),
        ("U64", 2**64 - 1, 2**64 - 1, True),
        ("I32", -1, 1, False),
        ("Bool", True, True, True),
        ("Bool", True, False, False),
        ("Date", 1, 1, True),
        ("Date", -1, 1, False),
        ("DateTime", 1, 2, False),
        ("DateTime", 86_400_001, 86_400_001, True),
        ("String", "a", "A", False),
        ("String", "é", "e\u0301", False),
        ("enum(a, b)", "a", "a", True),
    ],
)  # fmt: skip
def test_unique_compares_typed_values(type_, one, two, same):
    schema = f"node T {{ v: {type_} @unique }} node P {{ v: {type_} w: Bool @unique(v, w) }}"
    count = 1 if same else 0
    for case, write in (
        (RuleCase(schema), {"T": [n("1", v=one), n("2", v=two)]}),
        (RuleCase(schema, T=[n("1", v=one)]), {"T": [n("2", v=two)]}),
        (RuleCase(schema, P=[n("1", v=one, w=True)]), {"P": [n("2", v=two, w=True)]}),
        (RuleCase(schema), {"P": [n("1", v=one, w=False), n("2", v=two, w=False)]}),
    ):
        assert len(case.found(**write)) == count
    assert RuleCase(schema).found(P=[n("1", v=one, w=True), n("2", v=two, w=False)]) == []


@pytest.mark.parametrize(
    ("type_", "value", "spelt"),
    [
        ("F64", 0.10, "0.1"),
        ("F32", 3.0, "3"),
        ("Bool", True, "true"),
        ("Date", 19_723, "19723"),
        ("DateTime", 5, "5"),
        ("U64", 7, "7"),
    ],
)
def test_a_message_formats_the_value_like_an_id(type_, value, spelt):
    case = RuleCase(f"node T {{ v: {type_} @unique }}")
    assert case.messages(T=[n("1", v=value), n("2", v=value)]) == [
        f"@unique violation on T.v: value '{spelt}' is held by '1' and '2'"
    ]


@pytest.mark.parametrize(
    ("type_", "one", "two"),
    [
        ("I32", 1, 1),
        ("U64", 2**64 - 1, 2**64 - 1),
        ("F64", 0.0, -0.0),
        ("F32", -0.0, 0.0),
        ("Date", 3, 3),
        ("Bool", True, True),
    ],
)
def test_unique_reads_only_rows_that_may_collide(type_, one, two):
    case = RuleCase(f"node T {{ v: {type_}? @unique w: String? @unique(v, w) }}", T=[n("a", v=one, w="x"), n("b")])
    assert len(case.messages(T=[n("new", v=two, w="x")])) == 2
    assert case.messages(T=[n("new", v=None, w="x")]) == []
    assert case.messages(T=[n("a", v=two, w="x")]) == []
    assert set(case.stored.reads) == {"node:T"}


def test_unique_over_the_ends_of_an_edge():
    case = RuleCase(
        "node T {} edge E: T -> T { d: Date? @unique(src, dst, d) }", T=[n("a"), n("b")], E=[e("1", "a", "b", d=3)]
    )
    assert case.messages(E=[e("2", "a", "b"), e("3", "a", "b"), e("4", "b", "a", d=3), e("5", "a", "b", d=4)]) == []
    assert case.messages(E=[e("2", "a", "b", d=3)]) == [
        "@unique violation on E.(d, dst, src): value '(3, b, a)' is held by '1' and '2'"
    ]


# -- endpoints ---------------------------------------------------------------------------------------

ENDS = "node A {} node B {} edge E: A -> B"


@pytest.mark.parametrize(
    ("write", "messages"),
    [
        ({"E": [e("1", "a", "b")]}, []),
        ({"E": [e("1", "x", "b")]}, ["edge E: src 'x' not found in A"]),
        ({"E": [e("1", "a", "y")]}, ["edge E: dst 'y' not found in B"]),
        ({"E": [e("1", "b", "a")]}, ["edge E: src 'b' not found in A", "edge E: dst 'a' not found in B"]),
        ({"A": [n("x")], "E": [e("1", "x", "b")]}, []),
        ({"A": [n("x")], "B": [n("y")], "E": [e("1", "x", "y"), e("2", "a", "b")]}, []),
        ({"E": [e("1", "a", "b")], "deleted": {"A": ["a"]}}, ["edge E: src 'a' not found in A"]),
        (
            {"E": [e("1", "a", "y"), e("2", "x", "b")]},
            ["edge E: dst 'y' not found in B", "edge E: src 'x' not found in A"],
        ),
    ],
)
def test_new_edges_must_end_at_existing_nodes(write, messages):
    assert RuleCase(ENDS, A=[n("a")], B=[n("b")]).messages(**write) == messages


@pytest.mark.parametrize(
    ("write", "lost"),
    [
        ({"deleted": {"A": ["a"]}}, "src 'a' not found in A"),
        ({"deleted": {"B": ["b"]}}, "dst 'b' not found in B"),
        ({"deleted": {"A": ["a"], "E": ["e"]}}, None),
        ({"deleted": {"A": ["a"]}, "A": [n("z")], "E": [e("e", "z", "b")]}, None),
        ({"deleted": {"A": ["other"]}}, None),
        ({"replaces": True, "A": [n("z")]}, "src 'a' not found in A"),
        ({"replaces": True, "A": [n("z")], "E": [e("f", "z", "b")]}, None),
        ({"replaces": True, "A": [n("a"), n("z")]}, None),
        ({"replaces": True, "A": []}, "src 'a' not found in A"),
    ],
)
def test_remaining_edges_must_keep_their_nodes(write, lost):
    case = RuleCase(ENDS, A=[n("a"), n("other")], B=[n("b")], E=[e("e", "a", "b")])
    found = case.found(**write)
    if lost is None:
        assert found == []
        return
    (violation,) = found
    assert violation.message.startswith(f"edge E: {lost}: it is removed, but edge 'e' still points at it")
    assert (violation.rule, violation.table_key, violation.row_id, violation.position) == (
        "orphan",
        "edge:E",
        "e",
        None,
    )


def test_deleting_the_node_of_a_loop_reports_both_ends():
    case = RuleCase("node A {} edge E: A -> A", A=[n("a")], E=[e("e", "a", "a")])
    assert [v.property for v in case.found(deleted={"A": ["a"]})] == ["src", "dst"]


def test_a_write_without_edges_reads_no_edges():
    case = RuleCase(ENDS, A=[n("a")], E=[e("e", "a", "b")])
    assert case.found(A=[n("a"), n("z")]) == []
    assert case.stored.reads == []


# -- cardinality -------------------------------------------------------------------------------------

CARD = "node A {} edge E: A -> A @card(1..2)"
NODES = [n("a"), n("b"), n("c")]


@pytest.mark.parametrize(
    ("committed", "write", "messages"),
    [
        ([], {"E": [e("1", "a", "b")]}, []),
        ([], {"E": [e("1", "a", "b"), e("2", "a", "c")]}, []),
        (
            [],
            {"E": [e(str(i), "a", "b") for i in range(3)]},
            ["@card violation on edge E: source 'a' has 3 edges (max 2)"],
        ),
        (
            [e("1", "a", "b"), e("2", "a", "b")],
            {"E": [e("3", "a", "c")]},
            ["@card violation on edge E: source 'a' has 3 edges (max 2)"],
        ),
        # A rewritten edge counts once.
        ([e("1", "a", "b"), e("2", "a", "b")], {"E": [e("2", "a", "c")]}, []),
        # One edge moves away while another takes its place.
        ([e("1", "a", "b")], {"E": [e("1", "b", "a")]}, ["@card violation on edge E: source 'a' has 0 edges (min 1)"]),
        ([e("1", "a", "b"), e("2", "a", "c")], {"E": [e("1", "b", "a")]}, []),
        (
            [e("1", "a", "b"), e("2", "a", "b"), e("3", "b", "a")],
            {"E": [e("3", "a", "a")]},
            [
                "@card violation on edge E: source 'a' has 3 edges (max 2)",
                "@card violation on edge E: source 'b' has 0 edges (min 1)",
            ],
        ),
        # Deleted edges.
        ([e("1", "a", "b")], {"deleted": {"E": ["1"]}}, ["@card violation on edge E: source 'a' has 0 edges (min 1)"]),
        ([e("1", "a", "b"), e("2", "a", "b")], {"deleted": {"E": ["1"]}}, []),
        ([e("1", "a", "b")], {"deleted": {"E": ["1"]}, "E": [e("2", "a", "c")]}, []),
        # The source is deleted too.
        ([e("1", "a", "b")], {"deleted": {"E": ["1"], "A": ["a"]}}, []),
        # A node without edges is not checked.
        ([], {"A": [n("new")]}, []),
        # The table is replaced: rows that are absent count as deleted.
        (
            [e("1", "a", "b")],
            {"replaces": True, "E": [e("9", "b", "c")]},
            ["@card violation on edge E: source 'a' has 0 edges (min 1)"],
        ),
        ([e("1", "a", "b"), e("2", "a", "b")], {"replaces": True, "E": [e("9", "a", "c")]}, []),
        ([e("1", "a", "b")], {"replaces": True, "E": [e("9", "b", "c")], "A": [n("b"), n("c")]}, []),
    ],
)
def test_cardinality(committed, write, messages):
    assert RuleCase(CARD, A=NODES, E=committed).messages(**write) == messages


@pytest.mark.parametrize(
    ("committed", "write", "surplus"),
    [
        # Too many edges: the last ones of the write are surplus.
        ([], {"E": [e("1", "a", "b"), e("2", "b", "b"), e("3", "a", "c"), e("4", "a", "a")]}, {"a": (3,)}),
        ([e("1", "a", "b")], {"E": [e(str(i), "a", "b") for i in range(2, 6)]}, {"a": (1, 2, 3)}),
        ([e("1", "a", "b"), e("2", "a", "b")], {"E": [e("3", "a", "c"), e("4", "a", "c")]}, {"a": (0, 1)}),
        # A rewritten edge keeps its place in the count.
        ([e("1", "a", "b"), e("2", "a", "b")], {"E": [e("2", "a", "c"), e("4", "a", "c")]}, {"a": (1,)}),
        # Too few edges because one moved away: no edge of the write is surplus.
        ([e("1", "a", "b")], {"E": [e("5", "b", "c"), e("1", "b", "a")]}, {"a": ()}),
        ([e("1", "a", "b")], {"replaces": True, "E": [e("1", "b", "a")]}, {"a": ()}),
    ],
)
def test_surplus_edges_of_a_source(committed, write, surplus):
    found = RuleCase(CARD, A=NODES, E=committed).found(**write)
    assert {violation.row_id: violation.surplus for violation in found} == surplus


def test_all_edges_are_surplus_below_the_minimum():
    case = RuleCase(
        "node A {} edge E: A -> A @card(3..)", A=NODES, E=[e("1", "a", "b"), e("2", "a", "b"), e("3", "a", "b")]
    )
    found = case.found(E=[e("1", "b", "a"), e("4", "b", "c"), e("5", "c", "c")])
    assert {v.row_id: v.surplus for v in found} == {"a": (), "b": (0, 1), "c": (2,)}


def test_a_range_without_bounds_is_not_a_rule():
    case = RuleCase("node A {} edge E: A -> A @card(0..)", A=NODES)
    assert case.found(E=[e(str(i), "a", "b") for i in range(9)]) == []


# -- order -------------------------------------------------------------------------------------------

ALL = """
node B { k: String @key  n: I32? @range(n, 0..1)  c: String?  @check(c, "x")  m: enum(u, v)? }
node A { w: String? @unique  z: String? @unique  n: I32? @range(n, 0..1) }
edge F: A -> A { m: enum(u, v)? }
edge E: A -> A @card(0..1) { w: I32? @unique }
"""


def test_the_order_of_the_rules():
    case = RuleCase(ALL, A=[n("a"), n("old", w="used")])
    write = {
        "B": [n("1", k="1", m="?"), n("2", k="2", c="?"), n("3", k="3", n=9), n("3", k="3", n=8)],
        "A": [n("1", w="same", z="one"), n("2", w="same", n=7), n("3", w="used", z="one")],
        "F": [e("1", "a", "gone", m="?")],
        "E": [e("1", "a", "a", w=5), e("2", "a", "nobody", w=5)],
    }
    found = [(v.rule, v.table_key, v.row_id) for v in case.found(**write)]
    assert found == [
        ("range", "node:A", "2"),
        ("range", "node:B", "3"),
        ("range", "node:B", "3"),
        ("check", "node:B", "2"),
        ("enum", "node:B", "1"),
        ("enum", "edge:F", "1"),
        ("unique", "node:A", "2"),
        ("unique", "node:A", "3"),
        ("unique", "node:A", "3"),
        ("unique", "node:B", "3"),
        ("unique", "edge:E", "2"),
        ("endpoint", "edge:E", "2"),
        ("cardinality", "edge:E", "a"),
        ("endpoint", "edge:F", "1"),
    ]
    with pytest.raises(ConstraintViolation) as caught:
        check_delta(case.catalog, case.delta(**write))
    assert caught.value.message == "@range violation on A.n: 7 is not in 0..1"
    assert caught.value.code == "range_violation"


def test_a_valid_write_has_no_violations():
    case = RuleCase(ALL)
    assert case.found(A=[n("1")]) == []
    check_delta(case.catalog, case.delta(A=[n("1")]))


# -- the oracle --------------------------------------------------------------------------------------

RANDOM = """
node A { v: I32? @unique  x: String?  y: Bool?  @unique(x, y) }
node B {}
edge E: A -> B @card(1..2) { w: String? @unique(src, w) }
edge L: A -> A
"""


def oracle(case: RuleCase, committed: Mapping[str, Rows], delta: Mapping[str, Any]) -> set[tuple[str, str, str]]:
    """Return (rule, table, row or source) of all violations in the final graph that the write can affect."""
    final: dict[str, dict[str, Mapping[str, Any]]] = {}
    written = {name: {row["id"]: row for row in delta["written"].get(name, ())} for name in case.types}
    for name in case.types:
        kept = {} if delta["replaces"] and name in delta["named"] else {row["id"]: row for row in committed[name]}
        kept = {id_: row for id_, row in kept.items() if id_ not in delta["deleted"].get(name, ())}
        final[name] = {**kept, **written[name]}
    wrong: set[tuple[str, str, str]] = set()
    for name, groups in (("A", (("v",), ("x", "y"))), ("E", (("src", "w"),))):
        for group in groups:
            for id_, row in written[name].items():
                key = tuple(row.get(column) for column in group)
                clash = [o for o, r in final[name].items() if o != id_ and key == tuple(r.get(c) for c in group)]
                if None not in key and clash:
                    wrong.add(("unique", name, "either"))
    for name, ends in (("E", ("A", "B")), ("L", ("A", "A"))):
        for id_, row in final[name].items():
            for end, node in zip(("src", "dst"), ends, strict=True):
                if row[end] not in final[node]:
                    was = row[end] in {one["id"] for one in committed[node]}
                    wrong.add(("endpoint" if id_ in written[name] else "orphan" if was else "dangling", name, id_))
    rewritten = {*written["E"], *delta["deleted"].get("E", ())}
    if delta["replaces"] and "E" in delta["named"]:
        rewritten |= {row["id"] for row in committed["E"]}
    touched = {row["src"] for row in written["E"].values()}
    touched |= {row["src"] for row in committed["E"] if row["id"] in rewritten}
    removed = set(delta["deleted"].get("A", ()))
    if delta["replaces"] and "A" in delta["named"]:
        removed = touched - {*final["A"]}
    for source in touched - removed:
        if not 1 <= sum(row["src"] == source for row in final["E"].values()) <= 2:
            wrong.add(("cardinality", "E", source))
    return wrong


def some_rows(random: Random, name: str, most: int) -> list[dict[str, Any]]:
    ids = random.sample("abcdef", random.randint(0, most))
    rows: list[dict[str, Any]] = []
    for id_ in ids:
        row: dict[str, Any] = {"id": id_}
        if name == "A":
            row |= {
                "v": random.choice((None, 1, 2, 3, 4)),
                "x": random.choice((None, "p", "q")),
                "y": random.choice((None, True, False)),
            }
        if name in ("E", "L"):
            row |= {"src": random.choice("abcd"), "dst": random.choice("abcd")}
        if name == "E":
            row["w"] = random.choice((None, "1", "2"))
        rows.append(row)
    return rows


def test_rules_over_several_rows_agree_with_the_oracle():
    random = Random(4)
    seen: set[str] = set()
    for _ in range(400):
        names = random.sample(("A", "B", "E", "L"), random.randint(1, 4))
        committed = {name: some_rows(random, name, 6) for name in ("A", "B", "E", "L")}
        written = {name: some_rows(random, name, 3) for name in names}
        replaces = random.random() < 0.3
        deleted = {
            name: [id_ for id_ in random.sample("abcdef", 2) if id_ not in {row["id"] for row in written.get(name, ())}]
            for name in (names if not replaces else ())
        }  # fmt: skip
        case = RuleCase(RANDOM, **committed)
        write = {"written": written, "deleted": deleted, "replaces": replaces, "named": set(names)}
        found = case.found(replaces=replaces, deleted=deleted, **written)
        wanted = oracle(case, committed, write)
        got = {(v.rule, v.table_key.partition(":")[2], "either" if v.rule == "unique" else v.row_id) for v in found}
        # The random graph may already have had edges to missing nodes; a write may or may not report those.
        dangling = {("orphan", *rest) for rule, *rest in wanted if rule == "dangling"}
        assert got - dangling == {one for one in wanted if one[0] != "dangling"} - dangling, write
        seen |= {one[0] for one in got}
    assert seen == {"unique", "endpoint", "orphan", "cardinality"}
