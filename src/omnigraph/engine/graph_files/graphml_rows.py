"""Nodes and edges of GraphML → records of the types of a schema.

The type of a node is its attribute `labels` or its value `type`; that of an edge is its attribute `label`, or its value
`type` or `label`. Undirected edges are stored from their source to their target.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from omnigraph.checkpoints import paced
from omnigraph.engine.graph_files.graphml_parser import LABEL, Element, GraphmlParser, Key
from omnigraph.engine.graph_files.node_index import NodeFormat, index_of
from omnigraph.engine.graph_files.record_collector import EdgeInput, NodeInput, RecordCollector
from omnigraph.engine.graph_files.type_names import TypeNames
from omnigraph.engine.graph_files.xml_ids import untyped_id
from omnigraph.engine.ingest.csv_table import Convert, cell_reader
from omnigraph.engine.ingest.records import Faults, Records
from omnigraph.errors import RecordError
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.storage.files.input_files import DataFile, inflated_chunks, is_compressed
from omnigraph.table_format import TableFormat
from omnigraph.types import PropertyType

_CHUNK_BYTES = 256 << 10
_TYPE_NAMES = {"node": ("labels", "type"), "edge": ("type", "label")}
"""Names of values that can name the type of a node or edge."""


def read_graphml(file: DataFile, catalog: Catalog, faults: Faults) -> Iterator[tuple[str, Records]]:
    """Yield (table key, records) of a file in batches."""
    index = index_of(file, catalog, NODES)
    collector = RecordCollector(catalog, faults, file.name, file.format, reader_of(file.format), index)
    undirected = 0
    for reader, element in paced(elements(file)):
        problem = unsupported(element, file.name)
        if problem is not None:
            faults.add(problem)
        elif element.kind == "node":
            collector.add_node(reader.node(element, collector.names))
        else:
            undirected += not element.is_directed
            collector.add_edge(reader.edge(element, collector.names))
        yield from collector.full()
    if undirected:
        edges = "1 undirected edge was" if undirected == 1 else f"{undirected:,} undirected edges were"
        faults.note(f"{file.name}: {edges} loaded from source to target")
    yield from collector.rest()


def elements(file: DataFile) -> Iterator[tuple[GraphmlReader, Element]]:
    """Yield the nodes and edges of a file, each with the reader of its values."""
    parser = GraphmlParser(file.name)
    reader = GraphmlReader(parser, file.type_name)
    for element in parser.parse(_chunks(file)):
        yield reader, element


def _chunks(file: DataFile) -> Iterator[bytes]:
    if is_compressed(file.base):
        yield from inflated_chunks(file)
        return
    with file.open_text() as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            yield chunk


def unsupported(element: Element, source: str) -> RecordError | None:
    """Return the error about an element that has no counterpart; None if it has one."""
    if element.unsupported is None:
        return None
    name = element.attributes.get("id")
    what = f"the {element.kind} '{name}'" if name is not None else f"the {element.kind}"
    reason = (
        "a <hyperedge> joins any number of nodes, and an edge joins two"
        if element.kind == "hyperedge"
        else f"{what} has {element.unsupported}, which is not supported"
    )
    error = RecordError(reason, source=source, line=element.line, rule="graphml")
    error.record = dict(element.attributes)
    return error


class GraphmlReader:
    """Reads the values of the nodes and edges of a file."""

    def __init__(self, parser: GraphmlParser, type_name: str | None = None) -> None:
        self._parser = parser
        self._type_name = type_name
        self._defaults: dict[str, list[Key]] | None = None

    @property
    def has_typed_ids(self) -> bool:
        """True if the ids of the file consist of the type and the id of a row, as an export writes them."""
        return self._parser.has_typed_ids

    @property
    def keys(self) -> dict[str, Key]:
        """The declared attributes by their keys."""
        return self._parser.keys

    def node(self, element: Element, names: TypeNames) -> NodeInput:
        """Return a node as input of a load."""
        labels, used = self.labels(element, names)
        values, implied = self.values(element, used)
        id_ = element.attributes.get("id")
        if self.has_typed_ids and labels and id_ is not None:
            own = untyped_id(labels[0], id_)
            id_ = id_ if own is None else own
        return NodeInput(element.line, labels, id_, values, None, implied)

    def edge(self, element: Element, names: TypeNames) -> EdgeInput:
        """Return an edge as input of a load."""
        name, used = self.relationship(element, names)
        values, implied = self.values(element, used)
        ends = (element.attributes.get("source"), element.attributes.get("target"))
        id_ = None
        if self.has_typed_ids and name is not None:
            given = element.attributes.get("id")
            id_ = None if given is None else untyped_id(name, given)
            found = names.edges(name)
            ends = _typed_ends(found[0], ends) if len(found) == 1 else ends
        return EdgeInput(element.line, name, ends, values, id=id_, implied=implied)

    def labels(self, element: Element, names: TypeNames | None) -> tuple[list[str], str | None]:
        """Return the labels of a node, and the key of the value that names them."""
        given = element.attributes.get("labels")
        if given is not None:
            return _labels(given), next((key for key, text in element.values.items() if text == given), None)
        for key, text in self._candidates(element):
            found = _labels(text)
            is_known = names is None or any(names.node(label) is not None for label in found)
            if found and (self.keys[key].is_type or is_known):
                return found, key
        return ([self._type_name] if self._type_name is not None else []), None

    def relationship(self, element: Element, names: TypeNames | None) -> tuple[str | None, str | None]:
        """Return the type of an edge, and the key of the value that names it."""
        given = element.attributes.get("label")
        if given is not None:
            return given, next((key for key, text in element.values.items() if text == given), None)
        for key, text in self._candidates(element):
            is_known = self.keys[key].name.lower() != LABEL if names is None else bool(names.edges(text))
            if text and (self.keys[key].is_type or is_known):
                return text, key
        return None, None

    def _candidates(self, element: Element) -> list[tuple[str, str]]:
        """Return the values that can name the type of an element; the declared one comes first."""
        wanted = _TYPE_NAMES[element.kind]
        found = [(key, text) for key, text in element.values.items() if key in self.keys]
        own = [(key, text) for key, text in found if self.keys[key].is_type]
        named = [(key, text) for key, text in found if self.keys[key].name.lower() in wanted]
        return own or sorted(named, key=lambda pair: wanted.index(self.keys[pair[0]].name.lower()))

    def values(self, element: Element, used: str | None) -> tuple[list[tuple[str, str]], set[str]]:
        """Return the names and texts of the values of an element, and the names of its defaults.

        Keys without a declaration are names themselves.
        """
        found: list[tuple[str, str]] = []
        for key, text in element.values.items():
            if key != used:
                name = self.keys[key].name if key in self.keys else key
                found.append((name, _decoded(text) if key in element.encoded else text))
        if element.label is not None:
            found.append((LABEL, element.label))
        implied = [(key.name, key.default or "") for key in self._with_defaults(element.kind)]
        given = {name for name, _ in found}
        added = [(name, text) for name, text in implied if name not in given]
        return [*found, *added], {name for name, _ in added} | ({LABEL} if element.label is not None else set())

    def _with_defaults(self, kind: str) -> Sequence[Key]:
        if self._defaults is None:
            self._defaults = {
                domain: [key for key in self.keys.values() if key.default is not None and key.domain in (domain, "all")]
                for domain in ("node", "edge")
            }
        return self._defaults[kind]


def _decoded(text: str) -> str:
    """Return the text of a JSON text; a text that is none is returned as it is."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, str) else text


