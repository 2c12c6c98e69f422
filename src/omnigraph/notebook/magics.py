"""Magics of IPython and Jupyter: `%load_ext omnigraph`, then `%omnigraph my.omni` and cells that begin with `%%gq`.

A parameter of a query takes its value from `-p name=value`, else from the variable of the notebook with its name.
"""

from __future__ import annotations

import json
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NoReturn

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class

from omnigraph.errors import OmniGraphError
from omnigraph.graph_open import open as open_graph
from omnigraph.query.inference import free_variables
from omnigraph.query.syntax.parser import parse_queries


class _Arguments(ArgumentParser):
    """A parser that raises `UsageError`; the default one ends the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}")


def _connect_arguments() -> _Arguments:
    parser = _Arguments("%omnigraph", add_help=False)
    parser.add_argument("address")
    parser.add_argument("--branch")
    return parser


def _query_arguments() -> _Arguments:
    parser = _Arguments("%%gq", add_help=False)
    parser.add_argument("-g", "--graph")
    parser.add_argument("-n", "--name")
    parser.add_argument("-o", "--out")
    parser.add_argument("-p", "--param", action="append", default=[])
    parser.add_argument("-m", "--message")
    parser.add_argument("--at")
    parser.add_argument("--explain", action="store_true")
    return parser


@magics_class
class GraphMagics(Magics):
    """`%omnigraph` opens a graph, `%gq` and `%%gq` run queries and mutations on it."""

    graph: Any = None

    @line_magic
    def omnigraph(self, line: str) -> Any:
        """Open a graph for `%%gq`: `%omnigraph my.omni --branch draft`; without arguments, show it."""
        if not line.strip():
            return self.graph
        given = _connect_arguments().parse_args(shlex.split(line))
        try:
            self.graph = open_graph(given.address, **({"branch": given.branch} if given.branch else {}))
        except OmniGraphError as error:
            raise _usage_error(error) from None
        return self.graph

    @line_cell_magic
    def gq(self, line: str, cell: str | None = None) -> Any:
        """Run a query or mutation: `%gq match { … } return { … }`, or a cell with options in its first line.

        -g NAME      the variable that holds the graph; by default that of %omnigraph, else `graph`
        -n NAME      the query, if the cell has several
        -p NAME=VALUE  a parameter; others are variables of the notebook
        -o NAME      store the result in a variable and show nothing
        --at POINT   a branch, tag, commit or time
        --explain    show the plan
        -m MESSAGE   the message of a commit
        """
        parser = _query_arguments()
        given, text = (parser.parse_args([]), line) if cell is None else (parser.parse_args(shlex.split(line)), cell)
        try:
            result = self._run(given, text)
        except OmniGraphError as error:
            raise _usage_error(error) from None
        if given.out is None:
            return result
        self._variables[given.out] = result
        return None

    @property
    def _variables(self) -> dict[str, Any]:
        """The variables of the notebook."""
        assert self.shell is not None, "magics belong to a shell"
        variables: dict[str, Any] = self.shell.user_ns
        return variables

    def _run(self, given: Namespace, text: str) -> Any:
        graph, tree = self._graph(given.graph), parse_queries(text, "<cell>")
        name = given.name or tree.queries[0].name.text
        query = next((each for each in tree.queries if each.name.text == name), tree.queries[0])
        # A query without a head declares nothing: the variables that it does not bind are its parameters.
        names = free_variables(query) if query.is_bare else [param.name.text for param in query.params]
        params = self._params(given.param, names)
        named = None if query.is_bare else given.name
        if given.explain:
            return graph.explain(text, named, params, at=given.at)
        if query.is_mutation:
            return graph.mutate(text, named, params, message=given.message)
        return graph.query(text, named, params, at=given.at)

    def _graph(self, name: str | None) -> Any:
        found = self.graph if name is None and self.graph is not None else self._variables.get(name or "graph")
        if not hasattr(found, "query"):
            raise UsageError(
                f"there is no graph in the variable '{name}'" if name else "no graph is open: %omnigraph my.omni"
            )
        return found

    def _params(self, assignments: list[str], names: Iterable[str]) -> dict[str, Any]:
        """Return the given parameters, and variables of the notebook for the others."""
        found: dict[str, Any] = {}
        for word in assignments:
            name, equals, value = word.partition("=")
            if not equals:
                raise UsageError(f"'{word}' is not NAME=VALUE")
            found[name.removeprefix("$")] = value
            with suppress(ValueError):
                found[name.removeprefix("$")] = json.loads(value)
        variables = self._variables
        return {name: variables[name] for name in names if name in variables} | found


def _usage_error(error: OmniGraphError) -> UsageError:
    """Return an error that a notebook shows without a traceback."""
    hint = getattr(error, "hint", None)
    return UsageError(f"{error}\nhint: {hint}" if hint is not None and str(hint) not in str(error) else str(error))


def load_ipython_extension(ipython: Any) -> None:
    """Register the magics: `%load_ext omnigraph`."""
    ipython.register_magics(GraphMagics)
