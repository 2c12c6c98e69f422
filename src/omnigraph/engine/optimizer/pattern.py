"""The normal form of a pipeline: vertices, hops, conditions and blocks, without an order.

Vertices and hops are numbered by name, so formulations that differ in the order of their clauses give one pattern.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.adjacency import REVERSED
from omnigraph.engine.optimizer.cost import condition_cost
from omnigraph.query.plan import ir


@dataclass(frozen=True, slots=True)
class Vertex:
    """A variable with its node type and its conditions; an outer variable is bound before the pipeline runs."""

    var: str
    type_name: str
    filters: tuple[ir.Condition, ...] = ()
    outer: bool = False


@dataclass(frozen=True, slots=True)
class Hop:
    """A hop between two vertices, as an Expand from the first to the second without conditions on nodes."""

    ends: tuple[int, int]
    op: ir.Expand

    @property
    def single(self) -> bool:
        """True for exactly one edge."""
        return (self.op.min_hops, self.op.max_hops) == (1, 1)

    def other(self, vertex: int) -> int:
        """Return the opposite end."""
        return self.ends[1] if vertex == self.ends[0] else self.ends[0]

    def expand(self, vertices: tuple[Vertex, ...], source: int, *, bound: bool) -> ir.Expand:
        """Return the operator that follows the hop from one of its ends."""
        filters = () if bound else vertices[self.other(source)].filters
        if source != self.ends[0]:
            return self._reversed(vertices, bound, filters)
        if not bound and not filters:
            return self.op  # a copy would be equal
        return with_role(self.op, bound=bound, filters=filters, backward=self.op.backward)

    def turned(self, vertices: tuple[Vertex, ...]) -> Hop:
        """Return the hop from its second end."""
        return Hop((self.ends[1], self.ends[0]), self._reversed(vertices, False, ()))

    def _reversed(self, vertices: tuple[Vertex, ...], bound: bool, filters: tuple[ir.Condition, ...]) -> ir.Expand:
        op = self.op
        near, far = vertices[self.ends[1]], vertices[self.ends[0]]
        return ir.Expand(
            near.var,
            far.var,
            op.edge_type,
            REVERSED[op.direction],
            far.type_name,
            op.min_hops,
            op.max_hops,
            bound,
            op.edge_var,
            filters,
            op.edge_filters,
            backward=not op.backward and not self.single,
            also=op.also,
            src_type=None if op.src_type is None else near.type_name,
        )


def with_role(op: ir.Expand, *, bound: bool, filters: tuple[ir.Condition, ...], backward: bool) -> ir.Expand:
    """Return an operator with another role in a pipeline. `replace` would take three times as long."""
    return ir.Expand(
        op.src_var,
        op.dst_var,
        op.edge_type,
        op.direction,
        op.dst_type,
        op.min_hops,
        op.max_hops,
        bound,
        op.edge_var,
        filters,
        op.edge_filters,
        backward,
        op.also,
        op.src_type,
    )


@dataclass(frozen=True, slots=True)
class PathHop:
    """A search of paths through vertices, as a search from the start of the paths that binds every other vertex."""

    ends: tuple[int, ...]
    """The vertices from the start of a path to its end."""
    op: ir.FindPaths

    def search(self, vertices: tuple[Vertex, ...], bound: Collection[str]) -> ir.FindPaths:
        """Return the operator from a bound vertex: the start of the paths, else their end, else the first bound."""
        known = [at for at, vertex in enumerate(self.ends) if vertices[vertex].var in bound]
        position = known[0] if known[0] == 0 or known[-1] < len(self.ends) - 1 else known[-1]
        source = vertices[self.ends[position]]

        def step(given: ir.PathStep, to: int, direction: ir.Direction) -> ir.PathStep:
            far = vertices[self.ends[to]]
            there = far.var in bound
            return replace(
                given,
                dst_var=far.var,
                dst_type=far.type_name,
                direction=direction,
                dst_bound=there,
                filters=() if there else far.filters,
            )

        steps = self.op.ahead
        ahead = (step(steps[at], at + 1, steps[at].direction) for at in range(position, len(steps)))
        back = (step(steps[at], at, REVERSED[steps[at].direction]) for at in reversed(range(position)))
        return replace(self.op, src_var=source.var, src_type=source.type_name, ahead=tuple(ahead), back=tuple(back))


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pipeline without an order."""

    vertices: tuple[Vertex, ...]
    hops: tuple[Hop, ...]
    filters: tuple[ir.Filter, ...]
    """Conditions that no vertex and no hop carries."""
    negations: tuple[ir.AntiJoin, ...]
    optionals: tuple[ir.LeftJoin, ...]
    paths: tuple[PathHop, ...] = ()

    def number(self, var: str) -> int | None:
        """Return the number of the vertex of a variable; None if it is not a vertex."""
        return next((at for at, vertex in enumerate(self.vertices) if vertex.var == var), None)

    @property
    def edge_variables(self) -> Mapping[str, int]:
        """Edge variable → the number of its hop."""
        return {hop.op.edge_var: at for at, hop in enumerate(self.hops) if hop.op.edge_var is not None}


