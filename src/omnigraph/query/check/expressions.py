"""Static types of expressions: syntax expression in, typed IR expression out.

The checker has the parameters and, through `Scope`, the visible variables. It raises `Fault` for an error, and
`Silenced` if the expression depends on an error that has already been reported. The callers decide by the IR class
which expressions are allowed where (a ranking in a filter, a Blob in a result).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import ParamSpec, TypeVar, assert_never, cast

from omnigraph.checkpoints import checkpoint
from omnigraph.errors import Hint
from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.spans import Name, Source
from omnigraph.query.check.aggregates import check_aggregate
from omnigraph.query.check.entities import check_entity_function, node_object
from omnigraph.query.check.errors import Silenced, type_fault
from omnigraph.query.check.literals import compatible, literal, literal_hint
from omnigraph.query.check.object_literals import check_list, check_object, refuse_constructed
from omnigraph.query.check.operators import (
    CASELESS,
    check_arithmetic,
    check_case,
    check_caseless,
    check_in,
    check_is_null,
    check_logic,
    check_matches,
    check_negative,
    check_not,
    check_value_function,
    refuse_null,
)
from omnigraph.query.check.paths import check_path_function, no_value, path_value, path_variable
from omnigraph.query.check.scopes import Scope, Variable, dollar_hint, not_an_entity, pass_value
from omnigraph.query.check.search import check_bm25, check_nearest, check_rrf, check_text_match
from omnigraph.query.check.unions import not_shared
from omnigraph.query.functions import AGGREGATE, ENTITY, PATH, TEXT, VALUE
from omnigraph.query.plan import ir
from omnigraph.query.syntax import ast
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, UnionType
from omnigraph.suggestions import did_you_mean, listing
from omnigraph.types import PropertyType

_ORDERED = ("=", "!=", "<", "<=", ">", ">=")

Report = Callable[[Fault], None]
P = ParamSpec("P")
T = TypeVar("T")


class ExpressionChecker:
    """Type checker for the expressions of one query."""

    def __init__(
        self,
        catalog: Catalog,
        params: Mapping[str, PropertyType | None],
        source: Source,
        report: Report,
        *,
        bare: bool = False,
    ) -> None:
        self.catalog = catalog
        self.params = params
        self.source = source
        self.bare = bare
        """True if the query has no head; its parameters are then those for which values are passed."""
        self.faults = 0
        """Number of errors reported by this checker and by the checkers that use it."""
        self._report = report

    def report(self, fault: Fault) -> None:
        """Report an error and continue."""
        self.faults += 1
        self._report(fault)

    def attempt(self, check: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Return the result of a check; None if it fails. The error is reported, so that neighbouring constructs are
        checked too.
        """
        try:
            return check(*args, **kwargs)
        except Fault as fault:
            self.report(fault)
        except Silenced:
            pass
        return None

    # -- all expressions -------------------------------------------------------------------------

    def check(self, expr: ast.Expr, scope: Scope) -> ir.Expr:
        """Return the typed form of an expression."""
        checkpoint()
        match expr:
            case ast.LiteralExpr() | ast.ListExpr() | ast.ObjectExpr():
                return self.literal(expr, scope)
            case ast.PropertyExpr():
                return self.property(expr, scope)
            case ast.VarExpr():
                return self.variable(expr, scope)
            case ast.WordExpr():
                return self.word(expr, scope)
            case ast.CallExpr():
                return self.call(expr, scope)
            case ast.CaseExpr():
                return check_case(self, expr, scope)
            case ast.ArithmeticExpr():
                return check_arithmetic(self, expr, scope)
            case ast.NegativeExpr():
                return check_negative(self, expr, scope)
            case ast.CompareExpr() | ast.LogicExpr() | ast.NotExpr() | ast.IsNullExpr():
                return self.predicate(expr, scope)
            case _:
                assert_never(expr)

    def literal(self, expr: ast.LiteralExpr | ast.ListExpr | ast.ObjectExpr, scope: Scope) -> ir.Expr:
        """Check a constant, a list or an object."""
        match expr:
            case ast.ListExpr() if any(not isinstance(item, ast.LiteralExpr) for item in expr.items):
                return check_list(self, expr, scope)
            case ast.LiteralExpr() | ast.ListExpr():
                return literal(expr)
            case ast.ObjectExpr():
                return check_object(self, expr, scope)
            case _:
                assert_never(expr)

    def predicate(self, expr: ast.CompareExpr | ast.LogicExpr | ast.NotExpr | ast.IsNullExpr, scope: Scope) -> ir.Expr:
        """Check a comparison, `and`, `or`, `not` or `is null`."""
        match expr:
            case ast.CompareExpr():
                return self.compare(expr, scope)
            case ast.LogicExpr():
                return check_logic(self, expr, scope)
            case ast.NotExpr():
                return check_not(self, expr, scope)
            case ast.IsNullExpr():
                return check_is_null(self, expr, scope)
            case _:
                assert_never(expr)

    def word(self, word: ast.WordExpr, scope: Scope) -> ir.Expr:
        """Check a bare name: a name that the scope defines, or `null`."""
        if word.name in scope.words:
            meant = scope.words[word.name]
            if meant is None:
                raise Silenced
            if isinstance(meant, ir.Prop) and meant.type.scalar == "Blob" and scope.row is not None:
                message = f"'{scope.row.name}.{word.name}' is Blob and cannot be compared"
                raise type_fault("T11", message, word.span)
            return meant
        if word.name == "null":
            return ir.Const(None, ir.NULL)
        if scope.row is not None and scope.words:
            raise self.unknown_property(word, scope.row, scope.words)
        raise self.unknown_word(word, scope)

    def unknown_property(self, word: ast.WordExpr, type_: NodeType | EdgeType, known: Iterable[str]) -> Fault:
        """T11: a bare name in a mutation that is not a property of the row."""
        known = [*known]
        hint = did_you_mean(word.name, known) or (f"it has {listing(known)}" if known else None)
        return type_fault("T11", f"'{type_.name}' has no property '{word.name}'", word.span, hint)

    def unknown_word(self, word: ast.WordExpr, scope: Scope) -> Fault:
        """Return the error for a bare name that is not defined here."""
        hint = self.word_hint(word, scope) or f'text is written in double quotes: "{word.name}"'
        return type_fault(None, f"'{word.name}' is not a value", word.span, hint)

    def word_hint(self, word: ast.WordExpr, scope: Scope) -> str | None:
        """Return a hint for a bare name that is probably a variable, a parameter or a property of a variable."""
        known = [*self.params, *scope.names()]
        if word.name in known:
            return f"variables are written with a dollar sign: '${word.name}'"
        for name in scope.names():
            variable = scope.find(name)
            if variable and variable.type_name and word.name in self.entity_type(variable).properties:
                return f"a property is read from a variable: '${name}.{word.name}'"
        return did_you_mean(word.name, known, prefix="$") if len(word.name) > 1 else None

    def property(self, expr: ast.PropertyExpr, scope: Scope) -> ir.Prop:
        """Check `$x.p`."""
        if scope.row is not None:
            alone = f"name the property alone: '{expr.property}'"
            raise type_fault("T14", f"'${expr.var}' is not a variable of a statement", expr.span, alone)
        if scope.find(expr.var.text) is None:
            raise self.unbound(expr, scope)
        variable = scope.get(expr.var)
        if variable.kind == "value":
            raise not_an_entity(expr.var.text, expr.span, f"a value has no properties: write '${expr.var}'")
        if variable.kind == "path":
            ask = f"use length(${expr.var}), nodes(${expr.var}) or edges(${expr.var})"
            raise type_fault("T36", f"'${expr.var}' is a path, which has no properties", expr.span, ask)
        type_ = self.entity_type(variable)
        found = type_.properties.get(expr.property.text)
        if found is None:
            if isinstance(type_, UnionType):
                raise not_shared(self.catalog, type_, expr.property)
            hint = did_you_mean(expr.property.text, type_.properties)
            if hint is None and expr.property.text in ENTITY:
                hint = f"the {expr.property} of a node or an edge is '{expr.property}(${expr.var})'"
            raise type_fault(
                "T6",
                f"{type_.kind} type '{type_.name}' has no property '{expr.property}'",
                expr.property.span,
                hint or _choices(type_),
            )
        type_ir = found.type.with_nullable(True) if variable.optional else found.type
        return ir.Prop(variable.ir_name, found.name, type_ir)

    def unbound(self, expr: ast.PropertyExpr, scope: Scope) -> Fault:
        """Return the error for a property of a variable that is not visible; the name may be that of an edge type."""
        fault = scope.unbound(expr.var)
        edge = self.catalog.find_edge(expr.var.text)
        if edge is not None and fault.hint is None:
            word = expr.var.text
            fault.hint = f"name the edge in its hop: '$a $r:{word} $b'; its properties are then '$r.{expr.property}'"
        return fault

    def entity_type(self, variable: Variable) -> NodeType | EdgeType:
        """Return the type that a variable is bound to."""
        if variable.type_name is None:
            raise Silenced
        if variable.kind == "node":
            return self.catalog.node(variable.type_name)
        return self.catalog.edges[variable.type_name]

    def variable(self, expr: ast.VarExpr, scope: Scope) -> ir.Expr:
        """Check a bare `$x`: a parameter if there is one of this name, else a node or a path."""
        if expr.name in self.params:
            return self.param(expr)
        if scope.row is not None:
            near = dollar_hint(expr.name, self.params)
            near = near or (pass_value(expr.name) if self.bare else "declare it in the query's parentheses")
            raise type_fault("T14", f"'${expr.name}' is not a parameter of this query", expr.span, near)
        if scope.find(expr.name) is None:
            fault = scope.unknown(Name(expr.name, expr.span), self.params)
            if self.bare and scope.is_unknown(expr.name, self.params):
                fault.hint = pass_value(expr.name)
            raise fault
        variable = scope.get(Name(expr.name, expr.span))
        if variable.kind == "edge":
            raise type_fault(
                "T23",
                f"the edge variable '${expr.name}' cannot be used as a value",
                expr.span,
                f"read one of its properties, or id(${expr.name})",
            )
        if variable.value is not None:
            return variable.value
        if variable.kind == "path":
            return path_value(variable)
        if variable.type_name is None:
            raise Silenced
        shown = node_object(self.catalog.node(variable.type_name), nullable=variable.optional)
        return ir.Entity(variable.ir_name, variable.type_name, shown)

    def param(self, expr: ast.VarExpr) -> ir.ParamRef:
        """Return the parameter `$p`; `Silenced` if its declaration has an error."""
        type_ = self.params[expr.name]
        if type_ is None:
            raise Silenced
        return ir.ParamRef(expr.name, type_)

    # -- comparisons -----------------------------------------------------------------------------

    def compare(self, expr: ast.CompareExpr, scope: Scope) -> ir.Condition:
        """Check `left op right`."""
        if "null" not in scope.words:
            refuse_null(self, expr)
        if expr.op in ("in", "not in"):
            return check_in(self, expr, scope)
        if expr.op == "matches":
            return check_matches(self, expr, scope)
        if expr.op in CASELESS:
            return check_caseless(self, expr, scope)
        self.check_undeclared(expr, scope)
        left = self.attempt(self.operand, expr.left, scope)
        right = self.attempt(self.operand, expr.right, scope)
        if left is None or right is None:
            raise Silenced
        if isinstance(left, ir.Entity):
            raise self.whole_node(expr.left)
        if isinstance(right, ir.Entity):
            raise self.whole_node(expr.right)
        return ir.Compare(self.comparison(expr, left, right), left, right)

    def check_undeclared(self, expr: ast.CompareExpr, scope: Scope) -> None:
        """T14 for an undeclared parameter in `where p = $x`, with the type of `p` in the hint."""
        if not isinstance(expr.left, ast.WordExpr) or not isinstance(expr.right, ast.VarExpr):
            return
        known = scope.words.get(expr.left.name)
        if scope.row is not None and isinstance(known, ir.Prop) and expr.right.name not in self.params:
            hint = self.undeclared(expr.right.name, known.type)
            raise type_fault("T14", f"'${expr.right.name}' is not a parameter of this query", expr.right.span, hint)

    def plain_operand(self, expr: ast.Expr, scope: Scope) -> ir.Value:
        """Return an operand that is a value; a whole node is an error."""
        checked = self.operand(expr, scope)
        if isinstance(checked, ir.Entity):
            raise self.whole_node(expr)
        return checked

    def whole_node(self, expr: ast.Expr) -> Fault:
        hint = "compare one of its properties; for the same node, use the same variable in both places"
        return type_fault("T7", f"{self.text(expr)} is a whole node and cannot be compared", expr.span, hint)

    def operand(self, expr: ast.Expr, scope: Scope) -> ir.Value | ir.Entity:
        checked = self.of_group(expr, scope)
        assert not isinstance(checked, ir.ColumnRef)
        if isinstance(checked, ir.PathPart):
            raise no_value(self.text(expr), expr.span)
        if isinstance(checked, ir.Constructed):
            raise refuse_constructed(self, expr, checked)
        if isinstance(checked, ir.Rank):
            raise type_fault(
                None,
                f"unsupported expression in filter: {self.text(expr)} ranks rows, it does not select them",
                expr.span,
                "put it into 'order', with a 'limit'",
            )
        if isinstance(checked, ir.Aggregate):
            raise type_fault(None, "an aggregate is not allowed here", expr.span, "aggregates belong in 'return'")
        return checked

    def of_group(self, expr: ast.Expr, scope: Scope) -> ir.Expr:
        """Return an expression as a value of a group where the scope requires it."""
        known = scope.returned(expr)
        return known or scope.of_group(self.check(expr, scope.within(expr)), self.text(expr), expr.span)

    def comparison(self, expr: ast.CompareExpr, left: ir.Value, right: ir.Value) -> ir.CompareOp:
        """Return the comparison that `expr.op` denotes for these operands; T7 if there is none."""
        a, b = left.type, right.type
        if expr.op == "contains":
            if a.is_list and not b.is_list and compatible(a.item, b):
                return "contains_item"
            if a.is_text and b.is_text:
                return "contains_text"
            if not a.is_list and not a.is_text:
                raise self.t7(expr, left, right, "'contains' tests a list for an item, or a String for a substring")
        elif expr.op == "starts_with" or expr.op == "ends_with":
            if a.is_text and b.is_text:
                return expr.op
        elif expr.op in _ORDERED and compatible(a, b) and not a.is_list and a.scalar not in ("Vector", "Blob"):
            return cast(ir.CompareOp, expr.op)
        raise self.t7(expr, left, right)

    def t7(self, expr: ast.CompareExpr, left: ir.Value, right: ir.Value, hint: str | None = None) -> Fault:
        """Return the error for operands that cannot be compared."""
        for side, other in ((expr.left, right), (expr.right, left)):
            if hint is None and isinstance(side, ast.LiteralExpr):
                hint = literal_hint(side, other.type)
            if hint is None and left.type.is_list == right.type.is_list:
                hint = self.value_hint(side, other.type)
        in_match = not isinstance(expr.left, ast.WordExpr)
        if hint is None and in_match and left.type.is_list != right.type.is_list:
            whole, item = (expr.left, expr.right) if left.type.is_list else (expr.right, expr.left)
            hint = f"test for one item: '{self.text(whole)} contains {self.text(item)}'"
        one, other_one = self.shown(expr.left, left), self.shown(expr.right, right)
        if expr.op in ("contains", "starts_with", "ends_with"):
            return type_fault("T7", f"cannot apply '{expr.op}' to {one} and {other_one}", expr.span, hint)
        return type_fault("T7", f"cannot compare {one} with {other_one}", expr.span, hint)

    # -- functions -------------------------------------------------------------------------------

    def call(self, expr: ast.CallExpr, scope: Scope) -> ir.Expr:
        """Check a function call."""
        if expr.function == "now":
            return ir.ParamRef(ir.NOW, ir.DATETIME)
        if expr.function == "why":
            return ir.Why()
        if expr.function in TEXT:
            return check_text_match(self, expr, scope)
        if expr.function in AGGREGATE:
            return check_aggregate(self, expr, scope)
        if expr.function in PATH or (expr.function == "length" and path_variable(self, expr.arguments[0], scope)):
            return check_path_function(self, expr, scope)
        if expr.function in VALUE:
            return check_value_function(self, expr, scope)
        if expr.function in ENTITY:
            return check_entity_function(self, expr, scope)
        if expr.function == "nearest":
            return check_nearest(self, expr, scope)
        if expr.function == "bm25":
            return check_bm25(self, expr, scope)
        return check_rrf(self, expr, scope)

    def undeclared(self, name: str, type_: PropertyType) -> str:
        """Return the hint for an undeclared parameter where a value of this type is expected."""
        near = did_you_mean(name, self.params, prefix="$") if len(name) > 1 else None
        if near is not None or self.bare:
            return near or pass_value(name)
        plain = replace(type_, nullable=False, enum_values=None)
        return f"declare it in the query's parentheses: '${name}: {plain}'"

    def value_hint(self, expr: ast.Expr, wanted: PropertyType) -> str | None:
        """Return the hint for a parameter of a query without a head whose value has the wrong type."""
        if not self.bare or not isinstance(expr, ast.VarExpr) or expr.name not in self.params:
            return None
        return f"pass a value of type {replace(wanted, nullable=False, enum_values=None)} for '${expr.name}'"

    def refuse_blob(self, expr: ast.Expr, checked: ir.Expr) -> None:
        """T24: a query cannot read a Blob as a value."""
        if isinstance(checked.type, PropertyType) and checked.type.scalar == "Blob":
            hint = Hint(
                "blob(type_name, id, property) reads its bytes",
                cli="'omnigraph blob get TYPE ID PROPERTY' reads its bytes",
            )
            message = f"{self.text(expr)} is Blob, which a query cannot read as a value"
            raise type_fault("T24", message, expr.span, hint)

    # -- text for messages -----------------------------------------------------------------------

    def text(self, expr: ast.Expr) -> str:
        """Return the source text of an expression, truncated for messages."""
        text = " ".join(self.source.text[expr.span.start : expr.span.end].split())
        return text if len(text) <= 60 else text[:59] + "…"

    def shown(self, expr: ast.Expr, checked: ir.Expr | None = None) -> str:
        """Return the text of an expression with its type in parentheses."""
        if checked is None:
            assert isinstance(expr, ast.LiteralExpr | ast.ListExpr)
            checked = literal(expr)
        if isinstance(checked, ir.Entity):
            return f"{self.text(expr)} (a {checked.type_name} node)"
        return f"{self.text(expr)} ({checked.type})"

    def typed(self, expr: ast.Expr, checked: ir.Value) -> str:
        """Return the clause "text is type"."""
        return f"{self.text(expr)} is {checked.type}"


def _choices(type_: NodeType | EdgeType) -> str:
    if not type_.properties:
        return f"'{type_.name}' has no properties"
    return f"its properties are {listing(type_.properties)}"
