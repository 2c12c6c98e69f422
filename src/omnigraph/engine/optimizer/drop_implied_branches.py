"""Drop a branch of a pattern that another branch implies, if the rows are a set.

    not { $p knows $a $a worksAt $f $p knows $b }       not { $p knows $a $a worksAt $f }

A branch hangs at one variable, and its own variables are not used elsewhere. Another branch at the same variable with
equal hops and at least its conditions binds nodes that match it as well. Hops may lead to the same node, so the branch
removes no row; it only repeats rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.engine.adjacency.adjacency import REVERSED
from omnigraph.engine.optimizer.pattern import Hop, Pattern, numbered
from omnigraph.query.plan import ir
from omnigraph.query.plan.rename import renamed


@dataclass(frozen=True)
class _Branch:
    """A vertex that one hop connects with its root, and the branches behind it."""

    vertex: int
    hop: tuple[object, ...]
    """The hop as seen from the root."""
    conditions: tuple[ir.Condition, ...]
    """The conditions of the vertex without its name."""
    behind: tuple[_Branch, ...]
    used: bool
    """True if the vertex is used elsewhere."""

    def implies(self, other: _Branch) -> bool:
        """Return True if a match of this branch is a match of another one."""
        if self.hop != other.hop or any(condition not in self.conditions for condition in other.conditions):
            return False
        return all(any(own.implies(one) for own in self.behind) for one in other.behind)

    def vertices(self) -> Iterator[int]:
        yield self.vertex
        for one in self.behind:
            yield from one.vertices()

    @property
    def free(self) -> bool:
        """True if no vertex of the branch is used elsewhere."""
        return not self.used and all(one.free for one in self.behind)


def drop_implied_branches(pattern: Pattern, live: frozenset[str]) -> Pattern:
    """Return the pattern without branches that others imply; `live` are the variables used after the pattern."""
    roots = [*_forks(pattern)]
    if not roots or not _is_forest(pattern):
        return pattern
    used = live | {var for one in pattern.filters for var in ir.variables_of(one.condition)}
    used |= {var for negation in pattern.negations for var in negation.outer_vars}
    used |= {var for optional in pattern.optionals for var in optional.outer_vars}
    used |= {pattern.vertices[end].var for path in pattern.paths for end in path.ends}
    for root in roots:
        branches = [*_branches(pattern, root, None, used)]
        for one in branches:
            if one.free and any(other is not one and other.implies(one) for other in branches):
                gone = {*one.vertices()}
                left = [at for at in range(len(pattern.vertices)) if at not in gone]
                hops = [hop for hop in pattern.hops if not gone.intersection(hop.ends)]
                return drop_implied_branches(numbered(pattern, left, hops), live)
    return pattern


def _forks(pattern: Pattern) -> Iterator[int]:
    """Yield the vertices with two hops of one kind."""
    seen: set[tuple[object, ...]] = set()
    found: set[int] = set()
    for hop in pattern.hops:
        for end in {*hop.ends}:
            kind = end, *_kind(pattern, hop, end)
            if kind in seen and end not in found:
                found.add(end)
                yield end
            seen.add(kind)


def _is_forest(pattern: Pattern) -> bool:
    """Return True if hops form no cycle."""
    group = [*range(len(pattern.vertices))]
    for hop in pattern.hops:
        one, other = (group[end] for end in hop.ends)
        if one == other:
            return False
        group = [one if at == other else at for at in group]
    return True


def _kind(pattern: Pattern, hop: Hop, root: int) -> tuple[object, ...]:
    """Return a hop as seen from one of its ends."""
    op, forward = hop.op, root == hop.ends[0]
    direction = op.direction if forward else REVERSED[op.direction]
    backward = op.backward if forward else not op.backward and not hop.single
    far = pattern.vertices[hop.other(root)].type_name
    return op.edge_types, direction, op.min_hops, op.max_hops, backward, op.src_type is None, far


def _branches(pattern: Pattern, root: int, parent: Hop | None, used: frozenset[str]) -> Iterator[_Branch]:
    for hop in pattern.hops:
        if hop is parent or root not in hop.ends:
            continue
        far = hop.other(root)
        vertex = pattern.vertices[far]
        yield _Branch(
            far,
            _kind(pattern, hop, root),
            tuple(_anonymous(condition, vertex.var) for condition in vertex.filters),
            tuple(_branches(pattern, far, hop, used)),
            vertex.outer or vertex.var in used or hop.op.edge_var is not None,
        )


def _anonymous(condition: ir.Condition, var: str) -> ir.Condition:
    (only,) = renamed((ir.Filter(condition),), {var: ""})
    assert isinstance(only, ir.Filter)
    return only.condition
