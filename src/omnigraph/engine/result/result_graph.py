"""The nodes and edges inside the rows of a result: what a notebook shows as chips and draws as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from omnigraph.notebook.picture import Dot, Line
from omnigraph.notebook.tables import Markup, cell, chip
from omnigraph.query.plan import ir
from omnigraph.types import ListType, ObjectType, ResultType

_LABELS = ("name", "title", "label")
"""Properties that name a node, in order of preference."""
_PATH = "path"


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
    """The types of the columns, and the hops between columns of nodes."""

    types: tuple[ResultType, ...] = ()
    hops: tuple[ColumnHop, ...] = ()

    @property
    def has_nodes(self) -> bool:
        """Whether some column holds nodes or paths."""
        return any(_holds_nodes(type_) for type_ in self.types)

    def dots(self, columns: Sequence[Sequence[Any]]) -> Iterator[Dot]:
        """Every node of the rows, row by row."""
        for row in zip(*columns, strict=True):
            for type_, value in zip(self.types, row, strict=True):
                yield from _nodes(type_, value)

    def cells(self, columns: Sequence[Sequence[Any]], colours: Mapping[str, str]) -> list[list[Any]]:
        """The columns with nodes as chips, and paths as chips with arrows between them."""
        return [
            [_shown(type_, value, colours) for value in column] if _holds_nodes(type_) else list(column)
            for type_, column in zip(self.types, columns, strict=True)
        ]

    def lines(self, columns: Sequence[Sequence[Any]]) -> Iterator[Line]:
        """The edges between them: those of paths, and the hops between columns."""
        for row in zip(*columns, strict=True):
            for type_, value in zip(self.types, row, strict=True):
                yield from _path_lines(type_, value)
            for hop in self.hops:
                ends = [node_of(self.types[number], row[number]) for number in (hop.source, hop.target)]
                if ends[0] is not None and ends[1] is not None:
                    yield Line(ends[0].key, ends[1].key, hop.label, hop.directed, hop.several)


def result_graph_of(plan: ir.AnyIR) -> ResultGraph:
    """The columns of a query, and the hops of a read between its node columns."""
    types: list[ResultType] = []
    places: dict[str, int] = {}
    for number, column in enumerate(plan.columns):
        expr = column.expr
        if isinstance(expr, ir.GroupValue) and isinstance(plan, ir.QueryIR):
            expr = plan.group_exprs[expr.index]
        types.append(column.type)
        if isinstance(expr, ir.Entity):
            places.setdefault(expr.var, number)
    hops: list[ColumnHop] = []
    for step in plan.pipeline if isinstance(plan, ir.QueryIR) else ():
        if isinstance(step, ir.Expand) and step.src_var in places and step.dst_var in places:
            ends = places[step.src_var], places[step.dst_var]
            source, target = ends if step.direction != "in" else ends[::-1]
            several = (step.min_hops, step.max_hops) != (1, 1)
            label = "|".join(step.edge_types)
            label = f"{label}{{{step.min_hops},{step.max_hops}}}" if several else label
            hops.append(ColumnHop(source, target, label, step.direction in ("in", "out"), several))
    return ResultGraph(tuple(types), tuple(hops))


def node_of(type_: ResultType, value: Any) -> Dot | None:
    """The node that a value of this type is; None for anything else."""
    if not isinstance(type_, ObjectType) or not _is_node(type_) or value is None:
        return None
    kind = str(value["type"]) if "|" in str(type_.name) else str(type_.name)
    label = next((value[name] for name in _LABELS if value.get(name)), value["id"])
    return Dot(f"{kind}:{value['id']}", str(label), kind)


def _is_node(type_: ObjectType) -> bool:
    names = {name for name, _ in type_.fields}
    return type_.name is not None and type_.name != _PATH and "id" in names and not {"from", "to"} <= names


def _holds_nodes(type_: ResultType) -> bool:
    if isinstance(type_, ListType):
        return _holds_nodes(type_.item)
    if isinstance(type_, ObjectType):
        return _is_node(type_) or any(_holds_nodes(field) for _, field in type_.fields)
    return False


def _nodes(type_: ResultType, value: Any) -> Iterator[Dot]:
    """The nodes inside a value, also those in lists, objects and paths."""
    if value is None:
        return
    if isinstance(type_, ListType):
        for item in value:
            yield from _nodes(type_.item, item)
    elif isinstance(type_, ObjectType):
        node = node_of(type_, value)
        if node is not None:
            yield node
            return
        for name, field in type_.fields:
            yield from _nodes(field, value[name])


def _shown(type_: ResultType, value: Any, colours: Mapping[str, str]) -> Any:
    """A node as a chip; a path, a list of nodes or an object with nodes as the chips inside it."""
    if value is None:
        return None
    if isinstance(type_, ListType):
        return Markup(" ".join(cell(_shown(type_.item, item, colours)) for item in value))
    if not isinstance(type_, ObjectType):
        return value
    if type_.name == _PATH:
        return Markup(" → ".join(_chip(node, {}, colours) for node in _nodes(type_, value)))
    node = node_of(type_, value)
    if node is not None:
        return _chip(node, value, colours)
    parts = (f"<i>{cell(name)}</i> {cell(_shown(field, value[name], colours))}" for name, field in type_.fields)
    return Markup(" ".join(parts))


def _chip(node: Dot, properties: Mapping[str, Any], colours: Mapping[str, str]) -> Markup:
    given = ", ".join(f"{name}: {value}" for name, value in properties.items() if name != "type" and value is not None)
    return chip(node.label, colours[node.kind], f"{node.kind} {given}" if given else node.kind)


def _path_lines(type_: ResultType, value: Any) -> Iterator[Line]:
    """The edges of the paths inside a value."""
    if value is None:
        return
    if isinstance(type_, ListType):
        for item in value:
            yield from _path_lines(type_.item, item)
    elif isinstance(type_, ObjectType) and type_.name == _PATH:
        nodes = list(_nodes(dict(type_.fields)["nodes"], value["nodes"]))
        ids = [node["id"] for node in value["nodes"]]
        for place, (here, there) in enumerate(pairwise(nodes)):
            edge = value["edges"][place]
            ahead = edge["from"] == ids[place]
            ends = (here, there) if ahead else (there, here)
            yield Line(ends[0].key, ends[1].key, str(edge["type"]))
