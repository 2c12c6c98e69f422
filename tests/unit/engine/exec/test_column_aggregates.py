"""Aggregates of a number over all rows, for every selection of rows, with and without nulls and kernels."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.engine import kernels
from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.exec.column_aggregates import column_aggregate
from omnigraph.engine.exec.reducers import reduce_numbers
from support.writes import edge, new_graph, node

TYPES = [pa.int32(), pa.int64(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64()]


@pytest.fixture(params=["numpy", "compiled"])
def loops(request, kernel_loader):
    if request.param == "compiled":
        assert kernels.load()


def expected(function: str, values: list[Any]) -> Any:
    known = [value for value in values if value is not None]
    if function == "count":
        return len(known)
    if not known:
        return None
    if function in ("min", "max"):
        return min(known) if function == "min" else max(known)
    if function == "sum" and isinstance(known[0], int):
        return sum(known)
    added = math.fsum(known)
    return added / len(known) if function == "avg" else added


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_every_selection_of_rows(type_, nulls):
    random = Random(3)
    for count in (0, 1, 2, 50):
        drawn = [random.randrange(1_000_000) for _ in range(count + 3)]
        kept = [None if random.random() < nulls else value for value in drawn]
        column = pa.array(kept, type_).slice(3)
        data = MemoryTable.of(pa.table({"n": column}))
        mask = np.array([random.random() < 0.5 for _ in range(count)], bool)
        numbers = np.array([random.randrange(count) for _ in range(7 if count else 0)], np.int64)
        values = kept[3:]
        for bound, rows in (
            (Binding(data), values),
            (Binding(data, mask=mask), [value for value, passes in zip(values, mask, strict=True) if passes]),
            (Binding(data, numbers), [values[number] for number in numbers]),
        ):
            for function in ("count", "sum", "avg", "min", "max"):
                found = column_aggregate(function, bound, "n")
                assert found is not None
                added = pa.float64()
                if pa.types.is_integer(type_):
                    added = pa.uint64() if type_ == pa.uint64() else pa.int64()
                types = {"count": pa.int64(), "min": type_, "max": type_, "sum": added}
                assert found.type == types.get(function, pa.float64())
                wanted = expected(function, rows)
                assert found.to_pylist() == [wanted if wanted is None else pytest.approx(wanted, rel=1e-12)]


@pytest.mark.usefixtures("loops")
def test_infinite_values_count_where_the_mask_selects_them():
    data = MemoryTable.of(pa.table({"x": pa.array([math.inf, 1.0, -math.inf, 2.0])}))

    def added(*mask: bool) -> Any:
        found = column_aggregate("sum", Binding(data, mask=np.array(mask)), "x")
        assert found is not None
        return found[0].as_py()

    assert added(False, True, False, True) == 3
    assert added(True, True, False, True) == math.inf


def test_non_numeric_columns_are_not_aggregated():
    data = MemoryTable.of(pa.table({"t": ["a"], "x": [math.nan], "d": pa.array([1], pa.date32())}))
    assert column_aggregate("min", Binding(data), "t") is None
    assert column_aggregate("min", Binding(data), "d") is None
    assert column_aggregate("max", Binding(data), "x") is None


def test_rows_selected_by_a_mask():
    data = MemoryTable.of(pa.table({"n": [5, 6, 7, 8]}))
    frame = BindingTable(4, {"v": Binding(data)})
    kept = frame.keep(np.array([True, False, True, True]))
    bound = kept.bound["v"]
    assert (kept.count, bound.count, bound.whole, bound.unique) == (3, 3, False, True)
    assert bound.numbers.tolist() == [0, 2, 3]
    assert bound.column("n").to_pylist() == [5, 7, 8]
    again = kept.keep(np.array([False, True, True]))
    assert again.bound["v"].numbers.tolist() == [2, 3]
    assert again.take(np.array([1, 1])).bound["v"].numbers.tolist() == [3, 3]


def test_aggregates_over_edges_and_nodes(tmp_path):
    schema = "node P { name: String @key  n: I64? }  edge Knows: P -> P { w: F64? }"
    people = [node("P", name=f"p{at}", **({"n": at} if at % 2 else {})) for at in range(6)]
    edges = [edge("Knows", f"p{a}", f"p{b}", **({"w": a / 2} if b else {})) for a in range(6) for b in range(3)]
    graph = new_graph(tmp_path, schema, *people, *edges)

    def ask(match: str, columns: str) -> list[Any]:
        (row,) = graph.query(f"query q() {{ match {{ {match} }} return {{ {columns} }} }}").to_pylist()
        return list(row.values())

    five = "count($e.w) as a, sum($e.w) as b, avg($e.w) as c, min($e.w) as d, max($e.w) as e"
    assert ask("$p: P $p $e:knows $q $e.w > 1", five) == [6, 12.0, 2.0, 1.5, 2.5]
    assert ask("$p: P $p $e:knows $q", five) == [12, 15.0, 1.25, 0.0, 2.5]
    assert ask("$p: P $p $e:knows $q $e.w > 9", five) == [0, None, None, None, None]
    assert ask("$p: P $p.n > 1", "count($p.n) as a, avg($p.n) as b, max($p.n) as c") == [2, 4.0, 5]


def _sums(seed: int, type_: pa.DataType) -> list[bytes]:
    """The bits of sums and averages of random floats, selected in three equivalent ways."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 200_000))
    scale = 10.0 ** random.integers(-8, 9, count)
    column = pa.array((random.standard_normal(count) * scale).astype(type_.to_pandas_dtype()), type_)
    mask = random.random(count) < random.random()
    mask[0] = True
    data, picked = (
        MemoryTable.of(pa.table({"x": column})),
        MemoryTable.of(pa.table({"x": column.filter(pa.array(mask))})),
    )
    ways = (Binding(data, mask=mask), Binding(data, np.flatnonzero(mask)), Binding(picked))
    return [
        column_aggregate(function, bound, "x").to_numpy().tobytes()  # type: ignore[union-attr]
        for bound in ways
        for function in ("sum", "avg")
    ]


