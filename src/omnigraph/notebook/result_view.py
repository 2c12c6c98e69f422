"""A result as an HTML table and, if it contains nodes, a picture of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from omnigraph.display import html_of
from omnigraph.engine.result.result import ResultView
from omnigraph.engine.result.result_graph import ResultGraph
from omnigraph.notebook.picture import Dot, Line, colours_of, draw
from omnigraph.notebook.tables import Markup, cell, chip, side_by_side, table
from omnigraph.types import ListType, ObjectType, ResultType

_LABELS = ("name", "title", "label")
"""Properties that name a node, in order of preference."""
_PATH = "path"


@html_of.register
def result_html(view: ResultView) -> str:
    """Return a table of the first rows and a picture of the nodes in them."""
    shown = len(view.columns[0]) if view.columns else 0
    first = f"the first {shown} of " if view.row_count > shown else ""
    caption = f"{first}{view.row_count:,} {'row' if view.row_count == 1 else 'rows'}"
    columns, graph = view.columns, view.graph
    if not any(_holds_nodes(type_) for type_ in graph.types):
        return table(view.names, zip(*columns, strict=True), caption=caption, right=view.numeric)
    dots = [dot for dot, _ in dots_of(graph, columns)]
    cells = _cells(graph, columns, colours_of(dots))
    rows = table(view.names, zip(*cells, strict=True), caption=caption, right=view.numeric)
    return side_by_side(rows, draw(dots, lines_of(graph, columns)))


def dots_of(graph: ResultGraph, columns: Sequence[Sequence[Any]]) -> Iterator[tuple[Dot, Mapping[str, Any]]]:
    """Yield every node of the rows with its value, row by row."""
    for row in zip(*columns, strict=True):
        for type_, value in zip(graph.types, row, strict=True):
            yield from _nodes(type_, value)


def _cells(graph: ResultGraph, columns: Sequence[Sequence[Any]], colours: Mapping[str, str]) -> list[list[Any]]:
    """Return the columns with nodes as chips, and paths as chips with arrows between them."""
    return [
        [_shown(type_, value, colours) for value in column] if _holds_nodes(type_) else list(column)
        for type_, column in zip(graph.types, columns, strict=True)
    ]


def lines_of(graph: ResultGraph, columns: Sequence[Sequence[Any]]) -> Iterator[Line]:
    """Yield the edges of paths and the hops between columns."""
    for row in zip(*columns, strict=True):
        for type_, value in zip(graph.types, row, strict=True):
            yield from _path_lines(type_, value)
        for hop in graph.hops:
            ends = [_node(graph.types[number], row[number]) for number in (hop.source, hop.target)]
            if ends[0] is not None and ends[1] is not None:
                yield Line(ends[0].key, ends[1].key, hop.label, hop.directed, hop.several)


def _node(type_: ResultType, value: Any) -> Dot | None:
    """Return the node that a value of this type denotes; None for any other value."""
    if not isinstance(type_, ObjectType) or not _is_node(type_) or value is None:
        return None
    kind = str(value["type"]) if "|" in str(type_.name) else str(type_.name)
    return Dot(f"{kind}:{value['id']}", label_of(value), kind)


def label_of(row: Mapping[str, Any]) -> str:
    """Return the words that name a node: a name, title or label, else its id."""
    return str(next((row[name] for name in _LABELS if row.get(name)), row["id"]))


def _is_node(type_: ObjectType) -> bool:
    names = {name for name, _ in type_.fields}
    return type_.name is not None and type_.name != _PATH and "id" in names and not {"from", "to"} <= names


def _holds_nodes(type_: ResultType) -> bool:
    if isinstance(type_, ListType):
        return _holds_nodes(type_.item)
    if isinstance(type_, ObjectType):
        return _is_node(type_) or any(_holds_nodes(field) for _, field in type_.fields)
    return False


def _nodes(type_: ResultType, value: Any) -> Iterator[tuple[Dot, Mapping[str, Any]]]:
    """Yield the nodes in a value with their own values, including those in lists, objects and paths."""
    if value is None:
        return
    if isinstance(type_, ListType):
        for item in value:
            yield from _nodes(type_.item, item)
    elif isinstance(type_, ObjectType):
        node = _node(type_, value)
        if node is not None:
            yield node, value
            return
        for name, field in type_.fields:
            yield from _nodes(field, value[name])


def _shown(type_: ResultType, value: Any, colours: Mapping[str, str]) -> Any:
    """Return a node as a chip, and a path, list or object with nodes as a sequence of chips."""
    if value is None:
        return None
    if isinstance(type_, ListType):
        return Markup(" ".join(cell(_shown(type_.item, item, colours)) for item in value))
    if not isinstance(type_, ObjectType):
        return value
    if type_.name == _PATH:
        return Markup(" → ".join(_chip(node, {}, colours) for node, _ in _nodes(type_, value)))
    node = _node(type_, value)
    if node is not None:
        return _chip(node, value, colours)
    parts = (f"<i>{cell(name)}</i> {cell(_shown(field, value[name], colours))}" for name, field in type_.fields)
    return Markup(" ".join(parts))


def _chip(node: Dot, properties: Mapping[str, Any], colours: Mapping[str, str]) -> Markup:
    given = ", ".join(f"{name}: {value}" for name, value in properties.items() if name != "type" and value is not None)
    return chip(node.label, colours[node.kind], f"{node.kind} {given}" if given else node.kind)


def _path_lines(type_: ResultType, value: Any) -> Iterator[Line]:
    """Yield the edges of the paths in a value."""
    if value is None:
        return
    if isinstance(type_, ListType):
        for item in value:
            yield from _path_lines(type_.item, item)
    elif isinstance(type_, ObjectType) and type_.name == _PATH:
        nodes = [node for node, _ in _nodes(dict(type_.fields)["nodes"], value["nodes"])]
        ids = [node["id"] for node in value["nodes"]]
        for place, (here, there) in enumerate(pairwise(nodes)):
            edge = value["edges"][place]
            ahead = edge["from"] == ids[place]
            ends = (here, there) if ahead else (there, here)
            yield Line(ends[0].key, ends[1].key, str(edge["type"]))
