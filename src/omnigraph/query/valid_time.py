"""Valid time: the condition that a row holds at an instant, or at some instant of an interval.

A row holds in the half-open interval from its start to its end; null is open. A read with a valid clause sees the rows
that satisfy the condition, as it sees those that a policy shows: the clause is a `Visibility` of one query.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.errors import ParameterError
from omnigraph.query.plan import ir
from omnigraph.query.visibility import ROW, PeriodTest, Visibility
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.types import PropertyType

_DAY_MS = 86_400_000


def holds_in(type_: NodeType | EdgeType, start: ir.Expr, end: ir.Expr | None) -> ir.Condition:
    """Return the condition that a row of a type with valid time holds at `start`, or in [start, end)."""
    valid = type_.valid
    assert valid is not None, "only types with valid time have periods"
    first, last = (ir.Prop(ROW, name, type_.properties[name].type) for name in (valid.start, valid.end))
    begun = ir.Compare("<=", first, start) if end is None else ir.Compare("<", first, end)
    not_ended = ir.Logic("or", (ir.IsNull(last), ir.Compare(">", last, start)))
    if not first.type.nullable:
        return ir.Logic("and", (begun, not_ended))
    return ir.Logic("and", (ir.Logic("or", (ir.IsNull(first), begun)), not_ended))


def visibility_at(
    plan: ir.QueryIR, catalog: Catalog, params: Mapping[str, Any], now_ms: int, seen: Visibility | None
) -> Visibility | None:
    """Return what an execution of a read sees: what `seen` shows, at the valid time of the read if it has one."""
    return seen if plan.valid is None else valid_visibility(plan.valid, catalog, params, now_ms, seen)


def valid_visibility(
    valid: ir.ValidTime, catalog: Catalog, params: Mapping[str, Any], now_ms: int, seen: Visibility | None = None
) -> Visibility:
    """Return the visibility of a read with a valid clause, which `seen` restricts further."""
    start, end = (None if one is None else _instant(one, params, now_ms) for one in (valid.start, valid.end))
    assert start is not None, "a valid clause has an instant"
    if end is not None and end <= start:
        raise ParameterError(
            "the interval of 'valid during' is empty: its start is not before its end",
            hint="for one instant, write 'valid at $t'",
        )
    rows = {} if seen is None else dict(seen.rows)
    periods: dict[str, PeriodTest] = {}
    for type_ in catalog.tables():
        if type_.valid is None:
            continue
        kind = type_.properties[type_.valid.start].type.with_nullable(False)
        instant, until = _stored(start, kind, up=False), None if end is None else _stored(end, kind, up=True)
        own = holds_in(type_, ir.Const(instant, kind), None if until is None else ir.Const(until, kind))
        key = type_.table_key
        if key in rows:
            given = rows[key]
            rows[key] = None if given is None else ir.Logic("and", (given, own))
        else:
            rows[key] = own
        periods[key] = PeriodTest(type_.valid.start, type_.valid.end, instant, until)
    if seen is None:
        return Visibility(rows, periods=periods)
    return Visibility(rows, seen.properties, seen.audit, periods, seen)


def _instant(expr: ir.Expr, params: Mapping[str, Any], now_ms: int) -> int:
    """Return an instant in milliseconds."""
    if isinstance(expr, ir.Const):
        value = expr.value
    else:
        assert isinstance(expr, ir.ParamRef), "checked by the type checker"
        value = now_ms if expr.name == ir.NOW else params[expr.name]
    return int(value) * (_DAY_MS if expr.type.scalar == "Date" else 1)


def _stored(instant: int, kind: PropertyType, *, up: bool) -> int:
    """Return an instant in the stored form of a type; a date is the day of the instant, or the next midnight."""
    if kind.scalar != "Date":
        return instant
    return -(-instant // _DAY_MS) if up else instant // _DAY_MS
