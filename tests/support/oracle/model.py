"""A graph as plain dictionaries, and the result of a read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from omnigraph.schema.catalog import Catalog
from support.oracle.unions import (
    Key,
    Pairs,
)

Props = dict[str, Any]


@dataclass(frozen=True)
class Entity:
    """A row of a table bound to a variable."""

    kind: str
    type: str
    id: str


Row = dict[str, Any]
"""Variable → its `Entity`; None where an optional block found nothing."""


@dataclass
class World:
    """A graph: type → id → stored values; an edge also has `src` and `dst`. Derived relations are memoised."""

    catalog: Catalog
    nodes: dict[str, dict[str, Props]]
    edges: dict[str, dict[str, Props]]
    relations: dict[Any, Pairs] = field(default_factory=dict, repr=False)
    corpora: dict[Any, dict[Key, list[str]]] = field(default_factory=dict, repr=False)

    def props(self, entity: Entity) -> Props:
        return (self.nodes if entity.kind == "node" else self.edges)[entity.type][entity.id]


@dataclass(frozen=True)
class Answer:
    """Every row of the result; the limit is not applied when there is no order to cut by.

    There is none either when it is by a sum that another order of adding could have made another.
    """

    columns: list[str]
    rows: list[tuple[Any, ...]]
    ordered: bool
    limit: int | None
    skip: int
    doubt: dict[int, float]
    """Column → tolerance of its values: sums and means are as exact as their largest term."""


def node_key(entity: Entity) -> Key:
    """The identity of a node, ordered by id, then type."""
    return entity.id, entity.type
