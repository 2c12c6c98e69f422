"""`omnigraph alias`: run a read that the operator file defines for a server."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from omnigraph.cli import completion
from omnigraph.cli.addresses import GivenAddress
from omnigraph.cli.invocation import Branch, Invocation, Json, takes_config
from omnigraph.cli.io.formats import ReadTarget
from omnigraph.cli.io.params import gather
from omnigraph.cli.io.query_input import Assignments, Params, ParamsFile, declared_types, parameter_hints, pick_from
from omnigraph.cli.io.result_output import Format, Out, choose_format, write_rows
from omnigraph.errors import NotFound, OmniGraphError

if TYPE_CHECKING:
    from omnigraph.cli.addresses import Address
    from omnigraph.engine.result.result import Result

_UNKNOWN = frozenset({"no_such_path", "query_not_found"})
"""Codes of the answer of a server that has no stored query of a name."""


@takes_config
def alias_command(
    run: Invocation,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="An alias of the operator file.", autocompletion=completion.operator_aliases
        ),
    ],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="ARG", help="The arguments, in the order of 'args' of the alias.")
    ] = None,
    params: Params = None,
    params_file: ParamsFile = None,
    assignments: Assignments = None,
    branch: Branch = None,
    format_: Format = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Run a read that the operator file defines: a stored query of a server, or a query of a local file.

    'omnigraph read --alias' runs the aliases of omnigraph.yaml, which are separate.

    omnigraph alias loans 2026-05-01
    """
    alias = run.config.operator.get_alias(name)
    chosen = choose_format(run, alias.format, format_, out, as_json=as_json)
    address = run.address(given=GivenAddress(server=alias.server, graph_id=alias.graph))
    run.contacted = address
    on = run.branch(branch)

    given = partial(gather, params=params, params_file=params_file, assignments=assignments or ())
    with parameter_hints():
        if alias.query is not None:
            values = {**alias.params, **given({}, alias=alias, words=words or ())}
            result = _invoke(run, address, alias.query, values, on)
        else:
            path = run.config.operator.resolve(str(alias.file))
            query = pick_from(path, alias.query_name, changes=False)
            declared, bare = declared_types(query), query.is_bare
            values = {**alias.params, **given(declared, alias=alias, words=words or (), bare=bare)}
            result = run.open_for_queries(address, branch=on).query(path, query.name.text, values)
    write_rows(run, result, ReadTarget(on), chosen, out)


def _invoke(run: Invocation, address: Address, name: str, values: dict[str, Any], branch: str) -> Result:
    """Run a stored read of a server."""
    try:
        return cast("Result", run.open_for_queries(address, branch=branch).invoke(name, values, expect_mutation=False))
    except OmniGraphError as error:
        if error.code not in _UNKNOWN:
            raise
        raise NotFound(
            f"the server at {address.uri} has no stored query '{name}'",
            code="query_not_found",
            hint="an alias can also name a query of a local file: 'file' instead of 'query'",
        ) from None
