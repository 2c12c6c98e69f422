"""Seeds of blocks: a block that runs once, on its own, starts from the nodes of an outer variable if they are few.

Rows of the block with other nodes of the variable would match no row of the outer match.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.exec.left_join import NullExtendedTable
from omnigraph.engine.plan.expected_rows import ExpectedRows


def is_large(expected: ExpectedRows) -> bool:
    """Return True if many rows are expected after some operator of a block."""
    return any(tuning.current.seeded_rows_min <= one.rows < float("inf") for one in expected.operators)


def distinct_nodes(outer: BindingTable, names: Iterable[str]) -> dict[str, Binding]:
    """Return the distinct nodes of variables that have not all visible nodes of their table."""
    found: dict[str, Binding] = {}
    for name in names:
        bound = outer.bound[name]
        if bound.whole or isinstance(bound.data, NullExtendedTable):
            continue
        marks = np.zeros(bound.data.row_count, bool)
        marks[bound.numbers] = True
        numbers = np.flatnonzero(marks)
        seen = bound.data.visible
        if len(numbers) < (bound.data.row_count if seen is None else int(np.count_nonzero(seen))):
            found[name] = Binding(bound.data, numbers, unique=True)
    return found
