"""Algorithms compared with networkx on random graphs with loops, parallel edges and separate parts."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.engine.algorithms.centrality import betweenness, closeness
from omnigraph.engine.algorithms.communities import label_propagation, louvain, modularity
from omnigraph.engine.algorithms.cores import core_numbers
from omnigraph.engine.algorithms.edge_list import EdgeList, Symmetric
from omnigraph.engine.algorithms.embeddings import walk_embeddings
from omnigraph.engine.algorithms.orders import CycleFound, topological_order
from omnigraph.engine.algorithms.similarity import similar_nodes
from omnigraph.engine.algorithms.trees import spanning_forest

ALL = {"samples": 10**9, "seed": 0}


@st.composite
def edge_lists(draw, weights=False):
    count = draw(st.integers(1, 14))
    ends = st.integers(0, count - 1)
    pairs = np.array(draw(st.lists(st.tuples(ends, ends), max_size=40)), np.int64).reshape(-1, 2)
    some = draw(st.lists(st.integers(0, 5), min_size=len(pairs), max_size=len(pairs))) if weights else None
    return EdgeList(count, pairs[:, 0], pairs[:, 1], None if some is None else np.array(some, float))


def library_graph(edges: EdgeList, kind):
    """Return the graph of networkx; without parallel edges, their weights are added up."""
    graph = kind()
    graph.add_nodes_from(range(edges.count))
    weights = np.ones(len(edges.sources)) if edges.weights is None else edges.weights
    for source, target, weight in zip(edges.sources.tolist(), edges.targets.tolist(), weights.tolist(), strict=True):
        if not graph.is_multigraph() and graph.has_edge(source, target):
            graph[source][target]["weight"] += weight
        else:
            graph.add_edge(source, target, weight=weight)
    return graph


def by_node(values: dict[int, float]) -> list[float]:
    return [values[node] for node in range(len(values))]


def of_library(graph) -> EdgeList:
    ends = np.array(graph.edges(), np.int64).reshape(-1, 2)
    return EdgeList(graph.number_of_nodes(), ends[:, 0], ends[:, 1])


@given(edge_lists(), st.booleans())
def test_centrality_from_every_node(edges, directed):
    graph = library_graph(edges, networkx.DiGraph if directed else networkx.Graph)
    between, samples = betweenness(edges, **ALL, directed=directed)
    assert between == pytest.approx(by_node(networkx.betweenness_centrality(graph)), abs=1e-12)
    near, _ = closeness(edges, **ALL, directed=directed)
    assert near == pytest.approx(by_node(networkx.closeness_centrality(graph)), abs=1e-12)
    assert samples == edges.count


def test_a_sample_estimates_centrality():
    graph = networkx.barabasi_albert_graph(400, 3, seed=1)
    edges = of_library(graph)
    for measure in (betweenness, closeness):
        exact, _ = measure(edges, **ALL, directed=False)
        sampled, samples = measure(edges, samples=100, seed=7, directed=False)
        assert samples == 100
        assert np.corrcoef(exact, sampled)[0, 1] > 0.97
        assert sampled.sum() == pytest.approx(exact.sum(), rel=0.1)
        assert np.array_equal(sampled, measure(edges, samples=100, seed=7, directed=False)[0])


@given(edge_lists())
def test_core_numbers(edges):
    graph = library_graph(edges, networkx.Graph)
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    assert core_numbers(edges).tolist() == by_node(networkx.core_number(graph))


@given(edge_lists())
def test_topological_order_or_a_cycle(edges):
    graph = library_graph(edges, networkx.DiGraph)
    try:
        positions, levels = topological_order(edges)
    except CycleFound as found:
        cycle = found.nodes
        assert all(graph.has_edge(node, cycle[(at + 1) % len(cycle)]) for at, node in enumerate(cycle))
        return
    assert sorted(positions.tolist()) == list(range(edges.count))
    assert (positions[edges.sources] < positions[edges.targets]).all()
    generations = {node: level for level, nodes in enumerate(networkx.topological_generations(graph)) for node in nodes}
    assert levels.tolist() == by_node(generations)


@given(edge_lists(weights=True))
def test_spanning_forest_of_least_weight(edges):
    chosen, weight = spanning_forest(edges)
    tree = networkx.minimum_spanning_tree(library_graph(edges, networkx.MultiGraph))
    assert weight == edges.weights[chosen].sum() == pytest.approx(tree.size(weight="weight"))
    kept = EdgeList(edges.count, edges.sources[chosen], edges.targets[chosen])
    assert networkx.is_forest(library_graph(kept, networkx.MultiGraph))
    assert chosen.sum() == tree.number_of_edges()


@given(edge_lists(weights=True))
def test_modularity_of_the_communities(edges):
    groups, reached, _ = louvain(edges, resolution=1.0)
    graph = library_graph(edges, networkx.Graph)
    if graph.size(weight="weight"):
        sets = [set(np.flatnonzero(groups == number).tolist()) for number in range(groups.max() + 1)]
        assert reached == pytest.approx(networkx.community.modularity(graph, sets), abs=1e-9)
        assert reached >= modularity(Symmetric.of(edges), np.arange(edges.count)) - 1e-9


GRAPHS = {
    "planted": networkx.planted_partition_graph(12, 50, 0.3, 0.01, seed=3),
    "scale free": networkx.barabasi_albert_graph(1_500, 4, seed=1),
    "small world": networkx.watts_strogatz_graph(1_000, 8, 0.05, seed=2),
    "club": networkx.Graph(networkx.karate_club_graph().edges()),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_communities_are_as_good_as_those_of_the_library(name):
    graph = networkx.convert_node_labels_to_integers(GRAPHS[name])
    groups, reached, levels = louvain(of_library(graph), resolution=1.0)
    theirs = networkx.community.modularity(graph, networkx.community.louvain_communities(graph, seed=1))
    assert reached >= 0.97 * theirs
    assert levels >= 1
    assert np.array_equal(groups, louvain(of_library(graph), resolution=1.0)[0])


def test_a_larger_resolution_gives_more_communities():
    edges = of_library(GRAPHS["planted"])
    counts = [louvain(edges, resolution=resolution)[0].max() for resolution in (0.1, 1.0, 8.0)]
    assert counts[0] < counts[1] < counts[2]


@given(edge_lists(weights=True))
def test_label_propagation_ends_at_labels_of_most_neighbours(edges):
    labels, rounds = label_propagation(edges, rounds_max=200)
    assert rounds < 200
    graph = Symmetric.of(edges)
    for node in range(edges.count):
        near = (graph.sources == node) & (graph.targets != node)
        weights = np.bincount(labels[graph.targets[near]], weights=graph.weights[near], minlength=labels.max() + 1)
        assert weights[labels[node]] == weights.max() or not near.any()


def test_label_propagation_finds_planted_groups():
    groups, _ = label_propagation(
        of_library(networkx.planted_partition_graph(4, 60, 0.5, 0.005, seed=5)), rounds_max=50
    )
    assert [len(set(groups[first : first + 60].tolist())) for first in range(0, 240, 60)] == [1, 1, 1, 1]
    assert groups.max() == 3


@given(edge_lists(), st.sampled_from(("out", "in", "both")), st.sampled_from(("jaccard", "cosine")))
def test_similarity_of_all_pairs(edges, direction, measure):
    graph = library_graph(edges, networkx.DiGraph)
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    lists = {"out": graph.succ, "in": graph.pred, "both": graph.to_undirected().adj}[direction]
    found = similar_nodes(edges, measure=measure, limit=100, least=0.0, degree_max=100, direction=direction)
    pairs = dict(zip(zip(found.nodes.tolist(), found.others.tolist(), strict=True), found.values.tolist(), strict=True))
    expected = {}
    for first in graph:
        for second in graph:
            one, other = set(lists[first]), set(lists[second])
            if first != second and one & other:
                size = len(one | other) if measure == "jaccard" else (len(one) * len(other)) ** 0.5
                expected[first, second] = len(one & other) / size
    assert pairs == pytest.approx(expected)


def test_the_most_similar_nodes_without_hubs():
    #  0 and 1 share 10, 11 and the hub 12; 2 shares only the hub with them.
    ends = [(0, 10), (0, 11), (1, 10), (1, 11), (0, 12), (1, 12), (2, 12), (3, 10)]
    edges = EdgeList(13, *np.array(ends, np.int64).T)
    given_ = {"measure": "jaccard", "least": 0.0, "direction": "out"}
    all_of = similar_nodes(edges, **given_, limit=10, degree_max=100)
    assert (all_of.hubs, len(all_of.nodes)) == (0, 10)
    fewer = similar_nodes(edges, **given_, limit=1, degree_max=2)
    assert (fewer.hubs, fewer.nodes.tolist(), fewer.others.tolist()) == (2, [0, 1], [1, 0])
    assert fewer.values.tolist() == [1.0, 1.0]


@given(edge_lists(weights=True))
def test_embeddings_project_the_probabilities_of_walks(edges):
    graph = library_graph(edges, networkx.MultiGraph)
    adjacency = networkx.to_numpy_array(graph, nodelist=range(edges.count), weight="weight")
    adjacency += np.diag(np.diag(adjacency))
    sums = adjacency.sum(axis=1, keepdims=True)
    walk = np.divide(adjacency, sums, out=np.zeros_like(adjacency), where=sums > 0)
    drawn = np.random.default_rng(3).integers(0, 6, (edges.count, 8))
    projection = np.sqrt(3) * ((drawn == 0) * 1.0 - (drawn == 1) * 1.0)

    def unit(vectors):
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)

    expected = unit(unit(walk @ projection) + 0.5 * unit(walk @ walk @ projection))
    assert walk_embeddings(edges, dimensions=8, steps=(1.0, 0.5), seed=3) == pytest.approx(expected, abs=1e-9)


def test_nodes_of_one_group_have_similar_vectors():
    vectors = walk_embeddings(of_library(GRAPHS["planted"]), dimensions=64, steps=(1.0, 1.0, 1.0), seed=0)
    near = vectors @ vectors.T
    same = np.arange(600)[:, None] // 50 == np.arange(600)[None, :] // 50
    assert near[same].mean() > 0.6 > 0.3 > abs(near[~same].mean())


EMPTY = EdgeList(0, np.zeros(0, np.int64), np.zeros(0, np.int64))


def test_an_empty_graph():
    assert len(betweenness(EMPTY, **ALL, directed=True)[0]) == len(closeness(EMPTY, **ALL, directed=True)[0]) == 0
    assert len(core_numbers(EMPTY)) == len(topological_order(EMPTY)[0]) == len(spanning_forest(EMPTY)[0]) == 0
    assert len(louvain(EMPTY, resolution=1.0)[0]) == len(label_propagation(EMPTY, rounds_max=5)[0]) == 0
    assert walk_embeddings(EMPTY, dimensions=4, steps=(1.0,), seed=0).shape == (0, 4)
    given_ = {"measure": "cosine", "least": 0.0, "direction": "both", "limit": 1, "degree_max": 2}
    assert len(similar_nodes(EMPTY, **given_).nodes) == 0
