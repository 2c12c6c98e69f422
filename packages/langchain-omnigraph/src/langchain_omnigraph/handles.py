"""The graph handle of an adapter, and lookups in its schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from omnigraph.errors import InputError

if TYPE_CHECKING:
    from omnigraph import Graph, RemoteGraph
    from omnigraph.schema.catalog import Catalog, NodeType

    AnyGraph = Graph | RemoteGraph

Declared = TypeVar("Declared")

HIT = "omnigraph"
"""The metadata key of a hit: where the document comes from and how it ranks."""


def on_branch(graph: AnyGraph, branch: str | None) -> AnyGraph:
    """Return the handle, or a handle of the same graph on another branch."""
    return graph if branch is None else graph.on(branch)


def node_type(catalog: Catalog, name: str) -> NodeType:
    """Return a declared node type; `InputError` if there is none."""
    found = catalog.nodes.get(name)
    if found is None:
        raise InputError(f"the schema has no node type '{name}'", hint=f"the node types are {listing(catalog.nodes)}")
    return found


def key_of(type_: NodeType) -> str:
    """Return the single key property of a node type, which holds the ids of documents."""
    if len(type_.key) != 1 or type_.properties[type_.key[0]].type.scalar not in ("String", "Uuid"):
        raise InputError(
            f"the node type '{type_.name}' has no single String or Uuid key, so documents have no id in it",
            hint="declare one: slug: String @key",
        )
    return type_.key[0]


def find_label(label: str, declared: Mapping[str, Declared]) -> Declared | None:
    """Return the type with a label: the exact name first, then one that differs in case and separators only.

    `WORKS_AT` and `works at` denote the type `WorksAt`.
    """
    exact = declared.get(label)
    if exact is not None:
        return exact
    wanted = plain(label)
    return next((type_ for name, type_ in declared.items() if plain(name) == wanted), None)


def plain(label: str) -> str:
    """Return the letters and digits of a label in lower case."""
    return "".join(char for char in label.casefold() if char.isalnum())


def listing(names: Iterable[str]) -> str:
    """Return names for a message."""
    return ", ".join(f"'{name}'" for name in names) or "none"
