"""Hints for the keywords and functions of Cypher, SQL and other languages."""

from __future__ import annotations

from omnigraph.errors import Hint
from omnigraph.lang.cursor import Cursor
from omnigraph.lang.tokens import LOWER, UPPER
from omnigraph.suggestions import did_you_mean

_COMPARED = "'Coming from Cypher or SQL' in the documentation compares the languages"
_READ = ("match", "select", "from", "with", "return", "unwind", "optional")
_WRITES = {
    "create": "insert {type} {{ property: value }}",
    "insert": "insert {type} {{ property: value }}",
    "merge": "upsert {type} {{ key: value, property: value }}",
    "upsert": "upsert {type} {{ key: value, property: value }}",
    "set": "update {type} set {{ property: value }} where condition",
    "update": "update {type} set {{ property: value }} where condition",
    "delete": "delete {type} where condition",
    "detach": "delete {type} where condition",
    "remove": "delete {type} where condition",
    "unify": 'unify {type} "dropped id" into "kept id" {{ property: rule }}',
}
_NO_QUERY = "a query begins with 'match', 'insert', 'update', 'upsert', 'delete', 'unify' or 'query name(…)'"
_PARTS = "the parts come in this order: match { … } return { … } having { … } order { … } skip n limit n"
_PART_WORDS = ("match", "with", "return", "having", "order", "skip", "limit")
_PART_HINTS = {
    "where": "a condition is a clause inside the braces: match { $x: Type $x.property > 1 }",
    "group": "rows are grouped by the returned items that are not aggregates: return { $x.property, count($x) as n }",
    "offset": "rows are skipped by 'skip n', before 'limit'",
    "with": "'with { … }' stands before 'return': match { … } with { $x, count($y) as $n } match { … } return { … }",
}
_OPENINGS = {
    "match": "write match { $x: Type } return { $x.property }",
    "return": "write return { $x.property }",
    "with": "write with { $x, count($y) as $n }",
    "order": "write order { $x.property desc }",
    "having": "write having { n > 1 }",
    "set": "write set { property: value }",
    "insert": "write insert Type { property: value }",
    "upsert": "write upsert Type { key: value }",
    "edges": "write edges { EdgeType: rule }",
}
_FUNCTIONS = {
    "size": "length($x.list)",
    "len": "length($x.text)",
    "char_length": "length($x.text)",
    "cardinality": "length($x.list)",
    "date_part": "year($x.date), month($x.date) or day($x.date)",
    "datepart": "year($x.date), month($x.date) or day($x.date)",
    "extract": "year($x.date), month($x.date) or day($x.date)",
    "ifnull": "coalesce($x.value, other)",
    "nvl": "coalesce($x.value, other)",
    "isnull": "'$x.value is null'",
    "exists": "'$x.value is not null', or optional { … } and not { … } for patterns",
    "tostring": "to_string($x.value)",
    "tointeger": "to_integer($x.text)",
    "tofloat": "to_float($x.text)",
    "cast": "to_string, to_integer, to_float, to_date or to_datetime",
    "toupper": "upper($x.text)",
    "ucase": "upper($x.text)",
    "tolower": "lower($x.text)",
    "lcase": "lower($x.text)",
    "substr": "substring($x.text, start, length)",
    "datediff": "date_diff($x.from, $x.to, days)",
    "dateadd": "date_add($x.date, 3, months)",
    "array_agg": "collect($x.value)",
    "group_concat": "collect($x.value)",
    "string_agg": "collect($x.value)",
    "mean": "avg($x.number)",
    "average": "avg($x.number)",
    "labels": "type($x)",
    "relationships": "edges($path)",
    "current_date": "to_date(now())",
    "current_timestamp": "now()",
    "timestamp": "now()",
}


def about_start(cursor: Cursor) -> str | None:
    """Return the hint for a word that does not begin a query."""
    token = cursor.token
    if token.kind not in (LOWER, UPPER):
        return None
    word = token.text.lower()
    if word in _READ:
        return _about_read(cursor)
    if word in _WRITES:
        return about_statement(word, _named(cursor)[1])
    return did_you_mean(word, ("query", "match", "atomic", *_WRITES)) or Hint(
        _NO_QUERY,
        cli=f"{_NO_QUERY}; 'omnigraph --help' lists the commands",
        in_shell=f"{_NO_QUERY}; ':help' lists the commands",
    )


def about_statement(word: str, type_: str) -> str:
    """Return the syntax of the statement that `word` begins in this or another language."""
    return f"write {_WRITES[word].format(type=type_)}"


def _about_read(cursor: Cursor) -> str:
    variable, type_ = _named(cursor)
    return f"write match {{ ${variable}: {type_} }} return {{ ${variable}.property }}; {_COMPARED}"


def _named(cursor: Cursor) -> tuple[str, str]:
    """Return the first type name in the next tokens, and its variable if it is written as in Cypher."""
    for distance in range(1, 24):
        token = cursor.ahead(distance)
        is_keyword = token.text.isupper() and len(token.text) > 1
        if token.kind == UPPER and not is_keyword:
            before = cursor.ahead(distance - 2)
            cypher = cursor.ahead(distance - 1).text == ":" and before.kind == LOWER
            return (before.text if cypher else "x"), token.text
    return "x", "Type"


def about_part(cursor: Cursor) -> str | None:
    """Return the hint for a word behind `match { … }` or behind a part of a read."""
    token = cursor.token
    word = token.text.lower()
    if token.kind not in (LOWER, UPPER):
        return None
    if word in _PART_HINTS:
        return _PART_HINTS[word]
    if word in _PART_WORDS:
        return _PARTS if token.kind == LOWER else f"keywords are written in lower case: '{word}'"
    return did_you_mean(word, _PART_WORDS)


def about_opening(word: str, cursor: Cursor) -> str | None:
    """Return the hint for a part of a query without its opening brace."""
    token = cursor.token
    if word == "match" and token.text == "(":
        return _about_read(cursor)
    if word == "set" and token.kind == LOWER:
        return f"write set {{ {token.text}: value }}"
    if word == "order" and token.text.lower() == "by":
        key, dot, name = (cursor.ahead(distance).text for distance in (1, 2, 3))
        key = f"{key}.{name}" if dot == "." else "$x.property" if key == "{" else key
        return f"write order {{ {key} desc }}, without 'by'"
    return _OPENINGS.get(word)


def about_function(name: str) -> str | None:
    """Return the equivalent of a function of another language."""
    known = _FUNCTIONS.get(name.lower())
    return f"use {known}" if known else None
