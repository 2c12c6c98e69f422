"""The plan of a change: operations in order."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.query.plan.ir.expressions import Condition, Expr
from omnigraph.query.plan.ir.reads import ParamDecl, ReturnColumn

#
# `name` is the variable of the rows an operation touched, if it has one.


@dataclass(frozen=True, slots=True)
class InsertNode:
    """Insert a node; its key must not exist. Properties that are not assigned are null."""

    type_name: str
    values: tuple[tuple[str, Expr], ...]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class InsertEdge:
    """Add an edge between two nodes given by their ids."""

    type_name: str
    source: Expr
    target: Expr
    values: tuple[tuple[str, Expr], ...]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateNodes:
    """Set properties of the nodes that match."""

    type_name: str
    values: tuple[tuple[str, Expr], ...]
    where: Condition
    name: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateEdges:
    """Set properties of the edges that match; their endpoints stay."""

    type_name: str
    values: tuple[tuple[str, Expr], ...]
    where: Condition
    name: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteNodes:
    """Remove the nodes that match, and every edge at them."""

    type_name: str
    where: Condition
    name: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteEdges:
    """Remove the edges that match."""

    type_name: str
    where: Condition
    name: str | None = None


@dataclass(frozen=True, slots=True)
class UpsertNode:
    """Insert a node with this key and `new`, or set `existing` of the node that has the key.

    Both include the assignments written beside the key.
    """

    type_name: str
    key: tuple[tuple[str, Expr], ...]
    new: tuple[tuple[str, Expr], ...]
    existing: tuple[tuple[str, Expr], ...]
    name: str | None = None


MutationOp = InsertNode | InsertEdge | UpdateNodes | UpdateEdges | DeleteNodes | DeleteEdges | UpsertNode


@dataclass(frozen=True, slots=True)
class MutationIR:
    """A change: operations in order, published as one commit."""

    name: str
    params: tuple[ParamDecl, ...]
    ops: tuple[MutationOp, ...]
    columns: tuple[ReturnColumn, ...] = ()
    """What it returns of the rows its operations named."""
