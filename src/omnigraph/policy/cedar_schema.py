"""The Cedar schema of a policy of version 2, generated from the schema of a graph.

| entity | attributes |
|---|---|
| `Omnigraph::Actor` in `Group` | `id`, and the declared attributes, all optional |
| `Omnigraph::Graph` | `id` |
| `Omnigraph::Branch` in `Graph` | `name`, `protected`, `owner` if it is known, and `matches`: the matching patterns |
| `Omnigraph::StoredQuery` in `Graph` | `name`, `changes`, `definer` |
| `Omnigraph::Proposal` in `Branch` | `author`, `approvals`, `checks`, `source`, `labels`, and those of its target |
| `Omnigraph::Interface` | none; a node type is in the interfaces that it implements |
| `Node::T`, `Edge::T` | `id`; edges also `from` and `to`; each property that has a Cedar type |

The context of an action on a branch can have `source`, the other branch; that of an action on rows has `branch`,
`protected` and `matches`, and that of an action on a property also `property`. Null is an absent attribute.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.policy.rules import (
    ON_PROPOSALS,
    PROPERTY_ACTIONS,
    ROW_ACTIONS,
    SERVER_ACTIONS,
    STATEMENT_ACTIONS,
    WITHOUT_EFFECT,
    PolicyKind,
)
from omnigraph.policy.statements import AttributeType

if TYPE_CHECKING:
    from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
    from omnigraph.types import PropertyType

NAMESPACE = "Omnigraph"
_RESERVED = frozenset(
    {"true", "false", "if", "then", "else", "in", "is", "like", "has", "principal", "action", "resource", "context"}
    | {"Bool", "Boolean", "String", "Long", "Set", "Record", "Entity", "Extension", "EntityOrCommon"}
    | {"Action", "__cedar"}
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ESCAPED = re.compile(r"T_([0-9a-f]{2})+")
_STRING: Mapping[str, Any] = {"type": "String"}
_BOOL: Mapping[str, Any] = {"type": "Boolean"}
_LONG: Mapping[str, Any] = {"type": "Long"}
_DATETIME: Mapping[str, Any] = {"type": "Extension", "name": "datetime"}
_STRINGS: Mapping[str, Any] = {"type": "Set", "element": {"type": "String"}}
_ATTRIBUTE_TYPES: Mapping[AttributeType, Mapping[str, Any]] = {
    "String": _STRING,
    "Long": _LONG,
    "Bool": _BOOL,
    "Datetime": _DATETIME,
    "Set<String>": _STRINGS,
    "Set<Long>": {"type": "Set", "element": {"type": "Long"}},
}
_SCALARS: Mapping[str, Mapping[str, Any]] = {
    "String": _STRING,
    "Bool": _BOOL,
    "I32": _LONG,
    "I64": _LONG,
    "U32": _LONG,
    "U64": _LONG,
    "Date": _DATETIME,
    "DateTime": _DATETIME,
}
"""Scalar → its Cedar type. Floats, vectors, blobs and UUIDs have none."""

_PROPOSAL: Mapping[str, Mapping[str, Any]] = {
    "author": _STRING,
    "approvals": _STRINGS,
    "checks": _STRING,
    "source": _STRING,
    "labels": _STRINGS,
}
ENDS: Mapping[str, str] = {"from": "src", "to": "dst"}
"""Attribute of an edge → the column of that end."""


def cedar_type_name(type_name: str) -> str:
    """Return the Cedar name of a type: the name itself, or `T_` and its bytes in hexadecimal."""
    plain = _IDENTIFIER.fullmatch(type_name) is not None and type_name not in _RESERVED
    return type_name if plain and not _ESCAPED.fullmatch(type_name) else f"T_{type_name.encode().hex()}"


def entity_type(kind: str, type_name: str) -> str:
    """Return the Cedar entity type of the rows of a type."""
    return f"{'Node' if kind == 'node' else 'Edge'}::{cedar_type_name(type_name)}"


def uid(kind: str, name: str) -> dict[str, str]:
    """Return the id of an entity of the namespace `Omnigraph`."""
    return {"type": f"{NAMESPACE}::{kind}", "id": name}


def has_cedar_type(type_: PropertyType) -> bool:
    """Return True if a property of this type is an attribute in Cedar."""
    return type_.scalar in _SCALARS


def cedar_schema(kind: PolicyKind, declared: Mapping[str, AttributeType], catalog: Catalog | None) -> dict[str, Any]:
    """Return the Cedar schema in its JSON form. Without a catalog there are no rows."""
    actor = {
        "id": _STRING,
        **{name: {**_ATTRIBUTE_TYPES[type_], "required": False} for name, type_ in declared.items()},
    }
    entities: dict[str, Any] = {
        "Actor": {"memberOfTypes": ["Group"], "shape": _record(actor)},
        "Group": {},
        "Server": {},
    }
    if kind == "server":
        context = _record({})
        actions = {action: _applies(["Server"], context) for action in SERVER_ACTIONS}
        return {NAMESPACE: {"entityTypes": entities, "actions": actions}}
    branch = {"name": _STRING, "protected": _BOOL, "owner": {**_STRING, "required": False}, "matches": _STRINGS}
    query = {"name": _STRING, "changes": _BOOL, "definer": _BOOL}
    entities |= {
        "Graph": {"shape": _record({"id": _STRING})},
        "Branch": {"memberOfTypes": ["Graph"], "shape": _record(branch)},
        "StoredQuery": {"memberOfTypes": ["Graph"], "shape": _record(query)},
        "Proposal": {"memberOfTypes": ["Branch"], "shape": _record({**branch, **_PROPOSAL})},
        "Interface": {},
    }
    schema: dict[str, Any] = {NAMESPACE: {"entityTypes": entities, "actions": _graph_actions()}}
    if catalog is not None:
        nodes = {cedar_type_name(name): _row_entity(node) for name, node in catalog.nodes.items()}
        edges = {cedar_type_name(name): _row_entity(edge) for name, edge in catalog.edges.items()}
        schema["Node"] = {"entityTypes": nodes, "actions": {}}
        schema["Edge"] = {"entityTypes": edges, "actions": {}}
        resources = [f"Node::{name}" for name in nodes] + [f"Edge::{name}" for name in edges]
        schema[NAMESPACE]["actions"] |= _row_actions(resources) if resources else {}
    return schema


def attributes_of(type_: NodeType | EdgeType) -> dict[str, tuple[str, PropertyType]]:
    """Return the Cedar attributes of the rows of a type: attribute → column and type."""
    from omnigraph.types import PropertyType  # noqa: PLC0415 (a policy without row rules needs no types)

    text = PropertyType("String")
    found = {name: (name, p.type) for name, p in type_.properties.items() if has_cedar_type(p.type)}
    if type_.kind == "edge":
        found |= {attribute: (column, text) for attribute, column in ENDS.items()}
    return {**found, "id": ("id", text)}


def _graph_actions() -> dict[str, Any]:
    source = {"source": {"type": "Entity", "name": f"{NAMESPACE}::Branch", "required": False}}
    found = {}
    for action, scope in STATEMENT_ACTIONS.items():
        if action in WITHOUT_EFFECT:
            continue
        resources = ["StoredQuery", "Graph"] if action == "invoke_query" else ["Graph"]
        if scope is not None:
            resources = ["Graph", "Branch", *(["Proposal"] if action in ON_PROPOSALS else [])]
        found[action] = _applies(resources, _record(source))
    return found


def _row_actions(resources: list[str]) -> dict[str, Any]:
    context: dict[str, Any] = {"branch": _STRING, "protected": _BOOL, "matches": _STRINGS}
    rows = {action: _applies(resources, _record(context)) for action in ROW_ACTIONS}
    named = _record({**context, "property": _STRING})
    return rows | {action: _applies(resources, named) for action in PROPERTY_ACTIONS}


def _row_entity(type_: NodeType | EdgeType) -> dict[str, Any]:
    attributes = {}
    for name, (_, property_type) in attributes_of(type_).items():
        scalar = _SCALARS[property_type.scalar]
        plain = {"type": "Set", "element": scalar} if property_type.is_list else dict(scalar)
        attributes[name] = {**plain, "required": not property_type.nullable}
    return {"memberOfTypes": [f"{NAMESPACE}::Interface"], "shape": _record(attributes)}


def _record(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "Record", "attributes": dict(attributes)}


def _applies(resources: list[str], context: Mapping[str, Any]) -> dict[str, Any]:
    return {"appliesTo": {"principalTypes": ["Actor"], "resourceTypes": resources, "context": context}}
