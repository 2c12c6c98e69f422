"""`return`, `order` and `limit`: for each rule a query that violates it and the most similar valid query."""

from __future__ import annotations

import pytest

from omnigraph.query.plan.ir import Aggregate, Bm25, ColumnRef, Nearest, Prop, Rrf, SortKey
from support.queries import NO_CODE, diagnostics, mistakes, plan, read, read_plan

MATCH = "$p: Person $p $w:knows $q"
NEAREST = "nearest($p.face, $vector)"
BM25 = 'bm25($p.bio, "x")'
RRF = f"rrf({NEAREST}, {BM25})"

# id: (return, its code, the underlined text, the same without the error)
ITEMS = {
    "T6-unbound": ("$x.name", "T6", "$x", "$p.name"),
    "T6-property": ("$p.nme", "T6", "nme", "$p.name"),
    "T6-edge-property": ("$w.note", "T6", "note", "$w.remark"),
    "T6-id": ("$p.id", "T6", "id", "$p"),
    "T6-in-aggregate": ("count($p.nme)", "T6", "nme", "count($p.name)"),
    "T8-sum-string": ("sum($p.name)", "T8", "$p.name", "sum($p.age)"),
    "T8-sum-bool": ("sum($p.active)", "T8", "$p.active", "sum($p.height)"),
    "T8-sum-date": ("sum($p.born)", "T8", "$p.born", "sum($p.wealth)"),
    "T8-sum-list": ("sum($p.marks)", "T8", "$p.marks", "sum($p.age)"),
    "T8-sum-vector": ("sum($p.face)", "T8", "$p.face", "sum($p.age)"),
    "T8-sum-node": ("sum($p)", "T8", "$p", "count($p)"),
    "T8-avg-string": ("avg($p.name)", "T8", "$p.name", "avg($p.age)"),
    "T8-avg-datetime": ("avg($p.seen)", "T8", "$p.seen", "avg($p.height)"),
    "T8-avg-node": ("avg($p)", "T8", "$p", "count($p)"),
    "T8-median-string": ("median($p.name)", "T8", "$p.name", "median($p.age)"),
    "T8-median-date": ("median($p.born)", "T8", "$p.born", "median($p.height)"),
    "T8-median-list": ("median($p.marks)", "T8", "$p.marks", "median($p.wealth)"),
    "T8-median-node": ("median($p)", "T8", "$p", "count($p)"),
    "T8-min-list": ("min($p.nicknames)", "T8", "$p.nicknames", "min($p.name)"),
    "T8-min-node": ("min($p)", "T8", "$p", "min($p.age)"),
    "T8-max-vector": ("max($p.face)", "T8", "$p.face", "max($p.wealth)"),
    "T8-max-node": ("max($p)", "T8", "$p", "max($p.age)"),
    "T8-sum-rank": (f"sum({BM25})", "T8", BM25, f"count({BM25})"),
    "T25-where": ("count($p where $p.age)", "T25", "$p.age", "count($p where $p.age > 1)"),
    "T25-where-node": ("count($p.age where $p)", "T25", "$p", "count($p.age where $p is not null)"),
    "T7-where": ("sum($p.age where $p.name > 1)", "T7", "$p.name > 1", "sum($p.age where $p.age > 1)"),
    "T9-literal": ("count($p), 1", "T9", "1", "count($p), $p.age"),
    "T9-list": ("count($p), [1]", "T9", "[1]", "count($p), $p.marks"),
    "T9-parameter": ("count($p), $text", "T9", "$text", "count($p), $p"),
    "T9-now": ("count($p), now()", "T9", "now()", "count($p), $p.seen"),
    "T9-rank": (f"count($p), {BM25}", "T9", BM25, "count($p), $p.bio"),
    "T9-text-predicate": ('count($p), search($p.bio, "x")', "T9", 'search($p.bio, "x")', "count($p), $p.bio"),
    "T9-repeated-alias": ("$p.name as n, count($p), n", "T9", "n", "$p.name as n, count($p), $p.name"),
    "T9-before-the-aggregate": ("1, count($p)", "T9", "1", "$p, count($p)"),
    "T15-unbound": ("nearest($x.face, $vector)", "T15", "$x", NEAREST),
    "T15-unknown-property": ("nearest($p.fce, $vector)", "T15", "fce", NEAREST),
    "T15-text-property": ("nearest($p.bio, $vector)", "T15", "$p.bio", NEAREST),
    "T15-list-property": ("nearest($p.marks, $vector)", "T15", "$p.marks", NEAREST),
    "T15-parameter-dimension": ("nearest($p.face, $short)", "T15", "$short", NEAREST),
    "T15-literal-dimension": ("nearest($p.face, [1, 2])", "T15", "[1, 2]", "nearest($p.face, [1, 2, 3])"),
    "T15-literal-of-texts": (
        'nearest($p.face, ["a", "b", "c"])', "T15", '["a", "b", "c"]', "nearest($p.face, [1.5, 2, 3])",
    ),
    "T15-empty-literal": ("nearest($p.face, [])", "T15", "[]", "nearest($p.face, [0, 0, 1])"),
    "T15-number": ("nearest($p.face, 1)", "T15", "1", 'nearest($p.face, "1")'),
    "T15-number-parameter": ("nearest($p.face, $count)", "T15", "$count", "nearest($p.face, $text)"),
    "T15-list-parameter": ("nearest($p.face, $counts)", "T15", "$counts", NEAREST),
    "T15-property": ("nearest($p.face, $q.face)", "T15", "$q.face", NEAREST),
    "T15-date": ("nearest($p.face, now())", "T15", "now()", NEAREST),
    "T20-of-number": ('bm25($p.age, "x")', "T20", "$p.age", BM25),
    "T20-of-node": ('bm25($p, "x")', "T20", "$p", BM25),
    "T20-for-number": ("bm25($p.bio, 1)", "T20", "1", "bm25($p.bio, $text)"),
    "T20-for-property": ("bm25($p.bio, $q.bio)", "T20", "$q.bio", "bm25($p.bio, $maybe)"),
    "T23-bare": ("$w", "T23", "$w", "$w.remark"),
    "T23-counted": ("count($w)", "T23", "$w", "count($w.remark)"),
    "T23-bm25": ('bm25($w.remark, "x")', "T23", "$w.remark", BM25),
    "T23-nearest": ("nearest($w.feel, $vector)", "T23", "$w.feel", NEAREST),
    "T24-property": ("$p.photo", "T24", "$p.photo", "$p"),
    "T24-edge-property": ("$w.scan", "T24", "$w.scan", "$w.remark"),
    "T24-parameter": ("$blob", "T24", "$blob", "$text"),
    "T24-count": ("count($p.photo)", "T24", "$p.photo", "count($p.face)"),
    "T24-min": ("min($p.photo)", "T24", "$p.photo", "min($p.bio)"),
    "T24-under-an-alias": ("$p.photo as b, b", "T24", "$p.photo", "$p.bio as b, b"),
    "no-code-unknown-alias": ("n, $p.name as n", NO_CODE, "n", "$p.name as n, n"),
    "no-code-word": ("name", NO_CODE, "name", "$p.name"),
    "no-code-unbound": ("$x", NO_CODE, "$x", "$q"),
    "no-code-unbound-in-aggregate": ("count($x)", NO_CODE, "$x", "count($q)"),
    "no-code-nested-aggregate": ("sum(count($p))", NO_CODE, "count($p)", "sum($p.age)"),
    "no-code-alias-in-aggregate": ("$p.age as a, sum(a)", NO_CODE, "a", "$p.age as a, sum($p.age)"),
    "no-code-mixed-list": ('["a", 1]', NO_CODE, "1", '["a", "b"]'),
    "T38-mixed-list": ("[$p.age, $p.name]", "T38", "[$p.age, $p.name]", "[$p.age, 1.5]"),
    "T38-mixed-objects": ("[{ a: 1 }, { b: 1 }]", "T38", "[{ a: 1 }, { b: 1 }]", "[{ a: 1 }, { a: 2.5 }]"),
    "T38-field-twice": ("{ a: 1, a: 2 }", "T38", "a", "{ a: 1, b: 2 }"),
    "T38-no-field": ("{}", "T38", "{}", "{ a: 1 }"),
    "T38-signs": ("[$p.wealth, $p.age]", "T38", "[$p.wealth, $p.age]", "[$p.wealth, 1]"),
    "T24-in-an-object": ("{ a: $p.photo }", "T24", "$p.photo", "{ a: $p.name }"),
    "T39-counted": ("count({ a: 1 })", "T39", "{ a: 1 }", "collect({ a: 1 })"),
    "T39-computed": ("length([$p.name])", "T39", "[$p.name]", "length($p.name)"),
    "T39-in-an-object": ("{ a: { b: 1 } is null }", "T39", "{ b: 1 }", "{ a: 1 is null }"),
    "T39-why": ("why()", "T39", "why()", "now()"),
    "T21-rrf-in-an-object": (f"{{ s: {RRF} }}", "T21", f"{{ s: {RRF} }}", f"{{ s: {BM25} }}"),
}  # fmt: skip

