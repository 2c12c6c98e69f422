"""Type checker for `unify`: the ids, the rules of properties and the rules of edge types.

A bare word is a rule. Any other value is assigned to the kept node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.query.check.errors import Silenced, type_fault
from omnigraph.query.plan import ir
from omnigraph.query.syntax import ast
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.suggestions import did_you_mean, listing
from omnigraph.types import PropertyType

if TYPE_CHECKING:
    from omnigraph.query.check.mutations import MutationChecker
    from omnigraph.query.check.scopes import Scope

_ID = PropertyType("String")
_IDS = PropertyType("String", is_list=True)


def check_unify(
    checker: MutationChecker, statement: ast.UnifyStatement, type_: NodeType | EdgeType, scope: Scope
) -> ir.UnifyNodes:
    """Return the operation of a statement; T50 if a type or a rule does not fit."""
    if isinstance(type_, EdgeType):
        message = f"'{type_.name}' is an edge type, and only nodes are unified"
        raise type_fault("T50", message, statement.type.span, "name the type of the two nodes")
    if type_.has_periods:
        message = f"'{type_.name}' has '@valid', and nodes with periods are not unified"
        raise type_fault("T50", message, statement.type.span, "end the periods of one key and begin those of the other")
    attempt = checker.expressions.attempt
    drop = attempt(_ids, checker, statement.drop, type_, scope)
    keep = attempt(_ids, checker, statement.keep, type_, scope)
    rules = attempt(_property_rules, checker, statement, type_, scope)
    edges = attempt(_edge_rules, checker, statement, type_)
    if drop is None or keep is None or rules is None or edges is None:
        raise Silenced
    if _is_list(drop) != _is_list(keep):
        message = "the ids of the dropped nodes and of the kept nodes are both texts or both lists"
        raise type_fault("T50", message, statement.keep.span, "a list of pairs is two lists of equal length")
    return ir.UnifyNodes(type_.name, drop, keep, rules, edges)


def _ids(checker: MutationChecker, expr: ast.Expr, type_: NodeType, scope: Scope) -> ir.Expr:
    """Return an id, or a list of ids."""
    end = checker.key_end(expr, type_.name, scope)
    if end is not None:
        return end
    what = f"the id of a {type_.name}"
    declared = checker.expressions.params.get(expr.name) if isinstance(expr, ast.VarExpr) else None
    is_list = isinstance(expr, ast.ListExpr) or (declared is not None and declared.is_list)
    return checker.value(expr, _IDS if is_list else _ID, what, scope)


def _is_list(expr: ir.Expr) -> bool:
    return isinstance(expr.type, PropertyType) and expr.type.is_list


def _property_rules(
    checker: MutationChecker, statement: ast.UnifyStatement, type_: NodeType, scope: Scope
) -> tuple[tuple[str, ir.UnifyRule | ir.Expr], ...]:
    rules: dict[str, ir.UnifyRule | ir.Expr] = {}
    for assign in statement.rules or ():
        name = assign.property.text
        property_type = checker.property_type(assign.property, type_, ends=False)
        if name in rules:
            raise type_fault("T13", f"'{name}' has two rules", assign.property.span)
        if name in type_.key:
            message = f"'{type_.name}.{name}' is part of the @key, and the kept node keeps its key"
            raise type_fault("T50", message, assign.property.span, "omit the rule")
        if not isinstance(assign.value, ast.WordExpr) or assign.value.name == "null":
            rules[name] = checker.value(assign.value, property_type, f"'{type_.name}.{name}'", scope)
            continue
        word = assign.value.name
        if word not in ir.UNIFY_RULES:
            hint = did_you_mean(word, ir.UNIFY_RULES) or f"the rules are {listing(ir.UNIFY_RULES)}, or a value"
            raise type_fault("T50", f"there is no rule '{word}'", assign.value.span, hint)
        fits = {"union": property_type.is_list, "longest": property_type.is_list or property_type.is_text}
        if not fits.get(word, True):
            wanted = "a list" if word == "union" else "a text or a list"
            message = f"the rule '{word}' needs {wanted}, and '{type_.name}.{name}' is {property_type}"
            raise type_fault("T50", message, assign.value.span)
        rules[name] = word
    return tuple(rules.items())


def _edge_rules(
    checker: MutationChecker, statement: ast.UnifyStatement, type_: NodeType
) -> tuple[tuple[str, str], ...]:
    rules: dict[str, str] = {}
    touching = [edge.name for edge in checker.catalog.edges_touching[type_.name]]
    for one in statement.edges or ():
        if one.type.text not in touching:
            hint = did_you_mean(one.type.text, touching) or (f"its edges are {listing(touching)}" if touching else None)
            raise type_fault("T50", f"'{one.type}' is not an edge type of '{type_.name}'", one.type.span, hint)
        if one.type.text in rules:
            raise type_fault("T13", f"'{one.type}' has two rules", one.type.span)
        if one.rule.text not in ir.EDGE_RULES:
            hint = did_you_mean(one.rule.text, ir.EDGE_RULES) or f"the rules are {listing(ir.EDGE_RULES)}"
            raise type_fault("T50", f"there is no rule '{one.rule}' for edges", one.rule.span, hint)
        rules[one.type.text] = one.rule.text
    return tuple(rules.items())
