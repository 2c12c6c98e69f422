"""What a write returns: the rows its statements touched, by the names they were given.

`as $x` names the rows of a statement. A later insert of an edge may take such a node for one of its ends (T41), and
`return` shows the rows as the statement left them, or as they were if it deleted them (T40).
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
    "aggregate": "puts rows together, and a write returns each row it touched",
    "rank": "ranks, and a write returns the rows in their order",
    "why": "explains a ranking, and a write ranks nothing",
    "text": "searches what is stored, and these rows are not yet",
}


class NamedRows:
    """The variables of the statements of one write, which are known from the statement on."""

    def __init__(self, params: Collection[str], statements: Sequence[ast.Statement]) -> None:
        self._params = params
        self._every = {statement.name.text for statement in statements if statement.name}
        self._variables: dict[str, Variable] = {}
        self._single: set[str] = set()
        """Those that are exactly one row: of an insert or upsert."""

    def add(self, statement: ast.Statement, type_: NodeType | EdgeType | None) -> str | None:
        """Introduce the variable of a statement, if it has one; T40 if its name cannot be used."""
        name = statement.name
        if name is None:
            return None
        if name.text == ast.ANONYMOUS:
            raise type_fault("T40", "'$_' names nothing", name.span, "give the rows a name, or leave 'as' out")
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

    def find_end(self, value: ast.Expr, wanted: str) -> ir.Prop | None:
        """A variable as the end of an edge at a `wanted` node, T41 if it cannot be one; None if it is no such."""
        if not isinstance(value, ast.VarExpr) or value.name in self._params or value.name not in self._every:
            return None
        variable = self._variables.get(value.name)
        if variable is None:
            hint = "move the edge below the statement that names it"
            raise type_fault("T41", f"'${value.name}' is named further down", value.span, hint)
        if variable.type_name is None:
            raise Silenced
        if value.name not in self._single or variable.kind != "node":
            message = f"an edge ends at one node, and '${value.name}' is not the node of an insert or upsert"
            raise type_fault("T41", message, value.span, "give the id of the node")
        if variable.type_name != wanted:
            message = f"the edge ends at a {wanted}, and '${value.name}' is a {variable.type_name}"
            raise type_fault("T41", message, value.span)
        return ir.Prop(value.name, "id", ir.STRING)

    def scope(self) -> Scope:
        """What `return` sees."""
        return _ReturnScope(self._variables)

    def sound_items(self, write: ast.Write, report: Callable[[Fault], None]) -> list[ast.ReturnItem]:
        """The items that could be returned by a write, without those that T40 forbids, which are reported."""
        if write.items and not self._variables:
            hint = "name them: insert Type { … } as $x"
            report(type_fault("T40", "no statement of this write names its rows", write.return_body, hint))
            return []
        sound: list[ast.ReturnItem] = []
        for item in write.items:
            refused = [(call, FUNCTIONS[call.function].family) for call in ast.calls_in(item.expr)]
            refused = [(call, family) for call, family in refused if family in _NO_VALUES]
            for call, family in refused[:1]:
                report(type_fault("T40", f"'{call.function}' {_NO_VALUES[family]}", call.span))
            if not refused:
                sound.append(item)
        return sound


class _ReturnScope(Scope):
    """The named rows, all of them visible."""

    def __init__(self, variables: dict[str, Variable]) -> None:
        super().__init__(BlockVariables(own=variables, since=dict.fromkeys(variables, 0)), clause=1)

    def unbound(self, name: Name) -> Fault:
        """T40: no statement names its rows so."""
        return self.unknown(name, ())

    def unknown(self, name: Name, params: Iterable[str]) -> Fault:
        """The same where a parameter could stand as well."""
        hint = dollar_hint(name.text, [*params, *self.names()]) or f"the names are {listing(f'${n}' for n in self.own)}"
        return type_fault("T40", f"no statement names its rows '${name}'", name.span, hint)