# id: (order and limit, its code, the underlined text, the same without the error)
ORDERS = {
    "T6-property": ("order { $p.nme }", "T6", "nme", "order { $p.name }"),
    "T6-unbound": ("order { $x.name }", "T6", "$x", "order { $q.name }"),
    "T17-nearest": (f"order {{ {NEAREST} }}", "T17", NEAREST, f"order {{ {NEAREST} }} limit 1"),
    "T17-nearest-then-property": (
        f"order {{ {NEAREST}, $p.age }}", "T17", NEAREST, f"order {{ {NEAREST}, $p.age }} limit 0",
    ),
    "T18-alias-beside-nearest": (
        f"order {{ {NEAREST}, a }} limit 5", "T18", "a", f"order {{ {NEAREST}, $p.age }} limit 5",
    ),
    "T18-rank-alias-beside-nearest": (
        f"order {{ {NEAREST}, s }} limit 5", "T18", "s", f"order {{ {NEAREST}, $w.since }} limit 5",
    ),
    "T18-alias-of-nearest": ("order { d } limit 5", "T18", "d", f"order {{ {NEAREST} }} limit 5"),
    "T18-alias-of-an-alias-of-nearest": ("order { e } limit 5", "T18", "e", f"order {{ {NEAREST} }} limit 5"),
    "T21-no-limit": (f"order {{ {RRF} }}", "T21", RRF, f"order {{ {RRF} }} limit 5"),
    "T21-arm": (
        f"order {{ rrf({BM25}, $p.age) }} limit 5", "T21", "$p.age", f"order {{ rrf({BM25}, {NEAREST}) }} limit 5",
    ),
    "T21-arm-text-predicate": (
        f'order {{ rrf(search($p.bio, "x"), {BM25}) }} limit 5',
        "T21",
        'search($p.bio, "x")',
        f"order {{ rrf({BM25}, {BM25}) }} limit 5",
    ),
    "T21-nested": (
        f"order {{ rrf({RRF}, {BM25}) }} limit 5", "T21", RRF, f"order {{ rrf({NEAREST}, {BM25}) }} limit 5",
    ),
    "T21-k-0": (f"order {{ rrf({NEAREST}, {BM25}, 0) }} limit 5", "T21", "0", f"order {{ {RRF} }} limit 5"),
    "T21-k-decimal": (
        f"order {{ rrf({NEAREST}, {BM25}, 1.5) }} limit 5",
        "T21",
        "1.5",
        f"order {{ rrf({NEAREST}, {BM25}, 1) }} limit 5",
    ),
    "T21-k-text": (
        f'order {{ rrf({NEAREST}, {BM25}, "60") }} limit 5',
        "T21",
        '"60"',
        f"order {{ rrf({NEAREST}, {BM25}, 60) }} limit 5",
    ),
    "T21-k-property": (
        f"order {{ rrf({NEAREST}, {BM25}, $p.age) }} limit 5",
        "T21",
        "$p.age",
        f"order {{ rrf({NEAREST}, {BM25}, $count) }} limit 5",
    ),
    "T21-two-variables": (
        f'order {{ rrf({NEAREST}, bm25($q.bio, "x")) }} limit 5',
        "T21",
        f'rrf({NEAREST}, bm25($q.bio, "x"))',
        f'order {{ rrf({NEAREST}, bm25($p.name, "x")) }} limit 5',
    ),
    "T15-nearest": (
        "order { nearest($p.face, $short) } limit 5", "T15", "$short", f"order {{ {NEAREST} }} limit 5",
    ),
    "T20-bm25": ('order { bm25($p.age, "x") }', "T20", "$p.age", f"order {{ {BM25} }}"),
    "T23-edge-in-rank": ('order { bm25($w.remark, "x") }', "T23", "$w.remark", "order { $w.remark }"),
    "T24-property": ("order { $p.photo }", "T24", "$p.photo", "order { $p.bio }"),
    "no-code-unknown-alias": ("order { nme }", NO_CODE, "nme", "order { n }"),
    "no-code-node": ("order { $p }", NO_CODE, "$p", "order { $p.name }"),
    "no-code-edge": ("order { $w }", NO_CODE, "$w", "order { $w.since }"),
    "no-code-parameter": ("order { $text }", NO_CODE, "$text", "order { $p.name }"),
    "no-code-literal": ("order { 1 }", NO_CODE, "1", "order { a }"),
    "no-code-list-literal": ("order { [1] }", NO_CODE, "[1]", "order { a }"),
    "no-code-now": ("order { now() }", NO_CODE, "now()", "order { $p.seen }"),
    "no-code-text-predicate": (
        'order { search($p.bio, "x") }', NO_CODE, 'search($p.bio, "x")', f"order {{ {BM25} }}",
    ),
    "no-code-aggregate": ("order { count($p) }", NO_CODE, "count($p)", "order { a }"),
    "no-code-list-property": ("order { $p.marks }", NO_CODE, "$p.marks", "order { $p.age }"),
    "no-code-vector-property": ("order { $p.face }", NO_CODE, "$p.face", f"order {{ {NEAREST} }} limit 1"),
    "no-code-alias-of-a-node": ("order { node }", NO_CODE, "node", "order { n }"),
    "no-code-alias-of-a-list": ("order { list }", NO_CODE, "list", "order { n }"),
    "no-code-bm25-second": (f"order {{ $p.age, {BM25} }}", NO_CODE, BM25, f"order {{ {BM25}, $p.age }}"),
    "no-code-bm25-alias-second": ("order { $p.age, s }", NO_CODE, "s", "order { s, $p.age }"),
    "no-code-nearest-second": (
        f"order {{ $p.age, {NEAREST} }} limit 5", NO_CODE, NEAREST, f"order {{ {NEAREST}, $p.age }} limit 5",
    ),
    "no-code-rrf-second": (
        f"order {{ $p.age, {RRF} }} limit 5", NO_CODE, RRF, f"order {{ {RRF}, $p.age }} limit 5",
    ),
}  # fmt: skip

