"""Edges of nodes as arrays on the cluster, for algorithms that move nodes between groups.

A block has the edges of the nodes of one partition and one batch. Blocks are built once and stay on the executors. A
step is one job: its closure carries one value per node, each task decides on its blocks with the function of the
process, and the driver collects the nodes that change.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.algorithms.communities import Batching, Decision, NodeEdges
from omnigraph.engine.algorithms.edge_list import Floats, Symmetric, narrowed, sums_by
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.spark.algorithms.edge_frames import EdgeFrames
from omnigraph.spark.arrow_interop import spark_ddl
from omnigraph.spark.runner import prepare_worker

BLOCK_EDGES = 1 << 19
"""The number of edges of a task, in both directions."""
_NUMBERS, _FLOATS = ("nodes", "degrees", "targets"), ("strengths", "loops", "weights")
_BLOCK = pa.schema([("batch", pa.int32()), *((name, pa.binary()) for name in (*_NUMBERS, *_FLOATS))])
_NO_EDGES = [np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)]
_Rows = dict[str, np.ndarray[Any, Any]]


class EdgeBlocks:
    """A graph on the cluster whose nodes move in batches."""

    def __init__(self, graph: EdgeFrames, batching: Batching) -> None:
        f = graph.f
        self._graph = graph
        self.count = graph.count
        self.batches = batching.batches(graph.count)
        ends = graph.edges.select("s", "d", "w")
        both = ends.unionAll(ends.select(f.col("d").alias("s"), f.col("s").alias("d"), "w"))
        parts = max(1, -(-2 * graph.edge_count // BLOCK_EDGES))
        build = _BuildBlocks(narrowed(batching.of(graph.count), graph.count))
        self._blocks = graph.checkpoint(both.repartition(parts, "s").mapInArrow(build, spark_ddl(_BLOCK)), "blocks")
        found = self._run("strengths", _strengths, "n long, strength double, loop double")
        self.strengths, self._loops = np.zeros(self.count), np.zeros(self.count)
        self.strengths[found["n"]] = found["strength"]
        self._loops[found["n"]] = found["loop"]

    def moves(self, batch: int, decide: Decision) -> tuple[Numbers, Numbers]:
        """Return the moves of the nodes of a batch: one job."""
        found = self._run(f"batch {batch + 1}", _Moves(decide), "n long, g long", batch)
        return found["n"], found["g"]

    def within(self, groups: Numbers) -> float:
        """Return the weight of the edges within groups, in both directions."""
        found = self._run("modularity", _Within(narrowed(groups, self.count)), "w double")
        return float(found["w"].sum() + self._loops.sum())

    def merged(self, groups: Numbers) -> Symmetric:
        """Return the graph whose nodes are the groups; it must fit the driver."""
        found = self._run("level", _Merged(narrowed(groups, self.count)), "s long, d long, w double")
        count = int(groups.max()) + 1 if len(groups) else 0
        loops = sums_by(groups, self._loops, count)
        own = np.flatnonzero(np.bincount(groups, weights=self._loops > 0, minlength=count))
        sources, targets = (np.concatenate([found[name], own]) for name in ("s", "d"))
        return Symmetric.summed(count, sources, targets, np.concatenate([found["w"], loops[own]]))

    def _run(self, step: str, task: Callable[[_Block], _Rows], ddl: str, batch: int | None = None) -> _Rows:
        """Run a task on the blocks, or on those of a batch; return the columns of all results."""
        blocks = self._blocks if batch is None else self._blocks.filter(self._graph.f.col("batch") == batch)
        table = self._graph.table(blocks.mapInArrow(_OnBlocks(pickle.dumps(task), self.count), ddl), step)
        return {name: table[name].to_numpy() for name in table.column_names}


class _BuildBlocks:
    """Builds the blocks of a partition."""

    def __init__(self, batch_of: Numbers) -> None:
        self._batch_of = batch_of

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one row per batch of nodes. Like `Symmetric`, add up parallel edges and sort by the ends."""
        prepare_worker()
        count = len(self._batch_of)
        parts = [_NO_EDGES, *([column.to_numpy() for column in batch.columns] for batch in batches)]
        edges = Symmetric.summed(count, *(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        batch_of = self._batch_of[edges.sources]
        for number in np.unique(batch_of).tolist():
            chosen = batch_of == number
            sources, targets, weights = edges.sources[chosen], edges.targets[chosen], edges.weights[chosen]
            nodes, owners = np.unique(sources, return_inverse=True)
            strengths = sums_by(owners, weights, len(nodes))
            loop = sources == targets
            loops = sums_by(owners[loop], weights[loop], len(nodes))
            degrees = np.bincount(owners[~loop], minlength=len(nodes))
            rest = weights[~loop]
            numbers = [narrowed(one, count) for one in (nodes, degrees, targets[~loop])]
            floats = [strengths, loops, rest[:0] if (rest == 1.0).all() else rest]
            columns = [[number], *([one.tobytes()] for one in (*numbers, *floats))]
            yield pa.record_batch(
                [pa.array(one, field.type) for one, field in zip(columns, _BLOCK, strict=True)], schema=_BLOCK
            )


class _OnBlocks:
    """Runs a pickled task on blocks and yields the rows that it returns."""

    def __init__(self, task: bytes, count: int) -> None:
        self._task = task
        self._kind = narrowed(np.zeros(0, np.int64), count).dtype

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the results of the blocks of a partition."""
        prepare_worker()
        task = pickle.loads(self._task)  # noqa: S301 (made by the driver of this job)
        for batch in batches:
            for row in range(batch.num_rows):
                found = task(_block(batch.slice(row, 1), self._kind))
                yield pa.record_batch([pa.array(column) for column in found.values()], names=list(found))


@dataclass(frozen=True)
class _Block:
    """The edges of some nodes, and the weight of the loop of each."""

    edges: NodeEdges
    loops: Floats


def _block(row: pa.RecordBatch, kind: Any) -> _Block:
    """Return the arrays of a row."""
    nodes, degrees, targets = (np.frombuffer(row[name][0].as_buffer(), kind) for name in _NUMBERS)
    strengths, loops, weights = (np.frombuffer(row[name][0].as_buffer(), np.float64) for name in _FLOATS)
    owners = np.repeat(np.arange(len(nodes)), degrees)
    if not len(weights):
        weights = np.ones(len(owners))
    return _Block(NodeEdges(nodes.astype(np.int64), strengths, owners, targets, weights), loops)


def _strengths(block: _Block) -> _Rows:
    return {"n": block.edges.nodes, "strength": block.edges.strengths, "loop": block.loops}


class _Moves:
    """The moves of the nodes of a block."""

    def __init__(self, decide: Decision) -> None:
        self._decide = decide

    def __call__(self, block: _Block) -> _Rows:
        nodes, groups = self._decide(block.edges)
        return {"n": nodes, "g": groups.astype(np.int64, copy=False)}


class _Within:
    """The weight within groups of a block."""

    def __init__(self, groups: Numbers) -> None:
        self._groups = groups

    def __call__(self, block: _Block) -> _Rows:
        return {"w": np.array([block.edges.within(self._groups)])}


class _Merged:
    """The weights between groups of a block."""

    def __init__(self, groups: Numbers) -> None:
        self._groups = groups.astype(np.int64)

    def __call__(self, block: _Block) -> _Rows:
        edges = block.edges
        sources = self._groups[edges.nodes][edges.owners]
        count = int(self._groups.max()) + 1
        found = Symmetric.summed(count, sources, self._groups[edges.targets], edges.weights)
        return {"s": found.sources, "d": found.targets, "w": found.weights}
