"""Checked query → plan.

Rows grow along hops from something already bound. A block starts from the outer variables it may use,
then from its first declared binding, then from the left end of a hop that nothing leads to; whenever a
hop has a bound end it is taken at once, so every other variable is introduced by an `Expand` and its
table is never scanned on its own. Optional blocks follow, conditions stand behind the variables they need, negations
come last.

Better orders exist when sizes are known; that is the engine's to decide. What can be decided from the
query alone is done by the rules of `rewrites`.
"""

from __future__ import annotations

import heapq

from omnigraph.query.check.resolved import ResolvedBlock, ResolvedHop, ResolvedPath, ResolvedRead
from omnigraph.query.plan.ir import (
    AntiJoin,
    Direction,
    Expand,
    Filter,
    FindPaths,
    LeftJoin,
    MutationIR,
    NodeScan,
    Op,
    ParamRef,
    PathStep,
    Pipeline,
    QueryIR,
)
from omnigraph.query.plan.rewrites import rewrite


def lower(checked: ResolvedRead | MutationIR) -> QueryIR | MutationIR:
    """Return the plan; a mutation's is ready as it is."""
    return checked if isinstance(checked, MutationIR) else lower_read(checked)


def lower_read(read: ResolvedRead) -> QueryIR:
    """Return the plan of a read, rewritten by every rule."""
    pipeline = _block(read.block, set())
    return rewrite(
        QueryIR(
            read.name,
            read.params,
            pipeline,
            read.columns,
            read.order_by,
            read.limit if isinstance(read.limit, int) else None,
            read.skip if isinstance(read.skip, int) else 0,
            read.limit.name if isinstance(read.limit, ParamRef) else None,
            read.skip.name if isinstance(read.skip, ParamRef) else None,
            read.distinct,
            read.having,
            read.grouped,
        )
    )


def _block(block: ResolvedBlock, bound: set[str]) -> Pipeline:
    """The pipeline of a block; `bound` is extended by what it binds."""
    ops: list[Op] = []
    at_end: dict[str, list[int]] = {}
    ends = [*({hop.left, hop.right} for hop in block.hops), *(set(path.variables) for path in block.paths)]
    for number, variables in enumerate(ends):
        for end in variables:
            at_end.setdefault(end, []).append(number)
    ready: list[int] = []

    def bind(var: str) -> None:
        bound.add(var)
        for number in at_end.pop(var, ()):
            heapq.heappush(ready, number)

    for outer in bound & at_end.keys():
        bind(outer)
    first = [(binding.var, binding.type_name) for binding in block.bindings]
    hops = [*block.hops, *(path.hops[0] for path in block.paths)]
    starts = iter(first + [(hop.left, hop.left_type) for hop in hops])
    taken: set[int] = set()
    while True:
        while ready:
            number = heapq.heappop(ready)
            if number not in taken:
                taken.add(number)
                if number >= len(block.hops):
                    # Behind the hops: the fewer rows there are, the fewer paths.
                    found = find_paths(block.paths[number - len(block.hops)], bound)
                    ops.append(found)
                    for var in (found.var, *(step.dst_var for step in found.steps if not step.dst_bound)):
                        bind(var)
                    continue
                expand = _expand(block.hops[number], bound)
                ops.append(expand)
                if not expand.dst_bound:
                    bind(expand.dst_var)
                if expand.edge_var:
                    bind(expand.edge_var)
        start = next(((var, type_name) for var, type_name in starts if var not in bound), None)
        if start is None:
            break
        ops.append(NodeScan(*start))
        bind(start[0])
    for optional in block.optionals:
        ops.append(LeftJoin(optional.block.outer_vars, _block(optional.block, set(bound)), optional.variables))
        bound.update(optional.variables)
    ops += [Filter(condition) for condition in block.conditions]
    ops += [AntiJoin(inner.outer_vars, _block(inner, set(bound))) for inner in block.negations]
    return tuple(ops)


def _expand(hop: ResolvedHop, bound: set[str]) -> Expand:
    """Follow the hop from its left end if that is bound, else from its right end."""
    forward = hop.left in bound
    src, dst = (hop.left, hop.right) if forward else (hop.right, hop.left)
    direction: Direction = "both" if hop.undirected else "out" if forward == hop.left_is_source else "in"
    return Expand(
        src,
        dst,
        hop.edge_type,
        direction,
        hop.right_type if forward else hop.left_type,
        hop.min_hops,
        hop.max_hops,
        dst_bound=dst in bound,
        edge_var=hop.edge_var,
        backward=not forward,
        also=hop.also,
        src_type=(hop.left_type if forward else hop.right_type) if hop.across else None,
    )


def find_paths(path: ResolvedPath, bound: set[str]) -> FindPaths:
    """Follow the path from the first of its nodes that is bound: its start, else its end, else one on the way."""
    names = path.variables
    known = [place for place, name in enumerate(names) if name in bound]
    place = known[0] if known[0] == 0 or known[-1] < len(path.hops) else known[-1]
    hop = path.hops[min(place, len(path.hops) - 1)]
    ahead = tuple(_step(hop, bound, forward=True) for hop in path.hops[place:])
    back = tuple(_step(hop, bound, forward=False) for hop in reversed(path.hops[:place]))
    src_type = hop.left_type if place < len(path.hops) else hop.right_type
    return FindPaths(path.var, names[place], src_type, ahead, back, path.kind, path.by)


def _step(hop: ResolvedHop, bound: set[str], *, forward: bool) -> PathStep:
    dst, type_name = (hop.right, hop.right_type) if forward else (hop.left, hop.left_type)
    direction: Direction = "both" if hop.undirected else "out" if forward == hop.left_is_source else "in"
    edges = (hop.edge_type, *hop.also)
    return PathStep(dst, type_name, edges, direction, hop.min_hops, hop.max_hops, dst in bound, across=hop.across)
