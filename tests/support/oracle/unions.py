"""Variables of several types and edges of any type (`docs/query-language.md`).

A node is told by its type and its id. A variable's type is a set of node types.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from omnigraph.query.syntax import ast
from omnigraph.schema.catalog import Catalog, EdgeType

Types = frozenset[str]
Key = tuple[str, str]
"""A node: its type and its id."""
Pairs = set[tuple[Key, Key]]


def bound_types(catalog: Catalog, binding: ast.BindingClause) -> Types:
    """The node type itself, or the implementations of an interface."""
    found: set[str] = set()
    for name in (binding.type.text, *(other.text for other in binding.also)):
        if name in catalog.nodes:
            found.add(name)
        else:
            found |= {node.name for node in catalog.nodes.values() if name in node.implements}
    return frozenset(found)


def is_any(hop: ast.HopClause) -> bool:
    return hop.edge.text == "->"


def named_edges(catalog: Catalog, hop: ast.HopClause) -> list[EdgeType]:
    """The edge types of a hop; all edge types for a hop over any edge."""
    if is_any(hop):
        return list(catalog.edges.values())
    found = [catalog.find_edge(name.text) for name in (hop.edge, *hop.also)]
    return [edge for edge in found if edge is not None]


def is_forward(edge: EdgeType, left: Types | None, right: Types | None) -> bool:
    """True if the edge is forward, by the first matching row of the table; an end without a type matches any type."""
    from_left = left is None or edge.from_type in left
    to_right = right is None or edge.to_type in right
    return edge.from_type == edge.to_type or (from_left and to_right)


def any_ends(catalog: Catalog, hop: ast.HopClause, left: Types | None, right: Types | None) -> tuple[Types, Types]:
    """The types of the ends of a hop over any edge: as bound, else those connected by some walk over types."""
    ways = {(edge.from_type, edge.to_type) for edge in catalog.edges.values()}
    if hop.undirected:
        ways |= {(to, from_) for from_, to in ways}
    if hop.left.text == hop.right.text != ast.ANONYMOUS:
        ways = {(from_, to) for from_, to in ways if from_ == to}
    bounds = hop.bounds or ast.Bounds(1, 1)
    assert bounds.max is not None
    walks = {
        (start, end)
        for start in catalog.nodes
        for end in _ends_of_walks(start, ways, bounds.min, bounds.max)
        if (left is None or start in left) and (right is None or end in right)
    }
    starts, ends = frozenset(start for start, _ in walks), frozenset(end for _, end in walks)
    return left if left is not None else starts, right if right is not None else ends


def _ends_of_walks(start: str, ways: set[tuple[str, str]], least: int, most: int) -> set[str]:
    found: set[str] = set()
    at = {start}
    for length in range(1, most + 1):
        at = {to for from_, to in ways if from_ in at}
        found |= at if length >= least else set()
    return found


def pairs_of(edges: Mapping[str, Mapping[str, Mapping[str, Any]]], followed: Iterable[EdgeType]) -> Pairs:
    """(source, target) of every edge of some types."""
    return {
        ((edge.from_type, row["src"]), (edge.to_type, row["dst"]))
        for edge in followed
        for row in edges[edge.name].values()
    }


def shown_fields(catalog: Catalog, types: Types, type_name: str, id_: str, props: Mapping[str, Any]) -> dict[str, Any]:
    """A node as an object: its id, its type if there can be several, and every property except blobs."""
    if len(types) == 1:
        names = [p.name for p in catalog.nodes[type_name].properties.values() if p.type.scalar != "Blob"]
        return {"id": id_, **{name: props.get(name) for name in sorted(names)}}
    names = [name for name in shared(catalog, types) if name != "type"]
    return {"id": id_, "type": type_name, **{name: props.get(name) for name in sorted(names)}}


def shared(catalog: Catalog, types: Types) -> list[str]:
    """The properties, except blobs, that all of these types have in common with equal types."""
    first, *others = (catalog.nodes[name].properties for name in sorted(types))
    found = []
    for name, prop in first.items():
        kinds = {
            (of.type.scalar, of.type.is_list, of.type.dim) if (of := properties.get(name)) else None
            for properties in (first, *others)
        }
        if len(kinds) == 1 and prop.type.scalar != "Blob":
            found.append(name)
    return found
