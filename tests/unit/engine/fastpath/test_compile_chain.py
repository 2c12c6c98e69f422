"""A compiled chain returns the same result as the executor, in every form."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.engine.exec.context import Limits
from omnigraph.engine.expr.evaluator import Evaluator
from omnigraph.engine.fastpath.union_chain import UnionChain
from omnigraph.engine.plan.prepared_query import prepare
from omnigraph.engine.result.result import Result
from omnigraph.errors import Cancelled, InputError, LimitReached
from omnigraph.graph import Graph
from omnigraph.operations.read import read
from omnigraph.operations.requests import QueryText, ReadRequest
from omnigraph.query.compile import compile_query
from omnigraph.query.plan.ir import QueryIR
from support.writes import edge, new_graph, node

SCHEMA = """
node P { name: String @key  n: I64?  big: U64?  x: F64?  yes: Bool?  small: F32?  on: Date?  age: I32 }
edge Knows: P -> P { w: F64? }
edge Likes: P -> P
edge Has: P -> N
node N { number: I64 @key  text: String? }
"""
COLUMNS = "$p.name, $p.n, $p.big, $p.x, $p.yes as yes, $p.yes as yes"


@pytest.fixture
def graph(tmp_path):
    return new_graph(
        tmp_path,
        SCHEMA,
        node("P", name="full", n=-5, big=2**64 - 1, x=0.5, yes=True, small=0.25, on="2024-02-29", age=30),
        node("P", name="bare", age=7),
        node("N", number=7, text="seven"),
        node("N", number=8),
        *(edge("Knows", *ends) for ends in (("full", "bare"), ("full", "bare"), ("full", "full"), ("bare", "full"))),
        *(edge("Has", "full", number) for number in ("7", "8")),
    )


def query(columns: str, then: str = "") -> str:
    return f"query q($k: String?) {{ match {{ $p: P {{ name: $k }} }} return {{ {columns} }} {then} }}"


def is_chain(graph: Graph, text: str) -> bool:
    catalog = graph.catalog()
    plan = compile_query(catalog, text)
    assert isinstance(plan, QueryIR)
    return prepare(plan, catalog).chain is not None


def by_pipeline(graph: Graph, text: str, params: dict[str, object] | None) -> Result:
    request = ReadRequest(QueryText(text, params=params), graph.branch, executor="pipeline")
    result, executor, _ = read(graph._context, graph.snapshot(), request)
    assert executor == "pipeline"
    return result


@pytest.mark.parametrize("key", ["full", "bare", "nobody", "", None])
def test_properties_of_one_node(graph, key):
    fast = graph.query(query(COLUMNS), params={"k": key})
    slow = by_pipeline(graph, query(COLUMNS), {"k": key})
    assert is_chain(graph, query(COLUMNS))
    assert fast.columns == slow.columns == ["p.name", "p.n", "p.big", "p.x", "yes", "yes"]
    assert fast.to_pylist() == slow.to_pylist()
    assert fast.to_arrow().equals(slow.to_arrow())
    for form in ("to_rows", "to_json", "_repr_html_"):
        again = graph.query(query(COLUMNS), params={"k": key})
        assert getattr(again, form)() == getattr(slow, form)()
    again = graph.query(query(COLUMNS), params={"k": key})
    assert (len(again), list(again), pa.table(again)) == (len(slow), list(slow), pa.table(slow))


@pytest.mark.parametrize(
    ("columns", "then"),
    [("$p.on", ""), ("$p.small", ""), ("$p", ""), ("$k", ""), ("count($p)", ""), ("$p.n", "order { $p.n }")],
)
def test_other_columns_of_one_node(graph, columns, then):
    assert is_chain(graph, query(columns, then))
    fast, slow = both(graph, query(columns, then), {"k": "full"})
    assert fast.to_arrow().equals(slow.to_arrow())
    assert len(fast) == 1


def test_limit_zero_returns_no_rows(graph):
    assert graph.query(query("$p.n", "limit 0"), params={"k": "full"}).to_pylist() == []
    assert graph.query(query("count($p) as c", "limit 0"), params={"k": "full"}).to_pylist() == []
    assert graph.query(query("$p.n", "limit 1"), params={"k": "full"}).to_pylist() == [{"p.n": -5}]


@pytest.mark.parametrize(("number", "found"), [("7", 1), ("9", 0), ("7.0", 1), ("7.5", 0)])
def test_numeric_key(graph, number, found):
    text = f"query q() {{ match {{ $p: N {{ number: {number} }} }} return {{ $p.text }} }}"
    assert len(graph.query(text)) == found


@pytest.mark.parametrize("id_", ["full", "nobody"])
def test_lookup_by_id_equals_lookup_by_key(graph, id_):
    text = (
        f'query q() {{ match {{ $p: P id($p) = "{id_}" $p knows $q }} return {{ $q.name, $p.n }} order {{ $q.name }} }}'
    )
    assert is_chain(graph, text)
    fast, slow = both(graph, text)
    assert fast.to_pylist() == slow.to_pylist()
    assert len(fast) == (2 if id_ == "full" else 0)


# -- hops --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["fresh", "changed"])
def crowd(tmp_path_factory, request):
    """Many nodes with mutual edges and loops; loaded in one commit, or in several that also delete."""
    random = Random(5)
    people = [
        node("P", name=f"p{at}", age=at % 9, **({"n": at % 4, "x": at / 8} if at % 3 else {})) for at in range(40)
    ]
    pairs = [(random.choice(("Knows", "Likes")), random.randrange(40), random.randrange(40)) for _ in range(240)]
    edges = [
        edge(kind, f"p{a}", f"p{b}", **({"w": (a + b) / 7} if kind == "Knows" and a % 5 else {}))
        for kind, a, b in pairs
    ]
    things = [node("N", number=at, text=f"t{at}") for at in range(5)]
    owned = [edge("Has", f"p{at}", str(at % 5)) for at in range(0, 40, 2)]
    folder = tmp_path_factory.mktemp("crowd")
    if request.param == "fresh":
        return new_graph(folder, SCHEMA, *people, *things, *edges, *owned)
    graph = new_graph(folder, SCHEMA, *people, *things, *edges[:200], *owned)
    graph.query('query q() { match { $p: P { name: "p1" } $p knows $q } return { count($q) as c } }')
    graph.mutate('query q() { delete Knows where from = "p3" }')
    graph.load(edges[200:], mode="append")
    graph.mutate('query q() { update P set { age: 5 } where name = "p7" }')
    graph.mutate('query q() { delete P where name = "p11" }')
    return graph


def both(graph: Graph, text: str, params: dict[str, object] | None = None) -> tuple[Result, Result]:
    return graph.query(text, params=params), by_pipeline(graph, text, params)


MATCHES = [
    "$p knows $q",
    "$q knows $p",
    "$p <knows> $q",
    "$p knows|likes $q",
    "$p knows $q $q.age > 3",
    "$p knows $q 3.5 > $q.age $q.n != 2 $q.x >= $x",
    "$p knows $q $q.n is not null $q.name != $p.name",
    "$p.age < 6 $p knows $q",
    "$p knows{1,2} $q",
    "$p knows{2,3} $q $q.age > 3",
    "$q knows{1,2} $p",
    "$p knows $a $a knows $q",
    "$p knows $a $q knows $a $a.age = 2",
    "$p knows $a $a knows{1,2} $q",
    "$p knows $a $a knows $q $q.age > $a.age",
    "$p knows $a $p likes $q",
    "$p knows $a $a knows $q $p likes $q",
    "$p knows $a $a knows $q $q likes $p",
    "$p knows $a $a knows $q not { $p knows $q }",
    "$p knows $q not { $q knows $p }",
    "$p knows $q not { $q likes $_ }",
    "$p knows $q not { $q likes $r $r.age > 4 }",
    "$p knows $q not { $q likes $r not { $r knows $p } }",
    "$p knows $q not { $p likes $q $q.age > 2 }",
    "$p knows $q not { $q knows{1,2} $r $r.n = 1 }",
    "$p knows $q not { $q $e:knows $r $e.w > 5 }",
    "$p $e:knows $q",
    "$p $e:knows $q $e.w > 3",
    "$p $e:knows $a $a knows $q $e.w < 8 $q.age != 4",
    "$p knows $a $a $e:knows $q $e.w > 2 not { $q likes $p }",
    "$p knows $q $q $e:likes $p",
    "$p knows $q ($q.age > 6 or $q.n = 1) $q.yes is null",
    '$p knows $q $q.name starts_with "p1"',
    '$q: P { name: "p2" } $p.age != 1',
    '$q: P { name: "p2" } $q.age > 100 $p knows $a $a knows $q',
    '$p knows $a $q: P { name: "p5" } $a knows $q',
    '$q: P { name: "none" } $p knows $a $a knows $q',
    '$p knows $q not { $r: P { name: "p2" } $q knows $r }',
    '$p knows $q $q.name = "p5"',
    '$p knows $q $q likes $a $a.name = "p8" $a.age > 2',
    '$p knows $q $q.name = "none"',
    "$p knows $q $q.name = $k",
    "$p knows $q $q likes $a $p likes $b",
    "$p knows $q not { $q likes $r $r knows $s }",
    "$p knows $a $p likes $b $b knows $q",
    "$p knows $a $p likes $b $c knows $p $q knows $p $q.age > 2",
    "$p likes $a $p knows $q $a.age > 3 $p knows $b",
]
SHOWN = [
    ("$q.name, $q.n", ""),
    ("$p.name, $q.age + 1 as next, $q", ""),
    ("$q.name", "order { $q.age desc } limit 3"),
    ("$q.name, $p.age", "order { $q.n, $p.age } skip 1 limit $some"),
    ("$q.name", "limit 2"),
    ("count($q) as c", ""),
    ("count($p) as a, count($q) as b", ""),
    ("count(distinct $q) as c", ""),
    ("count(distinct $q) as a, count(distinct $q) as b", ""),
    ("count(distinct $p) as c", ""),
    ("count(distinct $q) as a, min($q.n) as b", ""),
    ("count(distinct $q) as c, sum($q.n) as s, avg($q.x) as m, min($q.name) as first, max($q.n) as most", ""),
    ("$q.age as age, count($q) as c", "order { c desc, age } limit 2"),
    ("distinct $q.age, $p.name", ""),
    ("distinct $q.age as age", "order { age desc }"),
    ("$q.age as age, count($p) as c", "having { c > 1 }"),
]


@pytest.mark.parametrize("match", MATCHES)
def test_hops_return_the_rows_of_the_executor(crowd, match):
    for columns, then in SHOWN:
        shown = f"return {{ {columns} }}"
        if columns.startswith("distinct"):
            shown = f"return distinct {{ {columns.removeprefix('distinct ')} }}"
        text = (
            f"query q($k: String?, $x: F64?, $some: I64?) {{ match {{ $p: P {{ name: $k }} {match} }} {shown} {then} }}"
        )
        assert is_chain(crowd, text)
        for key in ("p0", "p3", "p7", "nobody"):
            fast, slow = both(crowd, text, {"k": key, "x": 0.5, "some": 2})
            assert fast.to_arrow().schema == slow.to_arrow().schema
            given, expected = fast.to_pylist(), slow.to_pylist()
            if "limit" in then and "order" not in then:
                given, expected = [len(given)], [len(expected)]
            if "order" not in then:
                given, expected = sorted(given, key=repr), sorted(expected, key=repr)
            assert given == expected, (text, key)


def test_hops_to_another_type(crowd):
    text = 'query q() { match { $p: P { name: "p4" } $p has $t } return { $t.text, $t.number, $p.age } }'
    assert is_chain(crowd, text)
    fast, slow = both(crowd, text)
    assert fast.to_pylist() == slow.to_pylist() == [{"t.text": "t4", "t.number": 4, "p.age": 4}]


@pytest.mark.parametrize(
    "match",
    [
        "$p knows $q optional { $q likes $r }",
        "$p knows $q $r: N",
        "$p knows{1,2} $q $q knows{1,2} $p",
        "$p knows $q not { $r: N $r.number = $q.n }",
    ],
)
def test_unsupported_plans_run_in_the_executor(crowd, match):
    text = f'query q() {{ match {{ $p: P {{ name: "p1" }} {match} }} return {{ count($q) as c }} }}'
    assert not is_chain(crowd, text)
    assert len(crowd.query(text)) == 1


@pytest.mark.parametrize("columns", ["$q.name", "count($q) as c", "$q.age, count($a) as c"])
def test_chain_with_too_many_rows_runs_in_the_executor(crowd, tune, columns):
    text = f'query q() {{ match {{ $p: P {{ name: "p2" }} $p knows $a $a knows $q }} return {{ {columns} }} }}'
    expected = sorted(crowd.query(text).to_pylist(), key=repr)
    tune(chain_rows_max=1)
    assert sorted(crowd.query(text).to_pylist(), key=repr) == expected


def test_larger_results_are_arrow(crowd, tune):
    text = 'query q() { match { $p: P { name: "p2" } $p knows $q } return { $q.name, $p.age } }'
    expected = crowd.query(text).to_arrow()
    tune(python_result_rows_max=1)
    assert crowd.query(text).to_arrow().equals(expected)


# -- limits ------------------------------------------------------------------------------------------


def test_cancelled_read_does_not_start(crowd):
    stopped = Cancellation()
    stopped.cancel()
    with pytest.raises(Cancelled):
        crowd.query(query("$p.n"), params={"k": "p1"}, cancel=stopped)


def test_row_limit_applies(crowd):
    text = 'query q() { match { $p: P { name: "p2" } $p knows $q } return { count($q) as c } }'
    with pytest.raises(LimitReached):
        crowd.query(text.replace("count($q) as c", "$q.name"), limits=Limits(rows_max=1))
    assert crowd.query(text, limits=Limits(timeout_s=60)).to_pylist() == crowd.query(text).to_pylist()


def test_byte_limit_applies(crowd):
    text = 'query q($s: String) { match { $p: P { name: "p2" } $p knows $q } return { COLUMN as r } }'
    with pytest.raises(LimitReached) as caught:
        crowd.query(text.replace("COLUMN", "$q.name"), {"s": ""}, limits=Limits(bytes_max=8))
    assert (caught.value.resource, caught.value.limit) == ("bytes", 8)
    assert caught.value.actual is not None
    assert caught.value.actual > 8
    wide, limits = text.replace("COLUMN", "concat($q.name, $s, $s)"), Limits(bytes_max=9 * 1024**2)
    assert len(crowd.query(wide, {"s": "x"}, limits=limits))
    with pytest.raises(LimitReached, match="computed column") as caught:
        crowd.query(wide, {"s": "x" * 3_000_000}, limits=limits)
    assert (caught.value.resource, caught.value.limit) == ("bytes", 9 * 1024**2)


def test_negative_limit_is_refused(crowd):
    text = "query q($k: String, $some: I64) { match { $p: P { name: $k } } return { $p.n } limit $some }"
    with pytest.raises(InputError, match="must not be negative"):
        crowd.query(text, params={"k": "p1", "some": -1})


def test_key_of_a_far_end_is_compared_by_its_row_number(crowd, monkeypatch):
    text = 'query q() { match { $p: P { name: "p2" } $p knows $q $q.name = "p5" } return { $q.age } }'
    expected = by_pipeline(crowd, text, None).to_pylist()
    monkeypatch.setattr(Evaluator, "mask", None)
    assert crowd.query(text).to_pylist() == expected
    assert by_pipeline(crowd, text, None).to_pylist() == expected


# -- starts of several types -------------------------------------------------------------------------

LIBRARY = """
interface Work { code: String @key  title: String  on: Date?  at: DateTime?  pages: I32? }
node Book implements Work {}
node Film implements Work {}
node Person { name: String @key  born: Date?  seen: DateTime? }
edge BookBy: Book -> Person
edge FilmBy: Film -> Person
edge Quotes: Book -> Film { page: I32 }
edge Cites: Book -> Book
edge Likes: Person -> Book
edge Wants: Person -> Film
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    dates = {"on": "1999-12-31", "at": "2001-02-03T04:05:06.789Z"}
    return new_graph(
        tmp_path_factory.mktemp("library"),
        LIBRARY,
        node("Person", name="ana", born="1980-05-06", seen="2020-01-01T10:20:30.400Z"),
        node("Person", name="bo"),
        *(node("Book", code=f"b{n}", title=f"B{n}", pages=n, **(dates if n % 2 else {})) for n in range(4)),
        *(node("Film", code=f"f{n}", title=f"F{n}", **dates) for n in range(3)),
        node("Book", code="both", title="a book"),
        node("Film", code="both", title="a film"),
        *(edge("BookBy", f"b{n}", name) for n, name in ((0, "ana"), (1, "ana"), (1, "bo"), (2, "bo"))),
        *(edge("FilmBy", f"f{n}", name) for n, name in ((0, "bo"), (1, "ana"))),
        edge("BookBy", "both", "ana"),
        edge("FilmBy", "both", "bo"),
        *(edge("Quotes", "b1", f"f{n}", page=n) for n in range(2)),
        *(edge("Cites", "b1", f"b{n}") for n in (0, 2)),
        *(edge("Likes", "ana", f"b{n}") for n in (1, 2)),
        *(edge("Wants", "bo", f"f{n}") for n in (0, 1)),
    )


