"""Write the rows of a query to stdout or a file, in the chosen format."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import completion
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Invocation
from omnigraph.cli.io.colours import PLAIN, colours
from omnigraph.cli.io.files import writing
from omnigraph.cli.io.formats import ALL_FORMATS, BINARY_FORMATS, ReadTarget, text_lines, write_binary
from omnigraph.cli.io.pager import print_paged
from omnigraph.text_table import TableStyle, terminal_width

if TYPE_CHECKING:
    from omnigraph.engine.result.result import Result

Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help=f"{', '.join(ALL_FORMATS)}.",
        autocompletion=completion.one_of(*ALL_FORMATS),
    ),
]
Out = Annotated[str | None, typer.Option("--out", "-o", metavar="FILE", help="Write the rows to a file.")]


def choose_format(
    run: Invocation, alias_format: str | None, format_: str | None, out: str | None, *, as_json: bool
) -> str:
    """Return the format of the rows: the option, the format of the alias, or the configured one."""
    if as_json and format_ is not None:
        raise UsageFault("--json and --format exclude each other")
    if format_ is not None and format_ not in ALL_FORMATS:
        raise UsageFault(f"there is no format '{format_}'; the formats are {', '.join(ALL_FORMATS)}")
    chosen: str = "json" if as_json else format_ or alias_format or run.config.get("cli.output_format")
    if chosen in BINARY_FORMATS and out is None and sys.stdout.isatty():
        raise UsageFault(f"{chosen} cannot be shown on a terminal; add --out FILE or redirect stdout")
    return chosen


def write_rows(run: Invocation, result: Result, target: ReadTarget, chosen: str, out: str | None) -> None:
    """Write the rows of a result in the chosen format; on a terminal, through the pager."""
    on_terminal = out is None and sys.stdout.isatty()
    lines = text_lines(result, target, chosen, table_style(run, on_terminal=on_terminal))
    if on_terminal and chosen not in BINARY_FORMATS:
        print_paged(lines)
        return
    with writing(out) as file:
        if chosen in BINARY_FORMATS:
            write_binary(result, chosen, file)
            return
        for line in lines:
            file.write(line.encode() + b"\n")


def table_style(run: Invocation, *, on_terminal: bool) -> TableStyle:
    """Return the layout of tables: the configured widths and, on a terminal, its width and colours."""
    paint = colours() if on_terminal else PLAIN
    return TableStyle(
        run.config.get("cli.table_max_column_width"),
        run.config.get("cli.table_cell_layout"),
        terminal_width() if on_terminal else None,
        paint.header,
        paint.muted,
    )
