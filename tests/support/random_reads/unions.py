"""Random clauses on variables of several types, on edges of any type, and on entity types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omnigraph.query.syntax import ast
from omnigraph.query.syntax.parser import parse_queries
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, union_name
from support.oracle.unions import Types, any_ends, is_forward
from support.random_reads.paths import PathVariable

if TYPE_CHECKING:
    from support.random_reads.generator import ReadGenerator
    from support.random_reads.terms import Scope

_ANY_BOUNDS = ["", "", "", "{1,1}", "{1,2}", "{2,2}", "{1,3}", "{2,3}", "{1,5}"]


def several_types(asking: ReadGenerator) -> str:
    """A binding type other than one node type."""
    random, catalog = asking.random, asking.catalog
    names = [*catalog.nodes, *catalog.nodes, *catalog.interfaces]
    return "|".join(random.sample(names, random.choice((1, 2, 2, 3))))


def type_of(catalog: Catalog, spelt: str) -> str:
    """The type of a binding as named in the plan."""
    found: set[str] = set()
    for name in spelt.split("|"):
        found |= {name} if name in catalog.nodes else set(catalog.implementers[name])
    return union_name(found or spelt.split("|"))


def members(asking: ReadGenerator, scope: Scope, name: str) -> Types | None:
    type_ = scope.get(name)
    return frozenset(asking.catalog.members(type_.name)) if isinstance(type_, NodeType) else None


def edge_ends(asking: ReadGenerator, scope: Scope, left: str, edge: EdgeType, right: str) -> tuple[str, str]:
    """The types of untyped ends of a hop."""
    forward = is_forward(edge, members(asking, scope, left), members(asking, scope, right))
    return (edge.from_type, edge.to_type) if forward else (edge.to_type, edge.from_type)


def any_hop(asking: ReadGenerator, scope: Scope, near: str, far: str, bounds: Sequence[str] = _ANY_BOUNDS) -> str:
    """A hop over any edge; a new end gets its types from the edges."""
    random = asking.random
    arrow = random.choice(("->", "->", "<->")) + random.choice(bounds)
    left, right = (near, far) if random.random() < 0.5 else (far, near)
    text = f"${left} {arrow} ${right}"
    (query,) = parse_queries(f"query q() {{ match {{ {text} }} return {{ 1 }} }}").queries
    assert isinstance(query.body, ast.Read)
    (hop,) = query.body.clauses
    assert isinstance(hop, ast.HopClause)
    ends = any_ends(asking.catalog, hop, members(asking, scope, left), members(asking, scope, right))
    for name, types in zip((left, right), ends, strict=True):
        if name != "_" and name not in scope and types:
            scope[name] = asking.catalog.node(union_name(types))
    return text


def mixed_hop(asking: ReadGenerator, scope: Scope, near: str) -> str:
    """A hop over edges with a common near type and different far types."""
    random = asking.random
    types = members(asking, scope, near) or frozenset()
    out = random.random() < 0.5
    fitting = [e for e in asking.catalog.edges.values() if (e.from_type if out else e.to_type) in types]
    if len(fitting) < 2:
        return ""
    edges = random.sample(fitting, random.randint(2, len(fitting)))
    far = asking.new_name(scope)
    scope[far] = asking.catalog.node(union_name(e.to_type if out else e.from_type for e in edges))
    words = "|".join(edge.word for edge in edges)
    return f"${near} {words} ${far}" if out else f"${far} {words} ${near}"


def entity_value(asking: ReadGenerator, scope: Scope) -> str:
    """`id($x)` or `type($x)`."""
    entities = [name for name, type_ in scope.items() if not isinstance(type_, PathVariable)] or list(scope)
    return f"{asking.random.choice(('id', 'type', 'type'))}(${asking.random.choice(entities)})"


def entity_test(asking: ReadGenerator, scope: Scope, names: list[str]) -> str:
    """A condition on the id or type of an entity."""
    random = asking.random
    own = entity_value(asking, {name: scope[name] for name in names})
    kinds = [*asking.catalog.nodes, *asking.catalog.edges]
    some = [f'"{item}"' for item in (kinds if own.startswith("type") else [f"n{at}" for at in range(20)])]
    match random.randrange(5):
        case 0:
            return f"{own} in [{', '.join(random.sample(some, min(len(some), 2)))}]"
        case 1:
            return f"{own} {random.choice(('=', '!=', '<', '>='))} {entity_value(asking, scope)}"
        case 2:
            return f"{own} is {random.choice(('', 'not '))}null"
        case _:
            return f"{own} {random.choice(('=', '=', '!=', '<'))} {random.choice(some)}"
