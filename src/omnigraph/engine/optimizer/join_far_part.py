"""Match a part of a pattern from its far end, and join it with the rows.

    rows of $p | expand $p -Knows-> $q | expand $q -WorksAt-> $f where $f.name = "f1"

    rows of $p | join matches, found once for all $p:
                   scan $f where $f.name = "f1" | expand $f <-WorksAt- $q | expand $q <-Knows- $p

It pays if the hops from the rows lead to many nodes and the hops from the far end to few. The rows are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from omnigraph.engine.optimizer.pattern import Pattern, Vertex, numbered
from omnigraph.query.plan import ir


@dataclass(frozen=True)
class FarPart:
    """A part of a pattern that some bound variables connect with the rest."""

    outer_vars: tuple[str, ...]
    """The bound variables."""
    variables: frozenset[str]
    """The other variables of the part."""
    pattern: Pattern
    """The part; it binds all its variables itself."""
    rest: Pattern
    """The pattern without the part."""


def far_parts(pattern: Pattern) -> Iterator[FarPart]:
    """Yield the parts of a pattern into which its bound variables divide it; none if it searches paths."""
    if pattern.paths:
        return
    for free in _components(pattern):
        hops = [hop for hop in pattern.hops if free.intersection(hop.ends)]
        numbers = sorted(free.union(*(hop.ends for hop in hops)))
        outer = tuple(pattern.vertices[at].var for at in numbers if at not in free)
        if not outer or not all(pattern.vertices[at].type_name for at in numbers):
            continue
        variables = {pattern.vertices[at].var for at in free} | {hop.op.edge_var for hop in hops} - {None}
        filters = [one for one in pattern.filters if variables.issuperset(ir.variables_of(one.condition))]
        part = numbered(pattern, numbers, hops)
        vertices = tuple(Vertex(vertex.var, vertex.type_name, vertex.filters) for vertex in part.vertices)
        left = [at for at in range(len(pattern.vertices)) if at not in free]
        rest = numbered(pattern, left, [hop for hop in pattern.hops if hop not in hops])
        yield FarPart(
            outer,
            frozenset(name for name in variables if name is not None),
            Pattern(vertices, part.hops, tuple(filters), (), ()),
            replace(rest, filters=tuple(one for one in pattern.filters if one not in filters)),
        )


def _components(pattern: Pattern) -> Iterator[set[int]]:
    """Yield the sets of free vertices that hops connect without bound vertices."""
    left = {at for at, vertex in enumerate(pattern.vertices) if not vertex.outer}
    while left:
        found: set[int] = set()
        reached = {min(left)}
        while reached:
            found |= reached
            reached = {end for hop in pattern.hops if found.intersection(hop.ends) for end in hop.ends if end in left}
            reached -= found
        left -= found
        yield found
