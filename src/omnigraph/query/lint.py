"""Report on a file of queries against a schema, as data.

Each query is checked separately, so that one error does not hide another. `operation` describes the result of a valid
query and the types that it can read or change; a client generator or a permission check can use it without running the
query.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, assert_never

from omnigraph.errors import CompileError, Diagnostic, ParseError, TypeCheckError
from omnigraph.lang.spans import Source
from omnigraph.lang.utf16 import utf16_diagnostic
from omnigraph.query.check.typecheck import check_query
from omnigraph.query.plan import ir
from omnigraph.query.plan.ir.expressions import walk
from omnigraph.query.plan.lower import lower
from omnigraph.query.syntax import ast
from omnigraph.query.syntax.parser import parse_source
from omnigraph.schema.catalog import Catalog, NodeType
from omnigraph.schema.check import compile_schema
from omnigraph.schema.warnings import unknown_annotations
from omnigraph.suggestions import listing
from omnigraph.types import ListType, ObjectType, PropertyType, ResultType

Severity = Literal["error", "warning", "info"]
_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about the whole file, with a stable code."""

    severity: Severity
    code: str
    message: str
    type_name: str | None = None
    property: str | None = None
    query_names: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, with `type` and `property` if the finding concerns one."""
        data: dict[str, Any] = {"severity": self.severity, "code": self.code, "message": self.message}
        if self.type_name:
            data["type_name"] = self.type_name
        if self.property:
            data["property"] = self.property
        data["query_names"] = list(self.query_names)
        if self.diagnostics:
            data["diagnostics"] = [diagnostic.to_dict() for diagnostic in self.diagnostics]
        return data


@dataclass(frozen=True, slots=True)
class QueryReport:
    """The lint result of one query."""

    name: str
    kind: Literal["read", "mutation"]
    warnings: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    operation: Mapping[str, Any] | None = None

    @property
    def error(self) -> str | None:
        """The first error, in one line."""
        return self.diagnostics[0].headline if self.diagnostics else None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, with `error` and `diagnostics`, or with `operation`."""
        status = "error" if self.diagnostics else "ok"
        data: dict[str, Any] = {"name": self.name, "kind": self.kind, "status": status, "warnings": list(self.warnings)}
        if self.diagnostics:
            data["error"] = self.error
            data["diagnostics"] = [diagnostic.to_dict() for diagnostic in self.diagnostics]
        if self.operation is not None:
            data["operation"] = self.operation
        return data


@dataclass(frozen=True, slots=True)
class LintReport:
    """The lint result of a file."""

    schema_source: Mapping[str, str]
    query_path: str
    results: tuple[QueryReport, ...] = ()
    findings: tuple[Finding, ...] = field(default=())

    @property
    def errors(self) -> int:
        """The number of failed queries and error findings."""
        return sum(1 for result in self.results if result.diagnostics) + self._count("error")

    @property
    def warnings(self) -> int:
        """The number of warnings of queries and warning findings."""
        return sum(len(result.warnings) for result in self.results) + self._count("warning")

    @property
    def infos(self) -> int:
        """The number of info findings."""
        return self._count("info")

    @property
    def ok(self) -> bool:
        """True if there are no errors; warnings are allowed."""
        return self.errors == 0

    def _count(self, severity: Severity) -> int:
        return sum(1 for finding in self.findings if finding.severity == severity)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "status": "ok" if self.ok else "error",
            "schema_source": dict(self.schema_source),
            "query_path": self.query_path,
            "queries_processed": len(self.results),
            "errors": self.errors,
            "warnings": self.warnings,
            "infos": self.infos,
            "results": [result.to_dict() for result in self.results],
            "findings": [finding.to_dict() for finding in self.findings],
        }


