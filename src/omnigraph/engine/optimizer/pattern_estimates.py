"""Estimates of a pattern for the search of its order: rows of vertices, fan-out of hops, paths, costs of conditions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from omnigraph.engine.exec.adaptive import MeasuredHop
from omnigraph.engine.optimizer import cost
from omnigraph.engine.optimizer.pattern import Hop, PathHop, Pattern
from omnigraph.engine.optimizer.selectivity import Selectivity, is_equality
from omnigraph.engine.statistics.graph_statistics import End, GraphStatistics
from omnigraph.query.plan import ir

_DISTANCE_MAX = 64
"""Hops for which the reached nodes are estimated; nearly all nodes are reached before."""
_WALK_MAX = 12
"""Lengths of walks that are added up."""
_NOTHING = 1e-6
_NAMED_MAX = 16
"""Nodes that a condition names at most, as a key does."""


@dataclass(slots=True)
class EdgeEstimates:
    """The estimates of a hop."""

    ends: tuple[int, int]
    density: float
    """The share of pairs of nodes that the hop connects."""
    reach: tuple[float, float]
    """Nodes reached from one node at the first end, and at the second."""
    steps: tuple[float, float]
    """Edges followed from one node at the first end, and at the second."""
    edges: float
    share: float
    """The share of edges that pass the conditions on the edge."""
    single: bool
    plain: bool
    """True for a single hop without an edge variable between nodes of exactly its endpoint types."""
    skew: tuple[float, float]
    """The factor of the degree if a sibling hop leads to the same end already."""
    siblings: tuple[int, int] = (0, 0)
    """The vertices that hops of the same edge type on the same side lead to, as masks."""
    focus: tuple[float, float] = (1.0, 1.0)
    """The factor of the degree of the nodes at the first end, and at the second, if a condition names them: they are
    sought among the nodes that have such edges.
    """


class Way(NamedTuple):
    """A hop to a vertex from its other end."""

    hop: int
    source: int
    """The other end, as a mask."""
    near: int
    """The position of the other end in the ends of the hop."""
    reach: float
    """Nodes reached from one node."""
    biased: float
    """The same if a sibling hop leads to the other end already."""
    siblings: int
    """The vertices that sibling hops lead to, as a mask."""
    passing: float
    """The share of the reached nodes that pass the conditions of the vertex."""
    per_source: float
    """The cost of the hop for each source row."""
    per_row: float
    """The cost of the hop for each row that it leads to."""

    def fan(self, mask: int) -> float:
        """Return the nodes reached from one row with some bound vertices."""
        return self.biased if self.siblings & mask else self.reach


@dataclass(slots=True)
class PathEstimates:
    """The estimates of a search of paths."""

    ends: tuple[int, ...]
    mask: int
    fan: float
    """Paths from one start to all ends, or with `shortest` pairs of a start and an end."""
    back: float
    """The same from one end."""
    steps: float
    """Edges followed from one start."""
    shortest: bool


@dataclass(slots=True)
class PatternEstimates:
    """The estimates of all vertices, hops and paths of a pattern. A vertex is a number, a set of them a bit mask."""

    sizes: list[float] = field(default_factory=list)
    """Nodes of the type of each vertex."""
    rows: list[float] = field(default_factory=list)
    """Rows of each vertex that pass its conditions."""
    share: list[float] = field(default_factory=list)
    """The share of the nodes of each vertex that pass its conditions."""
    scan: list[float] = field(default_factory=list)
    """Cost of the scan of each vertex."""
    test: list[float] = field(default_factory=list)
    """Cost of the conditions of each vertex for one row."""
    call: list[float] = field(default_factory=list)
    """Fixed cost of the conditions of each vertex."""
    read: list[float] = field(default_factory=list)
    """Cost of reading the columns of the conditions of each vertex that do not fit the cache, for all rows."""
    unique: list[bool] = field(default_factory=list)
    """True if a key gives the vertex."""
    named: list[bool] = field(default_factory=list)
    """True if other conditions name few nodes of the vertex, which are assumed to have the edges of its hops."""
    edges: list[EdgeEstimates] = field(default_factory=list)
    paths: list[PathEstimates] = field(default_factory=list)
    at: list[list[tuple[int, int]]] = field(default_factory=list)
    """The hops of each vertex to other vertices, with their other ends."""
    ways: list[list[Way]] = field(default_factory=list)
    """The hops to each vertex from other vertices."""
    loops: list[list[int]] = field(default_factory=list)
    """The hops of each vertex to itself."""
    next_to: list[int] = field(default_factory=list)
    """The vertices that hops connect with each vertex, as masks."""
    predicates: list[tuple[int, float, float]] = field(default_factory=list)
    """Conditions on several vertices: mask, share, cost for one row."""
    uses: list[int] = field(default_factory=list)
    """Masks of vertices that are used together once, when all are bound."""
    at_end: int = 0
    """The vertices that are used after the pattern."""
    counting: bool = False
    """True if rows are counted or kept as a set, so variables are dropped after their last use."""

    @property
    def is_plain(self) -> bool:
        """True if moves change rows by their hops alone: nothing is counted, no condition or path joins vertices."""
        return not (self.counting or self.predicates or self.paths)


def estimate_pattern(
    pattern: Pattern, statistics: GraphStatistics, selectivity: Selectivity, live_at_end: frozenset[str] | None
) -> PatternEstimates:
    """Estimate a pattern; with `live_at_end`, only these variables are used after it."""
    p = PatternEstimates(counting=live_at_end is not None)
    for vertex in pattern.vertices:
        size = float(max(statistics.nodes(vertex.type_name), 1)) if vertex.type_name else 1.0
        unique, share, test, call, read = False, 1.0, 0.0, 0.0, 0.0
        if vertex.filters:
            keys = [*map(selectivity.is_key, vertex.filters)]
            unique = any(keys)
            for key, condition in zip(keys, vertex.filters, strict=True):
                call += cost.NUMBER_CALL if key else cost.call_cost(condition)
                if isinstance(condition, ir.TextMatch):
                    call += size * selectivity.of(condition) * cost.POSTING
                elif not key and statistics.large_tables(vertex.type_name):
                    read += _read_cost(vertex.type_name, condition, size, statistics, selectivity)
            share = 1 / size if unique else _share(vertex.filters, size, selectivity)
            test = cost.conditions_cost(vertex.filters)
        p.sizes.append(size)
        p.share.append(share)
        p.rows.append(size * share)
        p.test.append(test)
        p.call.append(call)
        p.read.append(read)
        if unique:
            p.scan.append(cost.LOOKUP + call - cost.NUMBER_CALL + min(read, cost.TAKE))
        else:
            p.scan.append(cost.OPERATOR + size * test + call + read)
        p.unique.append(unique)
        p.named.append(not unique and size * share <= _NAMED_MAX and any(map(is_equality, vertex.filters)))
        p.at.append([])
        p.loops.append([])
        p.next_to.append(0)
    for number, hop in enumerate(pattern.hops):
        left, right = hop.ends
        if left == right:
            p.loops[left].append(number)
            continue
        p.at[left].append((number, right))
        p.at[right].append((number, left))
        p.next_to[left] |= 1 << right
        p.next_to[right] |= 1 << left
    for hop, siblings in zip(pattern.hops, _siblings(pattern), strict=True):
        p.edges.append(_edge(hop, siblings, p, statistics, selectivity))
    p.ways += [[_way(p, number, vertex) for number, _ in hops] for vertex, hops in enumerate(p.at)]
    p.paths += [_paths(path, p, statistics) for path in pattern.paths]
    numbers = {vertex.var: at for at, vertex in enumerate(pattern.vertices)}
    carriers: dict[str, tuple[int, ...]] = {var: pattern.hops[at].ends for var, at in pattern.edge_variables.items()}
    carriers |= {path.op.var: path.ends for path in pattern.paths}

    def mask_of(variables: Iterable[str]) -> int:
        mask = 0
        for var in variables:
            for end in carriers.get(var, (numbers.get(var, -1),)):
                mask |= 1 << end if end >= 0 else 0
        return mask

    for one in pattern.filters:
        mask = mask_of(ir.variables_of(one.condition))
        p.predicates.append((mask, selectivity.of(one.condition), cost.condition_cost(one.condition)))
        p.uses.append(mask)
    p.uses += [mask_of(negation.outer_vars) for negation in pattern.negations]
    p.uses += [path.mask for path in p.paths]
    p.at_end = mask_of(live_at_end or ())
    for optional in pattern.optionals:
        p.at_end |= mask_of(optional.outer_vars)
    return p


def _share(conditions: Sequence[ir.Condition], size: float, selectivity: Selectivity) -> float:
    """Return the share of nodes that pass all conditions, which are assumed to be independent.

    Conditions that leave some nodes each are combined to find a node: their product leaves one.
    """
    shares = [*map(selectivity.of, conditions)]
    return max(math.prod(shares), min(*shares, 1 / size))


def _read_cost(
    type_name: str, condition: ir.Condition, size: float, statistics: GraphStatistics, selectivity: Selectivity
) -> float:
    """Return the cost of reading the columns of a condition that do not fit the cache, for all rows."""
    names = {part.name for part in ir.walk(condition) if isinstance(part, ir.Prop)}
    streamed = sum(statistics.streamed_bytes(type_name, name) for name in names)
    if not streamed:
        return 0.0
    match condition:
        case ir.Compare(op="=" | "<" | "<=" | ">" | ">=", left=ir.Prop() as prop, right=ir.Const() | ir.ParamRef()):
            if statistics.has_sorted_index(type_name, prop.name):
                return cost.INDEX_CALL + size * selectivity.of(condition) * cost.INDEXED
    return cost.READ_CALL + streamed * cost.READ


_SIDES = {"out": ("out", "in"), "in": ("in", "out"), "both": ("both", "both")}
"""Direction → the sides of the first and of the second end that a hop leaves from."""

_ENDS: dict[str, tuple[tuple[End, ...], tuple[End, ...]]] = {
    "out": (("source",), ("target",)),
    "in": (("target",), ("source",)),
    "both": (("source", "target"), ("source", "target")),
}
"""Direction → the ends of edges at the first and at the second end of a hop."""


def _siblings(pattern: Pattern) -> list[tuple[int, int]]:
    """Return for each end of each hop the vertices to which other single hops of the same type lead from the same
    side, as masks.
    """
    leads: dict[tuple[int, tuple[str, ...], str], int] = {}
    ends: list[tuple[tuple[int, tuple[str, ...], str], ...]] = []
    for hop in pattern.hops:
        if not hop.single:
            ends.append(())
            continue
        (left, right), types, (near, far) = hop.ends, hop.op.edge_types, _SIDES[hop.op.direction]
        first, second = (left, types, near), (right, types, near if left == right else far)
        leads[first] = leads.get(first, 0) | 1 << right
        leads[second] = leads.get(second, 0) | 1 << left
        ends.append((first, second))
    return [
        (leads[keys[0]] & ~(1 << keys[1][0]), leads[keys[1]] & ~(1 << keys[0][0])) if keys else (0, 0) for keys in ends
    ]


def _edge(
    hop: Hop, siblings: tuple[int, int], p: PatternEstimates, statistics: GraphStatistics, selectivity: Selectivity
) -> EdgeEstimates:
    op = hop.op
    left, right = hop.ends
    edges = float(statistics.edges(op.edge_types)) * (2 if op.direction == "both" else 1)
    degrees = edges / p.sizes[left], edges / p.sizes[right]
    share = selectivity.share(op.edge_filters) if op.edge_filters else 1.0
    single = hop.single
    skew = focus = (1.0, 1.0)
    if single:
        near, far = _ENDS[op.direction]
        focus = (
            _focus(left, op.edge_types, near, p, statistics),
            _focus(right, op.edge_types, far, p, statistics),
        )
        degrees = degrees[0] * focus[0], degrees[1] * focus[1]
        skew = (
            statistics.skew(op.edge_types, near) if siblings[0] else 1.0,
            statistics.skew(op.edge_types, far) if siblings[1] else 1.0,
        )
        reach = degrees[0] * share, degrees[1] * share
        steps = degrees
    else:
        sums = [
            _reached(degree, op.min_hops, op.max_hops, size)
            for degree, size in zip(degrees, (p.sizes[right], p.sizes[left]), strict=True)
        ]
        reach = sums[0][0], sums[1][0]
        steps = min(sums[0][1], edges), min(sums[1][1], edges)
    density = min(reach[0] * focus[1] / p.sizes[right], 1.0)
    plain = single and op.edge_var is None and op.src_type is None
    return EdgeEstimates((left, right), density, reach, steps, edges, share, single, plain, skew, siblings, focus)


def _focus(
    vertex: int, edge_types: tuple[str, ...], ends: tuple[End, ...], p: PatternEstimates, statistics: GraphStatistics
) -> float:
    """Return the factor of the degree of the nodes of a vertex: the nodes of its type by those that have such edges."""
    if not p.named[vertex]:
        return 1.0
    return p.sizes[vertex] / min(max(statistics.linked_nodes(edge_types, ends), p.rows[vertex], 1.0), p.sizes[vertex])


def _way(p: PatternEstimates, number: int, vertex: int) -> Way:
    edge = p.edges[number]
    near = 0 if edge.ends[1] == vertex else 1
    reach, source = edge.reach[near], 1 << edge.ends[near]
    per_source, per_row = cost.SOURCE, cost.ROW
    if not edge.single:
        per_source += edge.steps[near] * cost.STEP
    elif edge.share < 1:
        # The edges that do not pass their conditions are followed too.
        per_source, per_row = per_source + edge.steps[near] * cost.ROW, 0.0
    siblings = edge.siblings[near] & ~(1 << vertex)
    passing = p.share[vertex] * edge.focus[1 - near]
    return Way(number, source, near, reach, reach * edge.skew[near], siblings, passing, per_source, per_row)


def _paths(path: PathHop, p: PatternEstimates, statistics: GraphStatistics) -> PathEstimates:
    """Estimate a search of paths: walks of its hops, or the nodes at the shortest distances."""
    shortest = path.op.kind != "path"
    fan, back, followed = 1.0, 1.0, 0.0
    for step, near, far in zip(path.op.ahead, path.ends[:-1], path.ends[1:], strict=True):
        edges = float(statistics.edges(step.edge_types)) * (2 if step.direction == "both" else 1)
        ahead, behind = edges / p.sizes[near], edges / p.sizes[far]
        if shortest:
            reached, steps = _reached(ahead, step.min_hops, step.max_hops, p.sizes[far])
            fan, followed = reached, min(steps, edges)
            back = reached * p.sizes[near] / p.sizes[far]
        else:
            fan *= _walks(ahead, step.min_hops, step.max_hops)
            back *= _walks(behind, step.min_hops, step.max_hops)
            followed = max(fan, followed)
    return PathEstimates(path.ends, sum(1 << end for end in path.ends), fan, back, followed, shortest)


def take_measured(p: PatternEstimates, pattern: Pattern, measured: MeasuredHop) -> None:
    """Replace the estimate of a hop from a bound end by what was measured."""
    op = measured.op
    for hop, edge in zip(pattern.hops, p.edges, strict=True):
        names = [pattern.vertices[end].var for end in hop.ends]
        same = (hop.op.edge_types, hop.op.edge_var) == (op.edge_types, op.edge_var)
        if same and sorted(names) == sorted((op.src_var, op.dst_var)):
            near = names.index(op.src_var)
            other = edge.reach[1 - near]
            edge.reach = (measured.fan, other) if near == 0 else (other, measured.fan)
            edge.steps = (measured.fan, edge.steps[1]) if near == 0 else (edge.steps[0], measured.fan)
            edge.skew = (1.0, 1.0)
            edge.density = min(measured.fan * edge.share * edge.focus[1 - near] / p.sizes[edge.ends[1 - near]], 1.0)
    p.ways = [[_way(p, number, vertex) for number, _ in hops] for vertex, hops in enumerate(p.at)]


def _walks(degree: float, least: int, most: int) -> float:
    """Return the walks of `least` to `most` edges from one node."""
    return sum(degree**length for length in range(least, min(most, _WALK_MAX) + 1))


def _reached(degree: float, least: int, most: int, size: float) -> tuple[float, float]:
    """Return (nodes at a distance from `least` to `most`, edges followed)."""
    frontier, followed, reached, left = 1.0, 0.0, 0.0, size
    for distance in range(1, min(most, _DISTANCE_MAX) + 1):
        followed += frontier * degree
        frontier = min(frontier * degree, left)
        left -= frontier
        if distance >= least:
            reached += frontier
        if frontier < _NOTHING:
            break
    return reached, followed
