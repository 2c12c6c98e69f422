"""Adaptive execution: the rest of a pipeline is planned again if an estimate proves wrong by a large factor.

An operator with many more rows than expected makes the order of the operators after it doubtful. A hop is checked
before its rows are produced: the number of edges at its sources is known then. The executor asks a `Replanner` for the
rest of the pipeline, given the actual number of rows.

The decision depends on the estimates of the plan and on the rows of the snapshot, never on time, so equal queries run
in an equal order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from omnigraph.engine import tuning
from omnigraph.engine.plan.expected_rows import ExpectedRows
from omnigraph.engine.plan.liveness import live_after
from omnigraph.fast_dataclass import dataclass
from omnigraph.query.plan import ir

CHANGES_MAX = 3
"""Times that one pipeline is planned again."""


class RowsExceeded(Exception):
    """Raised before a hop produces many more rows than expected."""

    def __init__(self, rows: int) -> None:
        super().__init__(rows)
        self.rows = rows


@dataclass(frozen=True)
class MeasuredHop:
    """A hop and the number of rows that it leads to from one row, on average."""

    op: ir.Expand
    fan: float


@dataclass(frozen=True)
class Replanned:
    """The rest of a pipeline in a new order."""

    pipeline: ir.Pipeline
    expected: ExpectedRows


class Replanner(Protocol):
    """Plans the rest of a pipeline again."""

    def replan(
        self,
        rest: ir.Pipeline,
        bound: Collection[str],
        rows: int,
        live: frozenset[str] | None,
        *,
        measured: MeasuredHop | None = None,
        joins: bool = True,
    ) -> Replanned | None:
        """Return operators for `rows` rows that bind some variables; None if their order is fixed.

        `live` are the variables used at the end, if rows are only counted. With `joins`, a part of the match may be
        found from its far end and joined.
        """

    def seeded(
        self, block: ir.Pipeline, seeds: Mapping[str, int], live: frozenset[str] | None
    ) -> tuple[str, Replanned] | None:
        """Return operators of a block that runs once, for given nodes of one of some variables, and this variable.

        `seeds` are the numbers of the nodes. The result is None if that does not pay.
        """


@dataclass(frozen=True, slots=True)
class RunningPlan:
    """A pipeline in execution: its operators, the variables used after each, and its estimates."""

    pipeline: ir.Pipeline
    live: Sequence[frozenset[str]] | None
    expected: ExpectedRows | None
    changes: int = 0
    reason: str = ""
    """Why the plan was changed, until its first operator ran."""

    def rows_expected(self, position: int) -> float:
        """Return the expected rows before the operator at a position; infinite if there is no estimate."""
        if self.expected is None:
            return float("inf")
        return self.expected.operators[position - 1].rows if position else self.expected.before

    def followed_expected(self, position: int) -> float:
        """Return the expected rows that a hop leads to; infinite if there is no estimate."""
        return float("inf") if self.expected is None else self.expected.operators[position].followed

    def inner(self, position: int) -> ExpectedRows | None:
        """Return the estimates of the block at a position."""
        return None if self.expected is None else self.expected.operators[position].inner

    def changed(self, replanned: Replanned | None) -> RunningPlan:
        """Return the plan of the rest; None stands for an order that cannot change."""
        if replanned is None or self.changes >= CHANGES_MAX:
            return RunningPlan(self.pipeline, self.live, None, self.changes)
        live = None if self.live is None else live_after(replanned.pipeline, self.live[-1])
        return RunningPlan(replanned.pipeline, live, replanned.expected, self.changes + 1)


def exceeds(rows: int, expected: float) -> bool:
    """Return True if an estimate is wrong enough to plan again."""
    return rows > expected * tuning.current.replan_factor and rows > tuning.current.replan_rows_min
