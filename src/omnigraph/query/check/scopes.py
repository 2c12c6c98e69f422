"""Scopes: the variables and bare names that an expression can use."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from typing import Literal as OneOf

from omnigraph.errors import Hint
from omnigraph.fast_dataclass import dataclass
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
    """The object types of the nodes and edges of a path, whether it has a weight, and the type of its nodes."""

    nodes: ObjectType
    edges: ObjectType
    weighted: bool
    node_type: str
    """A node type, or the union of several."""


@dataclass(slots=True)
class Variable:
    """A match variable; `type_name` is None if its type could not be determined."""

    name: str
    ir_name: str
    kind: OneOf["node", "edge", "path", "value"]
    type_name: str | None
    optional: bool = False
    """True if the variable comes from an `optional` block, so that it can be null."""
    path: PathType | None = None
    """The type of a path, once it is known."""
    value: ir.Prop | None = None
    """The value that a stage carries on under this name."""
    kept: bool = False
    """True if an earlier stage carries the node or edge on."""


@dataclass(slots=True)
class BlockVariables:
    """The variables of a block, and those of the blocks around it."""

    outer: Scope | None = None
    own: dict[str, Variable] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)
    """Own variable → number of the clause that introduces it."""
    mentioned: dict[str, None] = field(default_factory=dict)
    """The variables that were looked up, in order, under their names in the plan."""
    hidden: set[str] = field(default_factory=set)
    """The variables of `not` blocks, which are visible only inside them."""
    dropped: frozenset[str] = frozenset()
    """The variables that an earlier stage binds and does not carry on."""


class Scope:
    """The names that an expression can use: the variables introduced above it in its block and in the outer blocks.

    `clause` is the number of the clause that is being checked. `words` maps bare names to their values; a value of None
    means that the definition of the name has an error. In a mutation, `row` is the type whose properties `words` names.
    """

    def __init__(
        self,
        block: BlockVariables,
        clause: float = 0,
        words: Mapping[str, ir.Expr | None] | None = None,
        row: NodeType | EdgeType | None = None,
    ) -> None:
        self.block = block
        self.clause = clause
        self.words = words or {}
        self.row = row

    @property
    def own(self) -> Mapping[str, Variable]:
        """The variables of the block itself."""
        return self.block.own

    @property
    def outer(self) -> Scope | None:
        """The scope around the block."""
        return self.block.outer

    def find(self, name: str) -> Variable | None:
        """Return the variable of this name if it is visible."""
        block = self.block
        variable = block.own.get(name)
        if variable is not None and block.since[name] < self.clause:
            return variable
        return block.outer.find(name) if block.outer else None

    @property
    def rows(self) -> Scope:
        """The scope of the argument of an aggregate: single rows."""
        return self

    def of_group(self, expr: ir.Expr, text: str, span: Span) -> ir.Expr:
        """Return an expression as it is evaluated in this scope; a scope of groups replaces or refuses it."""
        del text, span
        return expr

    def within(self, expr: ast.Expr) -> Scope:
        """Return the scope of a part of an item; the scope of rows if the part contains no aggregate."""
        del expr
        return self

    def returned(self, expr: ast.Expr) -> ir.Expr | None:
        """Return the value of a returned item that is repeated here; None except in a scope of groups."""
        del expr
        return None

    def names(self) -> list[str]:
        """Return every visible name."""
        own = [name for name in self.own if self.block.since[name] < self.clause]
        return own + self.outer.names() if self.outer else own

    def get(self, name: Name) -> Variable:
        """Return the variable of this name, or raise T6."""
        variable = self.find(name.text)
        if variable is None:
            raise self.unbound(name)
        self.block.mentioned[variable.ir_name] = None
        return variable

    def unbound(self, name: Name) -> Fault:
        """T6: no variable of this name is visible."""
        return type_fault("T6", f"'${name}' is not bound", name.span, self.visibility_hint(name.text))

    def unknown(self, name: Name, params: Iterable[str]) -> Fault:
        """Return the error where the name could also be a parameter."""
        message = f"'${name}' is neither a parameter nor a bound variable"
        return type_fault(None, message, name.span, self.visibility_hint(name.text, params))

    def visibility_hint(self, name: str, also: Iterable[str] = ()) -> str | None:
        """Return the hint for a name that is not visible; `also` are other candidates."""
        if name == ast.ANONYMOUS:
            return "'$_' denotes a different node each time: give the variable a name"
        scope: Scope | None = self
        while scope is not None:
            if name in scope.own:
                return f"'${name}' is introduced further down: move this below it"
            if name in scope.block.hidden:
                return f"'${name}' is visible only inside its 'not' block"
            if name in scope.block.dropped:
                return f"'${name}' ends at 'with': carry it on, 'with {{ ${name}, … }}'"
            scope = scope.outer
        return dollar_hint(name, [*also, *self.names()])

    def is_unknown(self, name: str, also: Iterable[str]) -> bool:
        """True if no block has a variable of this name and no visible name is similar."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.own or name in scope.block.hidden or name in scope.block.dropped:
                return False
            scope = scope.outer
        near = len(name) > 1 and closest(name, [*also, *self.names()]) is not None
        return name != ast.ANONYMOUS and not near


NO_SCOPE = Scope(BlockVariables())


def not_an_entity(name: str, span: Span, instead: str) -> Fault:
    """T42: a value that a stage carries on is used like a node, an edge or a path."""
    message = f"'${name}' is a value, not a node, an edge or a path"
    return type_fault("T42", message, span, instead)


def pass_value(name: str) -> Hint:
    """Return the hint for a parameter of a query without a head that has no value."""
    return Hint(
        f"pass its value: {{'{name}': …}}",
        cli=f"pass its value: -p {name}=…",
        in_shell=f"set its value: ':set {name}=…'",
    )


def dollar_hint(name: str, known: Collection[str]) -> str | None:
    """Return the most similar parameter or variable; for a name of one letter, all names."""
    if len(name) > 1:
        return did_you_mean(name, known, prefix="$")
    return f"known here: {listing(f'${other}' for other in known)}" if known else None
