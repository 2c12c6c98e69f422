"""`.gq` text → tree.

Recursive descent over the shared cursor. No word is reserved, so a clause is told by the first few
tokens: `$x :` binds, `$a word $b` hops, everything else that starts an expression is a condition. A
broken query is skipped up to the next `query name(`, so one file reports several mistakes.

The grammar of today is smaller than the tree: what comes later (`or`, `in`, more operators) extends
`condition` and `operand`, and no other function.
"""

from __future__ import annotations

from typing import cast

from omnigraph.errors import ValueFormatError
from omnigraph.lang.cursor import Cursor, decode_string, name_of
from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.layout import quote
from omnigraph.lang.parsing import FileParser
from omnigraph.lang.spans import Name, Source, Span
from omnigraph.lang.tokens import DECIMAL, DIGITS, LOWER, PUNCT, STRING, UPPER, VAR, Comment, Token
from omnigraph.names import did_you_mean
from omnigraph.query.ast import (
    Assign,
    Binding,
    Bounds,
    Call,
    Clause,
    Compare,
    CompareOp,
    Condition,
    Delete,
    Expr,
    Hop,
    Insert,
    ListLiteral,
    Literal,
    Meta,
    Negation,
    Param,
    PropertyMatch,
    PropertyOf,
    Query,
    QueryFile,
    Read,
    ReturnItem,
    SortItem,
    Statement,
    Update,
    Var,
    Word,
    Write,
)
from omnigraph.query.functions import FUNCTIONS, TEXT
from omnigraph.types import INTEGER_RANGES, SCALARS
from omnigraph.values import parse_date, parse_datetime

_OPERATORS = frozenset({"=", "!=", "<", "<=", ">", ">=", "contains", "starts_with"})
_STATEMENTS = ("insert", "update", "delete")
_U64_MAX = INTEGER_RANGES["U64"][1]
_FOREIGN_OPERATORS = {
    "==": "equality is written with one '='",
    "<>": "'not equal' is written '!='",
    "=>": "'at least' is written '>='",
    "=<": "'at most' is written '<='",
}
_FOREIGN_WORDS = {
    "in": "whether a list holds a value is asked by '[1, 2] contains $x.p'",
    "is": "what has no value is found by 'not { $x.p = $x.p }'",
    "like": "a part of a text is found by 'contains', its beginning by 'starts_with'",
}
_EACH_ALONE = "write each condition as a clause of its own: all of them must hold"
_CONNECTIVES = {
    "where": _EACH_ALONE,
    "and": _EACH_ALONE,
    "&&": _EACH_ALONE,
    "or": "there is no 'or' between clauses: write one query for each case",
    "|": "there is no 'or' between clauses: write one query for each case",
}
_CLAUSE = "a clause ('$x: Type', '$a edge $b', a comparison, 'not { … }' or 'search(…)')"


def parse_queries(text: str, name: str = "<query>") -> QueryFile:
    """Return the tree of `text`, or raise `ParseError` with every mistake found."""
    return parse_source(Source(text, name))[0]


def parse_source(source: Source) -> tuple[QueryFile, list[Comment]]:
    """Return the tree and the comments, which only a formatter wants."""
    parser = _Parser(source)
    queries, comments = parser.parse(parser.query, _at_query)
    return QueryFile(queries), comments


