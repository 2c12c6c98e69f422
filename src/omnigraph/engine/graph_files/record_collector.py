"""Nodes and edges of other programs → records of the types of a schema.

The id of a node in a file is its id in the graph, or its key: the value of the key property if the node has none of its
own. If a type has another key, or if an edge type depends on the types of its ends, the ids are looked up in an index
of the nodes of the input (`node_index`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from omnigraph.engine import tuning
from omnigraph.engine.graph_files.type_names import EDGE, NODE, TypeNames
from omnigraph.engine.ingest.csv_table import Convert, end_value
from omnigraph.engine.ingest.records import Faults, Records, end_types
from omnigraph.engine.ingest.table_columns import ColumnFinder, type_of
from omnigraph.errors import RecordError
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.suggestions import did_you_mean, listing
from omnigraph.table_format import TableFormat
from omnigraph.types import PropertyType

LABELS = "labels"
"""The list property that holds the further labels of a node."""

_ROW_BYTES = 64
"""Size of a record without its values."""

CellReader = Callable[[PropertyType], Convert]
"""Returns the conversion of the texts of a property."""


@dataclass(frozen=True)
class NodeInput:
    """A node of a file. `id_name` is the name under which the file stores the id as a property, if there is one."""

    line: int
    labels: Sequence[str]
    id: str | None
    values: Iterable[tuple[str, str | None]]
    id_name: str | None = None
    implied: Collection[str] = ()
    """Names of values that the node does not state itself; a type without such a property does not get it."""


@dataclass(frozen=True)
class EdgeInput:
    """An edge of a file; `spaces` are the id spaces of its ends."""

    line: int
    relationship: str | None
    ends: tuple[str | None, str | None]
    values: Iterable[tuple[str, str | None]]
    spaces: tuple[str, str] = ("", "")
    id: str | None = None
    implied: Collection[str] = ()


_End = tuple[NodeType, PropertyType]
"""The node type of an end, and the type of its ids."""


class NodeIndexLike(Protocol):
    """The nodes of an input by their ids in the files."""

    def type_of(self, space: str, id_: str) -> str | None:
        """Return the type of a node; None if the input does not have it."""

    def id_of(self, space: str, id_: str, node: NodeType) -> str:
        """Return the id of a node of a type in the graph."""


class RecordCollector:
    """Makes records of nodes and edges, and returns them in batches."""

    def __init__(
        self,
        catalog: Catalog,
        faults: Faults,
        source: str,
        format: TableFormat,
        reader: CellReader,
        index: NodeIndexLike,
    ) -> None:
        self.names = TypeNames(catalog)
        self.faults = faults
        self._catalog = catalog
        self._source = source
        self._format = format
        self._reader = reader
        self._index = index
        self._columns: dict[str, dict[str, tuple[str, Convert] | None]] = {}
        self._finders: dict[str, ColumnFinder] = {}
        self._ends: dict[str, tuple[_End, _End]] = {}
        self._held: dict[str, Records] = {}
        self._rows = self._size = self._counted = 0

    # -- records

    def add_node(self, given: NodeInput) -> None:
        """Add a node, or the error about it."""
        try:
            node, further = self.node_type(given.labels, given.line)
            data = self.node_data(node, given)
            self._add_labels(node, further, data)
        except RecordError as error:
            self.faults.add(error)
            return
        self._hold(node, given.line, data)

    def add_edge(self, given: EdgeInput) -> None:
        """Add an edge, or the error about it."""
        try:
            edge = self._edge_type(given)
            src, dst = self._edge_ends(edge, given)
            data = self._properties(edge, given.values, given.line, given.implied)
            if given.id is not None:
                data["id"] = given.id
        except RecordError as error:
            self.faults.add(error)
            return
        records = self._hold(edge, given.line, data)
        records.src.append(src)
        records.dst.append(dst)

    def full(self) -> Iterator[tuple[str, Records]]:
        """Yield the records if they fill a batch."""
        if self._rows >= tuning.current.csv_batch_rows or self._size >= tuning.current.csv_batch_chars:
            yield from self.rest()

    def rest(self) -> Iterator[tuple[str, Records]]:
        """Yield the records that are held."""
        held, self._held = self._held, {}
        self._rows = self._size = self._counted = 0
        yield from held.items()

    def _hold(self, type_: NodeType | EdgeType, line: int, data: dict[str, Any]) -> Records:
        records = self._held.get(type_.table_key)
        if records is None:
            records = self._held[type_.table_key] = Records(type_, self._source)
        records.lines.append(line)
        records.data.append(data)
        records.size += _ROW_BYTES + self._size - self._counted
        self._size += _ROW_BYTES
        self._counted = self._size
        self._rows += 1
        return records

    # -- nodes

    def node_type(self, labels: Sequence[str], line: int) -> tuple[NodeType, list[str]]:
        """Return the type of the first label that names one, and the other labels."""
        for at, label in enumerate(labels):
            node = self.names.node(label)
            if node is not None:
                return node, [*labels[:at], *labels[at + 1 :]]
        only = None if labels else self.names.only_node() or self.names.node(NODE)
        if only is not None:
            return only, []
        known = self.names.node_names
        if not labels:
            raise self._error(line, "the node has no label", f"the node types are {listing(known)}", rule="type")
        hint = did_you_mean(labels[0], known) or f"the node types are {listing(known)}"
        raise self._error(line, f"there is no node type '{labels[0]}'", hint, rule="type", type_name=labels[0])

    def node_data(self, node: NodeType, given: NodeInput) -> dict[str, Any]:
        """Return the properties of a node, with its id or key."""
        data = self._properties(node, given.values, given.line, given.implied)
        if given.id is None:
            return data
        named = self._named_id(node, given.id_name)
        if named is not None:
            name, convert = named
            data[name] = convert(given.id)
        if not node.key:
            data["id"] = given.id
        elif len(node.key) == 1 and data.get(node.key[0]) is None:
            data[node.key[0]] = self._convert(node, node.key[0])(given.id)
        return data

    def _named_id(self, node: NodeType, id_name: str | None) -> tuple[str, Convert] | None:
        """Return the property that holds the ids of a type, if it has one."""
        if not id_name or id_name == "id":
            return None
        try:
            return self._column(node, id_name)
        except KeyError:
            return None

    def _add_labels(self, node: NodeType, further: Sequence[str], data: dict[str, Any]) -> None:
        """Store further labels in a list property; labels that are interfaces of the type are known by it."""
        own = node.properties.get(LABELS)
        kept = [label for label in further if not self.names.is_interface(node, label)]
        if own is not None and own.type.is_list and own.type.scalar == "String":
            data.setdefault(LABELS, kept)
            return
        for label in kept:
            self.faults.note(
                f"{self._source}: the label '{label}' of '{node.name}' is not stored: the type has no list property "
                f"'{LABELS}' and no interface '{label}'"
            )

    # -- edges

    def _edge_type(self, given: EdgeInput) -> EdgeType:
        known = self.names.edge_names
        if given.relationship is not None:
            found = self.names.edges(given.relationship)
            if not found:
                name = given.relationship
                hint = did_you_mean(name, known) or f"the edge types are {listing(known)}"
                raise self._error(given.line, f"there is no edge type '{name}'", hint, rule="type", type_name=name)
        else:
            found = self.names.edges(EDGE) or self.names.all_edges
        if len(found) == 1:
            return found[0]
        types = [
            None if id_ is None else self._index.type_of(space, id_)
            for space, id_ in zip(given.spaces, given.ends, strict=True)
        ]
        fitting = [edge for edge in found if types == [edge.from_type, edge.to_type]]
        if len(fitting) == 1:
            return fitting[0]
        joined = " to ".join(type_ or "an unknown node" for type_ in types)
        what = "type of the edge" if given.relationship is None else f"edge type '{given.relationship}'"
        hint = f"the edge types are {listing(edge.name for edge in found)}"
        raise self._error(given.line, f"the {what} from {joined} is not clear", hint, rule="type")

    def _edge_ends(self, edge: EdgeType, given: EdgeInput) -> tuple[str, str]:
        found = self._ends.get(edge.name)
        if found is None:
            keys, nodes = end_types(edge, self._catalog), self._catalog.nodes
            found = ((nodes[edge.from_type], keys["src"]), (nodes[edge.to_type], keys["dst"]))
            self._ends[edge.name] = found
        ends = [
            None if id_ is None else self._index.id_of(space, end_value(id_, key) or "", node)
            for space, id_, (node, key) in zip(given.spaces, given.ends, found, strict=True)
        ]
        if ends[0] is None or ends[1] is None:
            message = f"edge {edge.name}: '{'from' if ends[0] is None else 'to'}' has no id"
            raise self._error(given.line, message, None, rule="endpoint", type_name=edge.name)
        return ends[0], ends[1]

    # -- properties

    def _properties(
        self, type_: NodeType | EdgeType, values: Iterable[tuple[str, str | None]], line: int, implied: Collection[str]
    ) -> dict[str, Any]:
        data: dict[str, Any] = {}
        known = self._columns.setdefault(type_.table_key, {})
        for column, text in values:
            try:
                found = known[column] if column in known else self._column(type_, column)
            except KeyError:
                # A file with several types has the columns of all of them.
                if text is None or column in implied:
                    continue
                raise self._finders[type_.table_key].unknown(column, self._source, line) from None
            if found is None:
                continue
            name, convert = found
            if name in data:
                reason = f"two values have the meaning of '{name}', one of them '{column}'"
                raise self._error(line, reason, None, rule="columns", type_name=type_.name)
            data[name] = convert(text)
            self._size += 16 if text is None else 16 + len(text)
        return data

    def _column(self, type_: NodeType | EdgeType, column: str) -> tuple[str, Convert] | None:
        """Return the property of a name and its conversion; None if it is left out. `KeyError` if there is none."""
        key = type_.table_key
        known = self._columns.setdefault(key, {})
        if column not in known:
            finder = self._finders.get(key)
            if finder is None:
                finder = self._finders[key] = ColumnFinder(type_, self._format)
            name = finder.find(column)
            known[column] = None if name is None else (name, self._convert(type_, name))
        return known[column]

    def _convert(self, type_: NodeType | EdgeType, name: str) -> Convert:
        return self._reader(type_of(type_, name))

    def _error(
        self, line: int, message: str, hint: str | None, *, rule: str, type_name: str | None = None
    ) -> RecordError:
        return RecordError(message, source=self._source, line=line, type_name=type_name, rule=rule, hint=hint)


@dataclass
class NoIndex:
    """The index of an input whose ids are those of the graph."""

    types: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def type_of(self, space: str, id_: str) -> str | None:
        """Return the type of a node."""
        return self.types.get((space, id_))

    def id_of(self, space: str, id_: str, node: NodeType) -> str:  # noqa: ARG002 (the id is that of the graph)
        """Return the id itself."""
        return id_
