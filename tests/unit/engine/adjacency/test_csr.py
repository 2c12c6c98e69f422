"""Construction of CSR arrays, at once and in ranges of nodes."""

from __future__ import annotations

import numpy as np
import pytest

from omnigraph.engine.adjacency.csr import build, build_edge_rows


def edges(seed: int, nodes: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    near = np.minimum(random.zipf(1.5, count), nodes) - 1
    return near.astype(np.int32), random.integers(0, 7, count).astype(np.int32)


@pytest.mark.parametrize("at_once", [1, 5, 40, 1000])
@pytest.mark.parametrize("nodes", [1, 3, 50])
def test_structures_built_in_ranges_equal_the_definition(tune, nodes, at_once):
    tune(adjacency_sorted_edges=at_once)
    near, far = edges(nodes, nodes, 120)
    csr = build(near, far, nodes)
    rows = build_edge_rows(near, far, np.arange(120, dtype=np.int32), nodes)
    for node in range(nodes):
        there = np.flatnonzero(near == node)
        assert csr.far(np.array([node])).tolist() == sorted(set(far[there].tolist()))
        _, found, ends = rows.expand(np.array([node]))
        assert found.tolist() == there.tolist()
        assert ends.tolist() == far[there].tolist()


def test_no_edges_and_no_nodes():
    none = np.zeros(0, np.int32)
    assert build(none, none, 0).count == 0
    assert build(none, none, 3).offsets.tolist() == [0, 0, 0, 0]
    assert build_edge_rows(none, none, none, 2).offsets.tolist() == [0, 0, 0]
