"""Stored queries as checks of a proposal: they run on the trial, which is exactly what would land.

    @check(empty)                  no row
    @check(some)                   at least one row
    @check(at_most 10)             at most this many rows
    @check(unchanged)              the rows of the target's head
    @check(no_more_than_before)    at most as many rows as at the target's head

A check belongs to the target: its text there runs, so a proposal cannot change the rule that it must pass. Only if that
text does not fit the merged schema does the text of the proposal run. A check sees the whole graph. Its rows are not
kept: a reader gets them from another run on the same snapshot, with the rules for rows of the reader.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

from omnigraph.cancellation import Limits as OperationLimits
from omnigraph.checkpoints import checkpoint
from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.engine.exec.context import NO_LIMITS
from omnigraph.engine.result.result_graph import result_graph_of
from omnigraph.errors import OmniGraphError, QueryTimeout
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.proposals.proposal_events import CheckState
from omnigraph.operations.read import read
from omnigraph.operations.requests import QueryText, ReadRequest
from omnigraph.query.plan.ir import AnyIR
from omnigraph.query.stored_queries import QuerySet, StoredQuery
from omnigraph.query.syntax.ast import QueryCheck
from omnigraph.versioning.model.snapshot import Snapshot

FAILING_ROWS_MAX = 100
"""Number of rows of a failed check that are shown."""
_TIMEOUT_S = 300.0


class _Surrounding(Cancellation):
    """Stops the query of a check together with the operation that runs it, with the error of that operation."""

    __slots__ = ("_limits",)

    def __init__(self) -> None:
        self._limits = OperationLimits()
        super().__init__()

    @property
    def cancelled(self) -> bool:
        """False; raises if the surrounding operation must stop."""
        self._limits.check()
        return False

    @cancelled.setter
    def cancelled(self, _: bool) -> None:
        """Do nothing: the operation decides."""


@dataclass(frozen=True, slots=True)
class StoredCheck:
    """A stored query that a proposal runs, as the target and as the proposal has it."""

    name: str
    target: StoredQuery | None
    proposed: StoredQuery | None

    @property
    def required(self) -> bool:
        """True if the check must pass; a proposal cannot lift that."""
        checks = [query.check for query in (self.target, self.proposed) if query is not None]
        return any(check is not None and check.required for check in checks)


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The result of one run of a check."""

    name: str
    state: CheckState
    details: str
    ms: int


def checks_of(target: QuerySet, proposed: QuerySet) -> list[StoredCheck]:
    """Return the checks of a proposal: those that the target has, and those that it adds."""
    found = []
    for name in sorted({*target.queries, *proposed.queries}):
        sides = [one.queries.get(name) for one in (target, proposed)]
        checks = [query if query is not None and query.check is not None else None for query in sides]
        if any(query is not None for query in checks):
            found.append(StoredCheck(name, *checks))
    return found


def run_check(context: GraphContext, check: StoredCheck, before: Snapshot, trial: Snapshot) -> CheckOutcome:
    """Run a check on a trial; `before` is the head of the target that the trial was made on."""
    started = time.perf_counter()
    engine = context.unrestricted()
    try:
        query = fitting_text(engine, check, trial)
        state, details = _judge(engine, query, before, trial)
    except OmniGraphError as error:
        checkpoint()  # the end of the surrounding operation is no result of a check
        state, details = "error", error.message
    return CheckOutcome(check.name, state, details, int((time.perf_counter() - started) * 1000))


def fitting_text(context: GraphContext, check: StoredCheck, trial: Snapshot) -> StoredQuery:
    """Return the text of a check that runs: that of the target, unless it does not fit the schema of the trial."""
    if check.target is None:
        assert check.proposed is not None, "a check has a text"
        return check.proposed
    try:
        check.target.compile(context.catalog(trial))
    except OmniGraphError:
        if check.proposed is None:
            raise
        return check.proposed
    return check.target


def rows_of(context: GraphContext, query: StoredQuery, snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return the rows of a check on a snapshot, as the caller of a context may see them."""
    timeout_s = (query.timeout_ms or _TIMEOUT_S * 1000) / 1000
    limits = replace(NO_LIMITS, timeout_s=timeout_s, cancellation=_Surrounding())
    if query.rows_max is not None:
        limits = replace(limits, rows_max=query.rows_max)
    request = ReadRequest(QueryText(query.source, query.name), snapshot.branch, limits=limits)
    return read(context, snapshot, request).result.to_pylist()


def node_types(plan: AnyIR) -> dict[str, str]:
    """Return the columns of a query that hold nodes of one type, with that type."""
    columns = zip(plan.columns, result_graph_of(plan).columns, strict=True)
    return {column.name: each.type for column, each in columns if each.kind == "node" and "|" not in each.type}


def _judge(context: GraphContext, query: StoredQuery, before: Snapshot, trial: Snapshot) -> tuple[CheckState, str]:
    check = query.check
    assert check is not None, "a check has an expectation"
    rows = rows_of(context, query, trial)
    if check.expect in ("unchanged", "no_more_than_before"):
        return _compare(check, _rows_before(context, query, before), rows)
    return _count(check, len(rows))


def _count(check: QueryCheck, count: int) -> tuple[CheckState, str]:
    found = _rows(count)
    match check.expect:
        case "empty":
            return _state(count == 0), f"{found}, expected none"
        case "some":
            return _state(count > 0), f"{found}, expected some"
        case "at_most":
            return _state(count <= (check.count or 0)), f"{found}, expected at most {check.count}"
        case "unchanged" | "no_more_than_before":
            raise AssertionError("these are compared with the rows before")
        case _:
            assert_never(check.expect)


def _compare(
    check: QueryCheck, before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]
) -> tuple[CheckState, str]:
    counts = f"{_rows(len(after))}, {len(before)} before"
    if check.expect == "no_more_than_before":
        return _state(len(after) <= len(before)), counts
    same = sorted(map(_canonical, before)) == sorted(map(_canonical, after))
    return _state(same), f"{counts}, {'unchanged' if same else 'changed'}"


def _rows_before(context: GraphContext, query: StoredQuery, before: Snapshot) -> list[dict[str, Any]]:
    """Return the rows at the target's head; none if the query does not fit its schema."""
    try:
        query.compile(context.catalog(before))
    except OmniGraphError as error:
        if isinstance(error, QueryTimeout):
            raise
        return []
    return rows_of(context, query, before)


def _canonical(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, default=str)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _state(passed: bool) -> CheckState:
    return "pass" if passed else "fail"
