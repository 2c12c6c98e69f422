"""The columns of a result, made of rows of numbers when somebody asks for them, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa

from omnigraph.engine.evaluate import Evaluator
from omnigraph.engine.frames import Frame
from omnigraph.engine.ordered import column_expr
from omnigraph.engine.text import Scores
from omnigraph.engine.watch import Watch, watching
from omnigraph.query import ir


class Projection:
    """Ordered rows and what to show of each; the properties are fetched when a batch is."""

    def __init__(self, plan: ir.AnyIR, frame: Frame, fused: Scores | None, evaluator: Evaluator, watch: Watch) -> None:
        self._exprs = [column_expr(plan, column.expr) for column in plan.columns]
        self._names = [column.name for column in plan.columns]
        self._frame = frame
        self._fused = fused
        self._evaluator = evaluator
        self._watch = watch

    def __len__(self) -> int:
        return self._frame.count

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns; names may repeat."""
        return self._batch(
            self._frame.take(np.zeros(0, np.int64)), self._fused[:0] if self._fused is not None else None
        ).schema

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows in batches of at most `rows`; the query's time limit goes on while they are made."""
        for start in range(0, len(self), rows):
            with watching(self._watch):
                self._watch.check()
                some = np.arange(start, min(start + rows, len(self)))
                fused = self._fused[some] if self._fused is not None else None
                batch = self._batch(self._frame.take(some), fused)
            yield batch

    def table(self) -> pa.Table:
        """All rows at once."""
        return pa.Table.from_arrays(self._columns(self._frame, self._fused), names=self._names)

    def _batch(self, frame: Frame, fused: Scores | None) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(self._columns(frame, fused), names=self._names)

    def _columns(self, frame: Frame, fused: Scores | None) -> list[pa.Array]:
        # A fused score depends on every candidate, so it is the one that ordered the rows, or none.
        return [pa.array(fused) if isinstance(e, ir.Rrf) else self._evaluator.value(e, frame) for e in self._exprs]
