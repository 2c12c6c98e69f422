"""Masks of many visibilities stay within the memory budget of a graph."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa

import omnigraph as og
from omnigraph.graph import Graph
from omnigraph.graph_handle import cache_of, context_of
from omnigraph.query.plan import ir
from omnigraph.query.visibility import ROW, Visibility

ROWS, DIGESTS = 200_000, 1_000
MIB = 1024**2
COUNT = "query q() { match { $r: Reading } return { count($r) as n, sum($r.value) as s } }"


def below(limit: int) -> Visibility:
    return Visibility({"node:Reading": ir.Compare("<", ir.Prop(ROW, "level", ir.I64), ir.Const(limit, ir.I64))})


def test_masks_of_many_visibilities_are_evicted(tmp_path):
    levels = np.arange(ROWS) % DIGESTS
    graph = og.init(tmp_path / "g.omni", "node Reading { level: I64  value: I64 }", sync=False)
    graph.load({"Reading": pa.table({"level": levels, "value": np.ones(ROWS, np.int64)})}, mode="append")
    opened = og.open(tmp_path / "g.omni", memory="64MiB")
    assert isinstance(opened, Graph)
    context, cache = context_of(opened), cache_of(opened)

    def count(limit: int) -> list[dict[str, int]]:
        return Graph(context.with_visibility(below(limit))).query(COUNT).to_pylist()

    each = ROWS // DIGESTS
    assert count(1) == [{"n": each, "s": each}]
    assert 2 * cache.bytes_max < DIGESTS * ROWS
    arrow = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        for limit in range(1, DIGESTS + 1):
            assert count(limit) == [{"n": each * limit, "s": each * limit}]
            assert cache.bytes <= cache.bytes_max
        held = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes() - arrow
    finally:
        tracemalloc.stop()
    # The masks are used: the last ones are in the cache, and nothing else holds those that were evicted.
    assert cache.bytes > cache.bytes_max // 2
    assert held <= cache.bytes_max + 8 * MIB
    assert count(1) == [{"n": each, "s": each}]