class _Parser(FileParser[Query]):
    # -- queries ---------------------------------------------------------------------------------

    def query(self) -> Query:
        cursor = self.cursor
        mark = cursor.mark
        if not cursor.at("query"):
            hint = did_you_mean(cursor.token.text, ("query",)) if cursor.token.kind == LOWER else None
            raise cursor.fault("'query'", hint=hint or "a file holds queries: query name($param: Type) { … }")
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
        metas = self.metas()
        opened = cursor.expect("{", " to open the query").start
        body = self.read() if cursor.at("match") else self.write()
        cursor.expect("}", " to close the query")
        return Query(name, tuple(params), metas, body, params_span, cursor.since(opened), cursor.since(mark))

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
        nullable = cursor.accept("?")
        return Param(name, type_name, is_list, dim, nullable, cursor.since(mark))

    def metas(self) -> tuple[Meta, ...]:
        cursor = self.cursor
        metas: list[Meta] = []
        while cursor.at("@"):
            mark = cursor.mark
            cursor.take()
            word = cursor.expect_lower("'description' or 'instruction'")
            at = cursor.since(mark)
            if word.text not in ("description", "instruction"):
                hint = did_you_mean(word.text, ("description", "instruction"))
                raise Fault(f"a query has no '@{word.text}', only '@description' and '@instruction'", at, hint=hint)
            if any(meta.name == word.text for meta in metas):
                raise Fault(f"'@{word.text}' is written twice", at)
            cursor.expect("(", " and the text")
            text_span = cursor.here
            text = cursor.expect_string("a text in double quotes")
            cursor.expect(")")
            metas.append(Meta(word.text, text, text_span, cursor.since(mark)))
        return tuple(metas)

    # -- reads -----------------------------------------------------------------------------------

    def read(self) -> Read:
        cursor = self.cursor
        cursor.take()
        clauses, match_body = self.block("match")
        if not cursor.at("return"):
            raise cursor.fault("'return' and what the query returns", hint=self.about_order())
        cursor.take()
        start = cursor.expect("{", " to open 'return'").start
        items = [self.return_item()]
        while not cursor.at("}"):
            cursor.accept(",")
            if cursor.at("}"):
                break
            items.append(self.return_item())
        cursor.take()
        return_body = cursor.since(start)
        order: list[SortItem] = []
        order_body = limit_span = Span(0, 0)
        limit: int | None = None
        if cursor.accept("order"):
            start = cursor.expect("{", " to open 'order'").start
            order.append(self.sort_item())
            while cursor.accept(","):
                order.append(self.sort_item())
            cursor.expect("}", " to close 'order' (sort keys are separated by commas)")
            order_body = cursor.since(start)
        if cursor.at("limit"):
            start = cursor.mark
            cursor.take()
            if cursor.token.kind == VAR:
                raise cursor.fault("a whole number of rows", hint="write the number itself: limit 10")
            limit = self.integer("a whole number of rows")
            limit_span = cursor.since(start)
        if not cursor.at("}"):
            raise cursor.fault("'}' to close the query", hint=self.about_order())
        return Read(tuple(clauses), tuple(items), tuple(order), limit, match_body, return_body, order_body, limit_span)

    def about_order(self) -> str | None:
        if self.cursor.token.text in ("order", "limit", "return", "match", "where"):
            return "the parts come in this order: match { … } return { … } order { … } limit n"
        return None

    def block(self, word: str) -> tuple[list[Clause], Span]:
        cursor = self.cursor
        cursor.enter()
        start = cursor.expect("{", f" to open '{word}'").start
        clauses = [self.clause()]
        while not cursor.at("}"):
            if cursor.at("return") and cursor.ahead().text == "{":
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
                return self.binding()
            if after.kind == VAR or self.starts_hop(after):
                return self.hop()
        elif token.text == "not" and cursor.ahead().text == "{":
            cursor.take()
            clauses, body = self.block("not")
            return Negation(tuple(clauses), body, cursor.since(token.start))
        return self.condition()

    def starts_hop(self, after: Token) -> bool:
        """Whether `$a` and this token begin a hop rather than a comparison."""
        cursor = self.cursor
        if after.kind == LOWER:
            if after.text not in ("contains", "starts_with"):
                return after.text != "not"
            # `$a contains $b` is a hop over an edge of that name; `$a contains $b.p` cannot be.
            return cursor.ahead(2).text == "{" or (cursor.ahead(2).kind == VAR and cursor.ahead(3).text != ".")
        if after.kind == UPPER:
            return True
        # `$a < word` compares; what closes the brackets, or only a hop can have, tells `$a <edge> $b`.
        edge, closed = cursor.ahead(2), cursor.ahead(3)
        return after.text == "<" and edge.kind in (LOWER, UPPER) and closed.text in (">", "{")

    def binding(self) -> Binding:
        cursor = self.cursor
        mark = cursor.mark
        var = name_of(cursor.take())
        cursor.take()
        type_ = name_of(cursor.expect_upper("a node type"))
        matches: list[PropertyMatch] = []
        if cursor.accept("{"):
            while not cursor.accept("}"):
                start = cursor.mark
                name = name_of(cursor.expect_lower("a property name"))
                cursor.expect(":", " and the property's value")
                matches.append(PropertyMatch(name, self.atom(), cursor.since(start)))
                if not cursor.at("}"):
                    cursor.expect(",", " or '}' behind a property")
        return Binding(var, type_, tuple(matches), cursor.since(mark))

    def hop(self) -> Hop:
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
        undirected = cursor.accept("<")
        if cursor.at("not"):
            raise cursor.fault("an edge name")
        edge = name_of(cursor.expect_lower("an edge name"))
        if undirected:
            if cursor.at("{"):
                raise cursor.fault("'>' to close the undirected edge", hint=f"bounds come last: '<{edge}>{{1,3}}'")
            cursor.expect(">", " to close the undirected edge")
        bounds = self.bounds() if cursor.at("{") else None
        right = name_of(cursor.expect_variable("a variable at the far end of the hop"))
        return Hop(left, edge, right, edge_var, undirected, bounds, cursor.since(mark))

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

    def condition(self) -> Condition:
        """A comparison or a text predicate."""
        cursor = self.cursor
        mark = cursor.mark
        if cursor.token.text in _CONNECTIVES and cursor.ahead().text not in _OPERATORS:
            raise cursor.fault(_CLAUSE, hint=_CONNECTIVES[cursor.token.text])
        left = self.operand(_CLAUSE)
        op = cursor.token.text
        if op not in _OPERATORS:
            if isinstance(left, Call) and left.function in TEXT:
                return Condition(left, left.span)
            hint = _FOREIGN_WORDS.get(op)
            if op == "-" or op == "->":
                hint = "a hop is written '$a edge $b', without arrows"
            elif isinstance(left, Word):
                if op == ":" or (cursor.token.kind == LOWER and cursor.ahead().kind in (VAR, LOWER)):
                    raise _no_dollar(left.name, left.span, left.name)
                hint = did_you_mean(left.name, ("not", "search", "match_text", "fuzzy"))
                if cursor.source.text[left.span.start - 1].isdigit():
                    hint = "numbers are written as digits, with an optional fraction, and without exponent"
            raise cursor.fault("a comparison (=, !=, <, <=, >, >=, contains, starts_with)", hint=hint)
        cursor.take()
        self.refuse_foreign_operator(op)
        right = self.operand("a value to compare with")
        span = cursor.since(mark)
        return Condition(Compare(cast(CompareOp, op), left, right, span), span)

    def refuse_foreign_operator(self, op: str) -> None:
        """`==`, `<>` and the like, which other languages have."""
        hint = _FOREIGN_OPERATORS.get(op + self.cursor.token.text)
        if hint is not None:
            raise self.cursor.fault("a value", hint=hint)

    def return_item(self) -> ReturnItem:
        cursor = self.cursor
        mark = cursor.mark
        expr = self.operand("what to return ('$x.property', '$x', an aggregate, …)")
        alias = name_of(cursor.expect_lower("an alias")) if cursor.accept("as") else None
        return ReturnItem(expr, alias, cursor.since(mark))

    def sort_item(self) -> SortItem:
        cursor = self.cursor
        mark = cursor.mark
        expr = self.operand("a sort key")
        token = cursor.token
        if token.text not in ("asc", "desc"):
            return SortItem(expr, None, cursor.since(mark))
        if isinstance(expr, Call) and expr.function == "nearest":
            raise Fault(
                f"'nearest' is always best first and takes no '{token.text}'",
                cursor.here,
                hint=f"drop '{token.text}'",
            )
        cursor.take()
        return SortItem(expr, "asc" if token.text == "asc" else "desc", cursor.since(mark))

    # -- writes ----------------------------------------------------------------------------------

    def write(self) -> Write:
        cursor = self.cursor
        statements: list[Statement] = []
        while cursor.token.text in _STATEMENTS:
            statements.append(self.statement())
        if not statements:
            hint = did_you_mean(cursor.token.text, ("match", *_STATEMENTS)) if cursor.token.kind == LOWER else None
            raise cursor.fault("'match', 'insert', 'update' or 'delete'", hint=hint)
        if not cursor.at("}"):
            hint = did_you_mean(cursor.token.text, _STATEMENTS) if cursor.token.kind == LOWER else None
            raise cursor.fault("another statement or '}' to close the query", hint=hint)
        return Write(tuple(statements))

    def statement(self) -> Statement:
        cursor = self.cursor
        mark = cursor.mark
        word = cursor.take().text
        type_ = name_of(cursor.expect_upper("a type"))
        if word == "insert":
            assigns, body = self.assigns("insert")
            return Insert(type_, assigns, body, cursor.since(mark))
        if word == "update":
            cursor.expect("set", " and the new values")
            assigns, body = self.assigns("set")
            return Update(type_, assigns, self.where(word), body, cursor.since(mark))
        return Delete(type_, self.where(word), cursor.since(mark))

    def assigns(self, word: str) -> tuple[tuple[Assign, ...], Span]:
        cursor = self.cursor
        start = cursor.expect("{", f" to open '{word}'").start
        assigns: list[Assign] = []
        while not cursor.accept("}"):
            mark = cursor.mark
            name = name_of(cursor.expect_lower("a property name"))
            cursor.expect(":", " and the property's value")
            assigns.append(Assign(name, self.atom(), cursor.since(mark)))
            cursor.accept(",")
        return tuple(assigns), cursor.since(start)

    def where(self, word: str) -> Compare:
        cursor = self.cursor
        if not cursor.accept("where"):
            raise cursor.fault(
                f"'where' and which rows to {word}", hint=f"every {word} names its rows: where key = $key"
            )
        mark = cursor.mark
        if cursor.token.kind != LOWER:
            hint = None
            if cursor.token.kind == VAR:
                alone = cursor.ahead(2).text if cursor.ahead().text == "." else cursor.token.text[1:]
                hint = f"name the property alone: '{alone}'"
            raise cursor.fault("a property name", hint=hint)
        name = cursor.take()
        left = Word(name.text, Span(name.start, name.end))
        op = cursor.token.text
        if op not in _OPERATORS or op in ("contains", "starts_with"):
            raise cursor.fault("a comparison (=, !=, <, <=, >, >=)")
        cursor.take()
        self.refuse_foreign_operator(op)
        right = self.atom()
        if cursor.token.text in ("and", "or"):
            raise cursor.fault("another statement or '}'", hint="'where' takes one comparison")
        return Compare(cast(CompareOp, op), left, right, cursor.since(mark))

    # -- expressions -----------------------------------------------------------------------------

    def atom(self) -> Expr:
        """A value that can stand in a pattern or an assignment: a literal, a parameter or `now()`."""
        token = self.cursor.token
        expr = self.operand("a value (a literal, '$param' or now())")
        match expr:
            case Literal() | ListLiteral() | Var():
                return expr
            case Call("now"):
                return expr
        hint = "compute the value beforehand and pass it as a parameter"
        if isinstance(expr, Word):
            hint = f'text is written in double quotes: "{expr.name}"'
            if expr.name == "null":
                hint = "pass null through a nullable parameter"
        raise Fault("only a literal, a '$param' or now() can stand here", self.cursor.since(token.start), hint=hint)

    def operand(self, expected: str) -> Expr:
        cursor = self.cursor
        token = cursor.token
        kind = token.kind
        if kind == VAR:
            cursor.take()
            if not cursor.at("."):
                return Var(token.text[1:], Span(token.start, token.end))
            cursor.take()
            property_ = name_of(cursor.expect_lower("a property name"))
            return PropertyOf(
                Name(token.text[1:], Span(token.start, token.end)), property_, Span(token.start, property_.span.end)
            )
        if kind == LOWER:
            return self.word_or_call()
        if kind in (STRING, DIGITS, DECIMAL):
            return self.scalar_literal()
        if token.text == "[":
            return self.list_literal()
        if token.text == "'":
            raise self.single_quoted(token)
        raise cursor.fault(expected, hint=_about_operand(token, cursor.ahead(), in_clause=expected is _CLAUSE))

    def single_quoted(self, opened: Token) -> Fault:
        text = self.cursor.source.text
        closed = text.find("'", opened.end)
        inside = text[opened.end : closed]
        if closed < 0 or len(inside) > 80 or "\n" in inside:
            return self.cursor.fault("a value")
        span = Span(opened.start, closed + 1)
        return Fault("text is written in double quotes, not in single ones", span, hint=f"write {quote(inside)}")

    def word_or_call(self) -> Expr:
        cursor = self.cursor
        token = cursor.take()
        span = Span(token.start, token.end)
        if token.text in ("true", "false"):
            return Literal("bool", token.text == "true", span)
        if cursor.at(".") and cursor.ahead().kind == LOWER:
            raise _no_dollar(token.text, span, f"{token.text}.{cursor.ahead().text}")
        if not cursor.at("("):
            return Word(token.text, span)
        if token.text in ("date", "datetime"):
            return self.dated_literal(token)
        function = FUNCTIONS.get(token.text)
        if function is None:
            raise Fault(
                f"there is no function '{token.text}'",
                span,
                hint=did_you_mean(token.text, (*FUNCTIONS, "date", "datetime")),
            )
        cursor.enter()
        cursor.take()
        arguments: list[Expr] = []
        if not cursor.at(")"):
            if cursor.at("*"):
                raise cursor.fault("an argument", hint=f"count rows by a variable: {token.text}($x)")
            arguments.append(self.operand("an argument"))
            while cursor.accept(","):
                arguments.append(self.operand("an argument"))
        cursor.expect(")", f" to close '{token.text}'")
        cursor.leave()
        span = cursor.since(token.start)
        if not function.least <= len(arguments) <= function.most:
            wanted = function.least if function.least == function.most else f"{function.least} or {function.most}"
            plural = "argument" if wanted == 1 else "arguments"
            raise Fault(
                f"'{token.text}' takes {wanted} {plural}, not {len(arguments)}", span, hint=f"write {function.usage}"
            )
        if token.text == "nearest" and not isinstance(arguments[0], PropertyOf):
            raise Fault("'nearest' ranks a vector property", arguments[0].span, hint=f"write {function.usage}")
        return Call(token.text, tuple(arguments), span)

    def scalar_literal(self) -> Literal:
        token = self.cursor.take()
        span = Span(token.start, token.end)
        if token.kind == STRING:
            return Literal("string", decode_string(token), span)
        if token.kind == DIGITS:
            return Literal("int", _integer(token), span)
        value = float(token.text)
        if value == float("inf"):
            raise Fault("the number is too large for a 64-bit float", span)
        return Literal("decimal", value, span)

    def dated_literal(self, word: Token) -> Literal:
        cursor = self.cursor
        cursor.take()
        text_at = cursor.here
        text = cursor.expect_string("a text in double quotes")
        cursor.expect(")")
        try:
            (parse_date if word.text == "date" else parse_datetime)(text)
        except ValueFormatError as error:
            raise Fault(error.message, text_at, hint=error.hint) from None
        return Literal("date" if word.text == "date" else "datetime", text, cursor.since(word.start))

    def list_literal(self) -> ListLiteral:
        cursor = self.cursor
        mark = cursor.mark
        cursor.enter()
        cursor.take()
        items: list[Expr] = []
        while not (cursor.at("]") and not items):
            item = self.operand("a value or ']'")
            if not isinstance(item, Literal | ListLiteral):
                raise Fault("a list literal holds literals only", item.span, hint="pass a list as a parameter instead")
            items.append(item)
            if not cursor.accept(","):
                break
        cursor.expect("]", " to close the list")
        cursor.leave()
        return ListLiteral(tuple(items), cursor.since(mark))

    def integer(self, what: str) -> int:
        return _integer(self.cursor.expect_digits(what))


