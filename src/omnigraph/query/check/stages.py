"""Type checker for the parts of a read: stages, which end with `with { … }`, and the part that returns (T42).

A stage is a complete query whose rows the next part starts from. Nodes and edges that it names stay bound; other items
are values, which have a name of their own. Variables that are not named end at `with`.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar, cast

from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.spans import Name
from omnigraph.query.check.errors import Silenced, type_fault
from omnigraph.query.check.expressions import ExpressionChecker
from omnigraph.query.check.match_block import MatchChecker
from omnigraph.query.check.resolved import ResolvedBlock, ResolvedRead, ResolvedStage
from omnigraph.query.check.results import Results
from omnigraph.query.check.scopes import BlockVariables, Scope, Variable
from omnigraph.query.check.valid_time import check_valid
from omnigraph.query.plan import ir
from omnigraph.query.syntax import ast
from omnigraph.schema.catalog import Catalog
from omnigraph.types import ListType, PropertyType, ResultType

Some = TypeVar("Some")


def check_read(
    catalog: Catalog, expressions: ExpressionChecker, name: str, params: tuple[ir.ParamDecl, ...], read: ast.Read
) -> ResolvedRead:
    """Return the checked read; errors are reported."""
    match = MatchChecker(catalog, expressions)
    outer: Scope | None = None
    stages: list[ResolvedStage] = []
    for number, part in enumerate(read.stages):
        block, scope = match.check(part.clauses, outer)
        stage = _StageResults(expressions, scope, part, number)
        stages.append(stage.resolved(name, params, block))
        outer = stage.next_scope()
    block, scope = match.check(read.clauses, outer)
    valid = None
    if read.valid is not None:
        blocks = (*(stage.read.block for stage in stages), block)
        valid = expressions.attempt(check_valid, catalog, expressions, read.valid, blocks)
    return replace(Results(expressions, scope, read).check(name, params, block), stages=tuple(stages), valid=valid)


class _StageResults(Results):
    """Type checker for `with { … }` and what follows it."""

    def __init__(self, expressions: ExpressionChecker, scope: Scope, part: ast.Read, number: int) -> None:
        super().__init__(expressions, scope, part)
        self.var = f"{ir.CARRIED}{number}"
        self.kept: dict[str, Variable] = {}
        """The nodes and edges that are carried on."""
        self.names: dict[str, None] = {}
        """All names that the stage has defined so far."""
        items = tuple(map(self.named, part.items))
        self.aliased = frozenset(item.alias.text for item in items if item.alias)
        having = tuple(self.with_aliases(part.having))
        self.read = replace(part, items=items, having=having, order=self.with_aliases(part.order))

    def resolved(self, name: str, params: tuple[ir.ParamDecl, ...], block: ResolvedBlock) -> ResolvedStage:
        """Return the checked stage; errors are reported."""
        read = self.check(name, params, block)
        values = tuple(number for number, item in enumerate(self.valid_items) if item.alias is not None)
        return ResolvedStage(read, tuple(one.ir_name for one in self.kept.values()), self.var, values)

    def next_scope(self) -> Scope:
        """Return what the next part sees."""
        own = dict(self.kept)
        for item, column in zip(self.valid_items, self.found, strict=True):
            if item.alias is None:
                continue
            name = item.alias.text
            type_ = _value_type(column.type)
            assert type_ is not None, "checked with the column"
            own[name] = Variable(name, self.var, "value", None, value=ir.carried_value(self.var, name, type_))
        for item in self.read.items:
            # The type of an item with an error is unknown.
            if item.alias is not None and item.alias.text not in own:
                own[item.alias.text] = Variable(item.alias.text, self.var, "node", None)
            elif isinstance(item.expr, ast.VarExpr) and item.expr.name not in own:
                own[item.expr.name] = Variable(item.expr.name, item.expr.name, "node", None)
        dropped = frozenset(self.scope.names()) - own.keys()
        block = BlockVariables(own=own, since=dict.fromkeys(own, -1), dropped=dropped)
        return Scope(block, math.inf)

    # -- items -----------------------------------------------------------------------------------

    def named(self, item: ast.ReturnItem) -> ast.ReturnItem:
        """Return an item with its name: a value of an earlier stage keeps its own."""
        if item.alias is None and isinstance(item.expr, ast.VarExpr) and item.expr.name not in self.expressions.params:
            variable = self.scope.find(item.expr.name)
            if variable is not None and variable.kind == "value":
                return replace(item, alias=Name(item.expr.name, item.expr.span))
        return item

    def column(self, item: ast.ReturnItem, scope: Scope) -> ir.ReturnColumn:
        """Check one item: a node or an edge, or a value with a name."""
        variable = self.bare_variable(item)
        name = item.alias.text if item.alias is not None else None
        if variable is not None and variable.kind == "path":
            hint = f"carry a value on: 'length(${variable.name}) as $n'"
            raise type_fault("T42", f"the path '${variable.name}' cannot be carried on", item.span, hint)
        if variable is not None and variable.kind in ("node", "edge"):
            return self.keep(item, variable)
        if name is None:
            text = self.expressions.text(item.expr)
            if isinstance(item.expr, ast.VarExpr) and item.expr.name in self.expressions.params:
                raise type_fault("T42", f"'{text}' is a parameter, which every part sees", item.span, "leave it out")
            if variable is None and isinstance(item.expr, ast.VarExpr):
                self.expressions.check(item.expr, scope)  # is not bound
            raise type_fault("T42", f"{text} needs a name behind 'with'", item.span, f"write '{text} as $name'")
        assert item.alias is not None
        self.define(item.alias, carried=isinstance(item.expr, ast.VarExpr) and item.expr.name == name)
        column = super().column(item, scope)
        if _value_type(column.type) is None:
            hint = "carry plain values, lists of them and variables on"
            message = f"{self.expressions.text(item.expr)} is {column.type}, which cannot be carried on"
            raise type_fault("T42", message, item.span, hint)
        return column

    def bare_variable(self, item: ast.ReturnItem) -> Variable | None:
        """Return the variable that an item consists of; a parameter of the same name comes first."""
        if not isinstance(item.expr, ast.VarExpr) or item.expr.name in self.expressions.params:
            return None
        return self.scope.find(item.expr.name)

    def keep(self, item: ast.ReturnItem, variable: Variable) -> ir.ReturnColumn:
        """Carry a node or an edge on."""
        if item.alias is not None:
            message = f"'${variable.name}' keeps its name behind 'with'"
            raise type_fault("T42", message, item.span, f"write '${variable.name}', or name a property")
        if variable.name in self.kept:
            raise self.named_twice(Name(variable.name, item.span))
        self.names[variable.name] = None
        self.kept[variable.name] = replace(variable, kept=True)
        if variable.type_name is None:
            raise Silenced
        if variable.kind == "edge":
            # Edges have no value of their own; rows are grouped by their ids.
            id_ = ir.Prop(variable.ir_name, "id", ir.STRING.with_nullable(variable.optional))
            return ir.ReturnColumn(variable.name, id_, id_.type)
        entity = self.expressions.check(item.expr, self.scope)
        return ir.ReturnColumn(variable.name, entity, entity.type)

    def define(self, name: Name, *, carried: bool) -> None:
        """Check the name of a value."""
        if name.text == ast.ANONYMOUS:
            raise type_fault("T42", "'$_' is no name of a value", name.span, "choose another name")
        if name.text in self.names:
            raise self.named_twice(name)
        if name.text in self.expressions.params:
            raise type_fault("T42", f"'${name}' is a parameter already", name.span, "choose another name")
        if not carried and self.scope.find(name.text) is not None:
            raise type_fault("T42", f"'${name}' is bound already", name.span, "choose another name")
        self.names[name.text] = None

    def named_twice(self, name: Name) -> Fault:
        """T42: two items have one name."""
        return type_fault("T42", f"'${name}' is carried on twice", name.span, "leave one of them out")

    # -- having and order ------------------------------------------------------------------------

    def with_aliases(self, tree: Some) -> Some:
        """Return a part of the tree in which the names of values are aliases of items."""
        if isinstance(tree, ast.VarExpr) and tree.name in self.aliased and tree.name not in self.expressions.params:
            return cast(Some, ast.WordExpr(tree.name, tree.span))
        if isinstance(tree, ast.WordExpr) and tree.name in self.aliased:
            hint = f"a value that is carried on is a variable: '${tree.name}'"
            self.report(type_fault("T42", f"'{tree.name}' is not an alias", tree.span, hint))
        if isinstance(tree, tuple) and type(tree) is tuple:  # spans are tuples too
            return cast(Some, tuple(self.with_aliases(part) for part in tree))
        if not is_dataclass(tree) or isinstance(tree, type) or not isinstance(tree, _CONTAINERS):
            return tree
        parts = {part.name: self.with_aliases(getattr(tree, part.name)) for part in fields(tree)}
        return cast(Some, replace(tree, **parts))


_CONTAINERS = (
    ast.FilterClause,
    ast.SortItem,
    ast.ListExpr,
    ast.ObjectExpr,
    ast.Field,
    ast.CallExpr,
    ast.CaseExpr,
    ast.Branch,
    ast.CompareExpr,
    ast.LogicExpr,
    ast.NotExpr,
    ast.IsNullExpr,
    ast.ArithmeticExpr,
    ast.NegativeExpr,
)


def _value_type(type_: ResultType) -> PropertyType | None:
    """Return the type of a value that is carried on; None for objects, lists of lists and vectors."""
    if isinstance(type_, ListType) and isinstance(type_.item, PropertyType) and not type_.item.is_list:
        type_ = replace(type_.item, is_list=True, nullable=type_.nullable, enum_values=None)
    return type_ if isinstance(type_, PropertyType) and type_.scalar != "Vector" else None
