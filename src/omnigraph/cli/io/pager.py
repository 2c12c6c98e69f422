"""Paging of long output on a terminal.

The pager is `OMNIGRAPH_PAGER`, then `PAGER`, then `less`. An empty value, `cat`, or redirected output disables it.
`less` gets the flags `FRX` unless `LESS` is set: it exits when the output fits one screen, keeps colours and leaves the
text on the screen.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING

from omnigraph.cli.io.terminal_text import visible

if TYPE_CHECKING:
    import subprocess


def print_paged(lines: Iterable[str], environ: Mapping[str, str] = os.environ) -> None:
    """Print lines, through the pager if stdout is a terminal and the lines do not fit it."""
    remaining = iter(lines)
    command = _command(environ) if sys.stdout.isatty() else None
    if command is None:
        for line in remaining:
            print(line)
        return
    screen = list(islice(remaining, shutil.get_terminal_size().lines - 1))
    further = next(remaining, None)
    if further is None:
        for line in screen:
            print(line)
        return
    _page(command, chain(screen, (further,), remaining), environ)


def _command(environ: Mapping[str, str]) -> list[str] | None:
    import shlex

    named = environ.get("OMNIGRAPH_PAGER", environ.get("PAGER", "less"))
    words = shlex.split(named)
    if not words or words == ["cat"] or shutil.which(words[0]) is None:
        return None
    return words


def _page(command: list[str], lines: Iterable[str], environ: Mapping[str, str]) -> None:
    import subprocess

    with subprocess.Popen(command, stdin=subprocess.PIPE, env={"LESS": "FRX", **environ}) as pager:  # noqa: S603
        assert pager.stdin is not None
        try:
            for line in lines:
                pager.stdin.write(visible(line).encode() + b"\n")
            pager.stdin.close()
        except BrokenPipeError:
            # The user quit the pager before the end of the output.
            pass
        _wait(pager)


def _wait(pager: subprocess.Popen[bytes]) -> None:
    """Wait for the pager; Ctrl-C belongs to the pager while it runs."""
    while True:
        try:
            pager.wait()
        except KeyboardInterrupt:
            continue
        return
