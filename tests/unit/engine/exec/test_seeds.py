"""Blocks that run once start from the nodes of an outer variable if these are few."""

from __future__ import annotations

import pytest

from omnigraph.engine.optimizer import pattern_optimizer
from support.writes import edge, new_graph, node

SCHEMA = """
node Forum { name: String @key  size: I64 }
node Person { name: String @key }
edge Member: Forum -> Person
edge Moderates: Forum -> Person
"""
FORUMS, PERSONS = 400, 60
FEW = "$f.size * $f.size < 9"
"""Three forums; more are expected, so blocks run once for all nodes."""
OPTIONAL = "optional { $f $m:member $p BLOCK }"
WITHOUT = "not { $f member $p BLOCK }"


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    forums = [node("Forum", name=f"f{at}", size=at) for at in range(FORUMS)]
    persons = [node("Person", name=f"p{at}") for at in range(PERSONS)]
    members = [edge("Member", f"f{at}", f"p{(at * 7 + step) % PERSONS}") for at in range(FORUMS) for step in range(30)]
    heads = [edge("Moderates", f"f{at}", f"p{at % PERSONS}") for at in range(FORUMS)]
    return new_graph(tmp_path_factory.mktemp("seeds"), SCHEMA, *forums, *persons, *members, *heads)


@pytest.fixture(autouse=True)
def blocks_run_once(monkeypatch):
    monkeypatch.setattr(pattern_optimizer, "_ONCE_SHARE", float("inf"))


def text(block: str, inner: str = "", forums: str = FEW) -> str:
    returned = "count(id($m)) as members" if block == OPTIONAL else "count($f) as strangers"
    clauses = block.replace("BLOCK", inner)
    return (
        f"query q() {{ match {{ $f: Forum {forums} }} with {{ $f, count($f) as $n }}"
        f" match {{ $p: Person {clauses} }} return {{ $p.name as name, {returned} }} order {{ name }} }}"
    )


@pytest.mark.parametrize("inner", ["", "$f.size > 0", "$g moderates $p", "$f moderates $x  $x.name != $p.name"])
@pytest.mark.parametrize("block", [OPTIONAL, WITHOUT])
def test_rows_are_those_of_a_run_for_all_nodes(graph, tune, block, inner):
    tune(seeded_rows_min=10**9)
    expected = graph.query(text(block, inner)).to_pylist()
    assert "plan changed" not in graph.profile(text(block, inner))
    tune(seeded_rows_min=1_000)
    assert graph.query(text(block, inner)).to_pylist() == expected
    assert "plan changed: $f has 3 nodes" in graph.profile(text(block, inner))


@pytest.mark.parametrize("block", [OPTIONAL, WITHOUT])
def test_all_nodes_are_matched_if_the_outer_variables_have_many(graph, tune, block):
    tune(seeded_rows_min=1_000)
    assert "plan changed" not in graph.profile(text(block, forums="$f.size >= 0"))


def test_profile_estimates_a_block_from_its_given_nodes(graph, tune):
    tune(seeded_rows_min=1_000)
    lines = graph.profile(text(OPTIONAL)).splitlines()
    (line,) = [one for one in lines if "plan changed" in one]
    assert line.split()[:3] == ["expand", "$f", "-$m:Member->"]
    assert line.split()[5:7] == ["90", "~90"]
