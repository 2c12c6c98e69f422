"""The types of a schema for the labels and relationship types of other programs.

A label is a node type, a relationship type an edge type, by name: exactly, else without regard to case and
punctuation, so that `ACTED_IN` is `ActedIn`. A relationship type that joins several pairs of types is one edge type for
each pair: `ACTED_IN` is `ActedInPersonMovie` and `ActedInPersonSeries`.
"""

from __future__ import annotations

import re
from functools import cached_property

from omnigraph.schema.catalog import Catalog, EdgeType, NodeType

NODE, EDGE = "Node", "Edge"
"""The types of nodes and edges without a label."""
_NO_LETTER = re.compile(r"[\W_]+")


def folded(name: str) -> str:
    """Return a name without case and punctuation."""
    return _NO_LETTER.sub("", name).lower()


def edge_type_name(relationship: str) -> str:
    """Return the name of an edge type for a relationship type: `ACTED_IN` is `ActedIn`."""
    words = [word for word in _NO_LETTER.split(relationship) if word]
    return "".join(word.capitalize() if word.isupper() else word[0].upper() + word[1:] for word in words)


class TypeNames:
    """Finds types by the names that other programs give them."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._edges: dict[str, tuple[EdgeType, ...]] = {}

    def node(self, label: str) -> NodeType | None:
        """Return the node type of a label; None if there is none."""
        return self._catalog.nodes.get(label) or self._nodes.get(folded(label))

    def is_interface(self, node: NodeType, label: str) -> bool:
        """Return True if a label is an interface that a node type implements."""
        return any(folded(name) == folded(label) for name in node.implements)

    def edges(self, relationship: str) -> tuple[EdgeType, ...]:
        """Return the edge types of a relationship type, one for each pair of node types."""
        found = self._edges.get(relationship)
        if found is None:
            found = self._edges[relationship] = tuple(self._find_edges(relationship))
        return found

    def _find_edges(self, relationship: str) -> list[EdgeType]:
        exact = self._catalog.edges.get(relationship)
        if exact is not None:
            return [exact]
        name = folded(relationship)
        return [
            edge
            for edge in self._catalog.edges.values()
            if folded(edge.name) in (name, name + folded(edge.from_type + edge.to_type))
        ]

    def only_node(self) -> NodeType | None:
        """Return the node type of a schema that has one; None if it has several."""
        return next(iter(self._catalog.nodes.values())) if len(self._catalog.nodes) == 1 else None

    @property
    def all_edges(self) -> tuple[EdgeType, ...]:
        """All edge types."""
        return tuple(self._catalog.edges.values())

    @property
    def node_names(self) -> list[str]:
        """The names of the node types."""
        return list(self._catalog.nodes)

    @property
    def edge_names(self) -> list[str]:
        """The names of the edge types."""
        return list(self._catalog.edges)

    @cached_property
    def _nodes(self) -> dict[str, NodeType]:
        return {folded(name): node for name, node in self._catalog.nodes.items()}
