"""Points of history on the command line: the `--at` option and its values."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.errors import UsageFault
from omnigraph.versioning.model.point_text import parse_point

if TYPE_CHECKING:
    from omnigraph.cli.invocation import Invocation
    from omnigraph.graph import Graph

At = Annotated[
    str | None, typer.Option("--snapshot", "--at", metavar="POINT", help="A branch, tag, commit id, version or time.")
]


def check_branch_or_at(branch: str | None, at: str | None) -> None:
    """Reject a command line that gives both `--branch` and `--at`."""
    if branch is not None and at is not None:
        raise UsageFault("--branch and --at (--snapshot) exclude each other")


def open_at(run: Invocation, branch: str | None, at: str | None) -> Graph:
    """Open the graph read-only, on a branch or for reads at a point."""
    check_branch_or_at(branch, at)
    return run.open(branch=None if at else run.branch(branch), read_only=True)


def point(text: str | None) -> str | int | datetime | None:
    """Parse a point: a version number, a time, or else a commit id or name."""
    return None if text is None else parse_point(text)
