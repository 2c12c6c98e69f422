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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import NamedTuple

from omnigraph.checkpoints import checkpoint
from omnigraph.engine import tuning
from omnigraph.engine.exec.adaptive import MeasuredHop
from omnigraph.engine.optimizer import cost
from omnigraph.engine.optimizer.pattern import Pattern
from omnigraph.engine.optimizer.pattern_estimates import Way, estimate_pattern, take_measured
from omnigraph.engine.optimizer.selectivity import Selectivity
from omnigraph.engine.statistics.graph_statistics import GraphStatistics

_WIDTH_MIN = 3
"""States that are extended at each level of a large pattern."""
_COMPARED_MAX = 7
"""Vertices of a pattern of which each is compared as the start; a larger one is not searched exhaustively."""
_STARTS = 3
"""Starts that are compared if the first rows in any order are wanted."""
_SEARCH_FIRST = 0.8
"""The share of random moves that search paths if that is possible."""
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
        self._outer_rows = outer_rows
        self._live_of: dict[int, int] = {}
        self._p = estimate_pattern(pattern, statistics, selectivity, live_at_end)
        if measured is not None:
            take_measured(self._p, pattern, measured)
        self._is_plain = self._p.is_plain
        neighbours = zip(self._p.next_to, self._p.unique, strict=True)
        self._reached_from = [(at, 1 << at, -1 if key else near) for at, (near, key) in enumerate(neighbours)]
        """Each vertex with its own mask and that of the vertices it is reached from; a key is reached from all."""

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

    def cheap_starts(self) -> list[int]:
        """Return the vertices whose scans are the cheapest."""
        return heapq.nsmallest(_STARTS, range(len(self._p.sizes)), key=self._p.scan.__getitem__)

    def by_start(self) -> list[Order]:
        """Return the cheapest order of each start, the cheapest first; in a large pattern, of the cheapest scans."""
        vertices = len(self._p.sizes)
        found = [self.best(at) for at in (range(vertices) if vertices <= _COMPARED_MAX else self.cheap_starts())]
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
        width = max(_WIDTH_MIN, tuning.current.search_states // max(vertices, 1))
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
            rest = sum([bound for vertex, bound in enumerate(least) if not mask >> vertex & 1])
            queue.append((state.cost + rest, mask, number, rest, state))
        heapq.heapify(queue)
        number = len(queue)
        while True:
            checkpoint()
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
            estimates = (
                p.sizes[vertex],
                p.rows[vertex],
                p.scan[vertex],
                p.test[vertex],
                p.call[vertex],
                p.read[vertex],
            )
            way = (
                edge.reach[near],
                edge.reach[far],
                edge.steps[near],
                edge.steps[far],
                edge.skew[near],
                edge.skew[far],
                edge.focus[near],
                edge.focus[far],
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
        lead to, else all. In a large pattern, these are those that a condition compares with bound vertices, and those
        with fewer rows.
        """
        p = self._p
        found = [vertex for vertex, own, near in self._reached_from if near & mask and not own & mask]
        if found:
            return found
        free = [vertex for vertex in range(len(p.sizes)) if not mask >> vertex & 1]
        if len(p.sizes) > _COMPARED_MAX:
            # The search keeps few states, and those without a condition are cheaper at first.
            shares: dict[int, float] = {}
            for needed, share, _ in p.predicates:
                if needed & mask:
                    shares[needed & ~mask] = shares.get(needed & ~mask, 1.0) * share
            compared = [vertex for vertex in free if 1 << vertex in shares]
            if compared:
                fewest = min(p.rows[vertex] * shares[1 << vertex] for vertex in compared)
                others = heapq.nsmallest(_STARTS, set(free).difference(compared), key=p.rows.__getitem__)
                free = [*compared, *(vertex for vertex in others if p.rows[vertex] < fewest)]
        if not p.paths:
            return free
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
        rows, spent = self._found_paths(number, state, mask)
        for at in checks:
            spent += _operator(rows) + rows * self._check_cost(at)
            rows *= self._check_share(at)
        return self._finished(state, (-1, None, checks, rows, spent, math.inf), mask, grown, number)

    def _found_paths(self, number: int, state: _State, mask: int) -> tuple[float, float]:
        """Return the rows and the cost of a search of paths for the rows of a state with some bound vertices."""
        p = self._p
        rows = state.rows
        path = p.paths[number]
        start, end = path.ends[0], path.ends[-1]
        forward = bool(mask >> start & 1)
        backward = bool(mask >> end & 1)
        found = rows * (path.fan if forward or not backward else path.back)
        source = start if forward else end if backward else next(at for at in path.ends if mask >> at & 1)
        for at in path.ends:
            if at != source:
                found *= p.rows[at] / p.sizes[at] if not mask >> at & 1 else 1 / p.sizes[at]
        sources = self._bound_nodes(source, state)
        if not path.shortest:
            return found, cost.PATHS * _runs(rows) + sources * path.steps * cost.PATH_ROW + found * cost.ROW
        other = end if source == start else start
        targets = self._bound_nodes(other, state) if mask >> other & 1 else p.rows[other]
        searched = min(sources, targets) * path.steps
        if mask >> other & 1 and rows <= tuning.current.bidirectional_pairs_max:
            searched = min(searched, rows * 2 * math.sqrt(path.steps))  # from both ends
        spent = cost.PATHS * _runs(rows) + searched * cost.PATH_STEP
        if not mask >> other & 1:
            spent += p.scan[other] if p.test[other] else 0.0
        return found, spent + found * cost.ROW

    def _bound_nodes(self, vertex: int, state: _State) -> float:
        """Return an upper bound of the nodes of a bound vertex: the rows of a state can repeat them."""
        p = self._p
        most = p.sizes[vertex]
        at: _State | None = state
        while at is not None:
            most = min(most, at.rows)
            if (
                at.step is not None
                and at.step[0] < 0
                and any(p.paths[number].mask >> vertex & 1 for number in at.step[7][:1])
            ):
                return most  # a search of paths bound it, or another vertex from it
            if at.step is not None and at.step[0] == vertex:
                hop, before = at.step[1], at.before
                if hop is None or before is None:
                    return min(most, p.rows[vertex])
                edge = p.edges[hop]
                near = 0 if edge.ends[1] == vertex else 1
                return min(most, self._bound_nodes(edge.ends[near], before) * edge.reach[near])
            at = at.before
        return most

    def _extended(self, state: _State, vertex: int, mask: int) -> _State:
        p = self._p
        if not p.next_to[vertex] & mask:
            return self._scanned(state, vertex, mask)
        ways = p.ways[vertex]
        found = self._expanded(state, vertex, mask, ways if len(ways) == 1 else [w for w in ways if w.source & mask])
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

    def _expanded(self, state: _State, vertex: int, mask: int, ways: list[Way]) -> _State:
        """Bind a vertex by the cheapest of its hops; the others are checked."""
        p = self._p
        grown = mask | 1 << vertex
        checks: tuple[int, ...] = ()
        if len(ways) > 1:
            ways = sorted(ways, key=lambda way: (way.fan(mask), way.hop))
            checks = tuple(way.hop for way in ways[1:])
        first, _, near, fan, biased, siblings, passing, per_source, per_row = ways[0]
        if siblings & mask:
            fan = biased
        rows = state.rows
        middle = rows * fan
        follow = rows * per_source + middle * per_row
        loops = p.loops[vertex]
        test = p.test[vertex]
        if p.counting and test == 0 and not loops and (edge := p.edges[first]).plain:
            folded = self._folded(state, vertex, mask, (first, checks, fan))
            if folded is not None:
                return folded
            if self._live(grown) == 1 << vertex and not checks and rows * 4 >= p.sizes[edge.ends[near]]:
                follow = min(follow, rows * cost.SOURCE + edge.edges * cost.EDGE)
        spent = follow + (cost.OPERATOR if rows >= _CERTAIN else _operator(rows))
        if test:
            spent += min(middle, p.sizes[vertex]) * test
        if p.call[vertex]:
            spent += p.call[vertex] * _runs(middle) + min(p.read[vertex], middle * cost.TAKE)
        rows = middle * passing
        if loops:
            checks = (*checks, *loops)
        for at in checks:
            spent += _operator(rows) + rows * self._check_cost(at)
            rows *= self._check_share(at)
        if self._is_plain:
            step = (vertex, first, checks, rows, spent, rows, middle, ())
            return _new_state(_State, (state.cost + spent, rows, step, state))
        return self._finished(state, (vertex, first, checks, rows, spent, middle), mask, grown)

    def _folded(self, state: _State, vertex: int, mask: int, hop: tuple[int, tuple[int, ...], float]) -> _State | None:
        """Bind a vertex without conditions in a counting query by a hop and at most one check, if it is not used later:
        its neighbours are counted.
        """
        grown = mask | 1 << vertex
        if self._live(grown) >> vertex & 1:
            return None
        first, checks, fan = hop
        rows = state.rows
        if not checks:
            # The far end is not used: rows are weighted by degrees.
            spent = _operator(rows) + rows * cost.DEGREE
            return self._finished(state, (vertex, first, (), rows * min(fan, 1.0), spent, rows * fan), mask, grown)
        if len(checks) > 1 or not self._p.edges[checks[0]].plain:
            return None
        # The far end only closes a cycle: common neighbours are counted.
        spent = _operator(rows) + rows * (cost.SOURCE + fan * cost.COMMON)
        met = min(fan * self._check_share(checks[0]), 1.0)
        return self._finished(state, (vertex, first, checks, rows * met, spent, rows * fan), mask, grown)

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
        if self._is_plain:
            return _State(state.cost + spent, rows, (vertex, hop, checks, rows, spent, rows, followed, ()), state)
        paths: tuple[int, ...] = ()
        if p.paths:
            step = (vertex, hop, checks, rows, spent, rows, followed, () if search is None else (search,))
            paths, rows, spent = self._complete_paths(_State(spent, rows, step, state), mask, grown, search)
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
        paths, rows, spent = self._complete_paths(_State(spent, rows, None, state), 0, mask)
        if not checks and not paths:
            return state
        return _State(spent, rows, (-1, None, tuple(checks), rows, spent, rows, rows, paths), state)

    def _complete_paths(
        self, state: _State, mask: int, grown: int, search: int | None = None
    ) -> tuple[tuple[int, ...], float, float]:
        """Add to the cost of a move the searches of paths whose vertices are all bound after it: (their numbers, rows,
        cost).

        `search` is the search that bound vertices; it is the first, and its cost is known.
        """
        p = self._p
        found = [
            at for at, path in enumerate(p.paths) if at != search and path.mask & ~grown == 0 and path.mask & ~mask
        ]
        for at in found:
            rows, extra = self._found_paths(at, state, grown)
            state = state._replace(cost=state.cost + extra, rows=rows)
        return (*(() if search is None else (search,)), *found), state.rows, state.cost

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


_new_state = tuple.__new__
"""Makes a state of a tuple of its fields in half the time of its own constructor."""

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
    return cost.OPERATOR if rows >= _CERTAIN else cost.OPERATOR * _runs(rows)
