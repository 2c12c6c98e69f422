"""The plan of a mutation: operations in order."""

from __future__ import annotations

from omnigraph.fast_dataclass import dataclass
from omnigraph.query.plan.ir.expressions import Condition, Expr
from omnigraph.query.plan.ir.reads import ParamDecl, ReturnColumn

# `name` is the variable of the rows that an operation affects, if it has one.


@dataclass(frozen=True, slots=True)
class InsertNode:
    """Insert a node; its key must not exist. Properties that are not assigned are null."""

    type_name: str
    values: tuple[tuple[str, Expr], ...]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class InsertEdge:
    """Insert an edge between two nodes given by their ids."""

    type_name: str
    source: Expr
    target: Expr
    values: tuple[tuple[str, Expr], ...]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateNodes:
    """Set properties of the nodes that match `where`."""

    type_name: str
    values: tuple[tuple[str, Expr], ...]
    where: Condition
    name: str | None = None
    valid_from: Expr | None = None
    """The instant at which the periods of the rows end and new ones, with the values, begin."""


@dataclass(frozen=True, slots=True)
class UpdateEdges:
    """Set properties of the edges that match `where`; their endpoints do not change."""

    type_name: str
    values: tuple[tuple[str, Expr], ...]
    where: Condition
    name: str | None = None
    valid_from: Expr | None = None
    """The instant at which the periods of the rows end and new ones, with the values, begin."""


@dataclass(frozen=True, slots=True)
class DeleteNodes:
    """Delete the nodes that match `where`, and their edges."""

    type_name: str
    where: Condition
    name: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteEdges:
    """Delete the edges that match `where`."""

    type_name: str
    where: Condition
    name: str | None = None


@dataclass(frozen=True, slots=True)
class UpsertNode:
    """Insert a node with this key and `new`, or set `existing` on the node that has the key.

    Both include the assignments beside the key.
    """

    type_name: str
    key: tuple[tuple[str, Expr], ...]
    new: tuple[tuple[str, Expr], ...]
    existing: tuple[tuple[str, Expr], ...]
    name: str | None = None


UnifyRule = str
UNIFY_RULES: tuple[UnifyRule, ...] = ("ours", "theirs", "newest", "longest", "union")
"""Rules of a property of unified nodes: `ours` is the value of the kept node."""
EDGE_RULES = ("ours", "theirs", "newest", "keep")
"""Rules of edges of one type that get equal endpoints; `keep` keeps all of them."""


@dataclass(frozen=True, slots=True)
class UnifyNodes:
    """Unify each node `drop` with the node `keep`: ids, or two lists of ids. An expression as a rule is a value."""

    type_name: str
    drop: Expr
    keep: Expr
    rules: tuple[tuple[str, UnifyRule | Expr], ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    name: str | None = None


MutationOp = InsertNode | InsertEdge | UpdateNodes | UpdateEdges | DeleteNodes | DeleteEdges | UpsertNode | UnifyNodes


@dataclass(frozen=True, slots=True)
class MutationIR:
    """The plan of a mutation: operations in order, published as one commit."""

    name: str
    params: tuple[ParamDecl, ...]
    ops: tuple[MutationOp, ...]
    columns: tuple[ReturnColumn, ...] = ()
    """The returned values of the rows that the operations name."""
