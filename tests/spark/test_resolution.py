"""Entity resolution on Spark equals that of the process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

import omnigraph as og
from omnigraph.graph import Graph
from omnigraph.spark import resolution

SCHEMA = """
node Person {
    key: String @key
    name: String
    email: String?
    born: I32?
    tags: [String]?
    place: Vector(4)?
}
edge Knows: Person -> Person
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Persons in three fragments with deleted rows, some of them several times with other signs."""
    graph = og.init(tmp_path_factory.mktemp("resolution") / "g", SCHEMA, sync=False, environ={})
    random = Random(5)
    words = [f"{a}{b}" for a in "abcdefgh" for b in ("na", "bel", "éo", "ür")]
    for part in range(3):
        records: list[dict[str, Any]] = []
        for number in range(120):
            name = f"{random.choice(words)} {random.choice(words)} x{random.randrange(400)}"
            row: dict[str, Any] = {
                "name": name,
                "email": random.choice([None, "", f"{name.replace(' ', '.')}@{random.choice(words)}.example"]),
                "born": random.choice([None, 1980, 1990]),
                "tags": random.choice([None, [], random.sample(words, 2)]),
                "place": random.choice([None, [0, 0, 0, 0], [random.gauss(0, 1) for _ in range(4)]]),
            }
            records.append({"key": f"p{part}-{number}", **row})
            if number % 5 == 0:
                other = {**row, "name": f"  {name.upper()}!", "email": None} if number % 2 else {**row, "tags": ["new"]}
                records.append({"key": f"d{part}-{number}", **other})
        graph.load([{"type": "Person", "data": one} for one in records], mode="append")
    graph.load([{"edge": "Knows", "from": "p0-1", "to": "d1-0"}], mode="append")
    graph.mutate('query q() { delete Person where key = "p0-7" }')
    return graph


@pytest.mark.parametrize(
    "options",
    [
        {"by": ["name", "email", "born", "tags"], "similar": 0.6, "weights": {"name": 3}},
        {"by": ["place", "name"], "similar": 0.5, "block": 8},
        {"by": ["born"], "similar": 1.0},
    ],
)
def test_the_same_pairs(spark: Any, graph: Graph, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolution, "ROWS_PER_TASK", 150)
    here = graph.resolve("Person", **options, engine="memory")
    there = graph.resolve("Person", **options, spark=spark)
    assert (here.engine, there.engine) == ("memory", "spark")
    assert replace(there, engine="memory") == here
    # Two years are shared by too many rows to form a block.
    assert bool(here.pairs) == (options["by"] != ["born"])


def test_the_same_branch(spark: Any, graph: Graph) -> None:
    rows = []
    for engine in ("memory", "spark"):
        found = graph.resolve("Person", ["name", "email"], similar=0.9, into=f"resolve/{engine}", engine=engine)
        assert found.written is not None
        assert found.written.unified is not None
        assert found.written.unified.nodes == len(found.unify_pairs) > 0
        review = graph.on(f"resolve/{engine}")
        rows.append([sorted(map(str, review.to_arrow(name).to_pylist())) for name in ("Person", "Knows")])
    assert rows[0] == rows[1]


def test_a_table_without_rows(spark: Any, tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", SCHEMA, sync=False, environ={})
    found = graph.resolve("Person", ["name", "place"], engine="spark", spark=spark)
    assert (found.engine, found.compared, found.pairs) == ("spark", 0, ())
