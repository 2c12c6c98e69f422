"""`Graph.show`: a query, a type, nodes or a result of the graph as a widget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.engine.result.result import Result
from omnigraph.errors import InputError, NotFound
from omnigraph.notebook.document import Document, document, document_of
from omnigraph.notebook.picture import Dot, Line, draw
from omnigraph.notebook.result_view import label_of
from omnigraph.notebook.widget import Answers, ShownGraph, show
from omnigraph.suggestions import did_you_mean
from omnigraph.wire.json_values import row_value

if TYPE_CHECKING:
    from omnigraph.versioning.write.repository import At

NODES = 300
"""Nodes of a type that are shown."""
NEIGHBORS = 1_000
"""Edges of a node that are read to find those between the nodes of a list."""


@dataclass(frozen=True)
class NodeList:
    """Nodes with their rows, and the edges between them."""

    nodes: tuple[tuple[str, str, Mapping[str, Any]], ...]
    edges: tuple[tuple[int, int, str], ...]

    def _repr_html_(self) -> str:
        dots = [Dot(str(at), label_of({**row, "id": id_}), type_) for at, (type_, id_, row) in enumerate(self.nodes)]
        return draw(dots, [Line(str(source), str(target), label) for source, target, label in self.edges])


@document_of.register
def _(shown: NodeList, rows_max: int | None = None) -> Document:
    nodes = [
        {
            "type": type_,
            "id": id_,
            "label": label_of({**row, "id": id_}),
            "data": {name: row_value(value) for name, value in row.items() if name != "id"},
        }
        for type_, id_, row in shown.nodes
    ]
    edges = [{"from": source, "to": target, "label": label} for source, target, label in shown.edges]
    columns = [{"name": name, "kind": "text", "type": None} for name in ("type", "id", "name")]
    rows = [[node["type"], node["id"], node["label"]] for node in nodes][:rows_max]
    return document("nodes", nodes, edges, {"columns": columns, "rows": rows, "total": len(nodes)})


def show_graph(graph: ShownGraph, what: Any, params: Mapping[str, Any] | None, branch: str | None, at: At) -> Any:
    """Return the widget of a query, a type, a list of nodes, or something that has a form of its own."""
    if not isinstance(what, str) and hasattr(what, "_repr_html_"):
        return show(Answers(what, graph, at=getattr(what, "commit_id", None)), what)
    reader = _nodes_reader(graph, what, branch) if not isinstance(what, str) else _reader(graph, what, params, branch)
    shown = reader(at)
    commit_id = shown.commit_id if isinstance(shown, Result) else graph.snapshot(branch, at).commit_id

    def read(point: str) -> Any:
        return reader(int(point) if point.isdecimal() else point or at)

    return show(Answers(shown, graph, read, commit_id), shown)


def _reader(graph: ShownGraph, what: str, params: Mapping[str, Any] | None, branch: str | None) -> Any:
    """Return the function that runs a query, or reads the nodes of a type, at a point of history."""
    text = what
    if what.isidentifier():
        types = graph.catalog(branch).nodes
        if what not in types:
            raise InputError(f"there is no node type '{what}'", hint=did_you_mean(what, types))
        text = f"match {{ $x: {what} }} return {{ $x }} limit {NODES}"
    return lambda at: graph.query(text, params, branch=branch, at=at)


def _nodes_reader(graph: ShownGraph, what: Any, branch: str | None) -> Any:
    """Return the function that reads nodes and the edges between them at a point of history."""
    pairs: list[tuple[str, str]] = []
    for each in what:
        if not (isinstance(each, Sequence) and not isinstance(each, str) and len(each) == 2):
            raise InputError("a node is a pair of its type and its id", hint='graph.show([("Person", "ana")])')
        pairs.append((str(each[0]), str(each[1])))
    return lambda at: _read_nodes(graph, tuple(dict.fromkeys(pairs)), branch, at)


def _read_nodes(graph: ShownGraph, pairs: tuple[tuple[str, str], ...], branch: str | None, at: At) -> NodeList:
    numbers = {pair: number for number, pair in enumerate(pairs)}
    nodes, edges = [], []
    for type_name, id_ in pairs:
        row = graph.get(type_name, id_, branch=branch, at=at)
        if row is None:
            raise NotFound(f"there is no {type_name} '{id_}'")
        nodes.append((type_name, id_, row))
        page = graph.neighbors(type_name, id_, direction="out", limit=NEIGHBORS, branch=branch, at=at)
        for each in page.neighbors:
            if (each.type, each.id) in numbers:
                edges.append((numbers[type_name, id_], numbers[each.type, each.id], each.edge))
    return NodeList(tuple(nodes), tuple(edges))
