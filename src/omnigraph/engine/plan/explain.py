"""Explained plans: estimates before a run, actual numbers after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from omnigraph.engine import tuning
from omnigraph.engine.cache import disk_cache
from omnigraph.engine.cache.table_cache import DataCache
from omnigraph.engine.exec.context import OperatorProfile, Profile
from omnigraph.engine.optimizer.optimize import optimize
from omnigraph.engine.optimizer.parameter_classes import plain_values
from omnigraph.engine.plan.cardinality import CardinalityEstimates
from omnigraph.engine.plan.expected_rows import format_estimate
from omnigraph.engine.plan.point_lookup import id_tests
from omnigraph.engine.plan.prepared_query import PreparedQuery
from omnigraph.engine.search.inverted_index import WORDS
from omnigraph.engine.search.vector_index import CLUSTERS, NEIGHBOURS, known_segments
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from omnigraph.query.plan import ir
from omnigraph.query.plan.explain import LineSubject, explain
from omnigraph.storage.lance.tables import Table
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.snapshot import Snapshot

_ROWS, _GUESS, _MS = 12, 12, 10
_FEW = 10.0
_ERROR_MAX = 10.0


class PlanExplainer:
    """Explains one plan on one snapshot."""

    def __init__(
        self,
        prepared: PreparedQuery,
        snapshot: Snapshot,
        cache: DataCache,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        self._plan = prepared.plan
        self._catalog = prepared.catalog
        self._types = prepared.types
        self._snapshot = snapshot
        self._cache = cache
        self._logical = prepared.logical
        self._statistics = GraphStatistics(prepared.catalog, snapshot, cache)
        self._values = plain_values(values or {})
        """The values of parameters that the plan was made for."""
        self._estimates = CardinalityEstimates(prepared.plan, self._statistics, self._values)

    # -- before ----------------------------------------------------------------------------------

    def before(self) -> str:
        """Return the plan with estimated rows and the structures that each operator uses, then the orders compared."""
        return explain(self._plan, self._expected) + "".join(self._orders())

    def _orders(self) -> Iterable[str]:
        """Yield a line for the chosen order with its reason, and one for each of the best alternatives."""
        choice = optimize(self._logical, self._statistics, self._values, compare=True).choice
        if choice is None:
            return
        for number, (names, cost) in enumerate(zip(choice.orders, choice.costs, strict=True)):
            word = "instead" if number else "chosen"
            reason = "" if number else f": {self._reason(names[0])}"
            yield f"  {word:<7} {' → '.join(map(_shown, names))}, estimated {_duration(cost)}{reason}\n"

    def _reason(self, start: str) -> str:
        """Return why an order starts at a variable."""
        first = self._plan.pipeline[0]
        if not isinstance(first, ir.NodeScan):
            return f"starts at {_shown(start)}"
        if self._by_key(first):
            return f"{_shown(start)} is given by its key"
        rows = self._estimates.after(first)
        of = self._statistics.nodes(first.type_name)
        return f"starts at {_rows(rows)} of {of:,} {first.type_name}"

    def _expected(self, part: LineSubject) -> str:
        if part == "rank":
            return self._ranking()
        if part in ("limit", "group"):
            return _rows(self._estimates.result)
        if isinstance(part, str):
            return ""
        notes = [_rows(self._estimates.after(part)), *self._uses(part)]
        return " · ".join(notes)

    def _uses(self, op: ir.Op) -> Iterable[str]:
        if isinstance(op, ir.NodeScan):
            yield "found by its key" if self._by_key(op) else f"of {self._statistics.nodes(op.type_name):,}"
        if isinstance(op, ir.Expand):
            states = dict.fromkeys(self._adjacency(edge_type, op.direction) for edge_type in op.edge_types)
            yield f"adjacency {', '.join(states)}"
        if isinstance(op, ir.FindPaths):
            nodes_only = op.measured and op.by is None
            kind = op.steps[0].direction if nodes_only else "ends"
            states = dict.fromkeys(self._adjacency(edge_type, kind) for edge_type in op.edge_types)
            yield f"{'adjacency' if nodes_only else 'edges by node'} {', '.join(states)}"
        conditions: tuple[ir.Condition, ...] = ()
        if isinstance(op, ir.NodeScan):
            conditions = op.filters
        elif isinstance(op, ir.Expand):
            conditions = (*op.dst_filters, *op.edge_filters)
        elif isinstance(op, ir.FindPaths):
            conditions = tuple(condition for step in op.steps for condition in step.filters)
        elif isinstance(op, ir.PathSteps):
            conditions = op.filters
        elif isinstance(op, ir.Filter):
            conditions = (op.condition,)
        for condition in conditions:
            if isinstance(condition, ir.TextMatch):
                yield f"words of '{condition.prop.name}' {self._kept(WORDS, condition.prop)}"

    def _adjacency(self, edge_type: str, kind: str) -> str:
        edge = self._catalog.edges[edge_type]
        keys = (edge.table_key, TableKey.node(edge.from_type), TableKey.node(edge.to_type))
        return self._state(("adjacency", *(self._snapshot.tables[key].folder for key in keys), kind))

    def _by_key(self, scan: ir.NodeScan) -> bool:
        scans = (replace(scan, type_name=member) for member in self._catalog.members(scan.type_name))
        return any(any(True for _ in id_tests(one, self._catalog)) for one in scans)

    def _ranking(self) -> str:
        rank = self._plan.order_by[0].expr
        assert isinstance(rank, ir.Nearest | ir.Bm25 | ir.Rrf)
        arms = rank.arms if isinstance(rank, ir.Rrf) else (rank,)
        notes: list[str] = []
        for arm in arms:
            if isinstance(arm, ir.Nearest):
                notes += self._vector_search(arm)
            else:
                notes.append(f"words of '{arm.prop.name}' {self._kept(WORDS, arm.prop)}")
        first = self._plan.pipeline[0]
        if len(self._plan.pipeline) > 1 and isinstance(first, ir.NodeScan) and first.var == arms[0].prop.var:
            notes.append("before the rest of the match" if self._plan.limit else "after the match")
        return " · ".join(dict.fromkeys(notes))

    def _vector_search(self, rank: ir.Nearest) -> Iterable[str]:
        """Yield how a vector ranking is found: exactly, or by clusters with their recall."""
        name, kept = rank.prop.name, self._kept("vectors", rank.prop)
        yield f"vectors of '{name}' {kept}: codes first, the best in full"
        tables = self._tables(rank.prop)
        rows = sum(table.row_count for table in tables)
        if not rank.approx:
            if rows > tuning.current.vector_recommend_rows:
                yield f"exact over {rows:,} rows: nearest(…, approx) searches an index"
            return
        if rows < tuning.current.vector_index_rows_min:
            yield f"exact: an index serves from {tuning.current.vector_index_rows_min:,} rows on"
            return
        found = [
            segment.body
            for table in tables
            for segment in known_segments(self._cache, table.folder, table.field_ids[name], rank.prop.type.dim or 0)
            if segment.body.count
        ]
        if found:
            probed, share = sum(body.probed for body in found), sum(body.scanned * body.row_count for body in found)
            share /= sum(body.row_count for body in found)
            yield (
                f"{sum(body.count for body in found):,} {CLUSTERS} {self._kept(CLUSTERS, rank.prop)}: about "
                f"{probed:,.0f} probed with {share:.1%} of the rows, recall@{NEIGHBOURS} "
                f"{min(body.recall for body in found):.3f} when built"
            )
        elif self._cache.keep_in is None:
            yield f"exact: there are no {CLUSTERS}, and none can be kept"
        else:
            yield f"{CLUSTERS} of '{name}' to be built"

    def _tables(self, prop: ir.Prop) -> list[Table]:
        return [self._snapshot.table(TableKey.node(member)) for member in self._catalog.members(self._types[prop.var])]

    def _kept(self, kind: str, prop: ir.Prop) -> str:
        tables = self._tables(prop)
        states = dict.fromkeys(self._state((kind, t.folder, str(t.field_ids[prop.name]))) for t in tables)
        return ", ".join(states)

    def _state(self, what: disk_cache.Subject) -> str:
        if self._cache.base(what) is not None:
            return "in memory"
        kept = any(disk_cache.exists(self._cache.folder, one) for one in (what, (*what, "0")))
        return "on disk" if kept else "to be built"

    # -- after -----------------------------------------------------------------------------------

    def after(self, profile: Profile, *, rows: int, elapsed_ms: float, estimates: bool = True) -> str:
        """Return the plan as it ran, with the rows, time and notes of every operator; with `estimates`, also with the
        estimated rows.
        """
        if not estimates:
            return self._measured(profile, None, rows, elapsed_ms)
        return self._measured(profile, self._estimates, rows, elapsed_ms)

    def _measured(self, profile: Profile, estimates: CardinalityEstimates | None, rows: int, elapsed_ms: float) -> str:
        steps: dict[object, list[OperatorProfile]] = {}
        for step in profile.steps:
            steps.setdefault(step.what if isinstance(step.what, str) else id(step.what), []).append(step)
        plan = self._plan
        if profile.changes:
            plan = replace(plan, pipeline=_executed(plan.pipeline, profile, steps))
            if estimates is not None:
                estimates = CardinalityEstimates(plan, self._statistics, self._values)
        ranks = [key for key in self._plan.order_by if isinstance(key.expr, ir.Nearest | ir.Bm25 | ir.Rrf)]
        if "rank" in steps and len(ranks) == len(self._plan.order_by):
            # The order by a rank alone has no line in the plan.
            steps["rank"] += steps.pop("order", [])

        def note(part: LineSubject) -> str:
            if part == "":
                expected = "" if estimates is None else "expected"
                return f"{'rows':>{_ROWS}}{expected:>{_GUESS}}{'ms':>{_MS}}"
            done = steps.get(part if isinstance(part, str) else id(part))
            if done is None:
                return ""
            estimate = None if isinstance(part, str) or estimates is None else estimates.after(part)
            guess = "" if estimate is None else format_estimate(estimate)
            notes = dict.fromkeys(what for step in done for what in step.how)
            if estimate is not None and (error := self._error(estimate, done[-1].rows)):
                notes[error] = None
            how = " · ".join(notes)
            ms = sum(step.ms for step in done)
            return f"{done[-1].rows:>{_ROWS},}{guess:>{_GUESS}}{ms:>{_MS}.2f}  {how}"

        total = f"{rows:,} row{'' if rows == 1 else 's'} in {elapsed_ms:.2f} ms at commit {self._snapshot.commit_id}"
        return f"{explain(plan, note)}  total   {total}\n"

    def _error(self, expected: float, rows: int) -> str:
        """Return a note about an estimate that is wrong by more than a factor of ten; fewer than ten rows count as ten.

        A grouping or counting query merges rows, so that fewer of them are no error.
        """
        low, high = sorted((max(expected, _FEW), max(float(rows), _FEW)))
        if high <= _ERROR_MAX * low or (expected > rows and self._plan.is_aggregate):
            return ""
        return f"estimate too {'low' if expected < rows else 'high'} by {high / low:,.0f}x"


def _executed(pipeline: ir.Pipeline, profile: Profile, steps: dict[object, list[OperatorProfile]]) -> ir.Pipeline:
    """Return the operators that ran; a block with changed operators takes over the steps of the given block."""
    done: list[ir.Op] = []
    for op in pipeline:
        changed = profile.changes.get(id(op))
        if changed is not None:
            return (*done, *_executed(changed, profile, steps))
        if isinstance(op, ir.AntiJoin | ir.LeftJoin | ir.InnerJoin):
            ran = replace(op, inner=_executed(op.inner, profile, steps))
            if id(op) in steps:
                steps[id(ran)] = steps[id(op)]
            op = ran
        elif isinstance(op, ir.Stage):
            stage = replace(op, query=replace(op.query, pipeline=_executed(op.query.pipeline, profile, steps)))
            if id(op) in steps:
                steps[id(stage)] = steps[id(op)]
            op = stage
        done.append(op)
    return tuple(done)


def _shown(var: str) -> str:
    return "$_" if var.startswith("_#") else f"${var}"


def _duration(nanoseconds: float) -> str:
    """Return a cost as a time with two significant digits."""
    for unit, size in (("s", 1e9), ("ms", 1e6)):
        if nanoseconds >= size:
            return f"{float(f'{nanoseconds / size:.2g}'):g} {unit}"
    return f"{float(f'{nanoseconds / 1e3:.2g}'):g} µs"


def _rows(count: float) -> str:
    return f"{format_estimate(count)} row" + ("" if round(count) == 1 or 0 < count < 1 else "s")
