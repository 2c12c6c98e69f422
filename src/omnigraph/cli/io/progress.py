"""A sign of life on a terminal while long work runs; nobody else ever sees it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph.pipeline.runner import Watch


@contextmanager
def working(what: str, *, wanted: bool) -> Iterator[Watch | None]:
    """Show `what` and the time that passed until the work is done; what is given back can be told how far it is."""
    if not (wanted and sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from omnigraph.pipeline.runner import Progress as Step

    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(file=sys.stderr), transient=True, refresh_per_second=10) as bar:
        task = bar.add_task(what, total=None)

        def watch(step: Step) -> None:
            bar.update(task, description=f"{what}: {step.step}", completed=step.done, total=step.total)

        yield watch
