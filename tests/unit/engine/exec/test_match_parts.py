"""Counted and grouped matches that exceed a limit run in parts, with the rows of the match as a whole."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest

import omnigraph as og
from omnigraph.engine import tuning
from omnigraph.engine.exec import context
from omnigraph.engine.exec.context import Limits, MatchTooLarge
from omnigraph.engine.optimizer import pattern_optimizer
from omnigraph.errors import LimitReached

SCHEMA = """
node P { name: String @key  x: I32  city: String? }
edge Knows: P -> P { since: I32 }
edge Likes: P -> P
"""
NODES = 40

SHAPES = {
    "triangles": ("$a: P $a knows $b $b knows $c $c knows $a $a.x < $b.x", "count($a) as n"),
    "edges": (
        "$a: P $a $e:<knows> $b $b $f:<knows> $c $c $g:<knows> $a $e.since < $f.since $f.since < $g.since",
        "count($a) as n, min($e.since) as least",
    ),
    "pairs": ("$a: P $b: P $c: P $a.x < $b.x $b.x < $c.x", "count($a) as n"),
    "groups": (
        "$a: P $a knows $b $b likes $c $c.x != $a.x",
        "$a.city as city, count($c) as n, sum($b.x) as s order { city }",
    ),
    "distinct": ("$a: P $a <knows> $b $b <knows> $c $c.x > $a.x", "$a.x as x, count(distinct $c) as n order { x }"),
    "lists": (
        "$a: P $a.x < 3 $a knows $b $b knows $c $c knows $d $d.x = 1 $b.x > $c.x",
        "$a.name as name, collect($d.name) as found order { name }",
    ),
    "without": ("$a: P $a knows $b $b knows $c not { $c likes $a } $a.x < $c.x", "count($a) as n, avg($c.x) as m"),
    "optional": (
        "$a: P $a knows $b $b knows $c $a.x < $c.x optional { $c likes $d $d.x > 5 }",
        "count($a) as n, count($d) as m, max($d.x) as x",
    ),
    "hops": ("$a: P $a knows{1,2} $b $b <knows> $c $a.x < $c.x", "count($a) as n"),
    "any": ("$a: P $a knows|likes $b $b likes $c $c.x > $a.x", "$c.city as city, count($a) as n order { city }"),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A graph with dense edges, a node with many, and nodes with none."""
    random = Random(7)
    made = og.init(tmp_path_factory.mktemp("parts") / "graph.omni", SCHEMA, sync=False)
    records: list[dict[str, Any]] = [
        {"type": "P", "data": {"name": f"p{at}", "x": at % 9, "city": random.choice(["Bonn", "Kiel", None])}}
        for at in range(NODES)
    ]
    for edge in ("Knows", "Likes"):
        for at in range(240):
            ends = {
                "from": f"p{0 if at < 30 else random.randrange(NODES - 4)}",
                "to": f"p{random.randrange(NODES - 4)}",
            }
            records.append({"edge": edge, **ends, "data": {"since": random.randrange(30)} if edge == "Knows" else {}})
    made.load(records, mode="append")
    return made


def query_of(shape: str) -> str:
    """Return the text of a shape."""
    match, returned = SHAPES[shape]
    columns, _, order = returned.partition(" order ")
    return f"query q() {{ match {{ {match} }} return {{ {columns} }} {f'order {order}' if order else ''} }}"


def limited(monkeypatch: pytest.MonkeyPatch, **limits: int) -> Limits:
    """Make these limits the default ones and return them."""
    monkeypatch.setattr(context, "NO_LIMITS", Limits(**limits))
    return context.NO_LIMITS


def largest_of(graph: Any, text: str) -> int:
    """Return the largest number of rows after an operator."""
    return max(int(rows.replace(",", "")) for rows in re.findall(r"  ([\d,]+) +~", str(graph.profile(text))))


@pytest.mark.parametrize("share", [0.7, 0.3, 0.1])
@pytest.mark.parametrize("shape", SHAPES)
def test_parts_have_the_rows_of_the_match(
    graph: Any, monkeypatch: pytest.MonkeyPatch, shape: str, share: float
) -> None:
    text = query_of(shape)
    expected = graph.query(text, engine="memory").to_pylist()
    assert expected
    # All pairs of a group and a counted node must fit.
    least = 800 if shape in ("groups", "distinct") else 60
    limits = limited(monkeypatch, rows_max=max(int(largest_of(graph, text) * share), least))
    with tuning.replaced(match_parts_max=10_000, merge_rows_min=1):
        assert graph.query(text, limits=limits, engine="memory").to_pylist() == expected


@pytest.mark.parametrize("shape", SHAPES)
def test_profile_adds_up_the_parts(graph: Any, monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    text = query_of(shape)
    plain = str(graph.profile(text))
    least = 800 if shape in ("groups", "distinct") else 60
    limits = limited(monkeypatch, rows_max=max(largest_of(graph, text) // 2, least))
    with tuning.replaced(match_parts_max=10_000):
        divided = str(graph.profile(text, limits=limits))
    assert re.search(r"in \d+ parts", divided)
    assert [line.split("  ")[0] for line in divided.splitlines()][1:-1] == [
        line.split("  ")[0] for line in plain.splitlines()
    ][1:-1]


@pytest.mark.parametrize("shape", SHAPES)
def test_parts_of_a_plan_that_changes(graph: Any, monkeypatch: pytest.MonkeyPatch, tune: Any, shape: str) -> None:
    """Joins run in parts of their inner rows."""
    text = query_of(shape)
    expected = graph.query(text, engine="memory").to_pylist()
    tune(replan_rows_min=0, replan_factor=0.0, match_parts_max=10_000, merge_rows_min=1)
    monkeypatch.setattr(pattern_optimizer, "_JOIN_SHARE", float("inf"))
    least = 800 if shape in ("groups", "distinct") else 60
    limits = limited(monkeypatch, rows_max=max(int(largest_of(graph, text) * 0.3), least))
    assert graph.query(text, limits=limits, engine="memory").to_pylist() == expected


def test_number_of_parts_is_limited(graph: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = limited(monkeypatch, rows_max=100)
    with tuning.replaced(match_parts_max=3), pytest.raises(MatchTooLarge, match="the limit is 100"):
        graph.query(query_of("triangles"), limits=limits, engine="memory")


def test_one_row_that_exceeds_a_limit_is_refused(graph: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = limited(monkeypatch, rows_max=20)
    text = 'query q() { match { $a: P { name: "p0" } $a knows $b $a.x < $b.x } return { sum($b.x) as n } }'
    with pytest.raises(MatchTooLarge, match="the limit is 20"):
        graph.query(text, limits=limits, engine="memory")


def test_limit_of_the_caller_is_not_exceeded_in_parts(graph: Any) -> None:
    with pytest.raises(LimitReached, match="the limit is 100") as caught:
        graph.query(query_of("triangles"), limits=Limits(rows_max=100), engine="memory")
    assert not isinstance(caught.value, MatchTooLarge)


def test_rows_of_a_result_are_not_found_in_parts(graph: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = query_of("triangles").replace("count($a) as n", "$a.name, $b.name")
    with pytest.raises(MatchTooLarge):
        graph.query(text, limits=limited(monkeypatch, rows_max=300), engine="memory")
