"""How many rows come back, once the parameters are known.

The executor knows one number, how many rows it must find from the start: what is skipped, and what is shown. The
skipped ones are dropped at the end, so a page is the same rows whichever pages were read before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.errors import InputError
from omnigraph.query.plan import ir


@dataclass(frozen=True)
class Page:
    """A part of a result: at most `rows` of it, behind the first `offset`."""

    offset: int
    rows: int


def cut(plan: ir.QueryIR, params: Mapping[str, Any], page: Page | None = None) -> ir.QueryIR:
    """The plan with its limit and what it skips as numbers; the limit then counts from the first row.

    For a page one row more is found, if there is one: the page behind it then has one too. Of a fusion all rows are
    found, because its limit says how many candidates it fuses.
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
        raise InputError(f"'${param}' says how many rows, and {value} is less than none", code="negative_rows")
    return value
