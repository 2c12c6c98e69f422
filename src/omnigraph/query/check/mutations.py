"""Type checker for the statements of a mutation; the result is their plan.

A type name denotes a node type first, then an edge type, and is case-sensitive. In `where` and on the right of `set`,
bare names are properties of the row; the values of an insert can use only parameters. Statements are checked one by
one. If all are valid, the rule D2 applies: a query either inserts and updates, or deletes.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import assert_never

from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.spans import Name
from omnigraph.query.check.errors import Silenced, type_fault
from omnigraph.query.check.expressions import ExpressionChecker
from omnigraph.query.check.literals import compatible, fit_literal, literal
from omnigraph.query.check.operators import check_condition
from omnigraph.query.check.returning import NamedRows
from omnigraph.query.check.scopes import BlockVariables, Scope
from omnigraph.query.check.unify import check_unify
from omnigraph.query.check.valid_time import check_valid_from, period_of
from omnigraph.query.plan import ir
from omnigraph.query.scalars.signature import is_null
from omnigraph.query.syntax import ast
from omnigraph.query.valid_time import holds_in
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.suggestions import did_you_mean, known_types, listing
from omnigraph.types import PropertyType

_ID = PropertyType("String")
_ENDS = {"from": "src", "to": "dst"}


class MutationChecker:
    """Type checker for the statements of one query."""

    def __init__(self, catalog: Catalog, expressions: ExpressionChecker) -> None:
        self.catalog = catalog
        self.expressions = expressions
        self.report = expressions.report
        self.named = NamedRows(expressions.params, ())

    def check(self, query: ast.QueryDefinition, write: ast.Write) -> tuple[ir.MutationOp, ...]:
        """Return the operations. Errors are reported; the result is then invalid."""
        statements = write.statements
        ops: list[ir.MutationOp] = []
        self.named = NamedRows(self.expressions.params, statements)
        for statement in statements:
            op = self.expressions.attempt(self.statement, statement)
            name = self.expressions.attempt(self.named.add, statement, self.find_type(statement.type))
            if op is not None:
                ops.append(replace(op, name=name) if name else op)
        if len(ops) == len(statements) and not write.atomic:
            self.one_kind(query, statements)
        return tuple(ops)

    def one_kind(self, query: ast.QueryDefinition, statements: Sequence[ast.Statement]) -> None:
        """D2: a query contains inserts and updates, or deletes, but not both."""
        deletes = isinstance(statements[0], ast.DeleteStatement)
        for statement in statements:
            if isinstance(statement, ast.DeleteStatement) != deletes:
                self.report(
                    type_fault(
                        "D2",
                        f"query '{query.name}' both deletes and inserts or updates",
                        statement.span,
                        "to do both in one change, write atomic { … }",
                    )
                )
                return

    def statement(self, statement: ast.Statement) -> ir.MutationOp:
        type_ = self.type(statement.type)
        match statement:
            case ast.InsertStatement():
                return self.insert(statement, type_)
            case ast.UpdateStatement():
                return self.update(statement, type_)
            case ast.EndStatement():
                return self.end(statement, type_)
            case ast.UpsertStatement():
                return self.upsert(statement, type_)
            case ast.UnifyStatement():
                return check_unify(self, statement, type_, no_row_scope(type_))
            case ast.DeleteStatement():
                where = self.where(statement.where, type_)
                return (ir.DeleteNodes if isinstance(type_, NodeType) else ir.DeleteEdges)(type_.name, where)
            case _:
                assert_never(statement)

    def find_type(self, name: Name) -> NodeType | EdgeType | None:
        return self.catalog.nodes.get(name.text) or self.catalog.edges.get(name.text)

    def type(self, name: Name) -> NodeType | EdgeType:
        found = self.find_type(name)
        if found is None:
            known = [*self.catalog.nodes, *self.catalog.edges]
            hint = did_you_mean(name.text, known) or known_types("type", known)
            if name.text in self.catalog.interfaces:
                hint = f"'{name}' is an interface: write to a node type that implements it"
            raise type_fault("T10", f"there is no node or edge type '{name}'", name.span, hint)
        return found

    # -- insert and update -----------------------------------------------------------------------

    def insert(self, statement: ast.InsertStatement, type_: NodeType | EdgeType) -> ir.MutationOp:
        is_edge = isinstance(type_, EdgeType)
        given = self.assigns(statement.assigns, statement.type, type_, ends=is_edge, scope=no_row_scope(type_))
        if isinstance(type_, EdgeType):
            needed = [p.name for p in type_.properties.values() if not p.type.nullable]
            missing = [name for name in (*_ENDS, *needed) if name not in given]
        else:
            missing = self.missing(type_, given)
        if missing:
            wanted = ", ".join(f"{name}: {self.wanted(type_, name)}" for name in missing)
            message = f"insert of '{type_.name}' misses {listing(missing)}"
            raise type_fault("T12", message, statement.type.span, f"add {wanted}")
        if isinstance(type_, NodeType):
            return ir.InsertNode(type_.name, tuple(given.items()))
        source, target = given.pop("from"), given.pop("to")
        return ir.InsertEdge(type_.name, source, target, tuple(given.items()))

    def wanted(self, type_: NodeType | EdgeType, name: str) -> str:
        if isinstance(type_, EdgeType) and name in _ENDS:
            return f"the id of a {type_.from_type if name == 'from' else type_.to_type}"
        return str(type_.properties[name].type)

    def update(self, statement: ast.UpdateStatement, type_: NodeType | EdgeType) -> ir.UpdateNodes | ir.UpdateEdges:
        given = self.expressions.attempt(
            self.assigns,
            statement.assigns,
            statement.type,
            type_,
            ends=False,
            scope=row_scope(type_),
            fixed=tuple(_ENDS) if isinstance(type_, EdgeType) else type_.identity,
        )
        where = self.where(statement.where, type_)
        since = None
        if statement.valid_from is not None:
            check_valid_from(type_, statement)
            since, where = self.period(statement, statement.valid_from, where, type_)
        if given is None:
            raise Silenced
        op = ir.UpdateNodes if isinstance(type_, NodeType) else ir.UpdateEdges
        return op(type_.name, tuple(given.items()), where, valid_from=since)

    def end(self, statement: ast.EndStatement, type_: NodeType | EdgeType) -> ir.UpdateNodes | ir.UpdateEdges:
        """Return the update that ends the periods of the rows that hold at the instant."""
        valid = period_of(type_, statement)
        at, where = self.period(statement, statement.at, self.where(statement.where, type_), type_)
        op = ir.UpdateNodes if isinstance(type_, NodeType) else ir.UpdateEdges
        return op(type_.name, ((valid.end, at),), where)

    def period(
        self,
        statement: ast.UpdateStatement | ast.EndStatement,
        instant: ast.Expr,
        where: ir.Condition,
        type_: NodeType | EdgeType,
    ) -> tuple[ir.Expr, ir.Condition]:
        """Return an instant, and the condition of the rows that also hold at it."""
        valid = period_of(type_, statement)
        kind = type_.properties[valid.end].type.with_nullable(False)
        at = self.value(instant, kind, f"the instant of '{type_.name}'", no_row_scope(type_))
        return at, ir.Logic("and", (where, holds_in(type_, at, None)))

    def upsert(self, statement: ast.UpsertStatement, type_: NodeType | EdgeType) -> ir.UpsertNode:
        """T32: the first braces give the whole key. Other assignments in them apply to new and existing rows."""
        if isinstance(type_, EdgeType) or not type_.key:
            what = "an edge type" if isinstance(type_, EdgeType) else "a node type without @key"
            message = f"'{type_.name}' is {what}, so no row of it can be found by its key"
            raise type_fault("T32", message, statement.type.span, "insert it, or update it by a condition")
        scope, fixed = no_row_scope(type_), type_.identity
        attempt, name = self.expressions.attempt, statement.type
        both = attempt(self.assigns, statement.key, name, type_, ends=False, scope=scope)
        new: dict[str, ir.Expr] | None = {}
        existing: dict[str, ir.Expr] | None = {}
        if statement.new is not None:
            new = attempt(self.assigns, statement.new, name, type_, ends=False, scope=scope, fixed=fixed)
        if statement.existing is not None:
            rows = row_scope(type_)
            existing = attempt(self.assigns, statement.existing, name, type_, ends=False, scope=rows, fixed=fixed)
        if both is None or new is None or existing is None:
            raise Silenced
        if not set(both) >= set(type_.identity):
            hint = f"write upsert {type_.name} {{ {', '.join(f'{column}: …' for column in type_.identity)}, … }}"
            what = "key and period" if type_.has_periods else "key"
            message = (
                f"the {what} of '{type_.name}' is {listing(type_.identity)}, and {listing(both)} does not contain it"
            )
            raise type_fault("T32", message, statement.type.span, hint)
        self.once(statement)
        key = {column: both.pop(column) for column in type_.identity}
        new, existing = both | new, both | existing
        missing = self.missing(type_, {**key, **new})
        # Without 'new', the statement may be meant only for existing rows; a missing value is then an error at run
        # time.
        if missing and (statement.new is not None or not existing):
            wanted = ", ".join(f"{n}: {self.wanted(type_, n)}" for n in missing)
            message = f"upsert of '{type_.name}' misses {listing(missing)}, which a new row must have"
            raise type_fault("T12", message, statement.type.span, f"add new {{ {wanted} }}")
        return ir.UpsertNode(type_.name, tuple(key.items()), tuple(new.items()), tuple(existing.items()))

    def once(self, statement: ast.UpsertStatement) -> None:
        """T13: a property is assigned beside the key or in a branch, not in both."""
        first = {assign.property.text for assign in statement.key}
        twice = [
            (word, assign.property)
            for word, assigns in (("new", statement.new), ("existing", statement.existing))
            for assign in assigns or ()
            if assign.property.text in first
        ]
        for word, name in twice:
            hint = f"keep it in one place: beside the key for new and existing rows, in '{word}' for those alone"
            self.report(type_fault("T13", f"'{name}' is assigned beside the key and in '{word}'", name.span, hint))
        if twice:
            raise Silenced

    def missing(self, type_: NodeType, given: Container[str]) -> list[str]:
        """Return the required properties that a new row would lack."""
        needed = [p.name for p in type_.properties.values() if not p.type.nullable]
        embeds = type_.embeds
        return [n for n in needed if n not in given and not (n in embeds and embeds[n].source in given)]

    def assigns(
        self,
        assigns: Sequence[ast.Assign],
        name: Name,
        type_: NodeType | EdgeType,
        *,
        ends: bool,
        scope: Scope,
        fixed: Sequence[str] = (),
    ) -> dict[str, ir.Expr]:
        """Return the assigned values by property, in text order; `ends` allows `from` and `to`.

        `scope` is the scope of the values. `fixed` are the properties that cannot be assigned.
        """
        if not assigns:
            raise type_fault("T10", f"nothing is assigned to '{type_.name}'", name.span, "write { property: value }")
        given: dict[str, ir.Expr | None] = {}
        for assign in assigns:
            key = assign.property.text
            if key in given:
                self.report(type_fault("T13", f"'{key}' is assigned twice", assign.property.span))
                given[key] = None
            elif key in fixed:
                self.report(_fixed(type_, assign.property))
                given[key] = None
            else:
                given[key] = self.expressions.attempt(self.assigned, assign, type_, scope, ends=ends)
        valid = {key: value for key, value in given.items() if value is not None}
        if len(valid) < len(given):
            raise Silenced
        return valid

    def assigned(self, assign: ast.Assign, type_: NodeType | EdgeType, scope: Scope, *, ends: bool) -> ir.Expr:
        key = assign.property.text
        if isinstance(type_, EdgeType) and key in _ENDS:
            ends_at = type_.from_type if key == "from" else type_.to_type
            named = self.named.find_end(assign.value, self.catalog.nodes[ends_at])
            if named is not None:
                return named
        property_type = _ID if ends and key in _ENDS else self.property_type(assign.property, type_, ends=ends)
        what = f"'{type_.name}.{key}'"
        if isinstance(type_, EdgeType) and key in _ENDS:
            what += f" ({self.wanted(type_, key)})"
            end = self.key_end(assign.value, type_.from_type if key == "from" else type_.to_type, scope)
            if end is not None:
                return end
        return self.value(assign.value, property_type, what, scope)

    def key_end(self, expr: ast.Expr, node_type: str, scope: Scope) -> ir.Expr | None:
        """Return an integer or a UUID as the id of a node whose key is one; None for any other value or key."""
        node = self.catalog.nodes[node_type]
        key = node.properties[node.key[0]].type if len(node.key) == 1 else _ID
        if not key.is_integer and key.kind.pattern is None:
            return None
        if isinstance(expr, ast.LiteralExpr):
            const = literal(expr)
            return ir.Const(key.kind.spell(const.value), _ID) if _is_key_value(const.type, key) else None
        if not isinstance(expr, ast.VarExpr) or expr.name not in self.expressions.params:
            return None
        value = self.expressions.plain_operand(expr, scope)
        return ir.Function("to_string", (value,), _ID) if _is_key_value(value.type, key) else None

    def property_type(self, name: Name, type_: NodeType | EdgeType, *, ends: bool) -> PropertyType:
        property_ = type_.properties.get(name.text)
        if property_ is None:
            known = [*type_.properties, *(_ENDS if ends else ())]
            hint = did_you_mean(name.text, known) or (f"it has {listing(known)}" if known else None)
            raise type_fault("T11", f"'{type_.name}' has no property '{name}'", name.span, hint)
        return property_.type

    def value(self, expr: ast.Expr, type_: PropertyType, what: str, scope: Scope) -> ir.Expr:
        """Return an assigned value: T3 for a literal that does not fit the type, T7 for any other expression that does
        not.
        """
        if isinstance(expr, ast.LiteralExpr | ast.ListExpr):
            return fit_literal(self.expressions, expr, type_.with_nullable(False), what)
        if isinstance(expr, ast.VarExpr) and expr.name not in self.expressions.params:
            hint = self.expressions.undeclared(expr.name, type_)
            raise type_fault("T14", f"'${expr.name}' is not a parameter of this query", expr.span, hint)
        checked = self.expressions.plain_operand(expr, scope)
        if is_null(checked):
            if not type_.nullable:
                raise type_fault("T3", f"{what} ({type_}) is required and cannot be null", expr.span)
            return ir.Const(None, type_)
        text_for_blob = type_.scalar == "Blob" and checked.type.is_text
        if not text_for_blob and not compatible(checked.type, type_):
            message = f"cannot assign {self.expressions.shown(expr, checked)} to {what} ({type_})"
            raise type_fault("T7", message, expr.span, self.expressions.value_hint(expr, type_))
        return checked

    # -- where -----------------------------------------------------------------------------------

    def where(self, where: ast.Expr, type_: NodeType | EdgeType) -> ir.Condition:
        """Check a `where` condition, in which bare names are properties of the row."""
        return check_condition(self.expressions, where, row_scope(type_))


def _fixed(type_: NodeType | EdgeType, name: Name) -> Fault:
    """Return the error for an assignment to a property that identifies the row."""
    if isinstance(type_, EdgeType):
        message = f"'{type_.name}.{name}' is an endpoint of the edge and cannot be updated"
        return type_fault("T16", message, name.span, "delete the edge and insert it between the other nodes")
    if name.text not in type_.key:
        message = f"'{type_.name}.{name}' begins the period of the row and cannot be updated"
        return type_fault("T43", message, name.span, "delete the row and insert it with its new period")
    message = f"'{type_.name}.{name}' is part of the @key and cannot be updated"
    return type_fault(None, message, name.span, "delete the node and insert it under its new key")


def row_scope(type_: NodeType | EdgeType) -> Scope:
    """Return the scope of expressions over one row: its properties by name, and the endpoints of an edge."""
    words: dict[str, ir.Expr | None] = {p.name: ir.Prop(ir.ROW, p.name, p.type) for p in type_.properties.values()}
    if isinstance(type_, EdgeType):
        words |= {end: ir.Prop(ir.ROW, column, _ID) for end, column in _ENDS.items()}
    return Scope(BlockVariables(), words=words, row=type_)


def no_row_scope(type_: NodeType | EdgeType) -> Scope:
    """Return the scope of the values of an insert: parameters only, because the row does not exist yet."""
    return Scope(BlockVariables(), row=type_)


def _is_key_value(type_: PropertyType, key: PropertyType) -> bool:
    return not type_.is_list and (type_.scalar == key.scalar or (type_.is_integer and key.is_integer))