GIVE = f"$p.name as n, $p.age as a, $p as node, $p.marks as list, {BM25} as s, {NEAREST} as d, d as e"

AGGREGATE_ORDERS = {
    "no-code-not-a-group-key": ("order { $p.age }", NO_CODE, "$p.age", "order { $p.name }"),
    "no-code-property-of-a-grouped-node": ("order { $q.name }", NO_CODE, "$q.name", "order { $p.name }"),
    "no-code-rank": (f"order {{ {BM25} }}", NO_CODE, BM25, "order { total }"),
    "no-code-aggregate": ("order { avg($p.age) }", NO_CODE, "avg($p.age)", "order { count($p) }"),
    "no-code-another-aggregate": (
        "order { sum($p.wealth) desc }",
        NO_CODE,
        "sum($p.wealth)",
        "order { sum($p.age) desc }",
    ),
}


@pytest.mark.parametrize(("bad", "code", "at", "good"), ITEMS.values(), ids=ITEMS)
def test_items(bad, code, at, good):
    assert mistakes(read(MATCH, bad)) == [(code, at)]
    plan(read(MATCH, good))


@pytest.mark.parametrize(("bad", "code", "at", "good"), ORDERS.values(), ids=ORDERS)
def test_order(bad, code, at, good):
    assert mistakes(read(MATCH, GIVE, bad)) == [(code, at)]
    plan(read(MATCH, GIVE, good))


