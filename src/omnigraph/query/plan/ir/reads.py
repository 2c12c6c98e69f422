"""The plan of a read: operations over a bag of rows, then columns, order and limit."""

from __future__ import annotations

from dataclasses import field

from omnigraph.fast_dataclass import dataclass
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

    Without `edge_var`, a row is extended once by each node reached; with it, once by each edge. With `dst_bound`, the
    far variable is already bound, and the row is kept only if its node is reached (once per edge with an `edge_var`).
    `max_hops` below `min_hops` reaches nothing. With `backward`, `src_var` is the end of the hop, not its start.
    `dst_filters` apply to the far node, `edge_filters` to the edge.
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
    """Alternative edge types; then there is no `edge_var`."""
    src_type: str | None = None
    """The type of `src_var` if the ends are not exactly the endpoint types of every edge type, else None. Nodes of
    other types have no such edge, and the edge types can differ in their endpoints.
    """

    @property
    def edge_types(self) -> tuple[str, ...]:
        """All edge types that are followed."""
        return (self.edge_type, *self.also)


@dataclass(frozen=True, slots=True)
class PathStep:
    """One hop of a path in the direction of traversal: over `edge_types` to `dst_var`, which must pass `filters`."""

    dst_var: str
    dst_type: str
    edge_types: tuple[str, ...]
    direction: Direction
    min_hops: int = 1
    max_hops: int = 1
    dst_bound: bool = False
    filters: tuple[Condition, ...] = ()
    mixed_types: bool = False
    """Edges can lead to nodes of other types than `dst_type`."""


@dataclass(frozen=True, slots=True)
class FindPaths:
    """Bind `var` to paths, one row each: all paths, or for each pair of ends one or all shortest paths.

    A path visits no node twice. The search follows `ahead` from the bound `src_var` to the end of the path, and `back`
    to its start. With `by`, the weight of a path is the sum of that property of its edges, and the shortest path is the
    one of least weight.
    """

    var: str
    src_var: str
    src_type: str
    ahead: tuple[PathStep, ...]
    back: tuple[PathStep, ...] = ()
    kind: PathKind = "path"
    by: str | None = None
    filters: tuple[Condition, ...] = ()
    """Conditions on the path alone."""
    measured: bool = False
    """The query reads only the ends and the length or weight of the path, not its nodes and edges."""

    @property
    def steps(self) -> tuple[PathStep, ...]:
        """All steps in the order of traversal."""
        return self.ahead + self.back

    @property
    def edge_types(self) -> tuple[str, ...]:
        """All edge types that are followed."""
        return tuple(dict.fromkeys(edge_type for step in self.steps for edge_type in step.edge_types))

    @property
    def bound_vars(self) -> tuple[str, ...]:
        """The variables that are bound before the operation."""
        return (self.src_var, *(step.dst_var for step in self.steps if step.dst_bound))


@dataclass(frozen=True, slots=True)
class PathSteps:
    """Extend each row by the edges of its path `path_var`, from the start of the path to its end.

    `src_var` is the node before the edge, `dst_var` the node after it; with `both_ways` each edge also extends the row
    with the two exchanged. A bound end keeps the steps that have its node
    there. `filters` are conditions on the ends that the operation binds.
    """

    path_var: str
    src_var: str
    dst_var: str
    type_name: str
    both_ways: bool = False
    src_bound: bool = False
    dst_bound: bool = False
    filters: tuple[Condition, ...] = ()

    @property
    def bound_vars(self) -> tuple[str, ...]:
        """The variables that are bound before the operation."""
        ends = ((self.src_var, self.src_bound), (self.dst_var, self.dst_bound))
        return (self.path_var, *(var for var, bound in ends if bound))

    @property
    def new_vars(self) -> tuple[str, ...]:
        """The ends that the operation binds."""
        return tuple(var for var in (self.src_var, self.dst_var) if var not in self.bound_vars)


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep rows for which the condition is true; unknown is not true."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class AntiJoin:
    """Drop each row for which `inner`, with `outer_vars` fixed to the values of the row, has a match.

    With `independent`, `inner` binds `outer_vars` itself and runs once.
    """

    outer_vars: tuple[str, ...]
    inner: Pipeline
    independent: bool = False
    shared: int | None = field(default=None, compare=False)
    """Blocks of one number are equal up to the names of variables."""


