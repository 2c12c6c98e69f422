"""A checked read: every name resolved and every hop oriented, clauses still in the order of the text.

This is what the type checker hands to `lower`. Mutations need no such stage: checking one gives its IR.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.query.plan.ir import Condition, Expr, ParamDecl, ParamRef, PathKind, ReturnColumn, SortKey


@dataclass(frozen=True, slots=True)
class ResolvedBinding:
    """A variable the block introduces with a type of its own."""

    var: str
    type_name: str


@dataclass(frozen=True, slots=True)
class ResolvedHop:
    """A hop whose direction is known; `max_hops` below `min_hops` reaches nothing."""

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
    """Other edge types that will do as well."""
    across: bool = False
    """Its ends are not simply those of its edges: some may be of other types, or edges lead between several."""


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """A path whose hops connect, each one's right end to the next one's left."""

    var: str
    kind: PathKind
    hops: tuple[ResolvedHop, ...]
    by: str | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """The nodes that are named, from the start to the end."""
        return (self.hops[0].left, *(hop.right for hop in self.hops))


@dataclass(frozen=True, slots=True)
class ResolvedBlock:
    """A match block or the inside of a `not`; `outer_vars` are the outside variables it mentions."""

    bindings: tuple[ResolvedBinding, ...]
    hops: tuple[ResolvedHop, ...]
    conditions: tuple[Condition, ...]
    negations: tuple[ResolvedBlock, ...]
    outer_vars: tuple[str, ...]
    optionals: tuple[ResolvedOptional, ...] = ()
    paths: tuple[ResolvedPath, ...] = ()


@dataclass(frozen=True, slots=True)
class ResolvedOptional:
    """An `optional` block, and the variables of it that the outside can name."""

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
    """Keys and aggregates, where some column is computed from them."""
