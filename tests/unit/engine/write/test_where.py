"""Lists of ids in conditions of statements: looked up, with the rows of a scan."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from omnigraph.engine.expr.predicates import make_test
from omnigraph.engine.write import overlay, where
from omnigraph.graph import Graph
from omnigraph.query.plan import ir
from omnigraph.storage.lance.tables import Table
from omnigraph.types import PropertyType
from support.writes import edge, ids_of, new_graph, node

SCHEMA = """
node P { number: I64 @key  n: I64? }
node Q { name: String @key  src: I64? }
edge Knows: P -> P { w: I64? }
edge Sees: P -> Q
"""
I64S, F64S, TEXTS = (PropertyType(name, is_list=True) for name in ("I64", "F64", "String"))
I64, TEXT = PropertyType("I64"), PropertyType("String")


def listed(column: str, type_: PropertyType, values: Any, of: PropertyType) -> ir.Compare:
    return ir.Compare("contains_item", ir.Const(values, of), ir.Prop(ir.ROW, column, type_))


@pytest.fixture
def graph(tmp_path) -> Graph:
    numbers = range(12)
    return new_graph(
        tmp_path,
        SCHEMA,
        *(node("P", number=number, n=number % 3) for number in numbers),
        *(node("Q", name=f"q{number}", src=number) for number in numbers),
        *(edge("Knows", str(number), str(number * 5 % 12), id_=f"k{number}", w=number) for number in numbers),
        *(edge("Sees", str(number), f"q{number}", id_=f"s{number}") for number in numbers),
    )


def selection(graph: Graph, condition: ir.Condition, key: tuple[str, ...]) -> where.Selection:
    evaluator = where.row_evaluator(graph._context.catalog(graph.snapshot()), {})
    return where.select(condition, evaluator, key)


@pytest.mark.parametrize(
    ("column", "type_", "values", "of", "key", "expected"),
    [
        ("number", I64, [3, None, 4, 3], I64S, ("number",), where.IdList("id", ("3", "4", "3"))),
        ("name", TEXT, ["a", None], TEXTS, ("name",), where.IdList("id", ("a",))),
        ("id", TEXT, ["a"], TEXTS, ("name",), where.IdList("id", ("a",))),
        ("src", TEXT, ["a", "b"], TEXTS, (), where.IdList("src", ("a", "b"))),
        ("number", I64, [], I64S, ("number",), where.IdList("id", ())),
        ("number", I64, None, I64S, ("number",), where.IdList("id", ())),
        ("number", I64, [3, 4.0], F64S, ("number",), None),
        ("number", I64, [3], I64S, ("number", "from"), None),
        ("src", I64, [3], I64S, ("name",), None),
        ("n", I64, [3], I64S, ("number",), None),
    ],
)
def test_lists_that_identify_rows(graph, column, type_, values, of, key, expected):
    chosen = selection(graph, listed(column, type_, values, of), key)
    assert chosen.tests == (() if expected is None else (expected,))
    assert len(chosen.rest) == (expected is None)
    found = chosen.lookup()
    assert found == (None if expected is None else where.Lookup(expected.column, expected.values, ()))
    assert chosen.is_never_true is (expected is not None and not expected.values)


def keys_left(graph: Graph) -> list[int]:
    return sorted(int(id_) for id_ in ids_of(graph, "P"))


@pytest.mark.parametrize("in_list_max", [0, 3, 2_000])
def test_deletes_and_updates_by_lists_agree_with_a_model(graph, tune, in_list_max):
    tune(in_list_max=in_list_max)
    random = Random(5)
    model = {number: number % 3 for number in range(12)}
    for step in range(12):
        keys = random.choices(range(-2, 16), k=random.randrange(6))
        low = random.randrange(3)
        hit = {key for key in keys if key in model and model[key] >= low}
        made = 100 + step
        text = (
            "query q($keys: [I64], $low: I64, $new: I64) { atomic { "
            "insert P { number: $new, n: 2 }  update P set { n: 2 } where number in $keys and n >= $low  "
            "delete P where number in [3, 7] and number in $keys } }"
        )
        done = graph.mutate(text, {"keys": [*keys, made], "low": low, "new": made})
        gone = {3, 7} & set(keys) & model.keys()
        model |= dict.fromkeys((*hit, made), 2)
        model = {key: value for key, value in model.items() if key not in gone}
        assert done.affected_nodes == 2 + len(hit) + len(gone)
        rows = graph.query("query q() { match { $p: P } return { $p.number as k, $p.n as n } }").to_pylist()
        assert {row["k"]: row["n"] for row in rows} == model


def test_edges_are_found_by_lists_of_ends_and_ids(graph):
    done = graph.mutate('query q() { delete Knows where from in ["1", "2", "99"] and w > 1 }')
    assert (done.affected_nodes, done.affected_edges) == (0, 1)
    done = graph.mutate("query q($ids: [String]) { delete Knows where to in $ids }", {"ids": ["0", "5"]})
    assert done.affected_edges == 2
    assert ids_of(graph, "Knows") == sorted(f"k{number}" for number in range(12) if number not in (0, 1, 2))


def test_a_property_that_is_named_like_an_end_is_compared(graph):
    done = graph.mutate("query q() { delete Q where src in [2, 3, 50] }")
    assert done.affected_nodes == 2
    assert {"q2", "q3"}.isdisjoint(ids_of(graph, "Q"))


def test_a_property_that_is_named_like_an_end_is_compared_with_a_value(graph):
    assert graph.mutate("query q() { delete Q where src = 4 }").affected_nodes == 1
    assert graph.mutate("query q($v: I64) { update Q set { src: 7 } where src = $v }", {"v": 5}).affected_nodes == 1
    assert "q4" not in ids_of(graph, "Q")


def test_a_property_that_is_named_like_an_end_is_not_hashed(graph):
    """Fragments of more than 1,024 rows have arrays of hashes, which only texts have."""
    graph.load([node("Q", name=f"r{number}", src=number) for number in range(1_100)], mode="append")
    assert graph.mutate('query q() { update Q set { src: 5 } where name = "r3" }').affected_nodes == 1
    assert graph.mutate('query q() { delete Q where name in ["r4", "r5", "r4"] }').affected_nodes == 2


KEYS = where.IdList("id", ("1", "2"))
FROM, TO = where.IdList("src", ("1", "2", "3")), make_test("dst", TEXT, "=", "4")
SMALL = make_test("n", I64, "<", 5)


@pytest.mark.parametrize(
    ("tests", "chosen"),
    [
        ((FROM, KEYS, SMALL), KEYS),
        ((FROM, TO, SMALL), TO),
        ((TO, FROM), TO),
        ((FROM, where.IdList("dst", ("1",) * 4)), FROM),
        ((where.IdList("id", ("1",) * 4), SMALL, FROM), FROM),
        ((where.IdList("id", ("1",) * 4), SMALL), None),
        ((SMALL, make_test("src", I64, "=", 3)), None),
    ],
)
def test_the_shortest_list_is_looked_up(tune, tests, chosen):
    tune(in_list_max=3)
    found = where.Selection(tests).lookup()
    if chosen is None:
        assert found is None
    else:
        others = tuple(test for test in tests if test is not chosen)
        values = chosen.values if isinstance(chosen, where.IdList) else (chosen.value,)
        assert found == where.Lookup(chosen.column, values, others)


@pytest.mark.parametrize("share", [1, 1_000])
def test_a_long_list_leaves_other_conditions_to_the_table(graph, tune, monkeypatch, share):
    """Few of the rows are read by their numbers, many by a scan."""
    tune(in_list_max=3)
    monkeypatch.setattr(overlay, "_TAKEN_SHARE", share)
    reads: list[tuple[list[str], str | None]] = []
    read = Table.read

    def recorded(self: Table, columns: Any, *, filter: str | None = None, **given: Any) -> Any:
        reads.append(([*columns], filter))
        return read(self, columns, filter=filter, **given)

    monkeypatch.setattr(Table, "read", recorded)
    done = graph.mutate(
        "query q($k: [I64]) { update P set { n: 9 } where number in $k and n = 1 }", {"k": [1, 2, 3, 4, 4]}
    )
    assert done.affected_nodes == 2
    assert (["id", "_rowid"], "(`n` = 1)") in reads
    assert any("n" in columns and filter == "(`n` = 1)" for columns, filter in reads) == (share > 1)
    assert all(filter is not None for columns, filter in reads if "n" in columns), "no column is read as a whole"
    found = graph.query("match { $p: P  $p.n = 9 } return { $p.number as number } order { $p.number }")
    assert [row["number"] for row in found] == [1, 4]


def test_long_lists_are_compared_by_interruptible_calls(graph, tune, monkeypatch):
    tune(in_list_max=3)
    monkeypatch.setattr(overlay, "_TAKEN_SHARE", 1_000)
    sizes: list[int] = []

    def recorded(call: Any, rows: int) -> Any:
        sizes.append(rows)
        return call()

    for module in (where, overlay):
        monkeypatch.setattr(module, "interruptible", recorded)
    assert graph.mutate("delete P where number in [1, 2, 3, 99, 100]").affected_nodes == 3
    assert sizes == [12 + 5, 12]


def test_a_delete_by_keys_reads_no_column(graph, monkeypatch):
    """With indexes of the fragments, neither the rows nor their edges are found by a scan."""
    for number in (1, 2):
        graph.mutate("query q($n: [I64]) { delete P where number in $n }", {"n": [number]})
    monkeypatch.setattr(Table, "read", None)
    done = graph.mutate("query q($n: [I64]) { delete P where number in $n }", {"n": [3, 4, 77]})
    assert done.affected_nodes == 2
    assert done.affected_edges > 2


def test_a_condition_that_is_never_true_reads_nothing(graph, monkeypatch):
    monkeypatch.setattr(Table, "read", None)
    monkeypatch.setattr(Table, "locate", None)
    done = graph.mutate(
        "query q($n: [I64], $x: I64?) { delete P where number in $n  delete P where n = $x }", {"n": [], "x": None}
    )
    assert (done.affected_nodes, done.commit_id) == (0, None)
