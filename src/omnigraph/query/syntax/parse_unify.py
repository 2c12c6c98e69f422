"""Parser of `unify Type dropped into kept { rules } edges { rules }`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.lang.cursor import name_of
from omnigraph.lang.spans import Name, Span
from omnigraph.query.syntax.ast import EdgeRule, UnifyStatement

if TYPE_CHECKING:
    from omnigraph.query.syntax.parse_writes import WriteParser

_HINT = 'write unify Type "dropped id" into "kept id" { property: rule }'


def unify_statement(parser: WriteParser, type_: Name, mark: int) -> UnifyStatement:
    """Parse the rest of the statement, after its type."""
    cursor = parser.cursor
    if cursor.at("{"):
        raise cursor.fault("the id of the node to drop", hint=_HINT)
    drop = parser.expression("the id of the node to drop")
    if not cursor.accept("into"):
        raise cursor.fault("'into' and the id of the node to keep", hint=_HINT)
    keep = parser.expression("the id of the node to keep")
    rules, rules_body = parser.assigns("unify") if cursor.at("{") else (None, Span(0, 0))
    edges, edges_body = _edge_rules(parser) if cursor.accept("edges") else (None, Span(0, 0))
    name = parser.row_name()
    return UnifyStatement(type_, drop, keep, rules, edges, rules_body, edges_body, cursor.since(mark), name)


def _edge_rules(parser: WriteParser) -> tuple[tuple[EdgeRule, ...], Span]:
    """Parse `{ EdgeType: rule, … }`; commas are optional."""
    cursor = parser.cursor
    start = parser.opening("edges")
    rules: list[EdgeRule] = []
    while not cursor.accept("}"):
        mark = cursor.mark
        type_ = name_of(cursor.expect_upper("an edge type"))
        cursor.expect(":", " and the rule of the edge type")
        rules.append(EdgeRule(type_, name_of(cursor.expect_lower("a rule")), cursor.since(mark)))
        cursor.accept(",")
    return tuple(rules), cursor.since(start)
