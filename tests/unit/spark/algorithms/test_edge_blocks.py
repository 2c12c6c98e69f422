"""Blocks of edges decide like the arrays of the process, on any division into partitions."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.engine.algorithms.communities import BatchedArrays, Batching, GainDecision, LabelDecision
from omnigraph.engine.algorithms.edge_list import EdgeList, Symmetric, sums_by
from omnigraph.spark.algorithms.edge_blocks import _BuildBlocks, _Merged, _Moves, _OnBlocks, _strengths, _Within


@st.composite
def weighted_graphs(draw: Any) -> EdgeList:
    count = draw(st.integers(1, 12))
    ends = st.integers(0, count - 1)
    rows = draw(st.lists(st.tuples(ends, ends, st.integers(0, 4)), max_size=40))
    sources, targets, weights = np.array(rows, np.int64).reshape(-1, 3).T
    return EdgeList(count, sources, targets, weights.astype(float))


def blocks_of(edges: EdgeList, batching: Batching, parts: int) -> pa.Table:
    """The blocks of edges that are divided by source."""
    build = _BuildBlocks(batching.of(edges.count).astype(np.int32))
    sources, targets = np.append(edges.sources, edges.targets), np.append(edges.targets, edges.sources)
    weights = np.append(edges.weights, edges.weights)
    rows = []
    for part in range(parts):
        own = sources % parts == part
        columns = [sources[own], targets[own], weights[own]]
        rows += list(build(iter([pa.record_batch([pa.array(one) for one in columns], names=["s", "d", "w"])])))
    return pa.Table.from_batches(rows) if rows else None


def run(blocks: pa.Table | None, task: Any, count: int) -> dict[str, list[Any]]:
    batches = iter([] if blocks is None else blocks.to_batches())
    found: dict[str, list[Any]] = {}
    for batch in _OnBlocks(pickle.dumps(task), count)(batches):
        for name in batch.schema.names:
            found.setdefault(name, []).extend(batch.column(name).to_pylist())
    return found


@settings(max_examples=50)
@given(weighted_graphs(), st.integers(1, 3), st.integers(1, 4), st.integers(1, 5))
def test_blocks_equal_arrays(edges: EdgeList, parts: int, batches: int, names: int) -> None:
    batching = Batching(batches, 0)
    graph = Symmetric.of(edges)
    arrays = BatchedArrays(graph, batching)
    blocks = blocks_of(edges, batching, parts)
    groups = np.arange(edges.count) % names
    found = run(blocks, _strengths, edges.count)
    strengths, loops = (
        sums_by(np.array(found.get("n", []), int), np.array(found.get(name, []), float), edges.count)
        for name in ("strength", "loop")
    )
    assert strengths.tolist() == graph.strengths.tolist()
    within = sum(run(blocks, _Within(groups), edges.count).get("w", []))
    assert within + loops.sum() == pytest.approx(graph.within(groups))
    level = run(blocks, _Merged(groups), edges.count)
    count = int(groups.max()) + 1
    ends = [np.append(np.array(level.get(name, []), int), groups) for name in ("s", "d")]
    merged = Symmetric.summed(count, *ends, np.append(np.array(level.get("w", []), float), loops))
    expected = graph.merged(groups)
    dense, dense_expected = np.zeros((count, count)), np.zeros((count, count))
    dense[merged.sources, merged.targets] = merged.weights
    dense_expected[expected.sources, expected.targets] = expected.weights
    assert dense.tolist() == dense_expected.tolist()
    total = float(graph.strengths.sum())
    decisions: list[Any] = [LabelDecision(groups)]
    decisions += [GainDecision.of(groups, graph.strengths, total, 1.0)] if total else []
    for decide in decisions:
        for batch in range(batches):
            own = None if blocks is None else blocks.filter(pa.array(np.asarray(blocks["batch"]) == batch))
            moves = run(own, _Moves(decide), edges.count)
            nodes, to = arrays.moves(batch, decide)
            pairs = sorted(zip(moves.get("n", []), moves.get("g", []), strict=True))
            assert pairs == list(zip(nodes.tolist(), to.tolist(), strict=True))
