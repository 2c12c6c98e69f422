"""Approximate nearest-neighbour search: recall, changes, filters, ties, damage, and the plan that names it."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.engine import kernels, tuning
from omnigraph.engine.cache import disk_cache, entry_checks, segments
from omnigraph.engine.cache.segments import SegmentView
from omnigraph.engine.search import cluster_calibration, cluster_lists, cluster_segments, clustering, vector_scan
from omnigraph.engine.search.cluster_lists import ClusterLists
from omnigraph.engine.search.cluster_segments import cluster
from omnigraph.engine.search.vector_codes import VectorQuery
from omnigraph.engine.search.vector_index import VectorIndex
from omnigraph.engine.search.vector_scan import VectorColumn
from omnigraph.errors import TypeCheckError
from omnigraph.graph import Graph

DIM = 16
SCHEMA = f"node Doc {{ name: String @key  n: I64  vec: Vector({DIM})? }}"
Vectors = np.ndarray[Any, np.dtype[np.float32]]


@pytest.fixture(autouse=True)
def _small(tune):
    """Lower the thresholds so that small tables have clusters on disk, and large steps are taken often."""
    tune(vector_index_rows_min=500, vector_disk_bytes_min=0, vector_exact_rows_max=20, vector_recall_queries=48)


def blobs(count: int, seed: int, dim: int = DIM, centers: int = 40, spread: float = 0.5) -> Vectors:
    """Vectors around centers that do not depend on the seed."""
    random = np.random.default_rng(seed)
    places = np.random.default_rng(99).normal(size=(centers, dim))
    return (places[random.integers(0, centers, count)] + spread * random.normal(size=(count, dim))).astype(np.float32)


def gaussian(count: int, seed: int, dim: int) -> Vectors:
    return np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)


def stretched(count: int, seed: int, dim: int) -> Vectors:
    """Vectors with a few long and many short axes."""
    return (gaussian(count, seed, dim) * np.arange(1, dim + 1) ** -0.8).astype(np.float32)


def column_of(vectors: Vectors, missing: Any = ()) -> VectorColumn:
    values = [None if at in missing else vector for at, vector in enumerate(vectors)]
    array = pa.array(values, pa.list_(pa.float32(), vectors.shape[1])) if missing else flat(vectors)
    return VectorColumn(SegmentView((vector_scan._memory_block([array], vectors.shape[1]),), (0,)))


def flat(vectors: Vectors) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])


def nearest(column: VectorColumn, query: VectorQuery, rows: Any, count: int) -> list[int]:
    distances = column.distances(query, rows)[0]
    return rows[np.lexsort((rows, distances))[:count]].tolist()


def recall_of(column: VectorColumn, index: VectorIndex, queries: Vectors, count: int = 10) -> tuple[float, float]:
    """(recall, share of the rows compared) of searches; an exact one compares all."""
    found, compared = [], []
    for vector in queries.astype(np.float64):
        query = VectorQuery.of(vector)
        expected = nearest(column, query, column.candidates(query, None, count), count)
        probed = index.probe(column, query, None, count)
        rows = np.arange(column.row_count) if probed is None else probed[0]
        assert len(rows) >= count
        found.append(len(set(nearest(column, query, rows, count)) & set(expected)) / count)
        compared.append(1.0 if probed is None else probed[2] / column.row_count)
    return float(np.mean(found)), float(np.mean(compared))


# -- recall ------------------------------------------------------------------------------------------


CASES = {
    "clustered": (blobs, DIM, 0.1),
    "clustered, many dimensions": (blobs, 96, 0.1),
    "stretched": (stretched, 32, 0.6),
    "random, few dimensions": (gaussian, 4, 0.3),
    "random, many dimensions": (gaussian, 64, 1.0),
}


@pytest.mark.parametrize("case", CASES)
def test_recall(case):
    make, dim, compared_max = CASES[case]
    column = column_of(make(6_000, 1, dim))
    lists = cluster(column, dim, None)
    assert lists.recall >= cluster_calibration.RECALL_MIN
    recall, compared = recall_of(column, VectorIndex(SegmentView((lists,), (0,))), make(60, 2, dim))
    assert recall >= 0.93
    assert compared <= compared_max


def test_queries_far_from_all_clusters_are_answered_as_well():
    column = column_of(blobs(6_000, 1, 64))
    index = VectorIndex(SegmentView((cluster(column, 64, None),), (0,)))
    recall, _ = recall_of(column, index, gaussian(60, 3, 64))
    assert recall >= 0.93


def sphere(count: int, seed: int, dim: int) -> Vectors:
    vectors = gaussian(count, seed, dim)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def repeated(count: int, seed: int, dim: int) -> Vectors:
    """Vectors that are equal to three others on average."""
    return blobs(count // 4 + 1, seed, dim)[np.random.default_rng(seed).integers(0, count // 4 + 1, count)]


def with_outliers(count: int, seed: int, dim: int) -> Vectors:
    """Clusters, some vectors that are far from all of them, others that are very long or short, and zero vectors."""
    vectors = blobs(count, seed, dim)
    vectors[::50] = gaussian(len(vectors[::50]), seed, dim)
    vectors[1::50] *= np.float32(1e15)
    vectors[2::50] *= np.float32(1e-15)
    vectors[3::50] = 0
    return vectors


DISTRIBUTIONS = {
    "clusters": blobs,
    "one cluster": partial(blobs, centers=1, spread=0.05),
    "clusters of different sizes": lambda count, seed, dim: np.sort(blobs(count, seed, dim), axis=0) ** 3,
    "sphere": sphere,
    "stretched": stretched,
    "repeated vectors": repeated,
    "two vectors": lambda count, _, dim: np.eye(dim, dtype=np.float32)[np.arange(count) % 2],
    "zero vectors": lambda count, _, dim: np.zeros((count, dim), np.float32),
    "outliers": with_outliers,
}


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("case", DISTRIBUTIONS)
def test_recall_of_each_kind_of_query(case, filtered, changed):
    """Queries like the rows, between them and far from all find enough of the nearest; no result is too short."""
    dim, count = 12, 5_000
    vectors = DISTRIBUTIONS[case](count, 1, dim)
    column, lists = column_of(vectors), cluster(column_of(vectors), dim, None)
    rows = np.arange(count)
    view = SegmentView((lists,), (0,))
    if changed:
        # A third of the stored rows was deleted; the others have new numbers.
        live = np.flatnonzero(rows % 3)
        row_of = np.full(count, -1, np.int32)
        row_of[live] = np.arange(len(live))
        view = SegmentView((lists,), (0,), live.astype(np.int32), row_of)
        column, rows = column_of(vectors[live]), np.arange(len(live))
    index = VectorIndex(view)
    numbers = rows[rows % 5 > 0] if filtered else None
    near = DISTRIBUTIONS[case](20, 2, dim)
    for queries in (near, (near + near[::-1]) / 2, gaussian(20, 3, dim)):
        found = []
        for vector in queries.astype(np.float64):
            query = VectorQuery.of(vector)
            chosen = rows if numbers is None else numbers
            expected = np.sort(column.distances(query, chosen)[0])[:10]
            probed = index.probe(column, query, numbers, 10)
            positions = np.arange(len(chosen)) if probed is None else probed[0]
            assert len(np.unique(positions)) == len(positions) >= 10
            distances = np.sort(column.distances(query, chosen[positions])[0])[:10]
            found.append(np.count_nonzero(distances <= expected[-1]) / 10)
        assert np.mean(found) >= 0.93


def test_zero_vectors_do_not_hide_the_rows_of_a_cluster():
    vectors = blobs(6_000, 1, 32, spread=0.2)
    vectors[::10] = 0
    column = column_of(vectors)
    lists = cluster(column, 32, None)
    index = VectorIndex(SegmentView((lists,), (0,)))
    for rows in np.split(lists.rows, lists.offsets[1:-1]):
        near = vectors[rows[vectors[rows].any(axis=1)][:5]]
        assert not len(near) or recall_of(column, index, near)[0] >= 0.7


@pytest.mark.parametrize("filtered", [False, True])
def test_a_segment_without_clear_clusters_is_searched_as_well_beside_a_large_one(filtered):
    """The recall of a segment, of which all searches alone are exact, also holds if it has few of the rows."""
    large, small = blobs(12_000, 1, 32, centers=150, spread=0.2), gaussian(2_000, 5, 32)
    column = column_of(np.concatenate([large, small]))
    lists = tuple(cluster(column_of(part), 32, None) for part in (large, small))
    index = VectorIndex(SegmentView(lists, (0, 12_000)))
    numbers = np.arange(0, 14_000, 3) if filtered else None
    rows = np.arange(14_000) if numbers is None else numbers
    found = []
    for vector in gaussian(40, 7, 32).astype(np.float64):
        query = VectorQuery.of(vector)
        probed = index.probe(column, query, numbers, 10)
        positions = np.arange(len(rows)) if probed is None else probed[0]
        expected = nearest(column, query, rows, 10)
        found.append(len({*nearest(column, query, rows[positions], 10)} & {*expected}) / 10)
    assert np.mean(found) >= 0.93


def test_appended_rows_are_scanned_beside_the_clusters():
    vectors, added = blobs(4_000, 1), blobs(300, 2)
    column = column_of(np.concatenate([vectors, added]))
    lists = (cluster(column_of(vectors), DIM, None), cluster_lists.without_clusters(300, DIM))
    index = VectorIndex(SegmentView(lists, (0, 4_000)))
    for at in range(0, 300, 30):
        query = VectorQuery.of(added[at].astype(np.float64))
        for numbers in (None, np.arange(at % 7, 4_300, 3)):
            probed = index.probe(column, query, numbers, 10)
            assert probed is not None
            hits = (np.arange(4_300) if numbers is None else numbers)[probed[0]]
            assert (4_000 + at in hits) == (numbers is None or (4_000 + at - at % 7) % 3 == 0)


@pytest.mark.parametrize("case", ["clusters", "sphere", "stretched", "repeated vectors"])
def test_rows_are_in_the_nearest_cluster(case):
    """The comparison with the centroids of a group finds the nearest centroid of almost every row."""
    vectors = DISTRIBUTIONS[case](8_000, 1, DIM)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    def units(rows):
        return vectors[rows], np.ones(len(rows), bool)

    centroids = clustering.compute_centroids(units, len(vectors), DIM, np.random.default_rng(1))
    labels, similarities = clustering.assign_rows(units, len(vectors), centroids)
    products = vectors @ centroids.centroids.T
    assert np.allclose(similarities, products[np.arange(len(vectors)), labels], atol=1e-5)
    lost = products.max(axis=1) - similarities
    assert np.mean(lost > 1e-5) < 0.1
    assert lost.mean() < 0.005


def test_lists_contain_the_codes_of_their_rows():
    vectors = blobs(2_000, 1)
    column = column_of(vectors, missing={3, 5})
    lists = cluster(column, DIM, np.arange(0, 2_000, 2))
    block = column.view.bodies[0]
    for name in ("codes", "scales", "errors"):
        assert np.array_equal(getattr(lists.codes, name), getattr(block, name)[lists.rows * 2])


@pytest.mark.parametrize("count", [1, 3, 50])
def test_recall_of_other_limits(count):
    column = column_of(blobs(6_000, 1))
    index = VectorIndex(SegmentView((cluster(column, DIM, None),), (0,)))
    recall, _ = recall_of(column, index, blobs(60, 2), count)
    assert recall >= 0.93


def test_a_build_is_deterministic():
    column = column_of(blobs(2_000, 1))
    first, second = (cluster(column, DIM, None) for _ in range(2))
    assert first.rows.tobytes() == second.rows.tobytes()
    assert (first.reach, first.first, first.recall) == (second.reach, second.first, second.recall)


def test_every_row_with_a_vector_is_in_one_cluster():
    vectors = blobs(1_000, 1)
    vectors[7] = 0
    lists = cluster(column_of(vectors, missing={3, 5, 999}), DIM, None)
    assert sorted(lists.rows.tolist()) == sorted({*range(1_000)} - {3, 5, 999})


@pytest.mark.parametrize("vectors", [np.zeros((600, 3)), np.ones((600, 3)), np.repeat(np.eye(3), 200, axis=0)])
def test_few_distinct_vectors(vectors):
    column = column_of(vectors.astype(np.float32))
    index = VectorIndex(SegmentView((cluster(column, 3, None),), (0,)))
    query = VectorQuery.of(np.array([1.0, 0.5, 0.0]))
    probed = index.probe(column, query, None, 10)
    rows = np.arange(600) if probed is None else probed[0]
    assert nearest(column, query, rows, 10) == nearest(column, query, np.arange(600), 10)


def test_memory_of_the_centroids_is_bounded(tune):
    tune(vector_sample_bytes=50 * DIM * 4, vector_product_elements=64)
    vectors, asked = blobs(900, 1), []

    def units(rows):
        asked.append(len(rows))
        return vectors[rows] / np.linalg.norm(vectors[rows], axis=1, keepdims=True), np.ones(len(rows), bool)

    centroids = clustering.compute_centroids(units, 900, DIM, np.random.default_rng(1)).centroids
    assert centroids.shape == (14, DIM)
    assert sum(asked) == 50
    assert np.allclose(np.linalg.norm(centroids, axis=1), 1, atol=1e-5)


def test_kernels_and_fallback_choose_the_same_rows():
    column = column_of(blobs(4_000, 1, 24), missing={1, 2})
    lists = cluster(column, 24, None)
    index = VectorIndex(SegmentView((lists,), (0,)))
    found = []
    for compiled in (False, True):
        with kernels.isolated():
            assert not compiled or kernels.load()
            best = np.full(12, -np.inf, np.float32)
            query = VectorQuery.of(blobs(1, 5, 24)[0].astype(np.float64))
            near = column.near(query, np.arange(0, 4_000, 3), best, 0.7)
            probed = index.probe(column, query, None, 10)
            assert probed is not None
            parts = (*near, np.sort(best), probed[0])
            found.append(([part.tobytes() for part in parts], probed[1:]))
    assert found[0] == found[1]


def test_few_vectors_are_compared_in_full():
    column = column_of(blobs(6_000, 1, 256, centers=20, spread=1.0))
    index = VectorIndex(SegmentView((cluster(column, 256, None),), (0,)))
    queries = [VectorQuery.of(vector.astype(np.float64)) for vector in blobs(20, 2, 256, centers=20, spread=1.0)]
    full = [len(column.candidates(query, None, 10)) for query in queries]
    found = [index.probe(column, query, None, 10) for query in queries]
    assert sum(len(probed[0]) for probed in found if probed is not None) < sum(full) * 0.7
    assert found.count(None) < 5
    assert recall_of(column, index, blobs(40, 3, 256, centers=20, spread=1.0))[0] >= 0.93


# -- graphs ------------------------------------------------------------------------------------------


def documents(vectors: Vectors, start: int = 0) -> dict[str, pa.Table]:
    numbers = range(start, start + len(vectors))
    return {"Doc": pa.table({"name": [f"d{at}" for at in numbers], "n": pa.array(numbers), "vec": flat(vectors)})}


def new_graph(path: Path, vectors: Vectors, schema: str = SCHEMA) -> Graph:
    graph = og.init(path / "g", schema, sync=False, environ={})
    if len(vectors):
        graph.load(documents(vectors), mode="append")
    return graph


def text_of(match: str, rank: str, limit: int = 10) -> str:
    returned = "$d.name as name, nearest($d.vec, $v) as far"
    return (
        f"query q($v: Vector({DIM})) {{ match {{ {match} }} return {{ {returned} }} order {{ {rank} }} limit {limit} }}"
    )


def ask(graph: Graph, vector: Any, match: str = "$d: Doc", *, approx: bool = True, limit: int = 10) -> list[Any]:
    rank = "nearest($d.vec, $v, approx)" if approx else "nearest($d.vec, $v)"
    rows = graph.query(text_of(match, rank, limit), params={"v": np.asarray(vector).tolist()}).to_rows()
    return [(row["name"], row["far"]) for row in rows]


def agreement(graph: Graph, queries: Vectors, match: str = "$d: Doc", limit: int = 10) -> float:
    """Mean share of the exact rows that the approximate search finds; its rows are as many, in the exact order."""
    shares = []
    for vector in queries:
        exact = ask(graph, vector, match, approx=False, limit=limit)
        found = ask(graph, vector, match, limit=limit)
        assert len(found) == len(exact)
        assert [far for _, far in found] == sorted(far for _, far in found)
        assert dict(exact).items() >= {name: far for name, far in found if name in dict(exact)}.items()
        shares.append(len(set(found) & set(exact)) / max(len(exact), 1))
    return float(np.mean(shares))


def profile(graph: Graph, vector: Any, match: str = "$d: Doc", rank: str = "nearest($d.vec, $v, approx)") -> str:
    return str(graph.profile(text_of(match, rank), params={"v": np.asarray(vector).tolist()}))


def kinds(graph: Graph) -> list[str]:
    folder = graph._context.cache.folder
    assert folder is not None
    return sorted(disk_cache._open(path).about["what"][0] for path in folder.iterdir() if "-" in path.name)


def test_nearest_is_exact_unless_it_is_permitted(tmp_path):
    graph = new_graph(tmp_path, blobs(3_000, 1))
    ask(graph, blobs(1, 2)[0], approx=False)
    assert cluster_segments.CLUSTERS not in kinds(graph)
    assert "clusters" not in profile(graph, blobs(1, 2)[0], rank="nearest($d.vec, $v)")


def test_an_index_is_built_once_and_read_by_the_next_process(tmp_path):
    graph = new_graph(tmp_path, blobs(3_000, 1))
    assert "clusters of 'vec' built from 3,000 rows" in profile(graph, blobs(1, 2)[0])
    assert kinds(graph).count(cluster_segments.CLUSTERS) == 1
    again = og.open(graph.uri, read_only=True)
    text = profile(again, blobs(1, 2)[0])
    assert "clusters of 'vec' reused" in text
    assert "clusters probed" in text
    assert agreement(again, blobs(20, 3)) >= 0.93


def test_changes_are_seen_at_once(tmp_path, tune):
    """New and changed rows are found, deleted ones are not, and no result has too few rows."""
    tune(segment_rows_min=50)
    graph = new_graph(tmp_path, blobs(3_000, 1))
    assert agreement(graph, blobs(10, 4)) >= 0.93
    added = blobs(60, 5)
    graph.load(documents(added, 3_000), mode="append")
    assert ask(graph, added[9])[0][0] == "d3009"
    target = blobs(1, 6)[0]
    graph.mutate(
        f'query m($v: Vector({DIM})) {{ update Doc set {{ vec: $v }} where name = "d17" }}',
        params={"v": target.tolist()},
    )
    assert ask(graph, target)[0][0] == "d17"
    first = [name for name, _ in ask(graph, target, limit=30)]
    for name in first[:20]:
        graph.mutate("query m($n: String) { delete Doc where name = $n }", params={"n": name})
    found = ask(graph, target, limit=30)
    assert len(found) == 30
    assert not {name for name, _ in found} & set(first[:20])
    assert agreement(graph, blobs(10, 7)) >= 0.93
    assert agreement(og.open(graph.uri), blobs(10, 7)) >= 0.93


def test_many_new_rows_form_a_segment_of_their_own(tmp_path):
    graph = new_graph(tmp_path, blobs(3_000, 1))
    ask(graph, blobs(1, 2)[0])
    graph.load(documents(blobs(900, 8), 3_000), mode="append")
    assert "clusters of 'vec' extended by 900 rows" in profile(graph, blobs(1, 2)[0])
    assert kinds(graph).count(cluster_segments.CLUSTERS) == 2
    graph.load(documents(blobs(300, 9), 3_900), mode="append")
    assert "300 rows" in profile(graph, blobs(1, 2)[0]), "scanned by every search"
    assert kinds(graph).count(cluster_segments.CLUSTERS) == 2
    assert agreement(graph, blobs(20, 10)) >= 0.93


def test_rows_that_are_not_clustered_wait_for_no_other_build(tmp_path, tune, monkeypatch):
    graph = new_graph(tmp_path, blobs(3_000, 1))
    ask(graph, blobs(1, 2)[0])
    tune(vector_index_rows_min=100)
    graph.load(documents(blobs(200, 8), 3_000), mode="append")
    graph._context.cache.takes_turns = True
    monkeypatch.setattr(segments, "build_turn", lambda _: pytest.fail("a turn is taken, and nothing is kept"))
    assert "clusters of 'vec' extended by 200 rows" in profile(graph, blobs(1, 2)[0])


def test_clusters_survive_compaction(tmp_path):
    graph = new_graph(tmp_path, blobs(1_500, 1))
    graph.load(documents(blobs(1_500, 2), 1_500), mode="append")
    ask(graph, blobs(1, 3)[0])
    graph.mutate("query m() { delete Doc where n < 400 }")
    graph.optimize()
    assert agreement(graph, blobs(20, 4)) >= 0.93


@pytest.mark.parametrize("share", [2, 50, 400])
def test_a_filter_is_applied_before_the_search(tmp_path, share):
    graph = new_graph(tmp_path, blobs(4_000, 1))
    match = f"$d: Doc $d.n % {share} = 0"
    for vector in blobs(5, 2):
        assert all(int(name[1:]) % share == 0 for name, _ in ask(graph, vector, match))
    assert agreement(graph, blobs(20, 3), match) >= 0.93


def test_a_selective_filter_is_searched_exactly(tmp_path):
    graph = new_graph(tmp_path, blobs(4_000, 1))
    assert agreement(graph, blobs(20, 3), "$d: Doc $d.n < 100") == 1
    assert "exact: the clusters are not selective" in profile(graph, blobs(1, 2)[0], "$d: Doc $d.n < 100")


def test_ties_are_ranked_exactly(tmp_path):
    vectors = blobs(3_000, 1)
    vectors[::7] = vectors[0]
    graph = new_graph(tmp_path, vectors)
    assert ask(graph, vectors[0], limit=500) == ask(graph, vectors[0], approx=False, limit=500)
    assert ask(graph, vectors[0]) == ask(graph, vectors[0], approx=False)


@pytest.mark.parametrize("limit", [3_001, 10**12])
def test_a_limit_beyond_all_rows_needs_no_memory(tmp_path, limit):
    vectors = blobs(3_000, 1)
    graph = new_graph(tmp_path, vectors)
    assert ask(graph, vectors[0], limit=limit) == ask(graph, vectors[0], approx=False, limit=limit)


@pytest.mark.parametrize("seed", range(6))
def test_few_vectors_have_a_direction(tmp_path, seed):
    vectors = blobs(3_000, seed)
    vectors[np.random.default_rng(seed).random(3_000) > 0.002] = 0
    graph = new_graph(tmp_path, vectors)
    for vector in blobs(3, 9):
        assert ask(graph, vector, limit=3_000) == ask(graph, vector, approx=False, limit=3_000)
        assert len(ask(graph, vector)) == 10
    graph.optimize()


def test_rankings_before_the_rest_of_a_match(tmp_path):
    schema = SCHEMA + "\nnode Tag { name: String @key }\nedge About: Doc -> Tag"
    graph = new_graph(tmp_path, blobs(2_000, 1), schema)
    graph.load([{"type": "Tag", "data": {"name": "t"}}], mode="append")
    edges = [{"edge": "About", "from": f"d{at}", "to": "t"} for at in range(0, 2_000, 40)]
    graph.load(edges, mode="append")
    match = "$d: Doc $d about $t"
    assert agreement(graph, blobs(10, 3), match) >= 0.93
    assert len(ask(graph, blobs(1, 2)[0], match, limit=50)) == 50
    assert "exact: the clusters are not selective" in profile(graph, blobs(1, 2)[0], match)
    graph.load([{"edge": "About", "from": f"d{at}", "to": "t"} for at in range(2_000) if at % 40], mode="append")
    assert agreement(graph, blobs(10, 3), match) >= 0.93
    assert "clusters probed" in profile(graph, blobs(1, 2)[0], match)


def test_fusion(tmp_path):
    schema = f"node Doc {{ name: String @key  n: I64  vec: Vector({DIM})?  text: String? @index }}"
    graph = new_graph(tmp_path, blobs(2_000, 1), schema)
    graph.mutate('query m() { update Doc set { text: "red river" } where n < 30 }')
    vector = blobs(1, 2)[0]
    for approx in ("", ", approx"):
        text = text_of("$d: Doc", f'rrf(nearest($d.vec, $v{approx}), bm25($d.text, "river"))')
        assert len(graph.query(text, params={"v": vector.tolist()})) == 10
        assert f"rrf(nearest($d.vec, $v{approx}), bm25" in str(graph.explain(text))
    assert "clusters" in kinds(graph)


def test_unions(tmp_path):
    schema = f"""
        interface Thing {{ name: String  n: I64  vec: Vector({DIM})? }}
        node Doc implements Thing {{ @key(name) }}
        node Pic implements Thing {{ @key(name) }}
    """
    graph = og.init(tmp_path / "g", schema, sync=False, environ={})
    graph.load(documents(blobs(2_000, 1)), mode="append")
    pictures = documents(blobs(300, 2))["Doc"]
    graph.load({"Pic": pictures.set_column(0, "name", pa.array([f"p{at}" for at in range(300)]))}, mode="append")
    assert agreement(graph, blobs(20, 3), "$d: Thing") >= 0.93
    own = blobs(300, 2)[5]
    assert ask(graph, own, "$d: Thing")[0][0] == "p5"


@pytest.mark.parametrize("count", [0, 1, 9, 400])
def test_small_tables_are_searched_exactly(tmp_path, count):
    graph = new_graph(tmp_path, blobs(count, 1))
    vector = blobs(1, 2)[0]
    assert ask(graph, vector) == ask(graph, vector, approx=False)
    assert "exact: an index serves from 500 rows on" in str(
        graph.explain(text_of("$d: Doc", "nearest($d.vec, $v, approx)"))
    )


@pytest.mark.parametrize("vector", [[0.0] * DIM, [1e-300] * DIM])
def test_a_query_without_a_direction_is_answered_exactly(tmp_path, vector):
    graph = new_graph(tmp_path, blobs(1_000, 1))
    assert ask(graph, vector) == ask(graph, vector, approx=False)


def test_a_table_without_vectors(tmp_path):
    graph = new_graph(tmp_path, blobs(0, 1))
    graph.load([{"type": "Doc", "data": {"name": f"d{at}", "n": at}} for at in range(700)], mode="append")
    assert ask(graph, blobs(1, 2)[0]) == []


def test_a_graph_that_cannot_be_written_builds_no_index(tmp_path):
    graph = new_graph(tmp_path, blobs(2_000, 1))
    fixed = og.open(graph.uri, read_only=True)
    assert agreement(fixed, blobs(5, 2)) == 1
    explained = str(fixed.explain(text_of("$d: Doc", "nearest($d.vec, $v, approx)")))
    assert "exact: there are no clusters, and none can be kept" in explained


def test_clusters_that_cannot_be_kept_are_not_computed(tmp_path):
    """Otherwise every process would compute them again, in memory."""
    graph = new_graph(tmp_path, blobs(2_000, 1))
    folder = graph._context.cache.folder
    assert folder is not None
    shutil.rmtree(folder, ignore_errors=True)
    folder.write_text("a file")
    assert agreement(graph, blobs(5, 2)) == 1
    assert "exact: no clusters" in profile(graph, blobs(1, 2)[0])


def test_an_earlier_version_that_has_other_rows_is_searched_exactly(tmp_path):
    graph = new_graph(tmp_path, blobs(2_000, 1))
    earlier = graph.commits()[0].id
    graph.mutate("query m() { delete Doc where n < 1500 }")
    graph.load(documents(blobs(1_000, 2), 2_000), mode="append")
    graph.optimize()
    ask(graph, blobs(1, 3)[0])
    text, vector = text_of("$d: Doc", "nearest($d.vec, $v, approx)"), blobs(1, 4)[0]
    profiled = str(graph.profile(text, params={"v": vector.tolist()}, at=earlier))
    assert "exact: no clusters" in profiled
    assert "exact: there are no clusters, and none can be kept" in str(graph.explain(text, at=earlier))
    found = graph.query(text, params={"v": vector.tolist()}, at=earlier).to_rows()
    exact = graph.query(text.replace(", approx", ""), params={"v": vector.tolist()}, at=earlier).to_rows()
    assert found == exact


# -- damage ------------------------------------------------------------------------------------------


def changed(lists: ClusterLists, **arrays: Any) -> disk_cache.CacheEntry:
    facts = np.array([getattr(lists, name) for name in cluster_lists._FACTS], np.float64)
    sound = {name: getattr(lists, name) for name in ("centroids", "cosines", "offsets", "rows")}
    sound |= {name: getattr(lists.codes, name) for name in ("codes", "scales", "errors")}
    return disk_cache.CacheEntry({}, {**sound, "facts": facts, **arrays})


def test_damaged_entries_are_refused():
    lists = cluster(column_of(blobs(900, 1)), DIM, None)
    assert cluster_lists.read_lists(changed(lists), 900, dim=DIM).reach == lists.reach
    beyond, twice, order = lists.rows.copy(), lists.rows.copy(), lists.offsets.copy()
    beyond[3], twice[3], order[1] = 900, twice[4], order[2] + 1
    damages: list[dict[str, Any]] = [
        {"centroids": lists.centroids[:, :-1]},
        {"centroids": lists.centroids[:-1]},
        {"centroids": lists.centroids[:0]},
        {"cosines": lists.cosines[:-1]},
        {"cosines": lists.cosines.astype(np.float64)},
        {"offsets": lists.offsets[:-1]},
        {"offsets": order},
        {"rows": lists.rows[:-1]},
        {"rows": beyond},
        {"rows": twice},
        {"codes": lists.codes.codes[:, :-1]},
        {"codes": lists.codes.codes.astype(np.int16)},
        {"scales": lists.codes.scales[:-1]},
        {"errors": lists.codes.errors.astype(np.float64)},
        {"facts": np.zeros(5)},
        {"facts": np.array([0.1, 1, np.nan, 1, 1])},
        {"facts": np.array([0.1, lists.count + 1, 1, 1, 1])},
    ]
    for damage in damages:
        with pytest.raises(entry_checks.BadEntry):
            cluster_lists.read_lists(changed(lists, **damage), 900, dim=DIM)


# -- plans -------------------------------------------------------------------------------------------


def test_explain_names_index_probes_and_recall(tmp_path, tune):
    graph = new_graph(tmp_path, blobs(3_000, 1))
    text = text_of("$d: Doc", "nearest($d.vec, $v, approx)")
    assert "clusters of 'vec' to be built" in str(graph.explain(text))
    ask(graph, blobs(1, 2)[0])
    for opened, state in ((graph, "in memory"), (og.open(graph.uri), "on disk")):
        explained = str(opened.explain(text))
        assert f"46 clusters {state}: about " in explained
        assert "probed with " in explained
        assert "recall@10 " in explained
    ran = profile(graph, blobs(1, 2)[0])
    assert " of 46 clusters probed, " in ran
    assert " codes compared" in ran


def test_explain_recommends_an_index_for_large_tables(tmp_path, tune):
    graph = new_graph(tmp_path, blobs(600, 1))
    exact = text_of("$d: Doc", "nearest($d.vec, $v)")
    assert "approx" not in str(graph.explain(exact))
    tune(vector_recommend_rows=599)
    assert "exact over 600 rows: nearest(…, approx) searches an index" in str(graph.explain(exact))
    assert tuning.Tuning().vector_recommend_rows == 1_000_000


def test_plans_with_and_without_an_index_have_different_hashes(tmp_path):
    graph = new_graph(tmp_path, blobs(10, 1))
    ranks = ("nearest($d.vec, $v)", "nearest($d.vec, $v, approx)")
    assert len({graph.explain(text_of("$d: Doc", rank)).plan_hash for rank in ranks}) == 2


@pytest.mark.parametrize("word", ["all", "aproximate", "5", '"approx"', "$v"])
def test_the_third_argument_is_one_word(tmp_path, word):
    graph = new_graph(tmp_path, blobs(1, 1))
    with pytest.raises(TypeCheckError, match="the third argument of 'nearest' is the word 'approx'") as caught:
        graph.explain(text_of("$d: Doc", f"nearest($d.vec, $v, {word})"))
    assert caught.value.code == "T15"


def test_a_returned_distance_is_exact(tmp_path):
    graph = new_graph(tmp_path, blobs(1, 1))
    text = f"query q($v: Vector({DIM})) {{ match {{ $d: Doc }} return {{ nearest($d.vec, $v, approx) as far }} }}"
    with pytest.raises(TypeCheckError, match="'approx' belongs to a ranking in 'order'") as caught:
        graph.explain(text)
    assert caught.value.code == "T15"


# -- setting -----------------------------------------------------------------------------------------


def test_a_setting_permits_the_index_for_every_ranking(tmp_path):
    plain = new_graph(tmp_path, blobs(3_000, 1))
    exact = [ask(plain, vector, approx=False) for vector in blobs(5, 2)]
    graph = og.open(plain.uri, approximate=True)
    text = text_of("$d: Doc", "nearest($d.vec, $v)")
    assert "nearest($d.vec, $v, approx), best first" in str(graph.explain(text))
    assert "nearest($d.vec, $v) as far" in str(graph.explain(text)), "returned distances are exact"
    fused = text_of("$d: Doc", "rrf(nearest($d.vec, $v), nearest($d.vec, $v))")
    assert "rrf(nearest($d.vec, $v, approx), nearest($d.vec, $v, approx), 60)" in str(graph.explain(fused))
    assert "clusters probed" in profile(graph, blobs(1, 2)[0], rank="nearest($d.vec, $v)")
    assert exact == [ask(og.open(plain.uri), vector, approx=False) for vector in blobs(5, 2)]


def test_optimize_and_loads_build_the_index_where_it_is_permitted(tmp_path, tune):
    tune(segment_rows_min=50)
    plain = new_graph(tmp_path, blobs(1_000, 1))
    plain.optimize()
    assert cluster_segments.CLUSTERS not in kinds(plain)
    graph = og.open(plain.uri, approximate=True)
    graph.optimize()
    assert kinds(graph).count(cluster_segments.CLUSTERS) == 1
    assert "clusters of 'vec' reused" in profile(graph, blobs(1, 2)[0])
    graph.load(documents(blobs(900, 3), 1_000), mode="append")
    assert "clusters of 'vec' reused" in profile(graph, blobs(1, 2)[0])


def test_optimize_renews_an_index_that_a_query_built(tmp_path, tune):
    tune(segment_rows_min=50)
    graph = new_graph(tmp_path, blobs(1_000, 1))
    graph.load(documents(blobs(400, 2), 1_000), mode="append")
    ask(graph, blobs(1, 2)[0])
    graph.mutate("query m() { delete Doc where n < 100 }")
    graph.optimize()
    assert "clusters of 'vec' reused" in profile(graph, blobs(1, 2)[0])