def _labels(text: str) -> list[str]:
    """Return the labels of a text: one label, or several behind colons, as Neo4j writes them."""
    return [label for label in text.split(":") if label] if text.startswith(":") else [text] if text else []


def _typed_ends(edge: EdgeType, ends: tuple[str | None, str | None]) -> tuple[str | None, str | None]:
    """Return the ids of the ends of an edge from their ids in a file of an export."""
    src, dst = (
        None if text is None else untyped_id(type_, text)
        for type_, text in zip((edge.from_type, edge.to_type), ends, strict=True)
    )
    return src, dst


def iterate_nodes(file: DataFile, names: TypeNames) -> Iterator[tuple[str, NodeInput]]:
    """Yield the nodes of a file with their id space; a file has one."""
    for reader, element in elements(file):
        if element.kind == "node" and element.unsupported is None:
            yield "", reader.node(element, names)


def _has_keys(file: DataFile, node: NodeType) -> bool:  # noqa: ARG001 (the ids of an export are those of the graph)
    """Return True if the ids of a file are those of an export."""
    return next((reader.has_typed_ids for reader, _ in elements(file)), True)


def reader_of(format: TableFormat) -> partial[Convert]:
    """Return the function that gives the conversion of the values of a property."""
    return partial(_reader, format=format)


def _reader(type_: PropertyType, format: TableFormat) -> Convert:
    if type_.is_text:
        return cell_reader(type_, format)
    return partial(_value, convert=cell_reader(type_, format), is_bool=type_.scalar == "Bool")


def _value(text: str | None, *, convert: Convert, is_bool: bool) -> Any:
    """Convert a text; the white space around numbers, dates and lists has no meaning."""
    if text is None:
        return None
    bare = text.strip()
    if not bare:
        return None
    return {"1": True, "0": False}.get(bare, convert(bare)) if is_bool else convert(bare)


NODES = NodeFormat(iterate_nodes, reader_of, _has_keys)
"""The nodes of GraphML."""
