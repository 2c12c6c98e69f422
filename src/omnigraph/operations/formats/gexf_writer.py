"""GEXF 1.3: one file for Gephi. It is written and not read; `graphml_writer` writes a file that loads back.

Characters that XML does not have are replaced by U+FFFD.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import IO, Any

from omnigraph.engine.graph_files.xml_ids import NOT_XML, typed_id
from omnigraph.operations.formats.attributes import AttributeTable
from omnigraph.operations.formats.graph_writer import GraphFileWriter
from omnigraph.operations.formats.xml_text import DECLARATION, xml_attribute
from omnigraph.types import PropertyType

_TYPES = {"Bool": "boolean", "I32": "integer", "I64": "long", "U32": "long", "F32": "float", "F64": "double"}
_HEAD = (
    f'{DECLARATION}<gexf xmlns="http://gexf.net/1.3" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xsi:schemaLocation="http://gexf.net/1.3 http://gexf.net/1.3/gexf.xsd" version="1.3">\n'
    "<meta><creator>OmniGraph</creator></meta>\n"
    '<graph defaultedgetype="directed" mode="static">\n'
)
_TYPE = "t"
"""Key of the attribute that names the type of a node or edge."""


class GexfWriter(GraphFileWriter):
    """Writes a GEXF file."""

    def begin(self) -> None:
        """Write the declarations."""
        self._nodes = AttributeTable(self.nodes, "n", _file_type)
        self._edges = AttributeTable(self.edges, "e", _file_type)
        self._ends = {edge.name: (edge.from_type, edge.to_type) for edge in self.edges}
        self._in_edges = False
        self._file: IO[str] = self.open_file(self.file_name)
        self._file.write(_HEAD)
        self._file.writelines(_declarations(self._nodes, "node"))
        self._file.writelines(_declarations(self._edges, "edge"))
        self._file.write("<nodes>\n")

    def add_node(self, type_name: str, data: Mapping[str, Any]) -> None:
        """Write a node."""
        assert not self._in_edges, "nodes precede edges"
        id_, label = _attribute(typed_id(type_name, data["id"])), _attribute(data["id"])
        values = _values(type_name, self._nodes, data)
        self._file.write(f"<node id={id_} label={label}>{values}</node>\n")

    def add_edge(self, type_name: str, src: str, dst: str, data: Mapping[str, Any]) -> None:
        """Write an edge."""
        self._begin_edges()
        from_type, to_type = self._ends[type_name]
        ids = (typed_id(type_name, data["id"]), typed_id(from_type, src), typed_id(to_type, dst))
        id_, source, target = map(_attribute, ids)
        values = _values(type_name, self._edges, data)
        kind = f'kind="{type_name}" label="{type_name}"'
        self._file.write(f"<edge id={id_} source={source} target={target} {kind}>{values}</edge>\n")

    def finish(self) -> None:
        """Close the elements."""
        self._begin_edges()
        self._file.write("</edges>\n</graph>\n</gexf>\n")

    def _begin_edges(self) -> None:
        if not self._in_edges:
            self._in_edges = True
            self._file.write("</nodes>\n<edges>\n")


def _declarations(table: AttributeTable, domain: str) -> Iterable[str]:
    name = table.free_name("type")
    yield f'<attributes class="{domain}" mode="static">\n<attribute id="{_TYPE}" title="{name}" type="string"/>\n'
    for one in table.attributes:
        yield f'<attribute id="{one.key}" title="{one.name}" type="{one.file_type}"/>\n'
    yield "</attributes>\n"


def _values(type_name: str, table: AttributeTable, data: Mapping[str, Any]) -> str:
    own = f'<attvalue for="{_TYPE}" value="{type_name}"/>'
    found = (f'<attvalue for="{key}" value={_attribute(text)}/>' for key, text in table.values(type_name, data))
    return f"<attvalues>{own}{''.join(found)}</attvalues>"


def _attribute(text: str) -> str:
    return xml_attribute(NOT_XML.sub("\ufffd", text))


def _file_type(type_: PropertyType) -> str:
    return "string" if type_.is_list else _TYPES.get(type_.scalar, "string")