@pytest.mark.parametrize(("bad", "code", "at", "good"), AGGREGATE_ORDERS.values(), ids=AGGREGATE_ORDERS)
def test_order_of_groups(bad, code, at, good):
    give = "$p.name, $q, count($p) as n, sum($p.age) as total"
    assert mistakes(read(MATCH, give, bad)) == [(code, at)]
    plan(read(MATCH, give, good))


# -- rrf in return -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "then",
    ["", "limit 5", "order { $p.name }", f"order {{ {BM25} }}", f"order {{ rrf({NEAREST}, {BM25}, 10) }} limit 5"],
)
def test_t21_rrf_is_returned_only_if_it_is_the_order(then):
    assert mistakes(read(MATCH, f"{RRF} as s", then)) == [("T21", RRF)]


@pytest.mark.parametrize("order", [RRF, "s", f"rrf({NEAREST}, {BM25}, 60)", "t"])
def test_rrf_is_returned_if_it_is_the_order(order):
    give = f"{RRF} as s" if order != "t" else f"{RRF} as s, s as t"
    compiled = read_plan(MATCH, give, f"order {{ {order} }} limit 5")
    assert compiled.order_by == (SortKey(compiled.columns[0].expr, descending=True),)


def test_t21_rrf_through_an_alias_needs_a_limit():
    assert mistakes(read(MATCH, f"{RRF} as s", "order { s }")) == [("T21", "s")]


