"""Rows of blocks that are equal up to the names of their variables: one of them runs, the others take its rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from omnigraph.engine.exec.binding_table import BindingTable
from omnigraph.engine.exec.cancellation import add_note
from omnigraph.query.plan import ir
from omnigraph.query.plan.rename import variables_in_order


class SharedBlocks:
    """The rows of the shared blocks of one execution."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[list[str], BindingTable | None, BindingTable]] = {}
        """Number of a block → its variables in order, the outer rows that it ran for, and its rows."""

    def rows(
        self, op: ir.AntiJoin | ir.LeftJoin, outer: BindingTable | None, run: Callable[[], BindingTable]
    ) -> BindingTable:
        """Return the rows of the pipeline of a block: those of an equal block that ran for the same rows, else `run`.

        A block that runs on its own has no outer rows.
        """
        if op.shared is None:
            return run()
        names = variables_in_order(op.inner)
        known = self._known.get(op.shared)
        if known is not None and _same(known[1], outer):
            add_note("rows of an equal block")
            own = dict(zip(known[0], names, strict=True))
            rows = known[2]
            return BindingTable(
                rows.count, {own.get(name, name): bound for name, bound in rows.bound.items()}, rows.weight
            )
        found = run()
        self._known[op.shared] = names, outer, found
        return found


def _same(one: BindingTable | None, other: BindingTable | None) -> bool:
    """Return True if two binding tables have the same rows in the same order."""
    if one is None or other is None:
        return one is other
    return one.bound.keys() == other.bound.keys() and all(
        bound.data is other.bound[name].data and np.array_equal(bound.numbers, other.bound[name].numbers)
        for name, bound in one.bound.items()
    )