STARTS = ["b0", "b1", "b2", "b3", "f0", "f1", "f2", "both", "none", "B1"]
NARROWED = [
    ("$w: Work { code: $k }", "$w.title, $w.on, $w.at, $w.pages"),
    ("$w: Work { code: $k }", "coalesce($w.pages, 0) + 1 as pages, upper($w.title) as title"),
    ("$w: Work { code: $k } $w.pages > 1", "$w.title"),
    ("$w: Book|Film { code: $k } $w bookBy|filmBy $p", "$p.name, $p.born, $p.seen, $w.at"),
    ("$w: Work { code: $k } $w bookBy|filmBy $p $p.born is not null", "$p.name"),
    ("$w: Work { code: $k } $p likes|wants $w", "$p.name, $w.title"),
    ("$w: Work { code: $k } $w bookBy|filmBy $p $p likes $b", "$p.name, $b.title, $b.at"),
    ("$w: Work { code: $k } $w bookBy|filmBy $p", "count($p.name) as n"),
    ("$w: Work { code: $k } $w bookBy|filmBy $p $p likes|wants $w", "$p.name"),
]
NOT_NARROWED = [
    ("$w: Work { code: $k } $w bookBy|filmBy $p $p likes|wants $o", "$p.name, $o.title"),
    ("$w: Work { code: $k }", "$w"),
    ("$w: Work { code: $k }", "type($w) as type, $w.title"),
    ("$w: Work { code: $k } $w cites|quotes $o", "$o.title"),
    ("$w: Work { code: $k } not { $w bookBy|filmBy $p }", "$w.title"),
    ("$w: Work { title: $k }", "$w.code"),
]


