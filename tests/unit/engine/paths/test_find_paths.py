"""Paths on larger graphs: results, cost and cancellation."""

from __future__ import annotations

import random
from itertools import pairwise

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.engine.exec.context import Limits
from omnigraph.engine.paths import path_table
from omnigraph.errors import Cancelled, InputError, LimitReached, QueryTimeout

SCHEMA = """
node Town { name: String @key }
edge Road: Town -> Town { km: F64? }
edge Rail: Town -> Town { km: I32? }
"""
SIDE = 12


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """A square grid of one-way roads to the right and down, each of one kilometre, and a railway down one side."""
    graph = og.init(tmp_path_factory.mktemp("paths") / "grid", SCHEMA, sync=False, environ={})
    names = [[f"t{row:02}{column:02}" for column in range(SIDE)] for row in range(SIDE)]
    records = [{"type": "Town", "data": {"name": name}} for line in names for name in line]
    pairs = [pair for line in names for pair in pairwise(line)]
    pairs += [pair for line in zip(*names, strict=True) for pair in pairwise(line)]
    random.Random(5).shuffle(pairs)
    records += [{"edge": "Road", "from": a, "to": b, "data": {"id": a + b, "km": 1.0}} for a, b in pairs]
    records += [{"edge": "Rail", "from": a, "to": b, "data": {"id": a + b, "km": 0}} for a, b in pairwise(names[0])]
    graph.load(records, mode="merge")
    return graph


def ask(graph, match: str, result: str, **more):
    return graph.query(f"query q() {{ match {{ {match} }} {result} }}", **more).to_pylist()


def test_shortest_returns_the_path_with_the_smallest_edge_ids(grid):
    found = ask(
        grid,
        '$a: Town { name: "t0000" } $b: Town { name: "t1111" } $p: shortest { $a road{1,30} $b }',
        "return { length($p) as n, nodes($p) as towns }",
    )
    # The road with the smaller id leads to the smaller name: the path goes right to the end, then down.
    right = [f"t00{column:02}" for column in range(SIDE)]
    down = [f"t{row:02}11" for row in range(1, SIDE)]
    assert [town["name"] for town in found[0]["towns"]] == right + down
    assert found[0]["n"] == 22
    assert len(found) == 1


def test_the_search_direction_does_not_change_the_path(grid):
    one_end = "$p: shortest { $a road{1,30} $b }"
    from_start = ask(grid, f'$a: Town {{ name: "t0000" }} {one_end} $b.name = "t0707"', "return { edges($p) as e }")
    to_end = ask(grid, f'$b: Town {{ name: "t0707" }} {one_end} $a.name = "t0000"', "return { edges($p) as e }")
    every = ask(grid, f'{one_end} $a.name = "t0000" $b.name = "t0707"', "return { edges($p) as e }")
    assert from_start == to_end == every


@pytest.fixture(scope="module")
def random_roads(tmp_path_factory):
    """Random towns and roads, some of them parallel."""
    graph = og.init(tmp_path_factory.mktemp("paths") / "tangle", SCHEMA, sync=False, environ={})
    draw = random.Random(11)
    names = [f"t{number}" for number in range(60)]
    records = [{"type": "Town", "data": {"name": name}} for name in names]
    for number in range(130):
        ends = {"from": draw.choice(names), "to": draw.choice(names)}
        data = {"id": f"r{draw.randrange(10**6)}-{number}", "km": draw.randrange(4)}
        records.append({"edge": draw.choice(("Road", "Rail")), **ends, "data": data})
    graph.load(records, mode="merge")
    return graph


