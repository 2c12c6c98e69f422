"""Limits apply on every path: work is split into batches with a checkpoint between them.

The tests count checkpoints and rows; none measures time.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.checkpoints import ITEMS_AT_ONCE, checkpoint, paced
from omnigraph.engine import kernels
from omnigraph.engine.adjacency import csr
from omnigraph.engine.cache.table_cache import DataCache
from omnigraph.engine.exec import native_calls
from omnigraph.engine.exec.cancellation import Cancellation, Watch, watching
from omnigraph.engine.exec.context import Limits
from omnigraph.engine.paths import edge_space
from omnigraph.errors import Cancelled, LimitReached
from omnigraph.query.compile import compile_query
from omnigraph.query.params import bind_params
from omnigraph.schema.check import compile_schema
from support.writes import edge, new_graph, node

SCHEMA = """
node P { name: String @key  text: String?  n: I64?  tags: [String]?  vec: Vector(2)? }
node C { name: String @key }
edge Knows: P -> P { w: F64? }
edge At: P -> C
"""
COUNT = 24


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    people = [
        node("P", name=f"p{at}", text=f"red w{at}", n=at, tags=[f"t{at % 3}"], vec=[at, 1]) for at in range(COUNT)
    ]
    knows = [edge("Knows", f"p{a}", f"p{(a * k + k) % COUNT}", w=k / 2) for a in range(COUNT) for k in (1, 5, 7)]
    rest = [node("C", name="c"), *(edge("At", f"p{at}", "c") for at in range(0, COUNT, 2))]
    return new_graph(tmp_path_factory.mktemp("limits"), SCHEMA, *people, *knows, *rest)


def query(match: str, shown: str = "$a.name", rest: str = "") -> str:
    return f"query q() {{ match {{ {match} }} return {{ {shown} }} {rest} }}"


ENDS = '$a: P { name: "p1" } $b: P { name: "p2" }'
QUERIES = {
    "scan": query("$a: P"),
    "hop": query("$a: P $a knows $b", "$b.name"),
    "named edge": query("$a: P $a $e:knows $b $e.w > 1", "$b.name, $e.w"),
    "far hop": query("$a: P $a knows{1,1000000000} $b", "$b.name"),
    "far hop from one": query('$a: P { name: "p1" } $a knows{2,1000000000} $b', "$b.name"),
    "bound hop": query("$a: P $b: P $a knows{1,3} $b", "$a.name, $b.name"),
    "union": query("$a: P|C $a -> $b", "$a.name"),
    "cross": query("$a: P $b: P", "$a.name, $b.name"),
    "paths": query(f"{ENDS} $x: path {{ $a knows{{1,6}} $b }}", "length($x)"),
    "all paths": query("$a: P $x: path { $a knows{1,3} $b }", "length($x)"),
    "shortest": query("$a: P $x: shortest { $a knows{1,1000000000} $b }", "length($x), nodes($x)"),
    "all shortest": query("$a: P $x: all shortest { $a knows{1,9} $b }", "edges($x)"),
    "lightest": query("$a: P $x: all shortest { $a knows{1,9} $b } by w", "weight($x)"),
    "distance": query(f"{ENDS} $x: shortest {{ $a knows{{1,1000000000}} $b }}", "length($x)"),
    "optional": query("$a: P optional { $a at $c }", "$a.name, $c.name"),
    "not": query("$a: P not { $a at $c $c.name != $a.name }"),
    "count": query("$a: P $a knows $b $b knows $c", "count($c) as n"),
    "count far": query("$a: P $a knows{1,1000000000} $b", "count($b) as n"),
    "triangles": query("$a: P $a knows $b $b knows $c $c knows $a", "count($a) as n"),
    "groups": query("$a: P $a knows $b", "$b.name, sum($a.n) as s, min($a.text) as m, collect($a.n) as c"),
    "distinct": query("$a: P $a knows $b", "count(distinct $b.text) as n, avg($a.n) as m"),
    "ordered": query("$a: P $a knows $b", "$a.name", "order { $b.text desc, $a.n }"),
    "filters": query('$a: P $a.text contains "1" $a.n + 1 > 2 or $a.name matches "p.*" lower($a.name) = $a.name'),
    "lists": query('$a: P $a.tags contains "t1" $a.n in [1, 2, 3]'),
    "words": query('$a: P search($a.text, "red w1")'),
    "fuzzy": query('$a: P fuzzy($a.text, "ret", 1)'),
    "bm25": query("$a: P", "$a.name", 'order { bm25($a.text, "red w3") } limit 3'),
    "nearest": query("$a: P", "$a.name", "order { nearest($a.vec, [1, 0]) } limit 3"),
    "fused": query(
        "$a: P $a knows $b", "$a.name", 'order { rrf(nearest($a.vec, [1, 0]), bm25($a.text, "red")) } limit 3'
    ),
    "by key": query('$a: P { name: "p1" } $a knows $b $b knows $c', "$c.name"),
}


class Counting(Cancellation):
    """Counts checkpoints and cancels at the nth."""

    __slots__ = ("nth", "seen")

    def __init__(self, nth: int = 0) -> None:
        self.held_bytes = 0
        self.seen = 0
        self.nth = nth

    @property
    def cancelled(self) -> bool:  # type: ignore[override]
        self.seen += 1
        return self.seen >= self.nth > 0


def rows_of(graph: Any, text: str, **how: Any) -> list[str]:
    return sorted(map(str, graph.query(text, **how).to_rows()))


@pytest.fixture
def small_batches(tune):
    """Batches of a few rows, so that small graphs need many; every native call runs in its own thread."""
    tune(
        batch_rows=4,
        batch_values=4,
        inline_call_rows=0,
        poll_s=60.0,  # checkpoints during a wait would depend on the machine
        bfs_batch_steps=4,
        bfs_node_batch_steps=4,
        bfs_small_frontier=0,
        path_batch_values=16,
        cycle_expand_steps_max=0,
        cycle_kernel_batch_steps=4,
        shortest_batch_keys=2 * COUNT,
    )


@pytest.mark.usefixtures("kernel_loader")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", QUERIES)
def test_batch_size_does_not_change_results(graph, request, name, compiled):
    assert not compiled or kernels.load()
    expected = rows_of(graph, QUERIES[name])
    request.getfixturevalue("small_batches")
    fresh = og.open(graph.uri, sync=False, environ={})
    assert rows_of(fresh, QUERIES[name], cancel=Cancellation()) == expected
    assert rows_of(fresh, QUERIES[name]) == expected


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("name", QUERIES)
def test_every_query_stops_at_its_checkpoints(graph, name):
    expected = rows_of(graph, QUERIES[name])  # structures that are built once are cached now
    counting = Counting()
    assert rows_of(graph, QUERIES[name], cancel=counting) == expected
    total = counting.seen
    assert total > 2
    for nth in sorted({1, 2, *np.linspace(1, total, 3).astype(int).tolist()}):
        stop = Counting(nth)
        with pytest.raises(Cancelled):
            rows_of(graph, QUERIES[name], cancel=stop)
        assert stop.seen == nth, "no work continues after a cancellation"
    assert rows_of(graph, QUERIES[name]) == expected


# -- work between two checkpoints --------------------------------------------------------------------


@pytest.fixture
def grid(tmp_path):
    """Nine layers of four nodes, each connected with the whole next layer: 4 ** 7 paths from end to end."""
    nodes = [node("P", name=f"{layer}-{at}") for layer in range(9) for at in range(4)]
    edges = [
        edge("Knows", f"{layer}-{a}", f"{layer + 1}-{b}") for layer in range(8) for a in range(4) for b in range(4)
    ]
    return new_graph(tmp_path, SCHEMA, *nodes, *edges)


ACROSS = query('$a: P { name: "0-0" } $b: P { name: "8-0" } $x: path { $a knows{1,12} $b }', "count($x) as n")


def test_paths_are_extended_in_batches(grid, monkeypatch, tune):
    largest, steps = 0, 0
    expand = edge_space.IncidentEdges.expand

    def recorded(self: edge_space.IncidentEdges, nodes: Any) -> Any:
        nonlocal largest, steps
        found = expand(self, nodes)
        largest, steps = max(largest, len(found[0])), steps + len(found[0])
        return found

    monkeypatch.setattr(edge_space.IncidentEdges, "expand", recorded)
    tune(path_batch_values=500)
    counting = Counting()
    assert grid.query(ACROSS, cancel=counting).to_pylist() == [{"n": 4**7}]
    assert steps > 4**7
    assert largest <= 500
    assert counting.seen >= steps / 500
    before = steps
    with pytest.raises(Cancelled):
        grid.query(ACROSS, cancel=Counting(50))
    assert steps - before <= 50 * 500


def test_paths_above_the_byte_limit_are_refused(grid):
    with pytest.raises(LimitReached, match=r"would hold [0-9,]+ bytes; the limit is 1,000,000") as caught:
        grid.query(ACROSS, limits=Limits(bytes_max=1_000_000))
    assert "bytes_max" in (caught.value.hint or "")
    assert (caught.value.resource, caught.value.limit) == ("bytes", 1_000_000)
    with pytest.raises(LimitReached, match="rows; the limit is 1,000") as caught:
        grid.query(ACROSS, limits=Limits(rows_max=1_000))
    assert (caught.value.resource, caught.value.limit) == ("rows", 1_000)
    assert caught.value.actual is not None
    assert caught.value.actual > 1_000


def test_rows_above_the_byte_limit_are_refused_before_they_exist(graph, monkeypatch):
    for text in (QUERIES["cross"], QUERIES["hop"], QUERIES["optional"], QUERIES["all shortest"]):
        assert len(graph.query(text))
        with pytest.raises(LimitReached, match="bytes; the limit is 300"):
            graph.query(text, limits=Limits(bytes_max=300))


GROWING = {
    "replace": 'replace(replace($a.name, "p", $s), "o", $s)',
    "replace by column": "replace($a.text, lower($a.name), concat($s, $s))",
    "concat": "concat($a.name, $s, $s)",
    "constant": "$s",
    "case": "case when $a.n > 3 then $s else $a.name end",
    "split": 'split(concat($s, $a.name), "o")',
    "coalesce": 'coalesce($a.tags, split($s, "o"))',
}


@pytest.mark.parametrize("name", [name for name in GROWING if name not in ("replace by column", "coalesce")])
def test_computed_text_above_the_byte_limit_is_refused(graph, name):
    text = f"query q($s: String) {{ match {{ $a: P }} return {{ {GROWING[name]} as r }} }}"
    with pytest.raises(LimitReached):
        graph.query(text, {"s": "o" * 3000}, limits=Limits(bytes_max=20_000))


def test_text_above_the_size_of_a_column_is_refused(graph):
    text = f"query q($s: String) {{ match {{ $a: P }} return {{ {GROWING['replace']} as r }} }}"
    with pytest.raises(LimitReached, match="computed column"):
        graph.query(text, {"s": "o" * 122_500})


@pytest.mark.parametrize("name", GROWING)
def test_functions_in_batches_return_the_same_result(graph, tune, name):
    text = f"query q($s: String) {{ match {{ $a: P }} return {{ $a.name, {GROWING[name]} as r }} }}"
    expected = graph.query(text, {"s": "xo"}).to_pylist()
    tune(batch_bytes=8, batch_rows=2)
    assert graph.query(text, {"s": "xo"}).to_pylist() == expected


def test_hop_bound_beyond_the_graph_ends_with_the_graph(tmp_path):
    line = new_graph(
        tmp_path,
        SCHEMA,
        *(node("P", name=f"p{at}") for at in range(5)),
        *(edge("Knows", f"p{at}", f"p{at + 1}") for at in range(4)),
    )
    ends = '$a: P { name: "p0" } $b: P { name: "p4" }'
    for kind in ("path", "shortest", "all shortest"):
        text = query(f"{ends} $x: {kind} {{ $a knows{{1,1000000000}} $b }}", "length($x) as n")
        assert line.query(text).to_pylist() == [{"n": 4}]
        text = query(f'$a: P $x: {kind} {{ $a knows{{1,1000000000}} $b }} $b.name = "p4"', "length($x) as n")
        assert sorted(row["n"] for row in line.query(text)) == [1, 2, 3, 4]
    assert len(line.query(query("$a: P $a knows{1,1000000000} $b", "$b.name"))) == 10


@pytest.mark.parametrize(
    "text",
    [
        "query q($t: String) { match { $a: P search($a.text, $t) } return { $a.name } }",
        "query q($t: String) { match { $a: P } return { $a.name } order { bm25($a.text, $t) } limit 3 }",
        "query q($t: String) { match { $a: P fuzzy($a.text, $t, 0) } return { $a.name } }",
    ],
)
def test_search_for_many_words_has_checkpoints(graph, text):
    words = {"t": " ".join(f"w{at}" for at in range(3_000))}
    graph.query(text, params=words)
    counting = Counting()
    graph.query(text, params=words, cancel=counting)
    assert counting.seen >= 3_000 / ITEMS_AT_ONCE * 2, "the text is split into words, then they are looked up"
    for nth in (3, counting.seen // 2, counting.seen - 1):
        stop = Counting(nth)
        with pytest.raises(Cancelled):
            graph.query(text, params=words, cancel=stop)
        assert stop.seen == nth


def test_long_value_lists_have_checkpoints(graph):
    text = "query q($v: [I64]) { match { $a: P $a.n in $v } return { $a.name } }"
    values = {"v": list(range(10_000))}
    counting = Counting()
    assert len(graph.query(text, params=values, cancel=counting)) == COUNT
    assert counting.seen >= 2 * 10_000 / ITEMS_AT_ONCE, (
        "values are read as parameters, then converted to the type of the column"
    )
    stop = Counting(20)
    with pytest.raises(Cancelled):
        graph.query(text, params=values, cancel=stop)
    assert stop.seen == 20


def test_parameters_and_texts_are_read_with_checkpoints():
    counting = Counting()
    text = query("$a: P", ", ".join(f"$a.name as c{at}" for at in range(2_000)))
    catalog = compile_schema(SCHEMA)
    with watching(Watch(None, counting)):
        plan = compile_query(catalog, text)
        compiled = counting.seen
        bind_params(plan.params, {})
    assert compiled >= 2_000, "a checkpoint per expression and per batch of tokens"
    for nth in (1, compiled // 2, compiled):
        stop = Counting(nth)
        with pytest.raises(Cancelled), watching(Watch(None, stop)):
            compile_query(catalog, text)


def test_results_are_converted_with_checkpoints(graph, tune):
    tune(lazy_result_rows=8)
    counting = Counting()
    result = graph.query(QUERIES["cross"], cancel=counting)
    before = counting.seen
    assert sum(batch.num_rows for batch in result.batches(8)) == COUNT**2
    assert counting.seen - before >= COUNT**2 / 8
    counting.nth = counting.seen + 2
    with pytest.raises(Cancelled):
        list(result.batches(8))


# -- helpers -----------------------------------------------------------------------------------------


def test_native_call_is_abandoned_on_cancellation():
    ended, started, stop = threading.Event(), threading.Event(), Cancellation()

    def call() -> int:
        started.set()
        stop.cancel()
        assert ended.wait(60)
        return 1

    with pytest.raises(Cancelled), watching(Watch(None, stop)):
        native_calls.interruptible(call)
    assert started.is_set()
    ended.set()


def test_native_call_returns_and_raises_in_the_calling_thread():
    def fail() -> int:
        raise ZeroDivisionError

    for watch in (Watch(), Watch(None, Cancellation())):
        with watching(watch):
            assert native_calls.interruptible(lambda: 5) == 5
            with pytest.raises(ZeroDivisionError):
                native_calls.interruptible(fail)
    with watching(Watch(None, Cancellation())):
        assert native_calls.interruptible(threading.get_ident, rows=10) == threading.get_ident()
        assert native_calls.interruptible(threading.get_ident, rows=10**9) != threading.get_ident()
    with watching(Watch()):
        assert native_calls.interruptible(threading.get_ident, rows=10**9) == threading.get_ident(), (
            "the call has no limits"
        )


def test_waiting_for_another_thread_can_be_cancelled():
    cache, entered, leave = DataCache(), threading.Event(), threading.Event()

    def make() -> int:
        entered.set()
        assert leave.wait(60)
        return 7

    maker = threading.Thread(target=cache.get, args=(("k",), make))
    maker.start()
    assert entered.wait(60)
    with pytest.raises(Cancelled), watching(Watch(None, Counting(5))):
        cache.get(("k",), make)
    leave.set()
    maker.join(60)
    assert cache.get(("k",), make) == 7


@pytest.mark.parametrize("seed", range(10))
def test_slices_and_batches(tune, seed):
    tune(batch_rows=16, batch_values=16)
    random = np.random.default_rng(seed)
    costs = random.integers(0, 30, int(random.integers(0, 60)))
    cut = list(native_calls.slices(costs, 16))
    assert [at for some in cut for at in range(some.start, some.stop)] == list(range(len(costs)))
    assert all(costs[some].sum() <= 16 or some.stop - some.start == 1 for some in cut)
    values, places = random.integers(0, 99, 50), random.integers(0, 50, 200)
    assert native_calls.gather(values, places).tolist() == values[places].tolist()
    starts = random.integers(0, 50, len(costs))
    assert csr.batched_ranges(starts, costs).tolist() == csr.ranges(starts, costs).tolist()
    column = pa.array([None if value % 7 == 0 else int(value) for value in values])
    counting = Counting()
    with watching(Watch(None, counting)):
        doubled = native_calls.in_batches(lambda x, y: pa.compute.add(x, y), column, column)
    assert doubled.to_pylist() == [None if value is None else 2 * value for value in column.to_pylist()]
    assert counting.seen == math.ceil(50 / 16)


def test_paced_loop_has_a_checkpoint_per_portion():
    counting = Counting()
    with watching(Watch(None, counting)):
        assert list(paced(range(1_000))) == list(range(1_000))
    assert counting.seen == math.ceil(1_000 / ITEMS_AT_ONCE)
    assert list(paced(range(3))) == [0, 1, 2]
    checkpoint()