def is_narrowed(graph: Graph, text: str) -> bool:
    plan = compile_query(graph.catalog(), text)
    assert isinstance(plan, QueryIR)
    return isinstance(prepare(plan, graph.catalog()).chain, UnionChain)


@pytest.mark.parametrize(
    ("match", "columns", "narrowed"),
    [(*one, True) for one in NARROWED] + [(*one, False) for one in NOT_NARROWED],
)
def test_a_start_of_several_types_is_narrowed_to_its_type(library, match, columns, narrowed):
    text = f"query q($k: String) {{ match {{ {match} }} return {{ {columns} }} }}"
    assert is_narrowed(library, text) == narrowed
    found = 0
    for key in STARTS:
        fast = library.query(text, params={"k": key})
        slow = by_pipeline(library, text, {"k": key})
        assert fast.columns == slow.columns
        assert fast.to_arrow().schema == slow.to_arrow().schema
        rows, expected = (sorted(map(str, one.to_pylist())) for one in (fast, slow))
        assert rows == expected, key
        found += len(rows)
    assert found


def test_a_key_of_nodes_of_two_types_finds_both(library):
    text = "query q($k: String) { match { $w: Work { code: $k } } return { $w.title } order { $w.title } }"
    assert library.query(text, params={"k": "both"}).to_pylist() == [{"w.title": "a book"}, {"w.title": "a film"}]


