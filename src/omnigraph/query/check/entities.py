"""Types of whole nodes as values, and of `id` and `type`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.lang.spans import Name
from omnigraph.query.check.errors import Silenced, type_fault
from omnigraph.query.check.scopes import Scope, not_an_entity
from omnigraph.query.plan import ir
from omnigraph.query.syntax import ast
from omnigraph.schema.catalog import NodeType, UnionType
from omnigraph.types import ObjectType

if TYPE_CHECKING:
    from omnigraph.query.check.expressions import ExpressionChecker


def node_object(node: NodeType, *, nullable: bool = False) -> ObjectType:
    """Return the object type of a whole node: its id, its type if it can vary, and every property except Blobs."""
    shown = [(prop.name, prop.type) for prop in node.properties.values() if prop.type.scalar != "Blob"]
    if isinstance(node, UnionType):
        shown = [("type", ir.STRING), *(field for field in shown if field[0] != "type")]
    return ObjectType((("id", ir.STRING), *shown), nullable, node.name)


def check_entity_function(checker: ExpressionChecker, expr: ast.CallExpr, scope: Scope) -> ir.Expr:
    """`id($x)` and `type($x)` of a node or an edge."""
    (inner,) = expr.arguments
    if not isinstance(inner, ast.VarExpr) or inner.name in checker.params or scope.row is not None:
        message = f"'{expr.function}' takes a variable of a node or an edge, not {checker.text(inner)}"
        raise type_fault("T26", message, inner.span, f"write {expr.function}($x)")
    variable = scope.get(Name(inner.name, inner.span))
    if variable.kind == "value":
        raise not_an_entity(inner.name, inner.span, f"'{expr.function}' takes a variable of a node or an edge")
    if variable.kind == "path":
        hint = f"'nodes(${inner.name})' and 'edges(${inner.name})' list its nodes and edges"
        raise type_fault("T36", f"'${inner.name}' is a path, which has no {expr.function}", inner.span, hint)
    if variable.type_name is None:
        raise Silenced
    text = ir.STRING.with_nullable(variable.optional)
    id_ = ir.Prop(variable.ir_name, "id", text)
    if expr.function == "id":
        return id_
    if isinstance(checker.entity_type(variable), UnionType):
        return ir.Prop(variable.ir_name, ir.TYPE, text)
    return ir.Function("type", (id_, ir.Const(variable.type_name, ir.STRING)), text)
