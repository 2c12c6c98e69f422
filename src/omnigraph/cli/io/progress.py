"""Progress bar on stderr, if it is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph.pipeline.runner import Watch


@contextmanager
def progress_bar(what: str, *, wanted: bool) -> Iterator[Watch | None]:
    """Show `what` and the elapsed time during a block; yields a watch that accepts progress, or None."""
    if not (wanted and sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from omnigraph.pipeline.runner import Progress as TaskProgress

    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(file=sys.stderr), transient=True, refresh_per_second=10) as bar:
        task = bar.add_task(what, total=None)

        def watch(step: TaskProgress) -> None:
            bar.update(task, description=f"{what}: {step.step}", completed=step.done, total=step.total)

        yield watch
