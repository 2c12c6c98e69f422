"""Parser of `.gq` text.

Recursive descent over the shared cursor. No word is reserved, so the first few tokens determine the kind of a clause:
`$x :` is a binding (a path if a lower-case letter follows), `$a word $b` is a hop, and any other beginning of an
expression is a condition. After an error the parser continues at the next `query name(`, so that one run reports
several errors.

`parse_expressions` parses expressions, `parse_writes` mutations.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.lang.cursor import DEPTH_MAX, Cursor, name_of
from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.spans import Name, Source, Span
from omnigraph.lang.tokens import LOWER, UPPER, VAR, Comment, Token
from omnigraph.query.functions import TEXT
from omnigraph.query.syntax.ast import (
    ANY_EDGE,
    BindingClause,
    Bounds,
    CallExpr,
    CaseExpr,
    Clause,
    CompareExpr,
    Expr,
    FilterClause,
    HopClause,
    IsNullExpr,
    LogicExpr,
    NotClause,
    NotExpr,
    OptionalClause,
    Param,
    PropertyExpr,
    PropertyMatch,
    QueryDefinition,
    QueryFile,
    Read,
    ReturnItem,
    SortItem,
    VarExpr,
    WordExpr,
)
from omnigraph.query.syntax.dialect_hints import about_part, about_start
from omnigraph.query.syntax.parse_annotations import parse_annotations
from omnigraph.query.syntax.parse_expressions import (
    CLAUSE,
    NO_ARROWS,
    OPERATOR_WORDS,
    SYMBOLS,
    WORD_OPERATORS,
    no_dollar,
)
from omnigraph.query.syntax.parse_paths import parse_path, parse_step, starts_path
from omnigraph.query.syntax.parse_valid import parse_valid, refuse_valid, starts_valid
from omnigraph.query.syntax.parse_writes import BARE, WriteParser
from omnigraph.suggestions import did_you_mean
from omnigraph.types import SCALARS, foreign_type

FILE_HOLDS = "a file holds queries: query name($param: Type) { … }"
INLINE = "inline"
"""The name of a query without a head."""

_COMPARISONS = "a comparison (=, !=, <, <=, >, >=, contains, in, is null, …)"
_FOREIGN_WORDS = {
    "like": "a part of a text is found by 'contains', its beginning by 'starts_with', a pattern by 'matches'",
    "between": "write both bounds: $x.p >= 1 and $x.p <= 9",
    "regexp": "a pattern is matched by 'matches'",
}
_CONNECTIVES = {
    "where": "a condition is a clause by itself, without 'where'",
    "and": "'and' joins two conditions; there is none before it",
    "&&": "conditions are joined by 'and'",
    "or": "'or' joins two conditions; there is none before it",
    "||": "conditions are joined by 'or'",
    "|": "conditions are joined by 'or'",
}


def parse_queries(text: str, name: str = "<query>") -> QueryFile:
    """Return the tree of `text`, or raise `ParseError` with all errors."""
    return parse_source(Source(text, name))[0]


def parse_source(source: Source) -> tuple[QueryFile, list[Comment]]:
    """Return the tree and the comments, which the formatter needs."""
    parser = _QueryParser(source)
    queries, comments = parser.parse(parser.query, _at_query)
    return QueryFile(queries), comments


class _QueryParser(WriteParser):
    _first = True

    # -- queries ---------------------------------------------------------------------------------

    def query(self) -> QueryDefinition:
        cursor = self.cursor
        mark = cursor.mark
        first, self._first = self._first, False
        if first and cursor.token.text in BARE:
            return self.bare_query()
        if not cursor.at("query"):
            raise cursor.fault("'query'", hint=about_start(cursor) or FILE_HOLDS)
        cursor.take()
        name = name_of(cursor.expect_lower("a query name"))
        params_start = cursor.mark
        cursor.expect("(", " and the query's parameters")
        params: list[Param] = []
        if not cursor.accept(")"):
            params.append(self.param())
            while cursor.accept(","):
                params.append(self.param())
            if cursor.token.kind == VAR:
                raise cursor.fault("',' or ')' behind a parameter")
            cursor.expect(")", " to close the parameters")
        params_span = cursor.since(params_start)
        metas = parse_annotations(cursor)
        opened = cursor.expect("{", " to open the query").start
        body = self.read() if cursor.at("match") or starts_valid(cursor) else self.write()
        cursor.expect("}", " to close the query")
        return QueryDefinition(name, tuple(params), metas, body, params_span, cursor.since(opened), cursor.since(mark))

    def bare_query(self) -> QueryDefinition:
        """Parse a text that is one query without a head: `match … return …`, or statements."""
        cursor = self.cursor
        mark = cursor.mark
        self.bare = True
        body = self.read() if cursor.at("match") or starts_valid(cursor) else self.write()
        if not cursor.at_end():
            raise cursor.fault(self.closing)
        start = Span(mark, mark)
        return QueryDefinition(Name(INLINE, start), (), (), body, start, cursor.since(mark), cursor.since(mark))

    def param(self) -> Param:
        cursor = self.cursor
        mark = cursor.mark
        name = name_of(cursor.expect_variable("a parameter ('$name: Type')"))
        cursor.expect(":", " and the parameter's type")
        dim: int | None = None
        is_list = cursor.accept("[")
        if cursor.token.kind == LOWER:
            raise cursor.fault("a type", hint=_about_param_type(cursor.token.text))
        type_name = name_of(cursor.expect_upper("a type"))
        if is_list:
            cursor.expect("]", " to close the list type")
        elif type_name.text == "Vector":
            cursor.expect("(", " and the number of dimensions")
            dim = self.integer("the number of dimensions")
            cursor.expect(")")
        if cursor.at("[") and not is_list:
            raise cursor.fault("',' or ')' behind a parameter", hint=f"a list is written [{type_name}]")
        nullable = cursor.accept("?")
        return Param(name, type_name, is_list, dim, nullable, cursor.since(mark))

    # -- reads -----------------------------------------------------------------------------------

    def read(self) -> Read:
        stages: list[Read] = []
        valid = parse_valid(self.cursor, self.expression) if starts_valid(self.cursor) else None
        part = self.part()
        refuse_valid(self.cursor)
        while self.cursor.at("with"):
            if len(stages) >= DEPTH_MAX:
                hint = "split it into several queries"
                raise Fault(f"a query has at most {DEPTH_MAX} parts that end in 'with'", self.cursor.here, hint=hint)
            stages.append(self.result(*part, stage=True))
            part = self.part() if self.cursor.at("match") else ([], Span(0, 0))
        if not self.cursor.at("return"):
            raise self.cursor.fault("'return' and what the query returns", hint=about_part(self.cursor))
        read = self.result(*part)
        refuse_valid(self.cursor)
        if not self.closes():
            raise self.cursor.fault(self.closing, hint=about_part(self.cursor))
        return replace(read, stages=tuple(stages), valid=valid) if stages or valid is not None else read

    def part(self) -> tuple[list[Clause], Span]:
        """Parse `match { clauses }`."""
        self.cursor.take()
        return self.block("match")

    def result(self, clauses: list[Clause], match_body: Span, *, stage: bool = False) -> Read:
        """Parse `return { … }`, or `with { … }` of a stage, and what follows it."""
        cursor = self.cursor
        cursor.take()
        distinct = cursor.at("distinct") and cursor.ahead().text == "{" and bool(cursor.take())
        items, return_body = self.with_block() if stage else self.return_block()
        having, having_body = self.having()
        order: list[SortItem] = []
        order_body = Span(0, 0)
        if cursor.accept("order"):
            start = self.opening("order")
            order.append(self.sort_item())
            while cursor.accept(","):
                order.append(self.sort_item())
            cursor.expect("}", " to close 'order' (sort keys are separated by commas)")
            order_body = cursor.since(start)
        skip, skip_span = self.row_count("skip")
        limit, limit_span = self.row_count("limit")
        return Read(
            tuple(clauses),
            items,
            tuple(order),
            limit,
            match_body,
            return_body,
            order_body,
            limit_span,
            distinct,
            having,
            skip,
            having_body,
            skip_span,
        )

    def with_block(self) -> tuple[tuple[ReturnItem, ...], Span]:
        """Parse `{ $x, expr as $n, … }` behind `with`; commas are optional."""
        cursor = self.cursor
        start = self.opening("with")
        items = [self.with_item()]
        while not cursor.at("}"):
            cursor.accept(",")
            if cursor.at("}"):
                break
            items.append(self.with_item())
        cursor.take()
        return tuple(items), cursor.since(start)

    def with_item(self) -> ReturnItem:
        """Parse `$x`, or `expr as $n`."""
        cursor = self.cursor
        mark = cursor.mark
        expr = self.expression("what the next part uses ('$x', or a value: 'count($y) as $n')")
        alias: Name | None = None
        if cursor.accept("as"):
            if cursor.token.kind == LOWER:
                hint = f"a value that is carried on is a variable: 'as ${cursor.token.text}'"
                raise cursor.fault("the variable of the value", hint=hint)
            alias = name_of(cursor.expect_variable("the variable of the value ('as $n')"))
        return ReturnItem(expr, alias, cursor.since(mark))

    def having(self) -> tuple[tuple[FilterClause, ...], Span]:
        """Parse an optional `having { condition … }`."""
        cursor = self.cursor
        if not cursor.accept("having"):
            return (), Span(0, 0)
        start = self.opening("having")
        conditions = [self.condition()]
        while not cursor.at("}"):
            conditions.append(self.condition())
        cursor.take()
        return tuple(conditions), cursor.since(start)

    def row_count(self, word: str) -> tuple[int | VarExpr | None, Span]:
        """Parse an optional `skip n` or `limit n`; n can be a parameter."""
        cursor = self.cursor
        start = cursor.mark
        if not cursor.accept(word):
            return None, Span(0, 0)
        if cursor.token.kind == VAR:
            token = cursor.take()
            return VarExpr(token.text[1:], Span(token.start, token.end)), cursor.since(start)
        return self.integer("a whole number of rows, or a parameter"), cursor.since(start)

    def block(self, word: str) -> tuple[list[Clause], Span]:
        cursor = self.cursor
        cursor.enter()
        start = self.opening(word)
        clauses = [self.clause()]
        while not cursor.at("}"):
            if cursor.token.text in ("return", "with") and cursor.ahead().text == "{":
                raise cursor.fault(f"'}}' to close '{word}'")
            clauses.append(self.clause())
        cursor.take()
        cursor.leave()
        return clauses, cursor.since(start)

    def clause(self) -> Clause:
        cursor = self.cursor
        token = cursor.token
        if token.kind == VAR:
            after = cursor.ahead()
            if after.text == ":":
                return parse_path(cursor, self.hop) if starts_path(cursor) else self.binding()
            if after.kind == VAR or self.starts_hop(after):
                hop = self.hop()
                return parse_step(cursor, hop) if cursor.at("in") else hop
        elif token.text in ("not", "optional") and cursor.ahead().text == "{":
            cursor.take()
            clauses, body = self.block(token.text)
            kind = NotClause if token.text == "not" else OptionalClause
            return kind(tuple(clauses), body, cursor.since(token.start))
        return self.condition()

    def starts_hop(self, after: Token) -> bool:
        """True if `$a` and this token begin a hop rather than a comparison."""
        cursor = self.cursor
        if after.kind == LOWER:
            if after.text not in OPERATOR_WORDS:
                return True
            if after.text == "not":
                return False
            # `$a contains $b` is a hop over an edge of that name; `$a contains $b.p` is a comparison.
            return cursor.ahead(2).text in ("{", "|") or (cursor.ahead(2).kind == VAR and cursor.ahead(3).text != ".")
        if after.kind == UPPER or after.text == ANY_EDGE:
            return True
        # `$a < word` is a comparison; the closing bracket, or syntax that only a hop has, identifies `$a <edge> $b`.
        edge, closed = cursor.ahead(2), cursor.ahead(3)
        named = edge.kind in (LOWER, UPPER) and closed.text in (">", "{", "|")
        return after.text == "<" and (named or edge.text == ANY_EDGE)

    def binding(self) -> BindingClause:
        cursor = self.cursor
        mark = cursor.mark
        var = name_of(cursor.take())
        cursor.take()
        type_ = name_of(cursor.expect_upper("a node type"))
        also: list[Name] = []
        while cursor.accept("|"):
            also.append(name_of(cursor.expect_upper("another node type")))
        matches: list[PropertyMatch] = []
        if cursor.accept("{"):
            while not cursor.accept("}"):
                start = cursor.mark
                name = name_of(cursor.expect_lower("a property name"))
                cursor.expect(":", " and the property's value")
                matches.append(PropertyMatch(name, self.atom(), cursor.since(start)))
                if not cursor.at("}"):
                    cursor.expect(",", " or '}' behind a property")
        return BindingClause(var, type_, tuple(matches), cursor.since(mark), tuple(also))

    def hop(self) -> HopClause:
        cursor = self.cursor
        mark = cursor.mark
        left = name_of(cursor.take())
        edge_var: Name | None = None
        if cursor.token.kind == VAR:
            if cursor.ahead().text != ":":
                hint = f"a hop names its edge: '${left} edge {cursor.token.text}'"
                raise cursor.fault("an edge between the two variables", hint=hint)
            edge_var = name_of(cursor.take())
            cursor.take()
        start = cursor.mark
        undirected = cursor.accept("<")
        also: list[Name] = []
        if cursor.accept(ANY_EDGE):
            edge = Name(ANY_EDGE, cursor.since(start))
            if cursor.token.kind in (LOWER, UPPER):
                hint = f"'->' follows any edge; one of a type is written '${left} {cursor.token.text} $b'"
                raise cursor.fault("a variable at the far end of the hop", hint=hint)
        else:
            if cursor.at("not"):
                raise cursor.fault("an edge name")
            edge = name_of(cursor.expect_lower("an edge name"))
            while cursor.accept("|"):
                also.append(name_of(cursor.expect_lower("another edge name")))
            if undirected:
                if cursor.at("{"):
                    raise cursor.fault("'>' to close the undirected edge", hint=f"bounds come last: '<{edge}>{{1,3}}'")
                cursor.expect(">", " to close the undirected edge")
        if cursor.at("*"):
            hint = f"bounds say how many steps a hop takes: '${left} {edge}{{1,5}} $b'"
            raise cursor.fault("a variable at the far end of the hop", hint=hint)
        bounds = self.bounds() if cursor.at("{") else None
        right = name_of(cursor.expect_variable("a variable at the far end of the hop"))
        return HopClause(left, edge, right, edge_var, undirected, bounds, cursor.since(mark), tuple(also))

    def bounds(self) -> Bounds:
        cursor = self.cursor
        mark = cursor.mark
        cursor.take()
        low = self.integer("the smallest number of hops")
        if cursor.at("}"):
            raise cursor.fault("',' and the largest number of hops", hint=f"exactly {low} hops is {{{low},{low}}}")
        cursor.expect(",", " and the largest number of hops")
        high = None if cursor.at("}") else self.integer("the largest number of hops")
        cursor.expect("}", " to close the hop bounds")
        return Bounds(low, high, cursor.since(mark))

    def condition(self) -> FilterClause:
        """Parse a condition: a comparison, a text predicate, a combination of these, or a Bool."""
        cursor = self.cursor
        mark = cursor.mark
        token, after = cursor.token, cursor.ahead()
        if token.text in _CONNECTIVES and after.text not in SYMBOLS | WORD_OPERATORS:
            raise cursor.fault(CLAUSE, hint=_CONNECTIVES[token.text])
        if token.text == "-" or (token.text == "(" and _is_foreign_node(after, cursor.ahead(2))):
            hint = NO_ARROWS if token.text == "(" else "a clause cannot begin with a sign: put the number on the right"
            raise cursor.fault(CLAUSE, hint=hint)
        expr = self.expression(CLAUSE)
        if not self.can_stand_alone(expr):
            raise self.no_comparison(expr)
        return FilterClause(expr, cursor.since(mark))

    def can_stand_alone(self, expr: Expr) -> bool:
        """True if an expression is a condition by its form, or can be a Bool because its clause ends here."""
        if isinstance(expr, PropertyExpr):
            return self.begins_clause()
        if isinstance(expr, CallExpr):
            return expr.function in TEXT
        return isinstance(expr, CompareExpr | LogicExpr | NotExpr | IsNullExpr | CaseExpr)

    def begins_clause(self) -> bool:
        """True if the next token begins a clause or ends the block."""
        token, after = self.cursor.token, self.cursor.ahead()
        if token.kind == LOWER:
            return (
                token.start in self.case_starts
                or after.text in ("(", "{")
                or (token.text == "not" and after.kind == VAR)
            )
        return token.kind == VAR or token.text in ("}", "(")

    def no_comparison(self, left: Expr) -> Fault:
        """Return the error for an expression that is not a condition, where a comparison is expected behind it."""
        cursor = self.cursor
        op = cursor.token.text
        hint = _FOREIGN_WORDS.get(op)
        if isinstance(left, WordExpr):
            if op == ":" or (cursor.token.kind == LOWER and cursor.ahead().kind in (VAR, LOWER)):
                return no_dollar(left.name, left.span, left.name)
            hint = did_you_mean(left.name, ("not", "search", "match_text", "fuzzy"))
        return cursor.fault(_COMPARISONS, hint=hint)

    def sort_item(self) -> SortItem:
        cursor = self.cursor
        mark = cursor.mark
        expr = self.expression("a sort key")
        token = cursor.token
        if token.text not in ("asc", "desc"):
            return SortItem(expr, None, cursor.since(mark))
        if isinstance(expr, CallExpr) and expr.function == "nearest":
            raise Fault(
                f"'nearest' is always best first and takes no '{token.text}'",
                cursor.here,
                hint=f"drop '{token.text}'",
            )
        cursor.take()
        return SortItem(expr, "asc" if token.text == "asc" else "desc", cursor.since(mark))


def _about_param_type(word: str) -> str | None:
    if word == "enum":
        return "a parameter for an enum property is a String"
    meant = foreign_type(word)
    if meant is not None:
        return f"write {meant}"
    return did_you_mean(word, (*SCALARS, "Vector")) or f"the types are {', '.join(SCALARS)}, Vector(n) and lists: [T]"


def _at_query(cursor: Cursor) -> bool:
    return cursor.at("query") and cursor.ahead().kind == LOWER and cursor.ahead(2).text == "("


def _is_foreign_node(first: Token, second: Token) -> bool:
    """True if a parenthesis opens a node pattern of another language: `(a:Type`, `(:Type`, `($a)`."""
    return first.text in (":", ")") or (first.kind in (LOWER, VAR) and second.text in (":", ")"))
