"""Search of paths on Spark: the frontier of a search is a DataFrame that is joined with the edges, hop by hop.

A node or an edge of a path is a struct of its id and type. A path is an array of nodes and an array of edges, both from
its start to its end; arrays of edges compare like the paths of `engine.paths`, edge by edge. Every frontier is
checkpointed, and a search ends at an empty frontier.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from omnigraph.engine.adjacency.adjacency import REVERSED
from omnigraph.engine.paths.edge_space import negative_weight
from omnigraph.query.plan import ir
from omnigraph.spark.bindings import ID, Bindings
from omnigraph.spark.lowering_context import LoweringContext
from omnigraph.spark.node_tables import node_table
from omnigraph.spark.scans import Scan
from omnigraph.table_key import TableKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LIST = "array<struct<id:string,type:string>>"


@dataclass(frozen=True)
class FoundPaths:
    """Distinct paths: the columns of their parts, and of the nodes that they bind or depend on."""

    frame: DataFrame
    ends: dict[str, str]
    """Variable → column of its node."""
    nodes: str
    edges: str
    weight: str
    length: str


@dataclass(frozen=True)
class _Edges:
    """The edges that a step follows: the near node, the far node, the edge and its weight."""

    frame: DataFrame
    near: str
    far: str
    edge: str
    weight: str


@dataclass(frozen=True)
class _EdgesLeft:
    """Nodes and their distances to the nearest permitted end of a step."""

    frame: DataFrame
    node: str
    distance: str


def node_struct(context: LoweringContext, rows: Bindings, var: str) -> Any:
    """Return the node of a variable as a struct of its id and type."""
    f = context.f
    type_ = f.col(rows.name(var, ir.TYPE)) if (var, ir.TYPE) in rows.columns else f.lit(context.types[var])
    return f.struct(f.col(rows.name(var)).alias("id"), type_.alias("type"))


class PathSearch:
    """Runs one `FindPaths` for the rows of a match."""

    def __init__(self, context: LoweringContext, op: ir.FindPaths, rows: Bindings) -> None:
        assert rows.frame is not None
        self._context = context
        self._f = context.f
        self._op = op
        self._bound = {var: context.new_name() for var in op.bound_vars}
        present = [context.f.col(rows.name(var)).isNotNull() for var in op.bound_vars]
        there = reduce(lambda frame, condition: frame.filter(condition), present, rows.frame)
        starts = (node_struct(context, rows, var).alias(name) for var, name in self._bound.items())
        self._starts = there.select(*starts).distinct()
        """The distinct combinations of the bound variables."""
        self._nodes, self._edges, self._weight, self._length = (context.new_name() for _ in range(4))

    def run(self) -> FoundPaths:
        """Return the paths of all combinations of the bound variables."""
        if self._op.by is not None:
            self._check_weights(self._op.by)
        return self._all_simple() if self._op.kind == "path" else self._shortest()

    def _found(self, frame: DataFrame, ends: dict[str, str]) -> FoundPaths:
        return FoundPaths(frame, ends, self._nodes, self._edges, self._weight, self._length)

    def _step_edges(self, step: ir.PathStep, direction: ir.Direction, by: str | None = None) -> _Edges:
        """Return the edges that a step follows in a direction; without `by` each has the weight 1."""
        context, f = self._context, self._f
        names = [context.new_name() for _ in range(4)]
        frames = []
        for name in step.edge_types:
            type_ = context.catalog.edges[name]
            stored = dict.fromkeys([ID, "src", "dst", *([by] if by is not None else [])])
            columns = {prop: context.new_name() for prop in stored}
            scanned = Scan(context.job, TableKey.edge(name), columns).joined_frame(context.spark)
            if by is not None:
                scanned = scanned.filter(f.col(columns[by]).isNotNull())
            id_, src, dst = (f.col(columns[prop]).alias("id") for prop in (ID, "src", "dst"))
            ends = [
                f.struct(id_of, f.lit(end).alias("type"))
                for id_of, end in ((src, type_.from_type), (dst, type_.to_type))
            ]
            rest = [f.struct(id_, f.lit(name).alias("type")), f.col(columns[by]) if by is not None else f.lit(1.0)]
            for way in {"out": (ends,), "in": (ends[::-1],), "both": (ends, ends[::-1])}[direction]:
                values = [*way, rest[0], rest[1].cast("double")]
                frames.append(scanned.select(*(v.alias(n) for v, n in zip(values, names, strict=True))))
        frame = reduce(lambda one, other: one.unionAll(other), frames)
        return _Edges(frame, *names)

    def _check_weights(self, by: str) -> None:
        """Raise an error if an edge has a negative weight."""
        f = self._context.f
        for name in self._op.edge_types:
            id_, weight = self._context.new_name(), self._context.new_name()
            frame = Scan(self._context.job, TableKey.edge(name), {ID: id_, by: weight}).frame(self._context.spark)
            found = self._context.actions.to_arrow(frame.filter(f.col(weight) < 0).agg(f.min(id_)))
            least = found.column(0)[0].as_py()
            if least is not None:
                raise negative_weight(least, name, by)

    # -- all simple paths ------------------------------------------------------------------------

    def _all_simple(self) -> FoundPaths:
        f, op = self._f, self._op
        start = f.col(self._bound[op.src_var])
        frame = self._starts.withColumn(self._nodes, f.array(start)).withColumn(self._edges, f.array().cast(_LIST))
        ends = dict(self._bound)
        for steps in (op.ahead, op.back):
            for step in steps:
                frame = self._follow(frame, step)
                if not step.dst_bound:
                    ends[step.dst_var] = self._context.new_name()
                    frame = frame.withColumn(ends[step.dst_var], f.element_at(self._nodes, -1))
            frame = frame.withColumns({name: f.reverse(name) for name in (self._nodes, self._edges)})
        frame = frame.withColumn(self._length, f.size(self._edges).cast("bigint"))
        return self._found(frame.withColumn(self._weight, f.lit(None).cast("double")), ends)

    def _follow(self, frame: DataFrame, step: ir.PathStep) -> DataFrame:
        """Extend paths by one hop of one to several edges; keep those that end at a permitted node."""
        f, actions = self._f, self._context.actions
        edges = self._step_edges(step, step.direction)
        several = step.max_hops > 1
        followed = actions.checkpoint(edges.frame) if several else edges.frame
        allowed = self._candidates(step)
        left = self._edges_left(frame, step, _Edges(followed, *_names(edges)), allowed)
        kept = [name for name in frame.columns if name not in (self._nodes, self._edges)]
        found: DataFrame | None = None
        for hops in range(1, step.max_hops + 1):
            joined = frame.join(followed, f.element_at(self._nodes, -1) == f.col(edges.near))
            if left is not None:
                near_end = left.frame.filter(f.col(left.distance) <= step.max_hops - hops)
                joined = joined.join(near_end, f.col(edges.far) == f.col(left.node), "left_semi")
            frame = joined.filter(~f.array_contains(self._nodes, f.col(edges.far))).select(
                *kept,
                f.array_append(self._nodes, f.col(edges.far)).alias(self._nodes),
                f.array_append(self._edges, f.col(edges.edge)).alias(self._edges),
            )
            if several:
                frame = actions.checkpoint(frame)
            if hops >= step.min_hops:
                arrived = self._arrived(frame, step, allowed)
                found = arrived if found is None else found.unionAll(arrived)
            if several and actions.is_empty(frame):
                break
        return frame.limit(0) if found is None else found

    def _edges_left(
        self, frame: DataFrame, step: ir.PathStep, edges: _Edges, allowed: tuple[DataFrame, str] | None
    ) -> _EdgesLeft | None:
        """Return the nodes from which a permitted end can be reached, with their distance; None if all ends are.

        A path that cannot reach an end with its remaining edges is not followed.
        """
        if step.max_hops <= 1 or (allowed is None and not step.dst_bound):
            return None
        f, actions = self._f, self._context.actions
        node, distance = self._context.new_name(), self._context.new_name()
        if step.dst_bound:
            ends = frame.select(f.col(self._bound[step.dst_var]).alias(node)).distinct()
        else:
            assert allowed is not None
            ends = allowed[0].select(f.col(allowed[1]).alias(node))
        reached = frontier = actions.checkpoint(ends.withColumn(distance, f.lit(0)))
        for hops in range(1, step.max_hops):
            stepped = edges.frame.join(frontier, f.col(edges.far) == f.col(node), "left_semi")
            new = stepped.select(f.col(edges.near).alias(node)).distinct().join(reached, node, "left_anti")
            frontier = actions.checkpoint(new.withColumn(distance, f.lit(hops)))
            if actions.is_empty(frontier):
                break
            reached = reached.unionAll(frontier)
        return _EdgesLeft(reached, node, distance)

    def _candidates(self, step: ir.PathStep) -> tuple[DataFrame, str] | None:
        """Return the nodes that a step may end at, if conditions restrict them; else None."""
        if step.dst_bound or not step.filters:
            return None
        context = self._context
        frame, columns = node_table(context, step.dst_type, step.dst_var, step.filters, ())
        name = context.new_name()
        return frame.select(node_struct(context, Bindings(frame, columns), step.dst_var).alias(name)), name

    def _arrived(self, frame: DataFrame, step: ir.PathStep, allowed: tuple[DataFrame, str] | None) -> DataFrame:
        """Return the paths that end at a permitted node of a step."""
        f = self._f
        last = f.element_at(self._nodes, -1)
        if step.dst_bound:
            return frame.filter(last == f.col(self._bound[step.dst_var]))
        if allowed is not None:
            return frame.join(allowed[0], last == f.col(allowed[1]), "left_semi")
        if step.mixed_types:
            return frame.filter(last.getField("type").isin(*self._context.catalog.members(step.dst_type)))
        return frame

    # -- shortest paths --------------------------------------------------------------------------

    def _shortest(self) -> FoundPaths:
        """Find shortest paths from the bound node; weights are added from the start of a path on.

        A frontier has for each source and node the lightest paths of one length. A node is in the frontier of every
        length that lowers its weight or, for all shortest paths, equals it.
        """
        op, f, context = self._op, self._f, self._context
        (step,) = op.steps
        turned = op.by is not None and bool(op.back)
        edges = self._step_edges(step, REVERSED[step.direction] if turned else step.direction, op.by)
        followed = context.actions.checkpoint(edges.frame)
        source, node = context.new_name(), context.new_name()
        near, far = self._bound[op.src_var], self._bound.get(step.dst_var)
        if turned:
            starts = self._starts.select(f.col(far).alias(source)) if far else self._reaching(step, edges, followed)
            starts = starts.toDF(source)
        else:
            starts = self._starts.select(f.col(near).alias(source))
        none = f.array().cast(_LIST)
        first = starts.distinct().select(
            source,
            f.col(source).alias(node),
            f.lit(0.0).alias(self._weight),
            none.alias(self._edges),
            (none if op.measured else f.array(source)).alias(self._nodes),
        )
        wanted = None
        if far is not None and op.by is None:
            wanted = self._starts.select(f.col(near).alias(source), f.col(far).alias(node))
        levels = self._levels(first, _Edges(followed, *_names(edges)), source, node, wanted)
        ends = {op.src_var: node, step.dst_var: source} if turned else {op.src_var: source, step.dst_var: node}
        return self._found(levels, ends)

    def _levels(self, first: DataFrame, edges: _Edges, source: str, node: str, wanted: DataFrame | None) -> DataFrame:
        """Return the shortest paths from the sources; with `wanted`, a source stops when its ends are found."""
        op, f, actions = self._op, self._f, self._context.actions
        (step,) = op.steps
        frontier = actions.checkpoint(first)
        # No path returns to its source.
        best = frontier.select(source, node, f.lit(-1.0).alias(self._weight))
        found = frontier.limit(0).withColumn(self._length, f.lit(0).cast("bigint"))
        for hops in range(1, step.max_hops + 1):
            level = self._lightest(self._extended(frontier, edges, source, node), best, source, node)
            frontier = actions.checkpoint(level)
            if actions.is_empty(frontier):
                break
            found = found.unionAll(frontier.withColumn(self._length, f.lit(hops).cast("bigint")))
            reached = frontier.select(source, node, self._weight)
            best = best.unionAll(reached)
            if op.by is not None:
                best = actions.checkpoint(best.groupBy(source, node).agg(f.min(self._weight).alias(self._weight)))
            if wanted is not None:
                wanted = actions.checkpoint(wanted.join(reached, [source, node], "left_anti"))
                frontier = frontier.join(wanted.select(source).distinct(), source, "left_semi")
        if op.by is None:
            return found
        return found.join(best, [source, node, self._weight])

    def _extended(self, frontier: DataFrame, edges: _Edges, source: str, node: str) -> DataFrame:
        """Return the paths of a frontier with one more edge."""
        op, f = self._op, self._f
        joined = frontier.join(edges.frame, f.col(node) == f.col(edges.near))
        far, edge = f.col(edges.far), f.col(edges.edge)
        nodes, lists = f.col(self._nodes), f.col(self._edges)
        if not op.measured:
            # Edges of weight 0 can form a cycle.
            joined = joined.filter(~f.array_contains(nodes, far))
            # Weights are added from the start of a path, so only paths without weights grow at their start.
            grows_at_start = bool(op.back) and op.by is None
            grow = f.array_prepend if grows_at_start else f.array_append
            nodes, lists = grow(nodes, far), grow(lists, edge)
        weight = f.col(self._weight) + f.col(edges.weight)
        return joined.select(
            source, far.alias(node), weight.alias(self._weight), lists.alias(self._edges), nodes.alias(self._nodes)
        )

    def _lightest(self, level: DataFrame, best: DataFrame, source: str, node: str) -> DataFrame:
        """Return the lightest paths of a level that are lighter than shorter ones; with ties for all shortest paths."""
        op, f, context = self._op, self._f, self._context
        every = op.kind == "all shortest"
        known, keys = context.new_name(), [source, node]
        columns = level.columns
        if not every:
            one = f.min(f.struct(self._weight, self._edges, self._nodes)).alias(known)
            level = level.groupBy(*keys).agg(one).select(*keys, f"{known}.*").select(*columns)
        if op.by is None:
            return level.join(best.select(*keys), keys, "left_anti")
        compared = level.join(best.withColumnRenamed(self._weight, known), keys, "left")
        limit, weight = f.col(known), f.col(self._weight)
        kept = compared.filter(limit.isNull() | ((weight <= limit) if every else (weight < limit))).select(*columns)
        if not every:
            return kept
        lightest = kept.groupBy(*keys).agg(f.min(self._weight).alias(self._weight))
        return kept.join(lightest, [*keys, self._weight]).select(*columns)

    def _reaching(self, step: ir.PathStep, edges: _Edges, followed: DataFrame) -> DataFrame:
        """Return the nodes from which a path can lead to one of the bound nodes."""
        f, actions = self._f, self._context.actions
        node = self._context.new_name()
        frontier = self._starts.select(f.col(self._bound[self._op.src_var]).alias(node)).distinct()
        frontier = seen = actions.checkpoint(frontier)
        reached = frontier.limit(0)
        for _ in range(step.max_hops):
            stepped = followed.join(frontier, f.col(edges.far) == f.col(node), "left_semi")
            new = stepped.select(f.col(edges.near).alias(node)).distinct()
            reached = reached.unionAll(new)
            frontier = actions.checkpoint(new.join(seen, node, "left_anti"))
            seen = seen.unionAll(frontier)
            if actions.is_empty(frontier):
                break
        return reached.distinct()


def _names(edges: _Edges) -> tuple[str, str, str, str]:
    return edges.near, edges.far, edges.edge, edges.weight
