"""The match: a pipeline of operators over binding tables."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import assert_never, cast

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.adjacency import Adjacency
from omnigraph.engine.adjacency.bfs import bounded_hops
from omnigraph.engine.adjacency.check_pairs import connected_rows
from omnigraph.engine.adjacency.csr import EMPTY, Csr, Room
from omnigraph.engine.adjacency.period_adjacency import PeriodAdjacency
from omnigraph.engine.adjacency.union_expand import expand_union
from omnigraph.engine.cache.columns import ColumnSource, MemoryTable
from omnigraph.engine.cache.table_cache import Mask, Numbers, TableData
from omnigraph.engine.cache.union_table import UnionTable, depends_on_type
from omnigraph.engine.cache.visibility import VisibleTable
from omnigraph.engine.exec.adaptive import MeasuredHop, Replanner, RowsExceeded, RunningPlan, exceeds
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.exec.cancellation import add_note
from omnigraph.engine.exec.context import ExecutionContext, MatchTooLarge
from omnigraph.engine.exec.count_pushdown import count_pushdown
from omnigraph.engine.exec.inner_join import inner_join
from omnigraph.engine.exec.keyed_scan import rows_by_key
from omnigraph.engine.exec.left_join import NullExtendedTable, drop_absent, left_join
from omnigraph.engine.exec.match_parts import combined, distinct_rows, divided, parts_of
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.engine.exec.shared_blocks import SharedBlocks
from omnigraph.engine.expr.evaluator import Evaluator
from omnigraph.engine.expr.key_codes import combine_codes, first_rows
from omnigraph.engine.expr.streamed_masks import is_streamed
from omnigraph.engine.plan.expected_rows import ExpectedRows, format_estimate
from omnigraph.engine.plan.liveness import live_after
from omnigraph.query.plan import ir
from omnigraph.table_key import TableKey

RunStage = Callable[[ir.Stage, ExpectedRows | None], BindingTable]
"""Returns the rows of a stage."""


class MatchPipeline:
    """Runs the match of one execution."""

    def __init__(
        self,
        context: ExecutionContext,
        evaluator: Evaluator,
        replanner: Replanner | None = None,
        stages: RunStage | None = None,
    ) -> None:
        self._stages = stages
        """Runs the stage that a pipeline starts from."""
        self._context = context
        self._evaluator = evaluator
        self._replanner = replanner
        """Plans the rest of a pipeline again if an estimate is wrong; None if the order is fixed."""
        self._shared = SharedBlocks()
        self._profile = context.profile
        self._parts = 0
        """The parts in which matches ran."""

    def rows(
        self,
        pipeline: ir.Pipeline,
        live: Sequence[frozenset[str]] | None = None,
        *,
        distinct: bool = False,
        expected: ExpectedRows | None = None,
    ) -> BindingTable:
        """Return the rows of a match; with `live`, of a grouping or counting query, equal rows may be merged.

        With `distinct`, the rows are a set. With `expected`, the order adapts to the actual rows.
        """
        return self._pipeline(RunningPlan(pipeline, live, expected), BindingTable(), distinct=distinct)

    def run(self, pipeline: ir.Pipeline, bindings: BindingTable, expected: ExpectedRows | None = None) -> BindingTable:
        """Apply some operators to rows; with `expected`, their order adapts to the actual rows."""
        return self._pipeline(RunningPlan(pipeline, None, expected), bindings)

    def passing(self, pipeline: ir.Pipeline, bindings: BindingTable) -> Mask | None:
        """Return a mask of the rows for which some operators find a match; None if they do not only restrict the rows.

        The rows have one variable. Optional blocks keep every row.
        """
        optional = {var for op in pipeline if isinstance(op, ir.LeftJoin) for var in op.variables}
        ops = tuple(op for op in pipeline if not isinstance(op, ir.LeftJoin))
        if optional and any(optional.intersection(_read_by(op)) for op in ops):
            return None
        ((var, bound),) = bindings.bound.items()
        if not ops:
            return np.ones(bindings.count, bool)
        linked = self._linked(ops, bound)
        if linked is None:
            found = self._pipeline(RunningPlan(ops, live_after(ops, frozenset({var})), None), bindings, distinct=True)
            linked = np.zeros(bound.data.row_count, bool)
            linked[found.bound[var].numbers] = True
        return linked if bound.whole else linked[bound.numbers]

    def _linked(self, pipeline: ir.Pipeline, bound: Binding) -> Mask | None:
        """Return a mask of the nodes of a table that have a neighbour, if the operators test nothing else."""
        if len(pipeline) != 1 or not isinstance(op := pipeline[0], ir.Expand) or op.src_type is not None:
            return None
        if op.dst_bound or op.dst_filters or op.edge_filters or op.min_hops != 1 or op.max_hops < 1:
            return None
        return self._context.hops(op.edge_type, op.also).has_neighbours(op.direction, bound.data.row_count)

    def _pipeline(
        self, plan: RunningPlan, bindings: BindingTable, *, distinct: bool = False, joins: bool = True
    ) -> BindingTable:
        """Run some operators. With `live`, rows are only counted, and variables that are not used later are dropped.

        With `distinct`, the rows are a set: it does not matter how often a row occurs. With `joins`, a pipeline
        that is planned again may find a part of the match from its far end and join it.
        """
        if self._replanner is None:
            plan = replace(plan, expected=None)
        position = 0
        while position < len(plan.pipeline):
            if exceeds(bindings.count, plan.rows_expected(position)):
                plan, position = self._replanned(plan, position, bindings, joins=joins), 0
            pipeline, live = plan.pipeline, plan.live
            op = pipeline[position]
            self._context.check()
            started = time.perf_counter()
            if not bindings.count and all(isinstance(left, _SKIPPED) for left in pipeline[position:]):
                return self._without_rows(pipeline[position:], bindings)
            if isinstance(op, _FOLLOWING):
                bindings = drop_absent(bindings, op)
            counted = count_pushdown(self._context, pipeline, position, bindings, live) if live is not None else None
            if live is not None and counted is not None:
                position += counted[1]
                bindings = _drop_unused(counted[0], live[position - 1], distinct=distinct)
                add_note("counted without materialising rows")
                plan = self._note(plan, pipeline[position - 1], bindings.count, started)
                continue
            parts = 0
            try:
                bindings = self._apply(plan, position, bindings)
            except RowsExceeded as exceeded:
                plan = self._replanned(plan, position, bindings, exceeded.rows, joins=joins)
                position = 0
                continue
            except MatchTooLarge as exceeded:
                parts = 0 if live is None else self._parts_of(pipeline[position:], bindings, exceeded)
                if not parts:
                    raise
            if live is not None:
                if parts:
                    rest = RunningPlan(pipeline[position:], live[position:], None)
                    return self._in_parts(rest, bindings, parts, distinct=distinct)
                bindings = _drop_unused(bindings, live[position], distinct=distinct)
            plan = self._note(plan, op, bindings.count, started)
            position += 1
        return bindings

    def _parts_of(self, pipeline: ir.Pipeline, bindings: BindingTable, exceeded: MatchTooLarge) -> int:
        """Return into how many parts the input of an operator that exceeds a limit is divided; 0 if it cannot be."""
        parts = parts_of(pipeline, bindings, exceeded)
        if self._parts + parts > tuning.current.match_parts_max:
            return 0
        self._parts += parts
        return parts

    def _in_parts(self, plan: RunningPlan, bindings: BindingTable, parts: int, *, distinct: bool) -> BindingTable:
        """Run some operators for one part of the rows after the other."""
        add_note(f"in {parts} parts")
        steps, found = len(self._profile.steps), None
        for part in divided(bindings, parts):
            rows = self._pipeline(plan, part, distinct=distinct, joins=False)
            found = rows if found is None else self._combined(found, rows)
        assert found is not None
        self._profile.add_up(steps)
        return found

    def _combined(self, found: BindingTable, rows: BindingTable) -> BindingTable:
        """Return the rows of a part with those of the parts before it; equal rows are merged if all would not fit."""
        both = partial(self._context.check_size, columns=len(found.bound) + 1)
        try:
            both(found.count + rows.count)
        except MatchTooLarge:
            found, rows = distinct_rows(found), distinct_rows(rows)
            both(found.count + rows.count)
        return combined(found, rows)

    def _replanned(
        self,
        plan: RunningPlan,
        position: int,
        bindings: BindingTable,
        followed: int | None = None,
        *,
        joins: bool,
    ) -> RunningPlan:
        """Plan the operators from a position on again; `followed` are the rows that the hop there leads to."""
        assert plan.expected is not None
        assert self._replanner is not None
        rest = RunningPlan(
            plan.pipeline[position:],
            None if plan.live is None else plan.live[position:],
            None,
            plan.changes,
        )
        op, measured = rest.pipeline[0], None
        if followed is not None and isinstance(op, ir.Expand):
            measured = MeasuredHop(op, followed / bindings.count)
        found = self._replanner.replan(
            plan.expected.given(position),
            bindings.bound.keys(),
            bindings.count,
            None if plan.live is None else plan.live[-1],
            measured=measured,
            joins=joins,
        )
        changed = rest.changed(found)
        if changed.pipeline == rest.pipeline:
            changed = replace(changed, pipeline=rest.pipeline)  # the operators have their notes in the profile
        else:
            self._profile.change(op, changed.pipeline)
            if followed is None:
                told = f"{bindings.count:,} rows instead of {format_estimate(plan.rows_expected(position))}"
            else:
                expected = format_estimate(plan.followed_expected(position))
                told = f"the next hop would lead to {followed:,} rows instead of {expected}"
            changed = replace(changed, reason=f"plan changed: {told}")
        return changed

    def _note(self, plan: RunningPlan, op: ir.Op, rows: int, started: float) -> RunningPlan:
        """Record an operator that ran, and why the plan was changed before it."""
        if plan.reason:
            add_note(plan.reason)
            plan = replace(plan, reason="")
        self._profile.note(op, rows, started)
        return plan

    def _apply(self, plan: RunningPlan, position: int, bindings: BindingTable) -> BindingTable:
        """Run one operator."""
        op, inner = plan.pipeline[position], plan.inner(position)
        match op:
            case ir.NodeScan():
                return self._scan(op, bindings)
            case ir.Expand():
                alone = self._edges_alone(op, bindings, plan.live[position]) if plan.live is not None else None
                if alone is not None:
                    return alone
                return self._expand(op, bindings, self._room(bindings, plan.followed_expected(position)))
            case ir.FindPaths():
                return self._find_paths(op, bindings)
            case ir.PathSteps():
                return self._path_steps(op, bindings)
            case ir.Filter():
                return bindings.keep(self._evaluator.mask(op.condition, bindings))
            case ir.AntiJoin():
                return self._anti_join(op, bindings, inner)
            case ir.LeftJoin():
                return self._left_join(op, bindings, inner)
            case ir.InnerJoin():
                return self._inner_join(op, bindings, plan.live[position] if plan.live is not None else None, inner)
            case ir.Stage():
                assert self._stages is not None, "only a query has stages"
                return self._stages(op, inner)
            case _:
                assert_never(op)

    def _scan(self, op: ir.NodeScan, bindings: BindingTable) -> BindingTable:
        data = self._context.table(TableKey.node(op.type_name))
        found = self._of_members(op, data) if isinstance(data, UnionTable) else self._found(op, data)
        if not bindings.bound and bindings.count == 1 and bindings.weight is None:
            return found  # stays a mask if it is one: counting needs no row numbers
        numbers = found.bound[op.var].numbers
        self._context.check_size(bindings.count * len(numbers), len(bindings.bound) + 2)
        crossed = bindings.take(np.repeat(np.arange(bindings.count), len(numbers)))
        return crossed.bind(op.var, data, np.tile(numbers, bindings.count))

    def _found(self, op: ir.NodeScan, data: ColumnSource) -> BindingTable:
        """Return the nodes of a type that satisfy all conditions."""
        keyed = rows_by_key(op, data, self._context.catalog, self._evaluator, data.row_count)
        bound, filters = keyed if keyed is not None else (_every(data), op.filters)
        found = BindingTable(bound.count, {op.var: bound})
        if bound.mask is not None and filters and not (isinstance(data, VisibleTable) and data.is_few(bound.count)):
            return self._of_visible(op.var, bound, filters)
        if len(filters) > 1 and isinstance(data, TableData) and data.may_stream:
            # Few rows may be left for the conditions that need a scan.
            filters = tuple(sorted(filters, key=lambda condition: is_streamed(condition, data, data.row_count)))
        for condition in filters:
            found = found.keep(self._evaluator.mask(condition, found))
        return found

    def _of_visible(self, var: str, bound: Binding, filters: tuple[ir.Condition, ...]) -> BindingTable:
        """Return the visible nodes that satisfy all conditions, which are evaluated on complete columns."""
        passing = bound.mask
        every = Binding.every(bound.data)
        for condition in filters:
            mask = self._evaluator.mask(condition, BindingTable(every.count, {var: every}))
            passing = mask if passing is None else passing & mask
        found = Binding(bound.data, mask=passing)
        return BindingTable(found.count, {var: found})

    def _of_members(self, op: ir.NodeScan, data: UnionTable) -> BindingTable:
        """Return the nodes of several types that satisfy all conditions; each type uses its own indexes."""
        own = tuple(condition for condition in op.filters if not depends_on_type(condition))
        every = Binding(data)
        found = BindingTable(every.count, {op.var: every})
        if own:
            scans = (replace(op, type_name=name, filters=own) for name in data.of.members)
            parts = [self._found(*one) for one in zip(scans, data.members, strict=True)]
            numbers = [part.bound[op.var].numbers + start for part, start in zip(parts, data.starts, strict=False)]
            bound = Binding(data, np.concatenate([*numbers, EMPTY]), unique=True)
            found = BindingTable(bound.count, {op.var: bound})
        for condition in op.filters:
            if depends_on_type(condition):
                found = found.keep(self._evaluator.mask(condition, found))
        return found

    def _expand(self, op: ir.Expand, bindings: BindingTable, room: Room) -> BindingTable:
        far = self._context.table(TableKey.node(op.dst_type))
        if op.src_type is None:
            return self._walk(op, bindings, self._context.hops(op.edge_type, op.also), far, room)
        found = expand_union(self._context, op, bindings, partial(self._walk, room=room))
        keep = self._passing(op.dst_var, found.bound[op.dst_var], op.dst_filters)
        return found if keep is None else found.keep(keep)

    def _walk(
        self, op: ir.Expand, bindings: BindingTable, adjacency: Adjacency, far: ColumnSource, room: Room
    ) -> BindingTable:
        bound = bindings.bound[op.src_var]
        sources = bound.numbers
        if op.max_hops < op.min_hops:
            return self._nothing(op, bindings, far)
        if op.edge_var is not None:
            if op.dst_bound and bindings.count >= tuning.current.checked_rows_min:
                # Few pairs are connected: the edges of the others are not read.
                pairs = partial(self._context.check_size, columns=2)
                bindings = bindings.keep(connected_rows(op, adjacency, bindings, pairs))
            return self._expand_edges(op, bindings, far, room)
        if op.dst_bound:
            return bindings.keep(connected_rows(op, adjacency, bindings, partial(self._context.check_size, columns=2)))
        neighbours = adjacency.for_scan(op.direction) if bound.whole else adjacency.neighbours(op.direction)
        if (op.min_hops, op.max_hops) == (1, 1):
            if bound.whole and isinstance(neighbours, Csr):
                room(len(neighbours.targets))
                positions, targets = interruptible(neighbours.all_pairs, len(neighbours.targets))
            else:
                positions, targets = neighbours.expand(sources, room)
        else:
            positions, targets = bounded_hops(op, adjacency).reach_rows(sources, room)
        return self._arrive(op, bindings, far, positions, targets)

    def _room(self, bindings: BindingTable, expected: float) -> Room:
        """Return the size check of a hop: its rows have the variables of the binding table and the far end.

        It raises `RowsExceeded` for many more rows than expected.
        """
        columns = len(bindings.bound) + 2

        def room(rows: int) -> None:
            if exceeds(rows, expected):
                raise RowsExceeded(rows)
            self._context.check_size(rows, columns)

        return room

    def _arrive(
        self, op: ir.Expand, bindings: BindingTable, far: ColumnSource, positions: Numbers, targets: Numbers
    ) -> BindingTable:
        """Bind the far node. Its conditions are evaluated before other columns are copied."""
        keep = self._arriving(op, far, targets)
        if keep is not None:
            positions, targets = positions[keep], targets[keep]
        return bindings.take(positions).bind(op.dst_var, far, targets)

    def _arriving(self, op: ir.Expand, far: ColumnSource, targets: Numbers) -> Mask | None:
        """Return a mask of the far nodes that satisfy their conditions; None for all."""
        if op.dst_filters and isinstance(far, _STORED):
            scan = ir.NodeScan(op.dst_var, op.dst_type, op.dst_filters)
            keyed = rows_by_key(scan, far, self._context.catalog, self._evaluator, len(targets))
            if keyed is not None:
                # The nodes with the keys are few; they are compared by their numbers.
                found, others = keyed
                passing = self._passing(op.dst_var, found, others)
                numbers = found.numbers if passing is None else found.numbers[passing]
                return targets == numbers[0] if len(numbers) == 1 else np.isin(targets, numbers)
        return self._passing(op.dst_var, Binding(far, targets), op.dst_filters)

    def _expand_edges(self, op: ir.Expand, bindings: BindingTable, far: ColumnSource, room: Room) -> BindingTable:
        assert op.edge_var is not None
        positions, rows, targets = self._edges_at(op, bindings, room)
        self._context.check_size(len(positions))
        if op.dst_bound:
            hit = targets == bindings.bound[op.dst_var].numbers[positions]
            positions, rows, targets = positions[hit], rows[hit], targets[hit]
        keep = self._passing(op.dst_var, Binding(far, targets), op.dst_filters)
        if keep is not None:
            positions, rows, targets = positions[keep], rows[keep], targets[keep]
        result = bindings.take(positions).bind(op.edge_var, self._edge_table(op), rows)
        return result if op.dst_bound else result.bind(op.dst_var, far, targets)

    def _edges_alone(self, op: ir.Expand, bindings: BindingTable, live: frozenset[str]) -> BindingTable | None:
        """Return the edges of all nodes if their ends are not used; else None."""
        if (
            op.edge_var is None
            or op.direction == "both"
            or op.dst_bound
            or op.dst_filters
            or bindings.weight is not None
        ):
            return None
        if op.src_type is not None or isinstance(self._context.adjacency(op.edge_type), PeriodAdjacency):
            return None
        if len(bindings.bound) != 1 or not bindings.bound[op.src_var].whole or not live <= {op.edge_var}:
            return None
        every = Binding(self._edge_table(op))
        mask = self._passing(op.edge_var, every, op.edge_filters)
        found = BindingTable(every.count, {op.edge_var: every})
        return found if mask is None else found.keep(mask)

    def _edge_table(self, op: ir.Expand) -> ColumnSource:
        """Return the edge table of a hop with an edge variable, which has one edge type."""
        return self._context.table(self._context.catalog.edges[op.edge_type].table_key)

    def _edges_at(self, op: ir.Expand, bindings: BindingTable, room: Room) -> tuple[Numbers, Numbers, Numbers]:
        """Return the edges of each row that satisfy their conditions: (row, edge, far end)."""
        adjacency, edges = self._context.adjacency(op.edge_type), self._edge_table(op)
        bound = bindings.bound[op.src_var]
        assert op.edge_var is not None
        one_each = not isinstance(adjacency, PeriodAdjacency)
        if op.direction != "both" and op.edge_filters and bound.whole and one_each:
            # Every node is a source: select the edges first; each edge has its source.
            every = Binding(edges)
            mask = self._passing(op.edge_var, every, op.edge_filters)
            assert mask is not None
            chosen = np.flatnonzero(mask) if every.whole else every.numbers[mask]
            src, dst = adjacency.ends()
            near, far = (src, dst) if op.direction == "out" else (dst, src)
            return near[chosen].astype(np.int64), chosen, far[chosen].astype(np.int64)
        at_nodes = adjacency.edge_rows(op.direction)
        positions, rows, targets = at_nodes.expand(bound.numbers, room)
        keep = self._passing(op.edge_var, Binding(edges, rows), op.edge_filters)
        return (positions, rows, targets) if keep is None else (positions[keep], rows[keep], targets[keep])

    def _find_paths(self, op: ir.FindPaths, bindings: BindingTable) -> BindingTable:
        from omnigraph.engine.paths.find_paths import PathFinder  # noqa: PLC0415 (only for paths)

        def candidates(step: ir.PathStep) -> Numbers:
            scan = ir.NodeScan(step.dst_var, step.dst_type, step.filters)
            return self._scan(scan, BindingTable()).bound[step.dst_var].numbers

        def passing(paths: Binding) -> Numbers | None:
            mask = self._passing(op.var, paths, op.filters)
            return None if mask is None else np.flatnonzero(mask)

        return PathFinder(self._context, op, candidates).run(bindings, passing)

    def _path_steps(self, op: ir.PathSteps, bindings: BindingTable) -> BindingTable:
        from omnigraph.engine.paths.path_steps import path_steps  # noqa: PLC0415 (only for paths)

        found = path_steps(self._context, op, bindings)
        for condition in op.filters:
            found = found.keep(self._evaluator.mask(condition, found))
        return found

    def _passing(self, var: str, bound: Binding, filters: tuple[ir.Condition, ...]) -> Mask | None:
        if not filters:
            return None
        some = BindingTable(bound.count, {var: bound})
        mask = self._evaluator.mask(filters[0], some)
        for condition in filters[1:]:
            mask = mask & self._evaluator.mask(condition, some)
        return mask

    def _without_rows(self, pipeline: ir.Pipeline, bindings: BindingTable) -> BindingTable:
        """Bind the variables of some operators that do not run because there is no row."""
        for op in pipeline:
            started = time.perf_counter()
            if isinstance(op, ir.NodeScan):
                bindings = bindings.bind(op.var, self._context.table(TableKey.node(op.type_name)), EMPTY)
            elif isinstance(op, ir.Expand):
                bindings = self._nothing(op, bindings, self._context.table(TableKey.node(op.dst_type)))
            self._context.profile.note(op, 0, started)
        return bindings

    def _nothing(self, op: ir.Expand, bindings: BindingTable, far: ColumnSource) -> BindingTable:
        empty = np.zeros(0, np.int64)
        result = bindings.take(empty)
        if not op.dst_bound:
            result = result.bind(op.dst_var, far, empty)
        return result.bind(op.edge_var, self._edge_table(op), empty) if op.edge_var else result

    def _anti_join(self, op: ir.AntiJoin, bindings: BindingTable, expected: ExpectedRows | None) -> BindingTable:
        """Anti-join. Each distinct combination of the outer variables is matched once."""
        if not bindings.count:
            return bindings
        if op.independent:
            return bindings.keep(~self._matched(op, bindings, expected))
        bound = bindings.bound[op.outer_vars[0]]
        single = len(op.outer_vars) == 1 and not isinstance(bound.data, NullExtendedTable)
        linked = self._linked(op.inner, bound) if single else None
        if linked is not None:
            return bindings.keep(~(linked if bound.whole else linked[bound.numbers]))
        columns = [bindings.bound[name].numbers for name in op.outer_vars]
        first, combinations = _distinct_combinations(columns)
        outer = bindings.only(op.outer_vars).take(first)
        outer = outer.bind(_ROW, MemoryTable({}, outer.count), np.arange(outer.count))
        plan = RunningPlan(op.inner, live_after(op.inner, frozenset({_ROW})), expected)
        inner = self._pipeline(plan, outer, distinct=True)
        matched = np.zeros(outer.count, bool)
        matched[inner.bound[_ROW].numbers] = True
        return bindings.keep(~matched[combinations])

    def _matched(self, op: ir.AntiJoin, bindings: BindingTable, expected: ExpectedRows | None) -> Mask:
        """Return a mask of the rows that match an inner pipeline which runs once, on its own."""
        plan = RunningPlan(op.inner, live_after(op.inner, frozenset(op.outer_vars)), expected)
        inner = self._shared.rows(op, None, lambda: self._pipeline(plan, BindingTable(), distinct=True))
        columns = [bindings.bound[name].numbers for name in op.outer_vars]
        found = [inner.bound[name].numbers for name in op.outer_vars]
        if len(columns) == 1:
            # A null row has a number of its own and matches nothing.
            marks = np.zeros(bindings.bound[op.outer_vars[0]].data.row_count + 1, bool)
            marks[found[0]] = True
            return cast(Mask, marks[columns[0]])
        codes, _ = combine_codes([np.concatenate(pair) for pair in zip(columns, found, strict=True)])
        return np.isin(codes[: bindings.count], codes[bindings.count :])

    def _inner_join(
        self, op: ir.InnerJoin, bindings: BindingTable, live: frozenset[str] | None, expected: ExpectedRows | None
    ) -> BindingTable:
        """Inner join with a pipeline which runs once, on its own; `live` are the variables used later, if known."""
        on = frozenset(op.outer_vars)
        plan = RunningPlan(op.inner, None if live is None else live_after(op.inner, live | on), expected)
        # A join in a join could return to the order that was given up.
        inner = self._pipeline(plan, BindingTable(), joins=False)
        return inner_join(bindings, inner, op.outer_vars, self._room(bindings, math.inf))

    def _left_join(self, op: ir.LeftJoin, bindings: BindingTable, expected: ExpectedRows | None) -> BindingTable:
        """Left join. Each distinct combination of the outer variables is matched once."""
        first, combinations = _distinct_combinations([bindings.bound[name].numbers for name in op.outer_vars])
        outer = bindings.only(op.outer_vars).take(first)
        if op.independent:
            inner, owners = self._with_owners(op, outer, expected)
        else:
            numbered = outer.bind(_ROW, MemoryTable({}, outer.count), np.arange(outer.count))
            plan = RunningPlan(op.inner, None, expected)
            inner = self._shared.rows(op, outer, lambda: self._pipeline(plan, numbered))
            owners = inner.bound[_ROW].numbers
        room = partial(self._context.check_size, columns=len(bindings.bound) + len(op.variables) + 3)
        return left_join(bindings, combinations, inner, owners, outer.count, op.variables, room)

    def _with_owners(
        self, op: ir.LeftJoin, outer: BindingTable, expected: ExpectedRows | None
    ) -> tuple[BindingTable, Numbers]:
        """Return the rows of an inner pipeline which runs once, and the outer row to which each belongs."""
        plan = RunningPlan(op.inner, None, expected)
        inner = self._shared.rows(op, None, lambda: self._pipeline(plan, BindingTable()))
        pairs = [(outer.bound[name].numbers, inner.bound[name].numbers) for name in op.outer_vars]
        codes, count = combine_codes([np.concatenate(pair) for pair in pairs])
        owner_of = np.full(count, -1, np.int64)
        owner_of[codes[: outer.count]] = np.arange(outer.count)
        owners = owner_of[codes[outer.count :]]
        found = np.flatnonzero(owners >= 0)
        return inner.take(found, unique=True), owners[found]


_ROW = "_#row"
_FOLLOWING = (ir.Expand, ir.FindPaths, ir.PathSteps)
"""Operators that follow edges."""


def _every(data: ColumnSource) -> Binding:
    """Bind all visible rows; those of an instant of a large table by their numbers."""
    rows = data.slice_rows if isinstance(data, VisibleTable) else None
    return Binding(data) if rows is None else Binding(data, rows, unique=True)


_STORED = (TableData, VisibleTable)
_SKIPPED = (ir.NodeScan, ir.Expand, ir.Filter, ir.AntiJoin)
"""Operators that do not run without rows."""


def _drop_unused(bindings: BindingTable, live: frozenset[str], *, distinct: bool = False) -> BindingTable:
    """Drop the variables that are not used later, and merge equal rows; in a set of rows they have no weights."""
    kept = [name for name in bindings.bound if name in live]
    if len(kept) < len(bindings.bound):
        bindings = bindings.only(kept).merged()
    if distinct and bindings.weight is not None and kept:
        return BindingTable(bindings.count, bindings.bound)
    return bindings


def _read_by(op: ir.Op) -> Iterator[str]:
    """Yield the variables of the row that an operator reads."""
    match op:
        case ir.Expand():
            yield from (op.src_var, op.dst_var)
        case ir.FindPaths() | ir.PathSteps():
            yield from op.bound_vars
        case ir.Filter():
            yield from ir.variables_of(op.condition)
        case ir.AntiJoin() | ir.LeftJoin() | ir.InnerJoin():
            yield from op.outer_vars
        case ir.NodeScan() | ir.Stage():
            pass
        case _:
            assert_never(op)


def _distinct_combinations(columns: list[Numbers]) -> tuple[Numbers, Numbers]:
    """Return (the first row of each distinct combination, the combination of each row)."""
    codes, count = combine_codes(columns)
    return first_rows(codes, count), codes
