"""Types of the result columns and the edges between them, for display as a graph."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.fast_dataclass import dataclass
from omnigraph.query.plan import ir
from omnigraph.types import ResultType


@dataclass(frozen=True)
class ColumnHop:
    """Two node columns that an edge, or a chain of edges, connects in every row."""

    source: int
    target: int
    label: str
    directed: bool
    several: bool


@dataclass(frozen=True)
class ResultGraph:
    """The types of the columns and the hops between columns of nodes."""

    types: tuple[ResultType, ...] = ()
    hops: tuple[ColumnHop, ...] = ()


def result_graph_of(plan: ir.AnyIR) -> ResultGraph:
    """Return the column types of a query and the hops of a read between its node columns."""
    types: list[ResultType] = []
    column_of: dict[str, int] = {}
    for number, column in enumerate(plan.columns):
        expr = column.expr
        if isinstance(expr, ir.GroupValue) and isinstance(plan, ir.QueryIR):
            expr = plan.group_exprs[expr.index]
        types.append(column.type)
        if isinstance(expr, ir.Entity):
            column_of.setdefault(expr.var, number)
    hops: list[ColumnHop] = []
    for step in _expansions(plan.pipeline) if isinstance(plan, ir.QueryIR) else ():
        if step.src_var in column_of and step.dst_var in column_of:
            ends = column_of[step.src_var], column_of[step.dst_var]
            source, target = ends if step.direction != "in" else ends[::-1]
            several = (step.min_hops, step.max_hops) != (1, 1)
            label = "|".join(step.edge_types)
            label = f"{label}{{{step.min_hops},{step.max_hops}}}" if several else label
            hops.append(ColumnHop(source, target, label, step.direction in ("in", "out"), several))
    return ResultGraph(tuple(types), tuple(hops))


def _expansions(pipeline: ir.Pipeline) -> Iterator[ir.Expand]:
    """Yield the hops of a read, and of the stages before it: nodes that a stage keeps are connected by its hops."""
    for op in pipeline:
        if isinstance(op, ir.Stage):
            yield from _expansions(op.query.pipeline)
        elif isinstance(op, ir.Expand):
            yield op
