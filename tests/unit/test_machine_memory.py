"""The memory budget of a graph: sizes, shares, defaults, and what a query may use of it."""

from __future__ import annotations

import pytest

import omnigraph
from omnigraph import machine_memory
from omnigraph.engine import tuning
from omnigraph.errors import InputError, LimitReached
from omnigraph.machine_memory import MemoryBudget
from support.writes import new_graph, node

GIB = 1024**3
SCHEMA = "node Doc { key: String @key  text: String  n: I64 }\n"


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    monkeypatch.setattr(machine_memory, "total_memory", lambda: 16 * GIB)


@pytest.mark.parametrize(
    ("given", "environ", "total"),
    [
        (None, {}, 8 * GIB),
        ("4GiB", {}, 4 * GIB),
        ("4 GiB", {"OMNIGRAPH_MEMORY": "1GiB"}, 4 * GIB),
        ("25%", {}, 4 * GIB),
        (2 * GIB, {}, 2 * GIB),
        (None, {"OMNIGRAPH_MEMORY": "1GiB"}, GIB),
        (None, {"OMNIGRAPH_MEMORY": " "}, 8 * GIB),
    ],
)
def test_a_budget_is_a_size_or_a_share(given, environ, total):
    assert MemoryBudget.of(given, environ).total == total


UNREADABLE = (
    "a size is a number of bytes or a text such as '4GiB', with the units KiB, MiB, GiB and TiB; "
    "a share is a text such as '50%'"
)


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("10MiB", "use at least 64MiB"),
        ("63 MiB", "use at least 64MiB"),
        (1, "use at least 64MiB"),
        (0, "use at least 64MiB"),
        ("0.001%", "use at least 64MiB"),
        ("", UNREADABLE),
        ("a lot", UNREADABLE),
        ("100MB", f"write '100MiB'; {UNREADABLE}"),
        ("1gb", f"write '1GiB'; {UNREADABLE}"),
        ("2G", f"write '2GiB'; {UNREADABLE}"),
        (0.5, f"write '50%'; {UNREADABLE}"),
        (2.5, UNREADABLE),
        (-1, UNREADABLE),
        ("0%", UNREADABLE),
        ("101%", UNREADABLE),
    ],
)
def test_a_wrong_budget_is_refused(given, hint):
    with pytest.raises(InputError) as failure:
        MemoryBudget.of(given, {})
    assert (failure.value.code, failure.value.hint) == ("bad_setting", hint)


def test_a_wrong_variable_is_named(tmp_path):
    with pytest.raises(InputError, match="OMNIGRAPH_MEMORY must be"):
        MemoryBudget.of(None, {"OMNIGRAPH_MEMORY": "much"})


def test_a_small_machine_has_the_least_budget(monkeypatch):
    monkeypatch.setattr(machine_memory, "total_memory", lambda: 100 * 1024**2)
    assert MemoryBudget.of(None, {}).total == 64 * 1024**2


def test_the_parts_of_a_budget_do_not_exceed_it():
    budget = MemoryBudget(GIB)
    assert budget.cache_bytes + budget.query_bytes <= budget.total
    assert budget.build_bytes <= budget.query_bytes


def test_a_graph_keeps_its_budget(tmp_path):
    graph = new_graph(tmp_path, SCHEMA, node("Doc", key="a", text="b", n=1))
    opened = omnigraph.open(graph.uri, memory="128MiB")
    assert opened._context.cache.bytes_max == 64 * 1024**2
    assert omnigraph.open(graph.uri, environ={"OMNIGRAPH_MEMORY": "1GiB"})._context.cache.bytes_max == GIB // 2


def test_a_column_beyond_the_budget_is_refused_or_read_in_batches(tmp_path):
    graph = new_graph(
        tmp_path, SCHEMA, *(node("Doc", key=f"k{n}", text=f"{n:03} " + "x" * 2_000, n=n) for n in range(300))
    )
    with tuning.replaced(complete_column_rows=0, complete_column_bytes=0, lazy_result_bytes=100_000):
        opened = omnigraph.open(graph.uri, memory="64MiB")
        opened._context.cache.memory = MemoryBudget(200_000)
        opened._context.cache.bytes_max = 100_000
        found = opened.query('query q() { match { $d: Doc  $d.text contains "123 " } return { $d.n } }')
        assert found.to_pylist() == [{"d.n": 123}]
        assert len(opened.query("query q() { match { $d: Doc } return { $d.text } }").to_pylist()) == 300
        with pytest.raises(LimitReached, match="300 values of 'text' need about") as failure:
            opened.query("query q() { match { $d: Doc } return { $d.text, count($d) as c } }")
        assert failure.value.limit == 100_000
        assert "memory=" in str(failure.value.hint)


def test_the_rows_of_a_query_keep_the_budget(tmp_path):
    graph = new_graph(tmp_path, SCHEMA, *(node("Doc", key=f"k{n}", text="t", n=n) for n in range(40)))
    opened = omnigraph.open(graph.uri)
    opened._context.cache.memory = MemoryBudget(20_000)
    text = "query q() { match { $a: Doc  $b: Doc  $a.n < $b.n } return { $a.key, $b.key } }"
    with pytest.raises(LimitReached, match="the limit is 10,000") as failure:
        opened.query(text, engine="memory")
    assert "og.open" in str(failure.value.hint)