def _integer(token: Token) -> int:
    # The length is looked at first: Python refuses to convert thousands of digits.
    digits = token.text.lstrip("0") or "0"
    if len(digits) > 20 or int(digits) > _U64_MAX:
        raise Fault("the number does not fit 64 bits", Span(token.start, token.end))
    return int(digits)


def _no_dollar(word: str, span: Span, meant: str) -> Fault:
    return Fault(f"'{word}' is not a variable", span, hint=f"variables are written with a dollar sign: '${meant}'")


def _about_operand(token: Token, after: Token, *, in_clause: bool) -> str | None:
    if token.text == "-" and after.kind in (DIGITS, DECIMAL):
        return "a negative number cannot be written here: pass it as a parameter"
    if token.kind == UPPER:
        bound = f"a node type is bound by a variable: '$x: {token.text}'"
        return bound if in_clause else f'text is written in double quotes: "{token.text}"'
    if token.text == "," and in_clause:
        return "clauses are not separated by commas: end the line"
    if token.kind == PUNCT and token.text in ("(", "-", "->", "<"):
        return "a hop is written '$a edge $b', without arrows or parentheses"
    return None


def _about_param_type(word: str) -> str | None:
    if word == "enum":
        return "a parameter for an enum property is a String"
    return did_you_mean(word, (*SCALARS, "Vector")) or f"the types are {', '.join(SCALARS)} and Vector(n)"


def _at_query(cursor: Cursor) -> bool:
    return cursor.at("query") and cursor.ahead().kind == LOWER and cursor.ahead(2).text == "("
