"""The match: a pipeline of operations over rows of numbers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from omnigraph.engine.adjacency.adjacency import Adjacency
from omnigraph.engine.adjacency.bfs import bounded_hops
from omnigraph.engine.adjacency.csr import NONE, Csr, Room
from omnigraph.engine.adjacency.union_expand import across
from omnigraph.engine.cache.columns import ColumnSource, MemoryTable
from omnigraph.engine.cache.id_index import find, spelt
from omnigraph.engine.cache.table_cache import Mask, Numbers, TableData
from omnigraph.engine.cache.union_table import UnionTable, about_type
from omnigraph.engine.exec.binding_table import Bound, Frame
from omnigraph.engine.exec.cancellation import say
from omnigraph.engine.exec.context import Work
from omnigraph.engine.exec.count_pushdown import count_ahead
from omnigraph.engine.exec.left_join import joined, present
from omnigraph.engine.exec.native import stoppable
from omnigraph.engine.expr.evaluator import Evaluator
from omnigraph.engine.paths.find_paths import PathFinder
from omnigraph.engine.plan.point_lookup import id_tests
from omnigraph.query.plan import ir
from omnigraph.table_key import TableKey


class Match:
    """Runs the match of one execution."""

    def __init__(self, work: Work, evaluator: Evaluator) -> None:
        self._work = work
        self._evaluator = evaluator

    def rows(self, pipeline: ir.Pipeline, live: Sequence[frozenset[str]] | None = None) -> Frame:
        """The rows of a match; with `live`, of a query that groups or counts, equal ones may be put together."""
        return self._pipeline(pipeline, Frame(), live)

    def run(self, pipeline: ir.Pipeline, frame: Frame) -> Frame:
        """The rows some operations make of others."""
        return self._pipeline(pipeline, frame)

    def passing(self, pipeline: ir.Pipeline, frame: Frame) -> Mask | None:
        """Which rows some operations find anything for, where that is known without running them; else None."""
        if len(pipeline) != 1 or not isinstance(op := pipeline[0], ir.Expand) or op.src_type is not None:
            return None
        if op.dst_bound or op.dst_filters or op.edge_filters or op.min_hops != 1 or op.max_hops < 1:
            return None
        bound = frame.bound[op.src_var]
        linked = self._work.hops(op.edge_type, op.also).has_neighbours(op.direction, bound.data.row_count)
        return linked if bound.whole else linked[bound.numbers]

    def _pipeline(self, pipeline: ir.Pipeline, frame: Frame, live: Sequence[frozenset[str]] | None = None) -> Frame:
        """Run some operations; with `live`, rows are only counted, and what nobody asks for is not kept."""
        place = 0
        while place < len(pipeline):
            op = pipeline[place]
            self._work.check()
            started = time.perf_counter()
            counted = count_ahead(self._work, pipeline, place, frame, live) if live is not None else None
            if live is not None and counted is not None:
                place += counted[1]
                frame = _forget(counted[0], live[place - 1])
                say("counted, not written out")
                self._work.profile.note(pipeline[place - 1], frame.count, started)
                continue
            match op:
                case ir.NodeScan():
                    frame = self._scan(op, frame)
                case ir.Expand():
                    frame = present(frame, op)
                    alone = self._edges_alone(op, frame, live[place]) if live is not None else None
                    frame = alone if alone is not None else self._expand(op, frame)
                case ir.FindPaths():
                    frame = self._find_paths(op, present(frame, op))
                case ir.Filter():
                    frame = frame.keep(self._evaluator.mask(op.condition, frame))
                case ir.AntiJoin():
                    frame = self._anti_join(op, frame)
                case ir.LeftJoin():
                    frame = self._left_join(op, frame)
            if live is not None:
                frame = _forget(frame, live[place])
            self._work.profile.note(op, frame.count, started)
            place += 1
        return frame

    def _scan(self, op: ir.NodeScan, frame: Frame) -> Frame:
        data = self._work.table(TableKey.node(op.type_name))
        found = self._of_members(op, data) if isinstance(data, UnionTable) else self._found(op, data)
        if not frame.bound and frame.count == 1 and frame.weight is None:
            return found  # as a mask, if that is what it is: who only counts needs no numbers
        numbers = found.bound[op.var].numbers
        self._work.room(frame.count * len(numbers), len(frame.bound) + 2)
        crossed = frame.take(np.repeat(np.arange(frame.count), len(numbers)))
        return crossed.bind(op.var, data, np.tile(numbers, frame.count))

    def _found(self, op: ir.NodeScan, data: ColumnSource) -> Frame:
        """The nodes of a type that pass all conditions."""
        keyed = self._by_key(op, data)
        bound, filters = keyed if keyed is not None else (Bound(data), op.filters)
        found = Frame(bound.count, {op.var: bound})
        for condition in filters:
            found = found.keep(self._evaluator.mask(condition, found))
        return found

    def _of_members(self, op: ir.NodeScan, data: UnionTable) -> Frame:
        """The nodes of several types that pass all conditions; each type uses what it has to find its own."""
        own = tuple(condition for condition in op.filters if not about_type(condition))
        found = Frame(data.row_count, {op.var: Bound(data)})
        if own:
            scans = (replace(op, type_name=name, filters=own) for name in data.of.members)
            parts = [self._found(*one) for one in zip(scans, data.members, strict=True)]
            numbers = [part.bound[op.var].numbers + start for part, start in zip(parts, data.starts, strict=False)]
            bound = Bound(data, np.concatenate([*numbers, NONE]), once=True)
            found = Frame(bound.count, {op.var: bound})
        for condition in op.filters:
            if about_type(condition):
                found = found.keep(self._evaluator.mask(condition, found))
        return found

    def _by_key(self, op: ir.NodeScan, data: ColumnSource) -> tuple[Bound, tuple[ir.Condition, ...]] | None:
        """The one row a scan can find when its key is given, and the other conditions; None when it is not."""
        for place, prop, key in id_tests(op, self._work.catalog):
            id_ = spelt(self._evaluator.constant(key), prop.type)
            if id_ is not None:
                say("found by its key")
                assert isinstance(data, TableData), "a union has no key"
                row = find(data, id_)
                numbers = np.array([] if row is None else [row], np.int64)
                return Bound(data, numbers), op.filters[:place] + op.filters[place + 1 :]
        return None

    def _expand(self, op: ir.Expand, frame: Frame) -> Frame:
        far = self._work.table(TableKey.node(op.dst_type))
        if op.src_type is None:
            return self._walk(op, frame, self._work.hops(op.edge_type, op.also), far)
        found = across(self._work, op, frame, self._walk)
        keep = self._passing(op.dst_var, found.bound[op.dst_var], op.dst_filters)
        return found if keep is None else found.keep(keep)

    def _walk(self, op: ir.Expand, frame: Frame, adjacency: Adjacency, far: ColumnSource) -> Frame:
        bound = frame.bound[op.src_var]
        sources = bound.numbers
        if op.max_hops < op.min_hops:
            return self._nothing(op, frame, far)
        if op.edge_var is not None:
            return self._expand_edges(op, frame, far)
        neighbours = adjacency.for_scan(op.direction) if bound.whole else adjacency.neighbours(op.direction)
        if (op.min_hops, op.max_hops) == (1, 1):
            if op.dst_bound:
                return frame.keep(neighbours.connected(sources, frame.bound[op.dst_var].numbers))
            if bound.whole and isinstance(neighbours, Csr):
                self._room(frame)(len(neighbours.targets))
                positions, targets = stoppable(neighbours.all_pairs, len(neighbours.targets))
            else:
                positions, targets = neighbours.expand(sources, self._room(frame))
        else:
            positions, targets = bounded_hops(op, adjacency).reach_rows(sources, self._room(frame))
        if op.dst_bound:
            wanted = frame.bound[op.dst_var].numbers
            hit = targets == wanted[positions]
            return frame.take(np.unique(positions[hit]))
        return self._arrive(op, frame, far, positions, targets)

    def _room(self, frame: Frame) -> Room:
        """Room for the rows of a hop: what the frame has, and the far ends."""
        return partial(self._work.room, columns=len(frame.bound) + 2)

    def _arrive(self, op: ir.Expand, frame: Frame, far: ColumnSource, positions: Numbers, targets: Numbers) -> Frame:
        """Bind the far node; its own conditions are judged before anything else is copied."""
        keep = self._passing(op.dst_var, Bound(far, targets), op.dst_filters)
        if keep is not None:
            positions, targets = positions[keep], targets[keep]
        return frame.take(positions).bind(op.dst_var, far, targets)

    def _expand_edges(self, op: ir.Expand, frame: Frame, far: ColumnSource) -> Frame:
        assert op.edge_var is not None
        positions, rows, targets = self._edges_at(op, frame)
        self._work.room(len(positions))
        if op.dst_bound:
            hit = targets == frame.bound[op.dst_var].numbers[positions]
            positions, rows, targets = positions[hit], rows[hit], targets[hit]
        keep = self._passing(op.dst_var, Bound(far, targets), op.dst_filters)
        if keep is not None:
            positions, rows, targets = positions[keep], rows[keep], targets[keep]
        result = frame.take(positions).bind(op.edge_var, self._edge_table(op), rows)
        return result if op.dst_bound else result.bind(op.dst_var, far, targets)

    def _edges_alone(self, op: ir.Expand, frame: Frame, live: frozenset[str]) -> Frame | None:
        """The edges of all nodes, where nobody looks at their ends; None where somebody does."""
        if op.edge_var is None or op.direction == "both" or op.dst_bound or op.dst_filters or frame.weight is not None:
            return None
        if op.src_type is not None:
            return None
        if len(frame.bound) != 1 or not frame.bound[op.src_var].whole or not live <= {op.edge_var}:
            return None
        edges = self._edge_table(op)
        mask = self._passing(op.edge_var, Bound(edges), op.edge_filters)
        bound = Bound(edges, mask=mask)
        return Frame(bound.count, {op.edge_var: bound})

    def _edge_table(self, op: ir.Expand) -> ColumnSource:
        """The edges of a hop that binds a variable to them: these are of one type."""
        return self._work.table(self._work.catalog.edges[op.edge_type].table_key)

    def _edges_at(self, op: ir.Expand, frame: Frame) -> tuple[Numbers, Numbers, Numbers]:
        """The edges of each row that pass their own conditions: (row, edge, far end)."""
        adjacency, edges = self._work.adjacency(op.edge_type), self._edge_table(op)
        bound = frame.bound[op.src_var]
        assert op.edge_var is not None
        if op.direction != "both" and op.edge_filters and bound.whole:
            # Every node is a source: the edges are chosen first, and each knows its source.
            mask = self._passing(op.edge_var, Bound(edges), op.edge_filters)
            assert mask is not None
            chosen = np.flatnonzero(mask)
            src, dst = adjacency.ends()
            near, far = (src, dst) if op.direction == "out" else (dst, src)
            return near[chosen].astype(np.int64), chosen, far[chosen].astype(np.int64)
        at_nodes = adjacency.edge_rows(op.direction)
        positions, rows, targets = at_nodes.expand(bound.numbers, self._room(frame))
        keep = self._passing(op.edge_var, Bound(edges, rows), op.edge_filters)
        return (positions, rows, targets) if keep is None else (positions[keep], rows[keep], targets[keep])

    def _find_paths(self, op: ir.FindPaths, frame: Frame) -> Frame:
        def candidates(step: ir.PathStep) -> Numbers:
            scan = ir.NodeScan(step.dst_var, step.dst_type, step.filters)
            return self._scan(scan, Frame()).bound[step.dst_var].numbers

        def passing(paths: Bound) -> Numbers | None:
            mask = self._passing(op.var, paths, op.filters)
            return None if mask is None else np.flatnonzero(mask)

        return PathFinder(self._work, op, candidates).run(frame, passing)

    def _passing(self, var: str, bound: Bound, filters: tuple[ir.Condition, ...]) -> Mask | None:
        if not filters:
            return None
        some = Frame(bound.count, {var: bound})
        mask = self._evaluator.mask(filters[0], some)
        for condition in filters[1:]:
            mask = mask & self._evaluator.mask(condition, some)
        return mask

    def _nothing(self, op: ir.Expand, frame: Frame, far: ColumnSource) -> Frame:
        empty = np.zeros(0, np.int64)
        result = frame.take(empty)
        if not op.dst_bound:
            result = result.bind(op.dst_var, far, empty)
        return result.bind(op.edge_var, self._edge_table(op), empty) if op.edge_var else result

    def _anti_join(self, op: ir.AntiJoin, frame: Frame) -> Frame:
        """Rows that agree in the outer variables stand or fall together: each combination is tried once."""
        if not frame.count:
            return frame
        columns = [frame.bound[name].numbers for name in op.outer_vars]
        first, places = _distinct(columns)
        outer = frame.only(op.outer_vars).take(first)
        inner = self._pipeline(op.inner, outer.bind(_ROW, MemoryTable({}, outer.count), np.arange(outer.count)))
        matched = np.zeros(outer.count, bool)
        matched[inner.bound[_ROW].numbers] = True
        return frame.keep(~matched[places])

    def _left_join(self, op: ir.LeftJoin, frame: Frame) -> Frame:
        """As for an anti-join, each combination of the outer variables is matched once."""
        first, places = _distinct([frame.bound[name].numbers for name in op.outer_vars])
        outer = frame.only(op.outer_vars).take(first)
        inner = self._pipeline(op.inner, outer.bind(_ROW, MemoryTable({}, outer.count), np.arange(outer.count)))
        room = partial(self._work.room, columns=len(frame.bound) + len(op.variables) + 3)
        return joined(frame, places, inner, inner.bound[_ROW].numbers, outer.count, op.variables, room)


_ROW = "_#row"


def _forget(frame: Frame, live: frozenset[str]) -> Frame:
    """Without the variables that no longer matter, equal rows put together."""
    kept = [name for name in frame.bound if name in live]
    return frame if len(kept) == len(frame.bound) else frame.only(kept).merged()


def _distinct(columns: list[Numbers]) -> tuple[Numbers, Numbers]:
    """(the first row of each distinct combination, which combination each row is)."""
    if len(columns) == 1:
        every = partial(np.unique, columns[0], return_index=True, return_inverse=True)
        _, first, places = stoppable(every, len(columns[0]))
        return first, places
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _, narrow = stoppable(partial(np.unique, column, return_inverse=True), len(column))
        both = codes * (int(narrow.max(initial=0)) + 1) + narrow
        _, codes = stoppable(partial(np.unique, both, return_inverse=True), len(both))
    _, first = stoppable(partial(np.unique, codes, return_index=True), len(codes))
    return first, codes
