"""Types of the result columns and the edges between them, for display as a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

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
class ResultColumn:
    """What a column contains: nodes of a type, paths, or values. A whole edge is no value; `id($e)` is one."""

    kind: Literal["node", "path", "value"]
    type: str
    """The name of the node type, such as `Note` or `Note|Person`; of other columns, the type of the values."""


@dataclass(frozen=True)
class ResultGraph:
    """The columns and their types, and the hops between columns of nodes."""

    types: tuple[ResultType, ...] = ()
    hops: tuple[ColumnHop, ...] = ()
    columns: tuple[ResultColumn, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "columns": [{"kind": each.kind, "type": each.type} for each in self.columns],
            "hops": [
                {name: getattr(hop, name) for name in ("source", "target", "label", "directed", "several")}
                for hop in self.hops
            ],
        }


def read_result_graph(data: Mapping[str, Any]) -> ResultGraph:
    """Return the columns and hops of a JSON form; the types of values are not part of it."""
    return ResultGraph(
        hops=tuple(ColumnHop(**hop) for hop in data["hops"]),
        columns=tuple(ResultColumn(**column) for column in data["columns"]),
    )


def result_graph_of(plan: ir.AnyIR) -> ResultGraph:
    """Return the column types of a query and the hops of a read between its node columns."""
    types: list[ResultType] = []
    columns: list[ResultColumn] = []
    column_of: dict[str, int] = {}
    for number, column in enumerate(plan.columns):
        expr = column.expr
        if isinstance(expr, ir.GroupValue) and isinstance(plan, ir.QueryIR):
            expr = plan.group_exprs[expr.index]
        types.append(column.type)
        columns.append(_column(expr, column.type))
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
    return ResultGraph(tuple(types), tuple(hops), tuple(columns))


def _column(expr: ir.Expr, type_: ResultType) -> ResultColumn:
    if isinstance(expr, ir.Entity):
        return ResultColumn("node", expr.type_name)
    if isinstance(expr, ir.PathPart) and expr.part == "path":
        return ResultColumn("path", str(type_))
    return ResultColumn("value", str(type_))


def _expansions(pipeline: ir.Pipeline) -> Iterator[ir.Expand]:
    """Yield the hops of a read, and of the stages before it: nodes that a stage keeps are connected by its hops."""
    for op in pipeline:
        if isinstance(op, ir.Stage):
            yield from _expansions(op.query.pipeline)
        elif isinstance(op, ir.Expand):
            yield op
