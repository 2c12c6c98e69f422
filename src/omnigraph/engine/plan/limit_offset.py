"""Limit and offset of a plan, once the parameters are known.

The executor finds the skipped and the returned rows and drops the skipped ones at the end. A page is therefore the same
rows, whichever pages were read before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from omnigraph.errors import InputError
from omnigraph.fast_dataclass import dataclass
from omnigraph.query.plan import ir


@dataclass(frozen=True)
class Page:
    """A page of a result: at most `rows` rows after the first `offset`."""

    offset: int
    rows: int


def apply_limit(plan: ir.QueryIR, params: Mapping[str, Any], page: Page | None = None) -> ir.QueryIR:
    """Return the plan with its limit and offset as numbers; the limit includes the skipped rows.

    A page asks for one more row, to know whether a next page exists. A fusion returns all rows, because its limit is
    the number of candidates that it fuses.
    """
    if not plan.is_cut and page is None:
        return plan
    limit = _number(plan.limit_param, params) if plan.limit_param else plan.limit
    skip = (_number(plan.skip_param, params) if plan.skip_param else plan.skip) or 0
    last = None if limit is None else skip + limit
    if page is None:
        return replace(plan, limit=last, skip=skip)
    skip += page.offset
    if not isinstance(plan.order_by[0].expr, ir.Rrf):
        last = skip + page.rows + 1 if last is None else min(last, skip + page.rows + 1)
    return replace(plan, limit=last, skip=skip)


def _number(param: str, params: Mapping[str, Any]) -> int | None:
    value: int | None = params[param]
    if value is not None and value < 0:
        raise InputError(f"'${param}' must not be negative (got {value})", code="negative_rows")
    return value
