"""What an expression can see: variables, and bare names that mean something."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal as OneOf

from omnigraph.errors import Hint
from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.spans import Name, Span
from omnigraph.query.check.errors import type_fault
from omnigraph.query.plan import ir
from omnigraph.query.syntax import ast
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.suggestions import closest, did_you_mean, listing
from omnigraph.types import ObjectType


@dataclass(frozen=True, slots=True)
class PathType:
    """What the nodes and the edges of a path look like, and whether it is weighed."""

    nodes: ObjectType
    edges: ObjectType
    weighted: bool


@dataclass(slots=True)
class Variable:
    """A match variable; a `type_name` of None means its type could not be told."""

    name: str
    ir_name: str
    kind: OneOf["node", "edge", "path"]
    type_name: str | None
    optional: bool = False
    """It comes from an `optional` block, so a row may have none."""
    path: PathType | None = None
    """What a path holds, once that is known."""


class Scope:
    """What an expression can see: the variables introduced above it in its block, and the outer blocks'.

    `since` tells which clause introduced a variable, `clause` which one is being looked at,
    `mentioned` collects the variables that were looked up, and `hidden` are names that only the `not`
    blocks further up know. `words` are the bare names that mean something, None when what they name had a
    mistake; `row` is the type whose properties they are in a mutation.
    """

    def __init__(
        self,
        own: Mapping[str, Variable],
        since: Mapping[str, int],
        clause: float,
        outer: Scope | None,
        mentioned: dict[str, None],
        hidden: Collection[str] = (),
        words: Mapping[str, ir.Expr | None] | None = None,
        row: NodeType | EdgeType | None = None,
    ) -> None:
        self.own = own
        self.since = since
        self.clause = clause
        self.outer = outer
        self.mentioned = mentioned
        self.hidden = hidden
        self.words = words or {}
        self.row = row

    def find(self, name: str) -> Variable | None:
        """The variable of this name, if it is visible."""
        variable = self.own.get(name)
        if variable is not None and self.since[name] < self.clause:
            return variable
        return self.outer.find(name) if self.outer else None

    @property
    def rows(self) -> Scope:
        """What the argument of an aggregate sees: single rows."""
        return self

    def of_group(self, expr: ir.Expr, text: str, span: Span) -> ir.Expr:
        """What an expression means here; only where groups are judged it is something else, or nothing."""
        del text, span
        return expr

    def within(self, expr: ast.Expr) -> Scope:
        """What a part of an item sees; single rows where no aggregate is in it."""
        del expr
        return self

    def returned(self, expr: ast.Expr) -> ir.Expr | None:
        """What is meant by an item that is written again, where groups are judged."""
        del expr
        return None

    def names(self) -> list[str]:
        """Every visible name."""
        own = [name for name in self.own if self.since[name] < self.clause]
        return own + self.outer.names() if self.outer else own

    def get(self, name: Name) -> Variable:
        """The variable, or the error that says why there is none."""
        variable = self.find(name.text)
        if variable is None:
            raise self.unbound(name)
        self.mentioned[variable.ir_name] = None
        return variable

    def unbound(self, name: Name) -> Fault:
        """T6: nothing visible has this name."""
        return type_fault("T6", f"'${name}' is not bound", name.span, self.why_not(name.text))

    def unknown(self, name: Name, params: Iterable[str]) -> Fault:
        """The same where a parameter could stand as well."""
        message = f"'${name}' is neither a parameter nor a bound variable"
        return type_fault(None, message, name.span, self.why_not(name.text, params))

    def why_not(self, name: str, also: Iterable[str] = ()) -> str | None:
        """What to do about a name that is not visible; `also` are other names that could be meant."""
        if name == ast.ANONYMOUS:
            return "'$_' stands for a different node each time: give the variable a name"
        scope: Scope | None = self
        while scope is not None:
            if name in scope.own:
                return f"'${name}' is introduced further down: move this below it"
            if name in scope.hidden:
                return f"'${name}' is known only inside its 'not' block"
            scope = scope.outer
        return dollar_hint(name, [*also, *self.names()])

    def is_unknown(self, name: str, also: Iterable[str]) -> bool:
        """Whether no block has a variable of this name, and no name is near it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.own or name in scope.hidden:
                return False
            scope = scope.outer
        near = len(name) > 1 and closest(name, [*also, *self.names()]) is not None
        return name != ast.ANONYMOUS and not near


NO_SCOPE = Scope({}, {}, 0, None, {})


def pass_value(name: str) -> Hint:
    """What to do about a parameter of a query without a head that no value is passed for."""
    return Hint(
        f"pass its value: {{'{name}': …}}",
        cli=f"pass its value: -p {name}=…",
        in_shell=f"set its value: ':set {name}=…'",
    )


def dollar_hint(name: str, known: Collection[str]) -> str | None:
    """Which parameter or variable was probably meant; one letter is like any other, so then all are named."""
    if len(name) > 1:
        return did_you_mean(name, known, prefix="$")
    return f"known here: {listing(f'${other}' for other in known)}" if known else None
