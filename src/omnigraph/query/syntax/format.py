"""Formatter: syntax tree to `.gq` text in canonical layout, with comments.

A block with one short clause, and a `return`, `order` or assignment list that fits, are written on one line. Longer
ones, and those with a comment inside, are written with one item per line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import assert_never

from omnigraph.lang.comment_printer import Printer, quote
from omnigraph.lang.spans import NOWHERE, Source, Span
from omnigraph.query.syntax.ast import (
    ANY_EDGE,
    ArithmeticExpr,
    Assign,
    BindingClause,
    CallExpr,
    CaseExpr,
    Clause,
    CompareExpr,
    DeleteStatement,
    EndStatement,
    Expr,
    Field,
    FilterClause,
    HopClause,
    InsertStatement,
    IsNullExpr,
    ListExpr,
    LiteralExpr,
    LogicExpr,
    Meta,
    NegativeExpr,
    NotClause,
    NotExpr,
    ObjectExpr,
    OptionalClause,
    Param,
    PathClause,
    PropertyExpr,
    QueryCheck,
    QueryDefinition,
    QueryFile,
    Read,
    ReturnItem,
    SortItem,
    Statement,
    StepClause,
    UnifyStatement,
    UpdateStatement,
    UpsertStatement,
    VarExpr,
    WordExpr,
    Write,
)
from omnigraph.query.syntax.parse_expressions import OPERATOR_WORDS
from omnigraph.query.syntax.parser import parse_source
from omnigraph.scalar_types.floats import spell_float
from omnigraph.scalar_types.registry import LiteralCall


def format_queries(text: str, name: str = "<query>") -> str:
    """Return `text` in canonical layout, or raise `ParseError`."""
    source = Source(text, name)
    tree, comments = parse_source(source)
    return _QueryFormatter(Printer(source, comments)).file(tree)


def print_queries(tree: QueryFile) -> str:
    """Return the text of a tree, which can be built without a source."""
    return _QueryFormatter(Printer()).file(tree)


class _QueryFormatter:
    def __init__(self, printer: Printer) -> None:
        self.printer = printer

    def file(self, tree: QueryFile) -> str:
        for number, query in enumerate(tree.queries):
            self.query(query, apart=number > 0)
        return self.printer.finish()

    # -- queries ---------------------------------------------------------------------------------

    def query(self, query: QueryDefinition, *, apart: bool) -> None:
        printer = self.printer
        params = [self.param(param) for param in query.params]
        metas = [self.meta(meta) for meta in query.metas]
        head = f"query {query.name}({', '.join(params)})"
        line = " ".join([head, *metas, "{"])
        # Only a comment among parameters or annotations forces the long form of the header.
        among_metas = Span(query.params_span.end, query.braces.start)
        stays = printer.has_comment(query.params_span) if params else False
        if not stays and printer.fits(line, among_metas if metas else NOWHERE):
            printer.open(line, query.span.start, query.braces.start, apart=apart)
        else:
            self.long_header(query, head, params, metas, apart=apart)
        if isinstance(query.body, Read):
            self.read(query.body)
        else:
            self.write(query.body)
        printer.close(query.span.end)

    def long_header(
        self, query: QueryDefinition, head: str, params: list[str], metas: list[str], *, apart: bool
    ) -> None:
        """Write parameters and annotations on separate lines if the header is too long for one line."""
        printer = self.printer
        if printer.fits(f"{head} {{", query.params_span) or not params:
            opener = head
        else:
            printer.open(f"query {query.name}(", query.span.start, query.params_span.start, apart=apart)
            for text, param in zip(params, query.params, strict=True):
                comma = "" if param is query.params[-1] else ","
                printer.item(text + comma, param.span)
            apart = False
            printer.dedent(query.params_span.end - 1)
            opener = ")"
        if not metas:
            printer.open(f"{opener} {{", query.params_span.end, query.braces.start, apart=apart)
            return
        printer.open(opener, query.params_span.end, query.params_span.end - 1, apart=apart)
        for text, meta in zip(metas, query.metas, strict=True):
            printer.item(text, meta.span)
        printer.dedent(query.braces.start)
        printer.open("{", query.braces.start, query.braces.start)

    def param(self, param: Param) -> str:
        type_ = f"Vector({param.dim})" if param.dim is not None else param.type_name.text
        type_ = f"[{type_}]" if param.is_list else type_
        return f"${param.name}: {type_}{'?' if param.nullable else ''}"

    def meta(self, meta: Meta) -> str:
        value = meta.value
        if value is None:
            return f"@{meta.name}"
        if isinstance(value, QueryCheck):
            count = f" {value.count}" if value.count is not None else ""
            return f"@{meta.name}({value.expect}{count}{', required' if value.required else ''})"
        if isinstance(value, str):
            return f"@{meta.name}({self.printer.literal(meta.text_span, quote(value))})"
        return f"@{meta.name}({str(value).lower()})"

    # -- reads -----------------------------------------------------------------------------------

    def read(self, read: Read) -> None:
        if read.valid is not None:
            ends = [read.valid.start, *([] if read.valid.end is None else [read.valid.end])]
            word = "at" if read.valid.end is None else "during"
            self.printer.item(f"valid {word} {', '.join(map(self.expr, ends))}", read.valid.span)
        for stage in read.stages:
            self.part(stage, "with")
        self.part(read, "return")

    def part(self, read: Read, word: str) -> None:
        """Write a stage, or the part that returns."""
        if read.clauses:
            self.block("match", read.clauses, read.match_body.start, read.match_body)
        items = [self.return_item(item, "$" if word == "with" else "") for item in read.items]
        word = f"{word} distinct" if read.distinct else word
        objects = [item.expr if isinstance(item.expr, ObjectExpr) else None for item in read.items]
        self.list(word, items, [item.span for item in read.items], read.return_body, commas=False, objects=objects)
        if read.having:
            self.block("having", read.having, read.having_body.start, read.having_body)
        if read.order:
            keys = [self.sort_item(item) for item in read.order]
            self.list("order", keys, [item.span for item in read.order], read.order_body, commas=True)
        for part, count, span in (("skip", read.skip, read.skip_span), ("limit", read.limit, read.limit_span)):
            if count is not None:
                self.printer.item(f"{part} {f'${count.name}' if isinstance(count, VarExpr) else count}", span)

    def list(
        self,
        word: str,
        texts: list[str],
        spans: list[Span],
        body: Span,
        *,
        commas: bool,
        objects: Sequence[ObjectExpr | None] = (),
    ) -> None:
        """Write `word { a, b }` if it fits, else one item per line, with commas only where the grammar needs them.

        `objects` are the items that are objects; one that is too long is written with one field per line.
        """
        printer = self.printer
        line = f"{word} {{ {', '.join(texts)} }}" if texts else f"{word} {{}}"
        if printer.fits(line, body):
            printer.item(line, body)
            return
        printer.open(f"{word} {{", body.start, body.start)
        whole = objects or [None] * len(texts)
        for text, span, object_, after in zip(texts, spans, whole, [*texts[1:], ""], strict=True):
            comma = "," if after and (commas or _continues(after)) else ""
            self.broken("", object_, text + comma, span)
        printer.close(body.end)

    def broken(self, head: str, object_: Expr | None, text: str, span: Span) -> None:
        """Write an item on one line, or an object that is too long with one field per line."""
        printer = self.printer
        # A comment behind the object does not force the long form; it gets its own line.
        if not isinstance(object_, ObjectExpr) or not object_.fields or printer.fits(text, object_.span):
            printer.item(text, span)
            return
        tail = text.removeprefix(head + self.expr(object_))
        printer.open(f"{head}{{", span.start, object_.span.start)
        for field in object_.fields:
            comma = "" if field is object_.fields[-1] else ","
            self.broken(f"{field.name}: ", field.value, self.field(field) + comma, field.span)
        printer.close(object_.span.end, f"}}{tail}", last=span.end)

    def block(self, word: str, clauses: Sequence[Clause], start: int, body: Span) -> None:
        """Write `word { clause }` if it is one clause that fits, else one clause per line."""
        printer = self.printer
        if len(clauses) == 1 and not isinstance(clauses[0], NotClause | OptionalClause | PathClause):
            line = f"{word} {{ {self.clause(clauses[0])} }}"
            if printer.fits(line, body):
                printer.item(line, Span(start, body.end))
                return
        printer.open(f"{word} {{", start, body.start)
        for clause in clauses:
            if isinstance(clause, PathClause):
                self.path(clause)
            elif isinstance(clause, NotClause | OptionalClause):
                nested = "not" if isinstance(clause, NotClause) else "optional"
                self.block(nested, clause.clauses, clause.span.start, clause.body)
            else:
                printer.item(self.clause(clause), clause.span)
        printer.close(body.end)

    def path(self, path: PathClause) -> None:
        """Write `$p: path { hop }` if it is one hop that fits, else one hop per line."""
        printer = self.printer
        head, tail = f"${path.var}: {path.kind} {{", f"}} by {path.by}" if path.by else "}"
        line = f"{head} {' '.join(map(self.clause, path.hops))} {tail}"
        if len(path.hops) == 1 and printer.fits(line, path.body):
            printer.item(line, path.span)
            return
        printer.open(head, path.span.start, path.body.start)
        for hop in path.hops:
            printer.item(self.clause(hop), hop.span)
        printer.close(path.body.end, tail, last=path.span.end)

    def clause(self, clause: BindingClause | HopClause | StepClause | FilterClause) -> str:
        match clause:
            case StepClause():
                arrow = "<->" if clause.undirected else "->"
                return f"${clause.left} {arrow} ${clause.right} in ${clause.path}"
            case BindingClause():
                matches = ", ".join(f"{match.property}: {self.expr(match.value)}" for match in clause.matches)
                types = "|".join(name.text for name in (clause.type, *clause.also))
                return f"${clause.var}: {types}{f' {{ {matches} }}' if matches else ''}"
            case HopClause():
                edge = "|".join(name.text for name in (clause.edge, *clause.also))
                if clause.undirected:
                    edge = f"<{edge}" if clause.edge.text == ANY_EDGE else f"<{edge}>"
                edge = f"${clause.edge_var}:{edge}" if clause.edge_var else edge
                bounds = ""
                if clause.bounds:
                    most = "" if clause.bounds.max is None else clause.bounds.max
                    bounds = f"{{{clause.bounds.min},{most}}}"
                return f"${clause.left} {edge}{bounds} ${clause.right}"
            case FilterClause():
                return self.expr(clause.expr)
            case _:
                assert_never(clause)

    def return_item(self, item: ReturnItem, sign: str = "") -> str:
        return f"{self.expr(item.expr)} as {sign}{item.alias}" if item.alias else self.expr(item.expr)

    def sort_item(self, item: SortItem) -> str:
        return f"{self.expr(item.expr)} {item.direction}" if item.direction else self.expr(item.expr)

    # -- writes ----------------------------------------------------------------------------------

    def write(self, write: Write) -> None:
        if write.atomic:
            self.printer.open("atomic {", write.body.start, write.body.start)
        for statement in write.statements:
            self.statement(statement)
        if write.atomic:
            self.printer.close(write.body.end)
        if write.items:
            items = [self.return_item(item) for item in write.items]
            self.list("return", items, [item.span for item in write.items], write.return_body, commas=False)

    def upsert(self, statement: UpsertStatement, name: str) -> None:
        """Write the statement on one line if it fits, else one branch per line."""
        branches = [
            ("new", statement.new, statement.new_body),
            ("existing", statement.existing, statement.existing_body),
        ]
        given = [(word, assigns, body) for word, assigns, body in branches if assigns is not None]
        head = f"upsert {statement.type}"
        texts = [self.assigned(head, statement.key), *(self.assigned(word, assigns) for word, assigns, _ in given)]
        line = " ".join(texts) + name
        parts = [(head, statement.key, statement.key_body, statement.span.start)]
        parts += [(word, assigns, body, body.start) for word, assigns, body in given]
        # A comment behind the braces follows the line, so it does not force the long form.
        if self.printer.fits(line, Span(statement.span.start, parts[-1][2].end)):
            self.printer.item(line, statement.span)
            return
        for part in parts:
            word, assigns, body, start = part
            last = part is parts[-1]
            end = statement.span.end if last else body.end
            self.assigns(word, assigns, name if last else "", body, Span(start, end))

    def unify(self, statement: UnifyStatement, name: str) -> None:
        """Write the statement on one line if it fits, else one block of rules after the other."""
        head = f"unify {statement.type} {self.expr(statement.drop)} into {self.expr(statement.keep)}"
        rules = [(f"{rule.property}: {self.expr(rule.value)}", rule.span) for rule in statement.rules or ()]
        edges = [(f"{rule.type}: {rule.rule}", rule.span) for rule in statement.edges or ()]
        blocks = [(head, rules, statement.rules_body)] if statement.rules is not None else []
        if statement.edges is not None:
            word = "edges" if blocks else f"{head} edges"
            blocks.append((word, edges, statement.edges_body))
        line = " ".join(_block(word, [text for text, _ in some]) for word, some, _ in blocks) or head
        end = blocks[-1][2].end if blocks else statement.span.end
        if not blocks or self.printer.fits(line + name, Span(statement.span.start, end)):
            self.printer.item(line + name, statement.span)
            return
        for number, (word, some, body) in enumerate(blocks):
            start = body.start if number else statement.span.start
            is_last = number == len(blocks) - 1
            tail, last = (name, statement.span.end) if is_last else ("", body.end)
            self.printer.open(f"{word} {{", start, body.start)
            for text, span in some:
                self.printer.item(text, span)
            self.printer.close(body.end, f"}}{tail}", last=last)

    def assigned(self, head: str, assigns: Sequence[Assign]) -> str:
        texts = [f"{assign.property}: {self.expr(assign.value)}" for assign in assigns]
        return f"{head} {{ {', '.join(texts)} }}" if texts else f"{head} {{}}"

    def statement(self, statement: Statement) -> None:
        name = f" as ${statement.name}" if statement.name else ""
        match statement:
            case InsertStatement():
                self.assigns(f"insert {statement.type}", statement.assigns, name, statement.body, statement.span)
            case UpdateStatement():
                since = "" if statement.valid_from is None else f" valid from {self.expr(statement.valid_from)}"
                tail = f" where {self.expr(statement.where)}{since}{name}"
                head = f"update {statement.type} set"
                self.assigns(head, statement.assigns, tail, statement.body, statement.span)
            case EndStatement():
                rows = f"{statement.type} where {self.expr(statement.where)}"
                self.printer.item(f"end {rows} at {self.expr(statement.at)}{name}", statement.span)
            case DeleteStatement():
                self.printer.item(f"delete {statement.type} where {self.expr(statement.where)}{name}", statement.span)
            case UpsertStatement():
                self.upsert(statement, name)
            case UnifyStatement():
                self.unify(statement, name)
            case _:
                assert_never(statement)

    def assigns(self, head: str, assigns: Sequence[Assign], tail: str, body: Span, span: Span) -> None:
        printer = self.printer
        texts = [f"{assign.property}: {self.expr(assign.value)}" for assign in assigns]
        line = f"{head} {{ {', '.join(texts)} }}{tail}" if texts else f"{head} {{}}{tail}"
        if printer.fits(line, body):
            printer.item(line, span)
            return
        printer.open(f"{head} {{", span.start, body.start)
        for text, assign in zip(texts, assigns, strict=True):
            printer.item(text, assign.span)
        printer.close(body.end, f"}}{tail}", last=span.end)

    # -- expressions -----------------------------------------------------------------------------

    def expr(self, expr: Expr, level: int = 0) -> str:
        """Return the text of an expression, in parentheses if its precedence is below `level`."""
        own = _level(expr)
        text = self.bare(expr, own)
        return f"({text})" if own < level else text

    def bare(self, expr: Expr, own: int) -> str:
        """Return the text of an expression without parentheses around it; `own` is its precedence."""
        match expr:
            case LiteralExpr() | ListExpr() | ObjectExpr():
                return self.constructed(expr)
            case PropertyExpr():
                return f"${expr.var}.{expr.property}"
            case VarExpr():
                return f"${expr.name}"
            case WordExpr():
                return expr.name
            case CallExpr():
                distinct = "distinct " if expr.distinct else ""
                where = "" if expr.where is None else f" where {self.expr(expr.where)}"
                return f"{expr.function}({distinct}{self.exprs(expr.arguments)}{where})"
            case CaseExpr():
                return self.case(expr)
            case ArithmeticExpr() | NegativeExpr():
                return self.arithmetic(expr, own)
            case CompareExpr() | LogicExpr() | NotExpr() | IsNullExpr():
                return self.predicate(expr, own)
            case _:
                assert_never(expr)

    def constructed(self, expr: LiteralExpr | ListExpr | ObjectExpr) -> str:
        match expr:
            case ObjectExpr():
                return f"{{ {', '.join(self.field(field) for field in expr.fields)} }}" if expr.fields else "{}"
            case ListExpr():
                return f"[{self.exprs(expr.items)}]"
            case LiteralExpr():
                return self.literal(expr)
            case _:
                assert_never(expr)

    def case(self, expr: CaseExpr) -> str:
        parts = [] if expr.subject is None else [self.expr(expr.subject)]
        parts += [f"when {self.expr(b.condition)} then {self.expr(b.value)}" for b in expr.branches]
        parts += [] if expr.otherwise is None else [f"else {self.expr(expr.otherwise)}"]
        return f"case {' '.join(parts)} end"

    def arithmetic(self, expr: ArithmeticExpr | NegativeExpr, own: int) -> str:
        if isinstance(expr, ArithmeticExpr):
            return f"{self.expr(expr.left, own)} {expr.op} {self.expr(expr.right, own + 1)}"
        # `-5` parses as a literal, so the negation of the literal 5 needs parentheses.
        return f"-({self.bare(expr.expr, own)})" if _is_number(expr.expr) else f"-{self.expr(expr.expr, own)}"

    def predicate(self, expr: CompareExpr | LogicExpr | NotExpr | IsNullExpr, own: int) -> str:
        match expr:
            case CompareExpr():
                return f"{self.expr(expr.left, own + 1)} {expr.op} {self.expr(expr.right, own + 1)}"
            case LogicExpr():
                return f" {expr.op} ".join(self.expr(part, own + 1) for part in expr.parts)
            case NotExpr():
                inner = self.expr(expr.expr, own)
                # Without parentheses, `not -x` parses as a subtraction from the name `not`.
                return f"not ({inner})" if inner.startswith("-") else f"not {inner}"
            case IsNullExpr():
                return f"{self.expr(expr.expr, own + 1)} is {'not ' if expr.negated else ''}null"
            case _:
                assert_never(expr)

    def exprs(self, exprs: Iterable[Expr]) -> str:
        return ", ".join(self.expr(expr) for expr in exprs)

    def field(self, field: Field) -> str:
        return f"{field.name}: {self.expr(field.value)}"

    def literal(self, literal: LiteralExpr) -> str:
        match literal.kind:
            case "bool":
                return "true" if literal.value else "false"
            case "decimal":
                assert isinstance(literal.value, float)
                spelt = spell_float(literal.value, single=False)
                spelt = spelt if "." in spelt else f"{spelt}.0"
                if literal.value == 0 and math.copysign(1, literal.value) < 0:
                    spelt = "-0.0"
                written = self.printer.literal(literal.span, spelt)
                return written if re.fullmatch(r"[-+.0-9eE]+", written) else spelt
            case "string":
                return self.printer.literal(literal.span, quote(str(literal.value)))
            case "int":
                return str(literal.value)
            case call:
                return _literal_call(call, str(literal.value))


def _literal_call(call: LiteralCall, text: str) -> str:
    return f"{call}({quote(text)})"


def _continues(text: str) -> bool:
    """True if the first token of an item would be parsed as a continuation of the previous item."""
    return text[0] in "-(" or re.split(r"\W", text, maxsplit=1)[0] in ("as", *OPERATOR_WORDS)


_ALONE = 8


def _level(expr: Expr) -> int:
    """Return the precedence of an expression, as in the grammar."""
    match expr:
        case LogicExpr():
            return 1 if expr.op == "or" else 2
        case NotExpr():
            return 3
        case CompareExpr() | IsNullExpr():
            return 4
        case ArithmeticExpr():
            return 5 if expr.op in ("+", "-") else 6
        case NegativeExpr():
            return 7
        case (
            LiteralExpr()
            | ListExpr()
            | ObjectExpr()
            | VarExpr()
            | PropertyExpr()
            | WordExpr()
            | CallExpr()
            | CaseExpr()
        ):
            return _ALONE
        case _:
            assert_never(expr)


def _is_number(expr: Expr) -> bool:
    return isinstance(expr, LiteralExpr) and expr.kind in ("int", "decimal")


def _block(word: str, texts: Sequence[str]) -> str:
    return f"{word} {{ {', '.join(texts)} }}" if texts else f"{word} {{}}"