@pytest.mark.parametrize("function", ["count", "sum", "avg", "median", "min", "max"])
def test_t21_rrf_cannot_be_aggregated(function):
    assert mistakes(read(MATCH, f"{function}({RRF})")) == [("T21", RRF)]


# -- columns -----------------------------------------------------------------------------------------

# id: (item, name of its column, type of its column)
COLUMNS = {
    "property": ("$p.name", "p.name", "String"),
    "nullable-property": ("$p.age", "p.age", "I32?"),
    "edge-property": ("$w.since", "w.since", "Date?"),
    "enum": ("$p.mood", "p.mood", "enum(calm, cross)?"),
    "list": ("$p.marks", "p.marks", "[I32]?"),
    "vector": ("$p.face", "p.face", "Vector(3)?"),
    "node": ("$p", "p", "Person"),
    "parameter": ("$text", "text", "String"),
    "nullable-parameter": ("$maybe", "maybe", "String?"),
    "list-parameter": ("$texts", "texts", "[String]"),
    "vector-parameter": ("$short", "short", "Vector(2)"),
    "string": ('"a"', "literal", "String"),
    "integer": ("1", "literal", "I64"),
    "widest-integer": ("9223372036854775807", "literal", "I64"),
    "beyond-I64": ("9223372036854775808", "literal", "U64"),
    "decimal": ("1.5", "literal", "F64"),
    "bool": ("true", "literal", "Bool"),
    "date": ('date("2020-01-02")', "literal", "Date"),
    "datetime": ('datetime("2020-01-02T03:04:05Z")', "literal", "DateTime"),
    "list-of-integers": ("[1, 2]", "literal", "[I64]"),
    "list-of-decimals": ("[1.5, 2]", "literal", "[F64]"),
    "list-of-both": ("[1, 2.5]", "literal", "[F64]"),
    "list-of-strings": ('["a", "b"]', "literal", "[String]"),
    "list-of-bools": ("[true]", "literal", "[Bool]"),
    "empty-list": ("[]", "literal", "[String]"),
    "now": ("now()", "now", "DateTime"),
    "nearest": ("nearest($p.face, $vector)", "nearest", "F64?"),
    "bm25": (BM25, "bm25", "F64"),
    "search": ('search($p.bio, "x")', "search", "Bool"),
    "match_text": ('match_text($p.bio, "x")', "match_text", "Bool"),
    "fuzzy": ('fuzzy($p.bio, "x", 1)', "fuzzy", "Bool"),
    "count": ("count($p)", "count", "I64"),
    "count-values": ("count($p.age)", "count", "I64"),
    "count-literal": ("count(1)", "count", "I64"),
    "count-vector": ("count($p.face)", "count", "I64"),
    "count-parameter": ("count($text)", "count", "I64"),
    "sum-of-integers": ("sum($p.age)", "sum", "I64?"),
    "min-of-bools": ("min($p.active)", "min", "Bool?"),
    "min-of-dates": ("min($p.born)", "min", "Date?"),
    "max-of-datetimes": ("max($p.seen)", "max", "DateTime?"),
    "max-of-text-predicates": ('max(search($p.bio, "x"))', "max", "Bool?"),
    "sum-of-floats": ("sum($p.height)", "sum", "F64?"),
    "avg": ("avg($p.wealth)", "avg", "F64?"),
    "median-of-integers": ("median($p.age)", "median", "F64?"),
    "median-of-floats": ("median(distinct $p.height)", "median", "F64?"),
    "median-alias": ("median($p.age) as median", "median", "F64?"),
    "min-of-integers": ("min($p.age)", "min", "I32?"),
    "min-of-strings": ("min($p.name)", "min", "String?"),
    "max-of-floats": ("max($p.height)", "max", "F32?"),
    "max-of-enum": ("max($p.mood)", "max", "enum(calm, cross)?"),
    "alias": ("$p.age as years", "years", "I32?"),
    "alias-of-a-node": ("$p as person", "person", "Person"),
    "alias-that-is-a-keyword": ("$p.age as order", "order", "I32?"),
}


