"""A checked read: all names are resolved and all hops oriented; clauses are in text order.

The type checker passes it to `lower`. Mutations have no such stage: checking one returns its IR.
"""

from __future__ import annotations

from omnigraph.fast_dataclass import dataclass
from omnigraph.query.plan.ir import Condition, Expr, ParamDecl, ParamRef, PathKind, ReturnColumn, SortKey, ValidTime


@dataclass(frozen=True, slots=True)
class ResolvedBinding:
    """A variable that the block binds to a type."""

    var: str
    type_name: str


@dataclass(frozen=True, slots=True)
class ResolvedHop:
    """A hop with a known direction; `max_hops` below `min_hops` reaches nothing."""

    left: str
    left_type: str
    right: str
    right_type: str
    edge_type: str
    left_is_source: bool
    undirected: bool
    min_hops: int
    max_hops: int
    edge_var: str | None
    also: tuple[str, ...] = ()
    """Alternative edge types."""
    mixed_types: bool = False
    """True if the types of the ends are not exactly the endpoint types of every edge type."""


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """A path whose hops connect: the right end of each is the left end of the next."""

    var: str
    kind: PathKind
    hops: tuple[ResolvedHop, ...]
    by: str | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the nodes, from start to end."""
        return (self.hops[0].left, *(hop.right for hop in self.hops))


@dataclass(frozen=True, slots=True)
class ResolvedStep:
    """The steps of a path, between nodes of one type or union."""

    path: str
    left: str
    right: str
    type_name: str
    undirected: bool


@dataclass(frozen=True, slots=True)
class ResolvedBlock:
    """A match block or the body of a `not`; `outer_vars` are the outer variables that it mentions."""

    bindings: tuple[ResolvedBinding, ...]
    hops: tuple[ResolvedHop, ...]
    conditions: tuple[Condition, ...]
    negations: tuple[ResolvedBlock, ...]
    outer_vars: tuple[str, ...]
    optionals: tuple[ResolvedOptional, ...] = ()
    paths: tuple[ResolvedPath, ...] = ()
    steps: tuple[ResolvedStep, ...] = ()


@dataclass(frozen=True, slots=True)
class ResolvedOptional:
    """An `optional` block and its variables that are visible outside it."""

    block: ResolvedBlock
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResolvedRead:
    """A read that passed the type checker."""

    name: str
    params: tuple[ParamDecl, ...]
    block: ResolvedBlock
    columns: tuple[ReturnColumn, ...]
    order_by: tuple[SortKey, ...]
    limit: int | ParamRef | None
    skip: int | ParamRef | None = None
    distinct: bool = False
    having: tuple[Condition, ...] = ()
    grouped: tuple[Expr, ...] = ()
    """Keys and aggregates, if a column is computed from them."""
    stages: tuple[ResolvedStage, ...] = ()
    """The parts before this one."""
    valid: ValidTime | None = None


@dataclass(frozen=True, slots=True)
class ResolvedStage:
    """A part that ends with `with`: the variables that it carries on, and the columns of its values.

    The values are properties of the variable `var`.
    """

    read: ResolvedRead
    kept: tuple[str, ...]
    var: str
    values: tuple[int, ...]
