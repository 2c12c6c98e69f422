"""Parser of paths: `$p: path { … }`, `$p: shortest { … } by km`, `$p: all shortest { … }`, `$a -> $b in $p`."""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.lang.cursor import Cursor, name_of
from omnigraph.lang.tokens import LOWER, VAR
from omnigraph.query.syntax.ast import ANY_EDGE, HopClause, PathClause, PathKind, StepClause
from omnigraph.suggestions import did_you_mean

_WORDS = ("path", "shortest", "all")


def starts_path(cursor: Cursor) -> bool:
    """True if `$x:` binds a path; a node type would begin with a capital letter."""
    word, after = cursor.ahead(2), cursor.ahead(3)
    return word.kind == LOWER and (word.text in ("path", "shortest", "all") or after.text == "{")


def parse_path(cursor: Cursor, hop: Callable[[], HopClause]) -> PathClause:
    """Parse a path; `hop` parses one of its hops."""
    mark = cursor.mark
    var = name_of(cursor.take())
    cursor.take()
    kind = _kind(cursor)
    start = cursor.expect("{", f" and the hops of the path: {kind} {{ $a edge $b }}").start
    hops: list[HopClause] = []
    while not hops or not cursor.at("}"):
        if cursor.token.kind != VAR or cursor.ahead().text == ".":
            raise cursor.fault("a hop of the path ('$a edge $b')", hint="conditions follow the path")
        hops.append(hop())
    cursor.take()
    body = cursor.since(start)
    by = None
    if cursor.at("by") and cursor.ahead().text not in ("(", "{"):
        cursor.take()
        by = name_of(cursor.expect_lower("the edge property to add up"))
    return PathClause(var, kind, tuple(hops), by, body, cursor.since(mark))


def parse_step(cursor: Cursor, hop: HopClause) -> StepClause:
    """Parse `in $p` behind a hop: the steps of a path."""
    plain = HopClause(hop.left, hop.edge, hop.right, undirected=hop.undirected)
    if hop.edge.text != ANY_EDGE or hop != plain:
        raise cursor.fault("a clause", hint=f"a step of a path is written '${hop.left} -> ${hop.right} in $p'")
    cursor.take()
    path = name_of(cursor.expect_variable("the path"))
    return StepClause(hop.left, hop.right, path, hop.undirected, cursor.since(hop.span.start))


def _kind(cursor: Cursor) -> PathKind:
    if cursor.accept("path"):
        return "path"
    if cursor.accept("shortest"):
        return "shortest"
    if cursor.accept("all"):
        cursor.expect("shortest", ": 'all shortest { $a edge{1,6} $b }'")
        return "all shortest"
    name = cursor.token.text
    hint = did_you_mean(name, _WORDS) or f"a node type begins with an upper-case letter: '{name[0].upper()}{name[1:]}'"
    raise cursor.fault("a node type, or 'path', 'shortest' or 'all shortest'", hint=hint)