@pytest.mark.parametrize(("item", "name", "type_"), COLUMNS.values(), ids=COLUMNS)
def test_column(item, name, type_):
    (column,) = read_plan(MATCH, item).columns
    assert (column.name, str(column.type)) == (name, type_)


def test_columns_are_in_item_order_and_can_share_a_name():
    columns = read_plan(MATCH, "$q.name, $p.age as n, $p.name as n, 1, 2, $q.name").columns
    assert [column.name for column in columns] == ["q.name", "n", "n", "literal", "literal", "q.name"]


def test_a_bare_name_repeats_an_earlier_item():
    columns = read_plan(MATCH, "$p.age as n, $p as who, n, who as again").columns
    assert [(column.name, column.expr) for column in columns[2:]] == [
        ("n", ColumnRef(0, columns[0].type)),
        ("again", ColumnRef(1, columns[1].type)),
    ]


def test_a_bare_name_repeats_the_last_item_of_that_alias():
    assert read_plan(MATCH, "$p.age as n, $p.name as n, n").columns[2].expr == ColumnRef(
        1, read_plan(MATCH, "$p.name").columns[0].type
    )


def test_group_keys_are_properties_and_nodes():
    compiled = read_plan(MATCH, "$p.name, $w.since, $q, count($p), max($p.age)")
    assert compiled.is_aggregate
    assert [isinstance(column.expr, Aggregate) for column in compiled.columns] == [False, False, False, True, True]


