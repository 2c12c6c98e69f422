"""Explained plans: estimates before a run, actual numbers after it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from omnigraph.engine import tuning
from omnigraph.engine.cache import disk_cache
from omnigraph.engine.cache.segments import Segment
from omnigraph.engine.cache.table_cache import DataCache
from omnigraph.engine.exec.context import OperatorProfile, PlanChange, Profile
from omnigraph.engine.optimizer.first_rows import first_rows_of
from omnigraph.engine.optimizer.optimize import optimize
from omnigraph.engine.plan.cardinality import CardinalityEstimates
from omnigraph.engine.plan.expected_rows import format_estimate
from omnigraph.engine.plan.point_lookup import id_tests
from omnigraph.engine.plan.prepared_query import PreparedQuery
from omnigraph.engine.search.cluster_lists import NEIGHBOURS
from omnigraph.engine.search.cluster_segments import CLUSTERS, known_segments
from omnigraph.engine.search.inverted_index import WORDS
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from omnigraph.query.plan import ir
from omnigraph.query.plan.explain import LineSubject, explain
from omnigraph.query.plan.plan_tree import NO_FACTS, LineFacts, plan_tree
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
        self._values = prepared.values if values is None else values
        """The values of parameters that rows are estimated for: the given ones, else those the plan was made for."""
        self._estimates = CardinalityEstimates(prepared.plan, self._statistics, self._values)

    # -- before ----------------------------------------------------------------------------------

    def before(self) -> tuple[str, dict[str, Any]]:
        """Return the plan with estimated rows and the structures that each operator uses, as text and as a tree.

        The orders that were compared follow; in the tree they are notes of the root.
        """
        orders = list(self._orders())
        tree = plan_tree(self._plan, self._expected)
        tree["notes"] = [line.strip() for line in orders]
        return explain(self._plan, lambda part: _before_text(self._expected(part))) + "".join(orders), tree

    def _orders(self) -> Iterable[str]:
        """Yield a line for the chosen order with its reason, and one for each of the best alternatives; then the same
        for the blocks. The tables can have changed since the plan was made, so that another order is cheapest now.
        """
        physical = optimize(self._logical, self._statistics, self._values, compare=True)
        choice = physical.choice
        if choice is None:
            return
        if physical.plan.pipeline != self._plan.pipeline:
            order = " → ".join(map(_shown, _order(self._plan.pipeline)))
            yield _compared(True, f"{order}, planned when the tables had other rows")
            for names, cost in zip(choice.orders, choice.costs, strict=True):
                yield _compared(False, f"{' → '.join(map(_shown, names))}, estimated {_duration(cost)}")
            return
        for number, (names, cost) in enumerate(zip(choice.orders, choice.costs, strict=True)):
            reason = "" if number else f": {self._reason(names[0])}"
            yield _compared(number == 0, f"{' → '.join(map(_shown, names))}, estimated {_duration(cost)}{reason}")
        for block in choice.blocks:
            outer = ", ".join(map(_shown, block.variables)) or "rows"
            forms = [(f"for each {outer}", block.each), (f"found once for all {outer}", block.once)]
            for number, (form, cost) in enumerate(reversed(forms) if block.runs_once else forms):
                if math.isfinite(cost):
                    yield _compared(number == 0, f"{block.kind} {form}, estimated {_duration(cost)}")

    def _reason(self, start: str) -> str:
        """Return why an order starts at a variable."""
        plan = self._plan
        while isinstance(stage := plan.pipeline[0], ir.Stage):
            plan = stage.query
        first = plan.pipeline[0]
        if not isinstance(first, ir.NodeScan):
            return f"starts at {_shown(start)}"
        if self._by_key(first):
            return f"{_shown(start)} is given by its key"
        rows = self._estimates.after(first)
        of = self._statistics.nodes(first.type_name)
        reason = f"starts at {_rows(rows)} of {of:,} {first.type_name}"
        wanted = first_rows_of(plan)
        if wanted is None or len(plan.pipeline) < 2 or wanted.var not in (start, None):
            return reason
        return f"{reason}, {'the first by the order of the query' if wanted.var else 'until the limit is reached'}"

    def _expected(self, part: LineSubject) -> LineFacts:
        if part == "rank":
            return LineFacts(notes=tuple(self._ranking()))
        if part in ("limit", "group"):
            return LineFacts(self._estimates.result)
        if isinstance(part, str):
            return NO_FACTS
        return LineFacts(self._estimates.after(part), notes=tuple(self._uses(part)))

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

    def _ranking(self) -> Iterable[str]:
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
        return dict.fromkeys(notes)

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
        known = [
            (table, segment)
            for table in tables
            for segment in known_segments(self._cache, table.folder, table.field_ids[name], rank.prop.type.dim or 0)
        ]
        found = [segment.body for table, segment in known if segment.body.count and _shares_rows(segment, table)]
        if found:
            probed, share = sum(body.probed for body in found), sum(body.scanned * body.row_count for body in found)
            share /= sum(body.row_count for body in found)
            yield (
                f"{sum(body.count for body in found):,} {CLUSTERS} {self._kept(CLUSTERS, rank.prop)}: about "
                f"{probed:,.0f} probed with {share:.1%} of the rows, recall@{NEIGHBOURS} "
                f"{min(body.recall for body in found):.3f} when built"
            )
        elif self._cache.keep_in is None or any(segment.version > table.version for table, segment in known):
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

    def after(
        self, profile: Profile, *, rows: int, elapsed_ms: float, estimates: bool = True
    ) -> tuple[str, dict[str, Any]]:
        """Return the plan as it ran, with the rows, time and notes of every operator, as text and as a tree; with
        `estimates`, also with the estimated rows. Without them, times are whole milliseconds: they tell less of hidden
        rows.
        """
        if not estimates:
            return self._measured(profile, None, rows, elapsed_ms)
        return self._measured(profile, self._estimates, rows, elapsed_ms)

    def _measured(
        self, profile: Profile, estimates: CardinalityEstimates | None, rows: int, elapsed_ms: float
    ) -> tuple[str, dict[str, Any]]:
        steps: dict[object, list[OperatorProfile]] = {}
        for step in profile.steps:
            steps.setdefault(step.what if isinstance(step.what, str) else id(step.what), []).append(step)
        plan, digits = self._plan, 0 if estimates is None else 2
        if profile.changes:
            plan = replace(plan, pipeline=_executed(plan.pipeline, list(profile.changes), steps))
            if estimates is not None:
                starts = {id(change.by[0]): change.rows for change in profile.changes if change.by}
                estimates = CardinalityEstimates(plan, self._statistics, self._values, starts)
        shares = dict(_shares(plan.pipeline, profile))
        ranks = [key for key in self._plan.order_by if isinstance(key.expr, ir.Nearest | ir.Bm25 | ir.Rrf)]
        if "rank" in steps and len(ranks) == len(self._plan.order_by):
            # The order by a rank alone has no line in the plan.
            steps["rank"] += steps.pop("order", [])

        def facts(part: LineSubject) -> LineFacts:
            done = steps.get(part if isinstance(part, str) else id(part))
            if done is None:
                return NO_FACTS
            estimate = None
            if not isinstance(part, str) and estimates is not None:
                estimate = estimates.after(part) * shares.get(id(part), 1.0)
            notes = dict.fromkeys(what for step in done for what in step.how)
            if estimate is not None and (error := self._error(estimate, done[-1].rows)):
                notes[error] = None
            return LineFacts(estimate, done[-1].rows, round(sum(step.ms for step in done), digits), tuple(notes))

        def note(part: LineSubject) -> str:
            if part == "":
                expected = "" if estimates is None else "expected"
                return f"{'rows':>{_ROWS}}{expected:>{_GUESS}}{'ms':>{_MS}}"
            return _after_text(facts(part), digits)

        took = f"{elapsed_ms:.{digits}f} ms at commit {self._snapshot.commit_id}"
        tree = plan_tree(plan, facts)
        tree |= {"rows": rows, "ms": round(elapsed_ms, digits)}
        return f"{explain(plan, note)}  total   {rows:,} row{'' if rows == 1 else 's'} in {took}\n", tree

    def _error(self, expected: float, rows: int) -> str:
        """Return a note about an estimate that is wrong by more than a factor of ten; fewer than ten rows count as ten.

        A grouping or counting query merges rows, so that fewer of them are no error.
        """
        low, high = sorted((max(expected, _FEW), max(float(rows), _FEW)))
        if high <= _ERROR_MAX * low or (expected > rows and self._plan.is_aggregate):
            return ""
        return f"estimate too {'low' if expected < rows else 'high'} by {high / low:,.0f}x"


def _shares(pipeline: ir.Pipeline, profile: Profile, share: float = 1.0) -> Iterable[tuple[int, float]]:
    """Yield the identity of each operator and the share of the rows of the match that it ran for."""
    for number, op in enumerate(pipeline):
        if number == 1:
            share *= profile.tried.get(id(pipeline[0]), 1.0)
        yield id(op), share
        if isinstance(op, ir.AntiJoin | ir.LeftJoin | ir.InnerJoin):
            yield from _shares(op.inner, profile, share)
        elif isinstance(op, ir.Stage):
            yield from _shares(op.query.pipeline, profile)


def _executed(
    pipeline: ir.Pipeline, changes: list[PlanChange], steps: dict[object, list[OperatorProfile]]
) -> ir.Pipeline:
    """Return the operators that ran, and take their changes from the list.

    A block with changed operators takes over the steps of the given block.
    """
    # An operator can be among those that ran in place of it, also in a block, and be replaced again.
    for change in list(changes):
        position = next((at for at, op in enumerate(pipeline) if op is change.replaced), None)
        if position is not None:
            pipeline = (*pipeline[:position], *change.by)
            changes.remove(change)
    done: list[ir.Op] = []
    for op in pipeline:
        if isinstance(op, ir.AntiJoin | ir.LeftJoin | ir.InnerJoin):
            ran = replace(op, inner=_executed(op.inner, changes, steps))
            if id(op) in steps:
                steps[id(ran)] = steps[id(op)]
            op = ran
        elif isinstance(op, ir.Stage):
            stage = replace(op, query=replace(op.query, pipeline=_executed(op.query.pipeline, changes, steps)))
            if id(op) in steps:
                steps[id(stage)] = steps[id(op)]
            op = stage
        done.append(op)
    return tuple(done)


def _before_text(facts: LineFacts) -> str:
    estimate = [] if facts.expected is None else [_rows(facts.expected)]
    return " · ".join([*estimate, *facts.notes])


def _after_text(facts: LineFacts, digits: int) -> str:
    if facts.rows is None:
        return ""
    guess = "" if facts.expected is None else format_estimate(facts.expected)
    return f"{facts.rows:>{_ROWS},}{guess:>{_GUESS}}{facts.ms:>{_MS}.{digits}f}  {' · '.join(facts.notes)}"


def _order(pipeline: ir.Pipeline) -> Iterable[str]:
    """Yield the variables of nodes in the order in which a pipeline binds them."""
    for op in pipeline:
        match op:
            case ir.NodeScan():
                yield op.var
            case ir.Expand() if not op.dst_bound:
                yield op.dst_var
            case ir.FindPaths():
                yield from (step.dst_var for step in op.steps if not step.dst_bound)
            case ir.Stage():
                yield from _order(op.query.pipeline)
            case _:
                pass


def _shares_rows(segment: Segment[Any], table: Table) -> bool:
    """Return True if a segment has rows of a version of its table."""
    files = {fragment[0] for fragment in table.fragments}
    return any(fragment[0] in files for fragment in segment.layout.fragments)


def _shown(var: str) -> str:
    return "$_" if var.startswith("_#") else f"${var}"


def _compared(chosen: bool, text: str) -> str:
    return f"  {'chosen' if chosen else 'instead':<7} {text}\n"


def _duration(nanoseconds: float) -> str:
    """Return a cost as a time with two significant digits."""
    for unit, size in (("s", 1e9), ("ms", 1e6)):
        if nanoseconds >= size:
            return f"{float(f'{nanoseconds / size:.2g}'):g} {unit}"
    return f"{float(f'{nanoseconds / 1e3:.2g}'):g} µs"


def _rows(count: float) -> str:
    return f"{format_estimate(count)} row" + ("" if round(count) == 1 or 0 < count < 1 else "s")
