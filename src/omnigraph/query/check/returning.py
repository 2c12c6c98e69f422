"""Type checker for the `return` of a mutation: the affected rows, by the names of their statements.

`as $x` names the rows of a statement. A later insert of an edge can use such a node as an endpoint (T41). `return`
shows rows as the statement left them, or as they were before a delete (T40).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.spans import Name
from omnigraph.query.check.errors import Silenced, type_fault
from omnigraph.query.check.scopes import BlockVariables, Scope, Variable, dollar_hint
from omnigraph.query.functions import FUNCTIONS
from omnigraph.query.plan import ir
from omnigraph.query.syntax import ast
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.suggestions import listing

_NO_VALUES = {
    "aggregate": "aggregates rows, and a mutation returns each affected row",
    "rank": "ranks rows, and a mutation does not rank its rows",
    "why": "explains a ranking, and a mutation has none",
    "text": "searches committed rows, and these rows are not committed yet",
}


class NamedRows:
    """The variables of the statements of one mutation. Each is visible from its statement on."""

    def __init__(self, params: Collection[str], statements: Sequence[ast.Statement]) -> None:
        self._params = params
        self._every = {statement.name.text for statement in statements if statement.name}
        self._variables: dict[str, Variable] = {}
        self._single: set[str] = set()
        """The variables that denote exactly one row: those of an insert or upsert."""

    def add(self, statement: ast.Statement, type_: NodeType | EdgeType | None) -> str | None:
        """Introduce the variable of a statement, if it has one; T40 if the name is not allowed."""
        name = statement.name
        if name is None:
            return None
        if name.text == ast.ANONYMOUS:
            raise type_fault("T40", "'$_' cannot name rows", name.span, "give the rows a name, or leave 'as' out")
        if name.text in self._params:
            hint = "give the rows another name"
            raise type_fault("T40", f"'${name}' is a parameter of this query", name.span, hint)
        if name.text in self._variables:
            hint = "give each statement a name of its own"
            raise type_fault("T40", f"'${name}' names the rows of an earlier statement", name.span, hint)
        kind = type_.kind if type_ is not None else "node"
        self._variables[name.text] = Variable(name.text, name.text, kind, type_.name if type_ is not None else None)
        if isinstance(statement, ast.InsertStatement | ast.UpsertStatement):
            self._single.add(name.text)
        return name.text

    def find_end(self, value: ast.Expr, node: NodeType) -> ir.Prop | None:
        """Return a variable as an endpoint of an edge at a node; T41 if it is not allowed, None if it is no
        variable.
        """
        if not isinstance(value, ast.VarExpr) or value.name in self._params or value.name not in self._every:
            return None
        variable = self._variables.get(value.name)
        if variable is None:
            hint = "move the edge below the statement that names it"
            raise type_fault("T41", f"'${value.name}' is named by a later statement", value.span, hint)
        if variable.type_name is None:
            raise Silenced
        if value.name not in self._single or variable.kind != "node":
            message = f"an edge ends at one node, and '${value.name}' is not the node of an insert or upsert"
            raise type_fault("T41", message, value.span, "give the id of the node")
        if variable.type_name != node.name:
            message = f"the edge ends at a {node.name}, and '${value.name}' is a {variable.type_name}"
            raise type_fault("T41", message, value.span)
        return ir.Prop(value.name, node.end_column, ir.STRING)

    def scope(self) -> Scope:
        """Return the scope of `return`."""
        return _ReturnScope(self._variables)

    def valid_items(self, write: ast.Write, report: Callable[[Fault], None]) -> list[ast.ReturnItem]:
        """Return the valid items of a mutation; those that T40 forbids are reported."""
        if write.items and not self._variables:
            hint = "name them: insert Type { … } as $x"
            report(type_fault("T40", "no statement of this mutation names its rows", write.return_body, hint))
            return []
        valid: list[ast.ReturnItem] = []
        for item in write.items:
            refused = [(call, FUNCTIONS[call.function].family) for call in ast.calls_in(item.expr)]
            refused = [(call, family) for call, family in refused if family in _NO_VALUES]
            for call, family in refused[:1]:
                report(type_fault("T40", f"'{call.function}' {_NO_VALUES[family]}", call.span))
            if not refused:
                valid.append(item)
        return valid


class _ReturnScope(Scope):
    """A scope in which the named rows of all statements are visible."""

    def __init__(self, variables: dict[str, Variable]) -> None:
        super().__init__(BlockVariables(own=variables, since=dict.fromkeys(variables, 0)), clause=1)

    def unbound(self, name: Name) -> Fault:
        """T40: no statement has this name."""
        return self.unknown(name, ())

    def unknown(self, name: Name, params: Iterable[str]) -> Fault:
        """T40, where the name could also be a parameter."""
        hint = dollar_hint(name.text, [*params, *self.names()]) or f"the names are {listing(f'${n}' for n in self.own)}"
        return type_fault("T40", f"no statement names its rows '${name}'", name.span, hint)
