"""Parser of the statements of a mutation, and of `return`.

Statements follow each other directly or inside `atomic { … }`; a word that begins no statement ends them.
"""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.lang.cursor import name_of
from omnigraph.lang.spans import Name, Span
from omnigraph.lang.tokens import LOWER, UPPER, VAR
from omnigraph.query.syntax.ast import (
    Assign,
    DeleteStatement,
    Expr,
    InsertStatement,
    ReturnItem,
    Statement,
    UpdateStatement,
    UpsertStatement,
    Write,
)
from omnigraph.query.syntax.dialect_hints import about_opening, about_start, about_statement
from omnigraph.query.syntax.parse_expressions import ExpressionParser
from omnigraph.query.syntax.parse_unify import unify_statement
from omnigraph.query.syntax.parse_valid import parse_end, parse_valid_from
from omnigraph.suggestions import did_you_mean

_STATEMENTS = ("insert", "update", "delete", "upsert", "unify", "end")
BARE = ("match", "valid", "atomic", *_STATEMENTS)
"""The words that begin the body of a query, and so a query without a head."""
_READ_PARTS = ("having", "order", "skip", "limit")


class WriteParser(ExpressionParser):
    """The mutation part of the parser."""

    bare = False
    """True if the query has no head and no braces; it ends with the text."""

    def closes(self) -> bool:
        """True if the query ends here."""
        return self.cursor.at_end() if self.bare else self.cursor.at("}")

    @property
    def closing(self) -> str:
        """The end of the query, for messages."""
        return "the end of the query" if self.bare else "'}' to close the query"

    def opening(self, word: str) -> int:
        """Consume the brace that opens a part of the query, and return its position."""
        if not self.cursor.at("{"):
            raise self.cursor.fault(f"'{{' to open '{word}'", hint=about_opening(word, self.cursor))
        return self.cursor.take().start

    # -- writes ----------------------------------------------------------------------------------

    def write(self) -> Write:
        """Parse the statements of a query and its `return`."""
        cursor = self.cursor
        atomic, body = False, Span(0, 0)
        if cursor.at("atomic") and cursor.ahead().text == "{":
            cursor.take()
            start = cursor.take().start
            statements = self.statements("another statement or '}' to close the block", lambda: cursor.at("}"))
            if cursor.at("return"):
                raise cursor.fault("another statement or '}' to close the block", hint="'return' follows the block")
            cursor.take()
            atomic, body = True, cursor.since(start)
        else:
            statements = self.statements(f"another statement or {self.closing}", self.closes)
        if not cursor.accept("return"):
            return Write(statements, atomic, (), body)
        items, return_body = self.return_block()
        if cursor.token.text in _READ_PARTS:
            hint = "a mutation returns the rows of its statements: 'return' comes last"
            raise cursor.fault(self.closing, hint=hint)
        return Write(statements, atomic, items, body, return_body)

    def statements(self, expected: str, closes: Callable[[], bool]) -> tuple[Statement, ...]:
        """Parse one or more statements, up to `return` or the end."""
        cursor = self.cursor
        statements: list[Statement] = []
        while cursor.token.text in _STATEMENTS:
            statements.append(self.statement())
        if not statements:
            known = ("match", "atomic", *_STATEMENTS)
            hint = did_you_mean(cursor.token.text, known) if cursor.token.kind == LOWER else None
            raise cursor.fault("'match', 'insert', 'update' or 'delete'", hint=hint or about_start(cursor))
        if not closes() and not cursor.at("return"):
            hint = did_you_mean(cursor.token.text, (*_STATEMENTS, "return")) if cursor.token.kind == LOWER else None
            raise cursor.fault(expected, hint=hint)
        return tuple(statements)

    def statement(self) -> Statement:
        """Parse one statement."""
        cursor = self.cursor
        mark = cursor.mark
        word = cursor.take().text
        if cursor.token.text.lower() in ("into", "from") and cursor.ahead().kind == UPPER:
            raise cursor.fault("a type", hint=about_statement(word, cursor.ahead().text))
        type_ = name_of(cursor.expect_upper("a type"))
        if word == "insert":
            assigns, body = self.assigns("insert")
            name = self.row_name()
            return InsertStatement(type_, assigns, body, cursor.since(mark), name)
        if word == "update":
            if not cursor.accept("set"):
                raise cursor.fault("'set' and the new values", hint=about_statement(word, type_.text))
            assigns, body = self.assigns("set")
            where, since = self.where(word), parse_valid_from(cursor, self.expression)
            name = self.row_name()
            return UpdateStatement(type_, assigns, where, body, cursor.since(mark), name, since)
        if word == "end":
            return parse_end(cursor, type_, self.where(word), mark, self.expression)
        if word == "upsert":
            return self.upsert(type_, mark)
        if word == "unify":
            return unify_statement(self, type_, mark)
        where, name = self.where(word), self.row_name()
        return DeleteStatement(type_, where, cursor.since(mark), name)

    def row_name(self) -> Name | None:
        """Parse an optional `as $x`, the name of the rows of the statement."""
        return (
            name_of(self.cursor.expect_variable("a variable for the rows ('as $x')"))
            if self.cursor.accept("as")
            else None
        )

    def upsert(self, type_: Name, mark: int) -> UpsertStatement:
        """Parse `{ key } new { … } existing { … }`."""
        cursor = self.cursor
        key, key_body = self.assigns("upsert")
        new, new_body = self.assigns("new") if cursor.accept("new") else (None, Span(0, 0))
        existing, existing_body = self.assigns("existing") if cursor.accept("existing") else (None, Span(0, 0))
        name = self.row_name()
        return UpsertStatement(type_, key, new, existing, key_body, new_body, existing_body, cursor.since(mark), name)

    def assigns(self, word: str) -> tuple[tuple[Assign, ...], Span]:
        """Parse `{ p: value, … }`; commas are optional."""
        cursor = self.cursor
        start = self.opening(word)
        assigns: list[Assign] = []
        while not cursor.accept("}"):
            mark = cursor.mark
            name = name_of(cursor.expect_lower("a property name"))
            if cursor.at("="):
                raise cursor.fault("':' and the property's value", hint=f"write {name}: value")
            cursor.expect(":", " and the property's value")
            assigns.append(Assign(name, self.expression("a value"), cursor.since(mark)))
            cursor.accept(",")
        return tuple(assigns), cursor.since(start)

    def where(self, word: str) -> Expr:
        """Parse `where condition`, which update, end and delete require."""
        cursor = self.cursor
        if not cursor.accept("where"):
            raise cursor.fault(
                f"'where' and which rows to {word}", hint=f"every {word} names its rows: where key = $key"
            )
        if cursor.token.kind == VAR and cursor.ahead().text == ".":
            raise cursor.fault("a property name", hint=f"name the property alone: '{cursor.ahead(2).text}'")
        return self.expression("a condition on the properties of a row")

    # -- return ----------------------------------------------------------------------------------

    def return_block(self) -> tuple[tuple[ReturnItem, ...], Span]:
        """Parse `{ item, … }` behind `return`; commas are optional."""
        cursor = self.cursor
        start = self.opening("return")
        items = [self.return_item()]
        while not cursor.at("}"):
            cursor.accept(",")
            if cursor.at("}"):
                break
            items.append(self.return_item())
        cursor.take()
        return tuple(items), cursor.since(start)

    def return_item(self) -> ReturnItem:
        """Parse `expr` or `expr as alias`."""
        cursor = self.cursor
        mark = cursor.mark
        expected = "what to return ('$x.property', '$x', an aggregate, …)"
        if cursor.at("*"):
            raise cursor.fault(expected, hint="name what to return: '$x' is a whole node, '$x.property' one property")
        if cursor.at("AS"):
            raise cursor.fault(expected, hint="keywords are written in lower case: 'as'")
        expr = self.expression(expected)
        alias = name_of(cursor.expect_lower("an alias")) if cursor.accept("as") else None
        return ReturnItem(expr, alias, cursor.since(mark))
