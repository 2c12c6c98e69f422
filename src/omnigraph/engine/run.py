"""Runs a read: the pipeline over numbers, then columns, groups, order, limit.

Rows are columns of numbers until the end; properties are fetched for the rows that survive. A query sees
one snapshot, its work is bounded (`Limits`), and it can be stopped between operations.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.adjacency import Adjacency, reach
from omnigraph.engine.aggregate import aggregate
from omnigraph.engine.data import DataCache, Mask, Numbers, TableData
from omnigraph.engine.evaluate import Evaluator, id_ranks, variables_of
from omnigraph.engine.frames import Bound, Frame
from omnigraph.engine.search import EmbedQuery, Searcher
from omnigraph.engine.text import Scores
from omnigraph.errors import LimitReached
from omnigraph.query import ir
from omnigraph.schema.catalog import Catalog, EdgeType
from omnigraph.versioning.snapshot import Snapshot


@dataclass(frozen=True)
class Limits:
    """How much a query may do."""

    rows_max: int = 50_000_000
    """Rows at any point of the match."""
    timeout_s: float | None = None


@dataclass
class Profile:
    """What happened: one line per operation."""

    steps: list[tuple[str, int, float]] = field(default_factory=list)

    def note(self, what: str, rows: int, started: float) -> None:
        """Remember an operation, the rows after it, and how long it took."""
        self.steps.append((what, rows, (time.perf_counter() - started) * 1000))


class Execution:
    """One run of one plan on one snapshot."""

    def __init__(
        self,
        plan: ir.QueryIR,
        catalog: Catalog,
        snapshot: Snapshot,
        params: Mapping[str, Any],
        cache: DataCache,
        *,
        now_ms: int,
        embed: EmbedQuery | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.plan = plan
        self.catalog = catalog
        self.snapshot = snapshot
        self.limits = limits or Limits()
        self.profile = Profile()
        self._cache = cache
        self._tables: dict[str, TableData] = {}
        values = {**params, ir.NOW: now_ms}
        searcher = Searcher(catalog, values, embed, dict(_types(plan.pipeline)))
        self._searcher = searcher
        self._evaluator = Evaluator(catalog, values, searcher)
        timeout = self.limits.timeout_s
        self._deadline = time.monotonic() + timeout if timeout is not None else None

    def run(self) -> pa.Table:
        """The result; column names may repeat."""
        live = live_after(self.plan) if self.plan.is_aggregate else None
        frame = self._pipeline(self.plan.pipeline, Frame(), live)
        started = time.perf_counter()
        if self.plan.is_aggregate:
            table = aggregate(self.plan, frame, self._evaluator)
        else:
            table = self._project(*self._ordered(frame))
        self.profile.note("result", table.num_rows, started)
        return table

    # -- the match -------------------------------------------------------------------------------

    def _pipeline(self, pipeline: ir.Pipeline, frame: Frame, live: Sequence[frozenset[str]] | None = None) -> Frame:
        """Run some operations; with `live`, rows are only counted, and what nobody asks for is not kept."""
        for place, op in enumerate(pipeline):
            self._check()
            started = time.perf_counter()
            if live is not None and isinstance(op, ir.Expand):
                counted = self._count(op, frame, live[place])
                if counted is not None:
                    frame = _forget(counted, live[place])
                    self.profile.note("Count", frame.count, started)
                    continue
            match op:
                case ir.NodeScan():
                    frame = self._scan(op, frame)
                case ir.Expand():
                    frame = self._expand(op, frame)
                case ir.Filter():
                    frame = frame.keep(self._evaluator.mask(op.condition, frame))
                case ir.AntiJoin():
                    frame = self._anti_join(op, frame)
            if live is not None:
                frame = _forget(frame, live[place])
            self.profile.note(type(op).__name__, frame.count, started)
        return frame

    def _scan(self, op: ir.NodeScan, frame: Frame) -> Frame:
        data = self._table(f"node:{op.type_name}")
        filters = op.filters
        numbers = self._by_key(op, data)
        if numbers is None:
            numbers = np.arange(data.row_count)
        found = Frame(len(numbers), {op.var: Bound(data, numbers)})
        for condition in filters:
            found = found.keep(self._evaluator.mask(condition, found))
        numbers = found.bound[op.var].numbers
        if not frame.bound and frame.count == 1 and frame.weight is None:
            return found
        self._room(frame.count * len(numbers))
        crossed = frame.take(np.repeat(np.arange(frame.count), len(numbers)))
        return crossed.bind(op.var, data, np.tile(numbers, frame.count))

    def _by_key(self, op: ir.NodeScan, data: TableData) -> Numbers | None:
        """The one row a scan can find when a key column is given; None when none is."""
        key = self.catalog.nodes[op.type_name].key
        if len(key) != 1:
            return None
        for condition in op.filters:
            if not isinstance(condition, ir.Compare) or condition.op != "=":
                continue
            left, right = condition.left, condition.right
            if isinstance(left, ir.Prop) and left.name == key[0] and isinstance(right, ir.Const | ir.ParamRef):
                value = self._evaluator.constant(right)
                if isinstance(value, str) and left.type.is_text:
                    place = data.find(value)
                    return np.array([] if place is None else [place], np.int64)
        return None

    def _expand(self, op: ir.Expand, frame: Frame) -> Frame:
        edge = self.catalog.edges[op.edge_type]
        edges = self._table(edge.table_key)
        far = self._table(f"node:{op.dst_type}")
        adjacency = self._adjacency(edge)
        sources = frame.bound[op.src_var].numbers
        if op.max_hops < op.min_hops:
            return self._nothing(op, frame, far, edges)
        if op.edge_var is not None:
            return self._expand_edges(op, frame, adjacency, edges, far)
        neighbours = adjacency.neighbours(op.direction)
        if (op.min_hops, op.max_hops) == (1, 1):
            if op.dst_bound:
                return frame.keep(neighbours.connected(sources, frame.bound[op.dst_var].numbers))
            self._room(int(neighbours.degrees(sources).sum()))
            positions, targets = neighbours.expand(sources)
        else:
            positions, targets = self._reach(op, adjacency, sources)
        if op.dst_bound:
            wanted = frame.bound[op.dst_var].numbers
            hit = targets == wanted[positions]
            return frame.take(np.unique(positions[hit]))
        return self._arrive(op, frame, far, positions, targets)

    def _count(self, op: ir.Expand, frame: Frame, live: frozenset[str]) -> Frame | None:
        """A hop in a query that only counts, done without writing its rows out; None when that is not possible.

        If nobody looks at the far end, rows are multiplied by their degrees. If nobody looks at anything but
        the far end, each far node adds up the rows that lead to it.
        """
        simple = op.edge_var is None and (op.min_hops, op.max_hops) == (1, 1) and not op.dst_bound
        onward = op.dst_var in live
        if not simple or op.dst_filters or (onward and not self._only_onward(op, frame, live)):
            return None
        edge = self.catalog.edges[op.edge_type]
        adjacency = self._adjacency(edge)
        sources = frame.bound[op.src_var]
        if onward:
            back = adjacency.neighbours(_BACK[op.direction])
            rows = np.bincount(sources.numbers, weights=frame.weight, minlength=sources.data.row_count)
            counts = back.totals(rows.astype(np.int64))
            numbers = np.flatnonzero(counts)
            far = self._table(f"node:{op.dst_type}")
            return Frame(len(numbers), {op.dst_var: Bound(far, numbers)}, counts[numbers])
        degrees = adjacency.neighbours(op.direction).degrees(sources.numbers)
        kept = np.flatnonzero(degrees)
        return frame.take(kept).weighted(degrees[kept])

    def _only_onward(self, op: ir.Expand, frame: Frame, live: frozenset[str]) -> bool:
        """Whether nothing but the far end matters, and enough rows lead there to go through the whole edge table."""
        bound = frame.bound
        alone = len(bound) == 1 and op.src_var not in live
        return alone and frame.count * 4 >= bound[op.src_var].data.row_count

    def _reach(self, op: ir.Expand, adjacency: Adjacency, sources: Numbers) -> tuple[Numbers, Numbers]:
        """Bounded hops; every distinct source is walked once."""
        distinct, places = np.unique(sources, return_inverse=True)
        neighbours = adjacency.neighbours(op.direction)
        loops = adjacency.loops(op.direction)
        at, found = reach(neighbours, loops, distinct, op.min_hops, op.max_hops, backward=op.backward)
        counts = np.bincount(at, minlength=len(distinct))
        starts = np.cumsum(counts) - counts
        per_row = counts[places]
        self._room(int(per_row.sum()))
        positions = np.repeat(np.arange(len(sources)), per_row)
        within = np.arange(len(positions)) - np.repeat(np.cumsum(per_row) - per_row, per_row)
        return positions, found[np.repeat(starts[places], per_row) + within]

    def _arrive(self, op: ir.Expand, frame: Frame, far: TableData, positions: Numbers, targets: Numbers) -> Frame:
        """Bind the far node; its own conditions are judged before anything else is copied."""
        keep = self._passing(op.dst_var, far, targets, op.dst_filters)
        if keep is not None:
            positions, targets = positions[keep], targets[keep]
        return frame.take(positions).bind(op.dst_var, far, targets)

    def _expand_edges(
        self, op: ir.Expand, frame: Frame, adjacency: Adjacency, edges: TableData, far: TableData
    ) -> Frame:
        assert op.edge_var is not None
        positions, rows, targets = self._edges_at(op, frame, adjacency, edges)
        self._room(len(positions))
        if op.dst_bound:
            hit = targets == frame.bound[op.dst_var].numbers[positions]
            positions, rows, targets = positions[hit], rows[hit], targets[hit]
        keep = self._passing(op.dst_var, far, targets, op.dst_filters)
        if keep is not None:
            positions, rows, targets = positions[keep], rows[keep], targets[keep]
        result = frame.take(positions).bind(op.edge_var, edges, rows)
        return result if op.dst_bound else result.bind(op.dst_var, far, targets)

    def _edges_at(
        self, op: ir.Expand, frame: Frame, adjacency: Adjacency, edges: TableData
    ) -> tuple[Numbers, Numbers, Numbers]:
        """The edges of each row that pass their own conditions: (row, edge, far end)."""
        bound = frame.bound[op.src_var]
        assert op.edge_var is not None
        if op.direction != "both" and op.edge_filters and _is_everything(bound):
            # Every node is a source: the edges are chosen first, and each knows its source.
            everything = np.arange(edges.row_count)
            mask = self._passing(op.edge_var, edges, everything, op.edge_filters)
            chosen = np.flatnonzero(mask) if mask is not None else everything
            src, dst = adjacency.ends()
            near, far = (src, dst) if op.direction == "out" else (dst, src)
            return near[chosen], chosen, far[chosen]
        positions, rows, targets = adjacency.edge_rows(op.direction).expand(bound.numbers)
        keep = self._passing(op.edge_var, edges, rows, op.edge_filters)
        return (positions, rows, targets) if keep is None else (positions[keep], rows[keep], targets[keep])

    def _passing(self, var: str, data: TableData, numbers: Numbers, filters: tuple[ir.Condition, ...]) -> Mask | None:
        if not filters:
            return None
        some = Frame(len(numbers), {var: Bound(data, numbers)})
        mask = np.ones(len(numbers), bool)
        for condition in filters:
            mask &= self._evaluator.mask(condition, some)
        return mask

    def _nothing(self, op: ir.Expand, frame: Frame, far: TableData, edges: TableData) -> Frame:
        empty = np.zeros(0, np.int64)
        result = frame.take(empty)
        if not op.dst_bound:
            result = result.bind(op.dst_var, far, empty)
        return result.bind(op.edge_var, edges, empty) if op.edge_var else result

    def _anti_join(self, op: ir.AntiJoin, frame: Frame) -> Frame:
        """Rows that agree in the outer variables stand or fall together: each combination is tried once."""
        if not frame.count:
            return frame
        columns = [frame.bound[name].numbers for name in op.outer_vars]
        first, places = _distinct(columns)
        outer = frame.only(op.outer_vars).take(first)
        inner = self._pipeline(op.inner, outer.bind(_ROW, _NO_TABLE, np.arange(outer.count)))
        matched = np.zeros(outer.count, bool)
        matched[inner.bound[_ROW].numbers] = True
        return frame.keep(~matched[places])

    # -- the result ------------------------------------------------------------------------------

    def _ordered(self, frame: Frame) -> tuple[Frame, Scores | None]:
        """The rows in their final order, and the fused scores they were ordered by, if they were."""
        keys: list[np.ndarray[Any, Any]] = []
        ranked: str | None = None
        fused: Scores | None = None
        for key in self.plan.order_by:
            expr = key.expr
            if isinstance(expr, ir.Nearest | ir.Bm25 | ir.Rrf):
                ranked = (expr.arms[0] if isinstance(expr, ir.Rrf) else expr).prop.var
                frame, rank_keys = self._rank(expr, frame)
                keys += rank_keys
                fused = -rank_keys[0] if isinstance(expr, ir.Rrf) else None
                continue
            if isinstance(expr, ir.ColumnRef):
                expr = self._column_expr(expr)
            codes = self._evaluator.codes(expr, frame)
            keys.append(-codes if key.descending else codes)
        if not self.plan.order_by:
            limit = self.plan.limit
            return (frame if limit is None or limit >= frame.count else frame.take(np.arange(limit))), None
        names = frame.named()
        if ranked is not None:
            # The rows of a ranked entity come in the order of their edges.
            edges = {op.edge_var for op in self.plan.pipeline if isinstance(op, ir.Expand)}
            names.sort(key=lambda name: (name != ranked, name not in edges, name))
        keys += [id_ranks(frame.bound[name].data)[frame.bound[name].numbers] for name in names]
        order = np.lexsort(tuple(reversed(keys)))
        if self.plan.limit is not None:
            order = order[: self.plan.limit]
        return frame.take(order), fused[order] if fused is not None else None

    def _rank(self, rank: ir.Rank, frame: Frame) -> tuple[Frame, list[np.ndarray[Any, Any]]]:
        """Drop the rows a ranking does not take, and give its sort keys."""
        if isinstance(rank, ir.Rrf):
            bound = frame.bound[rank.arms[0].prop.var]
            limit = self.plan.limit if self.plan.limit is not None else frame.count
            score, first, second = self._searcher.fuse(rank, bound, id_ranks(bound.data), limit)
            kept = np.flatnonzero(score > 0)
            return frame.take(kept), [-score[kept], first[kept], second[kept]]
        bound = frame.bound[rank.prop.var]
        if isinstance(rank, ir.Nearest):
            assert self.plan.limit is not None, "the type checker asks for a limit"
            frame = frame.take(self._searcher.promising(rank, bound, self.plan.limit))
            distances, _ = self._searcher.distances(rank, frame.bound[rank.prop.var])
            return frame, [distances]
        scores = self._searcher.scores(rank, bound)
        kept = np.flatnonzero(scores > 0)
        return frame.take(kept), [-scores[kept]]

    def _project(self, frame: Frame, fused: Scores | None) -> pa.Table:
        exprs = [self._column_expr(column.expr) for column in self.plan.columns]
        # A fused score depends on every candidate, so it is the one that ordered the rows, or none.
        arrays = [pa.array(fused) if isinstance(e, ir.Rrf) else self._evaluator.value(e, frame) for e in exprs]
        return pa.Table.from_arrays(arrays, names=[column.name for column in self.plan.columns])

    def _column_expr(self, expr: ir.Expr) -> ir.Expr:
        while isinstance(expr, ir.ColumnRef):
            expr = self.plan.columns[expr.index].expr
        return expr

    # -- small things ----------------------------------------------------------------------------

    def _adjacency(self, edge: EdgeType) -> Adjacency:
        sources, targets = self._table(f"node:{edge.from_type}"), self._table(f"node:{edge.to_type}")
        return Adjacency(self._table(edge.table_key), sources, targets, self._cache)

    def _table(self, key: str) -> TableData:
        if key not in self._tables:
            self._tables[key] = self._cache.table(self.snapshot.table(key))
        return self._tables[key]

    def _room(self, rows: int) -> None:
        self._check()
        if rows > self.limits.rows_max:
            raise LimitReached(
                f"the match would hold {rows:,} rows; the limit is {self.limits.rows_max:,}",
                hint="raise rows_max, or add a filter or a hop bound that narrows the match",
            )

    def _check(self) -> None:
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise LimitReached(
                f"the query took longer than {self.limits.timeout_s} s", hint="raise timeout_s, or narrow the match"
            )


class _NoTable(TableData):
    """Stands behind the number of an outer row inside an anti-join: it has no columns."""

    def __init__(self) -> None:
        self.key = ("", 0)


_BACK: dict[ir.Direction, ir.Direction] = {"out": "in", "in": "out", "both": "both"}
_ROW = "_#row"
_NO_TABLE = _NoTable()


def _is_everything(bound: Bound) -> bool:
    """Whether a variable runs over its whole table, in order."""
    size = bound.data.row_count
    return len(bound.numbers) == size and bool(np.array_equal(bound.numbers, np.arange(size)))


def live_after(plan: ir.QueryIR) -> list[frozenset[str]]:
    """For each operation of an aggregate query the variables that matter after it.

    `count($x)` counts rows, whatever `$x` is, so it makes nothing matter.
    """
    needed: set[str] = set()
    for column in plan.columns:
        expr = column.expr
        if isinstance(expr, ir.Aggregate):
            needed |= set() if isinstance(expr.argument, ir.Entity) else set(variables_of(expr.argument))
        else:
            needed |= set(variables_of(expr))
    live: list[frozenset[str]] = []
    for op in reversed(plan.pipeline):
        live.append(frozenset(needed))
        match op:
            case ir.Expand():
                needed |= {op.src_var, *((op.dst_var,) if op.dst_bound else ())}
            case ir.Filter():
                needed |= set(variables_of(op.condition))
            case ir.AntiJoin():
                needed |= set(op.outer_vars)
            case ir.NodeScan():
                pass
    return live[::-1]


def _forget(frame: Frame, live: frozenset[str]) -> Frame:
    """Without the variables that no longer matter, equal rows put together."""
    kept = [name for name in frame.bound if name in live]
    return frame if len(kept) == len(frame.bound) else frame.only(kept).merged()


def _distinct(columns: list[Numbers]) -> tuple[Numbers, Numbers]:
    """(the first row of each distinct combination, which combination each row is)."""
    if len(columns) == 1:
        _, first, places = np.unique(columns[0], return_index=True, return_inverse=True)
        return first, places
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _, narrow = np.unique(column, return_inverse=True)
        _, codes = np.unique(codes * (int(narrow.max(initial=0)) + 1) + narrow, return_inverse=True)
    _, first = np.unique(codes, return_index=True)
    return first, codes


def _types(pipeline: ir.Pipeline) -> Iterator[tuple[str, str]]:
    """Variable → node type."""
    for op in pipeline:
        if isinstance(op, ir.NodeScan):
            yield op.var, op.type_name
        elif isinstance(op, ir.Expand):
            yield op.dst_var, op.dst_type
        elif isinstance(op, ir.AntiJoin):
            yield from _types(op.inner)