def pattern_of(pipeline: ir.Pipeline, outer: Mapping[str, str]) -> Pattern | None:
    """Return the pattern of a pipeline; None if its order is fixed, because it uses the steps of paths or is long.

    The search for an order takes time that is more than linear in the length of a pipeline, so a long one keeps the
    order of its text. `outer` gives the types of the variables that are bound before the pipeline runs.
    """
    parts = sum(1 + len(op.steps) if isinstance(op, ir.FindPaths) else 1 for op in pipeline)
    if parts > tuning.current.pattern_parts_max:
        return None
    found: dict[str, Vertex] = {}
    expands: list[ir.Expand] = []
    searches: list[ir.FindPaths] = []
    filters: list[ir.Filter] = []
    negations: list[ir.AntiJoin] = []
    optionals: list[ir.LeftJoin] = []
    for op in pipeline:
        match op:
            case ir.NodeScan():
                found[op.var] = Vertex(op.var, op.type_name, ordered(op.filters))
            case ir.Expand():
                if not op.dst_bound:
                    found[op.dst_var] = Vertex(op.dst_var, op.dst_type, ordered(op.dst_filters))
                expands.append(op)
            case ir.Filter():
                filters.append(op)
            case ir.AntiJoin():
                negations.append(replace(op, outer_vars=tuple(sorted(op.outer_vars))))
            case ir.LeftJoin():
                optionals.append(replace(op, outer_vars=tuple(sorted(op.outer_vars))))
            case ir.InnerJoin():
                raise AssertionError("a join runs before the rest of a match is planned again")
            case ir.FindPaths():
                names = _path_variables(op)
                if len(set(names)) < len(names):
                    return None
                for step in op.steps:
                    if not step.dst_bound:
                        found[step.dst_var] = Vertex(step.dst_var, step.dst_type, ordered(step.filters))
                searches.append(op)
            case ir.PathSteps():
                return None
    for op in expands:
        for var, type_name in ((op.src_var, _near_type(op)), (op.dst_var, op.dst_type)):
            if var not in found:
                found[var] = Vertex(var, outer.get(var, type_name), outer=True)
    for search in searches:
        for var, type_name in _path_types(search).items():
            if var not in found:
                found[var] = Vertex(var, outer.get(var, type_name), outer=True)
    vertices = tuple(found[var] for var in sorted(found))
    numbers = {vertex.var: at for at, vertex in enumerate(vertices)}
    hops = [Hop((numbers[op.src_var], numbers[op.dst_var]), _plain(op)) for op in expands]
    return Pattern(
        vertices,
        tuple(sorted((_canonical(hop, vertices) for hop in hops), key=_hop_key)),
        tuple(sorted(filters, key=lambda one: _condition_key(one.condition))) if len(filters) > 1 else tuple(filters),
        tuple(sorted(negations, key=repr)) if len(negations) > 1 else tuple(negations),
        tuple(optionals),
        tuple(_path_hop(op, numbers) for op in sorted(searches, key=lambda op: op.var)),
    )


def numbered(pattern: Pattern, numbers: list[int], hops: list[Hop]) -> Pattern:
    """Return the pattern with some of its vertices and hops."""
    at = {number: position for position, number in enumerate(numbers)}
    moved = tuple(replace(hop, ends=(at[hop.ends[0]], at[hop.ends[1]])) for hop in hops)
    paths = tuple(replace(path, ends=tuple(at[end] for end in path.ends)) for path in pattern.paths)
    return replace(pattern, vertices=tuple(pattern.vertices[number] for number in numbers), hops=moved, paths=paths)


def _path_variables(op: ir.FindPaths) -> list[str]:
    """Return the variables of a path from its start to its end."""
    return [*(step.dst_var for step in reversed(op.back)), op.src_var, *(step.dst_var for step in op.ahead)]


def _path_types(op: ir.FindPaths) -> dict[str, str]:
    return {op.src_var: op.src_type, **{step.dst_var: step.dst_type for step in op.steps}}


def _path_hop(op: ir.FindPaths, numbers: Mapping[str, int]) -> PathHop:
    """Return a search as one from the start of the paths, without its role in the pipeline."""
    names, types = _path_variables(op), _path_types(op)
    turned = [replace(step, direction=REVERSED[step.direction]) for step in reversed(op.back)]
    steps = tuple(
        replace(step, dst_var=var, dst_type=types[var], dst_bound=False, filters=())
        for step, var in zip((*turned, *op.ahead), names[1:], strict=True)
    )
    plain = replace(op, src_var=names[0], src_type=types[names[0]], ahead=steps, back=())
    return PathHop(tuple(numbers[name] for name in names), plain)


def ordered(conditions: Iterable[ir.Condition]) -> tuple[ir.Condition, ...]:
    """Return conditions by cost; equally expensive ones in a fixed order."""
    given = tuple(conditions)
    return given if len(given) < 2 else tuple(sorted(given, key=_condition_key))


def _condition_key(condition: ir.Condition) -> tuple[float, str]:
    return condition_cost(condition), repr(condition)


def _hop_key(hop: Hop) -> tuple[object, ...]:
    op = hop.op
    return hop.ends, op.edge_types, op.direction, op.min_hops, op.max_hops, op.edge_var or ""


def _canonical(hop: Hop, vertices: tuple[Vertex, ...]) -> Hop:
    """Return a hop from its end with the lower number."""
    return hop if hop.ends[0] <= hop.ends[1] else hop.turned(vertices)


def _plain(op: ir.Expand) -> ir.Expand:
    """Return an operator without its role in the pipeline. The written direction matters to bounded hops only."""
    backward = op.backward and (op.min_hops, op.max_hops) != (1, 1)
    if not op.dst_bound and not op.dst_filters and backward == op.backward:
        return op  # a copy would be equal
    return with_role(op, bound=False, filters=(), backward=backward)


def _near_type(op: ir.Expand) -> str:
    """Return a stand-in for the type of an outer variable, which `outer` gives in full."""
    return op.src_type or ""
