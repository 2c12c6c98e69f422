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
from omnigraph.engine.adjacency.csr import EMPTY, Room
from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.exec.adaptive import MeasuredHop, Replanner, RowsExceeded, RunningPlan, exceeds
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.exec.cancellation import add_note
from omnigraph.engine.exec.context import ExecutionContext, MatchTooLarge
from omnigraph.engine.exec.count_pushdown import count_pushdown
from omnigraph.engine.exec.hop_expansion import HopExpansion
from omnigraph.engine.exec.inner_join import inner_join
from omnigraph.engine.exec.left_join import NullExtendedTable, drop_absent, left_join
from omnigraph.engine.exec.match_parts import combined, distinct_rows, divided, parts_of
from omnigraph.engine.exec.node_scan import NodeScanner, passing_mask
from omnigraph.engine.exec.seeds import distinct_nodes, is_large
from omnigraph.engine.exec.shared_blocks import SharedBlocks
from omnigraph.engine.expr.evaluator import Evaluator
from omnigraph.engine.expr.key_codes import combine_codes, first_rows
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
        self._scans = NodeScanner(context, evaluator)
        self._hops = HopExpansion(context, evaluator)
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
        self,
        plan: RunningPlan,
        bindings: BindingTable,
        *,
        distinct: bool = False,
        joins: bool = True,
        then: Callable[[BindingTable], BindingTable] = lambda rows: rows,
    ) -> BindingTable:
        """Run some operators. With `live`, rows are only counted, and variables that are not used later are dropped.

        With `distinct`, the rows are a set: it does not matter how often a row occurs. With `joins`, a pipeline
        that is planned again may find a part of the match from its far end and join it. `then` is applied to the rows,
        or to those of each part if the operators run in parts.
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
                return then(self._without_rows(pipeline[position:], bindings))
            if isinstance(op, _FOLLOWING):
                bindings = drop_absent(bindings, op)
            counted = count_pushdown(self._context, pipeline, position, bindings, live) if live is not None else None
            if live is not None and counted is not None:
                position += counted[1]
                bindings = _drop_unused(counted[0], live[position - 1], distinct=distinct)
                add_note("counted without materialising rows")
                plan = self._note(plan, pipeline[position - 1], bindings.count, started)
                continue
            too_large, parts_before = None, self._parts
            try:
                bindings = self._apply(plan, position, bindings)
            except RowsExceeded as exceeded:
                plan = self._replanned(plan, position, bindings, exceeded.rows, joins=joins)
                position = 0
                continue
            except MatchTooLarge as exceeded:
                if live is None:
                    raise
                # The frames of the traceback hold rows.
                too_large, self._parts = exceeded.with_traceback(None), parts_before
            if live is not None:
                if too_large is not None:
                    rest = RunningPlan(pipeline[position:], live[position:], None)
                    if isinstance(op, ir.InnerJoin):
                        return self._join_in_parts(op, rest, bindings, distinct=distinct, then=then)
                    return self._in_parts(rest, bindings, too_large, distinct=distinct, then=then)
                bindings = _drop_unused(bindings, live[position], distinct=distinct)
            plan = self._note(plan, op, bindings.count, started)
            position += 1
        return then(bindings)

    def _parts_of(self, pipeline: ir.Pipeline, bindings: BindingTable, exceeded: MatchTooLarge) -> int:
        """Return into how many parts the input of an operator that exceeds a limit is divided, or raise the error."""
        parts = parts_of(pipeline, bindings, exceeded)
        if not parts or self._parts + parts > tuning.current.match_parts_max:
            raise exceeded
        self._parts += parts
        return parts

    def _in_parts(
        self,
        plan: RunningPlan,
        bindings: BindingTable,
        exceeded: MatchTooLarge,
        *,
        distinct: bool,
        then: Callable[[BindingTable], BindingTable],
    ) -> BindingTable:
        """Run some operators, of which the first exceeds a limit, for one part of the rows after the other."""
        parts = self._parts_of(plan.pipeline, bindings, exceeded)
        add_note(f"in {parts} parts")
        steps = len(self._profile.steps)
        found = self._each_part(
            bindings, parts, lambda part: self._pipeline(plan, part, distinct=distinct, joins=False, then=then)
        )
        self._profile.add_up(steps)
        return found

    def _join_in_parts(
        self,
        op: ir.InnerJoin,
        plan: RunningPlan,
        bindings: BindingTable,
        *,
        distinct: bool,
        then: Callable[[BindingTable], BindingTable],
    ) -> BindingTable:
        """Run a join, and the operators after it, for one part of its inner rows after the other."""
        assert plan.live is not None
        used, rest = plan.live[0], RunningPlan(plan.pipeline[1:], plan.live[1:], None)

        def joined(inner: BindingTable) -> BindingTable:
            try:
                rows = inner_join(bindings, inner, op.outer_vars, self._room(bindings, math.inf))
            except MatchTooLarge as exceeded:
                parts = self._parts_of((), inner, exceeded)
            else:
                rows = _drop_unused(rows, used, distinct=distinct)
                return self._pipeline(rest, rows, distinct=distinct, joins=False, then=then)
            return self._each_part(inner, parts, joined)

        steps = len(self._profile.steps)
        inner = RunningPlan(op.inner, live_after(op.inner, used | frozenset(op.outer_vars)), None)
        found = self._pipeline(inner, BindingTable(), joins=False, then=joined)
        self._profile.add_up(steps)
        return found

    def _each_part(
        self, bindings: BindingTable, parts: int, run: Callable[[BindingTable], BindingTable]
    ) -> BindingTable:
        """Return the rows that the parts of a binding table lead to."""
        found: BindingTable | None = None
        for part in divided(bindings, parts):
            rows = run(part)
            found = rows if found is None else self._combined(found, rows)
        assert found is not None
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
                return self._scans.rows(op, bindings)
            case ir.Expand():
                alone = self._hops.edges_alone(op, bindings, plan.live[position]) if plan.live is not None else None
                if alone is not None:
                    return alone
                return self._hops.rows(op, bindings, self._room(bindings, plan.followed_expected(position)))
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

    def _find_paths(self, op: ir.FindPaths, bindings: BindingTable) -> BindingTable:
        from omnigraph.engine.paths.find_paths import PathFinder  # noqa: PLC0415 (only for paths)

        def candidates(step: ir.PathStep) -> Numbers:
            scan = ir.NodeScan(step.dst_var, step.dst_type, step.filters)
            return self._scans.rows(scan, BindingTable()).bound[step.dst_var].numbers

        def passing(paths: Binding) -> Numbers | None:
            mask = passing_mask(self._evaluator, op.var, paths, op.filters)
            return None if mask is None else np.flatnonzero(mask)

        return PathFinder(self._context, op, candidates).run(bindings, passing)

    def _path_steps(self, op: ir.PathSteps, bindings: BindingTable) -> BindingTable:
        from omnigraph.engine.paths.path_steps import path_steps  # noqa: PLC0415 (only for paths)

        found = path_steps(self._context, op, bindings)
        for condition in op.filters:
            found = found.keep(self._evaluator.mask(condition, found))
        return found

    def _without_rows(self, pipeline: ir.Pipeline, bindings: BindingTable) -> BindingTable:
        """Bind the variables of some operators that do not run because there is no row."""
        for op in pipeline:
            self._context.check()
            started = time.perf_counter()
            if isinstance(op, ir.NodeScan):
                bindings = bindings.bind(op.var, self._context.table(TableKey.node(op.type_name)), EMPTY)
            elif isinstance(op, ir.Expand):
                bindings = self._hops.nothing(op, bindings, self._context.table(TableKey.node(op.dst_type)))
            self._context.profile.note(op, 0, started)
        return bindings

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
        inner = self._once(op, bindings, frozenset(op.outer_vars), expected)
        columns = [bindings.bound[name].numbers for name in op.outer_vars]
        found = [inner.bound[name].numbers for name in op.outer_vars]
        if len(columns) == 1:
            # A null row has a number of its own and matches nothing.
            marks = np.zeros(bindings.bound[op.outer_vars[0]].data.row_count + 1, bool)
            marks[found[0]] = True
            return cast(Mask, marks[columns[0]])
        codes, _ = combine_codes([np.concatenate(pair) for pair in zip(columns, found, strict=True)])
        return np.isin(codes[: bindings.count], codes[bindings.count :])

    def _once(
        self,
        op: ir.AntiJoin | ir.LeftJoin,
        outer: BindingTable,
        live: frozenset[str] | None,
        expected: ExpectedRows | None,
    ) -> BindingTable:
        """Return the rows of an inner pipeline that runs once: with all nodes, or with those of an outer variable that
        has few. With `live`, they are a set.
        """
        start, plan = BindingTable(), RunningPlan(op.inner, None, expected)
        if self._replanner is not None and op.shared is None and expected is not None and is_large(expected):
            seeds = distinct_nodes(outer, op.outer_vars)
            numbers = {name: bound.count for name, bound in seeds.items()}
            found = self._replanner.seeded(expected.given(0), numbers, live) if seeds else None
            if found is not None:
                name, seeded = found
                self._profile.change(op.inner[0], seeded.pipeline, numbers[name])
                start = BindingTable(numbers[name], {name: seeds[name]})
                reason = f"plan changed: ${name} has {numbers[name]:,} nodes"
                plan = RunningPlan(seeded.pipeline, None, seeded.expected, reason=reason)
        distinct = live is not None
        if live is not None:
            plan = replace(plan, live=live_after(plan.pipeline, live))
        return self._shared.rows(op, None, lambda: self._pipeline(plan, start, distinct=distinct))

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
        inner = self._once(op, outer, None, expected)
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
