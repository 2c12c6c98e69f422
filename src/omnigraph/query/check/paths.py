"""Types of paths: their hops (T36), their weight (T37), and the functions of a path."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.spans import Name, Span
from omnigraph.query.check.entities import node_object
from omnigraph.query.check.errors import Silenced, type_fault
from omnigraph.query.check.resolved import ResolvedHop, ResolvedPath
from omnigraph.query.check.scopes import PathType, Scope, Variable
from omnigraph.query.plan import ir
from omnigraph.query.syntax import ast
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, union_name
from omnigraph.suggestions import did_you_mean, listing
from omnigraph.types import ListType, ObjectType, PropertyType, ResultType

if TYPE_CHECKING:
    from omnigraph.query.check.expressions import ExpressionChecker


# -- the clause --------------------------------------------------------------------------------------


def check_path(catalog: Catalog, path: ast.PathClause, hops: Sequence[ResolvedHop], variable: Variable) -> ResolvedPath:
    """Return a path whose hops are valid, and store the types of its nodes and edges in the variable."""
    _refuse_edge_variables(path)
    _connect(path)
    if path.kind != "path":
        _one_hop(path, hops)
    edges = dict.fromkeys(edge for hop in hops for edge in (hop.edge_type, *hop.also))
    nodes = dict.fromkeys(end for name in edges for end in (catalog.edges[name].from_type, catalog.edges[name].to_type))
    if path.by is not None:
        _weigh(path, path.by, [catalog.edges[name] for name in edges])
    variable.path = PathType(
        _objects([catalog.nodes[name] for name in nodes]),
        _objects([catalog.edges[name] for name in edges]),
        path.by is not None,
        union_name(nodes),
    )
    return ResolvedPath(variable.ir_name, path.kind, tuple(hops), path.by.text if path.by else None)


def path_node_type(catalog: Catalog, step: ast.StepClause, clause: ast.PathClause | None, variable: Variable) -> str:
    """Return the type of the nodes of a path: the node types at the ends of its edges.

    `clause` is the path if it belongs to the same block. Then its hops are not resolved yet, so they must name their
    edges.
    """
    if clause is None:
        return _known(variable).node_type
    edges = []
    for name in (name for hop in clause.hops for name in (hop.edge, *hop.also)):
        if name.text == ast.ANY_EDGE:
            hint = "name the edges of the path, or write the steps into an 'optional' block below it"
            message = f"the nodes of '${step.path}' can have any type here"
            raise type_fault("T36", message, step.path.span, hint)
        edge = catalog.find_edge(name.text)
        if edge is None:
            raise Silenced  # reported by the hop
        edges.append(edge)
    return union_name({end for edge in edges for end in (edge.from_type, edge.to_type)})


def _refuse_edge_variables(path: ast.PathClause) -> None:
    for hop in path.hops:
        if hop.edge_var is not None:
            hint = f"'edges(${path.var})' has the edges of the path"
            raise type_fault("T36", "a hop of a path names no edge", hop.edge_var.span, hint)


def _connect(path: ast.PathClause) -> None:
    """Check that each hop starts where the previous one ends, and that no node is repeated."""
    for one, other in pairwise(path.hops):
        if one.right.text != other.left.text:
            hint = f"the next hop of the path begins at '${one.right}'"
            raise type_fault("T36", f"the path is at '${one.right}', not at '${other.left}'", other.left.span, hint)
        if one.right.text == ast.ANONYMOUS:
            hint = "give the node between them a name"
            raise type_fault("T36", "each '$_' is a different node, so the hops do not connect", other.left.span, hint)
    seen = {path.hops[0].left.text}
    for hop in path.hops:
        if hop.right.text in seen and hop.right.text != ast.ANONYMOUS:
            message = f"a path visits no node twice, so it cannot return to '${hop.right}' again"
            raise type_fault("T36", message, hop.right.span, "for a closed walk, write the hops without a path")
        seen.add(hop.right.text)


def _one_hop(path: ast.PathClause, hops: Sequence[ResolvedHop]) -> None:
    if len(hops) > 1:
        hint = "find the path over one of them, or 'path' over all"
        raise type_fault("T36", f"'{path.kind}' takes one hop, not {len(hops)}", path.hops[1].span, hint)
    (hop,) = path.hops
    if hop.bounds is not None and hop.bounds.min != 1:
        hint = f"write {{1,{hop.bounds.max}}} and ask for the length: length(${path.var}) >= {hop.bounds.min}"
        raise type_fault("T36", "the shortest path may have any length from 1", hop.bounds.span, hint)


def _weigh(path: ast.PathClause, by: Name, edges: Sequence[EdgeType]) -> None:
    if path.kind == "path":
        hint = "drop 'by', or write 'shortest'"
        raise type_fault("T37", "'path' finds every path and takes no weight", by.span, hint)
    for edge in edges:
        found = edge.properties.get(by.text)
        numbers = [prop.name for prop in edge.properties.values() if prop.type.is_numeric]
        hint = f"its numbers are {listing(numbers)}" if numbers else f"'{edge.name}' has no numbers"
        if found is None:
            hint = did_you_mean(by.text, numbers) or hint
            raise type_fault("T37", f"edge type '{edge.name}' has no property '{by}'", by.span, hint)
        if not found.type.is_numeric:
            raise type_fault("T37", f"'{edge.name}.{by}' is {found.type}; a weight must be a number", by.span, hint)


def _objects(types: Sequence[NodeType | EdgeType]) -> ObjectType:
    """Return the object type of the nodes or edges of a path that can be of these types."""
    first = types[0]
    if isinstance(first, NodeType) and len(types) == 1:
        return node_object(first)
    system = ("id", "type") if isinstance(first, NodeType) else ("id", "type", "from", "to")
    fields: list[tuple[str, ResultType]] = [(name, ir.STRING) for name in system]
    for name in sorted({name for type_ in types for name in type_.properties} - {"type"}):
        found = [type_.properties[name].type for type_ in types if name in type_.properties]
        shared = _shared(found)
        if shared is not None:
            missing = len(found) < len(types) or any(type_.nullable for type_ in found)
            fields.append((name, shared.with_nullable(missing)))
    return ObjectType(tuple(fields), name=first.name if len(types) == 1 else None)


def _shared(types: Sequence[PropertyType]) -> PropertyType | None:
    """Return the common type of properties of one name; None if there is none, or if they are Blobs."""
    plain = list(dict.fromkeys(type_.with_nullable(False) for type_ in types))
    if len(plain) == 1:
        return None if plain[0].scalar == "Blob" else plain[0]
    if all(type_.is_text for type_ in plain):
        return ir.STRING
    if not all(type_.is_numeric for type_ in plain):
        return None
    if any(type_.is_float for type_ in plain):
        return ir.F64
    unsigned = [type_.scalar in ("U32", "U64") for type_ in plain]
    wide = PropertyType("U64") in plain
    return None if wide and not all(unsigned) else PropertyType("U64") if all(unsigned) else ir.I64


# -- functions ---------------------------------------------------------------------------------------


def path_variable(checker: ExpressionChecker, expr: ast.Expr, scope: Scope) -> Variable | None:
    """Return the path that a bare variable names; None for any other expression."""
    if not isinstance(expr, ast.VarExpr) or expr.name in checker.params or scope.row is not None:
        return None
    variable = scope.find(expr.name)
    if variable is None or variable.kind != "path":
        return None
    return scope.get(Name(expr.name, expr.span))


def path_value(variable: Variable) -> ir.PathPart:
    """Return a whole path: its nodes, its edges, its length, and its weight if it has one."""
    path = _known(variable)
    fields: list[tuple[str, ResultType]] = [
        ("nodes", ListType(path.nodes)),
        ("edges", ListType(path.edges)),
        ("length", ir.I64),
    ]
    if path.weighted:
        fields.append(("weight", ir.F64))
    return ir.PathPart(variable.ir_name, "path", ObjectType(tuple(fields), variable.optional, "path"))


def check_path_function(checker: ExpressionChecker, expr: ast.CallExpr, scope: Scope) -> ir.Expr:
    """Check `length`, `weight`, `nodes` and `edges` of a path."""
    argument = expr.arguments[0]
    variable = path_variable(checker, argument, scope)
    if variable is None:
        checker.check(argument, scope)
        hint = "a path is named by '$p: path { $a edge{1,3} $b }'"
        raise type_fault(
            "T36", f"'{expr.function}' needs a path, which {checker.text(argument)} is not", expr.span, hint
        )
    path = _known(variable)
    if len(expr.arguments) == 2:
        return _listed(checker, expr, variable, path.nodes if expr.function == "nodes" else path.edges)
    match expr.function:
        case "length":
            return length_of(variable)
        case "weight":
            if not path.weighted:
                hint = f"give it a weight: '${variable.name}: shortest {{ … }} by property'"
                raise type_fault("T37", f"'${variable.name}' has no weight", expr.span, hint)
            return ir.Prop(variable.ir_name, ir.WEIGHT, ir.F64.with_nullable(variable.optional))
        case "nodes":
            return ir.PathPart(variable.ir_name, "nodes", ListType(path.nodes, variable.optional))
        case _:
            return ir.PathPart(variable.ir_name, "edges", ListType(path.edges, variable.optional))


def _listed(checker: ExpressionChecker, expr: ast.CallExpr, variable: Variable, item: ObjectType) -> ir.Prop:
    """Return a property of each node or edge of a path as a list."""
    wanted = expr.arguments[1]
    fields = {name: type_ for name, type_ in item.fields if isinstance(type_, PropertyType)}
    plain = [name for name, type_ in fields.items() if not type_.is_list and type_.scalar != "Vector"]
    if not isinstance(wanted, ast.WordExpr):
        message = f"'{expr.function}' takes the name of a property, which {checker.text(wanted)} is not"
        raise type_fault("T36", message, wanted.span, f"write {expr.function}(${variable.name}, property)")
    if wanted.name not in plain:
        hint = did_you_mean(wanted.name, plain) or f"they have {listing(plain)}"
        message = f"the {expr.function} of '${variable.name}' have no property '{wanted.name}'"
        if wanted.name in fields:
            message = f"'{wanted.name}' is {fields[wanted.name]}, and a list cannot hold lists"
        raise type_fault("T36", message, wanted.span, hint)
    type_ = PropertyType(fields[wanted.name].scalar, nullable=variable.optional, is_list=True)
    return ir.Prop(variable.ir_name, ir.path_property(expr.function, type_.scalar, wanted.name), type_)


def length_of(variable: Variable) -> ir.Prop:
    """Return the number of edges of a path; null if and only if an optional path is absent."""
    return ir.Prop(variable.ir_name, ir.LENGTH, ir.I64.with_nullable(variable.optional))


def no_value(text: str, span: Span) -> Fault:
    """T36: a path, or the list of its nodes or edges, where a value is expected."""
    hint = "'length' is the number of its edges; its nodes and edges can be returned"
    message = f"{text} holds nodes or edges of a path, which cannot be compared, computed with or grouped by"
    return type_fault("T36", message, span, hint)


def _known(variable: Variable) -> PathType:
    if variable.path is None:
        raise Silenced
    return variable.path
