"""GraphML: one file with the types as attributes, for yEd, Gephi, networkx, igraph and others.

A null is an absent value. Types of properties that GraphML does not have are texts; the attribute `type` of the own
namespace states the type of the property, so that a schema can be inferred again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import IO, Any

from omnigraph.engine.graph_files.xml_ids import NAMESPACE, NOT_XML, typed_id
from omnigraph.operations.formats.attributes import Attribute, AttributeTable
from omnigraph.operations.formats.graph_writer import GraphFileWriter
from omnigraph.operations.formats.xml_text import DECLARATION, xml_attribute, xml_text
from omnigraph.types import PropertyType

_TYPES = {"Bool": "boolean", "I32": "int", "I64": "long", "U32": "long", "F32": "float", "F64": "double"}
_HEAD = (
    f'{DECLARATION}<graphml xmlns="http://graphml.graphdrawing.org/xmlns" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:og="' + NAMESPACE + '" '
    'xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns '
    'http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd" og:ids="typed">\n'
)
_NODE_TYPE, _EDGE_TYPE = "nt", "et"
"""Keys of the attributes that name the types of nodes and edges."""


class GraphmlWriter(GraphFileWriter):
    """Writes a GraphML file."""

    def begin(self) -> None:
        """Write the declarations."""
        self._nodes = AttributeTable(self.nodes, "n", _file_type)
        self._edges = AttributeTable(self.edges, "e", _file_type)
        self._ends = {edge.name: (edge.from_type, edge.to_type) for edge in self.edges}
        self._file: IO[str] = self.open_file(self.file_name)
        self._file.write(_HEAD)
        self._file.writelines(_declarations(self._nodes, "node", _NODE_TYPE))
        self._file.writelines(_declarations(self._edges, "edge", _EDGE_TYPE))
        self._file.write('<graph id="G" edgedefault="directed">\n')

    def add_node(self, type_name: str, data: Mapping[str, Any]) -> None:
        """Write a node."""
        values = "".join(_data(key, text) for key, text in self._nodes.values(type_name, data))
        id_ = xml_attribute(typed_id(type_name, data["id"]))
        self._file.write(f'<node id={id_}><data key="{_NODE_TYPE}">{type_name}</data>{values}</node>\n')

    def add_edge(self, type_name: str, src: str, dst: str, data: Mapping[str, Any]) -> None:
        """Write an edge."""
        values = "".join(_data(key, text) for key, text in self._edges.values(type_name, data))
        from_type, to_type = self._ends[type_name]
        ids = (typed_id(type_name, data["id"]), typed_id(from_type, src), typed_id(to_type, dst))
        id_, source, target = map(xml_attribute, ids)
        self._file.write(
            f'<edge id={id_} source={source} target={target}><data key="{_EDGE_TYPE}">{type_name}</data>'
            f"{values}</edge>\n"
        )

    def finish(self) -> None:
        """Close the elements."""
        self._file.write("</graph>\n</graphml>\n")


def _declarations(table: AttributeTable, domain: str, type_key: str) -> Iterable[str]:
    name = table.free_name("type")
    yield f'<key id="{type_key}" for="{domain}" attr.name="{name}" attr.type="string" og:role="type"/>\n'
    yield from (_declaration(attribute, domain) for attribute in table.attributes)


def _declaration(attribute: Attribute, domain: str) -> str:
    own = xml_attribute(str(attribute.type))
    return (
        f'<key id="{attribute.key}" for="{domain}" attr.name="{attribute.name}" '
        f'attr.type="{attribute.file_type}" og:type={own}/>\n'
    )


def _data(key: str, text: str) -> str:
    if NOT_XML.search(text) is None:
        return f'<data key="{key}">{xml_text(text)}</data>'
    # JSON writes every character that XML does not have as an escape.
    return f'<data key="{key}" og:encoding="json">{xml_text(json.dumps(text))}</data>'


def _file_type(type_: PropertyType) -> str:
    return "string" if type_.is_list else _TYPES.get(type_.scalar, "string")
