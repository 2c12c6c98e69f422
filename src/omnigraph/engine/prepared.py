"""What is the same every time a plan runs, found out once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from omnigraph.engine.lookup import Lookup, find_lookup
from omnigraph.query import ir
from omnigraph.schema.catalog import Catalog


@dataclass(frozen=True)
class Prepared:
    """A read, ready to run."""

    plan: ir.QueryIR
    catalog: Catalog
    types: Mapping[str, str]
    """Variable → node type."""
    live: Sequence[frozenset[str]] | None
    """For a query that groups or counts: the variables that matter after each operation."""
    lookup: Lookup | None
    """The plan as a lookup of a key, if that is all it is."""


def prepare(plan: ir.QueryIR, catalog: Catalog) -> Prepared:
    """Make a plan ready to run."""
    live = live_after(plan) if plan.is_aggregate else None
    return Prepared(plan, catalog, dict(_types(plan.pipeline)), live, find_lookup(plan, catalog))


def live_after(plan: ir.QueryIR) -> list[frozenset[str]]:
    """For each operation of an aggregate query the variables that matter after it.

    `count($x)` counts rows, whatever `$x` is, so it makes nothing matter.
    """
    needed: set[str] = set()
    for column in plan.columns:
        expr = column.expr
        if isinstance(expr, ir.Aggregate):
            rows = isinstance(expr.argument, ir.Entity) and not expr.distinct
            needed |= set() if rows else set(ir.variables_of(expr.argument))
        else:
            needed |= set(ir.variables_of(expr))
    live: list[frozenset[str]] = []
    for op in reversed(plan.pipeline):
        live.append(frozenset(needed))
        match op:
            case ir.Expand():
                needed |= {op.src_var, *((op.dst_var,) if op.dst_bound else ())}
            case ir.Filter():
                needed |= set(ir.variables_of(op.condition))
            case ir.AntiJoin() | ir.LeftJoin():
                needed |= set(op.outer_vars)
            case ir.NodeScan():
                pass
    return live[::-1]


def _types(pipeline: ir.Pipeline) -> Iterator[tuple[str, str]]:
    """Variable → node type."""
    for op in pipeline:
        if isinstance(op, ir.NodeScan):
            yield op.var, op.type_name
        elif isinstance(op, ir.Expand):
            yield op.dst_var, op.dst_type
        elif isinstance(op, ir.AntiJoin | ir.LeftJoin):
            yield from _types(op.inner)
