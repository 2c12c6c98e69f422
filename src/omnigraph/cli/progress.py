"""A sign of life on a terminal while long work runs; nobody else ever sees it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager as Context
from contextlib import contextmanager, nullcontext


def working(what: str, *, wanted: bool) -> Context[None]:
    """Show `what` and the time that passed, until the work is done."""
    return _spinner(what) if wanted and sys.stderr.isatty() else nullcontext()


@contextmanager
def _spinner(what: str) -> Iterator[None]:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(file=sys.stderr)
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, refresh_per_second=10) as progress:
        progress.add_task(what, total=None)
        yield
