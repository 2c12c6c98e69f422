"""`omnigraph read`: run a read query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Branch, Invocation, Json, takes_graph_by_option
from omnigraph.cli.io.formats import ReadTarget
from omnigraph.cli.io.output import remark
from omnigraph.cli.io.points import At, check_branch_or_at, point
from omnigraph.cli.io.query_input import (
    AliasName,
    Assignments,
    Params,
    ParamsFile,
    QueryFile,
    QueryName,
    QueryOptions,
    QueryText,
    StoredRequest,
    Words,
    find_request,
    parameter_hints,
)
from omnigraph.cli.io.result_output import Format, Out, choose_format, write_rows
from omnigraph.cli.io.spark_options import Master, Remote, check_engine, spark_options
from omnigraph.hand_over import SPARK

if TYPE_CHECKING:
    from omnigraph.engine.result.result import Result


@takes_graph_by_option
def read_command(
    run: Invocation,
    words: Words = None,
    query: QueryFile = None,
    text: QueryText = None,
    alias: AliasName = None,
    name: QueryName = None,
    params: Params = None,
    params_file: ParamsFile = None,
    assignments: Assignments = None,
    branch: Branch = None,
    snapshot: At = None,
    format_: Format = None,
    out: Out = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="ENGINE", help="auto (by the size of the match), memory or spark.")
    ] = "auto",
    master: Master = None,
    remote: Remote = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", min=0.001, metavar="SECONDS", help="Cancel the query after this time.")
    ] = None,
    page: Annotated[
        int | None, typer.Option("--page", min=1, metavar="N", help="Return N rows and the cursor of the next page.")
    ] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="CURSOR", help="With --page: continue after an earlier page.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a read query, or a stored one by its name, and show its rows; 'query' is a synonym.

    omnigraph read -q people.gq -n adults -p age=18 ./my.omni

    omnigraph read adults -p age=18 ./my.omni
    """
    check_branch_or_at(branch, snapshot)
    if after is not None and page is None:
        raise UsageFault("--after requires --page")
    check_engine(engine)
    options = QueryOptions(query, text, alias, name, params, params_file, assignments)
    request = find_request(run, options, words, changes=False)
    if isinstance(request, StoredRequest) and (engine == "spark" or master or remote):
        raise UsageFault("a stored query runs in memory; omit the options of Spark")
    chosen = choose_format(run, request.format, format_, out, as_json=as_json)
    on = run.branch(branch, request.alias.branch if request.alias else None)
    session = spark_options(engine, master, remote)
    where: dict[str, Any] = {"engine": engine, "spark": session, "page": page, "after": after}
    may_use_spark = engine == "spark" or session is not None or (engine == "auto" and SPARK in run.environ)
    graph = run.open_for_queries(request.address, branch=None if snapshot else on, spark=may_use_spark)
    with parameter_hints():
        if isinstance(request, StoredRequest):
            pages: dict[str, Any] = {"page": page, "after": after}
            found = graph.invoke(
                request.name, request.params, at=point(snapshot), expect_mutation=False, timeout=timeout, **pages
            )
            result = cast("Result", found)
        else:
            result = graph.query(
                request.source, request.name, request.params, at=point(snapshot), timeout=timeout, **where
            )
    target = ReadTarget(None, snapshot) if snapshot else ReadTarget(on)
    write_rows(run, result, target, chosen, out)
    if result.next is not None and chosen not in ("json", "jsonl"):
        remark("next", result.next)