# -- sort keys ---------------------------------------------------------------------------------------


def sort_keys(then, give="$p.name as n, $p.age"):
    return read_plan(MATCH, give, then).order_by


def test_properties_are_sorted_ascending_by_default():
    keys = sort_keys("order { $p.age, $p.name asc, $w.since desc }")
    assert [(key.expr.name, key.descending) for key in keys if isinstance(key.expr, Prop)] == [
        ("age", False),
        ("name", False),
        ("since", True),
    ]


def test_an_alias_refers_to_its_column():
    (key,) = sort_keys("order { n desc }")
    assert isinstance(key.expr, ColumnRef)
    assert (key.expr.index, key.descending) == (0, True)


@pytest.mark.parametrize(
    "give", ["1 as n", "$text as n", "now() as n", 'search($p.bio, "x") as n', "$p.age as m, m as n"]
)
def test_rows_can_be_ordered_by_an_alias_of_any_plain_value(give):
    (key,) = sort_keys("order { n }", give)
    assert isinstance(key.expr, ColumnRef)


def test_groups_are_ordered_by_their_columns():
    keys = sort_keys("order { total desc, $p.name, n }", "$p.name, sum($p.age) as total, count($q) as n")
    assert [(key.expr.index, key.descending) for key in keys if isinstance(key.expr, ColumnRef)] == [
        (1, True),
        (0, False),
        (2, False),
    ]


# id: (first sort key, its class, whether it is descending)
RANKS = {
    "nearest": (NEAREST, Nearest, False),
    "nearest-to-a-text": ('nearest($p.face, "x")', Nearest, False),
    "nearest-to-a-literal": ("nearest($p.face, [1, 0, 0.5])", Nearest, False),
    "bm25": (BM25, Bm25, True),
    "bm25-asc": (f"{BM25} asc", Bm25, True),
    "bm25-desc": (f"{BM25} desc", Bm25, True),
    "bm25-alias": ("s", Bm25, True),
    "bm25-alias-asc": ("s asc", Bm25, True),
    "bm25-alias-of-an-alias": ("t", Bm25, True),
    "rrf": (RRF, Rrf, True),
    "rrf-asc": (f"{RRF} asc", Rrf, True),
    "rrf-with-k": (f"rrf({BM25}, {NEAREST}, 10)", Rrf, True),
}


@pytest.mark.parametrize(("key", "kind", "descending"), RANKS.values(), ids=RANKS)
def test_a_ranking_is_best_first_in_either_direction(key, kind, descending):
    (found, then) = sort_keys(f"order {{ {key}, $p.name }} limit 5", f"{BM25} as s, s as t")
    assert isinstance(found.expr, kind)
    assert found.descending is descending
    assert isinstance(then.expr, Prop)


@pytest.mark.parametrize("then", [f"order {{ {BM25} }}", "order { s }"])
def test_bm25_needs_no_limit(then):
    assert read_plan(MATCH, f"{BM25} as s", then).limit is None


def test_k_of_rrf_is_60_by_default():
    (key,) = sort_keys(f"order {{ {RRF} }} limit 5")
    assert isinstance(key.expr, Rrf)
    assert key.expr.k.value == 60


def test_limit_can_be_0():
    assert read_plan(MATCH, "1", "limit 0").limit == 0


# -- one message per error ---------------------------------------------------------------------------

ONCE = {
    "item-and-its-alias": ("$p.nme as n, n, n as m", "order { n, m }"),
    "blob-and-its-alias": ("$p.photo as b", "order { b }"),
    "wrong-aggregate-and-its-neighbours": ("sum($p.name) as s, 1", "order { s }"),
    "wrong-word-beside-an-aggregate": ("count($p) as n, nme", "order { n }"),
    "wrong-predicate-beside-an-aggregate": ('count($p), search($x.bio, "x")', ""),
    "rank-without-limit": (f"{NEAREST} as d", f"order {{ {NEAREST} }}"),
    "rrf-without-limit": (f"{RRF} as s", "order { s }"),
    "bad-rrf-returned-and-ordered-by": (f"rrf({BM25}, $p.age) as s", "order { s } limit 5"),
}


