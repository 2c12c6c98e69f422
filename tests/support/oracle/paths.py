"""Paths by exhaustive search: enumerate every path, then select.

From the page alone: a path is a sequence of edges that visits no node twice; parallel edges make different paths. The
shortest has the fewest edges, the lightest the smallest sum, then the fewest edges; of equal ones the ids of the edges
decide, compared from the start, edges of one id by the names of their types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from omnigraph.query.syntax import ast
from omnigraph.schema.catalog import Catalog, EdgeType
from support.oracle.unions import Types, is_any, named_edges

if TYPE_CHECKING:
    from support.oracle.model import Entity, World
    from support.oracle.plan import Leap


class NegativeWeight(Exception):
    """An edge has a negative weight."""


class Unsure(Exception):
    """The weights do not add up exactly, so the lightest path is undefined."""


@dataclass(frozen=True)
class Route:
    """A path bound to a variable."""

    nodes: tuple[Entity, ...]
    edges: tuple[Entity, ...]
    weight: float | None
    trail: Trail

    def __len__(self) -> int:
        return len(self.edges)

    @property
    def ids(self) -> list[tuple[str, str]]:
        return [(edge.id, edge.type) for edge in self.edges]


@dataclass(eq=False)
class Trail:
    """A path clause whose anonymous ends have unique names."""

    clause: ast.PathClause
    leaps: list[Leap]
    types: Mapping[str, tuple[str, Types]]
    """The types of the variables after all hops are resolved."""

    @property
    def names(self) -> list[str]:
        return [self.leaps[0].left, *(leap.right for leap in self.leaps)]


class Paths:
    """Finds the paths of one graph."""

    def __init__(self, world: World, entity: Callable[[str, str, str], Entity]) -> None:
        self.world = world
        self.catalog: Catalog = world.catalog
        self.entity = entity
        self.known: dict[tuple[Trail, Entity], list[tuple[Mapping[str, Entity], Route]]] = {}

    def rows(self, trail: Trail, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Extend the row by every consistent path."""
        if any(name in row and row[name] is None for name in trail.names):
            return
        found = [
            (names, route)
            for start in self.starts(trail, row)
            for names, route in self.every(trail, start)
            if all(row.get(name, node) == node for name, node in names.items())
        ]
        for names, route in self.chosen(trail, found):
            yield {**row, **names, trail.clause.var.text: route}

    def every(self, trail: Trail, start: Entity) -> list[tuple[Mapping[str, Entity], Route]]:
        if (trail, start) not in self.known:
            self.known[trail, start] = list(self.walk(trail, 0, {trail.names[0]: start}, (start,), ()))
        return self.known[trail, start]

    def starts(self, trail: Trail, row: Mapping[str, Any]) -> list[Entity]:
        first = trail.names[0]
        if first in row:
            return [row[first]]
        return [self.entity("node", type_, id) for type_ in trail.types[first][1] for id in self.world.nodes[type_]]

    def followed(self, trail: Trail, leap: Leap) -> list[EdgeType]:
        """The edge types of a hop; for a hop over any edge all of them, for a single step those that match its ends."""
        edges = list({edge.name: edge for edge in named_edges(self.catalog, leap.hop)}.values())
        bounds = leap.hop.bounds or ast.Bounds(1, 1)
        if not is_any(leap.hop) or bounds.max != 1:
            return edges
        ends = trail.types[leap.left][1], trail.types[leap.right][1]
        ways = [ends, ends[::-1]] if leap.hop.undirected else [ends]
        return [e for e in edges if any(e.from_type in left and e.to_type in right for left, right in ways)]

    def walk(
        self,
        trail: Trail,
        at: int,
        names: Mapping[str, Entity],
        nodes: tuple[Entity, ...],
        edges: tuple[Entity, ...],
        hops: int = 0,
    ) -> Iterator[tuple[Mapping[str, Entity], Route]]:
        """Every continuation from a node after `hops` edges of hop number `at`."""
        if at == len(trail.leaps):
            yield names, Route(nodes, edges, self.weight(trail, edges), trail)
            return
        leap = trail.leaps[at]
        bounds = leap.hop.bounds or ast.Bounds(1, 1)
        first = named_edges(self.catalog, leap.hop)[0]
        several = is_any(leap.hop) or first.from_type == first.to_type
        most = bounds.max if several else min(bounds.max or 0, 1)
        assert most is not None
        if hops >= bounds.min and nodes[-1].type in trail.types[leap.right][1]:
            yield from self.walk(trail, at + 1, {**names, leap.right: nodes[-1]}, nodes, edges)
        if hops < most:
            for edge, node in self.onward(trail, leap, nodes[-1]):
                if node not in nodes:
                    yield from self.walk(trail, at, names, (*nodes, node), (*edges, edge), hops + 1)

    def onward(self, trail: Trail, leap: Leap, here: Entity) -> Iterator[tuple[Entity, Entity]]:
        for edge in self.followed(trail, leap):
            for id, row in self.world.edges[edge.name].items():
                source = self.entity("node", edge.from_type, row["src"])
                target = self.entity("node", edge.to_type, row["dst"])
                ways = {(source, target)} if leap.forward else {(target, source)}
                if leap.hop.undirected:
                    ways |= {(far, near) for near, far in ways}
                for near, far in ways:
                    if near == here:
                        yield self.entity("edge", edge.name, id), far

    def weight(self, trail: Trail, edges: Sequence[Entity]) -> float | None:
        if trail.clause.by is None:
            return None
        total = 0.0
        for edge in edges:
            value = self.world.props(edge)[trail.clause.by.text]
            total += float("nan") if value is None else float(value)
        return total

    def chosen(self, trail: Trail, found: list[Any]) -> list[Any]:
        """The selected paths of each pair of ends."""
        clause = trail.clause
        if clause.by is not None:
            self.sound_weights(trail, clause.by.text)
            found = [one for one in found if one[1].weight == one[1].weight]
        if clause.kind == "path":
            return found
        pairs: dict[Any, list[Any]] = {}
        for one in found:
            pairs.setdefault((one[1].nodes[0], one[1].nodes[-1]), []).append(one)
        best: list[Any] = []
        for routes in pairs.values():
            if clause.kind == "shortest":
                best.append(min(routes, key=lambda one: (one[1].weight or 0, len(one[1]), one[1].ids)))
            elif clause.by is not None:
                least = min(route.weight for _, route in routes)
                best += [one for one in routes if one[1].weight == least]
            else:
                least = min(len(route) for _, route in routes)
                best += [one for one in routes if len(one[1]) == least]
        return best

    def sound_weights(self, trail: Trail, by: str) -> None:
        names = [edge.name for leap in trail.leaps for edge in self.followed(trail, leap)]
        weights = [row[by] for name in names for row in self.world.edges[name].values() if row[by] is not None]
        if any(weight < 0 for weight in weights):
            raise NegativeWeight
        steps = [Fraction(weight) * 2**20 for weight in weights]
        if any(step.denominator != 1 for step in steps) or sum(steps) > 2**53:
            raise Unsure

    # -- what is shown ---------------------------------------------------------------------------

    def shown(self, route: Route) -> dict[str, Any]:
        weight = {} if route.trail.clause.by is None else {"weight": route.weight}
        return {"nodes": self.nodes(route), "edges": self.edges(route), "length": len(route), **weight}

    def nodes(self, route: Route) -> list[dict[str, Any]]:
        edges = [edge for leap in route.trail.leaps for edge in self.followed(route.trail, leap)]
        types = list(dict.fromkeys(end for edge in edges for end in (edge.from_type, edge.to_type)))
        names = self.shared([self.catalog.nodes[type_] for type_ in types])
        several = len(types) > 1
        return [
            {"id": node.id, **({"type": node.type} if several else {}), **self.properties(node, names, several)}
            for node in route.nodes
        ]

    def edges(self, route: Route) -> list[dict[str, Any]]:
        trail = route.trail
        types = list(dict.fromkeys(edge.name for leap in trail.leaps for edge in self.followed(trail, leap)))
        names = self.shared([self.catalog.edges[type_] for type_ in types])
        return [
            {
                "id": edge.id,
                "type": edge.type,
                "from": self.world.props(edge)["src"],
                "to": self.world.props(edge)["dst"],
                **self.properties(edge, names, True),
            }
            for edge in route.edges
        ]

    def properties(self, entity: Entity, shared: Mapping[str, Callable[[Any], Any]], typed: bool) -> dict[str, Any]:
        props = self.world.props(entity)
        names = [name for name in shared if not typed or name != "type"]
        return {name: None if props.get(name) is None else shared[name](props[name]) for name in names}

    def shared(self, types: Sequence[Any]) -> dict[str, Callable[[Any], Any]]:
        """Properties of objects of these types and their presentation; types with a common property must agree on its
        type.
        """
        found: dict[str, set[str]] = {}
        for type_ in types:
            for prop in type_.properties.values():
                plain = prop.type.with_nullable(False)
                text = plain.scalar == "String" and not plain.is_list
                found.setdefault(prop.name, set()).add("String" if text else str(plain))
        seen: dict[str, Callable[[Any], Any]] = {}
        for name, kinds in sorted(found.items()):
            if len(kinds) == 1 or kinds <= {"I32", "I64", "U32"} or kinds <= {"U32", "U64"}:
                seen[name] = lambda value: value
            elif kinds <= {"I32", "I64", "U32", "U64", "F32", "F64"} and kinds & {"F32", "F64"}:
                seen[name] = float
        return seen
