"""Search for the cheapest order of a pattern.

A state is the set of bound vertices, as a bit mask. A move binds one more vertex, by a hop or by a scan, and takes
every other hop between bound vertices. States are extended level by level; each level keeps the cheapest.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

from omnigraph.engine import tuning
from omnigraph.engine.optimizer import cost
from omnigraph.engine.optimizer.pattern import Hop, Pattern
from omnigraph.engine.optimizer.selectivity import Selectivity
from omnigraph.engine.statistics.graph_statistics import End, GraphStatistics
from omnigraph.query.plan import ir

_DISTANCE_MAX = 64
"""Hops for which the reached nodes are estimated; nearly all nodes are reached before."""
_NOTHING = 1e-6


@dataclass(frozen=True, slots=True)
class Step:
    """One move: the vertex that it binds, the hop that reaches it (None: a scan), and the hops that are checked."""

    vertex: int
    hop: int | None
    checks: tuple[int, ...]
    rows: float
    """Estimated rows after the move."""
    cost: float
    """Estimated cost of the move."""
    matched: float = 0.0
    """Estimated rows before variables that are not used later are dropped."""


@dataclass(frozen=True, slots=True)
class Order:
    """A sequence of moves that binds every vertex."""

    steps: tuple[Step, ...]
    cost: float
    rows: float


@dataclass(slots=True)
class _Edge:
    """The estimates of a hop."""

    ends: tuple[int, int]
    density: float
    """The share of pairs of nodes that the hop connects."""
    reach: tuple[float, float]
    """Nodes reached from one node at the first end, and at the second."""
    steps: tuple[float, float]
    """Edges followed from one node at the first end, and at the second."""
    edges: float
    single: bool
    plain: bool
    """True for a single hop without an edge variable between nodes of exactly its endpoint types."""
    skew: tuple[float, float]
    """The factor of the degree if a sibling hop leads to the same end already."""
    siblings: tuple[int, int] = (0, 0)
    """The vertices that hops of the same edge type on the same side lead to, as masks."""


@dataclass(slots=True)
class _Problem:
    sizes: list[float] = field(default_factory=list)
    rows: list[float] = field(default_factory=list)
    """Rows of each vertex that pass its conditions."""
    scan: list[float] = field(default_factory=list)
    test: list[float] = field(default_factory=list)
    """Cost of the conditions of each vertex for one row."""
    unique: list[bool] = field(default_factory=list)
    """True if a key gives the vertex."""
    edges: list[_Edge] = field(default_factory=list)
    at: list[list[int]] = field(default_factory=list)
    """The hops of each vertex."""
    next_to: list[list[int]] = field(default_factory=list)
    """The other ends of the hops of each vertex."""
    predicates: list[tuple[int, float, float]] = field(default_factory=list)
    """Conditions on several vertices: mask, share, cost for one row."""
    uses: list[int] = field(default_factory=list)
    """Masks of vertices that are used together once, when all are bound."""
    at_end: int = 0
    """The vertices that are used after the pattern."""
    counting: bool = False


class OrderSearch:
    """Finds orders of one pattern.

    With `live_at_end`, only these variables are used after the pattern, and rows are counted or kept as a set.
    """

    def __init__(
        self,
        pattern: Pattern,
        statistics: GraphStatistics,
        selectivity: Selectivity,
        live_at_end: frozenset[str] | None,
        outer_rows: float = 1.0,
    ) -> None:
        self._pattern = pattern
        self._statistics = statistics
        self._selectivity = selectivity
        self._outer_rows = outer_rows
        self._p = self._problem(live_at_end)

    # -- estimates -------------------------------------------------------------------------------

    def _problem(self, live_at_end: frozenset[str] | None) -> _Problem:
        pattern, p = self._pattern, _Problem(counting=live_at_end is not None)
        for vertex in pattern.vertices:
            size = float(max(self._statistics.nodes(vertex.type_name), 1)) if vertex.type_name else 1.0
            unique = any(map(self._selectivity.is_key, vertex.filters))
            share = 1 / size if unique else self._selectivity.share(vertex.filters)
            test = cost.conditions_cost(vertex.filters)
            p.sizes.append(size)
            p.rows.append(size * share)
            p.test.append(test)
            p.scan.append(cost.LOOKUP if unique else cost.OPERATOR + size * test)
            p.unique.append(unique)
            p.at.append([])
            p.next_to.append([])
        for number, hop in enumerate(pattern.hops):
            for end in set(hop.ends):
                p.at[end].append(number)
                p.next_to[end].append(hop.other(end))
        for hop in pattern.hops:
            p.edges.append(self._edge(hop, p))
        numbers = {vertex.var: at for at, vertex in enumerate(pattern.vertices)}
        carriers = {var: pattern.hops[at].ends for var, at in pattern.edge_variables.items()}

        def mask_of(variables: Iterable[str]) -> int:
            mask = 0
            for var in variables:
                for end in carriers.get(var, (numbers.get(var, -1),)):
                    mask |= 1 << end if end >= 0 else 0
            return mask

        for one in pattern.filters:
            mask = mask_of(ir.variables_of(one.condition))
            p.predicates.append((mask, self._selectivity.of(one.condition), cost.condition_cost(one.condition)))
            p.uses.append(mask)
        p.uses += [mask_of(negation.outer_vars) for negation in pattern.negations]
        p.at_end = mask_of(live_at_end or ())
        for optional in pattern.optionals:
            p.at_end |= mask_of(optional.outer_vars)
        return p

    def _edge(self, hop: Hop, p: _Problem) -> _Edge:
        op = hop.op
        left, right = hop.ends
        edges = float(self._statistics.edges(op.edge_types)) * (2 if op.direction == "both" else 1)
        degrees = edges / p.sizes[left], edges / p.sizes[right]
        siblings = self._siblings(hop, left), self._siblings(hop, right)
        skew = tuple(self._skew(op, end == left) if mask else 1.0 for end, mask in zip(hop.ends, siblings, strict=True))
        share = self._selectivity.share(op.edge_filters)
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
        return _Edge((left, right), density, reach, steps, edges, single, plain, (skew[0], skew[1]), siblings)

    def _siblings(self, hop: Hop, vertex: int) -> int:
        """Return the vertices to which other hops of the same type lead from the same side of a vertex."""
        mask = 0
        if hop.single:
            side = _side(hop, vertex)
            for other in self._pattern.hops:
                same = other is not hop and vertex in other.ends and other.single
                if same and other.op.edge_types == hop.op.edge_types and _side(other, vertex) == side:
                    mask |= 1 << other.other(vertex)
        return mask

    def _skew(self, op: ir.Expand, near: bool) -> float:
        ends: tuple[End, ...] = ("source", "target")
        if op.direction != "both":
            ends = ("source",) if (op.direction == "out") == near else ("target",)
        return max(self._statistics.degrees(name, end).skew for name in op.edge_types for end in ends)

    # -- search ----------------------------------------------------------------------------------

    def best(self, start: int | None = None, count: int = 1) -> list[Order]:
        """Return the cheapest orders that start at different vertices; with `start`, only at this vertex."""
        p = self._p
        bound = sum(1 << at for at, vertex in enumerate(self._pattern.vertices) if vertex.outer)
        every = (1 << len(p.sizes)) - 1
        rows = self._outer_rows
        first = _State(0.0, rows, ())
        if bound == every:
            state = self._checked(first, bound)
            return [Order(state.steps, state.cost, state.rows)]
        if bound:
            levels = {bound: self._checked(first, bound)}
        else:
            starts = [start] if start is not None else range(len(p.sizes))
            levels = {1 << at: self._scanned(first, at, 0) for at in starts}
            if count > 1:
                return self._several(levels, every, count)
        state = self._completed(levels, every)
        return [Order(state.steps, state.cost, state.rows)]

    def _several(self, levels: dict[int, _State], every: int, count: int) -> list[Order]:
        """Return the best order of each start, the best first."""
        found = [self._completed({mask: state}, every) for mask, state in levels.items()]
        found.sort(key=lambda state: (state.cost, [step.vertex for step in state.steps]))
        return [Order(state.steps, state.cost, state.rows) for state in found[:count]]

    def _completed(self, level: dict[int, _State], every: int) -> _State:
        width = tuning.current.search_width
        while every not in level:
            if len(level) > width:
                level = dict(heapq.nsmallest(width, level.items(), key=lambda item: (item[1].cost, item[0])))
            following: dict[int, _State] = {}
            for mask, state in sorted(level.items()):
                for vertex in self._candidates(mask):
                    grown = mask | 1 << vertex
                    known = following.get(grown)
                    bound = known.cost if known is not None else inf
                    if state.cost < bound:
                        found = self._extended(state, vertex, mask)
                        if found.cost < bound:
                            following[grown] = found
            level = following
        return level[every]

    def _candidates(self, mask: int) -> Sequence[int]:
        """Return the vertices that may be bound next: those that a hop reaches or a key gives, else all."""
        p = self._p
        found = []
        for vertex in range(len(p.sizes)):
            if mask >> vertex & 1:
                continue
            near = any(
                mask >> (edge.ends[0] + edge.ends[1] - vertex) & 1 for edge in map(p.edges.__getitem__, p.at[vertex])
            )
            if near or p.unique[vertex]:
                found.append(vertex)
        return found or [vertex for vertex in range(len(p.sizes)) if not mask >> vertex & 1]

    def _extended(self, state: _State, vertex: int, mask: int) -> _State:
        p = self._p
        hops = [
            at
            for at in p.at[vertex]
            if mask >> (p.edges[at].ends[0] + p.edges[at].ends[1] - vertex) & 1
            and p.edges[at].ends[0] != p.edges[at].ends[1]
        ]
        if not hops:
            return self._scanned(state, vertex, mask)
        found = self._expanded(state, vertex, mask, hops)
        if p.unique[vertex]:
            scanned = self._scanned(state, vertex, mask)
            return scanned if scanned.cost < found.cost else found
        return found

    def _scanned(self, state: _State, vertex: int, mask: int) -> _State:
        """Bind a vertex by a scan; every hop to it is checked."""
        p = self._p
        rows = state.rows * p.rows[vertex]
        spent = p.scan[vertex]
        if mask:
            spent += rows * cost.ROW
        elif not p.unique[vertex]:
            spent += cost.PIPELINE
        grown = mask | 1 << vertex
        checks = tuple(at for at in p.at[vertex] if grown >> p.edges[at].ends[0] & grown >> p.edges[at].ends[1] & 1)
        for at in checks:
            spent += cost.OPERATOR + rows * self._check_cost(at)
            rows *= self._check_share(at)
        return self._finished(state, Step(vertex, None, checks, rows, spent), mask, grown)

    def _expanded(self, state: _State, vertex: int, mask: int, hops: list[int]) -> _State:
        """Bind a vertex by the cheapest of its hops; the others are checked."""
        p = self._p
        grown = mask | 1 << vertex
        if len(hops) > 1:
            hops = sorted(hops, key=lambda at: (self._fan(at, vertex, mask), at))
        first, *others = hops
        loops = [at for at in p.at[vertex] if p.edges[at].ends[0] == p.edges[at].ends[1]]
        edge = p.edges[first]
        near = 0 if edge.ends[1] == vertex else 1
        fan = self._fan(first, vertex, mask)
        rows = state.rows
        live = self._live(grown)
        bare = p.counting and not live >> vertex & 1 and p.test[vertex] == 0 and not loops
        if bare and not others and edge.plain:
            # The far end is not used: rows are weighted by degrees.
            spent = cost.OPERATOR + rows * cost.DEGREE
            return self._finished(state, Step(vertex, first, (), rows * min(fan, 1.0), spent), mask, grown)
        if bare and len(others) == 1 and edge.plain and p.edges[others[0]].plain:
            # The far end only closes a cycle: common neighbours are counted.
            spent = cost.OPERATOR + rows * (cost.SOURCE + fan * cost.COMMON)
            met = min(fan * self._check_share(others[0]), 1.0)
            return self._finished(state, Step(vertex, first, (others[0],), rows * met, spent), mask, grown)
        middle = rows * fan
        follow = middle * cost.ROW
        alone = p.counting and live == 1 << vertex and not others and not loops and edge.plain and p.test[vertex] == 0
        if alone and rows * 4 >= p.sizes[edge.ends[near]]:
            follow = min(follow, edge.edges * cost.EDGE)
        if not edge.single:
            follow += rows * edge.steps[near] * cost.STEP
        spent = cost.OPERATOR + rows * cost.SOURCE + follow + min(middle, p.sizes[vertex]) * p.test[vertex]
        rows = middle * p.rows[vertex] / p.sizes[vertex]
        checks = (*others, *loops)
        for at in checks:
            spent += cost.OPERATOR + rows * self._check_cost(at)
            rows *= self._check_share(at)
        return self._finished(state, Step(vertex, first, checks, rows, spent), mask, grown)

    def _finished(self, state: _State, step: Step, mask: int, grown: int) -> _State:
        """Apply the conditions whose vertices are now bound, and bound the rows by their live variables."""
        p = self._p
        rows, spent = step.rows, step.cost
        for needed, share, per_row in p.predicates:
            if needed & ~grown == 0 and (needed & ~mask or not mask):
                spent += rows * per_row
                rows *= share
        matched = rows
        if p.counting:
            live = self._live(grown)
            if live == 0:
                rows = min(rows, self._outer_rows)
            elif live & (live - 1) == 0:
                rows = min(rows, self._outer_rows * p.sizes[live.bit_length() - 1])
        step = Step(step.vertex, step.hop, step.checks, rows, spent, matched)
        return _State(state.cost + spent, rows, (*state.steps, step))

    def _checked(self, state: _State, mask: int) -> _State:
        """Check the hops between the outer variables."""
        p = self._p
        checks = [at for at, edge in enumerate(p.edges) if mask >> edge.ends[0] & mask >> edge.ends[1] & 1]
        rows, spent = state.rows, 0.0
        for at in checks:
            spent += cost.OPERATOR + rows * self._check_cost(at)
            rows *= self._check_share(at)
        if not checks:
            return state
        return _State(spent, rows, (Step(-1, None, tuple(checks), rows, spent, rows),))

    def _fan(self, at: int, vertex: int, mask: int) -> float:
        """Return the nodes that a hop reaches from one row."""
        edge = self._p.edges[at]
        near = 0 if edge.ends[1] == vertex else 1
        biased = edge.siblings[near] & mask & ~(1 << vertex)
        return edge.reach[near] * (edge.skew[near] if biased else 1.0)

    def _check_share(self, at: int) -> float:
        return min(self._p.edges[at].density, 1.0)

    def _check_cost(self, at: int) -> float:
        edge = self._p.edges[at]
        return cost.CHECK if edge.single else min(edge.steps) * cost.STEP + cost.CHECK

    def _live(self, mask: int) -> int:
        """Return the bound vertices that are used later."""
        p = self._p
        if not p.counting:
            return mask
        live = p.at_end & mask
        for edge in p.edges:
            left, right = edge.ends
            if (mask >> left & 1) != (mask >> right & 1):
                live |= 1 << left | 1 << right
        for needed in p.uses:
            if needed & ~mask:
                live |= needed
        return live & mask


@dataclass(frozen=True, slots=True)
class _State:
    cost: float
    rows: float
    steps: tuple[Step, ...]


def _side(hop: Hop, vertex: int) -> str:
    """Return the side of a vertex that a hop leaves from: along outgoing or incoming edges."""
    direction = hop.op.direction
    if direction == "both":
        return direction
    return "out" if (direction == "out") == (vertex == hop.ends[0]) else "in"


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
