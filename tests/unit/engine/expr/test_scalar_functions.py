"""Scalar functions on values: nulls, limits of each type, empty texts and lists, positions out of range, leap days."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import InputError
from omnigraph.graph import Graph
from omnigraph.query.scalars import SCALARS
from support.writes import new_graph, node

SCHEMA = """
node P {
    name: String @key
    text: String?
    i: I32?
    big: I64?
    count: U32?
    wide: U64?
    half: F32?
    x: F64?
    flag: Bool?
    day: Date?
    at: DateTime?
    tags: [String]?
    marks: [I64]?
    kind: enum(red, green)?
}
node Out { name: String @key  text: String?  n: I64?  day: Date?  tags: [String]? }
"""
I64_MIN, I64_MAX, U64_MAX = -(2**63), 2**63 - 1, 2**64 - 1
SOME = node(
    "P",
    name="some",
    text="Ünï, cödé,, 😀",
    i=-7,
    big=I64_MIN,
    count=2**32 - 1,
    wide=U64_MAX,
    half=0.1,
    x=-2.5,
    flag=True,
    day="2020-02-29",
    at="2020-02-29T23:59:59.999Z",
    tags=["a", "b", "c"],
    marks=[5],
    kind="red",
)
EMPTY = node("P", name="empty", text="", i=0, x=0.0, tags=[], marks=[], day="0001-01-01", at="9999-12-31T23:59:59.999Z")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return new_graph(tmp_path_factory.mktemp("scalars"), SCHEMA, SOME, EMPTY, node("P", name="null"))


def column(graph: Graph, expr: str, name: str) -> pa.Array:
    text = f'query q() {{ match {{ $p: P {{ name: "{name}" }} }} return {{ {expr} as v }} }}'
    return graph.query(text).to_arrow().column("v").combine_chunks()


def value(graph: Graph, expr: str, name: str = "some") -> Any:
    found = column(graph, expr, name)
    number = {pa.date32(): pa.int32(), pa.date64(): pa.int64()}.get(found.type)
    (given,) = (found.cast(number) if number else found).to_pylist()
    return given


def days(text: str) -> int:
    return (date.fromisoformat(text) - date(1970, 1, 1)).days


def instant(text: str) -> int:
    day, _, time = text.partition("T")
    hour, minute, rest = time.split(":")
    return days(day) * 86_400_000 + (int(hour) * 60 + int(minute)) * 60_000 + round(float(rest) * 1000)


VALUES: list[tuple[str, Any]] = [
    # numbers
    ("abs($p.i)", 7),
    ("abs($p.big)", None),
    ("abs($p.big + 1)", I64_MAX),
    ("abs($p.wide)", U64_MAX),
    ("abs($p.x)", 2.5),
    ("sign($p.x)", -1),
    ("sign(0)", 0),
    ("sign($p.wide)", 1),
    ("floor($p.x)", -3.0),
    ("ceil($p.x)", -2.0),
    ("floor($p.big)", I64_MIN),
    ("ceil($p.wide)", U64_MAX),
    ("ceil(-0.5)", 0.0),
    ("floor(1e300)", 1e300),
    ("round($p.x)", -3.0),
    ("round(2.5)", 3.0),
    ("round(0.49999999999999994)", 0.0),
    ("round(2.675, 2)", 2.67),
    ("round(1.005, 2)", 1.0),
    ("round(0.5)", 1.0),
    ("round(1e300, 5)", 1e300),
    ("round(1.7e308, -308)", None),
    ("round(1234.5, -2)", 1200.0),
    ("round(0.1, 400)", 0.1),
    ("round(9.9, -400)", 0.0),
    ("round(150, -2)", 200),
    ("round(-150, -2)", -200),
    ("round($p.big, -2)", -9223372036854775800),
    ("round($p.big, -19)", None),
    ("round($p.big, -20)", 0),
    ("round($p.wide, 3)", U64_MAX),
    ("round($p.x, $p.i)", 0.0),
    ("sqrt(2.25)", 1.5),
    ("sqrt(-1)", None),
    # text
    ('trim(" \\t\\n x y\u3000")', "x y"),
    ('ltrim(" x ")', "x "),
    ('rtrim(" x ")', " x"),
    ('trim("")', ""),
    ("substring($p.text, 0, 3)", "Ünï"),
    ("substring($p.text, 13)", ""),
    ("substring($p.text, 99, 2)", ""),
    ("substring($p.text, -1)", "😀"),
    ("substring($p.text, -99, 2)", "Ün"),
    ("substring($p.text, 1, 0)", ""),
    ("substring($p.text, 1, -1)", None),
    ("substring($p.text, 1, 4294967296)", "nï, cödé,, 😀"),
    ("substring($p.text, $p.i, 2)", "öd"),
    ('split($p.text, ",")', ["Ünï", " cödé", "", " 😀"]),
    ('split("aé😀", "")', ["a", "é", "😀"]),
    ('split("", ",")', [""]),
    ('split("", "")', [""]),
    ('split("abab", "ab")', ["", "", ""]),
    ('replace($p.text, ",", "")', "Ünï cödé 😀"),
    ('replace("aaa", "aa", "b")', "ba"),
    ('replace("abc", "", "x")', "abc"),
    ("replace($p.text, $p.text, $p.name)", "some"),
    ('reverse("aé😀")', "😀éa"),
    ('lower("ÄÉ")', "äé"),
    ('upper("äé")', "ÄÉ"),
    ("upper($p.kind)", "RED"),
    # dates
    ("year($p.day)", 2020),
    ("quarter($p.day)", 1),
    ("month($p.at)", 2),
    ("week($p.day)", 9),
    ('week(date("2021-01-03"))', 53),
    ('week(date("2018-12-31"))', 1),
    ("weekday($p.day)", 6),
    ("day($p.at)", 29),
    ("day_of_year($p.day)", 60),
    ("hour($p.at)", 23),
    ("minute($p.at)", 59),
    ("second($p.at)", 59),
    ("millisecond($p.at)", 999),
    ('year(date("9999-12-31"))', 9999),
    ('millisecond(datetime("1969-12-31T23:59:59.999Z"))', 999),
    ("date_add($p.day, 1, year)", days("2021-02-28")),
    ("date_add($p.day, 4, years)", days("2024-02-29")),
    ("date_add($p.day, -12, months)", days("2019-02-28")),
    ("date_add($p.day, 1, quarter)", days("2020-05-29")),
    ('date_add(date("2020-01-31"), 1, months)', days("2020-02-29")),
    ("date_add($p.day, 1, weeks)", days("2020-03-07")),
    ("date_add($p.day, $p.i, days)", days("2020-02-22")),
    ("date_add($p.at, 1, millisecond)", instant("2020-03-01T00:00:00.000")),
    ("date_add($p.at, -24, hours)", instant("2020-02-28T23:59:59.999")),
    ("date_add($p.at, 1, months)", instant("2020-03-29T23:59:59.999")),
    ('date_add(date("9999-12-31"), 1, days)', None),
    ("date_add($p.day, 9223372036854775807, years)", None),
    ("date_add($p.day, $p.wide, days)", None),
    ("date_add($p.at, $p.big, milliseconds)", None),
    ('date_diff($p.day, date("2024-02-28"), years)', 3),
    ('date_diff($p.day, date("2024-02-29"), years)', 4),
    ('date_diff($p.day, date("2021-02-28"), months)', 12),
    ('date_diff(date("2024-02-28"), $p.day, years)', -3),
    ('date_diff($p.day, date("2020-03-01"), days)', 1),
    ('date_diff($p.day, date("2020-03-06"), weeks)', 0),
    ('date_diff(date("0001-01-01"), date("9999-12-31"), days)', 3652058),
    ('date_diff($p.at, datetime("2020-03-01T00:00:00Z"), seconds)', 0),
    ('date_diff($p.at, datetime("2020-03-01T00:00:00Z"), milliseconds)', 1),
    ('date_diff($p.at, datetime("2020-03-29T23:59:59.998Z"), months)', 0),
    ("date_trunc($p.day, month)", days("2020-02-01")),
    ("date_trunc($p.day, week)", days("2020-02-24")),
    ("date_trunc($p.day, quarter)", days("2020-01-01")),
    ("date_trunc($p.at, years)", instant("2020-01-01T00:00:00")),
    ("date_trunc($p.at, day)", instant("2020-02-29T00:00:00")),
    ("date_trunc($p.at, minute)", instant("2020-02-29T23:59:00")),
    # lists
    ("length($p.tags)", 3),
    ("head($p.tags)", "a"),
    ("last($p.marks)", 5),
    ("item($p.tags, 1)", "b"),
    ("item($p.tags, -1)", "c"),
    ("item($p.tags, 3)", None),
    ("item($p.tags, -4)", None),
    ("item($p.tags, $p.wide)", None),
    ("slice($p.tags, 1)", ["b", "c"]),
    ("slice($p.tags, -2, 1)", ["b"]),
    ("slice($p.tags, 9)", []),
    ("slice($p.tags, 0, -1)", None),
    ("slice($p.tags, -9, 2)", ["a", "b"]),
    ('concat($p.tags, ["x"], $p.tags)', ["a", "b", "c", "x", "a", "b", "c"]),
    ("concat($p.marks, [0.5])", [5.0, 0.5]),
    ('concat($p.name, "-", $p.kind)', "some-red"),
    ('item(split($p.text, ", "), 1)', "cödé,"),
    # conversions
    ("to_string($p.i)", "-7"),
    ("to_string($p.wide)", str(U64_MAX)),
    ("to_string($p.half)", "0.1"),
    ("to_string(1e21)", "1000000000000000000000"),
    ("to_string($p.flag)", "true"),
    ("to_string($p.day)", "2020-02-29"),
    ("to_string($p.at)", "2020-02-29T23:59:59.999Z"),
    ("to_string($p.kind)", "red"),
    ('to_integer(" -12 ")', -12),
    ('to_integer("9223372036854775807")', I64_MAX),
    ('to_integer("9223372036854775808")', None),
    ('to_integer("1.0")', None),
    ('to_integer("")', None),
    (f'to_integer("{"9" * 5000}")', None),
    ("to_integer($p.x)", -2),
    ("to_integer($p.wide)", None),
    ("to_integer(1e300)", None),
    ('to_float("1e3")', 1000.0),
    ('to_float(".5")', 0.5),
    ('to_float("1e999")', None),
    ('to_float("nan")', None),
    ('to_float("٣")', None),
    ("to_float($p.big)", -(2.0**63)),
    ("to_date($p.at)", days("2020-02-29")),
    ('to_date("2020-02-30")', None),
    ('to_date(datetime("1969-12-31T23:59:59.999Z"))', days("1969-12-31")),
    ("to_datetime($p.day)", instant("2020-02-29T00:00:00")),
    ('to_datetime("2020-02-29T01:00:00+01:00")', instant("2020-02-29T00:00:00")),
    ('to_datetime("soon")', None),
    ("coalesce(null, $p.i, 3)", -7),
]


@pytest.mark.parametrize(("expr", "expected"), VALUES, ids=[expr[:60] for expr, _ in VALUES])
def test_value(graph, expr, expected):
    found = value(graph, expr)
    assert found == expected
    assert type(found) is type(expected)


EMPTIES: list[tuple[str, Any]] = [
    ("substring($p.text, 0, 5)", ""),
    ("substring($p.text, -1)", ""),
    ("reverse($p.text)", ""),
    ("head($p.tags)", None),
    ("last($p.tags)", None),
    ("slice($p.tags, 0)", []),
    ("concat($p.tags, $p.tags)", []),
    ("year($p.day)", 1),
    ("weekday($p.day)", 1),
    ("date_trunc($p.day, week)", days("0001-01-01")),
    ("date_add($p.day, -1, day)", None),
    ("date_add($p.day, -1, month)", None),
    ("date_add($p.at, 1, milliseconds)", None),
    ("year($p.at)", 9999),
]


@pytest.mark.parametrize(("expr", "expected"), EMPTIES, ids=[expr for expr, _ in EMPTIES])
def test_value_of_empty_and_extreme_arguments(graph, expr, expected):
    assert value(graph, expr, "empty") == expected


ARGUMENTS = {
    "a String": "$p.text", "an integer": "$p.i", "a number": "$p.x", "a list": "$p.tags", "a DateTime": "$p.at",
    "a String or a list": "$p.tags", "a Date or a DateTime": "$p.day", "a unit of time": "days", "a value": "$p.i",
    "a String, a number, a Bool, a Date or a DateTime": "$p.flag", "a number or a String": "$p.text",
    "a Date, a DateTime or a String": "$p.at",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in SCALARS if name != "coalesce"])
def test_null_argument_gives_null(graph, name):
    scalar = SCALARS[name]
    for count in range(scalar.fewest, min(scalar.most, 3) + 1):
        given = [ARGUMENTS[scalar.kind(place).words] for place in range(count)]
        null = value(graph, f"{name}({', '.join(given)})", "null")
        assert null is None
        assert str(column(graph, f"{name}({', '.join(given)})", "null").type) == str(
            column(graph, f"{name}({', '.join(given)})", "some").type
        )
        for place in range(1, count):
            if given[place].startswith("$"):  # one null argument is sufficient
                mixed = [*given[:place], given[place].replace("$p", "$q"), *given[place + 1 :]]
                text = 'match { $p: P { name: "some" } $q: P { name: "null" } }'
                asked = f"query q() {{ {text} return {{ {name}({', '.join(mixed)}) as v }} }}"
                assert graph.query(asked).to_rows() == [{"v": None}]


CASES: list[tuple[str, Any]] = [
    ('case when $p.i < 0 then "below" when $p.i = 0 then "zero" else "above" end', ["zero", "above", "below"]),
    ("case $p.name when \"some\" then 1 when 'x' then 2 end".replace("'", '"'), [None, None, 1]),
    ("case when $p.i < 0 then 1 else 0.5 end", [0.5, 0.5, 1.0]),
    ("case when $p.i < 0 then null else $p.tags end", [[], None, None]),
    ("case when true then case when $p.flag then $p.at end end is null", [True, True, False]),
    ("case $p.flag when true then $p.wide else 3 end", [3, 3, U64_MAX]),
    ("case when $p.flag then $p.marks else [] end", [[], [], [5]]),
    ("concat([], coalesce($p.marks, []), $p.marks)", [[], None, [5, 5]]),
    ("case when $p.i = 0 then $p.day else to_date($p.at) end is null", [False, True, False]),
]


@pytest.mark.parametrize(("expr", "expected"), CASES, ids=[expr[:50] for expr, _ in CASES])
def test_case(graph, expr, expected):
    found = graph.query(f"query q() {{ match {{ $p: P }} return {{ {expr} as v }} order {{ $p.name }} }}").to_arrow()
    assert found.column("v").to_pylist() == expected


def test_functions_are_allowed_in_every_expression(graph):
    text = """query q($from: I64) {
        match {
            $p: P
            substring($p.name, $from) != "l"
            length(split(coalesce($p.text, ""), ",")) < 9
            not { $q: P year($q.day) > year($p.day) + 5000 }
        }
        return { substring($p.name, 0, 1) as letter, count($p) as n, max(year($p.day)) as y, sum(abs($p.i)) as s }
        having { length(letter) = 1 and round(n + 0.5) >= 1 }
        order { case letter when "s" then 0 else 1 end, letter }
    }"""
    found = graph.query(text, params={"from": 1}).to_rows()
    assert found == [{"letter": "s", "n": 1, "y": 2020, "s": 7}, {"letter": "e", "n": 1, "y": 1, "s": 0},
                     {"letter": "n", "n": 1, "y": None, "s": None}]  # fmt: skip


def test_functions_in_mutations(tmp_path):
    graph = new_graph(tmp_path, SCHEMA, node("Out", name=" a ", text="x,y", n=4, day="2024-01-31", tags=["p"]))
    graph.mutate(
        """query q($add: I64) {
            update Out set {
                text: case when n > 3 then upper(text) else text end,
                n: abs(n - 10) + $add,
                day: date_add(day, 1, months),
                tags: concat(tags, split(text, ","))
            } where trim(name) = "a" and year(day) = 2024
        }""",
        params={"add": 1},
    )
    (row,) = graph.query("query q() { match { $o: Out } return { $o } }").to_rows()
    assert row["o"] == {
        "id": " a ", "name": " a ", "text": "X,Y", "n": 7, "day": "2024-02-29", "tags": ["p", "x", "y"],
    }  # fmt: skip


STORED = {
    "n: abs(n)": "'abs' has no result for some row: a number beyond 64 bits",
    "n: to_integer(text)": "'to_integer' has no result for some row: no integer of 64 bits",
    "day: date_add(day, 9999, years)": "'date_add' has no result for some row: a date outside the years 1 to 9999",
    'tags: slice(tags, 0, length("") - 1)': "'slice' has no result for some row: a length below 0",
    "text: item(tags, 5)": "'item' has no result for some row: a position outside the list",
}


@pytest.mark.parametrize(("assign", "message"), STORED.items(), ids=STORED)
def test_stored_value_without_a_result_is_an_error(tmp_path, assign, message):
    graph = new_graph(tmp_path, SCHEMA, node("Out", name="a", text="x", n=I64_MIN, day="2024-01-31", tags=["p"]))
    with pytest.raises(InputError) as caught:
        graph.mutate(f'query q() {{ update Out set {{ {assign} }} where name = "a" }}')
    assert (caught.value.code, caught.value.message) == ("no_result", message)


def test_branch_of_case_that_is_not_taken_is_not_computed(tmp_path):
    graph = new_graph(tmp_path, SCHEMA, node("Out", name="a", n=0), node("Out", name="b", n=4))
    graph.mutate('query q() { update Out set { n: case when n = 0 then -1 else 8 % n end } where name != "" }')
    rows = graph.query("query q() { match { $o: Out } return { $o.n } order { $o.name } }").to_rows()
    assert rows == [{"o.n": -1}, {"o.n": 0}]