@pytest.mark.parametrize("hop", ["road{1,9}", "road|rail{1,4}", "<rail>{1,5}", "<road|rail>{1,3}"])
@pytest.mark.parametrize("kind", ["shortest", "all shortest"])
def test_bidirectional_search_returns_the_same_paths(random_roads, monkeypatch, hop, kind):
    every = f"$p: {kind} {{ $a {hop} $b }}"
    expected: dict[tuple[str, str], list[list[str]]] = {}
    for row in ask(random_roads, every, "return { $a.name, $b.name, edges($p) as e } order { $a.name }"):
        expected.setdefault((row["a.name"], row["b.name"]), []).append([edge["id"] for edge in row["e"]])
    for a, b in [*random.Random(3).sample(sorted(expected), 12), ("t1", "t1"), ("t2", "t3")]:
        pair = f'$a: Town {{ name: "{a}" }} $b: Town {{ name: "{b}" }} {every}'
        found = [[edge["id"] for edge in row["e"]] for row in ask(random_roads, pair, "return { edges($p) as e }")]
        assert sorted(found) == sorted(expected.get((a, b), []))


@pytest.mark.parametrize("by", ["", " by km"])
@pytest.mark.parametrize("hop", ["road{1,9}", "<road|rail>{1,3}"])
@pytest.mark.parametrize(
    "ends", ["", "$b: Town", '$b: Town { name: "t5" }', "$a: Town $a.name < $b.name", '$b.name > "t4"']
)
def test_measured_lengths_equal_lengths_of_returned_paths(random_roads, hop, ends, by):
    match = f"$p: shortest {{ $a {hop} $b }}{by} {ends}"
    asked = "$a.name, $b.name, length($p) as n" + (", weight($p) as km" if by else "")
    measured = ask(random_roads, match, f"return {{ {asked} }} order {{ $a.name, $b.name }}")
    seen = ask(random_roads, match, f"return {{ {asked}, edges($p) as e }} order {{ $a.name, $b.name }}")
    assert measured == [{name: row[name] for name in row if name != "e"} for row in seen]
    assert all(row["n"] == len(row["e"]) for row in seen)
    assert seen


def test_inexact_weights_are_summed_from_the_start_of_the_path(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, sync=False, environ={})
    kms = {"ab": 0.1, "bc": 0.2, "cd": 0.3}
    records = [{"type": "Town", "data": {"name": name}} for name in "abcd"]
    records += [{"edge": "Road", "from": e[0], "to": e[1], "data": {"id": e, "km": km}} for e, km in kms.items()]
    graph.load(records, mode="merge")
    found = ask(
        graph,
        '$b: Town { name: "d" } $p: shortest { $a road{1,5} $b } by km',
        "return { weight($p) as w } order { w desc }",
    )
    assert found[0]["w"] == 0.1 + 0.2 + 0.3 != 0.3 + 0.2 + 0.1


def test_sources_are_searched_in_batches(grid, tune):
    every = ("$p: shortest { $a road{1,30} $b }", "return { $a.name, $b.name, $p } order { $a.name, $b.name }")
    together = ask(grid, *every)
    tune(shortest_batch_keys=5)
    assert together == ask(grid, *every)
    assert len(together) == sum((SIDE - row) * (SIDE - column) - 1 for row in range(SIDE) for column in range(SIDE))


def test_the_lightest_path_may_have_more_edges(grid):
    found = ask(
        grid,
        '$a: Town { name: "t0000" } $b: Town { name: "t0003" } $p: shortest { $a road|rail{1,9} $b } by km',
        "return { weight($p) as km, length($p) as n, edges($p) as e }",
    )
    assert [(row["km"], row["n"], {edge["type"] for edge in row["e"]}) for row in found] == [(0.0, 3, {"Rail"})]


def test_all_shortest_paths_are_counted_without_building_objects(grid, monkeypatch):
    def never(*_):
        raise AssertionError("objects must not be built")

    monkeypatch.setattr(path_table, "_objects", never)
    match = '$a: Town { name: "t0000" } $b: Town { name: "t0505" } $p: all shortest { $a road{1,10} $b }'
    assert ask(grid, match, "return { count($p) as n }") == [{"n": 252}]
    assert ask(grid, match, "return distinct { length($p) as n }") == [{"n": 10}]


