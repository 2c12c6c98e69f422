"""Random path clauses and expressions over paths."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from omnigraph.schema.catalog import EdgeType, union_name

if TYPE_CHECKING:
    from support.random_reads.generator import ReadGenerator
    from support.random_reads.terms import Scope

SHARE = 0.08
"""The share of paths among the clauses of a match block."""

WEIGHTS = {"cost": "cost: F64?", "toll": "toll: U32", "miles": "miles: F32?"}
"""Weights: non-negative numbers that add up exactly."""
_WORTH = [0, 0, 1, 1, 2, 3]
_BOUNDS = ["", "{1,1}", "{1,2}", "{1,2}", "{2,2}", "{1,3}", "{2,3}", "{1,4}"]
"""The last ones only for few edges, because the oracle enumerates every path."""


_FORMS = ("${}", "nodes(${})", "edges(${})", "nodes(${}, id)", "edges(${}, id)", "length(nodes(${}, id))")
"""Expressions over a path that can be returned."""


@dataclass
class PathVariable:
    """A path variable: it has no properties and no schema type."""

    weighed: bool
    name: str = ""
    properties: dict[str, Any] = field(default_factory=dict)


def worth(random: Random, name: str) -> float | int:
    """A value of a weight."""
    value = random.choice(_WORTH)
    return value if name == "toll" else value + random.choice((0.0, 0.0, 0.5))


def path(asking: ReadGenerator, scope: Scope) -> str:
    """A path clause of at most two hops that starts at a bound node or at an unbound one."""
    random = asking.random
    nodes = asking.nodes(scope)
    before = len(_paths(scope))
    if before == 2:
        return ""
    kind = random.choice(("path", "path", "shortest", "shortest", "all shortest")) if not before else "shortest"
    here = random.choice(nodes) if nodes and random.random() < 0.9 else None
    hops, edges = _any_edge(asking, scope, here, before) if random.random() < 0.2 else _hops(asking, scope, here, kind)
    if not hops:
        return ""
    weights = [name for name in WEIGHTS if all(name in edge.properties for edge in edges)]
    by = random.choice(weights) if weights and kind != "path" and random.random() < 0.7 else None
    name = asking.new_name(scope)
    scope[name] = PathVariable(by is not None)
    if len(hops) == 1 and "->" not in hops[0] and random.random() < 0.3:
        left, *middle, right = hops[0].split(" ")
        if len({edges[0].from_type, edges[0].to_type}) == 1 or random.random() < 0.5:
            hops = [" ".join([right, *middle, left])]
    found = f"${name}: {kind} {{ {' '.join(hops)} }}" + (f" by {by}" if by else "")
    if "->" not in found and random.random() < 0.3:
        found += " " + _steps(asking, scope, name, edges)
    return found


def _steps(asking: ReadGenerator, scope: Scope, path: str, edges: list[EdgeType]) -> str:
    """The steps of a path, to new nodes, to anonymous ones, or to nodes that are bound already."""
    random = asking.random
    type_ = union_name({end for edge in edges for end in (edge.from_type, edge.to_type)})
    ends: list[str] = []
    for _ in range(2):
        same = [name for name in asking.nodes(scope) if scope[name].name == type_ and name not in ends]
        if same and random.random() < 0.4:
            ends.append(random.choice(same))
        elif random.random() < 0.2:
            ends.append("_")
        else:
            ends.append(asking.new_name(scope))
            scope[ends[-1]] = asking.catalog.node(type_)
    return f"${ends[0]} {random.choice(('->', '->', '<->'))} ${ends[1]} in ${path}"


def _any_edge(asking: ReadGenerator, scope: Scope, here: str | None, before: int) -> tuple[list[str], list[EdgeType]]:
    """One hop over any edge."""
    from support.random_reads.unions import any_hop  # noqa: PLC0415 (avoids a circular import)

    far = asking.random.choice(("_", *asking.nodes(scope), asking.new_name(scope), asking.new_name(scope)))
    bounds = ["", "{1,1}"] if before else ["", "{1,1}", "{1,2}", "{1,2}"]
    return [any_hop(asking, scope, here or asking.new_name(scope), far, bounds)], list(asking.catalog.edges.values())


def _hops(asking: ReadGenerator, scope: Scope, here: str | None, kind: str) -> tuple[list[str], list[EdgeType]]:
    """Connected hops and their edge types."""
    hops: list[str] = []
    edges: list[EdgeType] = []
    for _ in range(asking.random.choice((1, 1, 2, 3)) if kind == "path" else 1):
        hop, here, followed = _hop(asking, scope, here, kind, last=True)
        if hop is None:
            break
        hops.append(hop)
        edges += followed
        if here == "_":
            break
    return hops, edges


def _hop(
    asking: ReadGenerator, scope: Scope, here: str | None, kind: str, *, last: bool
) -> tuple[str | None, str | None, list[EdgeType]]:
    random, catalog = asking.random, asking.catalog
    edges = list(catalog.edges.values())
    if here is None:
        edge = random.choice(edges)
        here = asking.new_name(scope)
        scope[here] = catalog.nodes[edge.from_type]
    type_ = scope[here].name
    edges = [edge for edge in edges if type_ in (edge.from_type, edge.to_type)]
    if not edges:
        return None, None, []
    edge = random.choice(edges)
    far_type = edge.to_type if edge.from_type == type_ else edge.from_type
    same = [name for name in asking.nodes(scope) if scope[name].name == far_type and name != here]
    chance = random.random()
    if chance < 0.1 and last:
        far = "_"
    elif chance < 0.4 and same:
        far = random.choice(same)
    else:
        far = asking.new_name(scope)
        scope[far] = catalog.nodes[far_type]
    followed = [edge]
    alike = [e for e in catalog.edges.values() if (e.from_type, e.to_type) == (edge.from_type, edge.to_type)]
    if random.random() < 0.3:
        followed += random.sample(alike, random.randint(1, len(alike)))
    word = "|".join(one.word for one in followed)
    bounds = random.choice(_BOUNDS)
    if edge.from_type == edge.to_type and random.random() < 0.3:
        word = f"<{word}>"
    if not word.isalpha() or _paths(scope):
        bounds = random.choice(_BOUNDS[:5])
    if kind != "path":
        bounds = bounds.replace("{2", "{1")
    return f"${here} {word}{bounds} ${far}", far, followed


def _paths(scope: Scope) -> list[tuple[str, PathVariable]]:
    return [(name, type_) for name, type_ in scope.items() if isinstance(type_, PathVariable)]


def numbers(scope: Scope) -> list[str]:
    """Numeric expressions over the paths in a scope."""
    found = [f"length(${name})" for name, _ in _paths(scope)]
    return found + [f"weight(${name})" for name, path in _paths(scope) if path.weighed]


def items(scope: Scope) -> list[str]:
    """Return items over the paths in a scope."""
    whole = [form.format(name) for name, _ in _paths(scope) for form in _FORMS]
    return whole + numbers(scope)


def tests(random: Random, scope: Scope) -> list[str]:
    """Conditions on the paths in a scope."""
    found = [f"${name} is {random.choice(('', 'not '))}null" for name, _ in _paths(scope)]
    found += [f'{form.format(name)} contains "n1"' for name, _ in _paths(scope) for form in _FORMS[3:5]]
    for number in numbers(scope):
        found.append(f"{number} {random.choice(('<', '>=', '='))} {random.choice((1, 2, 2.5))}")
    return found
