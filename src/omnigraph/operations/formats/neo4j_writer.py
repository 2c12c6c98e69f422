"""Neo4j admin CSV: a folder with a header and a data file for each type, and the command that imports them.

An empty cell is null, `""` is the empty text. The items of a list are separated by semicolons; a list whose items
cannot be separated in this way is JSON. The ids of nodes are unique within the id space of their type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from omnigraph.engine.ingest.csv_text import csv_line
from omnigraph.operations.formats.graph_writer import GraphFolderWriter
from omnigraph.operations.formats.value_text import scalar_text
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.table_format import ARRAY_DELIMITER
from omnigraph.types import PropertyType

SCRIPT = "import.sh"
_TYPES = {
    "Bool": "boolean",
    "I32": "int",
    "I64": "long",
    "U32": "long",
    "F32": "float",
    "F64": "double",
    "Date": "date",
    "DateTime": "datetime",
    "Vector": "float[]",
}
_ID_TYPES = {"String": "", "Uuid": "", "U64": "", "I32": "{id-type:int}", "I64": "{id-type:long}"}
_ID_TYPES["U32"] = _ID_TYPES["I64"]
"""Keys whose text in an id is the text of their value → the type of the id."""

Cell = Callable[[Any], str]


class Neo4jWriter(GraphFolderWriter):
    """Writes the folder of an import of Neo4j."""

    def begin(self) -> None:
        """Write the headers and the command; open the data files."""
        self._data: dict[str, IO[str]] = {}
        self._cells: dict[str, list[tuple[str, Cell]]] = {}
        self._labels = {node.name: ARRAY_DELIMITER.join((node.name, *node.implements)) for node in self.nodes}
        options: list[str] = []
        for type_ in self.types:
            base = f"{type_.name}.edges" if type_.kind == "edge" and type_.name in self.catalog.nodes else type_.name
            is_node = isinstance(type_, NodeType)
            columns = node_columns(type_) if isinstance(type_, NodeType) else edge_columns(type_)
            self.open_file(f"{base}-header.csv").write(csv_line(columns) + "\n")
            self._data[type_.table_key] = self.open_file(f"{base}.csv")
            key = id_key(type_) if isinstance(type_, NodeType) else None
            self._cells[type_.table_key] = [
                (name, _cell(property_.type)) for name, property_ in type_.properties.items() if name != key
            ]
            options.append(f"  --{'nodes' if is_node else 'relationships'}='{base}-header.csv,{base}.csv'")
        self.open_file(SCRIPT).write(_script(options))

    def add_node(self, type_name: str, data: Mapping[str, Any]) -> None:
        """Write a node."""
        key = f"node:{type_name}"
        self._data[key].write(csv_line([data["id"], *self._values(key, data), self._labels[type_name]]) + "\n")

    def add_edge(self, type_name: str, src: str, dst: str, data: Mapping[str, Any]) -> None:
        """Write an edge."""
        key = f"edge:{type_name}"
        self._data[key].write(csv_line([src, dst, data["id"], *self._values(key, data), type_name]) + "\n")

    def finish(self) -> None:
        """Do nothing: the data files have no ends."""

    def _values(self, key: str, data: Mapping[str, Any]) -> list[str | None]:
        return [None if data[name] is None else cell(data[name]) for name, cell in self._cells[key]]


def id_key(node: NodeType) -> str | None:
    """Return the key property that the ids of a type consist of; None if the ids are a column of their own."""
    name = node.key[0] if len(node.key) == 1 else None
    return name if name is not None and node.properties[name].type.scalar in _ID_TYPES else None


def node_columns(node: NodeType) -> list[str]:
    """Return the header of the nodes of a type."""
    key = id_key(node)
    kind = "" if key is None else _ID_TYPES[node.properties[key].type.scalar]
    properties = [_column(name, property_.type) for name, property_ in node.properties.items() if name != key]
    return [f"{key or 'id'}:ID({node.name}){kind}", *properties, ":LABEL"]


def edge_columns(edge: EdgeType) -> list[str]:
    """Return the header of the edges of a type."""
    properties = [_column(name, property_.type) for name, property_ in edge.properties.items()]
    return [f":START_ID({edge.from_type})", f":END_ID({edge.to_type})", "id:string", *properties, ":TYPE"]


def _column(name: str, type_: PropertyType) -> str:
    return f"{name}:{_TYPES.get(type_.scalar, 'string')}{'[]' if type_.is_list else ''}"


def _cell(type_: PropertyType) -> Cell:
    spell = scalar_text(type_)
    if not type_.is_list and type_.scalar != "Vector":
        return spell
    return lambda values: list_cell([spell(value) for value in values])


def list_cell(items: Sequence[str]) -> str:
    """Return the cell of a list: its items between semicolons, or JSON if a load could not separate them."""
    text = ARRAY_DELIMITER.join(items)
    if text.startswith("[") or items == [""] or any(ARRAY_DELIMITER in item for item in items):
        return json.dumps(items, ensure_ascii=False)
    return text


def _script(options: Sequence[str]) -> str:
    command = [
        "neo4j-admin database import full",
        "  --multiline-fields=true",
        f"  --array-delimiter='{ARRAY_DELIMITER}'",
    ]
    return (
        "#!/bin/sh\n"
        "# Imports the CSV files of this folder into a new Neo4j database. OmniGraph loads them with\n"
        "# 'omnigraph load --format neo4j FOLDER'.\n"
        'cd "$(dirname "$0")" || exit 1\n' + " \\\n".join([*command, *options, '  "${1:-neo4j}"']) + "\n"
    )
