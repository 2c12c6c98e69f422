"""Tasks for which a minute is short, for workers to import."""

from __future__ import annotations

from typing import Any

from omnigraph.embedding import rate_limit
from omnigraph.pipeline.embed import Embedded, EmbedJob, embed_split
from omnigraph.pipeline.runner import Runner
from omnigraph.pipeline.splits import Split

MINUTE_S = 2.5


def embed_in_a_hurry(job: EmbedJob, split: Split) -> Embedded:
    """Embed a split; the limits are those of a shorter minute."""
    rate_limit.MINUTE_S = MINUTE_S
    return embed_split(job, split)


class HurriedRunner:
    """Runs the tasks of another runner in shorter minutes."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.parallelism = runner.parallelism
        self.on_this_machine = runner.on_this_machine

    def run(self, step: str, task: Any, job: Any, work: Any, **more: Any) -> Any:
        """Run the tasks."""
        assert task is embed_split
        return self._runner.run(step, embed_in_a_hurry, job, work, **more)
