"""Runs the operation that binds paths: which nodes to start from, and which rows get which path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from omnigraph.engine.data import Numbers
from omnigraph.engine.distances import Wanted
from omnigraph.engine.frames import Bound, Frame
from omnigraph.engine.neighbours import NONE, Walkable, ranges
from omnigraph.engine.path_data import Floats, MeasuredPaths, PathData, Space
from omnigraph.engine.shortest import Shortest
from omnigraph.engine.simple_paths import Ends, SimplePaths, turned
from omnigraph.engine.trails import TURNED, Trails, add_exactly, weights_of
from omnigraph.engine.watch import say
from omnigraph.engine.work import Work
from omnigraph.query import ir

Candidates = Callable[[ir.PathStep], Numbers]
"""The nodes a step may end at."""


@dataclass(frozen=True)
class Found:
    """Paths, by what the rows that have them are told; and for each path the nodes it binds."""

    data: PathData
    keys: Numbers
    nodes: dict[str, Numbers]


class PathFinder:
    """Runs one `FindPaths`."""

    def __init__(self, work: Work, op: ir.FindPaths, candidates: Candidates) -> None:
        self._work = work
        self._op = op
        self._candidates = candidates
        types = dict.fromkeys([op.src_type, *(step.dst_type for step in op.steps)])
        nodes = [work.catalog.nodes[name] for name in types]
        self._nodes = Space([(node, work.table(node.table_key)) for node in nodes])
        followed = [work.catalog.edges[name] for name in op.edge_types]
        self._edges = Space([(edge, work.table(edge.table_key)) for edge in followed])

    def run(self, frame: Frame, passing: Callable[[Bound], Numbers | None]) -> Frame:
        """Each row with every path it has; `passing` tells which paths are wanted for themselves."""
        op = self._op
        rows, found = self._every(frame) if op.kind == "path" else self._shortest(frame)
        kept = passing(Bound(found.data))
        kept = np.arange(len(found.keys)) if kept is None else kept
        order = kept[np.argsort(found.keys[kept], kind="stable")]
        known = found.keys[order]
        starts = np.searchsorted(known, rows, side="left")
        counts = np.searchsorted(known, rows, side="right") - starts
        self._work.room(int(counts.sum()))
        result = frame.take(np.repeat(np.arange(frame.count), counts))
        numbers = order[ranges(starts, counts)]
        for var, nodes in found.nodes.items():
            result = result.bind(var, self._work.table(f"node:{self._type_of(var)}"), nodes[numbers])
        return result.bind(op.var, found.data, numbers)

    def _type_of(self, var: str) -> str:
        return next(step.dst_type for step in self._op.steps if step.dst_var == var)

    # -- every path ------------------------------------------------------------------------------

    def _every(self, frame: Frame) -> tuple[Numbers, Found]:
        """Rows that agree in what is bound have the same paths: each combination is tried once."""
        op = self._op
        columns = np.column_stack([frame.bound[name].numbers for name in op.bound_vars])
        combinations, rows = np.unique(columns, axis=0, return_inverse=True)
        bound = dict(zip(op.bound_vars, combinations.T, strict=True))
        simple = SimplePaths(self._work, self._nodes, self._edges)
        batches = simple.start(op.src_type, combinations[:, 0])
        for steps in (op.ahead, op.back):
            near = op.src_type
            for step in steps:
                batches = simple.follow(batches, near, step, self._ends(step, bound))
                near = step.dst_type
            batches = turned(batches)
        stops = {step.dst_var: at for at, step in enumerate(op.steps) if not step.dst_bound}
        nodes = {var: _joined([batch.stops[:, at] for batch in batches]) for var, at in stops.items()}
        data = PathData(self._nodes, self._edges, batches)
        return rows.ravel(), Found(data, _joined([batch.owners for batch in batches]), nodes)

    def _ends(self, step: ir.PathStep, bound: dict[str, Numbers]) -> Ends:
        if step.dst_bound:
            return Ends(of_owner=bound[step.dst_var])
        if not step.filters:
            return Ends()
        allowed = np.zeros(self._work.table(f"node:{step.dst_type}").row_count, bool)
        allowed[self._candidates(step)] = True
        return Ends(allowed)

    # -- shortest paths --------------------------------------------------------------------------

    def _shortest(self, frame: Frame) -> tuple[Numbers, Found]:
        """Walks from the side with fewer nodes, unless sums depend on it: they are made from the start of a path on."""
        op = self._op
        (step,) = op.steps
        near = frame.bound[op.src_var].numbers
        far = frame.bound[step.dst_var].numbers if step.dst_bound else None
        sources, targets = np.unique(near), self._targets(step, far)
        weights = weights_of(self._work, self._edges, op.by) if op.by is not None else None
        if weights is None or add_exactly(weights, step.max_hops):
            turn = targets is not None and len(targets) < len(sources)
        else:
            turn = bool(op.back)
        if turn and targets is None:
            targets = self._reaching(step, sources)
        pairs = None if far is None else np.unique(np.column_stack([near, far]), axis=0)
        from_end = turn != bool(op.back)
        if turn:
            assert targets is not None
            sources, targets, pairs = targets, sources, None if pairs is None else pairs[:, ::-1]
        starts, ends, data = self._walk(sources, targets, pairs, weights, turn=turn, from_end=from_end)
        ours, theirs = (ends, starts) if turn else (starts, ends)
        if far is None:
            return near, Found(data, ours, {step.dst_var: theirs})
        width = self._work.table(f"node:{step.dst_type}").row_count
        return near * width + far, Found(data, ours * width + theirs, {})

    def _targets(self, step: ir.PathStep, far: Numbers | None) -> Numbers | None:
        """The far ends that are asked for; None when all are."""
        if far is not None:
            return np.unique(far)
        return self._candidates(step) if step.filters else None

    def _reaching(self, step: ir.PathStep, sources: Numbers) -> Numbers:
        """The nodes a path to one of the sources can start from."""
        edge_type, *also = step.edge_types
        neighbours = self._work.adjacency(edge_type, tuple(also)).neighbours(step.direction)
        reached = np.zeros(self._work.table(f"node:{step.dst_type}").row_count, bool)
        frontier = sources
        for _ in range(step.max_hops):
            far = neighbours.far(frontier)
            frontier = np.unique(far[~reached[far]])
            reached[frontier] = True
        return np.flatnonzero(reached)

    def _both(self, step: ir.PathStep, direction: ir.Direction) -> tuple[Walkable, Walkable]:
        edge_type, *also = step.edge_types
        adjacency = self._work.adjacency(edge_type, tuple(also))
        return adjacency.neighbours(direction), adjacency.neighbours(TURNED[direction])

    def _walk(
        self,
        sources: Numbers,
        targets: Numbers | None,
        pairs: Numbers | None,
        weights: Floats | None,
        *,
        turn: bool,
        from_end: bool,
    ) -> tuple[Numbers, Numbers, PathData]:
        """The shortest paths from sources to targets, or between pairs; and where each was walked from and to."""
        op = self._op
        (step,) = op.steps
        near_type, far_type, direction = op.src_type, step.dst_type, step.direction
        if turn:
            near_type, far_type, direction = far_type, near_type, TURNED[direction]
        count = self._work.table(f"node:{far_type}").row_count
        shortest = Shortest(
            self._work,
            Trails(self._work, self._edges, step.edge_types, direction),
            self._edges,
            count,
            step.max_hops,
            every=op.kind == "all shortest",
            loops=near_type == far_type,
            from_end=from_end,
            weights=weights,
            both=self._both(step, direction) if op.by is None and near_type == far_type else None,
        )
        say(f"from {len(sources):,} node{'s' if len(sources) != 1 else ''}")
        wanted = Wanted()
        if pairs is not None:
            wanted = Wanted(pairs=(np.searchsorted(sources, pairs[:, 0]), pairs[:, 1]))
        elif targets is not None:
            nodes = np.zeros(count, bool)
            nodes[targets] = True
            wanted = Wanted(nodes)
        if op.measured and near_type == far_type:
            measured = list(shortest.measure(sources, wanted))
            sums = [part.weights for part in measured if part.weights is not None]
            data = MeasuredPaths(
                _joined([part.lengths for part in measured]),
                np.concatenate([np.zeros(0), *sums]) if op.by is not None else None,
            )
            at = _joined([part.at for part in measured])
            return sources[at], _joined([part.ends for part in measured]), data
        batches = list(shortest.find(sources, wanted))
        starts, ends = (_joined([batch.nodes[:, at] for batch in batches]) for at in (0, -1))
        near, far = self._nodes.start(near_type), self._nodes.start(far_type)
        for batch in batches:
            batch.nodes[:, 0] += near
            batch.nodes[:, 1:] += far
        batches = turned(batches) if from_end else batches
        return starts, ends, PathData(self._nodes, self._edges, batches, weighted=op.by is not None)


def _joined(parts: list[Numbers]) -> Numbers:
    return np.concatenate(parts) if parts else NONE