def lint(catalog: Catalog, text: str, *, query_path: str, schema_source: Mapping[str, str]) -> LintReport:
    """Check every query of `text`; a syntax error gives one finding, Q000, and no results."""
    source = Source(text, query_path)
    try:
        tree, _ = parse_source(source)
    except ParseError as error:
        finding = Finding("error", "Q000", error.message, diagnostics=error.diagnostics)
        return LintReport(schema_source, query_path, findings=(finding,))
    results: list[QueryReport] = []
    plans: list[ir.AnyIR] = []
    seen: set[str] = set()
    for query in tree.queries:
        warnings = _warnings(query, seen)
        seen.add(query.name.text)
        kind: Literal["read", "mutation"] = "mutation" if query.is_mutation else "read"
        try:
            plan = lower(check_query(catalog, query, source))
        except TypeCheckError as error:
            results.append(QueryReport(query.name.text, kind, warnings, error.diagnostics))
        else:
            warnings += tuple(_plan_warnings(catalog, plan))
            plans.append(plan)
            results.append(QueryReport(query.name.text, kind, warnings, operation=describe_operation(catalog, plan)))
    findings = sorted(
        [*_never_set(catalog, plans), *_unknown_annotations(catalog), *_merged_counts(catalog, plans)],
        key=_finding_order,
    )
    return LintReport(schema_source, query_path, tuple(results), tuple(findings))


def lint_schema(text: str, *, query_path: str, schema_source: Mapping[str, str]) -> LintReport:
    """Check a schema text; an error gives one finding, S000, and the annotations without effect give warnings."""
    try:
        catalog = compile_schema(text, query_path)
    except CompileError as error:
        finding = Finding("error", "S000", error.message, diagnostics=error.diagnostics)
        return LintReport(schema_source, query_path, findings=(finding,))
    return LintReport(schema_source, query_path, findings=tuple(_unknown_annotations(catalog)))


def with_utf16_offsets(report: LintReport, text: str) -> LintReport:
    """Return a report on a text whose positions count UTF-16 code units, as editors and JavaScript do."""
    return replace(
        report,
        results=tuple(replace(each, diagnostics=_utf16(each.diagnostics, text)) for each in report.results),
        findings=tuple(replace(each, diagnostics=_utf16(each.diagnostics, text)) for each in report.findings),
    )


def _utf16(diagnostics: Iterable[Diagnostic], text: str) -> tuple[Diagnostic, ...]:
    return tuple(utf16_diagnostic(diagnostic, text) for diagnostic in diagnostics)


def _warnings(query: ast.QueryDefinition, seen: set[str]) -> tuple[str, ...]:
    warnings: list[str] = []
    if query.name.text in seen:
        warnings.append(f"an earlier query is also called '{query.name}', and a lookup by name finds that one")
    if query.is_mutation and not query.params:
        warnings.append("the mutation has no parameters: it writes the same thing every time")
    return tuple(warnings)


def _plan_warnings(catalog: Catalog, plan: ir.AnyIR) -> Iterable[str]:
    if isinstance(plan, ir.QueryIR):
        if (plan.skip or plan.skip_param) and not plan.order_by:
            yield "'skip' without 'order' skips arbitrary rows"
        for op in _flat(plan.pipeline):
            if isinstance(op, ir.Stage):
                yield from _stage_warnings(op.query)
            for hop in (op,) if isinstance(op, ir.Expand) else op.steps if isinstance(op, ir.FindPaths) else ():
                if hop.max_hops < hop.min_hops:
                    yield (
                        f"the hop over '{hop.edge_types[0]}' never matches: its ends are of different types, "
                        f"so it cannot be {hop.min_hops} long"
                    )
            if isinstance(op, ir.NodeScan) and not catalog.members(op.type_name):
                yield f"nothing matches: no node type implements {listing(op.type_name.split('|'))}"


def _stage_warnings(stage: ir.QueryIR) -> Iterable[str]:
    if stage.order_by:
        if stage.limit is None and not stage.limit_param and not stage.skip and not stage.skip_param:
            yield "the 'order' of a stage has no effect without 'limit' or 'skip'"
    elif stage.limit is not None or stage.limit_param or stage.skip or stage.skip_param:
        yield "'limit' and 'skip' of a stage without 'order' keep arbitrary rows"


