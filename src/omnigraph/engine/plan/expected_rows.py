"""Expected rows of a physical plan, operator by operator, as the optimizer estimated them."""

from __future__ import annotations

import math
from dataclasses import replace

from omnigraph.fast_dataclass import dataclass
from omnigraph.query.plan import ir

_COUNTED = 1e15
"""More rows are written as a power of ten."""


@dataclass(frozen=True, slots=True)
class ExpectedOperator:
    """The estimates of one operator of a pipeline."""

    given: ir.Op
    """The operator as it was before its form was chosen."""
    rows: float
    """Rows after the operator; infinite if there is no estimate."""
    followed: float
    """Rows that a hop leads to before conditions on the far end; infinite if there is no estimate."""
    inner: ExpectedRows | None = None
    """The estimates of the pipeline of a block."""


@dataclass(frozen=True, slots=True)
class ExpectedRows:
    """The estimates of a pipeline; its operators have the positions of the pipeline."""

    before: float
    """Rows that the pipeline is applied to."""
    operators: tuple[ExpectedOperator, ...]

    def given(self, position: int) -> ir.Pipeline:
        """Return the operators from a position on as they were before their form was chosen."""
        return tuple(one.given for one in self.operators[position:])

    def after_first(self, rows: int) -> ExpectedRows:
        """Return the estimates after the first operator if the rest runs for some of its rows only."""
        before = self.operators[0].rows
        share = min(rows / before, 1.0) if before else 1.0
        rest = (replace(one, rows=one.rows * share, followed=one.followed * share) for one in self.operators[1:])
        return ExpectedRows(before * share, tuple(rest))


def format_estimate(rows: float) -> str:
    """Format an estimate with two significant digits."""
    if rows < 10:
        return f"~{max(round(rows), 1 if rows > 0 else 0)}"
    if rows > _COUNTED:
        return f"~10^{math.log10(rows):.0f}" if math.isfinite(rows) else ">10^308"
    digits = len(str(int(rows)))
    return f"~{round(rows, 2 - digits):,.0f}"
