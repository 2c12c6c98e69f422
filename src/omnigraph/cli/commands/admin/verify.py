"""`omnigraph verify`: check every invariant of a graph."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.errors import FAILED
from omnigraph.cli.invocation import Invocation, Json, takes_graph
from omnigraph.cli.io.output import plural, print_json, remark
from omnigraph.cli.io.progress import progress_bar


@takes_graph
def verify_command(
    run: Invocation,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also compare every file with the digest recorded at its write.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Read the whole graph and check every invariant; exits with 1 if one is violated."""
    address = run.address()
    graph = run.open(address, read_only=True)
    with progress_bar("verifying", wanted=not (as_json or run.options.quiet)):
        found = graph.verify(deep=deep)
    problems = [problem for problem in found if problem.damage]
    remarks = [problem for problem in found if not problem.damage]
    if as_json:
        from omnigraph.wire.maintenance import ProblemDocument, verify_document

        documents = [ProblemDocument(problem.where, problem.what) for problem in problems]
        unchecked = [ProblemDocument(problem.where, problem.what) for problem in remarks]
        print_json(verify_document(address.uri, documents, unchecked, deep=deep))
    else:
        for problem in problems:
            print(f"problem  {problem.where}: {problem.what}")
        for problem in remarks:
            remark("note", f"{problem.where}: {problem.what}")
        sound = "sound; every recorded digest matches" if deep else "sound"
        print(f"verify {address.uri}: " + (plural(len(problems), "problem") if problems else sound))
    if problems:
        raise typer.Exit(FAILED)
