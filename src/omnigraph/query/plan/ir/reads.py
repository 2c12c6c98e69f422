"""The plan of a read: operations over a bag of rows, then columns, order and limit."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.query.plan.ir.expressions import (
    Aggregate,
    ColumnRef,
    Condition,
    Direction,
    Expr,
    PathKind,
    column_number,
)
from omnigraph.types import PropertyType, ResultType


@dataclass(frozen=True, slots=True)
class ParamDecl:
    """A declared parameter."""

    name: str
    type: PropertyType


@dataclass(frozen=True, slots=True)
class NodeScan:
    """Bind `var` to every row of a node table that passes all `filters`."""

    var: str
    type_name: str
    filters: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Expand:
    """Follow `edge_type` from the bound `src_var` to `dst_var`.

    Without `edge_var` each far node counts once per row; with it, each edge row does. When
    `dst_bound`, the far variable already has a value and the row stays only if it is reached (once
    per edge row when there is an `edge_var`). `max_hops` below `min_hops` reaches nothing. `backward`:
    `src_var` is where the hop ends, not where it starts.
    `dst_filters` and `edge_filters` speak of the far node and of the edge alone.
    """

    src_var: str
    dst_var: str
    edge_type: str
    direction: Direction
    dst_type: str
    min_hops: int = 1
    max_hops: int = 1
    dst_bound: bool = False
    edge_var: str | None = None
    dst_filters: tuple[Condition, ...] = ()
    edge_filters: tuple[Condition, ...] = ()
    backward: bool = False
    also: tuple[str, ...] = ()
    """Other edge types that are followed as well; then there is no `edge_var`."""
    src_type: str | None = None
    """What `src_var` is of where the ends are not simply those of the edges: nodes that are not at such an edge fall
    away, and edges may lead between other types than one another. None where that is not so."""

    @property
    def edge_types(self) -> tuple[str, ...]:
        """Every edge type that is followed."""
        return (self.edge_type, *self.also)


@dataclass(frozen=True, slots=True)
class PathStep:
    """A hop of a path, as it is walked: over `edge_types` to `dst_var`, which must pass `filters`."""

    dst_var: str
    dst_type: str
    edge_types: tuple[str, ...]
    direction: Direction
    min_hops: int = 1
    max_hops: int = 1
    dst_bound: bool = False
    filters: tuple[Condition, ...] = ()
    across: bool = False
    """Edges may lead to nodes of other types than `dst_type`."""


@dataclass(frozen=True, slots=True)
class FindPaths:
    """Bind `var` to paths, a row for each: all there are, or for each pair of ends a shortest or all shortest ones.

    A path visits no node twice. From the bound `src_var` it is followed along `ahead` to its end, and along `back`
    to its start. With `by`, what the edges have of that property is added up, and shortest is the smallest sum.
    """

    var: str
    src_var: str
    src_type: str
    ahead: tuple[PathStep, ...]
    back: tuple[PathStep, ...] = ()
    kind: PathKind = "path"
    by: str | None = None
    filters: tuple[Condition, ...] = ()
    """What must be true of the path alone."""
    measured: bool = False
    """Nobody looks at what is on a path: its ends and its length or weight are enough."""

    @property
    def steps(self) -> tuple[PathStep, ...]:
        """Every step, as they are walked."""
        return self.ahead + self.back

    @property
    def edge_types(self) -> tuple[str, ...]:
        """Every edge type that is followed."""
        return tuple(dict.fromkeys(edge_type for step in self.steps for edge_type in step.edge_types))

    @property
    def bound_vars(self) -> tuple[str, ...]:
        """The variables that have a value before."""
        return (self.src_var, *(step.dst_var for step in self.steps if step.dst_bound))


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep rows for which the condition is definitely true."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class AntiJoin:
    """Drop each row for which `inner`, with `outer_vars` fixed to the row's values, has a match."""

    outer_vars: tuple[str, ...]
    inner: Pipeline


@dataclass(frozen=True, slots=True)
class LeftJoin:
    """Extend each row by every match of `inner`, its `outer_vars` fixed; without any, keep it without `variables`."""

    outer_vars: tuple[str, ...]
    inner: Pipeline
    variables: tuple[str, ...]


Op = NodeScan | Expand | FindPaths | Filter | AntiJoin | LeftJoin
Pipeline = tuple[Op, ...]


@dataclass(frozen=True, slots=True)
class ReturnColumn:
    """A returned column."""

    name: str
    expr: Expr
    type: ResultType


@dataclass(frozen=True, slots=True)
class SortKey:
    """An ordering expression; for a rank the direction is the one that puts the best first."""

    expr: Expr
    descending: bool = False


@dataclass(frozen=True, slots=True)
class QueryIR:
    """A read."""

    name: str
    params: tuple[ParamDecl, ...]
    pipeline: Pipeline
    columns: tuple[ReturnColumn, ...]
    order_by: tuple[SortKey, ...] = ()
    limit: int | None = None
    skip: int = 0
    limit_param: str | None = None
    """The parameter that says the limit; null is none."""
    skip_param: str | None = None
    distinct: bool = False
    """Equal rows of the result are one."""
    having: tuple[Condition, ...] = ()
    """What must be true of a group, on `GROUP`."""
    grouped: tuple[Expr, ...] = ()
    """Keys and aggregates of groups, where some column is computed from them: then all columns are, on `GROUP`."""

    @property
    def group_exprs(self) -> tuple[Expr, ...]:
        """What is known of a group: its aggregates, and the keys it is told by."""
        return self.grouped or tuple(column.expr for column in self.columns)

    @property
    def group_order(self) -> list[tuple[int | Expr, bool]]:
        """What groups are ordered by, and whether descending: a number in `group_exprs`, or what is computed."""
        order: list[tuple[int | Expr, bool]] = []
        for key in self.order_by:
            expr = key.expr
            if isinstance(expr, ColumnRef) and not self.grouped:
                order.append((expr.index, key.descending))
                continue
            expr = self.columns[expr.index].expr if isinstance(expr, ColumnRef) else expr
            number = column_number(expr)
            order.append((expr if number is None else number, key.descending))
        return order

    @property
    def is_aggregate(self) -> bool:
        """Whether rows are grouped: by what is not an aggregate, and where equal rows are one, by everything."""
        return self.distinct or any(isinstance(expr, Aggregate) for expr in self.group_exprs)

    @property
    def is_cut(self) -> bool:
        """Whether how many rows come back is said by `skip` or by a parameter."""
        return bool(self.skip or self.skip_param or self.limit_param)
