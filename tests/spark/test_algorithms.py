"""Graph algorithms on Spark equal those in process."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from omnigraph.engine.algorithms.communities import Batching, label_propagation, louvain
from omnigraph.engine.algorithms.edge_list import EdgeList
from omnigraph.errors import InputError
from omnigraph.graph import Graph
from omnigraph.operations.analysis.input_graph import AnalysisTables, chosen_types, edge_list
from omnigraph.operations.analysis.request import AnalysisRequest
from omnigraph.spark.algorithms import edge_blocks
from omnigraph.spark.algorithms.communities import label_propagation as propagate_on_spark
from omnigraph.spark.algorithms.communities import louvain as louvain_on_spark
from omnigraph.spark.algorithms.edge_frames import EdgeFrames
from omnigraph.spark.scans import job_of

SCHEMA = """
node Person { name: String @key rank: F64? group: I64? inward: I64? }
node Place { name: String @key rank: F64? group: I64? inward: I64? }
edge Knows: Person -> Person { much: F64? }
edge Lives: Person -> Place
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    graph = og.init(tmp_path_factory.mktemp("spark") / "graph.omni", SCHEMA, sync=False, environ={})
    random = Random(11)
    people = [f"p{n}" for n in range(60)]
    records: list[dict[str, Any]] = [{"type": "Person", "data": {"name": name}} for name in people]
    records += [{"type": "Place", "data": {"name": f"p{n}"}} for n in range(5)]
    # A chain, a loop, parallel edges, a hub, and isolated nodes.
    pairs = [(f"p{n}", f"p{n + 1}") for n in range(20)] + [("p3", "p3"), ("p5", "p6"), ("p5", "p6")]
    pairs += [("p30", f"p{random.randint(31, 45)}") for _ in range(20)]
    much = [0, 0.5, 1, 2, None]
    records += [{"edge": "Knows", "from": a, "to": b, "data": {"much": random.choice(much)}} for a, b in pairs]
    records += [{"edge": "Lives", "from": f"p{n}", "to": f"p{n % 4}"} for n in range(25, 40)]
    graph.load(records, mode="append")
    # Node numbers skip deleted rows and continue in later fragments.
    graph.mutate('query q() { delete Person where name = "p50" }')
    graph.load([{"type": "Person", "data": {"name": "late"}}], mode="append")
    return graph


def same(one: og.Graph, spark: Any, algorithm: str, **options: Any) -> None:
    here = one.analyze(algorithm, **options)
    there = one.analyze(algorithm, engine="spark", spark=spark, **options)
    assert there.stats == here.stats
    assert list(there.tables) == list(here.tables)
    for name, table in here.tables.items():
        other = there.tables[name]
        assert other.schema == table.schema
        for column in table.column_names:
            if column in ("id", "from", "to"):
                assert other[column].equals(table[column])
            else:
                found, expected = (np.array(one[column].to_pylist(), float) for one in (other, table))
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 if expected.ndim > 1 else 1e-9)


def test_degrees(spark: Any, graph: Graph) -> None:
    same(graph, spark, "degrees")


def test_components(spark: Any, graph: Graph) -> None:
    same(graph, spark, "components")


def test_pagerank_by_weight(spark: Any, graph: Graph) -> None:
    same(graph, spark, "pagerank", edges=["Knows"], weight="much", damping=0.3)


@pytest.mark.long
def test_pagerank(spark: Any, graph: Graph) -> None:
    same(graph, spark, "pagerank")
    same(graph, spark, "pagerank", nodes=["Place"])


def test_cores(spark: Any, graph: Graph) -> None:
    same(graph, spark, "cores", edges=["Lives"])


@pytest.mark.long
def test_cores_of_a_chain(spark: Any, graph: Graph) -> None:
    same(graph, spark, "cores")


def test_similarity_without_hubs(spark: Any, graph: Graph) -> None:
    same(graph, spark, "similarity", edges=["Lives"], parameters={"degree_max": 3, "limit": 2, "least": 0.2})


@pytest.mark.long
def test_similarity(spark: Any, graph: Graph) -> None:
    same(graph, spark, "similarity", parameters={"direction": "both", "measure": "cosine"})


def test_label_propagation_of_few_nodes(spark: Any, graph: Graph) -> None:
    same(graph, spark, "label_propagation", weight="much", edges=["Knows"])


