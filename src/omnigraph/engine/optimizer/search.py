"""Search for the cheapest order of a pattern.

A state is the set of bound vertices, as a bit mask. A move binds one more vertex, by a hop or by a scan, and takes
every other hop between bound vertices. The state with the lowest bound of its total cost is extended next, so the first
complete state is the cheapest of all. Leaves that differ in name only are bound in the order of their names. At most
some states with the same number of vertices are extended: the search is exhaustive for small patterns and greedy for
large ones.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import NamedTuple

from omnigraph.engine import tuning
from omnigraph.engine.exec.adaptive import MeasuredHop
from omnigraph.engine.optimizer import cost
from omnigraph.engine.optimizer.pattern import Hop, PathHop, Pattern
from omnigraph.engine.optimizer.selectivity import Selectivity
from omnigraph.engine.statistics.graph_statistics import End, GraphStatistics
from omnigraph.query.plan import ir

_GREEDY_WIDTH = 3
"""States that are extended at each level of a large pattern."""
_DISTANCE_MAX = 64
"""Hops for which the reached nodes are estimated; nearly all nodes are reached before."""
_WALK_MAX = 12
"""Lengths of walks that are added up."""
_SEARCH_FIRST = 0.8
"""The share of random moves that search paths if that is possible."""
_NOTHING = 1e-6
_CERTAIN = 8.0
_RUNS_MIN = 0.1
"""The least probability that an operator runs. It bounds the cost of the vertices that are not bound yet."""


class Step(NamedTuple):
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
    followed: float = 0.0
    """Estimated rows of the scan or hop before conditions on its far end and before the checks."""
    paths: tuple[int, ...] = ()
    """Searches of paths after the scan or hop and the checks; without a vertex, the first one binds its vertices."""


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
class _Search:
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
class _Problem:
    sizes: list[float] = field(default_factory=list)
    rows: list[float] = field(default_factory=list)
    """Rows of each vertex that pass its conditions."""
    scan: list[float] = field(default_factory=list)
    test: list[float] = field(default_factory=list)
    """Cost of the conditions of each vertex for one row."""
    call: list[float] = field(default_factory=list)
    """Fixed cost of the conditions of each vertex."""
    unique: list[bool] = field(default_factory=list)
    """True if a key gives the vertex."""
    edges: list[_Edge] = field(default_factory=list)
    paths: list[_Search] = field(default_factory=list)
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
        measured: MeasuredHop | None = None,
    ) -> None:
        self._pattern = pattern
        self._statistics = statistics
        self._selectivity = selectivity
        self._outer_rows = outer_rows
        self._live_of: dict[int, int] = {}
        self._p = self._problem(live_at_end)
        if measured is not None:
            self._take_measured(measured)

    # -- estimates -------------------------------------------------------------------------------

    def _problem(self, live_at_end: frozenset[str] | None) -> _Problem:
        pattern, p = self._pattern, _Problem(counting=live_at_end is not None)
        for vertex in pattern.vertices:
            size = float(max(self._statistics.nodes(vertex.type_name), 1)) if vertex.type_name else 1.0
            keys = [*map(self._selectivity.is_key, vertex.filters)]
            unique = any(keys)
            call = sum(
                cost.NUMBER_CALL if key else cost.call_cost(condition)
                for key, condition in zip(keys, vertex.filters, strict=True)
            )
            share = 1 / size if unique else self._selectivity.share(vertex.filters)
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
            p.edges.append(self._edge(hop, p))
        p.paths += [self._search(path, p) for path in pattern.paths]
        numbers = {vertex.var: at for at, vertex in enumerate(pattern.vertices)}
        carriers: dict[str, tuple[int, ...]] = {
            var: pattern.hops[at].ends for var, at in pattern.edge_variables.items()
        }
        carriers |= {path.op.var: path.ends for path in pattern.paths}

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
        p.uses += [path.mask for path in p.paths]
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
        return _Edge((left, right), density, reach, steps, edges, share, single, plain, (skew[0], skew[1]), siblings)

    def _search(self, path: PathHop, p: _Problem) -> _Search:
        """Estimate a search of paths: walks of its hops, or the nodes at the shortest distances."""
        shortest = path.op.kind != "path"
        fan, back, followed = 1.0, 1.0, 0.0
        for step, near, far in zip(path.op.ahead, path.ends[:-1], path.ends[1:], strict=True):
            edges = float(self._statistics.edges(step.edge_types)) * (2 if step.direction == "both" else 1)
            ahead, behind = edges / p.sizes[near], edges / p.sizes[far]
            if shortest:
                reached, steps = _reached(ahead, step.min_hops, step.max_hops, p.sizes[far])
                fan, followed = reached, min(steps, edges)
                back = reached * p.sizes[near] / p.sizes[far]
            else:
                fan *= _walks(ahead, step.min_hops, step.max_hops)
                back *= _walks(behind, step.min_hops, step.max_hops)
                followed = max(fan, followed)
        return _Search(path.ends, sum(1 << end for end in path.ends), fan, back, followed, shortest)

    def _take_measured(self, measured: MeasuredHop) -> None:
        """Replace the estimate of a hop from a bound end by what was measured."""
        p, op = self._p, measured.op
        for hop, edge in zip(self._pattern.hops, p.edges, strict=True):
            names = [self._pattern.vertices[end].var for end in hop.ends]
            same = (hop.op.edge_types, hop.op.edge_var) == (op.edge_types, op.edge_var)
            if same and sorted(names) == sorted((op.src_var, op.dst_var)):
                near = names.index(op.src_var)
                other = edge.reach[1 - near]
                edge.reach = (measured.fan, other) if near == 0 else (other, measured.fan)
                edge.steps = (measured.fan, edge.steps[1]) if near == 0 else (edge.steps[0], measured.fan)
                edge.skew = (1.0, 1.0)
                edge.density = min(measured.fan * edge.share / p.sizes[edge.ends[1 - near]], 1.0)

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

    def best(self, start: int | None = None) -> Order:
        """Return the cheapest order; with `start`, the cheapest that starts at this vertex."""
        p = self._p
        bound = sum(1 << at for at, vertex in enumerate(self._pattern.vertices) if vertex.outer)
        first = _State(0.0, self._outer_rows, None, None)
        if not p.sizes:
            return _order(first)
        if bound:
            return self._completed([(bound, self._checked(first, bound))])
        starts = [at for at, equal in enumerate(self._equal_before) if not equal] if start is None else (start,)
        return self._completed([(1 << at, self._scanned(first, at, 0)) for at in starts])

    def by_start(self) -> list[Order]:
        """Return the cheapest order of each start, the cheapest first."""
        found = [self.best(at) for at in range(len(self._p.sizes))]
        return sorted(found, key=lambda order: (order.cost, [step.vertex for step in order.steps]))

    def random(self, random: Random) -> Order:
        """Return a random order, to compare estimates with measurements."""
        vertices = len(self._p.sizes)
        start = random.randrange(vertices)
        mask, state = 1 << start, self._scanned(_State(0.0, self._outer_rows, None, None), start, 0)
        while mask != (1 << vertices) - 1:
            searches = self._searches(mask)
            if searches and random.random() < _SEARCH_FIRST:
                at = random.choice(searches)
                mask, state = mask | self._p.paths[at].mask, self._searched(state, at, mask)
            else:
                vertex = random.choice(self._candidates(mask))
                mask, state = mask | 1 << vertex, self._extended(state, vertex, mask)
        return _order(state)

    def _completed(self, starts: list[tuple[int, _State]]) -> Order:
        vertices = len(self._p.sizes)
        every = (1 << vertices) - 1
        width = tuning.current.search_width if vertices <= tuning.current.search_vertices else _GREEDY_WIDTH
        equal_before = self._equal_before
        extended = [0] * (vertices + 1)
        done: set[int] = set()
        known: dict[int, float] = {mask: state.cost for mask, state in starts}
        # Every vertex that is not bound yet costs at least its lower bound (A*). A number of its own makes the order of
        # equally cheap states definite.
        runs = _runs(self._fewest_rows())
        least = [runs * (cost.LOOKUP if unique else cost.OPERATOR) for unique in self._p.unique]
        queue: list[tuple[float, int, int, float, _State]] = []
        for number, (mask, state) in enumerate(starts):
            rest = sum(bound for vertex, bound in enumerate(least) if not mask >> vertex & 1)
            queue.append((state.cost + rest, mask, number, rest, state))
        heapq.heapify(queue)
        number = len(queue)
        while True:
            _, mask, _, rest, state = heapq.heappop(queue)
            if mask == every:
                return _order(state)
            level = mask.bit_count()
            if mask in done or extended[level] >= width:
                continue
            done.add(mask)
            extended[level] += 1
            for vertex in self._candidates(mask):
                grown = mask | 1 << vertex
                if grown not in done and not equal_before[vertex] & ~mask:
                    found = self._extended(state, vertex, mask)
                    before = known.get(grown)
                    if before is None or found.cost < before:
                        known[grown] = found.cost
                        number += 1
                        left = rest - least[vertex]
                        heapq.heappush(queue, (found.cost + left, grown, number, left, found))
            for at in self._searches(mask) if self._p.paths else ():
                grown = mask | self._p.paths[at].mask
                if grown not in done:
                    found = self._searched(state, at, mask)
                    before = known.get(grown)
                    if before is None or found.cost < before:
                        known[grown] = found.cost
                        number += 1
                        left = sum(bound for vertex, bound in enumerate(least) if not grown >> vertex & 1)
                        heapq.heappush(queue, (found.cost + left, grown, number, left, found))

    @cached_property
    def _equal_before(self) -> list[int]:
        """For each vertex the vertices before it that can be exchanged with it, as masks.

        They are leaves at the same vertex with equal estimates that no condition compares with others.
        """
        p = self._p
        special = p.at_end
        for mask in (*(mask for mask, _, _ in p.predicates), *p.uses, *(path.mask for path in p.paths)):
            special |= mask
        found: list[int] = []
        seen: dict[object, int] = {}
        for vertex, hops in enumerate(p.at):
            bit = 1 << vertex
            if len(hops) != 1 or p.loops[vertex] or special & bit or self._pattern.vertices[vertex].outer:
                found.append(0)
                continue
            ((at, other),) = hops
            edge = p.edges[at]
            near, far = (0, 1) if edge.ends[1] == vertex else (1, 0)
            estimates = (p.sizes[vertex], p.rows[vertex], p.scan[vertex], p.test[vertex], p.call[vertex])
            way = (
                edge.reach[near],
                edge.reach[far],
                edge.steps[near],
                edge.steps[far],
                edge.skew[near],
                edge.skew[far],
            )
            kind = (edge.density, edge.edges, edge.share, edge.single, edge.plain, edge.siblings[near] | bit)
            key = (other, p.unique[vertex], estimates, way, kind)
            before = seen.get(key, 0)
            found.append(before)
            seen[key] = before | bit
        return found

    def _fewest_rows(self) -> float:
        """Return a lower bound of the rows of every state: conditions and hops to few nodes reduce one row."""
        p = self._p
        fewest = 1.0
        for rows, size in zip(p.rows, p.sizes, strict=True):
            fewest *= rows / size
        for _, share, _ in p.predicates:
            fewest *= share
        if p.paths or len(p.edges) >= len(p.sizes):
            return 0.0  # a cycle is checked
        for edge in p.edges:
            fewest *= min(*edge.reach, 1.0)
        return fewest

    def _candidates(self, mask: int) -> Sequence[int]:
        """Return the vertices that may be bound next: those that a hop reaches or a key gives, else those that paths
        lead to, else all.
        """
        p = self._p
        free = [vertex for vertex in range(len(p.sizes)) if not mask >> vertex & 1]
        found = [vertex for vertex in free if p.next_to[vertex] & mask or p.unique[vertex]]
        if found or not p.paths:
            return found or free
        near = [p.paths[at].mask for at in self._searches(mask)]
        return [vertex for vertex in free if any(path >> vertex & 1 for path in near)] or free

    def _searches(self, mask: int) -> Sequence[int]:
        """Return the searches of paths that can bind further vertices."""
        return [at for at, path in enumerate(self._p.paths) if path.mask & mask and path.mask & ~mask]

    def _searched(self, state: _State, number: int, mask: int) -> _State:
        """Bind the vertices of paths by a search from a bound one; every hop to them is checked."""
        p = self._p
        grown = mask | p.paths[number].mask
        checks = tuple(
            at
            for at, edge in enumerate(p.edges)
            if grown >> edge.ends[0] & grown >> edge.ends[1] & 1 and not mask >> edge.ends[0] & mask >> edge.ends[1] & 1
        )
        rows, spent = state.rows, 0.0
        found, _ = self._found_paths(number, rows, mask)
        for at in checks:
            spent += _operator(found) + found * self._check_cost(at)
            found *= self._check_share(at)
            rows *= self._check_share(at)
        return self._finished(state, (-1, None, checks, rows, spent, math.inf), mask, grown, number)

    def _found_paths(self, number: int, rows: float, mask: int) -> tuple[float, float]:
        """Return the rows and the cost of a search of paths for rows with some bound vertices."""
        p = self._p
        path = p.paths[number]
        start, end = path.ends[0], path.ends[-1]
        forward = bool(mask >> start & 1)
        backward = bool(mask >> end & 1)
        found = rows * (path.fan if forward or not backward else path.back)
        source = start if forward else end if backward else next(at for at in path.ends if mask >> at & 1)
        for at in path.ends:
            if at != source:
                found *= p.rows[at] / p.sizes[at] if not mask >> at & 1 else 1 / p.sizes[at]
        sources = min(rows, p.sizes[source])
        if not path.shortest:
            return found, cost.PATHS * _runs(rows) + sources * path.steps * cost.PATH_ROW + found * cost.ROW
        other = end if source == start else start
        targets = min(rows, p.sizes[other]) if mask >> other & 1 else p.rows[other]
        searched = min(sources, targets) * path.steps
        if mask >> other & 1 and rows <= tuning.current.bidirectional_pairs_max:
            searched = min(searched, rows * 2 * math.sqrt(path.steps))  # from both ends
        spent = cost.PATHS * _runs(rows) + searched * cost.PATH_STEP
        if not mask >> other & 1:
            spent += p.scan[other] if p.test[other] else 0.0
        return found, spent + found * cost.ROW

    def _extended(self, state: _State, vertex: int, mask: int) -> _State:
        p = self._p
        if not p.next_to[vertex] & mask:
            return self._scanned(state, vertex, mask)
        hops = [at for at, end in p.at[vertex] if mask >> end & 1]
        found = self._expanded(state, vertex, mask, hops)
        if p.unique[vertex]:
            scanned = self._scanned(state, vertex, mask)
            return scanned if scanned.cost < found.cost else found
        return found

    def _scanned(self, state: _State, vertex: int, mask: int) -> _State:
        """Bind a vertex by a scan; every hop to it is checked."""
        p = self._p
        rows = state.rows * p.rows[vertex]
        spent = p.scan[vertex] * _runs(state.rows)
        if mask:
            spent += rows * cost.ROW
        elif not p.unique[vertex]:
            spent += cost.PIPELINE
        grown = mask | 1 << vertex
        checks = (*(at for at, end in p.at[vertex] if mask >> end & 1), *p.loops[vertex])
        found = rows
        for at in checks:
            spent += _operator(rows) + rows * self._check_cost(at)
            rows *= self._check_share(at)
        return self._finished(state, (vertex, None, checks, rows, spent, found), mask, grown)

    def _expanded(self, state: _State, vertex: int, mask: int, hops: list[int]) -> _State:
        """Bind a vertex by the cheapest of its hops; the others are checked."""
        p = self._p
        grown = mask | 1 << vertex
        if len(hops) > 1:
            hops = sorted(hops, key=lambda at: (self._fan(at, vertex, mask), at))
        first, *others = hops
        loops = p.loops[vertex]
        edge = p.edges[first]
        near = 0 if edge.ends[1] == vertex else 1
        fan = self._fan(first, vertex, mask)
        rows = state.rows
        live = self._live(grown)
        bare = p.counting and not live >> vertex & 1 and p.test[vertex] == 0 and not loops
        if bare and not others and edge.plain:
            # The far end is not used: rows are weighted by degrees.
            spent = _operator(rows) + rows * cost.DEGREE
            return self._finished(state, (vertex, first, (), rows * min(fan, 1.0), spent, rows * fan), mask, grown)
        if bare and len(others) == 1 and edge.plain and p.edges[others[0]].plain:
            # The far end only closes a cycle: common neighbours are counted.
            spent = _operator(rows) + rows * (cost.SOURCE + fan * cost.COMMON)
            met = min(fan * self._check_share(others[0]), 1.0)
            move = (vertex, first, (others[0],), rows * met, spent, rows * fan)
            return self._finished(state, move, mask, grown)
        middle = rows * fan
        follow = (rows * edge.steps[near] if edge.single and edge.share < 1 else middle) * cost.ROW
        alone = p.counting and live == 1 << vertex and not others and not loops and edge.plain and p.test[vertex] == 0
        if alone and rows * 4 >= p.sizes[edge.ends[near]]:
            follow = min(follow, edge.edges * cost.EDGE)
        if not edge.single:
            follow += rows * edge.steps[near] * cost.STEP
        spent = _operator(rows) + rows * cost.SOURCE + follow + min(middle, p.sizes[vertex]) * p.test[vertex]
        if p.call[vertex]:
            spent += p.call[vertex] * _runs(middle)
        rows = middle * p.rows[vertex] / p.sizes[vertex]
        checks = (*others, *loops)
        for at in checks:
            spent += _operator(rows) + rows * self._check_cost(at)
            rows *= self._check_share(at)
        return self._finished(state, (vertex, first, checks, rows, spent, middle), mask, grown)

    def _finished(
        self,
        state: _State,
        move: tuple[int, int | None, tuple[int, ...], float, float, float],
        mask: int,
        grown: int,
        search: int | None = None,
    ) -> _State:
        """Apply the conditions whose vertices are now bound, and bound the rows by their live variables."""
        p = self._p
        vertex, hop, checks, rows, spent, followed = move
        paths: tuple[int, ...] = ()
        if p.paths:
            paths, rows, spent = self._complete_paths(rows, spent, mask, grown, search)
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
        return _State(state.cost + spent, rows, (vertex, hop, checks, rows, spent, matched, followed, paths), state)

    def _checked(self, state: _State, mask: int) -> _State:
        """Check the hops between the outer variables."""
        p = self._p
        checks = [at for at, edge in enumerate(p.edges) if mask >> edge.ends[0] & mask >> edge.ends[1] & 1]
        rows, spent = state.rows, 0.0
        for at in checks:
            spent += _operator(rows) + rows * self._check_cost(at)
            rows *= self._check_share(at)
        paths, rows, spent = self._complete_paths(rows, spent, 0, mask)
        if not checks and not paths:
            return state
        return _State(spent, rows, (-1, None, tuple(checks), rows, spent, rows, rows, paths), state)

    def _complete_paths(
        self, rows: float, spent: float, mask: int, grown: int, search: int | None = None
    ) -> tuple[tuple[int, ...], float, float]:
        """Add the searches of paths whose vertices are all bound after a move: (their numbers, rows, cost).

        `search` is the search that binds vertices; it is the first.
        """
        p = self._p
        found = [at for at, path in enumerate(p.paths) if path.mask & ~grown == 0 and path.mask & ~mask]
        found.sort(key=lambda at: at != search)
        for at in found:
            rows, extra = self._found_paths(at, rows, mask if at == search else grown)
            spent += extra
        return tuple(found), rows, spent

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
        known = self._live_of.get(mask)
        if known is not None:
            return known
        live = p.at_end & mask
        for vertex, near in enumerate(p.next_to):
            if mask >> vertex & 1 and near & ~mask:
                live |= 1 << vertex
        for needed in p.uses:
            if needed & ~mask:
                live |= needed & mask
        self._live_of[mask] = live
        return live


class _State(NamedTuple):
    cost: float
    rows: float
    step: _Fields | None
    before: _State | None


_Fields = tuple[int, int | None, tuple[int, ...], float, float, float, float, tuple[int, ...]]
"""The fields of a `Step`, which is built for the moves of the chosen order only."""


def _order(state: _State) -> Order:
    """Return the moves that lead to a state."""
    steps: list[Step] = []
    at: _State | None = state
    while at is not None and at.step is not None:
        steps.append(Step(*at.step))
        at = at.before
    return Order(tuple(reversed(steps)), state.cost, state.rows)


def _runs(rows: float) -> float:
    """Return the probability that an operator runs if some rows are expected: without a row it does not."""
    return 1.0 if rows >= _CERTAIN else max(1 - math.exp(-rows), _RUNS_MIN)


def _operator(rows: float) -> float:
    """Return the fixed cost of an operator on some rows."""
    return cost.OPERATOR * _runs(rows)


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