def test_the_first_rows_over_several_edge_types_are_those_of_the_executor(tmp_path):
    schema = """
    interface Thing { key: String @key }
    node A implements Thing {}
    node B implements Thing {}
    node P { key: String @key }
    edge One: A -> P
    edge Two: A -> P
    edge Three: B -> P
    """
    people = [node("P", key=f"p{n}") for n in range(6)]
    edges = [edge("Two", "a", "p0"), edge("One", "a", "p5"), edge("One", "a", "p1"), edge("Two", "a", "p3")]
    graph = new_graph(
        tmp_path, schema, *people, node("A", key="a"), node("B", key="b"), *edges, edge("Three", "b", "p2")
    )
    text = "query q($k: String) { match { $t: Thing { key: $k } $t one|two|three $p } return { $p.key } "
    ends = {"}": True, "limit 1 }": False, "limit 3 }": False, "order { $p.key desc } limit 3 }": True}
    for end, narrowed in ends.items():
        assert is_narrowed(graph, text + end) == narrowed
        fast = graph.query(text + end, params={"k": "a"}).to_pylist()
        slow = by_pipeline(graph, text + end, {"k": "a"}).to_pylist()
        assert sorted(map(str, fast)) == sorted(map(str, slow))


def test_dates_of_a_chain_are_those_of_the_executor(library):
    columns = "$p.born, $p.seen, $b.on, $b.at, $p.name"
    text = f'query q() {{ match {{ $p: Person {{ name: "ana" }} $p likes $b }} return {{ {columns} }} }}'
    fast, slow = library.query(text), by_pipeline(library, text, None)
    for form in ("to_pylist", "to_rows", "to_json", "to_arrow", "_repr_html_"):
        assert getattr(library.query(text), form)() == getattr(slow, form)()
    assert list(fast) == list(slow)
    assert fast.to_pylist()[0]["p.seen"].isoformat() == "2020-01-01T10:20:30.400000+00:00"