def test_label_propagation_in_batches(spark: Any, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_blocks, "BLOCK_EDGES", 32)
    frames, edges = both_forms(graph, spark, "Knows", weight="much")
    batching = Batching(2, 0)
    groups, rounds = label_propagation(edges, rounds_max=2, batching=batching)
    on_spark, rounds_on_spark = propagate_on_spark(frames, rounds_max=2, batching=batching)
    assert (on_spark.tolist(), rounds_on_spark) == (groups.tolist(), rounds)


def test_communities_in_batches(spark: Any, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_blocks, "BLOCK_EDGES", 32)
    frames, edges = both_forms(graph, spark, "Lives")
    given = {"resolution": 1.0, "batching": Batching(2, 0)}
    groups, modularity, levels = louvain(edges, **given)
    found = louvain_on_spark(frames, **given)
    assert (found[0].tolist(), found[2]) == (groups.tolist(), levels)
    assert found[1] == pytest.approx(modularity)


@pytest.mark.parametrize("algorithm", ["betweenness", "closeness"])
def test_centrality_from_a_sample(spark: Any, graph: Graph, algorithm: str) -> None:
    same(graph, spark, algorithm, edges=["Lives"], parameters={"samples": 12, "directed": False})


def test_topological_order(spark: Any, graph: Graph) -> None:
    same(graph, spark, "topological_order", edges=["Lives"])


def test_a_cycle_is_the_same_error(spark: Any, tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph.omni", SCHEMA, sync=False, environ={})
    people = [{"type": "Person", "data": {"name": name}} for name in "abcde"]
    pairs = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "b"), ("d", "e")]
    graph.load([*people, *({"edge": "Knows", "from": a, "to": b} for a, b in pairs)], mode="append")
    messages = []
    for engine in ("memory", "spark"):
        with pytest.raises(InputError, match="the edges form a cycle") as caught:
            graph.analyze("topological_order", edges=["Knows"], engine=engine)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_spanning_tree(spark: Any, graph: Graph) -> None:
    same(graph, spark, "spanning_tree", edges=["Knows"], weight="much")


def test_embeddings(spark: Any, graph: Graph) -> None:
    same(graph, spark, "embeddings", parameters={"dimensions": 3, "steps": [1, 0.5]}, edges=["Lives"])


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["betweenness", "closeness", "communities", "spanning_tree", "embeddings"])
def test_all_edges(spark: Any, graph: Graph, algorithm: str) -> None:
    same(graph, spark, algorithm)


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["communities", "label_propagation"])
def test_groups_of_many_nodes(spark: Any, tmp_path: Path, algorithm: str) -> None:
    """More nodes than move one at a time, in planted groups."""
    graph = og.init(tmp_path / "graph.omni", SCHEMA, sync=False, environ={})
    random = Random(3)
    people = [{"type": "Person", "data": {"name": f"p{n}"}} for n in range(300)]
    ends = [(n, 30 * (n // 30) + random.randrange(30)) for n in range(300) for _ in range(4)]
    ends += [(random.randrange(300), random.randrange(300)) for _ in range(100)]
    knows = [{"edge": "Knows", "from": f"p{a}", "to": f"p{b}"} for a, b in ends]
    graph.load([*people, *knows], mode="append")
    same(graph, spark, algorithm)


def both_forms(graph: Graph, spark: Any, edge: str, **options: Any) -> tuple[EdgeFrames, EdgeList]:
    """The input of algorithms on Spark and in process."""
    context = graph._context
    snapshot = context.repository.snapshot("main")
    nodes, edges = chosen_types(context.catalog(snapshot), AnalysisRequest("degrees", edges=[edge]))
    frames = EdgeFrames(spark, job_of(context.repository, snapshot), nodes, edges, **options)
    return frames, edge_list(AnalysisTables(context, snapshot), nodes, edges, options.get("weight"))


def test_invalid_weight_is_rejected(spark: Any, tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph.omni", SCHEMA, sync=False, environ={})
    graph.load([{"type": "Person", "data": {"name": "a"}}], mode="append")
    graph.load([{"edge": "Knows", "from": "a", "to": "a", "data": {"much": -1}}], mode="append")
    for engine in ("memory", "spark"):
        with pytest.raises(InputError, match=r"'Knows\.much' has values below zero or not finite"):
            graph.analyze("pagerank", edges=["Knows"], weight="much", engine=engine)


def test_values_are_written_as_one_commit(spark: Any, graph: Graph) -> None:
    commits = len(graph.commits())
    into = {"in_degree": "inward"}
    done = graph.analyze("degrees", write=into, engine="spark", spark=spark)
    assert len(graph.commits()) == commits + 1
    assert done.rows_written == sum(table.num_rows for table in done.tables.values())
    again = graph.analyze("degrees", write=into)
    assert again.rows_written == 0
