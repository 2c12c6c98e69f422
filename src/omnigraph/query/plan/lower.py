"""Lowering of a checked query to a plan.

Rows are extended along hops from bound variables. A block starts from its outer variables, then from its first declared
binding, then from the left end of a hop that no other hop reaches. A hop is taken as soon as one of its ends is bound,
so every other variable is bound by an `Expand` and its table is not scanned. Optional blocks follow, then conditions,
then negations.

Better orders exist when table sizes are known; the engine chooses them. The rules of `rewrites` do what the query alone
determines.
"""

from __future__ import annotations

import heapq
from dataclasses import replace

from omnigraph.query.check.resolved import ResolvedBlock, ResolvedHop, ResolvedPath, ResolvedRead, ResolvedStep
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
    PathSteps,
    Pipeline,
    QueryIR,
    Stage,
)
from omnigraph.query.plan.rewrites import rewrite


def lower(checked: ResolvedRead | MutationIR) -> QueryIR | MutationIR:
    """Return the plan; a checked mutation is already a plan."""
    return checked if isinstance(checked, MutationIR) else lower_read(checked)


def lower_read(read: ResolvedRead) -> QueryIR:
    """Return the plan of a read after all rewrites; a stage is the first operation of the part after it."""
    start: tuple[Stage, ...] = ()
    for stage in read.stages:
        start = (Stage(_query(stage.read, start), stage.kept, stage.var, stage.values),)
    plan = _query(read, start)
    return plan if read.valid is None else replace(plan, valid=read.valid)


def _query(read: ResolvedRead, start: tuple[Stage, ...]) -> QueryIR:
    """Return the plan of one part of a read, which starts from the rows of the stage before it."""
    bound = {var for stage in start for var in stage.variables}
    pipeline = (*start, *_block(read.block, bound))
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
    """Return the pipeline of a block and add the variables that it binds to `bound`."""
    ops = _Traversal(block, bound).run()
    for optional in block.optionals:
        ops.append(LeftJoin(optional.block.outer_vars, _inner(optional.block, bound), optional.variables))
        bound.update(optional.variables)
    ops += [Filter(condition) for condition in block.conditions]
    ops += [AntiJoin(inner.outer_vars, _inner(inner, bound)) for inner in block.negations]
    return tuple(ops)


def _inner(block: ResolvedBlock, bound: set[str]) -> Pipeline:
    """Return the pipeline of a block inside another one. Only the variables that it uses are copied."""
    return _block(block, bound.intersection(block.outer_vars))


class _Traversal:
    """Lowers the bindings, hops and paths of a block to scans, expansions and path searches.

    Hops, paths and steps of paths share one numbering, in this order. A hop is taken as soon as one of its ends is
    bound, paths after all hops that can be taken: with fewer rows, fewer paths are searched. Steps follow their path.
    """

    def __init__(self, block: ResolvedBlock, bound: set[str]) -> None:
        self._block = block
        self._bound = bound
        self._ops: list[Op] = []
        self._ready: list[int] = []
        self._taken: set[int] = set()
        self._at_end: dict[str, list[int]] = {}
        ends = [
            *({hop.left, hop.right} for hop in block.hops),
            *(set(path.variables) for path in block.paths),
            *({step.path} for step in block.steps),
        ]
        for number, variables in enumerate(ends):
            for end in variables:
                self._at_end.setdefault(end, []).append(number)

    def run(self) -> list[Op]:
        """Return the operations; every variable of the block is bound afterwards."""
        for outer in self._bound & self._at_end.keys():
            self._bind(outer)
        self._take_ready()
        for var, type_name in self._starts():
            if var not in self._bound:
                self._ops.append(NodeScan(var, type_name))
                self._bind(var)
                self._take_ready()
        return self._ops

    def _starts(self) -> list[tuple[str, str]]:
        """Return the variables that a scan can bind, in order of preference, each with its type."""
        bindings = [(binding.var, binding.type_name) for binding in self._block.bindings]
        hops = [*self._block.hops, *(path.hops[0] for path in self._block.paths)]
        return bindings + [(hop.left, hop.left_type) for hop in hops]

    def _bind(self, var: str) -> None:
        self._bound.add(var)
        for number in self._at_end.pop(var, ()):
            heapq.heappush(self._ready, number)

    def _take_ready(self) -> None:
        while self._ready:
            number = heapq.heappop(self._ready)
            if number in self._taken:
                continue
            self._taken.add(number)
            hops = self._block.hops
            if number < len(hops):
                self._take_hop(hops[number])
            elif number - len(hops) < len(self._block.paths):
                self._take_path(self._block.paths[number - len(hops)])
            else:
                self._take_steps(self._block.steps[number - len(hops) - len(self._block.paths)])

    def _take_hop(self, hop: ResolvedHop) -> None:
        expand = _expand(hop, self._bound)
        self._ops.append(expand)
        if not expand.dst_bound:
            self._bind(expand.dst_var)
        if expand.edge_var:
            self._bind(expand.edge_var)

    def _take_path(self, path: ResolvedPath) -> None:
        found = find_paths(path, self._bound)
        self._ops.append(found)
        for var in (found.var, *(step.dst_var for step in found.steps if not step.dst_bound)):
            self._bind(var)

    def _take_steps(self, step: ResolvedStep) -> None:
        left, right = (end in self._bound for end in (step.left, step.right))
        self._ops.append(PathSteps(step.path, step.left, step.right, step.type_name, step.undirected, left, right))
        for end in (step.left, step.right):
            self._bind(end)


def _expand(hop: ResolvedHop, bound: set[str]) -> Expand:
    """Return the expansion of a hop from its left end if that is bound, else from its right end."""
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
        src_type=(hop.left_type if forward else hop.right_type) if hop.mixed_types else None,
    )


def find_paths(path: ResolvedPath, bound: set[str]) -> FindPaths:
    """Return the search of a path from a bound node: its start, else its end, else an inner node."""
    names = path.variables
    known = [position for position, name in enumerate(names) if name in bound]
    position = known[0] if known[0] == 0 or known[-1] < len(path.hops) else known[-1]
    hop = path.hops[min(position, len(path.hops) - 1)]
    ahead = tuple(_step(hop, bound, forward=True) for hop in path.hops[position:])
    back = tuple(_step(hop, bound, forward=False) for hop in reversed(path.hops[:position]))
    src_type = hop.left_type if position < len(path.hops) else hop.right_type
    return FindPaths(path.var, names[position], src_type, ahead, back, path.kind, path.by)


def _step(hop: ResolvedHop, bound: set[str], *, forward: bool) -> PathStep:
    dst, type_name = (hop.right, hop.right_type) if forward else (hop.left, hop.left_type)
    direction: Direction = "both" if hop.undirected else "out" if forward == hop.left_is_source else "in"
    edges = (hop.edge_type, *hop.also)
    return PathStep(
        dst, type_name, edges, direction, hop.min_hops, hop.max_hops, dst in bound, mixed_types=hop.mixed_types
    )
