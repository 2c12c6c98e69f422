"""Order and limit of a query.

A ranked query with a limit returns a few of many rows. If the ranked variable is the first one scanned, it is ranked
before the rest of the match runs. The rest then runs for the best entities only, and for more if too few of them have a
match. Whether a row is in the match does not depend on other rows, so the first rows are the same. The same holds for a
query that is ordered by properties of the first variable, and for one with a limit alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine import tuning
from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.exec.cancellation import add_note
from omnigraph.engine.exec.context import ExecutionContext
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.engine.exec.pipeline import MatchPipeline
from omnigraph.engine.expr.evaluator import Evaluator
from omnigraph.engine.expr.sort_keys import id_ranks_of
from omnigraph.engine.paths.path_table import is_of_paths
from omnigraph.engine.plan.expected_rows import ExpectedRows
from omnigraph.engine.search.rank_explain import explain_ranks
from omnigraph.engine.search.searcher import Searcher
from omnigraph.query.plan import ir
from omnigraph.types import PropertyType

Keys = list[np.ndarray[Any, Any]]


class OrderedRows:
    """Matches and orders the rows of one execution."""

    def __init__(
        self,
        plan: ir.QueryIR,
        context: ExecutionContext,
        evaluator: Evaluator,
        searcher: Searcher,
        match: MatchPipeline,
        expected: ExpectedRows | None,
        *,
        stage: str = "",
    ) -> None:
        self._plan = plan
        self._stage = stage
        """The variable of the stage whose rows are ordered; it marks the steps of the profile."""
        self._context = context
        self._evaluator = evaluator
        self._searcher = searcher
        self._match = match
        self._expected = expected

    def rows(self) -> BindingTable:
        """Return the rows; ranked rows have the columns of their rank."""
        rank = self._plan.order_by[0].expr if self._plan.order_by else None
        if not isinstance(rank, ir.Nearest | ir.Bm25 | ir.Rrf):
            return self._sorted(self._first_matches(), [], None)
        bindings, keys = self._ranked(rank)
        started = time.perf_counter()
        order = self._order(bindings, keys, _variable(rank))
        self._context.profile.note(f"order{self._stage}", len(order), started)
        shown = {type(part) for column in self._plan.columns for part in ir.walk(column.expr)}
        rank_columns: dict[str, pa.Array] = {}
        if ir.Rrf in shown:
            rank_columns["score"] = pa.array(-keys[0][order])
        if ir.Why in shown:
            bound = bindings.bound[_variable(rank)]
            rank_columns["why"] = explain_ranks(rank, bound, keys, order, self._searcher)
        rows = bindings.take(order)
        if not rank_columns:
            return rows
        return rows.bind(ir.RANKED, MemoryTable(rank_columns, len(order)), np.arange(len(order)))

    # -- first rows ------------------------------------------------------------------------------

    def _first_matches(self) -> BindingTable:
        """Return the rows of the match, or only some that contain the first ones."""
        plan = self._plan
        limit = plan.limit
        if not limit or not plan.pipeline:
            return self._match.rows(plan.pipeline, expected=self._expected)
        first, rest = plan.pipeline[0], plan.pipeline[1:]
        if not isinstance(first, ir.NodeScan) or (plan.order_by and ordered_variable(plan) != first.var):
            return self._match.rows(plan.pipeline, expected=self._expected)
        every = self._match.run((first,), BindingTable())
        wanted = max(tuning.current.ranked_candidates_min, tuning.current.ranked_overfetch * limit)
        if wanted >= every.count:
            return self._run_rest(rest, every, every.count)
        codes = None
        if plan.order_by:
            key = plan.order_by[0]
            codes = self._evaluator.codes(column_expr(plan, key.expr), every)
            codes = -codes if key.descending else codes
        while wanted < every.count:
            # Entities with an equal first key belong together.
            some = np.arange(wanted) if codes is None else np.flatnonzero(codes <= np.partition(codes, wanted)[wanted])
            chosen = every.take(some, unique=True)
            bindings = self._run_rest(rest, chosen, every.count) if rest else chosen
            if bindings.count >= limit:
                add_note(f"for the first {len(some):,} of {every.count:,}")
                return bindings
            wanted *= tuning.current.ranked_overfetch
        return self._run_rest(rest, every, every.count)

    def _run_rest(self, rest: ir.Pipeline, some: BindingTable, count: int) -> BindingTable:
        """Match the rest for some of the `count` rows of the first operator."""
        self._context.profile.tried[id(self._plan.pipeline[0])] = some.count / max(count, 1)
        expected = None if self._expected is None else self._expected.after_first(some.count)
        return self._match.run(rest, some, expected)

    # -- ranks -----------------------------------------------------------------------------------

    def _ranked(self, rank: ir.Rank) -> tuple[BindingTable, Keys]:
        """Return the rows that can be among the first, and their ranks."""
        first, rest = self._plan.pipeline[0], self._plan.pipeline[1:]
        early = isinstance(first, ir.NodeScan) and first.var == _variable(rank) and rest and self._plan.limit
        if not early:
            return self._rank(rank, self._match.rows(self._plan.pipeline, expected=self._expected))
        every = self._match.run((first,), BindingTable())
        add_note("before the rest of the match")
        if isinstance(rank, ir.Rrf):
            return self._fused_early(rank, every, rest)
        for some in self._best(rank, every):
            bindings = self._run_rest(rest, every.take(some), every.count)
            if bindings.count >= (self._plan.limit or 0):
                break
        return self._rank(rank, bindings)

    def _best(self, rank: ir.Nearest | ir.Bm25, every: BindingTable) -> Iterator[Numbers]:
        """Yield the best entities, ties included: first some, then more, then all that have a rank."""
        bound = every.bound[rank.prop.var]
        wanted = max(tuning.current.ranked_candidates_min, tuning.current.ranked_overfetch * (self._plan.limit or 0))
        while wanted < bound.count:
            found = self._best_candidates(rank, bound, wanted)
            yield found
            if len(found) < wanted:
                return
            wanted *= tuning.current.ranked_overfetch
        yield np.arange(bound.count)

    def _best_candidates(self, rank: ir.Nearest | ir.Bm25, bound: Binding, wanted: int) -> Numbers:
        if isinstance(rank, ir.Bm25):
            return self._searcher.relevant(rank, bound, wanted)[0]
        rows = self._searcher.candidates(rank, bound, wanted)
        distances, _ = self._searcher.distances(rank, bound.take(rows))
        if len(rows) <= wanted:
            return rows
        near: Numbers = rows[distances <= np.partition(distances, wanted - 1)[wanted - 1]]
        return near

    def _fused_early(self, rank: ir.Rrf, every: BindingTable, rest: ir.Pipeline) -> tuple[BindingTable, Keys]:
        """Rank by fusion before the rest of the match, if it is known which entities the match keeps.

        A position in a ranking depends on all entities of the match; without that knowledge the match runs first.
        """
        passing = self._match.passing(rest, every)
        if passing is None:
            return self._rank(rank, self._run_rest(rest, every, every.count))
        chosen, keys = self._rank(rank, every.keep(passing))
        numbers = chosen.bound[_variable(rank)].numbers
        order = np.argsort(numbers)
        bindings = self._run_rest(rest, chosen, every.count)
        at = order[np.searchsorted(numbers, bindings.bound[_variable(rank)].numbers, sorter=order)]
        return bindings, [key[at] for key in keys]

    def _rank(self, rank: ir.Rank, bindings: BindingTable) -> tuple[BindingTable, Keys]:
        """Drop the rows that a ranking excludes or that cannot be among the first, and return the sort keys."""
        started = time.perf_counter()
        limit = self._plan.limit
        bound = bindings.bound[_variable(rank)]
        if isinstance(rank, ir.Rrf):
            rows, score, positions = self._searcher.fuse(rank, bound, bindings.count if limit is None else limit)
            keys: Keys = [-score, *positions]
        elif isinstance(rank, ir.Nearest):
            assert limit is not None, "the type checker asks for a limit"
            rows = self._searcher.candidates(rank, bound, limit)
            keys = [self._searcher.distances(rank, bound.take(rows))[0]]
        else:
            rows, scores = self._searcher.relevant(rank, bound, limit)
            keys = [-scores]
        self._context.profile.note(f"rank{self._stage}", len(rows), started)
        return bindings.take(rows), keys

    # -- sorting ---------------------------------------------------------------------------------

    def _sorted(self, bindings: BindingTable, keys: Keys, ranked: str | None) -> BindingTable:
        limit = self._plan.limit
        if not self._plan.order_by:
            return bindings if limit is None or limit >= bindings.count else bindings.take(np.arange(limit))
        started = time.perf_counter()
        order = self._order(bindings, keys, ranked)
        self._context.profile.note(f"order{self._stage}", len(order), started)
        return bindings.take(order)

    def _order(self, bindings: BindingTable, keys: Keys, ranked: str | None) -> Numbers:
        return row_order(self._plan, bindings, self._evaluator, keys, ranked)


def row_order(
    plan: ir.QueryIR, bindings: BindingTable, evaluator: Evaluator, keys: Keys | None = None, ranked: str | None = None
) -> Numbers:
    """Return the rows by rank, if any, then by the other sort keys, then by ids."""
    keys = list(keys or ())
    for key in plan.order_by[1 if ranked is not None else 0 :]:
        codes = evaluator.codes(column_expr(plan, key.expr), bindings)
        keys.append(-codes if key.descending else codes)
    if plan.limit is not None or bindings.count <= tuning.current.python_sort_rows_max:
        return _first_rows(plan, bindings, evaluator, keys, ranked)
    return _sorted_by([*keys, *_tie_breakers(plan, bindings, evaluator, ranked)], bindings.count)


def _first_rows(
    plan: ir.QueryIR, bindings: BindingTable, evaluator: Evaluator, keys: Keys, ranked: str | None
) -> Numbers:
    """Return the rows up to the limit. Only those with equal sort keys are compared by ids, which may be unread."""
    count = bindings.count
    limit = count if plan.limit is None else min(plan.limit, count)
    if not limit:
        return np.zeros(0, np.int64)
    order = _sorted_by(keys, count)
    begins = np.zeros(count, bool)
    begins[0] = True
    for key in keys:
        begins[1:] |= _differ(key[order])
    group = np.cumsum(begins)
    # The group of the last returned row is compared as a whole.
    end = int(np.searchsorted(group, group[limit - 1], side="right"))
    tied = ~begins[:end]
    tied[:-1] |= tied[1:].copy()
    places = np.flatnonzero(tied)
    if len(places):
        rows = order[places]
        ties = _tie_breakers(plan, bindings.take(rows), evaluator, ranked)
        order[places] = rows[_sorted_by([group[places], *ties], len(rows))]
    return order[:limit]


def _sorted_by(keys: Keys, count: int) -> Numbers:
    return interruptible(lambda: np.lexsort(tuple(reversed(keys))), count)


def _differ(sorted_values: np.ndarray[Any, Any]) -> Mask:
    """Return True for each value after the first that differs from the one before; NaN equals NaN, as in a sort."""
    before, after = sorted_values[:-1], sorted_values[1:]
    differ: Mask = before != after
    return differ & ~((before != before) & (after != after)) if sorted_values.dtype.kind == "f" else differ


def _tie_breakers(plan: ir.QueryIR, bindings: BindingTable, evaluator: Evaluator, ranked: str | None) -> Keys:
    """Return the keys that order rows with equal sort keys: ids, then carried values."""
    paths = {name for name, bound in bindings.bound.items() if is_of_paths(bound)}
    names = sorted(bindings.named(), key=lambda name: name in paths)
    if ranked is not None:
        # The rows of a ranked entity are ordered by their edges.
        edges = set(_edges(plan.pipeline))
        names.sort(key=lambda name: (name != ranked, name in paths, name not in edges, name))
    keys = [id_ranks_of(bindings.bound[name]) for name in names]
    return keys + [evaluator.codes(value, bindings) for value in carried_values(plan)]


def carried_values(plan: ir.QueryIR) -> list[ir.Prop]:
    """Return the values of the stage that a plan starts from; they break ties of rows with equal nodes."""
    stage = plan.pipeline[0] if plan.pipeline else None
    if not isinstance(stage, ir.Stage):
        return []
    columns = [stage.query.columns[number] for number in stage.values]
    return [
        ir.carried_value(stage.var, column.name, column.type)
        for column in columns
        if isinstance(column.type, PropertyType) and not column.type.is_list
    ]


def ordered_variable(plan: ir.QueryIR) -> str | None:
    """Return the variable whose properties are the only sort keys of a plan; None if there are several or none."""
    variables = {var for key in plan.order_by for var in ir.variables_of(column_expr(plan, key.expr))}
    return variables.pop() if len(variables) == 1 else None


def column_expr(plan: ir.AnyIR, expr: ir.Expr) -> ir.Expr:
    """Return the expression of a column, following references to other columns."""
    while isinstance(expr, ir.ColumnRef):
        expr = plan.columns[expr.index].expr
    return expr


def _variable(rank: ir.Rank) -> str:
    return rank.arms[0].prop.var if isinstance(rank, ir.Rrf) else rank.prop.var


def _edges(pipeline: ir.Pipeline) -> Iterator[str | None]:
    """Yield the variables that are bound to edges, including those of optional blocks and stages."""
    for op in pipeline:
        if isinstance(op, ir.Expand):
            yield op.edge_var
        elif isinstance(op, ir.Stage):
            yield from _edges(op.query.pipeline)
        elif isinstance(op, ir.LeftJoin):
            yield from _edges(op.inner)
