"""Whole nodes as values: which fields the object has."""

from __future__ import annotations

from omnigraph.query import ir
from omnigraph.schema.catalog import NodeType
from omnigraph.types import ObjectType


def node_object(node: NodeType, *, nullable: bool = False) -> ObjectType:
    """The object a whole node is: its id, then every property except Blobs, by name."""
    shown = [(prop.name, prop.type) for prop in node.properties.values() if prop.type.scalar != "Blob"]
    return ObjectType((("id", ir.STRING), *shown), nullable, node.name)
