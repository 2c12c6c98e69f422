"""`NodeIndex`: the nodes of an input by their ids in its files.

It is built on first use, by reading the files of nodes once more. It holds an id only if the graph has another one for
the node, and the types of all nodes only if the type of an edge depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.engine.graph_files.record_collector import CellReader, NodeInput, NoIndex, RecordCollector
from omnigraph.engine.graph_files.type_names import TypeNames
from omnigraph.engine.ingest.records import Faults
from omnigraph.errors import RecordError, ValueFormatError
from omnigraph.schema.catalog import Catalog, NodeType
from omnigraph.storage.files.input_files import DataFile
from omnigraph.table_format import TableFormat
from omnigraph.values import derive_id, read_json, spell_key


@dataclass(frozen=True)
class NodeFormat:
    """How the nodes of a format are read."""

    iterate: Callable[[DataFile, TypeNames], Iterator[tuple[str, NodeInput]]]
    """Yields the id space and the content of the nodes of a file."""
    reader: Callable[[TableFormat], CellReader]
    """Returns the conversion of values."""
    has_keys: Callable[[DataFile, NodeType], bool]
    """Returns True if the ids of the nodes of a type in a file are surely their keys."""


class NodeIndex:
    """The types and the ids of the nodes of an input."""

    def __init__(self, files: tuple[DataFile, ...], catalog: Catalog, format: NodeFormat) -> None:
        self.catalog = catalog
        self._files = files
        self._format = format
        self._keyed: dict[str, bool] = {}
        self._types: dict[tuple[str, str], str] | None = None
        self._ids: dict[str, dict[tuple[str, str], str]] | None = None

    def type_of(self, space: str, id_: str) -> str | None:
        """Return the type of a node; None if the input does not have it."""
        if self._types is None:
            self._types = {key: node.name for key, node, _ in self._nodes()}
        return self._types.get((space, id_))

    def id_of(self, space: str, id_: str, node: NodeType) -> str:
        """Return the id of a node of a type in the graph; the id itself if the input does not have the node."""
        if not node.key:
            return id_
        if not self._has_keys(node):
            if self._ids is None:
                self._ids = {}
                for key, found, data in self._nodes():
                    own = _derived(found, data) if found.key else None
                    if own is not None and own != key[1]:
                        self._ids.setdefault(found.name, {})[key] = own
            own = self._ids.get(node.name, {}).get((space, id_))
            if own is not None:
                return own
        return _canonical(node, id_)

    def _has_keys(self, node: NodeType) -> bool:
        found = self._keyed.get(node.name)
        if found is None:
            found = self._keyed[node.name] = all(self._format.has_keys(file, node) for file in self._files)
        return found

    def _nodes(self) -> Iterator[tuple[tuple[str, str], NodeType, dict[str, Any]]]:
        for file in self._files:
            reader = self._format.reader(file.format)
            collector = RecordCollector(self.catalog, Faults(collect=True), file.name, file.format, reader, NoIndex())
            for space, given in self._format.iterate(file, collector.names):
                if given.id is None:
                    continue
                try:
                    node, _ = collector.node_type(given.labels, given.line)
                    data = collector.node_data(node, given)
                except RecordError:
                    # The node is reported when it is read as a record.
                    continue
                yield (space, given.id), node, data


def _derived(node: NodeType, data: dict[str, Any]) -> str | None:
    """Return the id of a node from its key; None if the key is not valid."""
    try:
        types = [node.properties[name].type for name in node.key]
        values = [read_json(data.get(name), type_) for name, type_ in zip(node.key, types, strict=True)]
        return derive_id([spell_key(value, type_) for value, type_ in zip(values, types, strict=True)])
    except ValueFormatError:
        return None


def _canonical(node: NodeType, id_: str) -> str:
    """Return an id with its key in canonical form: `00042` is 42."""
    type_ = node.properties[node.key[0]].type
    read = type_.kind.from_id
    if len(node.key) > 1 or read is None or (type_.is_integer and id_.isdecimal() and id_.isascii() and id_[0] != "0"):
        return id_
    try:
        value = read(id_)
        return id_ if value is None else spell_key(value, type_)
    except ValueFormatError:
        return id_


def index_of(file: DataFile, catalog: Catalog, format: NodeFormat) -> NodeIndex:
    """Return the index of the nodes of the input that a file belongs to; the files of an input share it."""
    memo: dict[str, Any] = {} if file.group is None else file.group.memo
    index: NodeIndex | None = memo.get("index")
    if index is None or index.catalog is not catalog:
        index = memo["index"] = NodeIndex(() if file.group is None else file.group.nodes, catalog, format)
    return index
