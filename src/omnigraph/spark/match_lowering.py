"""Lowers the operators of a match to joins of DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, assert_never

import pyarrow as pa

from omnigraph.engine.plan.limit_offset import apply_limit
from omnigraph.query.plan import ir
from omnigraph.spark.arrow_udfs import FrameColumn
from omnigraph.spark.bindings import ID, NODES, Bindings, all_of
from omnigraph.spark.hops import HopRange, Node, Pairs, edge_pairs, reachable_pairs, same
from omnigraph.spark.lowering_context import LoweringContext
from omnigraph.spark.node_tables import entity_table, node_table
from omnigraph.spark.path_columns import bind_paths
from omnigraph.spark.path_search import PathSearch, node_struct
from omnigraph.spark.rank_values import TextScore
from omnigraph.spark.result_lowering import ResultLowering
from omnigraph.spark.worker_steps import filtered
from omnigraph.table_key import TableKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ENDS = {"out": ("src", "dst"), "in": ("dst", "src"), "both": ("src", "dst")}


class MatchLowering:
    """Lowers the pipeline of one query."""

    def __init__(self, context: LoweringContext) -> None:
        self._context = context
        self._f = context.f

    def rows(self, pipeline: ir.Pipeline, rows: Bindings) -> Bindings:
        """Apply some operators to rows."""
        for op in pipeline:
            match op:
                case ir.NodeScan():
                    rows = self._scan(op, rows)
                case ir.Expand():
                    rows = self._expand(op, rows)
                case ir.FindPaths():
                    rows = self._find_paths(op, rows)
                case ir.PathSteps():
                    rows = self._path_steps(op, rows)
                case ir.Filter():
                    rows = filtered(self._context, rows, (op.condition,))
                case ir.AntiJoin():
                    rows = self._anti_join(op, rows)
                case ir.LeftJoin():
                    rows = self._left_join(op, rows)
                case ir.Stage():
                    rows = self._stage(op)
                case ir.InnerJoin():
                    raise AssertionError("a logical plan has no inner join")
                case _:
                    assert_never(op)
        return rows

    def _scan(self, op: ir.NodeScan, rows: Bindings) -> Bindings:
        frame, columns = node_table(self._context, op.type_name, op.var, op.filters, self._context.needed(op.var))
        joined = frame if rows.frame is None else rows.frame.crossJoin(frame)
        return Bindings(joined, {**rows.columns, **columns})

    def _stage(self, op: ir.Stage) -> Bindings:
        """Return the rows of a stage: its query runs as a part of the same job."""
        query = apply_limit(op.query, self._context.params)
        return ResultLowering(self._context, query, op.var).stage(op, self.rows(query.pipeline, Bindings()))

    # -- hops ------------------------------------------------------------------------------------

    def _expand(self, op: ir.Expand, rows: Bindings) -> Bindings:
        assert rows.frame is not None, "an expansion starts at a bound variable"
        if op.edge_var is not None:
            return self._expand_edges(op, rows)
        pairs = self._pairs(op, rows)
        near = self._is_at(rows, op.src_var, pairs.near)
        if op.dst_bound:
            far = self._is_at(rows, op.dst_var, pairs.far)
            return rows.with_frame(rows.frame.join(pairs.frame, near & far, "left_semi"))
        joined = rows.frame.join(pairs.frame, near).drop(*pairs.near)
        return self._bind_target(op, Bindings(joined, rows.columns), pairs.far)

    def _is_at(self, rows: Bindings, var: str, node: Node) -> Any:
        """Return the condition that a variable is bound to a node."""
        if len(node) == 1:
            return same(self._context, [rows.name(var)], node)
        if (var, ir.TYPE) in rows.columns:
            return same(self._context, rows.identity(var), node)
        is_of_type = self._f.col(node[1]) == self._f.lit(self._context.types[var])
        return same(self._context, [rows.name(var)], node[:1]) & is_of_type

    def _pairs(self, op: ir.Expand, rows: Bindings) -> Pairs:
        """Return the distinct pairs of nodes that an expansion connects."""
        assert rows.frame is not None
        context = self._context
        typed = op.src_type is not None
        pairs = edge_pairs(context, op.edge_types, op.direction, typed=typed)
        if op.max_hops < op.min_hops:
            return Pairs(pairs.frame.limit(0), pairs.near, pairs.far)
        if (op.min_hops, op.max_hops) == (1, 1):
            return pairs
        sources = rows.frame.select(*self._node_columns(rows, op.src_var, typed=typed)).distinct()
        return reachable_pairs(context, pairs, sources, HopRange(op.min_hops, op.max_hops, op.backward))

    def _node_columns(self, rows: Bindings, var: str, *, typed: bool) -> list[Any]:
        """Return the id of a variable as a Spark column, and with `typed` also its type."""
        columns = [self._f.col(name) for name in rows.identity(var)]
        if typed and len(columns) == 1:
            columns.append(self._f.lit(self._context.types[var]).alias(self._context.new_name()))
        return columns

    def _expand_edges(self, op: ir.Expand, rows: Bindings) -> Bindings:
        assert op.edge_var is not None
        assert rows.frame is not None
        context, f = self._context, self._f
        props = [*context.needed(op.edge_var), "src", "dst"]
        edges, columns = entity_table(context, TableKey.edge(op.edge_type), op.edge_var, op.edge_filters, props)
        if op.max_hops < op.min_hops:
            edges = edges.limit(0)
        typed = op.src_type is not None
        near, far = (tuple(context.new_name() for _ in range(2 if typed else 1)) for _ in range(2))
        from_, to = (columns[op.edge_var, end].name for end in _ENDS[op.direction])
        edge = context.catalog.edges[op.edge_type]
        types = (edge.to_type, edge.from_type) if op.direction == "in" else (edge.from_type, edge.to_type)

        def ends(frame: DataFrame, ids: Sequence[str], types: Sequence[str]) -> DataFrame:
            for node, id_, type_ in zip((near, far), ids, types, strict=True):
                for name, value in zip(node, (f.col(id_), f.lit(type_)), strict=False):
                    frame = frame.withColumn(name, value)
            return frame

        expanded = ends(edges, (from_, to), types)
        if op.direction == "both":
            # A loop is expanded once.
            other = edges.filter(f.col(from_) != f.col(to)) if edge.from_type == edge.to_type else edges
            expanded = expanded.unionAll(ends(other, (to, from_), types[::-1]))
        meets = self._is_at(rows, op.src_var, near)
        if op.dst_bound:
            meets = meets & self._is_at(rows, op.dst_var, far)
        joined = Bindings(rows.frame.join(expanded, meets).drop(*near), {**rows.columns, **columns})
        assert joined.frame is not None
        return joined.with_frame(joined.frame.drop(*far)) if op.dst_bound else self._bind_target(op, joined, far)

    def _bind_target(self, op: ir.Expand, rows: Bindings, far: Node) -> Bindings:
        return self.bind_node(rows, op.dst_var, op.dst_type, far, op.dst_filters)

    def bind_node(
        self, rows: Bindings, var: str, type_name: str, node: Node, filters: tuple[ir.Condition, ...] = ()
    ) -> Bindings:
        """Bind a variable to a node; its table is read only if properties or predicates need it."""
        assert rows.frame is not None
        context, f = self._context, self._f
        props = [prop for prop in context.needed(var) if prop not in (ID, ir.TYPE)]
        union = context.is_union(type_name)
        if props or filters:
            nodes, columns = node_table(context, type_name, var, filters, props)
            found = Bindings(nodes, columns)
            joined = rows.frame.join(nodes, self._is_at(found, var, node)).drop(*node)
            return Bindings(joined, {**rows.columns, **columns})
        bound: dict[tuple[str, str], FrameColumn] = {(var, ID): FrameColumn(node[0], pa.utf8())}
        frame = rows.frame
        if len(node) > 1:
            # Edges can lead to nodes of other types.
            frame = frame.filter(f.col(node[1]).isin(*context.catalog.members(type_name)))
            if not union:
                frame = frame.drop(node[1])
        if union:
            bound[var, ir.TYPE] = FrameColumn(node[1], pa.utf8())
        return Bindings(frame, {**rows.columns, **bound})

    # -- paths -----------------------------------------------------------------------------------

    def _find_paths(self, op: ir.FindPaths, rows: Bindings) -> Bindings:
        """Join each row with its paths."""
        assert rows.frame is not None
        context = self._context
        found = PathSearch(context, op, rows).run()
        paths = filtered(context, bind_paths(context, op, found), op.filters)
        assert paths.frame is not None
        meets = [node_struct(context, rows, var) == self._f.col(found.ends[var]) for var in op.bound_vars]
        result = Bindings(rows.frame.join(paths.frame, all_of(meets)), {**rows.columns, **paths.columns})
        for step in op.steps:
            if not step.dst_bound:
                # Searches of all paths have tested the conditions.
                filters = () if op.kind == "path" else step.filters
                node = self._split(result, found.ends[step.dst_var])
                result = self.bind_node(node[0], step.dst_var, step.dst_type, node[1], filters)
        assert result.frame is not None
        return result.with_frame(result.frame.drop(*found.ends.values()))

    def _split(self, rows: Bindings, struct: str) -> tuple[Bindings, Node]:
        """Add the id and the type of a node as columns."""
        assert rows.frame is not None
        node = self._context.new_name(), self._context.new_name()
        parts = {name: self._f.col(struct).getField(field) for name, field in zip(node, ("id", "type"), strict=True)}
        return rows.with_frame(rows.frame.withColumns(parts)), node

    def _path_steps(self, op: ir.PathSteps, rows: Bindings) -> Bindings:
        """Extend each row by the edges of its path, as pairs of consecutive nodes."""
        assert rows.frame is not None
        f = self._f
        nodes, step, ends = f.col(rows.name(op.path_var, NODES)), self._context.new_name(), ("near", "far")
        count = f.size(nodes) - 1
        pairs = f.zip_with(
            f.slice(nodes, 1, count),
            f.slice(nodes, 2, count),
            lambda a, b: f.struct(a.alias(ends[0]), b.alias(ends[1])),
        )
        if op.both_ways:
            exchanged = f.transform(pairs, lambda x: f.struct(x.far.alias(ends[0]), x.near.alias(ends[1])))
            pairs = f.concat(pairs, exchanged)
        rows = rows.with_frame(rows.frame.filter(nodes.isNotNull()).withColumn(step, f.explode(pairs)))
        for var, end in zip((op.src_var, op.dst_var), ends, strict=True):
            rows, node = self._split(rows, f"{step}.{end}")
            frame = rows.frame
            assert frame is not None
            if var in op.new_vars:
                rows = self.bind_node(rows, var, op.type_name, node)
            else:
                rows = rows.with_frame(frame.filter(self._is_at(rows, var, node)).drop(*node))
        assert rows.frame is not None
        return filtered(self._context, rows.with_frame(rows.frame.drop(step)), op.filters)

    # -- blocks ----------------------------------------------------------------------------------

    def _anti_join(self, op: ir.AntiJoin, rows: Bindings) -> Bindings:
        if not op.outer_vars:
            found = self.rows(op.inner, Bindings()).frame
            assert found is not None, "an inner pipeline binds a variable"
            frame = rows.frame if rows.frame is not None else self._context.spark.range(1)
            return rows.with_frame(frame.join(found.limit(1), self._f.lit(True), "left_anti"))
        return rows.with_frame(self._join_inner(rows, *self._inner_rows(op, rows), (), "left_anti"))

    def _left_join(self, op: ir.LeftJoin, rows: Bindings) -> Bindings:
        """Left join; the id and all properties of an absent node are null."""
        inner, outer = self._inner_rows(op, rows)
        new = {key: column for key, column in inner.columns.items() if key[0] in op.variables}
        frame = self._join_inner(rows, inner, outer, [column.name for column in new.values()], "left")
        for (_, prop), column in new.items():
            if isinstance(self._context.ranks.get(prop), TextScore):
                # An absent node contains no term.
                frame = frame.withColumn(column.name, self._f.coalesce(column.name, self._f.lit(0.0)))
        return Bindings(frame, {**rows.columns, **new})

    def _inner_rows(self, op: ir.AntiJoin | ir.LeftJoin, rows: Bindings) -> tuple[Bindings, list[str]]:
        """Run the inner pipeline once per distinct combination of outer variables; also return their identities."""
        assert rows.frame is not None, "an inner pipeline starts from outer bindings"
        outer = {key: column for key, column in rows.columns.items() if key[0] in op.outer_vars}
        start = rows.frame.select(*(column.name for column in outer.values())).distinct()
        by = [name for var in op.outer_vars for name in rows.identity(var)]
        return self.rows(op.inner, Bindings(start, outer)), by

    def _join_inner(self, rows: Bindings, inner: Bindings, by: list[str], more: Sequence[str], how: str) -> DataFrame:
        """Join rows with the inner rows of the same outer variables."""
        assert rows.frame is not None
        assert inner.frame is not None
        col = self._f.col
        other = {name: self._context.new_name() for name in by}
        found = inner.frame.select(*(col(name).alias(new) for name, new in other.items()), *more)
        if how == "left_anti":
            found = found.distinct()
        matches = all_of([col(name).eqNullSafe(col(new)) for name, new in other.items()])
        return rows.frame.join(found, matches, how).drop(*other.values())
