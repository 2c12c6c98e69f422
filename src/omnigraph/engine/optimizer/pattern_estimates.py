"""Estimates of a pattern for the search of its order: rows of vertices, fan-out of hops, paths, costs of conditions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from omnigraph.engine.exec.adaptive import MeasuredHop
from omnigraph.engine.optimizer import cost
from omnigraph.engine.optimizer.pattern import Hop, PathHop, Pattern
from omnigraph.engine.optimizer.selectivity import Selectivity
from omnigraph.engine.statistics.graph_statistics import End, GraphStatistics
from omnigraph.query.plan import ir

_DISTANCE_MAX = 64
"""Hops for which the reached nodes are estimated; nearly all nodes are reached before."""
_WALK_MAX = 12
"""Lengths of walks that are added up."""
_NOTHING = 1e-6


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
    scan: list[float] = field(default_factory=list)
    """Cost of the scan of each vertex."""
    test: list[float] = field(default_factory=list)
    """Cost of the conditions of each vertex for one row."""
    call: list[float] = field(default_factory=list)
    """Fixed cost of the conditions of each vertex."""
    unique: list[bool] = field(default_factory=list)
    """True if a key gives the vertex."""
    edges: list[EdgeEstimates] = field(default_factory=list)
    paths: list[PathEstimates] = field(default_factory=list)
    at: list[list[tuple[int, int]]] = field(default_factory=list)
    """The hops of each vertex to other vertices, with their other ends."""
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


def estimate_pattern(
    pattern: Pattern, statistics: GraphStatistics, selectivity: Selectivity, live_at_end: frozenset[str] | None
) -> PatternEstimates:
    """Estimate a pattern; with `live_at_end`, only these variables are used after it."""
    p = PatternEstimates(counting=live_at_end is not None)
    for vertex in pattern.vertices:
        size = float(max(statistics.nodes(vertex.type_name), 1)) if vertex.type_name else 1.0
        keys = [*map(selectivity.is_key, vertex.filters)]
        unique = any(keys)
        call = sum(
            cost.NUMBER_CALL if key else cost.call_cost(condition)
            for key, condition in zip(keys, vertex.filters, strict=True)
        )
        share = 1 / size if unique else selectivity.share(vertex.filters)
        test = cost.conditions_cost(vertex.filters)
        p.sizes.append(size)
        p.rows.append(size * share)
        p.test.append(test)
        p.call.append(call)
        p.scan.append(cost.LOOKUP + call - cost.NUMBER_CALL if unique else cost.OPERATOR + size * test + call)
        p.unique.append(unique)
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
    for hop in pattern.hops:
        p.edges.append(_edge(hop, pattern, p, statistics, selectivity))
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


def _edge(
    hop: Hop, pattern: Pattern, p: PatternEstimates, statistics: GraphStatistics, selectivity: Selectivity
) -> EdgeEstimates:
    op = hop.op
    left, right = hop.ends
    edges = float(statistics.edges(op.edge_types)) * (2 if op.direction == "both" else 1)
    degrees = edges / p.sizes[left], edges / p.sizes[right]
    siblings = _siblings(hop, left, pattern), _siblings(hop, right, pattern)
    skew = tuple(
        _skew(op, end == left, statistics) if mask else 1.0 for end, mask in zip(hop.ends, siblings, strict=True)
    )
    share = selectivity.share(op.edge_filters)
    single = hop.single
    if single:
        reach = degrees[0] * share, degrees[1] * share
        steps = degrees
    else:
        sums = [
            _reached(degree, op.min_hops, op.max_hops, size)
            for degree, size in zip(degrees, (p.sizes[right], p.sizes[left]), strict=True)
        ]
        reach = sums[0][0], sums[1][0]
        steps = min(sums[0][1], edges), min(sums[1][1], edges)
    density = min(reach[0] / p.sizes[right], 1.0)
    plain = single and op.edge_var is None and op.src_type is None
    return EdgeEstimates(
        (left, right), density, reach, steps, edges, share, single, plain, (skew[0], skew[1]), siblings
    )


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
            edge.density = min(measured.fan * edge.share / p.sizes[edge.ends[1 - near]], 1.0)


def _siblings(hop: Hop, vertex: int, pattern: Pattern) -> int:
    """Return the vertices to which other hops of the same type lead from the same side of a vertex."""
    mask = 0
    if hop.single:
        side = _side(hop, vertex)
        for other in pattern.hops:
            same = other is not hop and vertex in other.ends and other.single
            if same and other.op.edge_types == hop.op.edge_types and _side(other, vertex) == side:
                mask |= 1 << other.other(vertex)
    return mask


def _skew(op: ir.Expand, near: bool, statistics: GraphStatistics) -> float:
    ends: tuple[End, ...] = ("source", "target")
    if op.direction != "both":
        ends = ("source",) if (op.direction == "out") == near else ("target",)
    return max(statistics.degrees(name, end).skew for name in op.edge_types for end in ends)


def _side(hop: Hop, vertex: int) -> str:
    """Return the side of a vertex that a hop leaves from: along outgoing or incoming edges."""
    direction = hop.op.direction
    if direction == "both":
        return direction
    return "out" if (direction == "out") == (vertex == hop.ends[0]) else "in"


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
