"""Type checker of valid time: the clause of a read, `end … at` and `update … valid from` (T43)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.query.check.errors import Silenced, type_fault
from omnigraph.query.check.expressions import ExpressionChecker
from omnigraph.query.check.resolved import ResolvedBlock
from omnigraph.query.check.scopes import BlockVariables, Scope
from omnigraph.query.plan import ir
from omnigraph.query.syntax import ast
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.schema.constraints import Valid
from omnigraph.suggestions import listing

_SCALARS = ("Date", "DateTime")


def check_valid(
    catalog: Catalog, expressions: ExpressionChecker, clause: ast.ValidClause, blocks: Iterable[ResolvedBlock]
) -> ir.ValidTime:
    """Return the valid time of a read whose match blocks are `blocks`."""
    ends = [expressions.attempt(_instant, expressions, one) for one in (clause.start, clause.end) if one is not None]
    if ends[0] is None or ends[-1] is None:
        raise Silenced
    if not any(name in _with_periods(catalog) for block in blocks for name in _types(catalog, block)):
        known = sorted(_with_periods(catalog))
        hint = f"types with '@valid' are {listing(known)}" if known else "declare @valid(from: …, to: …) in the schema"
        raise type_fault(
            "T43", "no type of the query has '@valid', so all its rows hold at all times", clause.span, hint
        )
    return ir.ValidTime(ends[0], ends[1] if len(ends) > 1 else None)


def _instant(expressions: ExpressionChecker, expr: ast.Expr) -> ir.Expr:
    """Return an instant: a constant or a parameter that is a Date or a DateTime."""
    checked = expressions.plain_operand(expr, Scope(BlockVariables()))
    type_ = checked.type
    if not isinstance(checked, ir.Const | ir.ParamRef):
        message = f"{expressions.text(expr)} is no instant"
        raise type_fault("T43", message, expr.span, "write a parameter, a date, a datetime or now()")
    if type_.is_list or type_.scalar not in _SCALARS or type_.nullable:
        message = f"an instant is a Date or a DateTime, not {expressions.shown(expr, checked)}"
        hint = "remove the '?' of the parameter" if type_.scalar in _SCALARS else None
        raise type_fault("T43", message, expr.span, hint)
    return checked


def _with_periods(catalog: Catalog) -> frozenset[str]:
    return frozenset(type_.name for type_ in catalog.tables() if type_.valid is not None)


def _types(catalog: Catalog, block: ResolvedBlock) -> Iterator[str]:
    """Yield the node and edge types that a block can read, those of nested blocks included."""
    for binding in block.bindings:
        yield from catalog.members(binding.type_name)
    for hop in (*block.hops, *(hop for path in block.paths for hop in path.hops)):
        for name in (hop.edge_type, *hop.also):
            edge = catalog.edges[name]
            yield from (name, edge.from_type, edge.to_type)
    for nested in (*block.negations, *(optional.block for optional in block.optionals)):
        yield from _types(catalog, nested)


def period_of(type_: NodeType | EdgeType, statement: ast.UpdateStatement | ast.EndStatement) -> Valid:
    """Return the period of the rows of a statement's type; T43 if the type has none."""
    if type_.valid is None:
        message = f"'{type_.name}' has no '@valid', so its rows have no period"
        raise type_fault("T43", message, statement.type.span, "declare @valid(from: …, to: …) on the type")
    return type_.valid


def check_valid_from(type_: NodeType | EdgeType, statement: ast.UpdateStatement) -> None:
    """T43: the statement sets the period, and a new row needs a key that connects it to the old one."""
    valid = period_of(type_, statement)
    for assign in statement.assigns:
        if assign.property.text in (valid.start, valid.end):
            message = f"'valid from' sets the period, so '{assign.property}' cannot be assigned"
            raise type_fault("T43", message, assign.property.span, "remove the assignment")
    if isinstance(type_, NodeType) and not type_.key:
        message = f"'{type_.name}' has no @key, so two rows cannot be periods of one node"
        raise type_fault("T43", message, statement.type.span, "declare a @key, or update the row without 'valid from'")
