"""Plan as readable text.

One line per operation in execution order, indented inside a nested pipeline. Conditions behind `where` run inside the
operation; a condition on its own line filters whole rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, assert_never

from omnigraph.lang.comment_printer import quote
from omnigraph.query.plan import ir

_OPS = {"contains_item": "contains", "contains_text": "contains"}
_WIDTH_MAX = 90

LineSubject = ir.Op | str
"""The subject of a line of a plan: an operation, or the first word of the line."""
LineNote = Callable[[LineSubject], str]
"""Returns the note beside a line."""


def explain(plan: ir.AnyIR, note: LineNote | None = None) -> str:
    """Return the plan as text that ends with a newline; with `note`, with a column of notes."""
    head, lines = head_of(plan), lines_of(plan)
    if note is None:
        return "\n".join([head, *(text for text, _ in lines)]) + "\n"
    width = min(max(len(text) for text, _ in lines), _WIDTH_MAX)
    noted = [f"{text:<{width}}  {note(part)}".rstrip() for text, part in lines]
    return "\n".join([f"{head:<{width}}  {note('')}".rstrip(), *noted]) + "\n"


_Line = tuple[str, LineSubject]


def head_of(plan: ir.AnyIR) -> str:
    """Return the first line of a plan."""
    params = ", ".join(f"${param.name}: {param.type}" for param in plan.params)
    return f"{'change' if isinstance(plan, ir.MutationIR) else 'query'} {plan.name}({params})"


def lines_of(plan: ir.AnyIR) -> list[tuple[str, LineSubject]]:
    """Return the lines of a plan after the first, each with its subject; two spaces indent a level."""
    return _mutation(plan) if isinstance(plan, ir.MutationIR) else _read(plan)


def _read(plan: ir.QueryIR, depth: int = 1, result: str = "return", stage: str = "") -> list[_Line]:
    """Return the lines of a query; the subjects of the lines of a stage end with its variable."""

    def line(word: str, rest: str) -> _Line:
        return _line(depth, word, rest, word + stage)

    lines = [] if plan.valid is None else [line("valid", _valid(plan.valid))]
    lines += _pipeline(plan.pipeline, depth)
    groups = plan.group_exprs
    keys = [expr for expr in groups if not isinstance(expr, ir.Aggregate)]
    if plan.distinct and len(keys) == len(groups):
        lines.append(line("distinct", "rows"))
    elif plan.is_aggregate:
        lines.append(line("group", "by " + ", ".join(map(_expr, keys)) if keys else "all rows"))
    for key in plan.order_by[:1]:
        if isinstance(key.expr, ir.Nearest | ir.Bm25 | ir.Rrf):
            lines.append(line("rank", f"${_rank_var(key.expr)} by {_expr(key.expr)}, best first"))
    if plan.having:
        having = [_expr(_expanded(condition, groups), 2 if len(plan.having) > 1 else 0) for condition in plan.having]
        lines.append(line("having", " and ".join(having)))
    shown = [_column(column, groups) for column in plan.columns]
    lines.append(line(result, ", ".join(shown)))
    ranks = (ir.Nearest, ir.Bm25, ir.Rrf)
    order = [_sort_key(key, plan, groups) for key in plan.order_by if not isinstance(key.expr, ranks)]
    if order:
        lines.append(line("order", ", ".join(order)))
    if plan.skip or plan.skip_param:
        lines.append(line("skip", f"${plan.skip_param}" if plan.skip_param else str(plan.skip)))
    if plan.limit is not None or plan.limit_param:
        lines.append(line("limit", f"${plan.limit_param}" if plan.limit_param else str(plan.limit)))
    return lines


def _pipeline(pipeline: ir.Pipeline, depth: int) -> list[_Line]:
    lines: list[_Line] = []
    for op in pipeline:
        match op:
            case ir.NodeScan():
                lines.append(_line(depth, "scan", f"${op.var}: {op.type_name}{_where(op.filters)}", op))
            case ir.Expand():
                lines.append(_line(depth, "check" if op.dst_bound else "expand", _expand(op), op))
            case ir.FindPaths():
                lines.append(_line(depth, "path" if op.kind == "path" else "shortest", _find_paths(op), op))
            case ir.PathSteps():
                lines.append(_line(depth, "steps", _path_steps(op), op))
            case ir.Filter():
                lines.append(_line(depth, "filter", _expr(op.condition), op))
            case ir.AntiJoin():
                outer = ", ".join(map(_outer, op.outer_vars))
                how = f"a match, found once for all {outer}:" if op.independent else f"any match, for each {outer}:"
                lines.append(_line(depth, "without", how, op))
                lines += _pipeline(op.inner, depth + 1)
            case ir.LeftJoin():
                outer = ", ".join(map(_outer, op.outer_vars))
                how = f"matches, found once for all {outer}:" if op.independent else f"matches, for each {outer}:"
                lines.append(_line(depth, "optional", how, op))
                lines += _pipeline(op.inner, depth + 1)
            case ir.InnerJoin():
                outer = ", ".join(map(_outer, op.outer_vars))
                lines.append(_line(depth, "join", f"matches, found once for all {outer}:", op))
                lines += _pipeline(op.inner, depth + 1)
            case ir.Stage():
                lines.append(_line(depth, "stage", f"{', '.join(f'${name}' for name in _carried(op))}, from:", op))
                lines += _read(op.query, depth + 1, "with", op.var)
            case _:
                assert_never(op)
    return lines


def _valid(valid: ir.ValidTime) -> str:
    return f"at {_expr(valid.start)}" if valid.end is None else f"during {_expr(valid.start)}, {_expr(valid.end)}"


def _outer(var: str) -> str:
    """Return the name of an outer variable; the values of a stage have none."""
    return "values of the stage" if var.startswith(ir.CARRIED) else f"${var}"


def _carried(stage: ir.Stage) -> list[str]:
    """Return the names of the variables and values that a stage carries on."""
    return [*stage.kept, *(name.removeprefix("$") for name in stage.value_names)]


def _expand(op: ir.Expand) -> str:
    edge = f"${op.edge_var}:{op.edge_type}" if op.edge_var else "|".join(op.edge_types)
    arrow = _arrow(edge, op.min_hops, op.max_hops, op.direction)
    target = _target(op.dst_var, op.dst_type, bound=op.dst_bound)
    return f"${op.src_var} {arrow} {target}{_where((*op.edge_filters, *op.dst_filters))}"


def _arrow(edge: str, least: int, most: int, direction: ir.Direction) -> str:
    if (least, most) != (1, 1):
        edge += f"{{{least},{most}}}" if most >= least else " (reaches nothing)"
    return {"out": f"-{edge}->", "in": f"<-{edge}-", "both": f"<-{edge}->"}[direction]


def _target(var: str, type_name: str, *, bound: bool) -> str:
    var = "_" if var.startswith("_#") else var
    return f"${var}" if bound else f"${var}: {type_name}"


def _find_paths(op: ir.FindPaths) -> str:
    walks = [_walk(op.src_var, steps) for steps in (op.ahead, op.back) if steps]
    by = f" by {op.by}" if op.by else ""
    every = "all " if op.kind == "all shortest" else "measured " if op.measured else ""
    conditions = [condition for step in op.steps for condition in step.filters]
    return f"{every}${op.var}: {', '.join(walks)}{by}{_where((*conditions, *op.filters))}"


def _path_steps(op: ir.PathSteps) -> str:
    ends = (
        _target(op.src_var, op.type_name, bound=op.src_bound),
        _target(op.dst_var, op.type_name, bound=op.dst_bound),
    )
    return f"{ends[0]} {'<->' if op.both_ways else '->'} {ends[1]} in ${op.path_var}{_where(op.filters)}"


def _walk(start: str, steps: Iterable[ir.PathStep]) -> str:
    parts = [f"${start}"]
    for step in steps:
        edge = "|".join(step.edge_types)
        parts.append(_arrow(edge, step.min_hops, step.max_hops, step.direction))
        parts.append(_target(step.dst_var, step.dst_type, bound=step.dst_bound))
    return " ".join(parts)


def _mutation(plan: ir.MutationIR) -> list[_Line]:
    lines: list[_Line] = []
    for op in plan.ops:
        name = f" as ${op.name}" if op.name else ""
        match op:
            case ir.InsertNode():
                lines.append(_line(1, "insert", f"{op.type_name} {_assignments(op.values)}{name}"))
            case ir.InsertEdge():
                ends = f"{_expr(op.source)} -> {_expr(op.target)}"
                lines.append(_line(1, "insert", f"{op.type_name} {ends} {_assignments(op.values)}".rstrip() + name))
            case ir.UpdateNodes() | ir.UpdateEdges():
                since = "" if op.valid_from is None else f" valid from {_expr(op.valid_from)}"
                where = f"where {_expr(op.where)}{since}{name}"
                lines.append(_line(1, "update", f"{op.type_name} {_assignments(op.values)} {where}"))
            case ir.DeleteNodes():
                where = f"where {_expr(op.where)}{name}, and every edge at them"
                lines.append(_line(1, "delete", f"{op.type_name} {where}"))
            case ir.UpsertNode():
                branches = f"new {_assignments(op.new)} existing {_assignments(op.existing)}{name}"
                lines.append(_line(1, "upsert", f"{op.type_name} {_assignments(op.key)} {branches}"))
            case ir.UnifyNodes():
                rules = [f"{name}: {rule if isinstance(rule, str) else _expr(rule)}" for name, rule in op.rules]
                rules += [f"{edge}: {rule}" for edge, rule in op.edges]
                given = f" {{ {', '.join(rules)} }}" if rules else ""
                pair = f"{_expr(op.drop)} into {_expr(op.keep)}"
                lines.append(_line(1, "unify", f"{op.type_name} {pair}{given}{name}, and every edge at them"))
            case ir.DeleteEdges():
                lines.append(_line(1, "delete", f"{op.type_name} where {_expr(op.where)}{name}"))
            case _:
                assert_never(op)
    if plan.columns:
        lines.append(_line(1, "return", ", ".join(map(_column, plan.columns))))
    return lines


def _line(depth: int, word: str, rest: str, part: LineSubject | None = None) -> _Line:
    return f"{'  ' * depth}{word:<7} {rest}", word if part is None else part


def _where(conditions: Iterable[ir.Condition]) -> str:
    all_of = [*conditions]
    texts = [_expr(condition, 2 if len(all_of) > 1 else 0) for condition in all_of]
    return f" where {' and '.join(texts)}" if texts else ""


def _assignments(values: Iterable[tuple[str, ir.Expr]]) -> str:
    texts = [f"{name}: {_expr(value)}" for name, value in values]
    return f"{{ {', '.join(texts)} }}" if texts else ""


def _column(column: ir.ReturnColumn, groups: Sequence[ir.Expr] = ()) -> str:
    text = _expr(_expanded(column.expr, groups))
    named = text if text == f"${column.name}" else f"{text} as {column.name}"
    return f"{named}: {column.type}"


def _sort_key(key: ir.SortKey, plan: ir.QueryIR, groups: Sequence[ir.Expr]) -> str:
    expr = key.expr
    name = plan.columns[expr.index].name if isinstance(expr, ir.ColumnRef) else _expr(_expanded(expr, groups))
    return f"{name} {'desc' if key.descending else 'asc'}"


def _expanded(expr: ir.Expr, groups: Sequence[ir.Expr]) -> ir.Expr:
    """Return an expression over a group with its keys and aggregates written out."""
    number = ir.column_number(expr)
    return ir.with_parts(expr, lambda part: _expanded(part, groups)) if number is None else groups[number]


def _rank_var(rank: ir.Rank) -> str:
    return rank.arms[0].prop.var if isinstance(rank, ir.Rrf) else rank.prop.var


def _expr(expr: ir.Expr, level: int = 0) -> str:
    """Return the text of an expression, in parentheses if its precedence is below `level`."""
    own = _level(expr)
    text = _bare(expr, own)
    return f"({text})" if own < level else text


def _level(expr: ir.Expr) -> int:
    match expr:
        case ir.Logic():
            return 1 if expr.op == "or" else 2
        case ir.Not():
            return 4 if isinstance(expr.part, ir.IsNull) else 3
        case ir.Compare() | ir.IsNull():
            return 4
        case ir.Function("concat") if not expr.type.is_list:
            return 5
        case ir.Arithmetic():
            return 5 if expr.op in ("+", "-") else 6
        case _:
            return 7


def _bare(expr: ir.Expr, own: int) -> str:
    """Return the text of an expression without parentheses around it; `own` is its precedence."""
    match expr:
        case ir.Const() | ir.ParamRef() | ir.Prop() | ir.Entity() | ir.PathPart() | ir.ColumnRef() | ir.GroupValue():
            return _reference(expr)
        case ir.Compare() | ir.Logic() | ir.Not() | ir.IsNull():
            return _predicate(expr, own)
        case ir.Arithmetic():
            return f"{_expr(expr.left, own)} {expr.op} {_expr(expr.right, own + 1)}"
        case ir.Negative():
            return f"-{_expr(expr.value, own)}"
        case ir.Function():
            return _function(expr, own)
        case ir.TextMatch() | ir.Nearest() | ir.Bm25() | ir.Rrf():
            return _search(expr)
        case ir.Aggregate() | ir.Object() | ir.ListOf() | ir.Why():
            return _constructed(expr)
        case _:
            assert_never(expr)


_Reference = ir.Const | ir.ParamRef | ir.Prop | ir.Entity | ir.PathPart | ir.ColumnRef | ir.GroupValue


def _reference(expr: _Reference) -> str:
    match expr:
        case ir.Const():
            return _const(expr)
        case ir.ParamRef():
            return "now()" if expr.name == ir.NOW else f"${expr.name}"
        case ir.Prop():
            return _property(expr)
        case ir.Entity():
            return f"${expr.var}"
        case ir.PathPart():
            return f"${expr.var}" if expr.part == "path" else f"{expr.part}(${expr.var})"
        case ir.ColumnRef():
            return f"column {expr.index + 1}"
        case ir.GroupValue():
            raise AssertionError("a group value is replaced by its key or aggregate before it is printed")
        case _:
            assert_never(expr)


def _property(expr: ir.Prop) -> str:
    if expr.var.startswith(ir.CARRIED):
        return expr.name
    if expr.name.startswith(ir.PATH_PARTS):
        part, _, name = expr.name.removeprefix("#").split(":", 2)
        return f"{part}(${expr.var}, {name})"
    if expr.name in ("id", ir.TYPE, ir.LENGTH, ir.WEIGHT):
        return f"{expr.name.removeprefix('#')}(${expr.var})"
    return expr.name if expr.var == ir.ROW else f"${expr.var}.{expr.name}"


def _predicate(expr: ir.Compare | ir.Logic | ir.Not | ir.IsNull, own: int) -> str:
    match expr:
        case ir.Compare():
            return f"{_expr(expr.left, own + 1)} {_OPS.get(expr.op, expr.op)} {_expr(expr.right, own + 1)}"
        case ir.Logic():
            return f" {expr.op} ".join(_expr(part, own + 1) for part in expr.parts)
        case ir.Not(ir.IsNull(value)):
            return f"{_expr(value, own + 1)} is not null"
        case ir.Not():
            return f"not {_expr(expr.part, own)}"
        case ir.IsNull():
            return f"{_expr(expr.value, own + 1)} is null"
        case _:
            assert_never(expr)


def _function(expr: ir.Function, own: int) -> str:
    match expr:
        case ir.Function("type", (ir.Prop(var), *_)):
            return f"type(${var})"
        case ir.Function("concat") if expr.type == ir.STRING.with_nullable(expr.type.nullable):
            return " + ".join(_expr(argument, own) for argument in expr.arguments)
        case ir.Function("case"):
            pairs = zip(expr.arguments[:-1:2], expr.arguments[1::2], strict=False)
            tests = " ".join(f"when {_expr(test)} then {_expr(value)}" for test, value in pairs)
            return f"case {tests} else {_expr(expr.arguments[-1])} end"
        case ir.Function("date_add" | "date_diff" | "date_trunc", (*values, ir.Const(unit))):
            return f"{expr.name}({_exprs(values)}, {unit})"
        case _:
            return f"{expr.name}({_exprs(expr.arguments)})"


def _search(expr: ir.TextMatch | ir.Rank) -> str:
    match expr:
        case ir.TextMatch():
            edits = f", {_expr(expr.max_edits)}" if expr.max_edits is not None else ""
            every = ", all" if expr.every else ""
            return f"{expr.function}({_expr(expr.prop)}, {_expr(expr.query)}{edits}{every})"
        case ir.Nearest():
            approx = ", approx" if expr.approx else ""
            return f"nearest({_expr(expr.prop)}, {_expr(expr.query)}{approx})"
        case ir.Bm25():
            return f"bm25({_expr(expr.prop)}, {_expr(expr.query)})"
        case ir.Rrf():
            weights = expr.weights or (None,) * len(expr.arms)
            arms = [
                f"{_expr(arm)} * {_expr(weight)}" if weight is not None else _expr(arm)
                for arm, weight in zip(expr.arms, weights, strict=True)
            ]
            return f"rrf({', '.join(arms)}, {_expr(expr.k)})"
        case _:
            assert_never(expr)


def _constructed(expr: ir.Aggregate | ir.Object | ir.ListOf | ir.Why) -> str:
    match expr:
        case ir.Aggregate():
            where = "" if expr.where is None else f" where {_expr(expr.where)}"
            return f"{expr.function}({'distinct ' if expr.distinct else ''}{_expr(expr.argument)}{where})"
        case ir.Object():
            return f"{{ {', '.join(f'{name}: {_expr(value)}' for name, value in expr.fields)} }}"
        case ir.ListOf():
            return f"[{_exprs(expr.items)}]"
        case ir.Why():
            return "why()"
        case _:
            assert_never(expr)


def _exprs(exprs: Iterable[ir.Expr]) -> str:
    return ", ".join(_expr(expr) for expr in exprs)


def _const(const: ir.Const) -> str:
    type_ = const.type
    if const.value is None:
        return "null"
    if type_.scalar == "Vector":
        return f"a vector of {type_.dim}"
    if type_.is_list:
        return f"[{', '.join(_const(ir.Const(item, type_.item)) for item in const.value)}]"
    value: Any = const.value
    kind = type_.kind
    if kind.literal_call is not None:
        return f'{kind.literal_call}("{kind.text(value)}")'
    if isinstance(value, bytes):
        return f"a blob of {len(value)} bytes"
    if isinstance(value, str):
        return quote(value)
    text = kind.text(value)
    return f"{text}.0" if kind.is_float and "." not in text else text
