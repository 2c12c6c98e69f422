"""Count rows instead of distinct nodes if no node can occur in two rows.

    scan $p by its key | expand $p -Knows{1,4}-> $q     count(distinct $q)      count($q)

A match from one node reaches every node once, so no marks of counted nodes are needed.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.engine.plan.point_lookup import id_tests
from omnigraph.query.plan import ir
from omnigraph.schema.catalog import Catalog


def fold_distinct(plan: ir.QueryIR, catalog: Catalog) -> ir.QueryIR:
    """Return the plan without `distinct` in counts of nodes that occur in one row at most."""
    counted = {_counted_variable(expr) for expr in plan.group_exprs} - {None}
    var = unique_variable(plan.pipeline, catalog) if counted else None
    if var is None:
        return plan

    def folded(expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Aggregate) and _counted_variable(expr) == var:
            return replace(expr, distinct=False)
        return expr

    columns = tuple(replace(column, expr=folded(column.expr)) for column in plan.columns)
    return replace(plan, columns=columns, grouped=tuple(map(folded, plan.grouped)))


def unique_variable(pipeline: ir.Pipeline, catalog: Catalog) -> str | None:
    """Return a variable whose nodes occur in one row of a match at most; None if there is none."""
    unique: str | None = None
    single = True  # the match has one row at most so far
    for op in pipeline:
        match op:
            case ir.NodeScan():
                keyed = next(id_tests(op, catalog), None) is not None
                unique = op.var if single else unique if keyed else None
                single = single and keyed
            case ir.Expand() if not op.dst_bound:
                unique = op.dst_var if single and op.edge_var is None else None
                single = False
            case ir.Expand() if op.edge_var is not None:
                unique, single = None, False
            case ir.Expand() | ir.Filter() | ir.AntiJoin():
                pass
            case ir.LeftJoin() | ir.InnerJoin() | ir.FindPaths() | ir.PathSteps() | ir.Stage():
                unique, single = None, False
    return unique


def _counted_variable(expr: ir.Expr) -> str | None:
    """Return the variable whose distinct nodes an expression counts; None for other expressions."""
    if not isinstance(expr, ir.Aggregate) or not expr.distinct or expr.function != "count":
        return None
    return expr.argument.var if isinstance(expr.argument, ir.Entity) else None
