"""Which columns of a result are nodes, and which of them a hop joined: what a picture of it needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from omnigraph.notebook.picture import Dot, Line
from omnigraph.query import ir

_NAMES = ("name", "title", "label")
"""Properties people call things by."""


@dataclass(frozen=True)
class Hop:
    """Two columns of nodes that an edge, or a path, joins in every row."""

    source: int
    target: int
    label: str
    directed: bool
    several: bool


@dataclass(frozen=True)
class Shape:
    """Column number → node type, and the hops between such columns."""

    nodes: dict[int, str] = field(default_factory=dict)
    hops: tuple[Hop, ...] = ()

    def dots(self, columns: list[list[Any]]) -> Iterator[Dot]:
        """Every node of the rows, row by row."""
        for row in zip(*columns, strict=True):
            for column, kind in self.nodes.items():
                if row[column] is not None:
                    yield Dot(_key(row[column], kind), _label(row[column]), _kind(row[column], kind))

    def lines(self, columns: list[list[Any]]) -> Iterator[Line]:
        """What joins them."""
        for row in zip(*columns, strict=True):
            for hop in self.hops:
                a, b = row[hop.source], row[hop.target]
                if a is not None and b is not None:
                    source, target = _key(a, self.nodes[hop.source]), _key(b, self.nodes[hop.target])
                    yield Line(source, target, hop.label, hop.directed, hop.several)


def shape_of(plan: ir.AnyIR) -> Shape:
    """The nodes a query returns, and the hops of a read between them."""
    nodes: dict[int, str] = {}
    places: dict[str, int] = {}
    for number, column in enumerate(plan.columns):
        expr = column.expr
        if isinstance(expr, ir.GroupValue) and isinstance(plan, ir.QueryIR):
            expr = plan.group_exprs[expr.index]
        if isinstance(expr, ir.Entity):
            nodes[number] = expr.type_name
            places.setdefault(expr.var, number)
    hops: list[Hop] = []
    for step in plan.pipeline if isinstance(plan, ir.QueryIR) else ():
        if isinstance(step, ir.Expand) and step.src_var in places and step.dst_var in places:
            ends = places[step.src_var], places[step.dst_var]
            source, target = ends if step.direction != "in" else ends[::-1]
            several = (step.min_hops, step.max_hops) != (1, 1)
            label = "|".join(step.edge_types)
            label = f"{label}{{{step.min_hops},{step.max_hops}}}" if several else label
            hops.append(Hop(source, target, label, step.direction in ("in", "out"), several))
    return Shape(nodes, tuple(hops))


def _kind(node: dict[str, Any], type_name: str) -> str:
    """The type of a node; one of several says its own."""
    return str(node["type"]) if "|" in type_name else type_name


def _key(node: dict[str, Any], type_name: str) -> str:
    return f"{_kind(node, type_name)}:{node['id']}"


def _label(node: dict[str, Any]) -> str:
    return str(next((node[name] for name in _NAMES if node.get(name)), node["id"]))
