"""Replaces aliases of nodes in the conditions of a plan that give the id of a node.

A condition on the key or the id, such as `$p.name = $name` or `$p.name in $names`, selects the nodes that aliases
denote. Conditions in statements and on the endpoints of edges are treated alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, assert_never

from omnigraph.checkpoints import paced
from omnigraph.engine.cache.id_index import ids_of_keys
from omnigraph.query.params import valid_params
from omnigraph.query.plan import ir
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, UnionType
from omnigraph.table_key import TableKey
from omnigraph.types import PropertyType

if TYPE_CHECKING:
    from omnigraph.engine.exec.view import View
    from omnigraph.versioning.model.snapshot import Snapshot

T = TypeVar("T")
_ID = "id"
_IDS = PropertyType("String", is_list=True)
_Columns = Mapping[str, str]
"""Column → the table of the nodes whose ids it contains."""


class AliasLookup:
    """The aliases of a snapshot, applied to plans with some parameters."""

    def __init__(
        self, snapshot: Snapshot, catalog: Catalog, params: Mapping[str, Any], view: View | None = None
    ) -> None:
        """With a view, an alias of a node that is not visible is not an alias."""
        self._snapshot = snapshot
        self._catalog = catalog
        self._params = params
        self._view = view

    def read(self, plan: ir.QueryIR) -> ir.QueryIR:
        """Return a plan with the ids of nodes in place of aliases; the same plan if there is no alias in it."""
        pipeline = self._pipeline(plan.pipeline)
        return plan if pipeline is plan.pipeline else replace(plan, pipeline=pipeline)

    def mutation(self, plan: ir.MutationIR) -> ir.MutationIR:
        """Return a mutation with the ids of nodes in place of aliases in its conditions."""
        ops = _mapped(plan.ops, self._statement)
        return plan if ops is plan.ops else replace(plan, ops=ops)

    def _statement(self, op: ir.MutationOp) -> ir.MutationOp:
        match op:
            case ir.UpdateNodes() | ir.DeleteNodes():
                where = self._test(op.where, _columns(self._catalog.nodes[op.type_name]))
            case ir.UpdateEdges() | ir.DeleteEdges():
                where = self._test(op.where, _columns(self._catalog.edges[op.type_name]))
            case _:
                return op
        return op if where is op.where else replace(op, where=where)

    def _pipeline(self, pipeline: ir.Pipeline) -> ir.Pipeline:
        return _mapped(pipeline, self._op)

    def _op(self, op: ir.Op) -> ir.Op:
        match op:
            case ir.NodeScan():
                filters = self._filters(op.filters, op.type_name)
                return op if filters is op.filters else replace(op, filters=filters)
            case ir.Expand():
                filters = self._filters(op.dst_filters, op.dst_type)
                return op if filters is op.dst_filters else replace(op, dst_filters=filters)
            case ir.FindPaths():
                ahead, back = (_mapped(steps, self._path_step) for steps in (op.ahead, op.back))
                return op if ahead is op.ahead and back is op.back else replace(op, ahead=ahead, back=back)
            case ir.AntiJoin() | ir.LeftJoin() | ir.InnerJoin():
                inner = self._pipeline(op.inner)
                return op if inner is op.inner else replace(op, inner=inner)
            case ir.Stage():
                query = self.read(op.query)
                return op if query is op.query else replace(op, query=query)
            case ir.Filter() | ir.PathSteps():
                return op
            case _:
                assert_never(op)

    def _path_step(self, step: ir.PathStep) -> ir.PathStep:
        filters = self._filters(step.filters, step.dst_type)
        return step if filters is step.filters else replace(step, filters=filters)

    def _filters(self, filters: tuple[ir.Condition, ...], type_name: str) -> tuple[ir.Condition, ...]:
        node = self._catalog.node(type_name)
        if isinstance(node, UnionType):
            return _mapped(filters, lambda test: self._union_test(test, node))
        columns = _columns(node)
        return _mapped(filters, lambda test: self._test(test, columns))

    def _union_test(self, test: ir.Condition, union: UnionType) -> ir.Condition:
        """Return a condition on nodes of several types. An id can be an alias in one type and an id in another."""
        if isinstance(test, ir.Logic):
            parts = _mapped(test.parts, lambda part: self._union_test(part, union))
            return test if parts is test.parts else replace(test, parts=parts)
        found: list[ir.Condition] = [test]
        for name in union.members:
            of_member = self._test(test, _columns(self._catalog.nodes[name]))
            if of_member is not test:
                (var,) = set(ir.variables_of(test))
                of_type = ir.Compare("=", ir.Prop(var, ir.TYPE, ir.STRING), ir.Const(name, ir.STRING))
                found.append(ir.Logic("and", (of_type, of_member)))
        return test if len(found) == 1 else ir.Logic("or", tuple(found))

    def _test(self, test: ir.Condition, columns: _Columns) -> ir.Condition:
        """Return a condition with tests of the id in place of tests of equality with an alias or with one of a list."""
        if isinstance(test, ir.Logic):
            parts = _mapped(test.parts, lambda part: self._test(part, columns))
            return test if parts is test.parts else replace(test, parts=parts)
        if not isinstance(test, ir.Compare) or test.op not in ("=", "contains_item"):
            return test
        prop, given = (test.left, test.right) if test.op == "=" else (test.right, test.left)
        if not isinstance(prop, ir.Prop) or prop.name not in columns or not isinstance(given, ir.Const | ir.ParamRef):
            return test
        value = self._value(given)
        ids = ids_of_keys([value] if test.op == "=" else value, prop.type)
        kept = [self._current(columns[prop.name], id_) for id_ in paced(ids or ())]
        if kept == (ids or []):
            return test
        of = ir.Prop(prop.var, prop.name if prop.name in ("src", "dst") else _ID, ir.STRING)
        if test.op == "=":
            return replace(test, left=of, right=ir.Const(kept[0], ir.STRING))
        return replace(test, left=ir.Const(kept, _IDS), right=of)

    def _value(self, given: ir.Const | ir.ParamRef) -> Any:
        """Return a constant, or a parameter in stored form; None if it is invalid, which `bind_params` reports."""
        if isinstance(given, ir.Const):
            return given.value
        return valid_params([ir.ParamDecl(given.name, given.type)], self._params).get(given.name)

    def _current(self, key: str, id_: str) -> str:
        kept = self._snapshot.find_alias(key, id_)
        return id_ if kept is None or not self._is_visible(key, kept) else kept

    def _is_visible(self, key: str, id_: str) -> bool:
        return self._view is None or self._view.find(key, id_) is not None


def _columns(type_: NodeType | EdgeType) -> dict[str, str]:
    """Return the columns of a type that contain ids of nodes, or the only column of its key."""
    if isinstance(type_, EdgeType):
        return {"src": TableKey.node(type_.from_type), "dst": TableKey.node(type_.to_type)}
    names = (_ID, *type_.key) if len(type_.key) == 1 else (_ID,)
    return dict.fromkeys(names, type_.table_key)


def _mapped(items: tuple[T, ...], change: Callable[[T], T]) -> tuple[T, ...]:
    """Return the items after a change; the same tuple if none changes."""
    after = tuple(map(change, items))
    return items if all(new is old for new, old in zip(after, items, strict=True)) else after
