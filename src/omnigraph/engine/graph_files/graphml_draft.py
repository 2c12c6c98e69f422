"""Nodes and edges of GraphML for the inference of a schema."""

from __future__ import annotations

import re
from collections.abc import Iterator

from omnigraph.engine.graph_files.graphml_parser import LABEL, Key
from omnigraph.engine.graph_files.graphml_rows import GraphmlReader, elements
from omnigraph.engine.graph_files.scanned import Declared, ScannedEdge, ScannedNode
from omnigraph.storage.files.input_files import DataFile

_TYPES = {"boolean": "Bool", "int": "I64", "integer": "I64", "long": "I64", "float": "F32", "double": "F64"}
_OWN_TYPE = re.compile(r"[A-Za-z0-9]+|\[[A-Za-z0-9]+\]|Vector\([0-9]+\)|enum\([A-Za-z0-9_, -]+\)")
_TEXT = Declared("String", "text")


def graphml_items(file: DataFile) -> Iterator[ScannedNode | ScannedEdge]:
    """Yield the nodes and edges of a file."""
    declared: dict[str, dict[str, Declared]] | None = None
    for reader, element in elements(file):
        if element.unsupported is not None:
            continue
        if declared is None:
            declared = {domain: _declarations(reader, domain) for domain in ("node", "edge")}
        types = declared[element.kind]
        if element.kind == "node":
            labels, used = reader.labels(element, None)
            values = [name for name, _ in reader.values(element, used)[0]]
            _add_missing(types, values)
            id_ = element.attributes.get("id")
            space = labels[0] if reader.has_typed_ids and labels else ""
            yield ScannedNode(space, id_, labels, values, types)
        else:
            name, used = reader.relationship(element, None)
            values = [name for name, _ in reader.values(element, used)[0]]
            _add_missing(types, values)
            ends = (element.attributes.get("source"), element.attributes.get("target"))
            yield ScannedEdge((_space(reader, ends[0]), _space(reader, ends[1])), ends, name, values, types)


def _space(reader: GraphmlReader, id_: str | None) -> str:
    """Return the type in an id of an export, which is the id space of the node."""
    return id_.partition(":")[0] if reader.has_typed_ids and id_ is not None else ""


def _declarations(reader: GraphmlReader, domain: str) -> dict[str, Declared]:
    keys = [key for key in reader.keys.values() if key.domain in (domain, "all", "graphml")]
    return {key.name: _declared(key) for key in keys}


def _declared(key: Key) -> Declared:
    if key.own_type is not None and _OWN_TYPE.fullmatch(key.own_type):
        return Declared(key.own_type, f"type {key.own_type}")
    return Declared(_TYPES.get(key.type, "String"), f"type {key.type}")


def _add_missing(types: dict[str, Declared], values: list[str]) -> None:
    """Add values that no key declares, such as the labels of yEd."""
    for name in values:
        types.setdefault(name, Declared("String", "the text of yEd") if name == LABEL else _TEXT)