def _finding_order(finding: Finding) -> tuple[int, str, str, str]:
    severity = _SEVERITIES.index(finding.severity)
    return severity, finding.type_name or "", finding.property or "", finding.message


def _never_set(catalog: Catalog, plans: Iterable[ir.AnyIR]) -> Iterable[Finding]:
    """L201: nullable properties of an updated type that no update sets."""
    updates: dict[tuple[bool, str], tuple[set[str], set[str]]] = {}
    for plan in plans:
        if isinstance(plan, ir.MutationIR):
            for op in plan.ops:
                if isinstance(op, ir.UpdateNodes | ir.UpdateEdges):
                    names, assigned = updates.setdefault((isinstance(op, ir.UpdateNodes), op.type_name), (set(), set()))
                    names.add(plan.name)
                    assigned.update(name for name, _ in op.values)
    for (is_node, type_name), (names, assigned) in updates.items():
        type_ = catalog.nodes[type_name] if is_node else catalog.edges[type_name]
        key = type_.key if isinstance(type_, NodeType) else ()
        for property_ in type_.properties.values():
            settable = property_.type.nullable and property_.name not in key and property_.embed is None
            if settable and property_.name not in assigned:
                yield Finding(
                    "warning",
                    "L201",
                    f"no update sets the nullable property '{type_name}.{property_.name}'",
                    type_name,
                    property_.name,
                    tuple(sorted(names)),
                )


def _unknown_annotations(catalog: Catalog) -> Iterable[Finding]:
    """L202: annotations that the schema language does not define; they are stored and have no effect."""
    for found in unknown_annotations(catalog):
        yield Finding("warning", "L202", found.message, found.type_name, found.property_name)


def _merged_counts(catalog: Catalog, plans: Iterable[ir.AnyIR]) -> Iterable[Finding]:
    """L301: counts of rows of which a hop merges several edges; SQL and Cypher count the edges."""
    for plan in plans:
        if isinstance(plan, ir.QueryIR):
            for level in _levels(plan):
                hop = next((hop for hop in _row_hops(level) if _merges_edges(catalog, hop, plan.valid)), None)
                if hop is not None and any(_counts_rows(expr) for expr in level.group_exprs):
                    yield Finding("warning", "L301", _merged_text(catalog, plan, hop), query_names=(plan.name,))


def _levels(query: ir.QueryIR) -> Iterable[ir.QueryIR]:
    """Yield a query and its stages."""
    yield query
    for op in query.pipeline:
        if isinstance(op, ir.Stage):
            yield from _levels(op.query)


def _row_hops(query: ir.QueryIR) -> Iterable[ir.Expand]:
    """Yield the hops that extend the rows of a query, those of a stage that groups no rows included."""
    for op in (op for op in query.pipeline if isinstance(op, ir.Stage) and not op.query.is_aggregate):
        yield from _row_hops(op.query)
    yield from _hops(query.pipeline)


def _hops(pipeline: ir.Pipeline) -> Iterable[ir.Expand]:
    for op in pipeline:
        if isinstance(op, ir.Expand):
            yield op
        elif isinstance(op, ir.LeftJoin):
            yield from _hops(op.inner)


def _merges_edges(catalog: Catalog, hop: ir.Expand, valid: ir.ValidTime | None) -> bool:
    """Return True if several edges or paths can lead from one node to another, and the hop has one row for them."""
    if hop.edge_var is not None or hop.max_hops < hop.min_hops:
        return False
    if hop.max_hops > 1 or hop.direction == "both":
        return True
    edges = [catalog.edges[name] for name in hop.edge_types]
    if len({(edge.from_type, edge.to_type) for edge in edges}) < len(edges):
        return True
    has_periods = valid is None or valid.end is not None
    return any(edge.can_repeat or (has_periods and edge.valid is not None) for edge in edges)


def _counts_rows(expr: ir.Expr) -> bool:
    return any(isinstance(part, ir.Aggregate) and part.function == "count" and not part.distinct for part in walk(expr))


