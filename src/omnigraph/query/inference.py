"""Types of the parameters of a query without a head, inferred from the properties they are compared with or assigned
to.

A value alone does not always determine its type: `1980-01-01` in JSON is a text, and `29` on a command line can be a
text or a number, and a list of numbers can be a vector. If every use of such a parameter involves a property of one
type, the parameter has that type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace

from omnigraph.lang.spans import Name
from omnigraph.query.functions import TEXT
from omnigraph.query.params import refuse_unknown
from omnigraph.query.syntax import ast
from omnigraph.schema.catalog import Catalog

_ENDS = ("from", "to")
_Types = Mapping[str, tuple[str, ...]]
"""Variable → names of the types that it can have."""


def infer_params(
    catalog: Catalog, query: ast.QueryDefinition, declared: tuple[ast.Param, ...]
) -> tuple[ast.Param, ...]:
    """Return the parameters with the types of the properties they are used with, if their values can be read as these
    types. A parameter that the query does not use raises `ParameterError`.
    """
    if declared:
        refuse_unknown([param.name.text for param in declared], free_variables(query))
    if not any(param.alternatives for param in declared):
        return declared
    met: dict[str, set[str]] = {}
    for name, scalar in _uses(_Walk(catalog, _variables(catalog, query)), query.body):
        met.setdefault(name, set()).add(scalar)
    return tuple(_inferred(param, met.get(param.name.text, set())) for param in declared)


def free_variables(query: ast.QueryDefinition) -> frozenset[str]:
    """Return the variables that a query uses as values and does not bind: the parameters of one without a head."""
    used: set[str] = set()
    bound: set[str | None] = set()
    for node in _nodes(query.body):
        match node:
            case ast.VarExpr(name=name):
                used.add(name)
            case ast.BindingClause(var=var) | ast.PathClause(var=var):
                bound.add(var.text)
            case ast.HopClause(left=left, right=right, edge_var=edge):
                bound |= {left.text, right.text, None if edge is None else edge.text}
            case ast.StepClause(left=left, right=right):
                bound |= {left.text, right.text}
    return frozenset(used - bound)


def _inferred(param: ast.Param, met: set[str]) -> ast.Param:
    if len(met) != 1:
        return param
    scalar, _, dim = next(iter(met)).rstrip(")").partition("(")
    if scalar not in param.alternatives:
        return param
    if scalar == "Vector":
        # Its dimension is that of the property, so that the plan does not depend on the length of the value.
        return replace(param, type_name=Name(scalar), is_list=False, dim=int(dim))
    return replace(param, type_name=Name(scalar))


def _variables(catalog: Catalog, query: ast.QueryDefinition) -> _Types:
    """Return the types of the variables: those of a binding, else the endpoint types of the edges."""
    bound: dict[str, tuple[str, ...]] = {}
    ends: dict[str, tuple[str, ...]] = {}
    for node in _nodes(query.body):
        if isinstance(node, ast.BindingClause):
            bound[node.var.text] = (node.type.text, *(name.text for name in node.also))
        elif isinstance(node, ast.HopClause):
            found = [catalog.find_edge(name.text) for name in (node.edge, *node.also)]
            edges = [edge for edge in found if edge is not None]
            if node.edge_var is not None:
                bound[node.edge_var.text] = tuple(edge.name for edge in edges)
            at_ends = tuple(end for edge in edges for end in (edge.from_type, edge.to_type))
            ends |= {node.left.text: at_ends, node.right.text: at_ends}
    return ends | bound


class _Walk:
    """Looks up the scalar types of properties."""

    def __init__(self, catalog: Catalog, variables: _Types) -> None:
        self._types = {**catalog.interfaces, **catalog.edges, **catalog.nodes}
        self._variables = variables

    def of_type(self, type_name: str, property_: str) -> str | None:
        """Return the scalar type of a property; a vector has its dimension, as in `Vector(3)`."""
        type_ = self._types.get(type_name)
        found = type_.properties.get(property_) if type_ is not None else None
        if found is None:
            return None
        return f"Vector({found.type.dim})" if found.type.scalar == "Vector" else found.type.scalar

    def of_period(self, names: tuple[str, ...] = ()) -> str | None:
        """Return the scalar type of instants that periods of some types, or of all types, are compared with."""
        types = [self._types[name] for name in names if name in self._types] if names else self._types.values()
        starts = {type_.properties[type_.valid.start].type.scalar for type_ in types if type_.valid is not None}
        return "Date" if starts == {"Date"} else "DateTime" if starts else None

    def of_expr(self, expr: ast.Expr, row: str | None) -> str | None:
        """Return the scalar type of `$x.p`, of a bare property name, or of `id($x)`; None if it is not unique."""
        if isinstance(expr, ast.PropertyExpr):
            types = self._variables.get(expr.var.text, ())
            scalars = {self.of_type(name, expr.property.text) for name in types} - {None}
            return scalars.pop() if len(scalars) == 1 else None
        if isinstance(expr, ast.WordExpr) and row is not None:
            return self.of_type(row, expr.name) or ("String" if expr.name in _ENDS else None)
        return "String" if isinstance(expr, ast.CallExpr) and expr.function == "id" else None


def _uses(walk: _Walk, node: object, row: str | None = None) -> Iterator[tuple[str, str]]:
    """Yield each parameter that is used with a property, and the scalar type of the property; `row` is the type of a
    statement.
    """
    match node:
        case ast.BindingClause():
            for match_ in node.matches:
                yield from _pair(match_.value, walk.of_type(node.type.text, match_.property.text))
            return
        case (
            ast.InsertStatement()
            | ast.UpdateStatement()
            | ast.EndStatement()
            | ast.DeleteStatement()
            | ast.UpsertStatement()
        ):
            row = node.type.text
            if isinstance(node, ast.UpdateStatement | ast.EndStatement):
                instant = node.valid_from if isinstance(node, ast.UpdateStatement) else node.at
                if instant is not None:
                    yield from _pair(instant, walk.of_period((row,)))
        case ast.ValidClause():
            for instant in (node.start, node.end):
                if instant is not None:
                    yield from _pair(instant, walk.of_period())
        case ast.UnifyStatement():
            row = node.type.text
            for id_ in (node.drop, node.keep):
                yield from _pair(id_, "String")
        case ast.Assign():
            yield from _pair(node.value, walk.of_expr(ast.WordExpr(node.property.text), row))
        case ast.CompareExpr():
            yield from _pair(node.right, walk.of_expr(node.left, row))
            yield from _pair(node.left, walk.of_expr(node.right, row))
        case ast.CallExpr() if node.function in TEXT | {"bm25"}:
            yield from _pair(node.arguments[1], "String")
    for part in _parts(node):
        yield from _uses(walk, part, row)


def _pair(value: ast.Expr, scalar: str | None) -> Iterator[tuple[str, str]]:
    if isinstance(value, ast.VarExpr) and scalar is not None:
        yield value.name, scalar


def _nodes(node: object) -> Iterator[object]:
    yield node
    for part in _parts(node):
        yield from _nodes(part)


def _parts(node: object) -> Iterator[object]:
    if isinstance(node, tuple):
        yield from node
    elif is_dataclass(node):
        yield from (getattr(node, part.name) for part in fields(node))
