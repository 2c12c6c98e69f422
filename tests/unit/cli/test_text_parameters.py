"""Text arguments pass without the validators of typer; everything else is validated as before."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
import typer
from typer.main import get_command

from omnigraph.cli.help import UsageCommand

SEEN: list[dict[str, Any]] = []


def command(
    name: Annotated[str, typer.Argument()],
    words: Annotated[list[str] | None, typer.Argument()] = None,
    branch: Annotated[str | None, typer.Option("--branch")] = None,
    engine: Annotated[str, typer.Option("--engine")] = "memory",
    pairs: Annotated[list[str] | None, typer.Option("-p")] = None,
    page: Annotated[int | None, typer.Option("--page", min=1)] = None,
    timeout: Annotated[float | None, typer.Option("--timeout")] = None,
    flag: Annotated[bool, typer.Option("--flag")] = False,
) -> None:
    SEEN.append(dict(locals()))


def outcome(arguments: list[str], *, fast: bool) -> object:
    """Return the arguments of the function, or the error, with or without the fast way."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(cls=UsageCommand if fast else None)(command)
    SEEN.clear()
    try:
        get_command(app)(arguments, prog_name="c", standalone_mode=False)
    except (typer.TyperException, typer.Exit, typer.Abort) as error:
        return type(error), str(error), getattr(error, "message", None)
    return SEEN[0]


@pytest.mark.parametrize(
    "arguments",
    [
        ["a"],
        ["a", "b", "c"],
        ["", "é", "--branch", ""],
        ["a", "--branch", "b", "--engine", "x", "-p", "x=1", "-p", "y=2", "--flag"],
        ["a", "--page", "3", "--timeout", "1.5"],
        ["a", "--page", "0"],
        ["a", "--page", "x"],
        ["a", "--timeout", "soon"],
        ["a", "--branch"],
        ["a", "--nope"],
        [],
        ["a", "--branch", "\udcff"],
        ["\udcff"],
        ["a", "b\udcff"],
    ],
)
def test_the_fast_way_gives_the_same_outcome(arguments: list[str]) -> None:
    assert outcome(arguments, fast=True) == outcome(arguments, fast=False)
