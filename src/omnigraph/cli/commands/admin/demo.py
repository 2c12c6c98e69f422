"""`omnigraph demo`: build an example graph and suggest commands to try."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.invocation import Invocation, Json, takes_config
from omnigraph.cli.io.output import print_json, remark

_NEXT = (
    ("cd {folder}", ""),
    ('omnigraph read --alias recall "flooding in the harbour"', "vector and text search, fused into one ranking"),
    ("omnigraph read --alias colleagues ana-abt", "two hops and an aggregate"),
    ("omnigraph explain -q station.gq -n recall", "how a query runs"),
    ("omnigraph diff main {branch} --stat", "what the branch changed"),
    ("omnigraph branch merge {branch}", "one conflict; nothing is written"),
    ("omnigraph branch merge {branch} --resolve theirs", "the conflict is resolved"),
    ("omnigraph commit list --limit 5", "every change is a commit"),
    ("omnigraph read --alias project {contested} --at 2", "the project at version 2"),
    ("omnigraph shell", "an interactive session"),
)


@takes_config
def demo_command(
    run: Invocation,
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="The target folder; must be empty or not exist.")
    ] = "omnigraph-demo",
    notes: Annotated[int, typer.Option("--notes", min=1, metavar="N", help="The number of notes to generate.")] = 3000,
    uri: Annotated[
        str | None,
        typer.Option(
            "--uri", metavar="URI", help="The graph: s3://bucket/prefix or another folder.", show_default="in FOLDER"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Build an example graph: people, projects, and notes with text and vectors.

    Nothing is downloaded, and the graph is the same on every machine. With --uri the graph is built at another address,
    such as s3://bucket/prefix.
    """
    from omnigraph.demo.build import BRANCH, CONTESTED, build_demo

    started = time.perf_counter()
    wanted = not (as_json or run.options.quiet)
    demo = build_demo(
        Path(folder),
        notes=notes,
        uri=uri,
        environ=run.environ,
        progress=lambda line: remark("note", line) if wanted else None,
    )
    branches = demo.graph.branches()
    if as_json:
        counts = {"nodes": demo.nodes, "edges": demo.edges, "branches": branches}
        print_json({"folder": folder, "uri": str(demo.graph.uri), **counts, "conflict": f"node:Project:{CONTESTED}"})
        return
    seconds = time.perf_counter() - started
    print(
        f"built {folder} in {seconds:.1f} s: {demo.nodes} nodes, {demo.edges} edges, branches {', '.join(branches)}\n"
    )
    print("try:")
    missing = _folder_to_add()
    if missing is not None:
        print(f"  export PATH={missing}:$PATH")
    for command, why in _NEXT:
        line = command.format(folder=folder, branch=BRANCH, contested=CONTESTED)
        print(f"  {line:<62}# {why}" if why else f"  {line}")


def _folder_to_add() -> Path | None:
    """Return the folder of the program if it was started by its path and is not on the PATH."""
    started = Path(sys.argv[0])
    by_path = started.name in ("omnigraph", "og") and started.is_file()
    return started.resolve().parent if by_path and shutil.which("omnigraph") is None else None