@pytest.mark.parametrize("type_", [pa.float64(), pa.float32()], ids=str)
def test_sums_have_the_same_bits_with_and_without_kernels(type_):
    found = []
    for compiled in (False, True):
        with kernels.isolated():
            assert not compiled or kernels.load()
            found.append([_sums(seed, type_) for seed in range(20)])
    assert found[0] == found[1]
    for sums in found[0]:
        assert len({sums[at] for at in (0, 2, 4)}) == 1, "the way in which rows are selected does not change the sum"
        assert len({sums[at] for at in (1, 3, 5)}) == 1


@pytest.mark.parametrize("type_", [pa.float64(), pa.float32()], ids=str)
def test_expression_and_property_have_the_same_sum(type_):
    random = np.random.default_rng(7)
    values = (random.standard_normal(100_000) * 10.0 ** random.integers(-8, 9, 100_000)).astype(type_.to_pandas_dtype())
    found = column_aggregate("sum", Binding(MemoryTable.of(pa.table({"x": pa.array(values)}))), "x")
    assert found is not None
    assert reduce_numbers("sum", values.astype(np.float64), None, None, 1).equals(found)


def test_sums_beyond_the_largest_float_are_infinite():
    largest = np.finfo(np.float64).max
    data = MemoryTable.of(pa.table({"x": pa.array([largest] * 3), "y": pa.array([math.inf, -math.inf, 1.0])}))
    assert column_aggregate("sum", Binding(data), "x").to_pylist() == [math.inf]  # type: ignore[union-attr]
    assert math.isnan(column_aggregate("sum", Binding(data), "y")[0].as_py())  # type: ignore[index]