def _merged_text(catalog: Catalog, plan: ir.QueryIR, hop: ir.Expand) -> str:
    left, right = (hop.dst_var, hop.src_var) if hop.backward else (hop.src_var, hop.dst_var)
    word = "|".join(catalog.edges[name].word for name in hop.edge_types)
    if hop.max_hops > 1:
        more = "a 'path' has one row for each route"
    elif hop.also:
        more = "edges of several types between two nodes are one row"
    elif hop.direction == "both":
        more = "edges in both directions between two nodes are one row"
    else:
        more = f"'${left} $e:{word} ${right}' has one row for each edge, as in SQL and Cypher"
    return f"'count' in query '{plan.name}' counts each '${right}' once for each '${left}' of '{word}'; {more}"


# -- operation descriptors ---------------------------------------------------------------------------


def describe_operation(catalog: Catalog, plan: ir.AnyIR) -> dict[str, Any]:
    """Return a description of the result of a query and of the types that it can read and change."""
    reads: set[tuple[str, str]] = set()
    writes: set[tuple[str, str]] = set()
    if isinstance(plan, ir.QueryIR):
        result = [_result(column.name, column.type) for column in plan.columns]
        for op in _flat(plan.pipeline):
            if isinstance(op, ir.NodeScan):
                reads |= {("node", member) for member in catalog.members(op.type_name)}
            elif isinstance(op, ir.Expand | ir.FindPaths):
                for edge in (catalog.edges[edge_type] for edge_type in op.edge_types):
                    reads |= {("edge", edge.name), ("node", edge.from_type), ("node", edge.to_type)}
    else:
        counts = PropertyType("U64")
        result = [_result(column.name, column.type) for column in plan.columns]
        result = result or [_result("affected_nodes", counts), _result("affected_edges", counts)]
        for change in plan.ops:
            touched = _touched(catalog, change)
            reads |= touched[0]
            writes |= touched[1]
    return {"result": result, "reads": _listed(reads), "writes": _listed(writes)}


def _touched(catalog: Catalog, op: ir.MutationOp) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Return the (kind, type) pairs that an operation reads and writes."""
    kind = "edge" if isinstance(op, ir.InsertEdge | ir.UpdateEdges | ir.DeleteEdges) else "node"
    target = {(kind, op.type_name)}
    if isinstance(op, ir.InsertEdge):
        edge = catalog.edges[op.type_name]
        return target | {("node", edge.from_type), ("node", edge.to_type)}, target
    if isinstance(op, ir.DeleteNodes | ir.UnifyNodes):
        cascade = {("edge", edge.name) for edge in catalog.edges_touching[op.type_name]}
        return target | cascade, target | cascade
    return target, target


def _listed(pairs: set[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"kind": kind, "type_name": name} for kind, name in sorted(pairs)]


def _result(name: str, type_: ResultType) -> dict[str, Any]:
    return {"name": name, **_described(type_)}


def _described(type_: ResultType) -> dict[str, Any]:
    """Return a description of a type: the fields of an object, the item of a list of lists or objects."""
    data: dict[str, Any] = {"kind": _kind(type_)}
    match type_:
        case ObjectType():
            data["fields"] = [_result(name, field) for name, field in type_.fields]
        case ListType():
            data |= {"item_kind": _kind(type_.item), "item": _described(type_.item)}
        case PropertyType():
            if type_.is_list:
                data["item_kind"] = type_.kind.result_kind
            if type_.dim is not None:
                data["vector_dim"] = type_.dim
        case _:
            assert_never(type_)
    data["nullable"] = type_.nullable
    return data


def _kind(type_: ResultType) -> str:
    if isinstance(type_, ObjectType):
        return "object"
    return "list" if isinstance(type_, ListType) or type_.is_list else type_.kind.result_kind


def _flat(pipeline: ir.Pipeline) -> Iterable[ir.Op]:
    for op in pipeline:
        yield op
        if isinstance(op, ir.AntiJoin | ir.LeftJoin):
            yield from _flat(op.inner)
        elif isinstance(op, ir.Stage):
            yield from _flat(op.query.pipeline)