@dataclass(frozen=True, slots=True)
class LeftJoin:
    """Extend each row by every match of `inner` with `outer_vars` fixed; a row without a match is kept, its `variables`
    null.

    With `independent`, `inner` binds `outer_vars` itself and runs once.
    """

    outer_vars: tuple[str, ...]
    inner: Pipeline
    variables: tuple[str, ...]
    independent: bool = False
    shared: int | None = field(default=None, compare=False)
    """Blocks of one number are equal up to the names of variables."""


@dataclass(frozen=True, slots=True)
class InnerJoin:
    """Extend each row by every match of `inner`, which binds `outer_vars` itself and runs once.

    Only the executor plans it, when it plans the rest of a match again.
    """

    outer_vars: tuple[str, ...]
    inner: Pipeline


@dataclass(frozen=True, slots=True)
class Stage:
    """Bind the rows of another query: its variables `kept`, and its values as properties of `var`.

    It is the first operation of a pipeline. `values` are the columns of the query that are values; the others are the
    variables that are kept.
    """

    query: QueryIR
    kept: tuple[str, ...]
    var: str
    values: tuple[int, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that the operation binds."""
        return (*self.kept, self.var) if self.values else self.kept

    @property
    def value_names(self) -> tuple[str, ...]:
        """The properties of `var`, in the order of `values`."""
        return tuple(f"${self.query.columns[number].name}" for number in self.values)


Op = NodeScan | Expand | FindPaths | PathSteps | Filter | AntiJoin | LeftJoin | InnerJoin | Stage
Pipeline = tuple[Op, ...]


@dataclass(frozen=True, slots=True)
class ReturnColumn:
    """A column of the result."""

    name: str
    expr: Expr
    type: ResultType


@dataclass(frozen=True, slots=True)
class SortKey:
    """A sort expression; for a ranking, the direction puts the best first."""

    expr: Expr
    descending: bool = False


@dataclass(frozen=True, slots=True)
class ValidTime:
    """The valid time of a read: the instant `start`, or with `end` the interval [start, end).

    Both are constants or parameters.
    """

    start: Expr
    end: Expr | None = None


@dataclass(frozen=True, slots=True)
class QueryIR:
    """The plan of a read."""

    name: str
    params: tuple[ParamDecl, ...]
    pipeline: Pipeline
    columns: tuple[ReturnColumn, ...]
    order_by: tuple[SortKey, ...] = ()
    limit: int | None = None
    skip: int = 0
    limit_param: str | None = None
    """The parameter that holds the limit; null means no limit."""
    skip_param: str | None = None
    distinct: bool = False
    """Duplicate rows of the result are removed."""
    having: tuple[Condition, ...] = ()
    """Conditions on groups, over `GROUP`."""
    grouped: tuple[Expr, ...] = ()
    """Keys and aggregates of groups, if a column is computed from them; then all columns are expressions over `GROUP`.
    """
    valid: ValidTime | None = None
    """The valid time of the rows that all operations see; None if they see all periods. Stages have none of their own.
    """

    @property
    def group_exprs(self) -> tuple[Expr, ...]:
        """The aggregates and keys of a group."""
        return self.grouped or tuple(column.expr for column in self.columns)

    @property
    def group_order(self) -> list[tuple[int | Expr, bool]]:
        """The sort keys of groups, each with its direction: an index in `group_exprs`, or an expression."""
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
        """True if rows are grouped: by the expressions that are not aggregates, and with `distinct` by all."""
        return self.distinct or any(isinstance(expr, Aggregate) for expr in self.group_exprs)

    @property
    def is_cut(self) -> bool:
        """True if `skip` or a parameter determines which rows are returned."""
        return bool(self.skip or self.skip_param or self.limit_param)