def test_simple_paths_that_cannot_reach_the_end_are_pruned(grid):
    match = '$a: Town { name: "t0000" } $b: Town { name: "t0202" } $p: path { $a road{1,20} $b }'
    # Without pruning there are a hundred times as many.
    assert ask(grid, match, "return { count($p) as n }", limits=Limits(rows_max=100)) == [{"n": 6}]


@pytest.mark.parametrize("kind", ["path", "all shortest"])
def test_too_many_paths_are_refused_before_they_are_built(grid, kind):
    match = f'$a: Town {{ name: "t0000" }} $p: {kind} {{ $a road{{1,22}} $b }}'
    with pytest.raises(LimitReached):
        ask(grid, match, "return { count($p) as n }", limits=Limits(rows_max=20_000))


@pytest.mark.parametrize("kind", ["path", "shortest", "all shortest"])
def test_a_search_can_be_cancelled(grid, kind):
    match = f"$p: {kind} {{ $a road{{1,22}} $b }}"
    stop = og.Cancellation()
    stop.cancel()
    with pytest.raises(Cancelled):
        ask(grid, match, "return { count($p) as n }", cancel=stop)
    with pytest.raises(QueryTimeout):
        ask(grid, match, "return { count($p) as n }", timeout=0.0)


def test_the_error_of_a_negative_weight_names_the_edge(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, sync=False, environ={})
    graph.load(
        [
            *({"type": "Town", "data": {"name": name}} for name in "ab"),
            {"edge": "Rail", "from": "a", "to": "b", "data": {"id": "down", "km": -3}},
        ],
        mode="merge",
    )
    with pytest.raises(InputError) as caught:
        ask(graph, "$p: shortest { $a rail $b } by km", "return { weight($p) }")
    assert caught.value.code == "negative_weight"
    assert "'down' of Rail" in caught.value.message


def test_a_commit_changes_the_paths(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, sync=False, environ={})
    towns = [{"type": "Town", "data": {"name": name}} for name in "abc"]
    roads = [{"edge": "Road", "from": a, "to": b, "data": {"id": a + b, "km": 1.0}} for a, b in ("ab", "bc")]
    graph.load([*towns, *roads], mode="merge")
    match = '$a: Town { name: "a" } $b: Town { name: "c" } $p: shortest { $a road{1,5} $b } by km'
    result = "return { weight($p) as km }"
    assert ask(graph, match, result) == [{"km": 2.0}]
    graph.load([{"edge": "Road", "from": "a", "to": "c", "data": {"id": "ac", "km": 1.5}}], mode="merge")
    assert ask(graph, match, result) == [{"km": 1.5}]
    graph.mutate("query q() { delete Road where km = 1.5 }")
    assert ask(graph, match, result) == [{"km": 2.0}]


def test_paths_in_every_result_format(grid):
    match = '$a: Town { name: "t0000" } $p: path { $a road{1,2} $b }'
    result = grid.query(f"query q() {{ match {{ {match} }} return {{ $p, nodes($p) }} order {{ length($p) }} }}")
    assert pa.types.is_list(result.schema.field("nodes").type)
    assert result.to_rows()[0]["p"]["length"] == 1
    assert len(result.to_pandas()) == len(result) == 6
    assert "t0001" in result._repr_html_()


def test_plans_and_profiles_show_the_search(grid):
    match = '$b: Town { name: "t0303" } $p: shortest { $a road{1,9} $b } by km'
    text = f"query q() {{ match {{ {match} }} return {{ weight($p) }} }}"
    assert "shortest measured $p: $b <-Road{1,9}- $a: Town by km" in grid.explain(text)
    assert "edges by node" in grid.explain(text)
    assert "shortest $p: $b <-Road{1,9}- $a: Town by km" in grid.explain(text.replace("weight($p)", "nodes($p)"))
    assert "shortest all $p" in grid.explain(text.replace("shortest", "all shortest"))
    assert "adjacency" in grid.explain(text.replace(" by km", "").replace("weight", "length"))
    assert "from 1 node" in grid.profile(text)
