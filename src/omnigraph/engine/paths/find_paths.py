"""The FindPaths operator: chooses the start nodes and joins the paths to the rows of the match."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from omnigraph.engine.adjacency.adjacency import REVERSED
from omnigraph.engine.adjacency.bfs import new_neighbours
from omnigraph.engine.adjacency.csr import batched_ranges
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.exec.cancellation import add_note
from omnigraph.engine.exec.context import ExecutionContext
from omnigraph.engine.exec.native_calls import gather
from omnigraph.engine.paths.distances import Targets
from omnigraph.engine.paths.edge_space import PathGraph, Weights
from omnigraph.engine.paths.path_table import MeasuredPaths, PathTable, concatenated
from omnigraph.engine.paths.shortest import PathSearch, ShortestPaths
from omnigraph.engine.paths.simple_paths import EndFilter, SimplePaths, reversed_paths
from omnigraph.query.plan import ir
from omnigraph.table_key import TableKey

Candidates = Callable[[ir.PathStep], Numbers]
"""Returns the nodes that a step may end at."""


@dataclass(frozen=True)
class FoundPaths:
    """Paths, the join key of each path, and for each path the nodes that it binds."""

    data: PathTable | MeasuredPaths
    keys: Numbers
    nodes: dict[str, Numbers]


class PathFinder:
    """Runs one `FindPaths`."""

    def __init__(self, context: ExecutionContext, op: ir.FindPaths, candidates: Candidates) -> None:
        self._context = context
        self._op = op
        self._candidates = candidates
        self._graph = PathGraph(context, op)

    def run(self, bindings: BindingTable, passing: Callable[[Binding], Numbers | None]) -> BindingTable:
        """Join each row with its paths; `passing` returns the paths that satisfy the path predicates, None for all."""
        op = self._op
        rows, found = self._all_simple(bindings) if op.kind == "path" else self._shortest(bindings)
        kept = passing(Binding(found.data))
        kept = np.arange(len(found.keys)) if kept is None else kept
        order = kept[np.argsort(found.keys[kept], kind="stable")]
        known = found.keys[order]
        starts = np.searchsorted(known, rows, side="left")
        counts = np.searchsorted(known, rows, side="right") - starts
        self._context.check_size(int(counts.sum()), len(bindings.bound) + len(op.steps) + 2)
        result = bindings.take(np.repeat(np.arange(bindings.count), counts))
        numbers = gather(order, batched_ranges(starts, counts))
        for step in op.steps:
            if not step.dst_bound:
                nodes = self._graph.to_rows(step.dst_type, found.nodes[step.dst_var][numbers])
                result = result.bind(step.dst_var, self._context.table(TableKey.node(step.dst_type)), nodes)
        return result.bind(op.var, found.data, numbers)

    def _nodes_of(self, bindings: BindingTable) -> dict[str, Numbers]:
        """Return the nodes of the bound variables, in numbers of the path graph."""
        types = {self._op.src_var: self._op.src_type, **{step.dst_var: step.dst_type for step in self._op.steps}}
        return {var: self._graph.to_numbers(types[var], bindings.bound[var].numbers) for var in self._op.bound_vars}

    # -- all simple paths ------------------------------------------------------------------------

    def _all_simple(self, bindings: BindingTable) -> tuple[Numbers, FoundPaths]:
        """Find all simple paths.

        Rows with equal bound variables have the same paths, so each combination is searched once.
        """
        op = self._op
        columns = np.column_stack(list(self._nodes_of(bindings).values()))
        combinations, rows = np.unique(columns, axis=0, return_inverse=True)
        bound = dict(zip(op.bound_vars, combinations.T, strict=True))
        simple = SimplePaths(self._context, self._graph)
        batches = simple.start(combinations[:, 0])
        for steps in (op.ahead, op.back):
            for step in steps:
                targets = self._targets(step, None)
                allowed = None if targets is None else _mask(targets, self._graph.count)
                ends = EndFilter(of_owner=bound[step.dst_var]) if step.dst_bound else EndFilter(allowed)
                batches = simple.follow(batches, step, ends)
            batches = reversed_paths(batches)
        stops = {step.dst_var: at for at, step in enumerate(op.steps)}
        nodes = {var: concatenated([batch.stops[:, at] for batch in batches]) for var, at in stops.items()}
        data = PathTable(self._graph.nodes, self._graph.edges, batches)
        return rows.ravel(), FoundPaths(data, concatenated([batch.owners for batch in batches]), nodes)

    # -- shortest paths --------------------------------------------------------------------------

    def _shortest(self, bindings: BindingTable) -> tuple[Numbers, FoundPaths]:
        """Find shortest paths, starting at the side with fewer nodes.

        Weights that do not add up exactly are summed from the start of a path; then the side is fixed.
        """
        op = self._op
        (step,) = op.steps
        bound = self._nodes_of(bindings)
        near, far = bound[op.src_var], bound.get(step.dst_var)
        sources, targets = _distinct(near), self._targets(step, far)
        weights = Weights.of(self._context, self._graph.edges, op.by) if op.by is not None else None
        if weights is None or weights.add_exactly(step.max_hops):
            turn = targets is not None and len(targets) < len(sources)
        else:
            turn = bool(op.back)
        if turn and targets is None:
            targets = self._reaching(step, sources)
        pairs = None if far is None else _distinct(np.column_stack([near, far]))
        if turn:
            assert targets is not None
            sources, targets, pairs = targets, sources, None if pairs is None else pairs[:, ::-1]
        starts, ends, data = self._walk(sources, targets, pairs, weights, turn=turn)
        ours, theirs = (ends, starts) if turn else (starts, ends)
        if far is None:
            return near, FoundPaths(data, ours, {step.dst_var: theirs})
        width = self._graph.count
        return near * width + far, FoundPaths(data, ours * width + theirs, {})

    def _targets(self, step: ir.PathStep, far: Numbers | None) -> Numbers | None:
        """Return the end nodes to find; None if all nodes are wanted."""
        if far is not None:
            return _distinct(far)
        if not step.filters and not step.mixed_types:
            return None
        return np.sort(self._graph.to_numbers(step.dst_type, self._candidates(step)))

    def _reaching(self, step: ir.PathStep, sources: Numbers) -> Numbers:
        """Return the nodes that a path to one of the sources can start from."""
        neighbours = self._graph.neighbours(step, step.direction)
        reached = np.zeros(self._graph.count, bool)
        frontier = sources
        for _ in range(step.max_hops):
            frontier = new_neighbours(neighbours, frontier, lambda far: ~reached[far])
            if not len(frontier):
                break
            reached[frontier] = True
        return np.flatnonzero(reached)

    def _walk(
        self,
        sources: Numbers,
        targets: Numbers | None,
        pairs: Numbers | None,
        weights: Weights | None,
        *,
        turn: bool,
    ) -> tuple[Numbers, Numbers, PathTable | MeasuredPaths]:
        """Return the start and end of each search, and the shortest paths from sources to targets or between pairs."""
        op, graph = self._op, self._graph
        (step,) = op.steps
        direction = REVERSED[step.direction] if turn else step.direction
        from_end = turn != bool(op.back)
        search = PathSearch(
            graph.incident_edges(step, direction),
            graph.edges,
            graph.count,
            step.max_hops,
            every=op.kind == "all shortest",
            from_end=from_end,
            weights=weights.values if weights is not None else None,
            both=lambda: (graph.neighbours(step, direction), graph.neighbours(step, REVERSED[direction])),
        )
        shortest = ShortestPaths(self._context, search)
        add_note(f"from {len(sources):,} node{'s' if len(sources) != 1 else ''}")
        wanted = Targets()
        if pairs is not None:
            wanted = Targets(pairs=(np.searchsorted(sources, pairs[:, 0]), pairs[:, 1]))
        elif targets is not None:
            wanted = Targets(_mask(targets, graph.count))
        if op.measured:
            measured = list(shortest.measure(sources, wanted))
            sums = [part.weights for part in measured if part.weights is not None]
            data = MeasuredPaths(
                concatenated([part.lengths for part in measured]),
                np.concatenate([np.zeros(0), *sums]) if op.by is not None else None,
            )
            at = concatenated([part.at for part in measured])
            return sources[at], concatenated([part.ends for part in measured]), data
        batches = list(shortest.find(sources, wanted))
        starts, ends = (concatenated([batch.nodes[:, at] for batch in batches]) for at in (0, -1))
        batches = reversed_paths(batches) if from_end else batches
        return starts, ends, PathTable(graph.nodes, graph.edges, batches, weighted=op.by is not None)


def _distinct(nodes: Numbers) -> Numbers:
    """Return distinct nodes, or distinct rows of nodes, ascending."""
    return nodes if len(nodes) == 1 else np.unique(nodes, axis=0 if nodes.ndim > 1 else None)


def _mask(numbers: Numbers, count: int) -> Mask:
    mask = np.zeros(count, bool)
    mask[numbers] = True
    return mask
