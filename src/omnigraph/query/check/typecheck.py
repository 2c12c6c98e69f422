"""Type checker of queries: syntax tree in, checked query or all errors out.

`check_query` checks the parameters, then each part of a read (`stages`): the match block (`match_block`) and the result
(`results`), or the statements of a mutation (`mutations`). The codes T1, T2, … name the violated rule. An error is
reported once; constructs that depend on it are skipped.
"""

from __future__ import annotations

from omnigraph.lang.diagnostics import Fault, Reporter
from omnigraph.lang.spans import Source
from omnigraph.query.check.errors import type_fault
from omnigraph.query.check.expressions import ExpressionChecker, Report
from omnigraph.query.check.mutations import MutationChecker
from omnigraph.query.check.resolved import ResolvedRead
from omnigraph.query.check.results import Results
from omnigraph.query.check.stages import check_read
from omnigraph.query.plan import ir
from omnigraph.query.syntax import ast
from omnigraph.schema.catalog import Catalog
from omnigraph.suggestions import did_you_mean
from omnigraph.types import SCALARS, VECTOR_DIM_MAX, PropertyType, foreign_type


def check_query(catalog: Catalog, query: ast.QueryDefinition, source: Source) -> ResolvedRead | ir.MutationIR:
    """Return the checked query, or raise `TypeCheckError` with all errors."""
    reporter = Reporter(source)

    def report(fault: Fault) -> None:
        reporter.add(fault, subject=f"query '{query.name}'")

    params = _params(query, report)
    known = {name: type_ for name, type_ in params.items() if type_ is not None}
    declared = tuple(ir.ParamDecl(name, type_) for name, type_ in known.items())
    expressions = ExpressionChecker(catalog, params, source, report, bare=query.is_bare)
    checked: ResolvedRead | ir.MutationIR
    if isinstance(query.body, ast.Write):
        mutation = MutationChecker(catalog, expressions)
        ops = mutation.check(query, query.body)
        returned = mutation.named.valid_items(query.body, expressions.report)
        columns = Results(expressions, mutation.named.scope(), ast.Read((), tuple(returned))).columns()
        checked = ir.MutationIR(query.name.text, declared, ops, tuple(columns))
    else:
        checked = check_read(catalog, expressions, query.name.text, declared, query.body)
    reporter.raise_if_any()
    return checked


def _params(query: ast.QueryDefinition, report: Report) -> dict[str, PropertyType | None]:
    """Return the type of each parameter; None if its declaration has an error."""
    params: dict[str, PropertyType | None] = {}
    for param in query.params:
        name = param.name.text
        try:
            if name in params:
                raise type_fault(None, f"parameter '${name}' is declared twice", param.name.span)
            params[name] = None
            if name == ir.NOW:
                raise type_fault(None, f"'${name}' is reserved", param.name.span, "write now() where it is needed")
            params[name] = _param_type(param)
        except Fault as fault:
            report(fault)
    return params


def _param_type(param: ast.Param) -> PropertyType:
    name = param.type_name.text
    if param.dim is not None:
        if not 1 <= param.dim <= VECTOR_DIM_MAX:
            raise type_fault(None, f"a vector has 1 to {VECTOR_DIM_MAX} dimensions", param.span)
        return PropertyType("Vector", dim=param.dim, nullable=param.nullable)
    for scalar in SCALARS:
        if scalar == name and not (param.is_list and name == "Blob"):
            return PropertyType(scalar, is_list=param.is_list, nullable=param.nullable)
    if param.is_list and name in ("Blob", "Vector"):
        raise type_fault(None, f"a list parameter cannot hold {name}", param.type_name.span, "it holds plain scalars")
    meant = foreign_type(name)
    hint = f"write {meant}" if meant else did_you_mean(name, SCALARS)
    hint = hint or f"the types are {', '.join(SCALARS)}, Vector(n) and lists of scalars"
    raise type_fault(None, f"a parameter cannot be of type '{param.type_name}'", param.type_name.span, hint)
