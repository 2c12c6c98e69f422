"""Kernels and numpy fallbacks give the same results; a single query loads no kernels."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.engine import kernels, tuning
from omnigraph.engine.adjacency.csr import build
from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.cache.segments import SegmentView
from omnigraph.engine.exec.binding_table import Binding
from omnigraph.engine.exec.column_aggregates import column_aggregate
from omnigraph.engine.search import inverted_index, vector_scan
from omnigraph.engine.search.inverted_index import TextIndex, build_inverted_index
from omnigraph.engine.search.vector_codes import VectorQuery
from omnigraph.errors import InputError
from support.writes import new_graph, node


def block(seed: int, dim: int) -> tuple[vector_scan.VectorBlock, np.ndarray]:
    """Random vectors: some equal, some multiples, some missing, some of length zero, some of the largest floats."""
    random = np.random.default_rng(seed)
    pool = random.standard_normal((300, dim)).astype(np.float32)
    pool[:20] *= np.float32(1e-38)
    pool[20:40] *= np.float32(1e37)
    pool[40:60] = pool[60] + random.standard_normal((20, dim)).astype(np.float32) * np.float32(1e-6)
    pool[60:64] = 0
    chosen = pool[random.integers(0, len(pool), 2_000)]
    missing = random.random(len(chosen)) < 0.1
    column = pa.array(
        [None if gone else row.tolist() for row, gone in zip(chosen, missing, strict=True)],
        pa.list_(pa.float32(), dim),
    )
    return vector_scan._memory_block([column], dim), pool


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("seed", "dim"), [(1, 1), (2, 3), (3, 32), (4, 130)])
def test_excluded_vectors_are_never_among_the_nearest(kernel_loader, compiled, seed, dim):
    if compiled:
        assert kernels.load()
    made, pool = block(seed, dim)
    whole = vector_scan.VectorColumn(SegmentView((made,), (0,)))
    random = np.random.default_rng(seed)
    for query in [
        VectorQuery.of(row.astype(np.float64)) for row in (*pool[[0, 25, 45, 200]], random.standard_normal(dim))
    ]:
        for rows in (None, np.sort(random.choice(2_000, 700, replace=False)), random.integers(0, 2_000, 700)):
            numbers = np.arange(2_000) if rows is None else rows
            distances, known = whole.distances(query, numbers)
            for wanted in (1, 10, 600):
                last = np.sort(distances[known])[wanted - 1]
                found = made.candidates(query, rows, wanted)
                assert set(np.flatnonzero(known & (distances <= last)).tolist()) <= set(found.tolist())
                assert known[found].all()
                assert np.array_equal(found, np.unique(found))


def test_codes_exclude_most_vectors(kernel_loader):
    random = np.random.default_rng(1)
    matrix = random.standard_normal((20_000, 64)).astype(np.float32)
    made = vector_scan._measured(matrix, np.ones(len(matrix), bool))
    query = VectorQuery.of(random.standard_normal(64))
    assert len(made.candidates(query, None, 10)) < 100
    kernels.load()
    assert len(made.candidates(query, None, 10)) < 100


@pytest.mark.parametrize("seed", range(5))
def test_connected_pairs(kernel_loader, tune, seed):
    tune(batch_values=700)
    random = np.random.default_rng(seed)
    nodes, others, edges = 200, 300, 2_000 * seed
    csr = build(random.integers(0, nodes, edges), random.integers(0, others, edges) ** 2 // others, nodes)
    sources, targets = random.integers(0, nodes, 3_000), random.integers(-1, others + 1, 3_000)
    expected = csr.connected(sources, targets)
    near, far = csr.all_pairs()
    pairs = set(zip(near.tolist(), far.tolist(), strict=True))
    assert expected.tolist() == [pair in pairs for pair in zip(sources.tolist(), targets.tolist(), strict=True)]
    assert kernels.load()
    for step in (1, 2):
        # Every second number is not contiguous; 32 bits are converted.
        found = csr.connected(sources[::step], targets[::step].astype(np.int32))
        assert found.dtype == bool
        assert found.tolist() == expected[::step].tolist()


@pytest.mark.parametrize("node", [-1, 7])
def test_pairs_of_nodes_out_of_range_are_refused(kernel_loader, node):
    csr = build(np.array([0, 1]), np.array([1, 2]), 7)
    assert kernels.load()
    with pytest.raises(IndexError, match=f"node {node} is out of range: there are 7"):
        csr.connected(np.array([0, node]), np.array([1, 2]))


@pytest.mark.parametrize("seed", range(5))
def test_scores_and_best_scores(kernel_loader, seed):
    random = np.random.default_rng(seed)
    words = [f"w{at}" for at in range(30)]
    texts = [
        None if random.random() < 0.1 else " ".join(random.choice(words, random.integers(0, 9))) for _ in range(500)
    ]
    index = TextIndex(
        SegmentView((build_inverted_index([pa.array(texts[:200], pa.utf8()), pa.array(texts[200:], pa.utf8())]),), (0,))
    )
    asked = ["w1", "w2", "w3", "w1"]
    rows = random.integers(0, 500, 300)
    slow = index.bm25(asked)
    best_slow = {(w, r is None): inverted_index.best(slow, r, w) for w in (0, 1, 10, 1_000) for r in (None, rows)}
    own = slow[[3, 4, 5, 6, 7]]
    standing_slow = [inverted_index.rank_counts(slow, r, own) for r in (None, rows)]
    assert kernels.load()
    for r, (above, equal) in zip((None, rows), standing_slow, strict=True):
        found = inverted_index.rank_counts(slow, r, own)
        held = own > 0
        assert (found[0][held].tolist(), found[1][held].tolist()) == (above[held].tolist(), equal[held].tolist())
    assert standing_slow[0][0][own > 0].tolist() == [int((slow > score).sum()) for score in own if score > 0]
    fast = index.bm25(asked)
    assert fast.tolist() == slow.tolist(), "bit-identical, so ties are equal"
    for (wanted, whole), expected in best_slow.items():
        assert inverted_index.best(fast, None if whole else rows, wanted).tolist() == expected.tolist()
    top = np.sort(slow)[::-1][9]
    assert best_slow[10, True].tolist() == np.flatnonzero((slow >= top) & (slow > 0)).tolist()


def _moved_index(random: np.random.Generator) -> TextIndex:
    """An index of two segments whose rows moved or were deleted."""
    words = [f"w{at}" for at in range(40)]
    texts = [" ".join(random.choice(words, random.integers(0, 30))) for _ in range(3_000)]
    parts = tuple(build_inverted_index([pa.array(some, pa.utf8())]) for some in (texts[:1_900], texts[1_900:]))
    there = np.sort(random.choice(3_000, 2_500, replace=False))
    stored_of = random.permutation(there).astype(np.int32)
    row_of = np.full(3_000, -1, np.int32)
    row_of[stored_of] = np.arange(len(stored_of), dtype=np.int32)
    return TextIndex(SegmentView(parts, (0, 1_900), stored_of, row_of))


def _ranked(seed: int) -> list[bytes]:
    random = np.random.default_rng(seed)
    index = _moved_index(random)
    words = [f"w{at}" for at in random.permutation(40)[: random.integers(1, 40)]]
    scores, rows = index.bm25(words), np.concatenate([index.scored(words).rows, index.matching(words).nonzero()[0]])
    made, _ = block(seed, 17)
    whole, query = vector_scan.VectorColumn(SegmentView((made,), (0,))), VectorQuery.of(random.standard_normal(17))
    near = whole.candidates(query, None, 50)
    distances = whole.distances(query, near)[0]
    nearest = near[np.lexsort((near, distances))[:50]]
    return [scores.tobytes(), rows.tobytes(), nearest.tobytes(), whole.distances(query, nearest)[0].tobytes()]


@pytest.mark.parametrize("seed", range(10))
def test_scores_and_distances_have_the_same_bits_with_and_without_kernels(seed):
    found = []
    for compiled in (False, True):
        with kernels.isolated():
            assert not compiled or kernels.load()
            found.append(_ranked(seed))
    assert found[0] == found[1]


def test_distance_does_not_depend_on_other_rows():
    made, _ = block(3, 130)
    whole, query = (
        vector_scan.VectorColumn(SegmentView((made,), (0,))),
        VectorQuery.of(np.random.default_rng(1).standard_normal(130)),
    )
    together = whole.distances(query, np.arange(2_000))[0]
    alone = np.concatenate([whole.distances(query, np.array([row]))[0] for row in range(0, 2_000, 7)])
    assert together[::7].tobytes() == alone.tobytes()


def test_cached_kernels_load_when_the_fallbacks_took_as_long(kernel_loader):
    assert kernels.load()
    with kernels.isolated() as loader:
        loader.spend(tuning.current.kernel_load_s / 2)
        assert kernels.find("bm25") is None
        assert not loader.asked
        loader.spend(tuning.current.kernel_load_s)
        assert kernels.find("bm25") is not None
        assert kernels.find("vectors") is not None


def test_cached_kernels_load_before_a_long_fallback(kernel_loader):
    assert kernels.load()
    with kernels.isolated() as loader:
        assert kernels.find("vectors", tuning.current.kernel_load_s / 2) is None
        assert kernels.find("vectors", tuning.current.kernel_load_s * 2) is not None
        assert loader.spent_s == 0


@pytest.mark.parametrize("error", [ImportError, RuntimeError, OSError])
def test_queries_work_without_kernels(kernel_loader, monkeypatch, caplog, tmp_path, error):
    def refuse(name: str) -> object:
        raise error("no numba here")

    monkeypatch.setattr(kernels, "import_module", refuse)
    assert not kernels.load()
    assert "no compiled kernels: no numba here" in caplog.text
    assert kernels.find("bm25") is None
    rows = [node("Doc", name=f"d{at}", text="red", vec=[at, 1]) for at in range(5)]
    graph = new_graph(tmp_path, "node Doc { name: String @key  text: String  vec: Vector(2) }", *rows)
    rank = 'rrf(nearest($d.vec, [1, 0]), bm25($d.text, "red"))'
    text = f"query q() {{ match {{ $d: Doc }} return {{ $d.name }} order {{ {rank} }} limit 2 }}"
    assert [row["d.name"] for row in graph.query(text)] == ["d4", "d3"]


def test_single_query_does_not_import_numba(tmp_path):
    rows = [node("Doc", name=f"d{at}", text=f"red {at}", vec=[at, 1, 0]) for at in range(50)]
    graph = new_graph(tmp_path, "node Doc { name: String @key  text: String  vec: Vector(3) }", *rows)
    script = (
        "import sys, omnigraph as og; g = og.open(sys.argv[1]); "
        "q = 'query q() { match { $d: Doc } return { $d.name } "
        'order { rrf(nearest($d.vec, [1, 0, 0]), bm25($d.text, "red")) } limit 3 }\'; '
        "assert len(g.query(q)) == 3; assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script, graph.uri], check=True, timeout=60)


@pytest.mark.parametrize("compiled", [False, True])
def test_masked_sums_are_exact(kernel_loader, tune, compiled):
    if compiled:
        assert kernels.load()
    tune(batch_values=7)
    random = np.random.default_rng(5)
    for size, low, high in ((0, 0, 1), (1, -9, 9), (100, -(2**62), 2**62), (1_000, 0, 2**63 - 1), (33, -(2**63), 0)):
        values = random.integers(low, high, size)
        mask = random.random(size) < 0.6
        exact = sum(map(int, values[mask]))
        bound = Binding(MemoryTable({"v": pa.array(values)}, size), mask=mask)
        if not mask.any():
            assert column_aggregate("sum", bound, "v").to_pylist() == [None]
        elif -(2**63) <= exact < 2**63:
            assert column_aggregate("sum", bound, "v").to_pylist() == [exact]
        else:
            with pytest.raises(InputError, match="overflows"):
                column_aggregate("sum", bound, "v")