@pytest.mark.parametrize(("give", "then"), ONCE.values(), ids=ONCE)
def test_an_error_is_reported_once(give, then):
    assert len(mistakes(read(MATCH, give, then))) == 1


def test_independent_errors_are_all_reported():
    found = mistakes(
        read(MATCH, "$p.nme, sum($p.name), $x, $p.photo", "order { $p.heigt, 1, nearest($p.bio, $short) }")
    )
    assert found == [
        ("T6", "nme"),
        ("T8", "$p.name"),
        (NO_CODE, "$x"),
        ("T24", "$p.photo"),
        ("T6", "heigt"),
        (NO_CODE, "1"),
        ("T15", "$p.bio"),
    ]


# -- messages ----------------------------------------------------------------------------------------

MESSAGES = {
    "vector-of-texts": ('nearest($p.face, ["a", "b", "c"])', "a vector holds numbers only"),
    "vector-length": ("nearest($p.face, [1, 2])", "'face' has 3 dimensions; the query is a list of 2"),
    "vector-parameter": ("nearest($p.face, $short)", "'face' has 3 dimensions, $short has 2"),
    "vector-query": ("nearest($p.face, 1)", "the query of 'nearest' must be a Vector or a text, not 1 (I64)"),
    "vector-property": ("nearest($p.bio, $vector)", "'nearest' needs a Vector, but $p.bio is String?"),
    "text-property": ('bm25($p.age, "x")', "'bm25' needs a String, but $p.age is I32?"),
    "text-query": ("bm25($p.bio, $q)", "'bm25' looks for a text or a String parameter, not $q (a Person node)"),
    "sum": ("sum($p.name)", "'sum' needs numbers, but $p.name is String"),
    "min": ("min($p.nicknames)", "'min' needs values with an order, but $p.nicknames is [String]?"),
    "whole-node": ("max($p)", "'max' needs a value, not a whole node"),
    "blob": ("$p.photo", "$p.photo is Blob, which a query cannot read as a value"),
    "beside-an-aggregate": ("count($p), $text", "$text cannot be returned beside an aggregate"),
    "mixed-list": ('["a", 1]', "a list of String cannot hold I64"),
    "unbound": ("$x", "'$x' is neither a parameter nor a bound variable"),
}


@pytest.mark.parametrize(("give", "message"), MESSAGES.values(), ids=MESSAGES)
def test_message(give, message):
    (found,) = diagnostics(read(MATCH, give))
    assert found.message == message


# -- hints -------------------------------------------------------------------------------------------

HINTS = {
    "misspelt-property": ("$p.nme", "", "did you mean 'name'?"),
    "misspelt-alias": ("$p.name as title, titel", "", "did you mean 'title'?"),
    "forgotten-variable": ("age", "", "a property is read from a variable: '$p.age'"),
    "forgotten-dollar": ("text", "", "variables are written with a dollar sign: '$text'"),
    "forgotten-variable-in-order": ("1", "order { age }", "a property is read from a variable: '$p.age'"),
    "id": ("$p.id", "", "the id of a node or an edge is 'id($p)'"),
    "aggregate-in-order": ("1", "order { count($p) }", "return it under an alias, 'count($p) as n', and order by that"),
    "limit": ("1", f"order {{ {NEAREST} }}", "add 'limit 10' behind 'order'"),
}


@pytest.mark.parametrize(("give", "then", "hint"), HINTS.values(), ids=HINTS)
def test_hint(give, then, hint):
    (found,) = diagnostics(read(MATCH, give, then))
    assert found.hint == hint
