"""A schema proposed for files with nodes and edges of several types: Neo4j admin CSV and GraphML.

The types of properties are those that the files declare. The first label of a node is its type. A further label that
all nodes of a type have is an interface; other further labels are the list property `labels`. A relationship type that
joins several pairs of node types is one edge type for each pair.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from omnigraph.checkpoints import paced
from omnigraph.engine.graph_files.graphml_draft import graphml_items
from omnigraph.engine.graph_files.neo4j_draft import neo4j_items
from omnigraph.engine.graph_files.record_collector import LABELS
from omnigraph.engine.graph_files.scanned import Declared, ScannedEdge, ScannedNode
from omnigraph.engine.graph_files.type_names import EDGE, NODE, edge_type_name
from omnigraph.errors import InputError
from omnigraph.operations.inference.draft import DraftTable, SchemaDraft
from omnigraph.operations.inference.draft_text import Line, block
from omnigraph.operations.inference.names import property_names, type_name
from omnigraph.operations.load.record_sources import find_input_files
from omnigraph.storage.files.input_files import DataFile
from omnigraph.table_format import GRAPH_FILE_FORMATS, GraphFileFormat, TableFormat

Pair = tuple[str, str]


def graph_path(text: str | os.PathLike[str]) -> tuple[GraphFileFormat, str] | None:
    """Return the format and the path of `neo4j:DIR`, `graphml:FILE` or `FILE.graphml`; None for another text."""
    path = os.fspath(text)
    for format in GRAPH_FILE_FORMATS:
        if path.startswith(f"{format}:"):
            return format, path[len(format) + 1 :]
    return ("graphml", path) if path.lower().removesuffix(".gz").endswith(".graphml") else None


def graph_inputs(files: Sequence[object]) -> tuple[GraphFileFormat, list[str]] | None:
    """Return the format and the paths of files with several types; None if there are none."""
    found = [graph_path(file) if isinstance(file, str | os.PathLike) else None for file in files]
    given = [one for one in found if one is not None]
    if not given:
        return None
    if len(given) < len(found) or len({format for format, _ in given}) > 1:
        raise InputError(
            "files with several types are inferred alone, in one format", hint="give one folder or file, or one format"
        )
    return given[0][0], [path for _, path in given]


@dataclass
class _Column:
    """A property of a type: how often it has a value, and what the files declare."""

    declared: Declared
    values: int = 0
    types: set[str] = field(default_factory=set)


@dataclass
class _Type:
    """A node or edge type that is proposed."""

    name: str
    label: str
    rows: int = 0
    columns: dict[str, _Column] = field(default_factory=dict)
    further: dict[str, int] = field(default_factory=dict)
    """Further label → the number of nodes that have it."""
    ids: dict[str, int] = field(default_factory=dict)
    """Name of the id as a property → the number of nodes."""
    id_type: str = "String"
    pair: Pair | None = None

    def count(self, values: Sequence[str], declared: Mapping[str, Declared]) -> None:
        """Count the values of a row."""
        self.rows += 1
        for name in values:
            column = self.columns.get(name)
            if column is None:
                column = self.columns[name] = _Column(declared[name])
            column.values += 1
            column.types.add(declared[name].type)

    def type_of(self, column: _Column) -> str:
        """Return the type of a property; texts hold values of several types."""
        return column.declared.type if len(column.types) == 1 else "String"


def infer_graph(
    paths: Sequence[str], graph_format: GraphFileFormat, format: TableFormat, environ: Mapping[str, str]
) -> SchemaDraft:
    """Return a schema for the nodes and edges of files, with the reasons as comments."""
    format = replace(format, graph_format=graph_format)
    files = find_input_files(paths, environ, format)
    scan = _Scan(files, graph_format)
    scan.read_nodes()
    scan.read_edges()
    if not scan.nodes:
        raise InputError(f"'{paths[0]}' has no nodes", hint="give a folder of Neo4j admin CSV, or a GraphML file")
    nodes, edges = list(scan.nodes.values()), scan.edge_types()
    names = {id(one): _properties(one, is_edge=one.pair is not None) for one in (*nodes, *edges)}
    blocks = [_head(paths, graph_format, files, nodes, edges)]
    blocks += [f"interface {name} {{}}\n" for name in sorted({name for one in nodes for name in _interfaces(one)})]
    blocks += [_node_block(one, names[id(one)]) for one in nodes]
    blocks += [_edge_block(one, names[id(one)], edges) for one in edges]
    tables = tuple(DraftTable(one.name, one.name, _mapped(names[id(one)])) for one in (*nodes, *edges))
    return SchemaDraft("\n".join(blocks), tables, format, tuple(paths))


class _Scan:
    """Reads the nodes, then the edges of files."""

    def __init__(self, files: Sequence[DataFile], format: GraphFileFormat) -> None:
        self._files = files
        self._items = neo4j_items if format == "neo4j" else graphml_items
        self.nodes: dict[str, _Type] = {}
        self._pairs: dict[str, dict[Pair, _Type]] = {}
        self._space_types: dict[str, set[str]] = {}
        self._types: dict[tuple[str, str], str] | None = None

    def read_nodes(self) -> None:
        """Count the nodes of each type, their labels and values."""
        for node in paced(self._all_nodes()):
            name = _node_name(node)
            found = self.nodes.get(name)
            if found is None:
                found = self.nodes[name] = _Type(name, node.labels[0] if node.labels else NODE)
            self._space_types.setdefault(node.space, set()).add(name)
            for label in node.labels[1:]:
                found.further[label] = found.further.get(label, 0) + 1
            if node.id_name:
                found.ids[node.id_name] = found.ids.get(node.id_name, 0) + 1
                found.id_type = node.id_type
            found.count(node.values, node.declared)

    def read_edges(self) -> None:
        """Count the edges of each relationship type between two types."""
        for edge in paced(item for file in self._files for item in self._items(file) if isinstance(item, ScannedEdge)):
            relationship = edge.relationship or EDGE
            pair = (self._type_of(edge.spaces[0], edge.ends[0]), self._type_of(edge.spaces[1], edge.ends[1]))
            if pair[0] is None or pair[1] is None:
                # The load reports an edge without its nodes.
                continue
            pairs = self._pairs.setdefault(relationship, {})
            found = pairs.get((pair[0], pair[1]))
            if found is None:
                found = pairs[pair[0], pair[1]] = _Type("", relationship, pair=(pair[0], pair[1]))
            found.count(edge.values, edge.declared)

    def edge_types(self) -> list[_Type]:
        """Return the edge types; those of a relationship type with several pairs are named after their ends."""
        found: list[_Type] = []
        for relationship, pairs in self._pairs.items():
            base = type_name(edge_type_name(relationship))
            for (src, dst), one in pairs.items():
                one.name = base if len(pairs) == 1 else f"{base}{src}{dst}"
                found.append(one)
        return found

    def _all_nodes(self) -> Iterator[ScannedNode]:
        return (item for file in self._files for item in self._items(file) if isinstance(item, ScannedNode))

    def _type_of(self, space: str, id_: str | None) -> str | None:
        types = self._space_types.get(space, set())
        if id_ is None or not types:
            return None
        if len(types) == 1:
            return next(iter(types))
        if self._types is None:
            self._types = {
                (node.space, node.id): _node_name(node) for node in paced(self._all_nodes()) if node.id is not None
            }
        return self._types.get((space, id_))


def _node_name(node: ScannedNode) -> str:
    return type_name(node.labels[0]) if node.labels else NODE


def _properties(one: _Type, *, is_edge: bool) -> dict[str, str]:
    """Return column → property. The id of an edge is no property."""
    key = _key(one)
    columns = [
        name for name in ([key] if key is not None else []) + list(one.columns) if not (is_edge and name == "id")
    ]
    return property_names(list(dict.fromkeys(columns)), one.name, is_edge=is_edge)


def _key(one: _Type) -> str | None:
    """Return the name under which all nodes of a type store their ids; None if there is none."""
    name = next(iter(one.ids), None)
    is_key = name is not None and len(one.ids) == 1 and one.ids[name] == one.rows and name != "id"
    return name if is_key else None


def _mapped(names: Mapping[str, str]) -> dict[str, str | None]:
    return {column: name for column, name in names.items() if column != name}


def _interfaces(one: _Type) -> list[str]:
    """Return the interfaces for the further labels that all nodes of a type have."""
    return [type_name(label) for label, count in one.further.items() if count == one.rows]


def _node_block(one: _Type, names: Mapping[str, str]) -> str:
    key = _key(one)
    lines: list[Line] = []
    if key is not None:
        lines.append((f"{names[key]}: {one.id_type} @key", _comment(key, names[key], f"'{key}:ID'")))
    lines += _lines(one, names, key)
    some = [label for label, count in one.further.items() if count < one.rows]
    if some and LABELS not in names.values():
        lines.append((f"{LABELS}: [String]", f"further labels: {', '.join(map(_shown, some))}"))
    implements = _interfaces(one)
    head = f"node {one.name}" + (f" implements {', '.join(implements)}" if implements else "")
    comment = f"{one.rows:,} with the label {_shown(one.label)}"
    if implements:
        every = [label for label, count in one.further.items() if count == one.rows]
        comment += f"; all of them have the labels {', '.join(map(_shown, every))}"
    return block(head, comment, lines) if lines else f"{head} {{}}  // {comment}\n"


def _edge_block(one: _Type, names: Mapping[str, str], edges: Sequence[_Type]) -> str:
    assert one.pair is not None, "an edge type has two ends"
    others = [other for other in edges if other.label == one.label and other is not one]
    comment = f"{one.rows:,} of the type {_shown(one.label)}"
    comment += f", which joins {len(others) + 1} pairs of types" if others else ""
    return block(f"edge {one.name}: {one.pair[0]} -> {one.pair[1]}", comment, _lines(one, names, None))


def _lines(one: _Type, names: Mapping[str, str], key: str | None) -> list[Line]:
    lines: list[Line] = []
    for column, found in one.columns.items():
        if column == key or column not in names:
            continue
        nullable = "?" if found.values < one.rows else ""
        reason = found.declared.reason if len(found.types) == 1 else "declared with several types"
        if found.values < one.rows:
            reason += f"; {one.rows - found.values:,} without a value"
        lines.append((f"{names[column]}: {one.type_of(found)}{nullable}", _comment(column, names[column], reason)))
    return lines


def _comment(column: str, name: str, reason: str) -> str:
    return reason if column == name else f"column {_shown(column)}; {reason}"


def _shown(text: str) -> str:
    """Return a text of a file in quotes, as a part of a comment."""
    one_line = " ".join(text.split())
    return f"'{one_line if one_line.isprintable() else ascii(one_line)[1:-1]}'"


def _head(
    paths: Sequence[str],
    format: GraphFileFormat,
    files: Sequence[DataFile],
    nodes: Sequence[_Type],
    edges: Sequence[_Type],
) -> str:
    counts = f"{sum(one.rows for one in nodes):,} nodes, {sum(one.rows for one in edges):,} edges"
    read = f"{len(files)} files of {', '.join(paths)}" if len(files) > 1 else files[0].base
    return f"// Inferred from {read} ({format}: {counts}).\n"
